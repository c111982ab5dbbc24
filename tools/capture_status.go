package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const statusText = `Look at a capture by run_id, or wait for it: answers as soon as the run has ended, at the latest after wait_s (default 45 s; 0 looks once).

An ended run answers exactly the envelope that flyprof_capture would have given, failures included. While it runs: data.state, phase, elapsed_s, estimate_s and the last log lines. Runs live on disk: any client may ask, also after the server was restarted.`

func statusTool(d Deps) Tool {
	return New(Def{
		Title: "Wait for a capture", Description: statusText, Toolset: ToolsetCapture, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Status) (envelope.Reply[capture.Data], error) {
		return d.Runs.Status(ctx, in, d.progress(ctx))
	})
}
