package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/analyze/rules"
	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

const reportText = `Give ranked advice on a FlyDSL kernel from its trace, and its counters where there are some: what bounds it and by which figure, findings with evidence down to instruction and source line, the rules that passed, and those that could not be applied with what they lack. Says so when the kernel is at a limit.

One bound is used throughout. For a run that has ended the same is kept beside its files as REPORT.md and report.json.`

// ReportData is the advice.
type ReportData struct {
	Origin
	Trace analyze.Info `json:"trace"`
	rules.Report
	// Files are the resources that hold the report; absent for a directory that is no run's.
	Files []string `json:"files,omitempty" jsonschema_description:"Resources that hold the report."`
}

func reportTool(d Deps) Tool {
	return New(Def{
		Title: "Advise on a trace", Description: reportText, Toolset: ToolsetAnalyze, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Report) (envelope.Reply[ReportData], error) {
		var out envelope.Reply[ReportData]
		t, found, warnings, err := openTrace(ctx, d, in.RunID, in.Path, in.Tag)
		if err != nil {
			return out, err
		}
		input := rules.Input{Trace: t, Workgroups: found.Workgroups, MaxWaves: found.MaxWaves, Limiter: found.Limiter}
		if gpu, ok := soc.For(found.Arch, found.Product); ok {
			input.CUs = int64(gpu.CUs)
		}
		if len(found.Counters) > 0 && found.Tag != "small" { // they were collected for the big one
			c, more, err := readCounters(ctx, found)
			if err != nil {
				more = append(more, envelope.Warning{Code: "NO_COUNTERS", Message: "the counters could not be used: " + envelope.As(err).Message})
			} else {
				input.Counters = &c
			}
			warnings = append(warnings, more...)
		}
		report, err := rules.Apply(ctx, input)
		if err != nil {
			return out, err
		}
		data := ReportData{Origin: originOf(found), Trace: t.Info(), Report: report}
		if found.RunID != "" {
			warnings = append(warnings, d.keepReport(found, &data, warnings)...)
		}
		out = envelope.Reply[ReportData]{Bundle: found.RunID, Data: &data, Warnings: warnings}
		if len(report.Findings) > 0 && len(report.Findings[0].Where) > 0 && report.Findings[0].Where[0].Place != "" {
			out.Actions = append(out.Actions, envelope.Action{
				Kind: envelope.CallTool, Args: request.Map{RunID: in.RunID, Path: in.Path, Tag: in.Tag, SourceLine: report.Findings[0].Where[0].Place}, Reason: "the instructions of the place that the first finding is about", Confidence: envelope.Medium,
			})
		}
		return out, nil
	})
}

func readCounters(ctx context.Context, found artifact.Trace) (analyze.Counters, []envelope.Warning, error) {
	files, warnings, err := analyze.ReadCounterFiles(ctx, found.Counters)
	if err != nil {
		return analyze.Counters{}, warnings, err
	}
	c, more, err := countersOf(files, found.Kernel, found)
	return c, append(warnings, more...), err
}

// keepReport writes the report into the run that it is about, if that has ended; nowhere else. Failing is a warning.
func (d Deps) keepReport(found artifact.Trace, data *ReportData, warnings []envelope.Warning) []envelope.Warning {
	store := d.Traces.Store
	r, err := store.Load(found.RunID)
	if err != nil || !r.State.Ended() || d.ReadOnly {
		return nil
	}
	err = store.WriteJSON(found.RunID, "report.json", data)
	if err == nil {
		err = store.WriteText(found.RunID, "REPORT.md", reportMarkdown(*data, warnings))
	}
	if err != nil {
		return []envelope.Warning{{Code: "REPORT_NOT_KEPT", Message: "the report could not be kept with the run: " + envelope.As(err).Message}}
	}
	data.Files = []string{"flyprof://files/" + found.RunID + "/REPORT.md", "flyprof://files/" + found.RunID + "/report.json"}
	return nil
}

// reportMarkdown is the report for people. Texts of the trace stand in code spans.
func reportMarkdown(r ReportData, warnings []envelope.Warning) string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	code := func(text string) string {
		return "`" + strings.NewReplacer("`", "'", "\n", " ", "\r", " ").Replace(text) + "`"
	}
	say("# Report on %s\n", code(r.Trace.Kernel))
	if r.Simulated {
		say("**SIMULATED: every figure is invented.**\n")
	}
	say("Run %s, trace %s %s, shape %s, %d workgroups, %d traced waves.\n", code(r.RunID), r.Tag, code(r.Trace.Path), code(r.Shape), r.Workgroups, r.Trace.Waves)
	say("## Bound: %s\n\n%s\n", r.Bound.Kind, r.Bound.Basis)
	if r.Optimal {
		say("Already optimal: %s\n", r.Basis)
	} else {
		say("Not optimal: %s\n", r.Basis)
	}
	say("## Findings\n")
	for i, f := range r.Findings {
		say("%d. **%s** (%s; %.1f %s, threshold %.1f). %s\n   %s\n   Source of the rule: %s", i+1, f.Title, f.Severity, f.Value, f.Unit, f.Threshold, f.Evidence, f.Advice, f.Source)
		for _, w := range f.Where {
			say("   - %s at %s, stall %d cycles", code(w.ISA), code(w.Place), w.Stall)
		}
	}
	if len(r.Findings) == 0 {
		say("None.")
	}
	say("\n## Rules\n\nPassed: %s.\n", strings.Join(r.Passed, ", "))
	for _, n := range r.NotApplied {
		say("- not applied: %s: %s", n.Rule, n.Why)
	}
	if len(warnings) > 0 {
		say("\n## Warnings\n")
	}
	for _, w := range warnings {
		say("- %s: %s", w.Code, strings.ReplaceAll(w.Message, "\n", " "))
	}
	return b.String()
}
