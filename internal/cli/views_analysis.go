package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/tools"
)

func (s *sheet) origin(o tools.Origin, t analyze.Info) {
	title := t.Kernel
	if o.RunID != "" {
		title += ", run " + o.RunID
	}
	if o.Tag != "" {
		title += ", tag " + o.Tag
	}
	s.linef("%s: %d waves, %d instructions, %s", title, t.WavesRead, t.Ins, t.Path)
	s.simulated(o.Simulated)
}

func bubblesView(s *sheet, d tools.BubblesData) {
	s.origin(d.Origin, d.Trace)
	s.linef("cycles: stall %d (%s %%), issue %d (%s %%), idle %d (%s %%)", d.Totals.Stall, percent(d.Totals.StallPct), d.Totals.Issue, percent(d.Totals.IssuePct), d.Totals.Idle, percent(d.Totals.IdlePct))
	var rows [][]string
	for _, k := range d.Stalls {
		var on []string
		for _, c := range k.On {
			class := string(c.Class)
			if class == "" {
				class = "unknown"
			}
			on = append(on, fmt.Sprintf("%s %d", class, c.Stall))
		}
		rows = append(rows, []string{k.Kind, figure(k.Stall), percent(k.StallPct), strings.Join(on, ", ")})
	}
	s.rows([]string{"WAITS_FOR", "STALL", "PCT", "ON"}, rows)
	s.instructions(d.Hot)
	s.lines(d.Lines)
}

func mapView(s *sheet, d tools.MapData) {
	s.origin(d.Origin, d.Trace)
	s.linef("%d instructions fit: stall %d (%s %%)", d.Total, d.Totals.Stall, percent(d.StallPct))
	s.instructions(d.Instructions)
	s.lines(d.Lines)
}

func (s *sheet) instructions(list []analyze.Instruction) {
	var rows [][]string
	for _, i := range list {
		rows = append(rows, []string{figure(i.CodeLine), i.ISA, string(i.Class), figure(i.Hit), figure(i.Latency), figure(i.Stall), percent(i.StallPct), figure(i.Idle), i.Place})
	}
	s.rows([]string{"LINE", "ISA", "CLASS", "HITCOUNT", "LATENCY", "STALL", "PCT", "IDLE", "PLACE"}, rows)
}

func (s *sheet) lines(list []analyze.LineSums) {
	var rows [][]string
	for _, l := range list {
		rows = append(rows, []string{fmt.Sprintf("%s:%d", l.File, l.Line), figure(l.Ins), figure(l.Stall), percent(l.StallPct), l.TopKind, strings.TrimSpace(l.Text)})
	}
	s.rows([]string{"SOURCE", "INS", "STALL", "PCT", "WAITS_FOR", "TEXT"}, rows)
}

func countersView(s *sheet, d tools.CountersData) {
	s.linef("%s: %d dispatches counted", d.Kernel, d.Dispatches)
	s.simulated(d.Simulated)
	s.linef("bound: %s; %s", d.Bound.Kind, d.Bound.Basis)
	var rows [][]string
	for _, m := range d.Metrics {
		value, why := "", m.Why
		if m.Value != nil {
			value = decimal(*m.Value)
		}
		if len(m.Missing) > 0 {
			why = strings.TrimSpace("needs " + strings.Join(m.Missing, " ") + " " + why)
		}
		rows = append(rows, []string{m.ID, value, m.Unit, m.Says, why})
	}
	s.rows([]string{"METRIC", "VALUE", "UNIT", "SAYS", "WHY_NOT"}, rows)
	rows = nil
	for _, v := range d.Values {
		rows = append(rows, []string{v.Name, decimal(v.Value), count(v.Dispatches), map[bool]string{true: "suspect"}[v.Suspect]})
	}
	s.rows([]string{"COUNTER", "VALUE", "DISPATCHES", ""}, rows)
}

func diffView(s *sheet, d tools.DiffData) {
	s.linef("%s: %s", d.Verdict, d.Basis)
	s.simulated(d.BeforeOrigin.Simulated || d.AfterOrigin.Simulated)
	var rows [][]string
	for _, x := range d.Differences {
		rows = append(rows, []string{x.What, x.Before, x.After, map[bool]string{true: "figures cannot be compared"}[x.Matters]})
	}
	s.rows([]string{"DIFFERENT", "BEFORE", "AFTER", ""}, rows)
	rows = nil
	for _, c := range []struct {
		name   string
		change *analyze.Change
	}{{"wave_duration", d.Duration}, {"waves", &d.Waves}, {"hitcount", &d.Hitcount}, {"latency", &d.Latency}, {"stall", &d.Stall}, {"idle", &d.Idle}, {"peak_waves", d.Peak}} {
		if c.change != nil {
			rows = append(rows, []string{c.name, figure(c.change.Before), figure(c.change.After), figure(c.change.Delta), percent(c.change.Pct)})
		}
	}
	s.rows([]string{"FIGURE", "BEFORE", "AFTER", "DELTA", "PCT"}, rows)
	for _, part := range []struct {
		name string
		list []analyze.NamedChange
	}{{"STALL_BY_REASON", d.Stalls}, {"LATENCY_BY_CLASS", d.Classes}, {"STALL_BY_SOURCE", d.Lines}} {
		rows = nil
		for _, c := range part.list {
			rows = append(rows, []string{c.Name, c.Became, figure(c.Before), figure(c.After), figure(c.Delta), percent(c.Pct)})
		}
		s.rows([]string{part.name, "BECAME", "BEFORE", "AFTER", "DELTA", "PCT"}, rows)
	}
}

func reportView(s *sheet, d tools.ReportData) {
	s.simulated(d.Simulated)
	s.linef("bound: %s: %s", d.Bound.Kind, d.Bound.Basis)
	s.linef("optimal: %v: %s", d.Optimal, d.Basis)
	var rows, where [][]string
	for _, f := range d.Findings {
		rows = append(rows, []string{f.Severity, f.Title, strconv.FormatFloat(f.Value, 'f', 1, 64) + " " + f.Unit, f.Advice})
		for _, w := range f.Where {
			where = append(where, []string{f.Rule, w.ISA, w.Place, figure(w.Stall)})
		}
	}
	s.rows([]string{"SEVERITY", "FINDING", "VALUE", "ADVICE"}, rows)
	s.rows([]string{"RULE", "INSTRUCTION", "SOURCE", "STALL"}, where)
	rows = nil
	for _, n := range d.NotApplied {
		rows = append(rows, []string{n.Rule, n.Why})
	}
	s.rows([]string{"NOT_APPLIED", "WHY"}, rows)
}

// figure writes a number, 0 too.
func figure[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// percent writes a share; nothing where it is not known.
func percent(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}
