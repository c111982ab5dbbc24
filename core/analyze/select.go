package analyze

import (
	"cmp"
	"context"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/isa"
)

// Selection chooses a part of the stall.
type Selection struct {
	// Kinds are counters of waits and classes of instructions, as in StallSums.Kind.
	Kinds []string
	// On, for waits, are the classes of the instructions that were waited for; "" stands for what the trace does not say. Empty for any.
	On []isa.Class
}

// has says whether a part of an instruction's stall is chosen.
func (s Selection) has(c cell, kind string) bool {
	return slices.Contains(s.Kinds, kind) && (len(s.On) == 0 || c.counter == 0 && kind != string(isa.Wait) || slices.Contains(s.On, c.class))
}

// of is the chosen stall of an instruction.
func (s Selection) of(r row) int64 {
	sum := int64(0)
	r.kinds(func(c cell, kind string, stall int64) {
		if s.has(c, kind) {
			sum = plus(sum, stall)
		}
	})
	return sum
}

// StallOf is the chosen stall in cycles, and in percent of the waves' time (latency and idle of all instructions).
func (t *Trace) StallOf(s Selection) (stall int64, share float64) {
	for _, r := range t.rows {
		stall = plus(stall, s.of(r))
	}
	if p := pct(stall, plus(t.totals.Latency, t.totals.Idle)); p != nil {
		share = *p
	}
	return stall, share
}

// TopOf are the instructions with most of the chosen stall, at most n; equal ones by address.
func (t *Trace) TopOf(ctx context.Context, s Selection, n int) []Instruction {
	type chosen struct {
		at    int
		stall int64
	}
	var all []chosen
	for i, r := range t.rows {
		if stall := s.of(r); stall > 0 {
			all = append(all, chosen{i, stall})
		}
	}
	slices.SortFunc(all, func(a, b chosen) int {
		return cmp.Or(cmp.Compare(b.stall, a.stall), cmp.Compare(t.rows[a.at].Vaddr, t.rows[b.at].Vaddr), cmp.Compare(a.at, b.at))
	})
	out := []Instruction{}
	for _, c := range page(all, 0, n) {
		out = append(out, t.instruction(ctx, c.at))
	}
	return out
}

// Work are executions that say how a kernel does its work.
type Work struct {
	// Loads are executed vector loads whose width is known, Narrow those of at most 4 bytes a lane.
	Loads, Narrow int64
	// Scratch are executed accesses to private memory, which spilled registers take.
	Scratch int64
	// Hot are executed instructions of the code that runs at least half as often as what runs most; Matrix those of them that are matrix
	// instructions.
	Hot, Matrix int64
}

// Work counts what the traced waves executed.
func (t *Trace) Work() Work {
	var w Work
	most := int64(0)
	for _, r := range t.rows {
		most = max(most, r.Hit)
	}
	for _, r := range t.rows {
		if b := r.Bytes(); b > 0 && (r.Class == isa.VMEMLoad || r.Class == isa.Flat) {
			w.Loads = plus(w.Loads, r.Hit)
			if b <= 4 {
				w.Narrow = plus(w.Narrow, r.Hit)
			}
		}
		if r.Class == isa.Scratch {
			w.Scratch = plus(w.Scratch, r.Hit)
		}
		if r.Hit > 0 && r.Hit >= most/2 {
			w.Hot = plus(w.Hot, r.Hit)
			if r.Class == isa.Matrix {
				w.Matrix = plus(w.Matrix, r.Hit)
			}
		}
	}
	return w
}

// Spread compares the traced waves; nil where no wave file was read.
func (t *Trace) Spread() *Spread { return spreadOf(t.waves) }

// Occupancy is the residency on the CUs of the traced engines by occupancy.json, or by the traced waves alone where that file is missing;
// nil where neither is known. Its list of CUs is a page.
func (t *Trace) Occupancy() *Residency {
	if t.fromEvents != nil {
		return t.fromEvents.cut(t.slots(), maxShownCUs)
	}
	return t.fromWaves.cut(t.slots(), maxShownCUs)
}

// Totals are the sums over the kernel's instructions.
func (t *Trace) Totals() Sums { return sumsOf(t.totals) }
