package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Side is one of two traces, with what a run knows beside its files; what is empty or 0 is not known.
type Side struct {
	Trace *Trace
	// RecipeKernel is the kernel as the worktree names it: with another tile the symbol may have another name. Shape is the shape as it was
	// captured, Grid the workgroups of the launch.
	RecipeKernel, Shape string
	Grid                int64
	// AvgNS is the kernel's mean duration in the run's discovery.
	AvgNS float64
	// Simulated says that no GPU was used.
	Simulated bool
}

// Diff says what changed between two traces of a kernel. Cycles are of the shader clock. Where the numbers of traced waves differ, sums say little, and what is
// compared is cycles a wave.
type Diff struct {
	Before Info `json:"before"`
	After  Info `json:"after"`
	// Alike says that the traces are of the same work, divided among as many workgroups. Differences say in what they differ, Unchecked what is not known of
	// one of them.
	Alike       bool         `json:"alike"`
	Differences []Difference `json:"differences"`
	Unchecked   []string     `json:"unchecked,omitempty"`
	// Verdict is by the median duration of a wave, or by the kernel's time where the work is divided otherwise; a change of less than 2 % is none.
	// Basis says it with its figures.
	Verdict string `json:"verdict" jsonschema:"enum=faster,enum=slower,enum=same,enum=unknown"`
	Basis   string `json:"basis"`
	// Duration is the median of the waves' durations, Latency to Idle the sums, AvgNS the kernel's time.
	Duration *Change  `json:"wave_duration,omitempty"`
	Waves    Change   `json:"waves"`
	Hitcount Change   `json:"hitcount"`
	Latency  Change   `json:"latency"`
	Stall    Change   `json:"stall"`
	Idle     Change   `json:"idle"`
	AvgNS    *Time    `json:"avg_ns,omitempty"`
	Peak     *Change  `json:"peak_waves,omitempty"`
	Bounds   []string `json:"bounds" jsonschema_description:"Bound before and after."`
	// Stalls, Classes and Lines are the largest changes first, at most ten each of their totals.
	Stalls       []NamedChange `json:"stalls"`
	Classes      []NamedChange `json:"classes" jsonschema_description:"Latency by class of instruction."`
	Lines        []NamedChange `json:"lines" jsonschema_description:"Stall by source line."`
	StallsTotal  int           `json:"stalls_total"`
	ClassesTotal int           `json:"classes_total"`
	LinesTotal   int           `json:"lines_total"`
}

// Difference is something that is not the same on both sides.
type Difference struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Matters says that figures cannot be compared because of it.
	Matters bool `json:"matters"`
}

// Change is a figure before and after.
type Change struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Delta  int64 `json:"delta"`
	// Pct is 100 x Delta / Before; absent where Before is 0.
	Pct *float64 `json:"pct,omitempty"`
	// PerWave are the same for one traced wave; absent where the waves are not known.
	PerWave *PerWave `json:"per_wave,omitempty"`
}

// PerWave is a sum divided by the number of traced waves.
type PerWave struct {
	Before float64  `json:"before"`
	After  float64  `json:"after"`
	Delta  float64  `json:"delta"`
	Pct    *float64 `json:"pct,omitempty"`
}

// NamedChange is the change of one kind, class or source line, in cycles.
type NamedChange struct {
	Name string `json:"name"`
	// Became says what happened to the cycles: of a wave, where the numbers of waves differ.
	Became string `json:"became" jsonschema:"enum=new,enum=gone,enum=grew,enum=shrank"`
	Change
	// The shares are of all stall (latency for classes); they may fall though the cycles grew.
	SharePctBefore *float64 `json:"share_pct_before,omitempty"`
	SharePctAfter  *float64 `json:"share_pct_after,omitempty"`
	by             float64
}

// Time is a duration in nanoseconds.
type Time struct {
	Before float64  `json:"before"`
	After  float64  `json:"after"`
	Pct    *float64 `json:"pct,omitempty"`
}

// The verdicts, and how much of a change is one. Repeated traces of one kernel differ by about a percent.
const (
	VerdictFaster  = "faster"
	VerdictSlower  = "slower"
	VerdictSame    = "same"
	VerdictUnknown = "unknown"
	samePct        = 2.0
)

const maxChanges = 10

// Compare compares two traces. It always answers: what cannot be compared is said in Differences and Alike.
func Compare(before, after Side) Diff {
	a, b := before.Trace, after.Trace
	d := Diff{Before: a.info, After: b.info, Differences: []Difference{}}
	sameWork := d.alike(before, after)
	w := waveCounts{int64(len(a.waves)), int64(len(b.waves))}
	d.Waves = change(int64(a.info.Waves), int64(b.info.Waves))
	d.Hitcount, d.Latency = w.sums(a.totals.Hit, b.totals.Hit), w.sums(a.totals.Latency, b.totals.Latency)
	d.Stall, d.Idle = w.sums(a.totals.Stall, b.totals.Stall), w.sums(a.totals.Idle, b.totals.Idle)
	if x, y := spreadOf(a.waves), spreadOf(b.waves); x != nil && y != nil {
		m := change(x.Median, y.Median)
		d.Duration = &m
	}
	if before.AvgNS > 0 && after.AvgNS > 0 {
		d.AvgNS = &Time{before.AvgNS, after.AvgNS, rounded(100 * (after.AvgNS - before.AvgNS) / before.AvgNS)}
	}
	if x, y := a.fromEvents, b.fromEvents; x != nil && y != nil {
		p := change(x.Peak, y.Peak)
		d.Peak = &p
	}
	d.Bounds = []string{BoundOf(a, nil).Kind, BoundOf(b, nil).Kind}
	d.judge(sameWork)
	d.Stalls, d.StallsTotal = w.named(a.byKind(), b.byKind(), a.totals.Stall, b.totals.Stall)
	d.Classes, d.ClassesTotal = w.named(a.byClass(), b.byClass(), a.totals.Latency, b.totals.Latency)
	d.Lines, d.LinesTotal = w.named(a.byLine(), b.byLine(), a.totals.Stall, b.totals.Stall)
	return d
}

// alike notes what the two sides do not share, and gives whether they do the same work. What is not known on a side is no difference.
func (d *Diff) alike(before, after Side) (sameWork bool) {
	a, b := before.Trace.info, after.Trace.info
	note := func(what, x, y string, matters bool) (same bool) {
		if x != y && x != "" && y != "" {
			d.Differences = append(d.Differences, Difference{what, x, y, matters})
			return !matters
		}
		if matters && (x == "" || y == "") {
			d.Unchecked = append(d.Unchecked, what)
		}
		return true
	}
	known := func(n int64) string {
		if n <= 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	sameRecipe := before.RecipeKernel != "" && before.RecipeKernel == after.RecipeKernel
	sameWork = true
	for _, c := range []struct {
		what, x, y string
		matters    bool
	}{
		{"kernel", a.Kernel, b.Kernel, !sameRecipe},
		{"shape", before.Shape, after.Shape, true},
		{"arch", a.Arch, b.Arch, true},
		{"gfxip", known(a.GfxIP), known(b.GfxIP), true},
		{"simulated", fmt.Sprint(before.Simulated), fmt.Sprint(after.Simulated), true},
	} {
		sameWork = note(c.what, c.x, c.y, c.matters) && sameWork
	}
	d.Alike = note("grid in workgroups", known(before.Grid), known(after.Grid), true) && sameWork
	note("traced waves", fmt.Sprint(a.Waves), fmt.Sprint(b.Waves), false)
	note("traced CUs", tracedCUs(before.Trace), tracedCUs(after.Trace), false)
	note("instructions of the code", fmt.Sprint(a.Ins), fmt.Sprint(b.Ins), false)
	note("version of the format", a.Version, b.Version, false)
	note("wave files that were not read", fmt.Sprint(a.Waves-a.WavesRead), fmt.Sprint(b.Waves-b.WavesRead), false)
	return sameWork
}

// tracedCUs names the CUs whose waves were read.
func tracedCUs(t *Trace) string {
	if t.fromWaves == nil {
		return ""
	}
	out := ""
	for i, c := range t.fromWaves.CUs {
		if i == maxShownCUs {
			return out + fmt.Sprintf(" and %d more", len(t.fromWaves.CUs)-i)
		}
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("SE %d CU %d", c.SE, c.CU)
	}
	return out
}

// judge says whether the kernel became faster.
func (d *Diff) judge(sameWork bool) {
	switch {
	case !sameWork:
		d.Verdict, d.Basis = VerdictUnknown, "the traces are not of the same work"
		for _, x := range d.Differences {
			if x.Matters {
				d.Basis += fmt.Sprintf("; %s: %s and %s", x.What, trimmed(x.Before, 80), trimmed(x.After, 80))
			}
		}
	case d.Alike && d.Duration != nil && d.Duration.Pct != nil:
		d.Verdict = verdictOf(*d.Duration.Pct)
		d.Basis = fmt.Sprintf("the median wave took %d cycles and now %d (%+.2f %%)", d.Duration.Before, d.Duration.After, *d.Duration.Pct)
		if d.AvgNS != nil {
			d.Basis += fmt.Sprintf("; the kernel %.0f ns and now %.0f (%+.2f %%)", d.AvgNS.Before, d.AvgNS.After, *d.AvgNS.Pct)
		}
	case d.AvgNS != nil:
		d.Verdict = verdictOf(*d.AvgNS.Pct)
		d.Basis = fmt.Sprintf("the kernel took %.0f ns and now %.0f (%+.2f %%)", d.AvgNS.Before, d.AvgNS.After, *d.AvgNS.Pct)
		if !d.Alike {
			d.Basis += "; the work is divided among another number of workgroups, so waves cannot be compared"
		}
	case !d.Alike:
		d.Verdict, d.Basis = VerdictUnknown, "the work is divided among another number of workgroups, and the kernel's time is not known on both sides"
	default:
		d.Verdict, d.Basis = VerdictUnknown, "the durations of the waves are not known on one side, and sums over an unknown number of waves cannot be compared"
	}
}

func verdictOf(pct float64) string {
	switch {
	case pct <= -samePct:
		return VerdictFaster
	case pct >= samePct:
		return VerdictSlower
	}
	return VerdictSame
}

func change(before, after int64) Change {
	c := Change{Before: before, After: after, Delta: after - before}
	if before > 0 {
		c.Pct = rounded(100 * (float64(after) - float64(before)) / float64(before))
	}
	return c
}

// waveCounts are the waves that the sums of each side are over; 0 where not known.
type waveCounts struct{ before, after int64 }

// sums is the change of a sum, with that of one wave.
func (w waveCounts) sums(before, after int64) Change {
	c := change(before, after)
	if w.before > 0 && w.after > 0 {
		x, y := float64(before)/float64(w.before), float64(after)/float64(w.after)
		c.PerWave = &PerWave{Before: *rounded(x), After: *rounded(y), Delta: *rounded(y - x)}
		if x > 0 {
			c.PerWave.Pct = rounded(100 * (y - x) / x)
		}
	}
	return c
}

// moved is how much a sum changed: of a wave where the numbers of waves are known and differ.
func (w waveCounts) moved(before, after int64) float64 {
	if w.before > 0 && w.after > 0 && w.before != w.after {
		return float64(after)/float64(w.after) - float64(before)/float64(w.before)
	}
	return float64(after) - float64(before)
}

// named compares sums by name, the largest changes first, equal ones by name. What did not change is left out.
func (w waveCounts) named(before, after map[string]int64, wholeBefore, wholeAfter int64) ([]NamedChange, int) {
	all := []NamedChange{}
	add := func(name string, x, y int64) {
		n := NamedChange{Name: name, Change: w.sums(x, y), SharePctBefore: pct(x, wholeBefore), SharePctAfter: pct(y, wholeAfter), by: w.moved(x, y)}
		switch {
		case n.by == 0:
			return
		case x == 0:
			n.Became = "new"
		case y == 0:
			n.Became = "gone"
		case n.by > 0:
			n.Became = "grew"
		default:
			n.Became = "shrank"
		}
		all = append(all, n)
	}
	for name, x := range before {
		add(name, x, after[name])
	}
	for name, y := range after {
		if _, both := before[name]; !both {
			add(name, 0, y)
		}
	}
	slices.SortFunc(all, func(a, b NamedChange) int {
		return cmp.Or(cmp.Compare(math.Abs(b.by), math.Abs(a.by)), cmp.Compare(a.Name, b.Name))
	})
	return page(all, 0, maxChanges), len(all)
}

func (t *Trace) byKind() map[string]int64 {
	out := map[string]int64{}
	for _, s := range t.stalls() {
		out[s.Kind] = s.Stall
	}
	return out
}

func (t *Trace) byClass() map[string]int64 {
	out := map[string]int64{}
	for _, m := range t.mix() {
		out[string(m.Class)] = m.Latency
	}
	return out
}

// byLine sums stall by innermost place. Instructions without one are "(no source)".
func (t *Trace) byLine() map[string]int64 {
	out := map[string]int64{}
	for _, l := range t.lines() {
		name := "(no source)"
		if l.File != "" {
			name = Frame{l.File, l.Line}.String()
		}
		out[name] = plus(out[name], l.Totals.Stall)
	}
	return out
}
