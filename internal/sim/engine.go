package sim

import (
	"slices"
	"sort"
	"strconv"
)

// Bounds of one dispatch's trace. A real trace is bounded by its buffer; beyond these the stand-in says "buffer full" too.
const (
	maxTracedWaves  = 8192
	maxTracedSteps  = 6 << 20
	maxGroupsPerSE  = 1 << 15
	bytesPerStep    = 4
	bytesPerWaveRow = 16
)

// waveRow is a wave of any CU, as occupancy.json has it; trace is nil outside the traced CU.
type waveRow struct {
	cu, simd, slot, id int
	begin, end         int64
	trace              *waveTrace
}

// engineTrace is what one shader engine's trace decodes to.
type engineTrace struct {
	se       int
	rows     []waveRow
	full     bool  // the buffer ended before the waves did
	cutoff   int64 // nothing is recorded after it when full
	stepsSum int
}

// cuState is what one CU has free.
type cuState struct {
	slots  [4][]int64 // by SIMD and wave slot: when it is free
	reused [4][]int   // waves that a slot has had
	groups []int64    // ends of the workgroups that hold LDS
}

// waveSlots is the occupancy rule: waves a SIMD by registers (512 a lane, groups of 8), at most 8.
func waveSlots(o *kernelObject) int { return min(8, max(1, 512/allocated(o))) }

// simdOrder is the order in which a CU's SIMDs take the waves of a workgroup, as recorded occupancy has it.
var simdOrder = [4]int{0, 2, 1, 3}

// traceEngine runs one shader engine's workgroups and records the waves. Only waves of the target CU on selected SIMDs
// are followed by instruction.
func (s *session) traceEngine(d dispatch, p placement, se int, budget *traceBudget) engineTrace {
	o := d.object
	rnd := stream(s.set.Seed, "engine", o.kernel, strconv.Itoa(se), strconv.FormatInt(d.id, 10))
	out := engineTrace{se: se}
	start := int64(60000 + cycles(rnd.IntN(20000)))
	typical := o.code.wave(rnd, 0, o.trips, false).end
	states := map[int]*cuState{}
	arrival := start
	homes := p.engine(se, maxGroupsPerSE+1)
	if len(homes) > maxGroupsPerSE {
		homes, out.full = homes[:maxGroupsPerSE], true
	}
	for _, h := range homes {
		cu := states[h.cu]
		if cu == nil {
			cu = newCUState(waveSlots(o))
			states[h.cu] = cu
		}
		begin := cu.earliest(o, s.model.ldsKiB<<10, arrival)
		arrival += 16
		groupEnd := begin
		for wave := range o.wavesPerGroup() {
			row := cu.occupy(simdOrder[wave%4], begin+int64(wave%4)*4)
			row.cu = h.cu
			traced := h.cu == s.cfg.targetCU && s.cfg.simds&(1<<row.simd) != 0
			if traced && !budget.take() {
				traced, out.full = false, true
			}
			if traced {
				t := o.code.wave(rnd, row.begin, o.trips, true)
				row.trace, row.end = &t, t.end
				out.stepsSum += len(t.steps)
				budget.steps -= len(t.steps)
			} else {
				row.end = row.begin + typical + cycles(rnd.IntN(int(typical/8)+1))
			}
			cu.slots[row.simd][row.slot] = row.end
			groupEnd = max(groupEnd, row.end)
			out.rows = append(out.rows, row)
		}
		cu.groups = append(cu.groups, groupEnd)
	}
	s.limit(&out, budget.bytesPerSE)
	return out
}

// traceBudget bounds what all engines of a dispatch record.
type traceBudget struct {
	waves, steps int
	bytesPerSE   int64
}

func (b *traceBudget) take() bool {
	if b.waves <= 0 || b.steps <= 0 {
		return false
	}
	b.waves--
	return true
}

func newCUState(slots int) *cuState {
	c := &cuState{}
	for i := range c.slots {
		c.slots[i], c.reused[i] = make([]int64, slots), make([]int, slots)
	}
	return c
}

// earliest is when a workgroup fits: enough free slots on each SIMD, and LDS.
func (c *cuState) earliest(o *kernelObject, ldsBytes int, arrival int64) int64 {
	need := [4]int{}
	for wave := range o.wavesPerGroup() {
		need[simdOrder[wave%4]]++
	}
	at := arrival
	for simd, n := range need {
		if n == 0 {
			continue
		}
		free := slices.Clone(c.slots[simd])
		slices.Sort(free)
		at = max(at, free[min(n, len(free))-1])
	}
	if o.lds > 0 {
		if most := max(1, ldsBytes/o.lds); len(c.groups) >= most {
			ends := slices.Clone(c.groups)
			slices.Sort(ends)
			at = max(at, ends[len(ends)-most])
		}
	}
	return (at + 3) / 4 * 4
}

// occupy takes the first free slot of a SIMD.
func (c *cuState) occupy(simd int, at int64) waveRow {
	slot := 0
	for i, free := range c.slots[simd] {
		if free < c.slots[simd][slot] {
			slot = i
		}
		if free <= at {
			slot = i
			break
		}
	}
	row := waveRow{simd: simd, slot: slot, id: c.reused[simd][slot], begin: max(at, c.slots[simd][slot])}
	c.reused[simd][slot]++
	return row
}

// limit cuts the engine's trace where its share of the buffer ends, or in the middle for the fault "truncated".
func (s *session) limit(e *engineTrace, bytes int64) {
	used := int64(e.stepsSum*bytesPerStep + len(e.rows)*bytesPerWaveRow)
	below, cut := s.set.fault("truncated", s.phase())
	if enough, err := strconv.ParseInt(below, 10, 64); err == nil && s.cfg.buffer >= enough {
		cut = false
	}
	cut = cut && e.stepsSum > 0
	if used <= bytes && !cut {
		return
	}
	last := int64(0)
	first := int64(-1)
	for _, r := range e.rows {
		last = max(last, r.end)
		if first < 0 || r.begin < first {
			first = r.begin
		}
	}
	share := 0.6
	if used > bytes {
		share = min(share, float64(bytes)/float64(used))
	}
	e.full, e.cutoff = true, first+int64(share*float64(last-first))
	kept := e.rows[:0]
	for _, r := range e.rows {
		if r.begin >= e.cutoff {
			continue
		}
		if r.trace != nil && r.end > e.cutoff {
			r.trace.cutAt(e.cutoff)
			if len(r.trace.steps) == 0 {
				r.trace = nil
			} else {
				r.end = r.trace.end
			}
		}
		kept = append(kept, r)
	}
	e.rows = kept
}

// cutAt ends a wave's trace at the last instruction that was done by then.
func (t *waveTrace) cutAt(at int64) {
	n := sort.Search(len(t.steps), func(i int) bool { return t.steps[i].time+t.steps[i].duration > at })
	t.steps = t.steps[:n]
	if n == 0 {
		return
	}
	t.end = t.steps[n-1].time + t.steps[n-1].duration
	seen := map[int]int{}
	for _, s := range t.steps {
		seen[s.line]++
	}
	for i, w := range t.waits {
		if seen[w.line]--; seen[w.line] < 0 {
			t.waits = t.waits[:i]
			break
		}
	}
	left := t.end - t.begin
	for i := range t.timeline {
		if left <= t.timeline[i].cycles {
			t.timeline[i].cycles = left
			t.timeline = t.timeline[:i+1]
			break
		}
		left -= t.timeline[i].cycles
	}
}
