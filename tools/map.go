package tools

import (
	"context"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

const mapText = `Say which instructions a source line became, and which source line an instruction is from: ISA with hitcount, latency, stall and idle beside file:line, inline chains, and the source around it where the trace kept a copy.

Filters may be combined: source_line (a path, its last elements, a line, a range), code_line, address, class. Without one, all instructions in the order of the code, a page at a time.`

// MapData is instructions beside source lines.
type MapData struct {
	Origin
	analyze.Map
}

func mapTool(d Deps) Tool {
	return New(Def{
		Title: "Map instructions to source lines", Description: mapText, Toolset: ToolsetAnalyze, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Map) (envelope.Reply[MapData], error) {
		t, found, warnings, err := openTrace(ctx, d, in.RunID, in.Path, in.Tag)
		if err != nil {
			return envelope.Reply[MapData]{}, err
		}
		m, err := t.Map(ctx, analyze.MapQuery{CodeLine: in.CodeLine, SourceLine: in.SourceLine, Address: in.Address, Class: in.Class, Limit: in.Limit, Offset: in.Offset})
		if err != nil {
			return envelope.Reply[MapData]{}, err
		}
		out := envelope.Reply[MapData]{Bundle: found.RunID, Data: &MapData{originOf(found), m}, Warnings: warnings}
		next := in
		if next.Offset += len(m.Instructions); len(m.Instructions) > 0 && next.Offset < m.Total {
			out.Actions = append(out.Actions, envelope.Action{Kind: envelope.CallTool, Args: next, Reason: "the instructions that follow", Confidence: envelope.Low})
		}
		return out, nil
	})
}
