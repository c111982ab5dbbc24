// Drives the program with the TypeScript SDK's clients, as agents do: the one of the era of sessions and the current one in both eras, over
// stdio and HTTP. Each lists, reads, watches, waits with progress, cancels, calls 200 times at once, and goes away without a word.
// Usage: node clients.mjs <flyprof-mcp> <scratch directory>
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, kinds } from "./connect.mjs";
import { startProduction } from "./servers.mjs";

const [program, scratch] = process.argv.slice(2);
const capture = { kernel: "softmax", shape: "8192,8192" };
const goingOn = (e) => e.ok && ["queued", "running"].includes(e.data.state);

// events collects what a client is told, and lets a test wait for it.
function events() {
  const all = [];
  const waiting = [];
  return {
    all,
    tell(e) {
      all.push(e);
      for (const w of waiting.splice(0)) w();
    },
    async until(holds, what) {
      const deadline = Date.now() + 60_000;
      while (!holds(all)) {
        assert.ok(Date.now() < deadline, `waited in vain for ${what}; there were ${JSON.stringify(all)}`);
        await Promise.race([new Promise((r) => waiting.push(r)), sleep(1000)]);
      }
    },
  };
}

// together is all that one client does with one server, whose captures take some seconds a step.
async function together(c) {
  const { tools } = await c.listTools(); // both SDKs then hold every structuredContent against its output schema
  assert.ok(tools.length >= 8 && tools.every((t) => t.title && t.annotations && t.outputSchema));
  const { resources } = await c.client.listResources();
  for (const r of resources) assert.ok((await c.client.readResource({ uri: r.uri })).contents[0].text, r.uri);
  assert.ok((await c.client.listResourceTemplates()).resourceTemplates.length >= 4);
  const { prompts } = await c.client.listPrompts();
  assert.ok(prompts.length >= 3);
  const { messages } = await c.client.getPrompt({ name: "capture_kernel", arguments: { kernel: "softmax" } });
  assert.match(messages[0].content.text, /softmax/);
  const { completion } = await c.client.complete({ ref: { type: "ref/prompt", name: "capture_kernel" }, argument: { name: "kernel", value: "soft" } });
  assert.ok(completion.values.includes("softmax"), JSON.stringify(completion));
  assert.equal((await c.call("flyprof_doctor", {})).data.verdict, "ready");

  const started = await c.call("flyprof_capture", { ...capture, wait_s: 0 });
  assert.ok(goingOn(started), JSON.stringify(started));
  const run = started.data.run_id;
  const updates = events();
  const unsubscribe = await c.subscribe(`flyprof://runs/${run}`, updates.tell);

  // The same capture again joins the run. It waits, and hears of its progress, while all else goes on.
  const progress = events();
  const joined = c.call("flyprof_capture", { ...capture, wait_s: 45 }, { onprogress: progress.tell, resetTimeoutOnProgress: true });

  // 200 calls at once: each gets its own answer.
  const waits = new AbortController();
  const waiting = c.call("flyprof_capture_status", { run_id: run, wait_s: 45 }, { signal: waits.signal }).then(
    (e) => `answered: ${JSON.stringify(e)}`,
    String,
  );
  const sizes = Array.from({ length: 200 }, (_, i) => 64 * (i + 1));
  const answers = await Promise.all(sizes.map((m) => c.call("flyprof_tile", { kernel: "softmax", shape: `${m},8192` })));
  answers.forEach((a, i) => assert.equal(a.data.problem.dims.find((d) => d.name === "M").value, sizes[i]));

  // A call that is cancelled stops waiting, and the run goes on. The same holds of calls that are cancelled before the server can have begun them.
  waits.abort("enough");
  assert.match(await waiting, /^(?!answered).*(abort|enough)/i);
  for (let i = 0; i < 20; i++) {
    const soon = new AbortController();
    const call = c.call("flyprof_capture_status", { run_id: run, wait_s: 45 }, { signal: soon.signal });
    soon.abort("at once");
    await assert.rejects(call);
  }

  const done = await joined;
  assert.ok(done.ok && done.data.run_id === run && done.data.state === "done", JSON.stringify(done));
  const steps = progress.all.map((p) => p.progress);
  assert.ok(steps.length > 1 && steps.every((p, i) => i === 0 || p > steps[i - 1]), `progress: ${steps}`);
  assert.ok(progress.all.every((p) => p.message && p.total > 0));
  await updates.until((all) => all.includes(`flyprof://runs/${run}`), "an update of the run");
  await unsubscribe();
  const read = await c.client.readResource({ uri: `flyprof://runs/${run}` });
  assert.deepEqual(JSON.parse(read.contents[0].text), done);
  assert.equal(progress.all.length, steps.length);

  // flyprof_capture_cancel does stop a run.
  const second = await c.call("flyprof_capture", { ...capture, shape: "4096,8192", wait_s: 0 });
  const cancelled = await c.call("flyprof_capture_cancel", { run_id: second.data.run_id });
  assert.equal(cancelled.data.state, "cancelled", JSON.stringify(cancelled));
  const refused = await c.call("flyprof_capture_status", { run_id: second.data.run_id });
  assert.equal(refused.error.code, "CANCELLED");
  await c.close();
  assert.deepEqual(c.errors, []);
}

const stateOf = async (runs, run) => JSON.parse(await readFile(path.join(runs, run, "run.json"), "utf8")).state;

async function until(holds, what) {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `waited in vain: ${what}`);
    await sleep(100);
  }
}

// processesOf are the processes whose command line or environment has the runs directory.
async function processesOf(runs) {
  const found = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    try {
      const all = (await readFile(`/proc/${pid}/cmdline`, "latin1")) + "\0" + (await readFile(`/proc/${pid}/environ`, "latin1"));
      if (all.includes(runs)) found.push(`${pid} ${all.split("\0").slice(0, 4).join(" ")}`);
    } catch {
      // it ended meanwhile
    }
  }
  return found;
}

// vanish starts a client in a process of its own, which waits for a capture, and kills it. It gives the capture's run.
async function vanish(kind, transport, ...where) {
  const child = spawn(process.execPath, [fileURLToPath(new URL("vanish.mjs", import.meta.url)), kind, transport, ...where], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let said = "";
  for await (const part of child.stdout) {
    said += part;
    if (said.includes("\n")) break;
  }
  assert.match(said, /^\S+\n$/, "the client that is to vanish did not come to wait");
  child.kill("SIGKILL");
  await ended;
  return said.trim();
}

async function overStdio(kind) {
  const runs = path.join(scratch, `runs-stdio-${kind}`);
  await together(await connect(kind, { program, runs, more: ["--fault", "slow=6"] }));
  await until(async () => (await processesOf(runs)).length === 0, "the server to end after its client");
  const run = await vanish(kind, "stdio", program, `${runs}-vanish`);
  await until(async () => (await stateOf(`${runs}-vanish`, run)) === "cancelled", "the run of a client that vanished to be cancelled");
  await until(async () => (await processesOf(`${runs}-vanish`)).length === 0, "the processes of a client that vanished to end");
}

async function overHTTP(kind) {
  const runs = path.join(scratch, `runs-http-${kind}`);
  const server = await startProduction(program, runs, "--fault", "slow=6");
  try {
    await together(await connect(kind, { url: server.url }));
    const run = await vanish(kind, "http", server.url);
    const other = await connect(kind, { url: server.url });
    let e;
    do e = await other.call("flyprof_capture_status", { run_id: run, wait_s: 20 });
    while (goingOn(e));
    assert.equal(e.data?.state, "done", JSON.stringify(e));
    await other.close();
  } finally {
    assert.equal(await server.stop(), 0, server.log());
  }
  await until(async () => (await processesOf(runs)).length === 0, "the processes of the server to end");
}

const named = (what, work) =>
  work().then(
    () => console.log(`${what}: ok`),
    (err) => {
      throw new Error(`${what}: ${String(err.stack).slice(0, 3000)}`);
    },
  );
const results = await Promise.allSettled(
  Object.keys(kinds).flatMap((kind) => [named(`${kind} over stdio`, () => overStdio(kind)), named(`${kind} over HTTP`, () => overHTTP(kind))]),
);
for (const r of results) if (r.status === "rejected") console.error(r.reason.message);
process.exit(results.some((r) => r.status === "rejected") ? 1 : 0);
