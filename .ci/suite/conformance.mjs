// Runs the MCP conformance suite and holds its results against baseline.json, check by check: what fails or warns must be there with a
// reason, and what is there must fail.
// Usage: node conformance.mjs <conformance program> <flyprof-mcp> <scratch directory>
//
// A requirement set runs in full against the production wiring with the suite's fixtures. The scenarios that need no fixture run once more
// against the program itself, and so do those of the skills extension, which no set has.
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import YAML from "yaml";
import { start, startProduction, withToken } from "./servers.mjs";

const [fixtures, program, scratch] = process.argv.slice(2);
const suite = path.dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json"));

const revisions = ["2025-11-25", "2026-07-28"];
const needNoFixture = {
  "2025-11-25": [
    "server-initialize", "server-session-lifecycle", "server-sse-multiple-streams", "ping", "tools-list",
    "resources-list", "prompts-list", "dns-rebinding-protection",
  ],
  "2026-07-28": [
    "server-stateless", "server-sse-multiple-streams", "tools-list", "resources-list", "prompts-list",
    "dns-rebinding-protection", "caching", "sep-2164-resource-not-found", "http-header-validation", "input-required-result-unsupported-methods",
  ],
};
const skills = ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"];

// suiteRun gives the checks of each scenario. That checks fail is no error here.
async function suiteRun(name, ...args) {
  const out = path.join(scratch, name);
  const said = await new Promise((resolve, reject) =>
    execFile(process.execPath, [path.join(suite, "dist/index.js"), "server", ...args, "-o", out], { maxBuffer: 64 << 20 }, (err, stdout, stderr) =>
      err && err.code !== 1 ? reject(err) : resolve(stdout + stderr),
    ),
  );
  const results = new Map();
  const dirs = await readdir(out).catch(() => {
    throw new Error(`the suite wrote nothing to ${out}: ${said}`);
  });
  for (const dir of dirs) {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(dir)?.[1];
    if (!scenario || results.has(scenario)) throw new Error(`not the result of one scenario: ${dir}`);
    results.set(scenario, JSON.parse(await readFile(path.join(out, dir, "checks.json"), "utf8")));
  }
  return { results, said };
}

const problems = [];
const failing = new Set();
const keyOf = (...parts) => parts.join(" ");
const expected = JSON.parse(await readFile(new URL("baseline.json", import.meta.url), "utf8")).map(({ set, reason, fails }) => {
  if (!(reason?.length > 20)) problems.push(`${set}: what is expected to fail needs a reason: ${JSON.stringify(fails)}`);
  return { set, reason, keys: Object.entries(fails).flatMap(([scenario, checks]) => checks.map((c) => keyOf(set, scenario, c))) };
});
const known = new Set(expected.flatMap((e) => e.keys));

// nothing is the check of a scenario of which nothing was tested.
const nothing = "(nothing tested)";

// judge compares the named scenarios with the baseline, and gives how many pass in full.
function judge(set, { results, said }, scenarios) {
  let passed = 0;
  for (const scenario of scenarios) {
    const checks = results.get(scenario);
    if (!checks) {
      problems.push(`${set} ${scenario} has no result:\n${said}`);
      continue;
    }
    const bad = new Map();
    for (const c of checks) if (c.status === "FAILURE" || c.status === "WARNING") bad.set(c.id, `${c.status}: ${c.errorMessage ?? c.description}`);
    if (bad.size === 0 && !checks.some((c) => c.status === "SUCCESS" && !c.id.startsWith("wire-schema"))) bad.set(nothing, "no check succeeded");
    for (const [id, why] of bad) {
      const key = keyOf(set, scenario, id);
      failing.add(key);
      if (!known.has(key)) problems.push(`${key}: ${why}`);
    }
    if (!checks.some((c) => c.status === "FAILURE") && !bad.has(nothing)) passed++;
  }
  return `${passed} of ${scenarios.length}`;
}

const full = await start(fixtures, ["-http", "127.0.0.1:0", "-runs-dir", path.join(scratch, "runs-fixtures")]);
for (const revision of revisions) {
  const required = YAML.parse(await readFile(path.join(suite, `requirements/${revision}.yaml`), "utf8"));
  const unscored = required.not_scored.filter((e) => e.leg === "server").map((e) => e.scenario);
  const run = await suiteRun(revision, "--url", full.url, "--requirements", revision);
  const score = judge(revision, run, required.server);
  console.log(`${revision}: ${score} required scenarios pass, and ${judge(revision, run, unscored)} that are not scored`);
}
await full.stop();

const real = await startProduction(program, path.join(scratch, "runs-conformance"));
const proxy = await withToken(real.url);
for (const revision of revisions) {
  const set = `${revision} without fixtures`;
  const run = await suiteRun(set.replaceAll(" ", "-"), "--url", proxy.url, "--requirements", revision);
  console.log(`${set}: ${judge(set, run, needNoFixture[revision])} scenarios pass`);
}
for (const scenario of skills) {
  const run = await suiteRun(scenario, "--url", proxy.url, "--scenario", scenario);
  console.log(`${scenario}: ${judge("skills", run, [scenario]) === "1 of 1" ? "passes" : "does not pass"}`);
}
proxy.stop();
const code = await real.stop();
if (code !== 0) problems.push(`flyprof-mcp ended with ${code}:\n${real.log()}`);

for (const { set, reason, keys } of expected) {
  console.log(`${keys.length} checks of ${set} fail as expected: ${reason}`);
  for (const key of keys) if (!failing.has(key)) problems.push(`the baseline has what does not fail: ${key}`);
}
for (const p of problems) console.error(`NOT EXPECTED: ${p}`);
process.exitCode = problems.length > 0 ? 1 : 0;
