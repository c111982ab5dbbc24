package tile

import (
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// experts are the two GEMMs of a mixture of experts: T tokens, each to k of E experts, uniformly. Stage 1 makes gate and
// up (D to 2I), stage 2 goes back (I to D).
type experts struct {
	t, e, k, d, i float64
	stage         int // 1, 2, or 0 for both
	assumed       []string
	in, out       element
}

func newExperts(p problem) experts {
	x := experts{t: float64(p.dim("T")), e: float64(p.dim("E")), k: float64(p.dim("k")), d: float64(p.dim("D")), in: p.in, out: p.out}
	x.i = float64(p.dimOr("I", p.dim("D")))
	if _, ok := p.lookup("I"); !ok {
		x.assumed = append(x.assumed, "I (intermediate size) is taken to be D")
	}
	switch {
	case p.has("stage1", "gemm1"):
		x.stage = 1
	case p.has("stage2", "gemm2"):
		x.stage = 2
	default:
		x.assumed = append(x.assumed, "the roofline is that of both stages, tile and grid are stage 1's")
	}
	return x
}

func (x experts) describe(r *ProblemReading) {
	r.Operator = [...]string{"moe gemm, both stages", "moe gemm, stage 1", "moe gemm, stage 2"}[x.stage]
	r.PerExpert = round3(x.tokensPerExpert(x.t))
	r.Assumed = append(r.Assumed, x.assumed...)
}

func (x experts) pipe() (string, string) { return matrixPipe, x.in.compute }

// active is how many experts have any token: each of T tokens passes one over with the chance 1 - k/E.
func (x experts) active(tokens float64) float64 {
	return x.e * -math.Expm1(tokens*math.Log1p(-x.k/x.e))
}

// tokensPerExpert is the mean over the experts that have any.
func (x experts) tokensPerExpert(tokens float64) float64 { return tokens * x.k / x.active(tokens) }

// outCols and depth are N and K of the stage that is tiled.
func (x experts) outCols() float64 {
	if x.stage == 2 {
		return x.d
	}
	return 2 * x.i
}

func (x experts) depth() float64 {
	if x.stage == 2 {
		return x.i
	}
	return x.d
}

func (x experts) whole() work {
	var w work
	rows := x.t * x.k
	if x.stage != 2 {
		w.ops += 2 * rows * x.d * 2 * x.i
		w.bytes += bytesOf(x.t*x.d, x.in.aBits) + bytesOf(x.active(x.t)*2*x.i*x.d, x.in.wBits) + bytesOf(rows*x.i, x.out.aBits)
	}
	if x.stage != 1 {
		between := x.in.aBits // stage 2 reads what it was given; of both stages, what stage 1 wrote
		if x.stage == 0 {
			between = x.out.aBits
		}
		w.ops += 2 * rows * x.i * x.d
		w.bytes += bytesOf(rows*x.i, between) + bytesOf(x.active(x.t)*x.i*x.d, x.in.wBits) + bytesOf(x.t*x.d, x.out.aBits)
	}
	return w
}

func (x experts) tile(t Tile) work { return gemmTile(t, x.depth(), x.in, x.out) }

func (x experts) steps(t Tile) float64 { return ceilDiv(x.depth(), float64(t.BK)) }

func (x experts) clip(t Tile) Tile {
	t.BM = int(min(float64(t.BM), math.Ceil(x.tokensPerExpert(x.t))))
	t.BN = int(min(float64(t.BN), x.outCols()))
	return t
}

func (x experts) complete(t Tile, _ soc.SoC) Tile { return t }

// workgroups tiles each active expert's tokens by itself.
func (x experts) workgroups(lead float64, t Tile) float64 {
	return math.Ceil(x.active(lead)) * ceilDiv(x.tokensPerExpert(lead), float64(t.BM)) * ceilDiv(x.outCols(), float64(t.BN))
}

func (x experts) leading() (string, float64) { return "T", x.t }

func (x experts) threads(t Tile) int { return gemmThreads(t) }

func (x experts) lds(t Tile) int64 { return gemmLDS(t, x.in) }

func (x experts) vgprs(t Tile) int { return gemmVGPRs(t, x.in) }

func (x experts) candidates(soc.SoC) []Tile {
	return gemmCandidates(x.tokensPerExpert(x.t), x.outCols(), x.depth(), x.in)
}

func (x experts) why(t Tile, s soc.SoC) string {
	return fmt.Sprintf("about %.0f of %.0f experts have tokens, %.1f each, so a tile is %d rows high: %s of %d CUs",
		math.Ceil(x.active(x.t)), x.e, x.tokensPerExpert(x.t), t.BM, rounds(x.workgroups(x.t, t), s.CUs), s.CUs)
}

func (x experts) misfit(t Tile) string { return matrixMisfit(t) }

// routing is the part of a mixture of experts that moves tokens to experts: gating by scores [T,E], or sorting of the
// T*k choices. It has no GEMM.
type routing struct {
	flat
	t, e, k float64
	gating  bool
}

// pairBytes is an expert's index and its weight, 4 bytes each.
const pairBytes = 8

func newRouting(p problem) routing {
	r := routing{t: float64(p.dim("T")), e: float64(p.dim("E")), k: float64(p.dim("k"))}
	r.gating = p.has("gating", "topk", "softmax")
	r.flat = flat{in: p.in, out: p.out, m: r.t, n: r.k}
	if r.gating {
		r.n = r.e
	}
	return r
}

func (r routing) describe(d *ProblemReading) {
	d.Operator = "sorting of tokens by expert"
	if r.gating {
		d.Operator = "gating: softmax over the experts and the k largest"
	}
}

func (r routing) whole() work {
	pairs := r.t * r.k
	if r.gating {
		return work{bytes: bytesOf(r.t*r.e, r.in.aBits) + pairBytes*pairs, ops: 5*r.t*r.e + r.k*r.t*r.e}
	}
	return work{bytes: 2 * pairBytes * pairs, ops: 4 * pairs}
}

// tile has the whole problem's ratio: nothing is reused between elements.
func (r routing) tile(t Tile) work {
	share, w := float64(t.BM)*float64(t.BN)/(r.m*r.n), r.whole()
	return work{share * w.bytes, share * w.ops}
}

func (r routing) vgprs(Tile) int { return baseVGPRs }

func (r routing) leading() (string, float64) { return "T", r.t }
