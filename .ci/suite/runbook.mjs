// Walks the runbook with the client of the TypeScript SDK, for every kernel of the demo worktree: doctor, list, capture, status, read.
// Usage: node runbook.mjs <flyprof-mcp> <runs directory>
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, runs] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args: ["--simulate", "--runs-dir", runs, "--log-level", "warn"], stderr: "inherit" });
const client = new Client({ name: "flyprof-ci", version: "1" });
await client.connect(transport);

const { tools } = await client.listTools(); // the SDK then validates every structuredContent against its output schema
assert.ok(tools.length >= 7, `tools: ${tools.map((t) => t.name)}`);
for (const t of tools) assert.ok(t.annotations && t.title && t.outputSchema, t.name);

async function call(name, args) {
  const res = await client.callTool({ name, arguments: args }, undefined, { timeout: 120_000 });
  const e = res.structuredContent;
  assert.deepEqual(JSON.parse(res.content[0].text), e);
  assert.equal(e.ok, !res.isError);
  console.log(name, e.ok ? (e.data.verdict ?? e.data.state ?? "ok") : e.error.code);
  return e;
}

const doctor = await call("flyprof_doctor", {});
assert.equal(doctor.data.verdict, "ready", JSON.stringify(doctor));
const list = await call("flyprof_list", {});
assert.ok(list.data.kernels.some((k) => k.kernel === "softmax"));
async function run(args) {
  let e = await call("flyprof_capture", { ...args, wait_s: 0 });
  while (e.ok && ["queued", "running"].includes(e.data.state)) {
    e = await call("flyprof_capture_status", { run_id: e.data.run_id, wait_s: 30 });
  }
  return e;
}
// Every kernel that the list calls runnable, with both tags and counters.
for (const k of list.data.kernels.filter((k) => k.runnable)) {
  let e = await run({ kernel: k.kernel, tag: "both", with_pmc: true });
  if (!e.ok && e.error.code === "AMBIGUOUS_KERNEL") e = await run(e.error.next_actions[0].arguments);
  assert.ok(e.ok, `${k.kernel}: ${JSON.stringify(e.error)}`);
  assert.equal(e.data.tags.big.state, "done");
  assert.ok(["done", "skipped"].includes(e.data.tags.small.state), k.kernel);
  assert.ok(e.data.pmc.length > 0 && e.data.pmc.every((p) => p.values.length === p.counters.length), k.kernel);
}
let capture = await run({ kernel: "softmax", shape: "8192,8192" });
assert.ok(capture.ok, JSON.stringify(capture));
assert.ok(capture.data.checks.length > 0 && capture.data.checks.every((c) => c.pass), JSON.stringify(capture.data.checks));
const dir = capture.data.tags.big.kept_dir;
let text = "";
for (let offset = 0; offset !== undefined; ) {
  const page = await call("flyprof_read", { uri: `flyprof://files/${capture.data.run_id}/${dir}/filenames.json`, offset });
  text += page.data.text;
  offset = page.data.next_offset;
}
assert.ok(Object.keys(JSON.parse(text).wave_filenames).length > 0);
const resource = await client.readResource({ uri: `flyprof://runs/${capture.data.run_id}` });
assert.deepEqual(JSON.parse(resource.contents[0].text), capture);
await assert.rejects(client.readResource({ uri: "flyprof://files/../../etc/passwd" }));
const wrong = await call("flyprof_capture", { kernel: "softmux" });
assert.equal(wrong.error.code, "KERNEL_NOT_FOUND");
await client.close();
console.log("ok");
