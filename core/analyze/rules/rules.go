// Package rules turns an analysis into advice for FlyDSL kernels. Each rule is a row of one table: what it measures, from which figure on it
// speaks, what it says and where that stands. All rules rest on one bound (analyze.BoundOf); what could not be measured is listed and never
// taken for good.
package rules

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/analyze"
)

// Input is what a report is made of. Trace is needed; Counters and the facts of the run may be missing.
type Input struct {
	Trace    *analyze.Trace
	Counters *analyze.Counters
	// Workgroups of the launch and CUs of the GPU; 0 where not known.
	Workgroups int64
	CUs        int64
	// MaxWaves are the waves that the kernel's registers and LDS allow on a CU, Limiter what allows no more (soc.Occupancy); 0 and "" where not known.
	MaxWaves int64
	Limiter  string
}

// Report is the advice.
type Report struct {
	Bound analyze.Bound `json:"bound"`
	// Optimal says that the kernel is at a limit of the hardware or loses next to nothing, and no rule found anything. Basis says why or why not.
	Optimal bool   `json:"optimal"`
	Basis   string `json:"optimal_basis"`
	// Findings are what the rules found, the largest first.
	Findings []Finding `json:"findings"`
	// Passed are the rules that measured and found nothing; NotApplied those that lack a figure, or do not matter under the bound.
	Passed     []string     `json:"passed"`
	NotApplied []NotApplied `json:"not_applied"`
}

// Finding is what one rule found.
type Finding struct {
	Rule  string `json:"rule"`
	Title string `json:"title"`
	// Severity is high from 25 % of the waves' time (or where the rule says so), medium from 10 %, else low.
	Severity string `json:"severity" jsonschema:"enum=high,enum=medium,enum=low"`
	// Value is the figure in Unit, Threshold from where on the rule speaks.
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Threshold float64 `json:"threshold"`
	Evidence  string  `json:"evidence"`
	Advice    string  `json:"advice"`
	Source    string  `json:"source" jsonschema_description:"Where the rule stands."`
	// Where are the instructions that matter most, at most three.
	Where []Place `json:"where,omitempty"`
}

// Place is an instruction that a finding is about.
type Place struct {
	CodeLine int64  `json:"code_line"`
	ISA      string `json:"isa"`
	Stall    int64  `json:"stall"`
	Place    string `json:"place,omitempty"`
	Text     string `json:"text,omitempty"`
	// WaitedFor is the instruction that a wait most often waited for.
	WaitedFor string `json:"waited_for,omitempty"`
}

// NotApplied is a rule that could not be applied.
type NotApplied struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// The severities.
const (
	High   = "high"
	Medium = "medium"
	Low    = "low"
)

const (
	highPct   = 25.0
	mediumPct = 10.0
	maxPlaces = 3
)

// A kernel is at a limit where the bound is one, and loses next to nothing where waves issue so much of their time.
const issuingPct = 85.0

// Apply applies the table.
func Apply(ctx context.Context, in Input) (Report, error) {
	r := Report{Bound: analyze.BoundOf(in.Trace, in.Counters), Findings: []Finding{}, Passed: []string{}, NotApplied: []NotApplied{}}
	for _, row := range table {
		if why := row.outOfPlace(r.Bound); why != "" {
			r.NotApplied = append(r.NotApplied, NotApplied{row.id, why})
			continue
		}
		m := row.measure(in)
		switch {
		case m.why != "":
			r.NotApplied = append(r.NotApplied, NotApplied{row.id, m.why})
		case !row.speaks(m.value):
			r.Passed = append(r.Passed, row.id)
		default:
			r.Findings = append(r.Findings, row.finding(ctx, in, m))
		}
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(timeOf(b), timeOf(a)), cmp.Compare(a.Rule, b.Rule))
	})
	r.judge(in)
	return r, ctx.Err()
}

// rankOf orders by severity, timeOf by the share of time, which stands before other figures.
func rankOf(f Finding) int { return slices.Index([]string{High, Medium, Low}, f.Severity) }

func timeOf(f Finding) float64 {
	if f.Unit == unitTime {
		return f.Value
	}
	return -1
}

// judge says whether there is anything left to do.
func (r *Report) judge(in Input) {
	issue := in.Trace.Totals().IssuePct
	atLimit := r.Bound.From == "counters" && (r.Bound.Kind == analyze.BoundMatrix || r.Bound.Kind == analyze.BoundBandwidth)
	busy := issue != nil && *issue >= issuingPct
	switch {
	case len(r.Findings) > 0:
		r.Basis = fmt.Sprintf("%d rules found something, first %s", len(r.Findings), r.Findings[0].Rule)
	case atLimit:
		r.Optimal, r.Basis = true, "the kernel is at a limit of the hardware: "+r.Bound.Basis
	case busy:
		r.Optimal, r.Basis = true, fmt.Sprintf("waves issue and execute %.1f %% of their time", *issue)
	default:
		r.Basis = "no rule found anything, and neither the matrix cores nor the memory are known to be at their limit"
	}
}

// rule is a row of the table.
type rule struct {
	id, title string
	unit      string
	threshold float64
	// below says that the rule speaks under the threshold, not from it on.
	below bool
	// moot are limits of the hardware (bounds by counters) under which it does not matter; only, where set, are the bounds under which it does.
	moot, only []string
	measure    func(in Input) measured
	// where chooses the instructions to name.
	where analyze.Selection
	// severity is fixed where a share of time does not tell.
	severity       string
	advice, source string
}

// outOfPlace says why the rule does not matter under a bound; "" where it does.
func (r rule) outOfPlace(b analyze.Bound) string {
	switch {
	case b.From == "counters" && slices.Contains(r.moot, b.Kind):
		return "the kernel is at the limit of " + b.Kind
	case len(r.only) > 0 && !slices.Contains(r.only, b.Kind):
		return "the bound is " + b.Kind
	}
	return ""
}

// measured is what a rule measured; why says that it could not.
type measured struct {
	value    float64
	evidence string
	why      string
}

func (r rule) speaks(value float64) bool {
	if r.below {
		return value < r.threshold
	}
	return value >= r.threshold
}

func (r rule) finding(ctx context.Context, in Input, m measured) Finding {
	f := Finding{Rule: r.id, Title: r.title, Severity: r.severity, Value: m.value, Unit: r.unit, Threshold: r.threshold, Evidence: m.evidence, Advice: r.advice, Source: r.source}
	if f.Severity == "" {
		f.Severity = Low
		if m.value >= mediumPct {
			f.Severity = Medium
		}
		if m.value >= highPct {
			f.Severity = High
		}
	}
	if len(r.where.Kinds) == 0 {
		return f
	}
	for _, i := range in.Trace.TopOf(ctx, r.where, maxPlaces) {
		p := Place{CodeLine: i.CodeLine, ISA: i.ISA, Stall: i.Stall, Place: i.Place, Text: i.Text}
		if len(i.WaitedFor) > 0 {
			p.WaitedFor = i.WaitedFor[0].ISA
		}
		f.Where = append(f.Where, p)
	}
	return f
}
