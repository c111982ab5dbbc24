package tile

import (
	"slices"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// ranked is a tile and its modelled cost in clocks of a CU.
type ranked struct {
	tile Tile
	cost float64
}

const (
	// l2BytesPerClock is what an XCD's L2 delivers to its CUs (CDNA 3 white paper: 2 KiB a clock). Only the order of tiles
	// rests on it.
	l2BytesPerClock = 2048
	// startClocks is what a workgroup waits for its first data and its last store, about two trips to memory; workgroups
	// that share a CU hide it from each other.
	startClocks = 2000
	// stepClocks is a step's barriers and addresses.
	stepClocks = 100
)

// rank orders the operator's candidates that fit a CU by cost. A grid runs in rounds of one workgroup a CU; in each, a CU
// computes a whole tile, also of what lies beyond the problem's edge.
func rank(op operator, s soc.SoC) []ranked {
	var list []ranked
	_, lead := op.leading()
	opsPerClock := opsPerClock(op, s)
	l2 := float64(l2BytesPerClock) * float64(s.XCDs) / float64(s.CUs)
	for _, t := range op.candidates(s) {
		fit := occupancy(op, t, s).WorkgroupsPerCU
		if fit == 0 {
			continue
		}
		rounds := ceilDiv(op.workgroups(lead, t), float64(s.CUs))
		list = append(list, ranked{t, rounds * clocks(op, t, min(float64(fit), rounds), opsPerClock, l2)})
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	return list
}

// clocks is what one workgroup takes of its CU. Its arithmetic and its traffic overlap the better the more slices are in
// flight: not at all with one buffer and one workgroup on the CU. Waiting is shared by the workgroups that are on the CU.
func clocks(op operator, t Tile, onCU, opsPerClock, l2 float64) float64 {
	w := op.tile(t)
	compute, traffic := w.ops/opsPerClock, w.bytes/l2
	inFlight := float64(t.Buffers) * onCU
	waiting := (startClocks + stepClocks*op.steps(t)) / onCU
	return max(compute, traffic) + min(compute, traffic)/(inFlight*inFlight) + waiting
}

// opsPerClock is a CU's rate on the operator's pipe. Element types that the matrix cores do not know are widened in
// software, so f16's rate orders their tiles; no peak is claimed from that.
func opsPerClock(op operator, s soc.SoC) float64 {
	peak, ok := peakOf(op, s)
	if !ok {
		peak, _ = s.MatrixPeak("f16")
	}
	return peak / float64(s.CUs) / s.ClockHz
}

// peakOf is the peak of the operator's pipe in operations a second; false where there is none.
func peakOf(op operator, s soc.SoC) (float64, bool) {
	pipe, dtype := op.pipe()
	if pipe == vectorPipe {
		return s.VectorPeak(dtype)
	}
	return s.MatrixPeak(dtype)
}
