package tile

import (
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// Grid is how the workgroups fill the GPU.
type Grid struct {
	Workgroups       int64  `json:"workgroups,omitempty"`
	WorkgroupsSource string `json:"workgroups_source,omitempty" jsonschema:"enum=estimated,enum=measured"`
	TargetCUs        int    `json:"target_cus,omitempty" jsonschema_description:"CUs to fill: one workgroup each makes a full wave."`
	FullWaves        *int64 `json:"full_waves,omitempty"`
	Tail             *int64 `json:"tail,omitempty" jsonschema_description:"Workgroups left for the last wave."`
	// TailVerdict is one of saturated, exact-fit, tail-underfill-Npct, underfilled-Npct.
	TailVerdict string `json:"tail_verdict,omitempty" jsonschema:"pattern=^(saturated|exact-fit|(tail-underfill|underfilled)-[0-9]+pct)$" jsonschema_description:"exact-fit: one workgroup for each CU; saturated: several waves of which under 2% idles; tail-underfill-Npct: N% of all waves' CU time idles in the last; underfilled-Npct: N% of the CUs have nothing."`
	ATT         *ATT   `json:"att,omitempty"`
}

// ATT is how likely a trace of the grid with the default plan holds a wave.
type ATT struct {
	Verdict          string `json:"verdict" jsonschema:"enum=likely,enum=unlikely,enum=none"`
	Basis            string `json:"basis"`
	TargetCU         int    `json:"target_cu"`
	ShaderEngineMask string `json:"shader_engine_mask" jsonschema_description:"What att_shader_engine_mask=auto takes for this grid."`
	MaskWhy          string `json:"mask_why"`
	LeadingDim       string `json:"leading_dim" jsonschema_description:"Axis that grows the grid."`
	MinLeadingDim    int64  `json:"min_leading_dim,omitempty" jsonschema_description:"Smallest extent of the leading axis from which a wave is likely to be traced with this tile; absent where none is."`
	MinWorkgroups    int64  `json:"min_workgroups,omitempty" jsonschema_description:"The same in workgroups."`
}

// grid counts the workgroups and judges them.
func (a *advisor) grid() {
	g := &a.data.Grid
	name, lead := a.op.leading()
	t := a.data.Evaluated.Tile
	switch {
	case a.in.MeasuredWorkgroups > 0:
		g.Workgroups, g.WorkgroupsSource = a.in.MeasuredWorkgroups, "measured"
	case t.BM > 0:
		g.Workgroups, g.WorkgroupsSource = count(a.op.workgroups(lead, t)), "estimated"
	default:
		return
	}
	if !a.soc.Known() {
		return
	}
	cus := int64(a.soc.CUs)
	full, tail := g.Workgroups/cus, g.Workgroups%cus
	g.TargetCUs, g.FullWaves, g.Tail = a.soc.CUs, &full, &tail
	g.TailVerdict = tailVerdict(g.Workgroups, cus)
	mask, why := soc.SEMaskFor(g.Workgroups, a.soc)
	p := soc.EstimatePlacement(g.Workgroups, a.soc, soc.DefaultTargetCU, mask)
	g.ATT = &ATT{
		Verdict: p.Verdict, Basis: p.Basis, TargetCU: soc.DefaultTargetCU, ShaderEngineMask: fmt.Sprintf("0x%x", mask), MaskWhy: why,
		LeadingDim: name, MinWorkgroups: soc.MinWorkgroupsLikely(a.soc, soc.DefaultTargetCU),
	}
	if g.ATT.MinWorkgroups > 0 {
		g.ATT.MinLeadingDim = a.minLeading(lead, t, g.ATT.MinWorkgroups)
	}
}

// tailVerdict judges how the grid divides among the CUs.
func tailVerdict(workgroups, cus int64) string {
	full, tail := workgroups/cus, workgroups%cus
	if workgroups < cus {
		return fmt.Sprintf("underfilled-%dpct", max(1, percentOf(cus-workgroups, cus)))
	}
	if full == 1 && tail == 0 {
		return "exact-fit"
	}
	waste := 0.0
	if tail > 0 {
		waste = float64(cus-tail) / float64(cus) / float64(full+1)
	}
	if waste < 0.02 {
		return "saturated"
	}
	return fmt.Sprintf("tail-underfill-%dpct", int64(math.Round(100*waste)))
}

func percentOf(n, of int64) int64 { return int64(math.Round(100 * float64(n) / float64(of))) }

// minLeading is the smallest extent of the leading axis whose grid has so many workgroups with this tile; 0 for none. A
// measured grid is taken to grow in proportion.
func (a *advisor) minLeading(lead float64, t Tile, need int64) int64 {
	grid := func(n int64) float64 { return a.op.workgroups(float64(n), t) }
	if a.in.MeasuredWorkgroups > 0 {
		grid = func(n int64) float64 { return math.Floor(float64(a.in.MeasuredWorkgroups) * float64(n) / lead) }
	}
	low, high := int64(1), int64(maxExtent)
	if grid(high) < float64(need) {
		return 0
	}
	for low < high {
		mid := low + (high-low)/2
		if grid(mid) >= float64(need) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// count turns a number of workgroups into a whole one; the problem's size is bounded, so it always fits.
func count(x float64) int64 { return int64(min(math.Ceil(x), 1<<62)) }
