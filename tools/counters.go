package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

const countersText = `Say what the performance counters of a kernel show: the values, metrics with their formulas (L2 hit rate, MFMA share, LDS conflicts, waiting, occupancy, memory traffic where it can be normalised) and what bounds the kernel with the basis of that.

From a run captured with_pmc, or a directory with counter_collection.csv files of any generation. What was not counted has no value and says which counters are missing; counters that cannot be 0 and are get flagged.`

// CountersData is what the counters show.
type CountersData struct {
	Origin
	analyze.Counters
}

func countersTool(d Deps) Tool {
	return New(Def{
		Title: "Read the performance counters", Description: countersText, Toolset: ToolsetAnalyze, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Counters) (envelope.Reply[CountersData], error) {
		found, err := d.Traces.FindCounters(ctx, in.RunID, in.Path, in.Tag)
		if err != nil {
			return envelope.Reply[CountersData]{}, err
		}
		files, warnings, err := analyze.ReadCounterFiles(ctx, found.Counters)
		if envelope.CodeOf(err) == envelope.NoArtifact && found.Kernel != "" {
			err = envelope.Build(envelope.NoArtifact, envelope.Facts{
				Message: "the run has no performance counters", RunID: found.RunID, Evidence: envelope.Evidence{Needed: "a capture with with_pmc"},
				Suggestions: []envelope.Action{{Kind: envelope.CallTool, Args: request.Capture{Kernel: found.Kernel, Shape: found.Shape, WithPMC: true}, Reason: "captures the kernel with counters", Confidence: envelope.Medium}},
			})
		}
		if err != nil {
			return envelope.Reply[CountersData]{}, err
		}
		kernel := in.Kernel
		if kernel == "" {
			kernel = found.Kernel
		}
		c, more, err := countersOf(files, kernel, found)
		if err != nil {
			return envelope.Reply[CountersData]{}, err
		}
		return envelope.Reply[CountersData]{Bundle: found.RunID, Data: &CountersData{originOf(found), c}, Warnings: append(warnings, more...)}, nil
	})
}

// countersOf takes the counters of the traced launch: of its grid, or where that is no multiple of the workgroup, of the grid that was
// counted most.
func countersOf(files []analyze.CounterFile, kernel string, found artifact.Trace) (analyze.Counters, []envelope.Warning, error) {
	gpu, _ := soc.For(found.Arch, found.Product)
	opt := analyze.CounterOptions{Kernel: kernel, GridItems: found.Workgroups * found.WorkgroupSize, Arch: found.Arch, SoC: gpu}
	c, warnings, err := analyze.CountersOf(files, opt)
	if opt.GridItems > 0 && envelope.CodeOf(err) == envelope.NoArtifact {
		opt.GridItems = 0
		c, warnings, err = analyze.CountersOf(files, opt)
	}
	return c, warnings, err
}
