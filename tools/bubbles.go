package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const bubblesText = `Say where the traced waves stalled and for what: stall by reason (a wait's counter, or the class that could not issue), the hottest instructions with what they wait on and their source line, source lines, instruction mix, spread between waves, occupancy over time.

From a run (run_id) or any directory with a trace (path). Cycles are of the shader clock, summed over the traced waves: one CU of each traced shader engine.`

// BubblesData is where a trace stalls.
type BubblesData struct {
	Origin
	analyze.Bubbles
}

func bubblesTool(d Deps) Tool {
	return New(Def{
		Title: "Find the stalls of a trace", Description: bubblesText, Toolset: ToolsetAnalyze, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Bubbles) (envelope.Reply[BubblesData], error) {
		t, found, warnings, err := openTrace(ctx, d, in.RunID, in.Path, in.Tag)
		if err != nil {
			return envelope.Reply[BubblesData]{}, err
		}
		b, err := t.Bubbles(ctx, analyze.BubblesQuery{Limit: in.Limit, Offset: in.Offset, CodeLine: in.CodeLine})
		if err != nil {
			return envelope.Reply[BubblesData]{}, err
		}
		out := envelope.Reply[BubblesData]{Bundle: found.RunID, Data: &BubblesData{originOf(found), b}, Warnings: warnings}
		next := in
		if next.Limit == 0 {
			next.Limit = analyze.DefaultLimit
		}
		if next.Offset += next.Limit; in.CodeLine == nil && next.Offset < max(b.HotTotal, b.LinesTotal) {
			out.Actions = append(out.Actions, envelope.Action{Kind: envelope.CallTool, Args: next, Reason: "the instructions and lines that follow in the ranking", Confidence: envelope.Low})
		}
		if len(b.Hot) > 0 && b.Hot[0].Place != "" && in.CodeLine == nil {
			out.Actions = append([]envelope.Action{{
				Kind: envelope.CallTool, Args: request.Map{RunID: in.RunID, Path: in.Path, Tag: in.Tag, SourceLine: b.Hot[0].Place}, Reason: "all instructions of the source line that stalls most, with the source around it", Confidence: envelope.Medium,
			}}, out.Actions...)
		}
		return out, nil
	})
}
