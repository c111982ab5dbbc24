package analyze

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// BubblesQuery chooses what of the lists is shown.
type BubblesQuery struct {
	// Limit and Offset cut a page of the hot instructions and of the source lines; a limit of 0 is DefaultLimit.
	Limit, Offset int
	// CodeLine, when set, shows the one instruction of that LineNumber in place of the hot ones.
	CodeLine *int64
}

// DefaultLimit and MaxLimit bound a page.
const (
	DefaultLimit = 10
	MaxLimit     = 200
)

// Bubbles says where the waves of a kernel stalled and for what. All cycles are of the shader clock and summed over the traced waves.
type Bubbles struct {
	Trace  Info `json:"trace"`
	Totals Sums `json:"totals"`
	// States are the cycles of the traced waves by what they did; absent without wave files.
	States *StateShares `json:"states,omitempty"`
	// Stalls divide the stall by what was waited for, most first; they add up to it. WaitRule says how a wait for several counters is divided.
	Stalls   []StallSums `json:"stalls"`
	WaitRule string      `json:"wait_rule,omitempty"`
	// Mix are the instructions by class, most stall first.
	Mix []ClassSums `json:"mix"`
	// Hot are the instructions with most stall, Lines the source lines; of each a page.
	Hot        []Instruction `json:"hot"`
	HotTotal   int           `json:"hot_total" jsonschema_description:"Instructions that were executed."`
	Lines      []LineSums    `json:"lines"`
	LinesTotal int           `json:"lines_total"`
	Offset     int           `json:"offset,omitempty"`
	// Spread compares the traced waves; absent without wave files.
	Spread *Spread `json:"spread,omitempty"`
	// Occupancy is by occupancy.json, of all CUs of the traced engines; WaveOccupancy by the traced waves alone.
	Occupancy     *Residency `json:"occupancy,omitempty"`
	WaveOccupancy *Residency `json:"wave_occupancy,omitempty"`
	// CodeObjects are what ran of each code object, where there are several.
	CodeObjects []CodeObject `json:"code_objects,omitempty"`
}

// Sums are cycles of instructions, with their shares.
type Sums struct {
	att.Totals
	// Issue is Latency - Stall: cycles in which instructions issued and executed.
	Issue int64 `json:"issue" jsonschema_description:"Latency without stall in cycles."`
	// The shares are of Latency + Idle.
	StallPct *float64 `json:"stall_pct,omitempty" jsonschema_description:"Of latency and idle."`
	IssuePct *float64 `json:"issue_pct,omitempty" jsonschema_description:"Of latency and idle."`
	IdlePct  *float64 `json:"idle_pct,omitempty" jsonschema_description:"Of latency and idle."`
}

func sumsOf(t att.Totals) Sums {
	s := Sums{Totals: t, Issue: max(t.Latency-t.Stall, 0)}
	whole := plus(t.Latency, t.Idle)
	s.StallPct, s.IssuePct, s.IdlePct = pct(t.Stall, whole), pct(s.Issue, whole), pct(t.Idle, whole)
	return s
}

// StateShares are the states with their shares of all of them.
type StateShares struct {
	States
	IdlePct  *float64 `json:"idle_pct,omitempty"`
	ExecPct  *float64 `json:"exec_pct,omitempty"`
	WaitPct  *float64 `json:"wait_pct,omitempty"`
	StallPct *float64 `json:"stall_pct,omitempty"`
}

// StallSums is the stall for one reason.
type StallSums struct {
	// Kind is a counter for waits ("wait" where the wait names none), else the class of the instruction that could not issue.
	Kind     string   `json:"kind" jsonschema_description:"A wait's counter such as vmcnt or the class of the instruction that could not issue."`
	Stall    int64    `json:"stall"`
	StallPct *float64 `json:"stall_pct,omitempty" jsonschema_description:"Of all stall."`
	// On divides the stall of a counter by the class of the instructions that were waited for; class "" where the trace does not say.
	On []OnClass `json:"on,omitempty"`
}

// OnClass is the stall on instructions of one class.
type OnClass struct {
	Class isa.Class `json:"class" jsonschema_description:"Class of the waited-for instructions; empty where the trace does not say."`
	Stall int64     `json:"stall"`
}

// ClassSums are the instructions of one class.
type ClassSums struct {
	Class isa.Class `json:"class"`
	Ins   int       `json:"ins" jsonschema_description:"Instructions in the code."`
	att.Totals
	HitPct     *float64 `json:"hit_pct,omitempty" jsonschema_description:"Of all executions."`
	LatencyPct *float64 `json:"latency_pct,omitempty"`
	StallPct   *float64 `json:"stall_pct,omitempty"`
}

// Instruction is one instruction of the code.
type Instruction struct {
	// CodeLine is LineNumber, by which the wave files name it; Address its virtual address.
	CodeLine int64     `json:"code_line"`
	Address  string    `json:"address"`
	ISA      string    `json:"isa"`
	Class    isa.Class `json:"class"`
	// WaitsFor are the counters that a wait names.
	WaitsFor []string `json:"waits_for,omitempty"`
	att.Totals
	StallPct *float64 `json:"stall_pct,omitempty" jsonschema_description:"Of all stall."`
	// Place is the innermost place of Chain; Text that line, if TextState is exact.
	Place     string   `json:"place,omitempty" jsonschema_description:"file:line; the innermost of the chain."`
	Chain     []string `json:"chain,omitempty" jsonschema_description:"Inlined places from the innermost out; only where there are several."`
	Text      string   `json:"text,omitempty"`
	TextState string   `json:"text_state,omitempty" jsonschema_description:"exact or no_snapshot or unreadable or beyond_end or no_line."`
	// WaitedFor are the instructions that a wait waited for, most often first, at most four of WaitedForTotal.
	WaitedFor      []WaitedFor `json:"waited_for,omitempty"`
	WaitedForTotal int         `json:"waited_for_total,omitempty"`
}

// WaitedFor is an instruction that a wait waited for.
type WaitedFor struct {
	CodeLine int64     `json:"code_line"`
	ISA      string    `json:"isa"`
	Class    isa.Class `json:"class"`
	Place    string    `json:"place,omitempty"`
	Count    int64     `json:"count" jsonschema_description:"Executions of the wait that had it outstanding."`
}

// LineSums are the instructions of one source line, by their innermost place.
type LineSums struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Ins  int    `json:"ins"`
	att.Totals
	StallPct *float64 `json:"stall_pct,omitempty" jsonschema_description:"Of all stall."`
	// TopKind is what most of its stall waited for.
	TopKind   string `json:"top_kind,omitempty"`
	Text      string `json:"text,omitempty"`
	TextState string `json:"text_state,omitempty"`
	kinds     map[string]int64
}

// waitRule says how stalls of combined waits are divided.
const waitRule = "A wait that names several counters is divided, wave by wave, by how often the trace shows it waiting for instructions of each counter; where the trace does not say, each named counter gets the same part."

// Bubbles computes the summary with a page of its lists. The error is BAD_ARGS for a code line that is not there.
func (t *Trace) Bubbles(ctx context.Context, q BubblesQuery) (Bubbles, error) {
	limit := limitOf(q.Limit)
	b := Bubbles{Trace: t.info, Totals: sumsOf(t.totals), Stalls: t.stalls(), Mix: t.mix(), Offset: max(q.Offset, 0), Spread: spreadOf(t.waves)}
	for _, r := range t.rows {
		if r.Waits.Len() > 1 && r.Stall > 0 {
			b.WaitRule = waitRule
		}
	}
	if len(t.waves) > 0 {
		b.States = stateShares(t.waves)
	}
	hot, err := t.hot(q.CodeLine)
	if err != nil {
		return Bubbles{}, err
	}
	b.HotTotal = len(hot)
	b.Hot = []Instruction{}
	for _, at := range page(hot, q.Offset, limit) {
		b.Hot = append(b.Hot, t.instruction(ctx, at))
	}
	lines := t.lines()
	b.LinesTotal = len(lines)
	b.Lines = t.withText(ctx, page(lines, q.Offset, limit))
	b.Occupancy, b.WaveOccupancy = t.fromEvents.cut(t.slots(), maxShownCUs), t.fromWaves.cut(t.slots(), maxShownCUs)
	if b.WaveOccupancy != nil && b.Occupancy != nil {
		b.WaveOccupancy.Timeline = nil // the other has it
	}
	if len(t.objects) > 1 {
		b.CodeObjects = page(t.objects, 0, maxShownObjects)
	}
	return b, ctx.Err()
}

const (
	maxShownCUs     = 8
	maxShownObjects = 8
	maxShownTargets = 4
)

func limitOf(n int) int {
	if n <= 0 {
		return DefaultLimit
	}
	return min(n, MaxLimit)
}

// slots are the waves that a CU of the GPU can hold; 0 where the GPU is not known.
func (t *Trace) slots() int64 {
	s, _ := soc.Lookup(t.info.Arch)
	return int64(s.SIMDsPerCU * s.WavesPerSIMD)
}

func stateShares(waves []Wave) *StateShares {
	var s States
	for _, w := range waves {
		s.Idle, s.Exec, s.Wait, s.Stall = plus(s.Idle, w.states.Idle), plus(s.Exec, w.states.Exec), plus(s.Wait, w.states.Wait), plus(s.Stall, w.states.Stall)
	}
	all := plus(plus(s.Idle, s.Exec), plus(s.Wait, s.Stall))
	if all == 0 {
		return nil
	}
	return &StateShares{States: s, IdlePct: pct(s.Idle, all), ExecPct: pct(s.Exec, all), WaitPct: pct(s.Wait, all), StallPct: pct(s.Stall, all)}
}

// kinds gives the stall of an instruction by what it waited for.
func (r row) kinds(each func(c cell, kind string, stall int64)) {
	if r.Class != isa.Wait {
		each(cell{}, string(r.Class), r.Stall)
		return
	}
	for _, s := range r.waits {
		each(s.cell, kindOf(s.counter), s.stall)
	}
}

func kindOf(c isa.Counters) string {
	if c == 0 {
		return string(isa.Wait)
	}
	return c.String()
}

// stalls divides the stall by what was waited for.
func (t *Trace) stalls() []StallSums {
	byKind, onClass := map[string]int64{}, map[string]map[isa.Class]int64{}
	for _, r := range t.rows {
		wait := r.Class == isa.Wait
		r.kinds(func(c cell, kind string, stall int64) {
			byKind[kind] = plus(byKind[kind], stall)
			if !wait {
				return
			}
			if onClass[kind] == nil {
				onClass[kind] = map[isa.Class]int64{}
			}
			onClass[kind][c.class] = plus(onClass[kind][c.class], stall)
		})
	}
	out := []StallSums{}
	for kind, stall := range byKind {
		if stall == 0 {
			continue
		}
		s := StallSums{Kind: kind, Stall: stall, StallPct: pct(stall, t.totals.Stall)}
		for class, part := range onClass[kind] {
			s.On = append(s.On, OnClass{class, part})
		}
		slices.SortFunc(s.On, func(a, b OnClass) int { return cmp.Or(cmp.Compare(b.Stall, a.Stall), cmp.Compare(a.Class, b.Class)) })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b StallSums) int { return cmp.Or(cmp.Compare(b.Stall, a.Stall), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// mix sums the instructions up by class.
func (t *Trace) mix() []ClassSums {
	by := map[isa.Class]*ClassSums{}
	for _, r := range t.rows {
		c := by[r.Class]
		if c == nil {
			c = &ClassSums{Class: r.Class}
			by[r.Class] = c
		}
		c.Ins++
		c.Totals.Add(r.Totals())
	}
	out := []ClassSums{}
	for _, c := range by {
		c.HitPct, c.LatencyPct, c.StallPct = pct(c.Hit, t.totals.Hit), pct(c.Latency, t.totals.Latency), pct(c.Stall, t.totals.Stall)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b ClassSums) int {
		return cmp.Or(cmp.Compare(b.Stall, a.Stall), cmp.Compare(b.Latency, a.Latency), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// hot are the executed instructions by stall, most first, equal ones by address; or the one of a code line.
func (t *Trace) hot(codeLine *int64) ([]int, error) {
	var out []int
	for i, r := range t.rows {
		if codeLine != nil && r.Line == *codeLine || codeLine == nil && r.Hit > 0 {
			out = append(out, i)
		}
	}
	if codeLine != nil && len(out) == 0 {
		first, last := int64(0), int64(0)
		if n := len(t.rows); n > 0 {
			first, last = t.rows[0].Line, t.rows[n-1].Line
		}
		return nil, badArg("code_line", fmt.Sprint(*codeLine), fmt.Sprintf("the code_line of an instruction; they run from %d to %d", first, last))
	}
	slices.SortFunc(out, func(a, b int) int { return t.rows[a].hotter(t.rows[b]) })
	return out, nil
}

// hotter orders by stall, then latency, most first, then by address.
func (r row) hotter(o row) int {
	return cmp.Or(cmp.Compare(o.Stall, r.Stall), cmp.Compare(r.Vaddr, o.Vaddr), cmp.Compare(r.Line, o.Line))
}

// instruction shows a row.
func (t *Trace) instruction(ctx context.Context, at int) Instruction {
	r := t.rows[at]
	i := Instruction{CodeLine: r.Line, Address: address(r.Vaddr), ISA: trimmed(r.ISA, maxLineText), Class: r.Class, WaitsFor: r.Waits.Names(),
		Totals: r.Totals(), StallPct: pct(r.Stall, t.totals.Stall), WaitedForTotal: len(r.targets)}
	if len(r.frames) > 0 {
		i.Place = r.frames[0].String()
		i.Text, i.TextState = t.sourceLine(ctx, r.frames[0])
	}
	if len(r.frames) > 1 {
		for _, f := range page(r.frames, 0, maxShownFrames) {
			i.Chain = append(i.Chain, f.String())
		}
	}
	for _, to := range page(r.targets, 0, maxShownTargets) {
		w := WaitedFor{Count: to.count, Class: isa.Other}
		if to.row >= 0 {
			of := t.rows[to.row]
			w.CodeLine, w.ISA, w.Class = of.Line, trimmed(of.ISA, maxLineText), of.Class
			if len(of.frames) > 0 {
				w.Place = of.frames[0].String()
			}
		}
		i.WaitedFor = append(i.WaitedFor, w)
	}
	return i
}

const maxShownFrames = 8

// lines sums the instructions up by their innermost place, most stall first. Instructions without a place are one entry of no file.
func (t *Trace) lines() []LineSums {
	by := map[Frame]*LineSums{}
	for _, r := range t.rows {
		var at Frame
		if len(r.frames) > 0 {
			at = r.frames[0]
		}
		addLine(by, at, r)
	}
	return t.ranked(by)
}

// addLine adds an instruction to the sums of a place.
func addLine(by map[Frame]*LineSums, at Frame, r row) {
	l := by[at]
	if l == nil {
		l = &LineSums{File: at.File, Line: at.Line, kinds: map[string]int64{}}
		by[at] = l
	}
	l.Ins++
	l.Totals.Add(r.Totals())
	r.kinds(func(_ cell, kind string, stall int64) { l.kinds[kind] = plus(l.kinds[kind], stall) })
}

// ranked orders lines by stall, most first, with their shares.
func (t *Trace) ranked(by map[Frame]*LineSums) []LineSums {
	out := []LineSums{}
	for _, l := range by {
		l.StallPct = pct(l.Stall, t.totals.Stall)
		l.TopKind = topKind(l.kinds)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b LineSums) int {
		return cmp.Or(cmp.Compare(b.Stall, a.Stall), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// withText adds the text of the lines.
func (t *Trace) withText(ctx context.Context, lines []LineSums) []LineSums {
	for i := range lines {
		if l := &lines[i]; l.File != "" {
			l.Text, l.TextState = t.sourceLine(ctx, Frame{l.File, l.Line})
		}
	}
	return lines
}

// topKind is the kind with most stall, the first by name among equals; "" where nothing stalled.
func topKind(kinds map[string]int64) string {
	best, most := "", int64(0)
	for kind, stall := range kinds {
		if stall > most || stall == most && stall > 0 && kind < best {
			best, most = kind, stall
		}
	}
	return best
}
