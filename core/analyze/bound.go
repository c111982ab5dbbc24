package analyze

import (
	"fmt"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/isa"
)

// Bound is what holds a kernel back, as far as the figures show. There is one for a trace and its counters, and all advice rests on it.
type Bound struct {
	Kind string `json:"kind" jsonschema:"enum=matrix,enum=bandwidth,enum=memory_latency,enum=lds,enum=barrier,enum=issue,enum=waiting,enum=unknown"`
	// Basis is the reasoning with its figures; From says where they come from.
	Basis string `json:"basis"`
	From  string `json:"from,omitempty" jsonschema:"enum=counters,enum=trace"`
	// Share is the figure that decided, in percent.
	Share *float64 `json:"share,omitempty"`
	// Missing are counters that would tell more.
	Missing []string `json:"missing,omitempty"`
}

// The kinds of a bound.
const (
	BoundMatrix    = "matrix"         // the matrix cores are busy
	BoundBandwidth = "bandwidth"      // the memory is busy
	BoundMemory    = "memory_latency" // waves wait for memory, which is not busy or whose use is not known
	BoundLDS       = "lds"            // waves wait for LDS
	BoundBarrier   = "barrier"        // waves wait for each other
	BoundIssue     = "issue"          // instructions wait for a free unit or for operands
	BoundWaiting   = "waiting"        // waves wait, for what is not known
	BoundUnknown   = "unknown"
)

// Where a figure decides. The shares of time are this package's choice: half is most of it, and a
// quarter is more than most kernels lose to one reason.
const (
	matrixPct = 70.0 // of the matrix cores' time (FlyDSL, kernel tuning guide, section 0)
	memoryPct = 60.0 // of the memory's peak (the same, trace analysis: 50 to 60 % is what clean streaming reaches)
	mostPct   = 50.0 // of the time of waves, by counters
	leadPct   = 25.0 // of the time of waves, by the trace
)

// counterBounds are the rules on counters, the first that holds decides.
var counterBounds = []struct {
	kind, metric string
	at           float64
	says         string
	withTrace    bool // decides also where there is a trace, which says more of waits
}{
	{BoundMatrix, "mfma_busy_pct", matrixPct, "the matrix cores worked %.1f %% of the time", true},
	{BoundBandwidth, "memory_pct", memoryPct, "the memory moved %.1f %% of its peak", true},
	{BoundWaiting, "wait_pct", mostPct, "waves waited %.1f %% of their time", false},
	{BoundIssue, "wait_issue_pct", mostPct, "waves waited %.1f %% of their time for an instruction to issue", false},
}

// traceBounds are the reasons of stall in a trace; the one with the largest share decides, the first of equals.
var traceBounds = []struct {
	kind, says string
	is         func(c cell, class isa.Class) bool
}{
	{BoundMemory, "waves spent %.1f %% of their time waiting for memory", func(c cell, class isa.Class) bool {
		return c.counter&(isa.VMCnt|isa.VSCnt|isa.LoadCnt|isa.StoreCnt|isa.SampleCnt|isa.BVHCnt|isa.KMCnt|isa.AsyncCnt|isa.TensorCnt) != 0 || c.counter == isa.LGKMCnt && c.class == isa.SMEM || isa.Instruction{Class: class}.Is("memory")
	}},
	{BoundLDS, "waves spent %.1f %% of their time waiting for LDS", func(c cell, class isa.Class) bool {
		return c.counter == isa.DSCnt || c.counter == isa.LGKMCnt && c.class == isa.LDS || class == isa.LDS
	}},
	{BoundBarrier, "waves spent %.1f %% of their time at barriers", func(_ cell, class isa.Class) bool { return class == isa.Barrier }},
	{BoundMatrix, "waves spent %.1f %% of their time at matrix instructions that could not issue", func(_ cell, class isa.Class) bool { return class == isa.Matrix }},
	{BoundIssue, "waves spent %.1f %% of their time at arithmetic that could not issue", func(_ cell, class isa.Class) bool {
		return class == isa.VALU || class == isa.SALU || class == isa.Nop || class == isa.Branch
	}},
}

// boundShares are the shares of traceBounds in the waves' time: latency and idle of all instructions.
func (t *Trace) boundShares() []float64 {
	sums := make([]int64, len(traceBounds))
	for _, r := range t.rows {
		r.kinds(func(c cell, _ string, stall int64) {
			for i, b := range traceBounds {
				if b.is(c, r.Class) {
					sums[i] = plus(sums[i], stall)
					return
				}
			}
		})
	}
	out := make([]float64, len(sums))
	for i, s := range sums {
		if p := pct(s, plus(t.totals.Latency, t.totals.Idle)); p != nil {
			out[i] = *p
		}
	}
	return out
}

// BoundOf decides the bound from a trace, counters, or both; either may be nil.
func BoundOf(t *Trace, c *Counters) Bound {
	var peaks string
	var missing []string
	if c != nil {
		for _, id := range []string{"mfma_busy_pct", "memory_gbps", "wait_pct"} {
			missing = append(missing, c.metricNamed(id).Missing...)
		}
		slices.Sort(missing)
		missing = slices.Compact(missing)
		for _, r := range counterBounds {
			if x := c.metricNamed(r.metric).Value; x != nil && *x >= r.at && (r.withTrace || t == nil) {
				return Bound{Kind: r.kind, Basis: fmt.Sprintf(r.says, *x), From: "counters", Share: x, Missing: missing}
			}
		}
		peaks = "; matrix cores " + percentOr(c.metricNamed("mfma_busy_pct").Value) + ", memory " + percentOr(c.metricNamed("memory_pct").Value)
	}
	if t == nil {
		return Bound{Kind: BoundUnknown, Basis: "no counter decides" + peaks, From: "counters", Missing: missing}
	}
	shares, first := t.boundShares(), 0
	for i := range shares {
		if shares[i] > shares[first] {
			first = i
		}
	}
	b := Bound{Kind: traceBounds[first].kind, Basis: fmt.Sprintf(traceBounds[first].says, shares[first]) + peaks, From: "trace", Share: &shares[first], Missing: missing}
	if shares[first] < leadPct {
		b.Kind, b.Basis = BoundUnknown, fmt.Sprintf("no reason takes a quarter of the waves' time; the largest: "+traceBounds[first].says, shares[first])+peaks
	}
	return b
}

func percentOr(x *float64) string {
	if x == nil {
		return "not known"
	}
	return fmt.Sprintf("%.1f %% busy", *x)
}
