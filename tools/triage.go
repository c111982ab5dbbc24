package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/triage"
)

const triageText = `Explain a failed or empty capture from exactly one source: run_id (a run of this server), path (a ui_output directory or a folder with traces, on this host), envelope or log_text (pasted), or a bare code such as EMPTY_ATT. Add kernel and shape where known: only then can next actions be complete calls.

Needs no GPU, no ROCm and no worktree. data.causes come with their evidence, the likeliest first; data.directory says what lies in the folder.`

func triageTool(d Deps) Tool {
	return New(Def{
		Title: "Explain a failure", Description: triageText, Toolset: ToolsetCapture, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Triage) (envelope.Reply[triage.Data], error) {
		return d.Triage.Triage(ctx, in)
	})
}
