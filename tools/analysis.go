package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Origin says which trace was looked at. Every analysis has it.
type Origin struct {
	RunID string `json:"run_id,omitempty"`
	Tag   string `json:"tag,omitempty"`
	Shape string `json:"shape,omitempty"`
	// Workgroups are of the whole grid of the traced launch.
	Workgroups int64  `json:"workgroups,omitempty"`
	Product    string `json:"product,omitempty"`
	Simulated  bool   `json:"simulated,omitempty" jsonschema_description:"Every figure is invented."`
}

func originOf(t artifact.Trace) Origin {
	return Origin{RunID: t.RunID, Tag: t.Tag, Shape: t.Shape, Workgroups: t.Workgroups, Product: t.Product, Simulated: t.Simulated}
}

// openTrace finds a trace and reads it for analysis. The warnings are those of the trace, and what else was there to choose.
func openTrace(ctx context.Context, d Deps, runID, path, tag string) (*analyze.Trace, artifact.Trace, []envelope.Warning, error) {
	found, err := d.Traces.Find(ctx, runID, path, tag)
	if err != nil {
		return nil, found, nil, err
	}
	t, err := analyze.Open(ctx, found.Dir, analyze.Options{Kernel: found.Kernel, Arch: found.Arch})
	if err != nil {
		return nil, found, nil, err
	}
	warnings := t.Warnings()
	if len(found.Others) > 0 {
		warnings = append(warnings, envelope.Warning{Code: "OTHER_TRACES", Message: fmt.Sprintf("the folder holds %d further traces (%s); the one with most waves was taken: name a directory to take another", len(found.Others), strings.Join(found.Others[:min(len(found.Others), 4)], ", "))})
	}
	if found.Simulated {
		warnings = append(warnings, envelope.Warning{Code: "SIMULATED", Message: "the trace is of the simulated GPU: every figure is invented"})
	}
	return t, found, warnings, nil
}
