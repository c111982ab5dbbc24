package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const captureText = `Capture an instruction-level trace (ATT) of one FlyDSL kernel with rocprofv3: finds the kernel among the test's launches, traces one launch, judges the result.

Call flyprof_doctor first (verdict must be "ready"), then flyprof_list for the kernel's name. A capture takes about a minute: this call waits wait_s (default 45 s) and then answers data.state "running" with run_id; go on with flyprof_capture_status. Calling again with the same arguments joins the run that goes on.

A good capture has data.checks all passed: data.tags.big.kept_dir set, mapped_pct above 90, match_confidence exact or fuzzy. After an error do what error.next_actions says: each call in it can be sent as it stands. Never reuse a dispatch number of another run.`

func captureTool(d Deps) Tool {
	return New(Def{
		Title: "Capture a kernel trace", Description: captureText, Toolset: ToolsetCapture,
	}, func(ctx context.Context, in request.Capture) (envelope.Reply[capture.Data], error) {
		return d.Runs.Capture(ctx, in, d.progress(ctx))
	})
}

// progress is nil where nobody wants to be told.
func (d Deps) progress(ctx context.Context) capture.Progress {
	if d.Progress == nil {
		return nil
	}
	return d.Progress(ctx)
}
