// The clients of both SDKs behind one face.
import assert from "node:assert/strict";
import { Client as Current, StreamableHTTPClientTransport as CurrentHTTP } from "@modelcontextprotocol/client";
import { StdioClientTransport as CurrentStdio } from "@modelcontextprotocol/client/stdio";
import { Client as Old } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHTTP } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { token } from "./servers.mjs";

const me = { name: "flyprof-ci", version: "1" };

// kinds are the clients: how one is made, and which era it must end up in.
export const kinds = {
  sdk1: { old: true, make: () => new Old(me), version: "2025-11-25" },
  "sdk2-legacy": { make: () => new Current(me), version: "2025-11-25" },
  "sdk2-modern": { make: () => new Current(me, { versionNegotiation: { mode: "auto" } }), version: "2026-07-28" },
};

// connect gives a client of a program that it starts on a runs directory, or of the server at a URL.
export async function connect(kind, { program, runs, more = [], url }) {
  const { old, make, version } = kinds[kind];
  const client = make();
  const errors = [];
  client.onerror = (err) => errors.push(String(err).slice(0, 300));
  const params = { command: program, args: ["serve", "--simulate", "--runs-dir", runs, "--log-level", "warn", ...more], stderr: "ignore" };
  const headers = { Authorization: `Bearer ${token}` };
  const transport = url
    ? new (old ? OldHTTP : CurrentHTTP)(new URL(url), { requestInit: { headers } })
    : new (old ? OldStdio : CurrentStdio)(params);
  await client.connect(transport);
  if (!old) assert.equal(client.getNegotiatedProtocolVersion(), version);
  else if (url) assert.equal(transport.protocolVersion, version); // over stdio the old SDK does not keep it
  assert.equal(client.getServerVersion().name, "flyprof-mcp");

  const modern = version >= "2026-07-28";
  return {
    client,
    errors,
    listTools: () => client.listTools(),
    // call gives the envelope, and holds text against structuredContent and isError against ok.
    async call(name, args, options) {
      const what = { name, arguments: args };
      const limits = { timeout: 120_000, ...options };
      const r = await (old ? client.callTool(what, undefined, limits) : client.callTool(what, limits));
      assert.deepEqual(JSON.parse(r.content[0].text), r.structuredContent);
      assert.equal(r.structuredContent.ok, !r.isError);
      return r.structuredContent;
    },
    // subscribe calls back with the URI at each change of a resource, and gives what ends that.
    async subscribe(uri, updated) {
      const heard = (n) => updated(n.params.uri);
      client.setNotificationHandler(old ? ResourceUpdatedNotificationSchema : "notifications/resources/updated", heard);
      if (modern) {
        const subscription = await client.listen({ resourceSubscriptions: [uri] });
        assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
        return () => subscription.close();
      }
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    async close() {
      if (url && !modern) await transport.terminateSession();
      await client.close();
    },
  };
}
