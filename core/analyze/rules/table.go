package rules

import (
	"fmt"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// The units of figures. unitTime is of the waves' time: latency and idle of all instructions.
const (
	unitTime  = "percent of the waves' time"
	unitPct   = "percent"
	unitRatio = "ratio"
	unitCount = "executions"
	unitWaves = "waves a CU"
)

// Where the advice stands. The guide is docs/kernel_tuning_guide.md of FlyDSL.
const (
	guideLatency  = "FlyDSL kernel tuning guide, section 0 (hiding latency)"
	guidePrefetch = "FlyDSL kernel tuning guide, section 4 (data prefetch pipeline)"
	guideLDS      = "FlyDSL kernel tuning guide, section 3 (LDS bank-conflict swizzle)"
	guideSchedule = "FlyDSL kernel tuning guide, section 5 (MFMA instruction scheduling)"
	guideOccupied = "FlyDSL kernel tuning guide, section 7 (register budget and occupancy)"
	guideSymptoms = "FlyDSL kernel tuning guide, section 9 (trace symptoms)"
	guideCheck    = "FlyDSL kernel tuning guide, section 11 (checklist)"
	skillTrace    = "FlyDSL skill kernel-trace-analysis, step 5"
	isaCounters   = "AMD CDNA 3 ISA reference, memory wait counters: VM_CNT counts loads and stores"
	llvmKernarg   = "LLVM AMDGPU usage, preloaded kernel arguments"
)

var (
	vectorWaits = []string{"vmcnt", "loadcnt", "samplecnt", "bvhcnt"}
	storeWaits  = []string{"vmcnt", "vscnt", "storecnt"}
	sharedWaits = []string{"lgkmcnt", "dscnt"}
	scalarWaits = []string{"lgkmcnt", "kmcnt"}
	// The classes of what vector waits wait for, where they are no stores; "" where the trace does not say.
	notStores = []isa.Class{isa.VMEMLoad, isa.Image, isa.Flat, isa.Scratch, isa.VMEMAtomic, isa.Cache, ""}
)

// At a limit of the hardware other waves work while one stalls, so that the time of waves does not matter; what makes the work itself larger does.
var (
	limits   = []string{analyze.BoundBandwidth, analyze.BoundMatrix}
	computes = []string{analyze.BoundMatrix}
	latency  = []string{analyze.BoundMemory, analyze.BoundLDS, analyze.BoundWaiting}
)

// table is all rules. A new one is a new row and a test.
var table = []rule{
	{
		id: "load_latency", title: "waves wait for loads from memory", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(loadWaits), where: loadWaits,
		advice: "Issue the loads of the next iteration before the data of this one is used: loop-carried prefetch (a runtime loop with init=), double-buffered LDS, or an async copy into LDS. More reuse a byte (a larger tile_k) and more resident waves hide the rest.",
		source: guidePrefetch,
	},
	{
		id: "store_before_load", title: "waves wait for stores that stand before loads", unit: unitTime, threshold: 5, moot: limits,
		measure: stallOf(storeWait), where: storeWait,
		advice: "On gfx9 one counter counts loads and stores, so a wait for a load waits for every store that was issued before it. Issue the loads first, or all stores at the end.",
		source: isaCounters,
	},
	{
		id: "scalar_load_latency", title: "waves wait for scalar loads", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(scalarWait), where: scalarWait,
		advice: "Kernel arguments and descriptors are read from memory when a wave begins. Let a workgroup do more work (persistent or larger tiles), pass fewer arguments, or read them together and do independent work before their first use.",
		source: llvmKernarg,
	},
	{
		id: "lds_latency", title: "waves wait for LDS", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(ldsWait), where: ldsWait,
		advice: "Put independent work between LDS accesses and their use: issue all reads of a step before its matrix instructions, move writes to the end of the iteration, read the first pack right after the barrier.",
		source: guideLatency,
	},
	{
		id: "lds_conflicts", title: "LDS accesses collide on banks", unit: unitPct, threshold: 10, moot: computes,
		measure: metric("lds_conflict_pct", "of the cycles of LDS are bank conflicts"), where: ldsIssue,
		advice: "Swizzle the column by the row (XOR at 16 bytes) in the same way where LDS is written and where it is read, or pad the rows. gfx942 has 32 banks, gfx950 64: a mask for one may not fit the other.",
		source: guideLDS,
	},
	{
		id: "lds_issue", title: "LDS instructions cannot issue", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(ldsIssue), where: ldsIssue,
		advice: "The queue of LDS is full: bank conflicts (see the counters), narrow accesses, or too many in a row. Use 128-bit accesses, swizzle, and spread them between matrix instructions (sched_dsrd, sched_dswr).",
		source: guideSymptoms,
	},
	{
		id: "barrier", title: "waves wait for each other at barriers", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(barrier), where: barrier,
		advice: "Use fewer barriers (double-buffered LDS needs one an iteration), give the waves of a workgroup the same work, and issue the next loads before the barrier: the wait is free time.",
		source: guideSymptoms,
	},
	{
		id: "memory_issue", title: "memory instructions cannot issue", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(memoryIssue), where: memoryIssue,
		advice: "The queue of vector memory is full. Spread loads between matrix instructions (sched_vmem), use fewer and wider accesses (dwordx4), and let neighbouring lanes access neighbouring addresses.",
		source: skillTrace,
	},
	{
		id: "matrix_dependency", title: "matrix instructions wait for each other", unit: unitTime, threshold: 10, moot: limits,
		measure: stallOf(matrix), where: matrix,
		advice: "A matrix instruction that adds to the result of the last one waits for it. Go round several independent accumulators and put loads and LDS accesses between (hot_loop_scheduler).",
		source: guideSchedule,
	},
	{
		id: "nops", title: "waves pass time in s_nop and the like", unit: unitTime, threshold: 5, moot: limits,
		measure: stallOf(nops), where: nops,
		advice: "The compiler fills the time between dependent instructions with s_nop. Give it independent ones: more accumulators, another order (sched_group hints), a larger tile.",
		source: guideSymptoms,
	},
	{
		id: "arithmetic_issue", title: "arithmetic cannot issue", unit: unitTime, threshold: 25, moot: limits,
		measure: stallOf(arithmetic), where: arithmetic,
		advice: "Vector and scalar arithmetic waits for a free unit or for operands. Move address arithmetic out of the loop, use packed instructions (v_pk_*), and let fewer waves share a SIMD if each has enough independent work.",
		source: guideCheck,
	},
	{
		id: "spills", title: "registers are spilled to memory", unit: unitCount, threshold: 1, severity: High,
		measure: func(in Input) measured {
			w := in.Trace.Work()
			return measured{value: float64(w.Scratch), evidence: fmt.Sprintf("%d executed accesses to private memory", w.Scratch)}
		},
		where:  analyze.Selection{Kinds: []string{string(isa.Scratch)}},
		advice: "Use fewer registers: a smaller tile, one buffer less, an async copy that bypasses registers, lds_stage=1 for wide tiles. Forcing a register count makes it worse; waves_per_eu states the target.",
		source: guideOccupied,
	},
	{
		id: "narrow_loads", title: "loads are narrow", unit: unitPct, threshold: 50, severity: Medium, moot: computes,
		measure: func(in Input) measured {
			w := in.Trace.Work()
			if w.Loads == 0 {
				return measured{}
			}
			_, time := in.Trace.StallOf(analyze.Selection{Kinds: append(append([]string{}, loadWaits.Kinds...), memoryIssue.Kinds...), On: notStores})
			if time < mediumPct { // they cost nothing
				return measured{}
			}
			x := 100 * float64(w.Narrow) / float64(w.Loads)
			return measured{value: x, evidence: fmt.Sprintf("%.1f %% of the executed loads move at most 4 bytes a lane, and memory takes %.1f %% of the waves' time", x, time)}
		},
		advice: "Load 16 bytes a lane (buffer_load_dwordx4): a vectorised copy atom such as BufferCopy128b.",
		source: guideLatency,
	},
	{
		id: "partial_lines", title: "reads fetch parts of cache lines", unit: unitPct, threshold: 10, severity: Medium, moot: computes,
		measure: metric("read_32b_pct", "of the reads from memory fetch 32 bytes"),
		advice:  "Accesses are scattered or not aligned. Let neighbouring lanes read neighbouring addresses and align rows to 128 bytes.",
		source:  skillTrace,
	},
	{
		id: "l2_misses", title: "matrix tiles are read again from memory", unit: unitPct, threshold: 50, below: true, severity: Medium, moot: computes,
		measure: func(in Input) measured {
			if in.Trace.Work().Matrix == 0 {
				return measured{value: 100} // streaming kernels read each byte once
			}
			return metric("l2_hit_pct", "of the requests hit in L2")(in)
		},
		advice: "Workgroups that share tiles run on different XCDs, each with an L2 of its own. Swizzle the grid so that neighbours run on one XCD (xcd_swizzle) and reuse what is in L2.",
		source: guideSymptoms,
	},
	{
		id: "low_occupancy", title: "few waves are resident", unit: unitWaves, threshold: 8, below: true, severity: Medium, only: latency,
		measure: occupancy,
		advice:  "More resident waves hide more latency: cut what limits them (registers: fewer buffers, waves_per_eu; LDS: smaller or fewer tiles; the grid: more workgroups). Where each wave has enough independent work, fewer are fine.",
		source:  guideOccupied,
	},
	{
		id: "grid_too_small", title: "the grid does not fill the GPU", unit: unitRatio, threshold: 1, below: true, severity: High,
		measure: func(in Input) measured {
			if in.Workgroups <= 0 || in.CUs <= 0 {
				return measured{why: "the grid or the GPU's CUs are not known"}
			}
			x := float64(in.Workgroups) / float64(in.CUs)
			return measured{value: x, evidence: fmt.Sprintf("%d workgroups for %d CUs", in.Workgroups, in.CUs)}
		},
		advice: "CUs without a workgroup do nothing. Use smaller tiles, split K among workgroups, or a larger problem.",
		source: guideCheck,
	},
	{
		id: "uneven_waves", title: "some waves take much longer than others", unit: unitRatio, threshold: 1.3, severity: Medium,
		measure: func(in Input) measured {
			s := in.Trace.Spread()
			if s == nil || s.Imbalance == nil || s.Waves < 2 {
				return measured{why: "fewer than two waves were read"}
			}
			return measured{value: *s.Imbalance, evidence: fmt.Sprintf("the longest of %d waves took %d cycles, the median %d", s.Waves, s.Max, s.Median)}
		},
		advice: "Give the waves the same work, or let those with most begin first. Compare the shader engines too: a CU that starts late or shares its memory channel takes longer with the same work.",
		source: guideCheck,
	},
	{
		id: "matrix_share", title: "the hot code has few matrix instructions", unit: unitPct, threshold: 40, below: true, severity: Low, moot: computes,
		measure: func(in Input) measured {
			w := in.Trace.Work()
			if w.Matrix == 0 {
				return measured{value: 100} // no matrix kernel
			}
			x := 100 * float64(w.Matrix) / float64(w.Hot)
			return measured{value: x, evidence: fmt.Sprintf("%.1f %% of what the hot code executes", x)}
		},
		advice: "Cut what is not a matrix instruction in the loop: addresses computed beforehand, wider loads and LDS accesses, larger tiles.",
		source: guideCheck,
	},
}

// What the rules on time choose.
var (
	loadWaits   = analyze.Selection{Kinds: vectorWaits, On: notStores}
	storeWait   = analyze.Selection{Kinds: storeWaits, On: []isa.Class{isa.VMEMStore}}
	scalarWait  = analyze.Selection{Kinds: scalarWaits, On: []isa.Class{isa.SMEM, isa.Message}}
	ldsWait     = analyze.Selection{Kinds: sharedWaits, On: []isa.Class{isa.LDS}}
	ldsIssue    = analyze.Selection{Kinds: []string{string(isa.LDS)}}
	barrier     = analyze.Selection{Kinds: []string{string(isa.Barrier)}}
	memoryIssue = analyze.Selection{Kinds: []string{string(isa.VMEMLoad), string(isa.VMEMStore), string(isa.VMEMAtomic), string(isa.Image), string(isa.Flat)}}
	matrix      = analyze.Selection{Kinds: []string{string(isa.Matrix)}}
	nops        = analyze.Selection{Kinds: []string{string(isa.Nop)}}
	arithmetic  = analyze.Selection{Kinds: []string{string(isa.VALU), string(isa.SALU)}}
)

// stallOf measures the time of waves that a part of the stall takes.
func stallOf(s analyze.Selection) func(in Input) measured {
	return func(in Input) measured {
		stall, share := in.Trace.StallOf(s)
		return measured{value: share, evidence: fmt.Sprintf("%d cycles of stall, %.2f %% of the waves' time", stall, share)}
	}
}

// metric takes a metric of the counters.
func metric(id, says string) func(in Input) measured {
	return func(in Input) measured {
		if in.Counters == nil {
			return measured{why: "no counters were collected"}
		}
		for _, m := range in.Counters.Metrics {
			if m.ID != id {
				continue
			}
			switch {
			case m.Value != nil:
				return measured{value: *m.Value, evidence: fmt.Sprintf("%.2f %% %s", *m.Value, says)}
			case len(m.Missing) > 0:
				return measured{why: fmt.Sprintf("the counters %v were not collected", m.Missing)}
			}
			return measured{why: m.Why}
		}
		return measured{why: "no counters were collected"}
	}
}

// occupancy is the mean of resident waves on a CU: by the counters over the whole GPU, else by the trace.
func occupancy(in Input) measured {
	limit := ""
	if in.MaxWaves > 0 {
		limit = fmt.Sprintf("; the kernel's resources allow %d (limited by %s)", in.MaxWaves, in.Limiter)
	}
	if in.Counters != nil {
		for _, m := range in.Counters.Metrics {
			if m.ID == "occupancy_waves" && m.Value != nil {
				return measured{value: *m.Value, evidence: fmt.Sprintf("%.2f waves on a CU over time, by the counters%s", *m.Value, limit)}
			}
		}
	}
	if r := in.Trace.Occupancy(); r != nil && r.Mean != nil {
		return measured{value: *r.Mean, evidence: fmt.Sprintf("%.2f waves on a CU over time, %d at most, by the trace%s", *r.Mean, r.Peak, limit)}
	}
	return measured{why: "neither counters nor occupancy.json say how many waves were resident"}
}
