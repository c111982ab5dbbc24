package soc

import (
	"fmt"
	"math"
	"math/bits"
)

// This file holds all that is inferred about where workgroups run. AMD documents no placement; the HIP documentation calls
// it non-deterministic. The model: workgroup i goes to XCD i mod XCDs (AMD's guides to XCD swizzling rest on that), an
// XCD's workgroups spread evenly over its SEs, and those of an SE go to different CUs, no one knows which, until all of
// them are busy. Recorded occupancy.json files agree (placement_test.go). Hence only "likely", never "sure".

// The verdicts on whether a wave of the kernel will run on a traced CU.
const (
	VerdictLikely   = "likely"
	VerdictUnlikely = "unlikely"
	VerdictNone     = "none"
)

// DefaultTargetCU is the physical CU that is traced in each selected SE unless another is asked for. CU 0 and the last one
// are fused off in many SEs; 1 is there in most.
const DefaultTargetCU = 1

const (
	// likelyAt is the estimated chance from which "likely" is said: two to one.
	likelyAt = 2.0 / 3
	// sureEnough is the chance at which a narrower mask is preferred to a wider one.
	sureEnough = 0.95
	// severalTimes is how often a grid must fill the GPU for the SEs of one XCD to do.
	severalTimes = 2
)

// Placement is an estimate of whether a wave of the kernel runs on a traced CU.
type Placement struct {
	// Verdict is "likely", "unlikely" or "none" (no workgroup can reach a traced CU, by the model); empty without figures.
	Verdict string
	// Basis is the reasoning in one sentence, with its figures.
	Basis string
	// Chance is the model's estimate from 0 to 1. It is an inference, not a measurement.
	Chance float64
}

// EstimatePlacement judges a grid of so many workgroups for one physical CU of each SE that the mask selects. Bit of the
// mask: XCD * SEs an XCD + SE within it (aqlprofile's sqtt_builder); bits beyond the device's SEs count for nothing.
func EstimatePlacement(workgroups int64, s SoC, targetCU int, mask uint64) Placement {
	if !s.Known() || s.SEs() == 0 {
		return Placement{Basis: "the topology of this GPU is not known"}
	}
	mask &= allSEs(s.Topology)
	switch {
	case workgroups <= 0:
		return Placement{Verdict: VerdictNone, Basis: "the grid has no workgroups"}
	case mask == 0:
		return Placement{Verdict: VerdictNone, Basis: fmt.Sprintf("the mask selects none of the %d shader engines", s.SEs())}
	case targetCU < 0 || targetCU >= s.PhysicalCUsPerSE:
		return Placement{Verdict: VerdictNone, Basis: fmt.Sprintf("a shader engine has the physical CUs 0 to %d and CU %d is traced", s.PhysicalCUsPerSE-1, targetCU)}
	}
	miss, reached := 1.0, 0
	for se := range s.SEs() {
		if mask>>se&1 == 0 {
			continue
		}
		onXCD := workgroupsOnXCD(workgroups, se/s.SEsPerXCD, s.XCDs)
		if onXCD > 0 {
			reached++
		}
		busy := min(1, onXCD/float64(s.SEsPerXCD)/s.ActiveCUsPerSE())
		miss *= 1 - busy*s.presence(targetCU)
	}
	p := Placement{Chance: 1 - miss, Verdict: VerdictUnlikely}
	selected := bits.OnesCount64(mask)
	switch {
	case reached == 0:
		p.Chance, p.Verdict = 0, VerdictNone
		p.Basis = fmt.Sprintf("%d workgroups go to the first %d of %d XCDs one by one and the mask selects none of those", workgroups, workgroups, s.XCDs)
		return p
	case p.Chance >= likelyAt:
		p.Verdict = VerdictLikely
	}
	p.Basis = fmt.Sprintf("%d workgroups for %d CUs (%.2f a CU); CU %d of %d shader engines is traced; estimated chance %s if workgroups spread evenly over XCDs and shader engines (inferred: AMD documents no placement)",
		workgroups, s.CUs, float64(workgroups)/float64(s.CUs), targetCU, selected, percent(p.Chance))
	return p
}

// percent writes a chance without ever claiming certainty.
func percent(p float64) string {
	switch {
	case p > 0.99:
		return "over 99%"
	case p < 0.01:
		return "under 1%"
	}
	return fmt.Sprintf("%.0f%%", 100*p)
}

// workgroupsOnXCD is how many of the grid's workgroups an XCD gets, round-robin from XCD 0.
func workgroupsOnXCD(workgroups int64, xcd, xcds int) float64 {
	n := workgroups / int64(xcds)
	if int64(xcd) < workgroups%int64(xcds) {
		n++
	}
	return float64(n)
}

// presence is the chance that a physical CU of an SE is not fused off. On recorded MI350X cards (8 of 9 active) CU 0 and
// CU 8 are each missing in half of the SEs and those between are always there; other cards may differ.
func (s SoC) presence(cu int) float64 {
	if cu > 0 && cu < s.PhysicalCUsPerSE-1 {
		return 1
	}
	missing := float64(s.PhysicalCUsPerSE) - s.ActiveCUsPerSE()
	return math.Max(0, math.Min(1, 1-missing/2))
}

// SEMaskFor chooses the shader engines to trace for a grid, and says why: those of XCD 0 (0xf) where the grid fills the GPU
// several times; one of each XCD (0x11111111) where that is good enough; else all. The trace buffer is shared by the
// selected SEs, so the mask is no wider than it must be. For 0 workgroups (not known) one of each XCD is taken; without
// a topology 0xf.
func SEMaskFor(workgroups int64, s SoC) (mask uint64, why string) {
	if !s.Known() || s.SEs() == 0 {
		return 0xf, "the topology of this GPU is not known; the first four shader engines are traced"
	}
	first, each, all := seMask(s.SEsPerXCD, 1), oneOfEachXCD(s.Topology), allSEs(s.Topology)
	switch {
	case workgroups >= severalTimes*int64(s.CUs):
		return first, fmt.Sprintf("%d workgroups fill the %d CUs at least %d times: the %d shader engines of XCD 0 do", workgroups, s.CUs, severalTimes, bits.OnesCount64(first))
	case s.XCDs < s.SEsPerXCD:
		return all, fmt.Sprintf("the device has %d XCD: all its shader engines are traced", s.XCDs)
	case workgroups <= 0:
		return each, "the grid is not known: one shader engine of each XCD is traced"
	}
	if p := EstimatePlacement(workgroups, s, DefaultTargetCU, each); p.Chance >= sureEnough {
		return each, fmt.Sprintf("%d workgroups do not fill the %d CUs %d times: one shader engine of each XCD is traced", workgroups, s.CUs, severalTimes)
	}
	return all, fmt.Sprintf("%d workgroups leave most of the %d CUs idle: all %d shader engines are traced", workgroups, s.CUs, s.SEs())
}

// MinWorkgroupsLikely is the smallest grid for which the default plan (SEMaskFor, the given physical CU) is likely to trace
// a wave; 0 where no grid is, or without a topology.
func MinWorkgroupsLikely(s SoC, targetCU int) int64 {
	for n := int64(1); n <= severalTimes*int64(s.CUs); n++ {
		mask, _ := SEMaskFor(n, s)
		if EstimatePlacement(n, s, targetCU, mask).Verdict == VerdictLikely {
			return n
		}
	}
	return 0
}

// seMask selects n SEs, stride bits apart.
func seMask(n, stride int) uint64 {
	var mask uint64
	for i := range n {
		mask |= 1 << (i * stride)
	}
	return mask
}

func oneOfEachXCD(t Topology) uint64 { return seMask(t.XCDs, t.SEsPerXCD) }

func allSEs(t Topology) uint64 { return seMask(t.SEs(), 1) }
