package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/doctor"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const doctorText = `Check whether this host can capture: rocprofv3 and its trace decoder, the GPU and the right to open it, the FlyDSL worktree with its build and Python, room for runs.

Call it first. Go on only when data.verdict is "ready"; otherwise stop and show data.blockers with what each failed entry of data.checks says in do. Each check says what was looked at.`

func doctorTool(d Deps) Tool {
	return New(Def{
		Title: "Check the host", Description: doctorText, Toolset: ToolsetCapture, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Doctor) (envelope.Reply[doctor.Data], error) {
		return d.Doctor(ctx, in)
	})
}
