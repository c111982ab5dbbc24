package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

const diffText = `Say what a change did to a kernel: two traces compared in cycles - a wave's duration, stall by reason, source lines, instruction classes - with a verdict (faster, slower, same, unknown) and its basis.

before and after are run ids or paths. Like is compared with like: kernel, shape, architecture, grid and waves are checked, and what differs or is not known is said. A share that fell says nothing when the cycles grew; cycles come first.`

// DiffData is what changed.
type DiffData struct {
	BeforeOrigin Origin `json:"before_origin"`
	AfterOrigin  Origin `json:"after_origin"`
	analyze.Diff
}

func diffTool(d Deps) Tool {
	return New(Def{
		Title: "Compare two traces", Description: diffText, Toolset: ToolsetAnalyze, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Diff) (envelope.Reply[DiffData], error) {
		var sides [2]analyze.Side
		var origins [2]Origin
		var out envelope.Reply[DiffData]
		for i, name := range []string{in.Before, in.After} {
			runID, path := "", name
			if runs.ValidID(name) {
				runID, path = name, ""
			}
			t, found, warnings, err := openTrace(ctx, d, runID, path, in.Tag)
			if err != nil {
				return out, err
			}
			for _, w := range warnings {
				w.Message = [2]string{"before: ", "after: "}[i] + w.Message
				out.Warnings = append(out.Warnings, w)
			}
			origins[i] = originOf(found)
			sides[i] = analyze.Side{Trace: t, RecipeKernel: found.RecipeKernel, Shape: found.Shape, Grid: found.Workgroups, AvgNS: found.AvgNS, Simulated: found.Simulated}
		}
		out.Data = &DiffData{origins[0], origins[1], analyze.Compare(sides[0], sides[1])}
		return out, nil
	})
}
