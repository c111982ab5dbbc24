package sim

import "fmt"

// Where a workgroup runs is not documented by AMD. The model, an inference from recorded occupancy.json files on one
// MI350X and from the XCD swizzles that AMD's kernels use, stands in this file alone: workgroup i goes to XCC i mod 8;
// within an XCC round robin over its shader engines; within an engine round robin over the active CUs, beginning at one
// that varies. Nothing may be claimed about real hardware on its account.

// home is where one workgroup runs.
type home struct {
	workgroup int
	cu        int // physical id in the shader engine
}

// placement answers for one dispatch which workgroups a shader engine gets.
type placement struct {
	model      gpuModel
	workgroups int
	first      []int // by global SE: index into the active CUs of the engine's first workgroup
	avoid      int   // a CU that gets nothing; -1 for none
}

// place draws the first CUs. One seed places one kernel alike in every run, so that a recovery that follows the evidence
// can be shown; the fault "restless" draws anew for every job.
func (s *session) place(o *kernelObject) placement {
	p := placement{model: s.model, workgroups: o.workgroups(), avoid: -1}
	words := []string{"placement", o.kernel, fmt.Sprint(o.grid)}
	if s.set.has("restless", s.phase()) {
		words = append(words, fmt.Sprint(s.cfg.targetCU, s.cfg.seMask, s.cfg.ranges))
	}
	rnd := stream(s.set.Seed, words...)
	for se := range s.model.ses() {
		p.first = append(p.first, rnd.IntN(len(p.active(se))))
	}
	if s.set.has("empty_att", s.phase()) {
		p.avoid = s.cfg.targetCU
	}
	return p
}

// active lists the physical CUs of a global shader engine that are not harvested.
func (p placement) active(se int) []int { return p.model.activePerSE[se%p.model.sesPerXCC] }

// engine gives the workgroups of a global shader engine in dispatch order, at most limit.
func (p placement) engine(se, limit int) []home {
	xcc, local := se/p.model.sesPerXCC, se%p.model.sesPerXCC
	active := p.active(se)
	var out []home
	step := p.model.xccs * p.model.sesPerXCC
	for n, wg := 0, xcc+local*p.model.xccs; wg < p.workgroups && n < limit; n, wg = n+1, wg+step {
		at := (p.first[se] + n) % len(active)
		if active[at] == p.avoid {
			at = (at + 1) % len(active)
		}
		out = append(out, home{wg, active[at]})
	}
	return out
}
