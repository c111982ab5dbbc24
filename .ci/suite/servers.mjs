// Starts the servers that the suites talk to over HTTP.
import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";

// start runs a program until it says at which URL it serves. stop() ends it and gives its exit code.
export async function start(command, args, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  process.on("exit", () => child.kill("SIGKILL")); // none outlives a suite that failed
  let said = "";
  const url = await new Promise((resolve, reject) => {
    const hear = (part) => {
      said += part;
      const at = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said);
      if (at) resolve(at[0]);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${command} ended with ${code} before it served: ${said}`)));
  });
  return {
    url,
    pid: child.pid,
    log: () => said,
    async stop() {
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
  };
}

export const token = "a-token-of-the-suites-0123456789";

// startProduction runs `serve --http` of the program on the simulated GPU. More arguments follow.
export const startProduction = (command, runs, ...more) =>
  start(command, ["serve", "--simulate", "--runs-dir", runs, "--http", "127.0.0.1:0", ...more], { FLYPROF_HTTP_TOKEN: token });

// withToken is a proxy for clients that cannot send a token: it adds one, and leaves all else, Host and Origin too, as it is.
export async function withToken(url) {
  const to = new URL(url);
  const proxy = http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const onward = http.request({ host: to.hostname, port: to.port, path: request.url, method: request.method, headers }, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `http://127.0.0.1:${proxy.address().port}/mcp`,
    stop() {
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}
