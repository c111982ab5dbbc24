// Calls the program with the command line of the MCP Inspector: every list, a tool, a resource, a prompt, the skills; over stdio and HTTP,
// in both eras of the protocol.
// Usage: node inspector.mjs <flyprof-mcp> <scratch directory>
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { startProduction, token } from "./servers.mjs";

const [program, scratch] = process.argv.slice(2);
const inspector = path.join(path.dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json")), "clients/launcher/build/index.js");
const env = {
  ...process.env,
  MCP_CATALOG_PATH: path.join(scratch, "catalog.json"),
  MCP_CLIENT_CONFIG_PATH: path.join(scratch, "client.json"),
};

const run = (...args) =>
  new Promise((resolve) =>
    execFile(process.execPath, [inspector, "--cli", "--quiet", ...args], { env, cwd: scratch, maxBuffer: 16 << 20 }, (err, stdout, stderr) =>
      resolve({ code: err ? err.code : 0, stdout, stderr }),
    ),
  );
const names = (list) => list.map((e) => e.name).sort();
const texts = (r) => r.contents.map((c) => c.text).join("");

// Each is a call and what must hold of its answer. --strict fails for schemas that some client cannot read, --verify for skills that
// differ from their digests.
const calls = [
  [["tools/list", "--strict"], (r) => assert.ok(names(r.tools).includes("flyprof_capture") && r.tools.every((t) => t.outputSchema && t.annotations))],
  [["tools/call", "--tool-name", "flyprof_doctor"], (r) => assert.equal(r.structuredContent.data.verdict, "ready")],
  [
    ["tools/call", "--tool-name", "flyprof_tile", "--tool-arg", "kernel=softmax", "shape=8192,8192"],
    (r) => assert.equal(r.structuredContent.ok, true),
  ],
  [["resources/list"], (r) => assert.ok(r.resources.some((e) => e.uri === "flyprof://reference/rocprofv3-quirks"))],
  [["resources/templates/list"], (r) => assert.ok(r.resourceTemplates.some((e) => e.uriTemplate.startsWith("flyprof://runs/{run}")))],
  [["resources/read", "--uri", "flyprof://reference/error-codes"], (r) => assert.match(texts(r), /EMPTY_ATT/)],
  [["prompts/list"], (r) => assert.ok(names(r.prompts).includes("capture_kernel"))],
  [
    ["prompts/get", "--prompt-name", "capture_kernel", "--prompt-args", "kernel=softmax"],
    (r) => assert.match(r.messages[0].content.text, /softmax/),
  ],
  [["skills/list", "--verify"], (r) => assert.ok(r.length >= 2 && r.every((s) => s.ok && s.outcome === "verified"))],
];
// What is refused must arrive as a refusal.
const refused = [
  [["tools/call", "--tool-name", "flyprof_tile", "--tool-arg", "kernel=softmax", "shape=8192,cats"], /BAD_ARGS/],
  [["tools/call", "--tool-name", "no_such_tool"], /no_such_tool/],
  [["resources/read", "--uri", "flyprof://files/../../etc/passwd"], /RUN_NOT_FOUND/],
  [["prompts/get", "--prompt-name", "capture_kernel"], /kernel/],
];

const server = await startProduction(program, path.join(scratch, "runs-inspector-http"));
const targets = {
  stdio: [program, "--simulate", "--runs-dir", path.join(scratch, "runs-inspector-stdio")],
  http: [server.url, "--transport", "http", "--header", `Authorization: Bearer ${token}`],
};

const jobs = [];
for (const [transport, target] of Object.entries(targets)) {
  for (const era of ["legacy", "modern"]) {
    const args = (method) => [...target, "--protocol-era", era, "--method", ...method];
    for (const [method, holds] of calls) {
      jobs.push(async () => {
        const { code, stdout, stderr } = await run(...args(method));
        const what = `${transport} ${era} ${method.join(" ")}`;
        assert.equal(code, 0, `${what}: ${stderr}${stdout}`);
        const lines = method[0] === "skills/list" ? stdout.trim().split("\n").map((l) => JSON.parse(l)) : JSON.parse(stdout);
        try {
          holds(lines);
        } catch (err) {
          throw new Error(`${what}: ${stdout}`, { cause: err });
        }
      });
    }
    for (const [method, says] of refused) {
      jobs.push(async () => {
        const { code, stdout, stderr } = await run(...args(method));
        assert.ok(code !== 0 && says.test(stdout + stderr), `${transport} ${era} ${method.join(" ")} gave ${code}: ${stderr}${stdout}`);
      });
    }
  }
}
const all = jobs.length;
const work = async () => {
  for (let job = jobs.shift(); job; job = jobs.shift()) await job();
};
try {
  await Promise.all([work(), work(), work()]);
} finally {
  jobs.length = 0;
  assert.equal(await server.stop(), 0);
}
console.log(`${all} calls of the inspector`);
