package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const cancelText = `Stop a capture and its whole process tree: SIGTERM first, so that rocprofv3 writes what it has, then SIGKILL after the grace. Answers when the run has ended. What was captured until then stays readable.

Cancelling the tool call itself stops only the waiting; this stops the run.`

func cancelTool(d Deps) Tool {
	return New(Def{
		Title: "Stop a capture", Description: cancelText, Toolset: ToolsetCapture, Destructive: true, Idempotent: true,
	}, func(ctx context.Context, in request.Cancel) (envelope.Reply[capture.Data], error) {
		return d.Runs.Cancel(ctx, in)
	})
}
