// A client that waits for a capture when it is killed. It says which run it is.
// Usage: node vanish.mjs <kind> stdio <flyprof-mcp> <runs directory> | <kind> http <url>
import { connect } from "./connect.mjs";

const [kind, transport, where, runs] = process.argv.slice(2);
const c = await connect(kind, transport === "stdio" ? { program: where, runs, more: ["--fault", "slow=6"] } : { url: where });
const { data } = await c.call("flyprof_capture", { kernel: "softmax", shape: "2048,8192", wait_s: 0 });
const waiting = c.call("flyprof_capture_status", { run_id: data.run_id, wait_s: 45 });
await c.call("flyprof_doctor", {}); // the call before it has arrived
console.log(data.run_id);
await waiting;
