package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/doctor"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/triage"
	"github.com/flyprof/flyprof-mcp/resources"
)

// Deps is what the tools work on. Every field is safe for concurrent use.
type Deps struct {
	// Runs starts, watches and stops captures.
	Runs *capture.Service
	// Worktrees reads checkouts by the settings in force.
	Worktrees capture.Preparer
	// Doctor checks the host.
	Doctor func(ctx context.Context, in request.Doctor) (envelope.Reply[doctor.Data], error)
	// Triage explains failures.
	Triage triage.Service
	// ReadOnly: nothing is written, not even into runs of our own.
	ReadOnly bool
	// Traces finds the trace of a run or a directory.
	Traces artifact.Finder
	// Texts and files to read.
	Resources *resources.Source
	// Progress gives the function that tells the caller in ctx how far a long call is; nil where nobody is told.
	Progress func(ctx context.Context) capture.Progress
	// Arch is the architecture of the GPU at hand where it is known without asking (a simulated one), else empty.
	Arch string
}

// All makes every tool. Which of them are served is a matter of Inventory.Filter.
func All(d Deps) Inventory {
	return Inventory{
		doctorTool(d), listTool(d), tileTool(d),
		captureTool(d), statusTool(d), cancelTool(d),
		triageTool(d), readTool(d),
		bubblesTool(d), mapTool(d), countersTool(d), diffTool(d), reportTool(d),
	}
}
