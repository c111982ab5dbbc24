package tile

import (
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// rowOperator is the arithmetic of one kind of kernel that works along rows or element by element.
type rowOperator struct {
	name string
	// all are words that the kernel's name must have.
	all []string
	// reads and writes are tensors of the problem's size; vectors are inputs of one row's length.
	reads, writes, vectors float64
	// ops are operations an element, a transcendental counted as one.
	ops float64
}

// The first row whose words the kernel's name has is taken; the last has none and fits any.
var rowOperators = []rowOperator{
	{"softmax backward", []string{"softmax", "bwd"}, 2, 1, 0, 4},      // y*dy, sum, subtract, scale
	{"softmax", []string{"softmax"}, 1, 1, 0, 5},                      // max, subtract, exp, sum, scale
	{"fused add and rmsnorm", []string{"add", "rmsnorm"}, 2, 2, 1, 5}, // and writes the residual
	{"rmsnorm backward", []string{"rmsnorm", "bwd"}, 2, 1, 1, 8},
	{"rmsnorm", []string{"rmsnorm"}, 1, 1, 1, 4}, // square, sum, scale, weight
	{"fused add and layernorm", []string{"add", "layernorm"}, 2, 2, 2, 8},
	{"layernorm backward", []string{"layernorm", "bwd"}, 2, 1, 1, 10},
	{"layernorm", []string{"layernorm"}, 1, 1, 2, 7}, // sum, subtract, square, sum, scale, weight, bias
	{"quantisation", []string{"quant"}, 1, 1, 0, 3},  // abs, max, scale
	{"a reduction along rows, one read and one write", nil, 1, 1, 0, 5},
}

var flatOperators = []rowOperator{
	{"gated activation", []string{"silu", "mul"}, 2, 1, 0, 5}, // exp, add, divide, two multiplies
	{"vector add", []string{"add"}, 2, 1, 0, 1},
	{"multiply", []string{"mul"}, 2, 1, 0, 1},
	{"copy", []string{"copy"}, 1, 1, 0, 0},
	{"quantisation", []string{"quant"}, 1, 1, 0, 2}, // scale, round
	{"an elementwise function, one read and one write", nil, 1, 1, 0, 2},
}

func pickRow(table []rowOperator, p problem) rowOperator {
	for _, o := range table {
		if allWords(p, o.all) {
			return o
		}
	}
	return table[len(table)-1]
}

func allWords(p problem, list []string) bool {
	for _, w := range list {
		if !p.has(w) {
			return false
		}
	}
	return true
}

const (
	rowThreads = 256
	// vectorBytes is the widest global load of a lane.
	vectorBytes = 16
	// keptElements is how many elements of a row a lane keeps in registers; longer rows are read again.
	keptElements = 64
)

// rows is an operator that reduces along N for each of M rows: softmax, norms.
type rows struct {
	rowOperator
	m, n    float64
	in, out element
}

func newRows(p problem) rows {
	return rows{pickRow(rowOperators, p), float64(p.dim("M")), float64(p.dim("N")), p.in, p.out}
}

func (o rows) describe(r *ProblemReading) {
	r.Operator = o.name
	if len(o.all) == 0 {
		r.Assumed = append(r.Assumed, "the kernel's name says no operator: "+o.name+" is counted")
	}
}

// pipe is the vector ALU: these kernels have no matrix instructions. f64 is computed as such, all else in f32.
func (o rows) pipe() (string, string) { return vectorPipe, vectorType(o.in) }

func vectorType(in element) string {
	if in.compute == "f64" {
		return "f64"
	}
	return "f32"
}

func (o rows) whole() work { return o.of(o.m) }

// of is the work of so many rows.
func (o rows) of(m float64) work {
	return work{
		bytes: o.reads*bytesOf(m*o.n, o.in.aBits) + o.writes*bytesOf(m*o.n, o.out.aBits) + o.vectors*bytesOf(o.n, o.in.aBits),
		ops:   o.ops * m * o.n,
	}
}

func (o rows) tile(t Tile) work { return o.of(float64(t.BM)) }

func (o rows) steps(Tile) float64 { return 1 }

func (o rows) clip(t Tile) Tile {
	t.BM, t.BN = int(min(float64(t.BM), o.m)), int(min(float64(t.BN), o.n))
	return t
}

func (o rows) complete(t Tile, _ soc.SoC) Tile { return t }

func (o rows) workgroups(lead float64, t Tile) float64 { return ceilDiv(lead, float64(t.BM)) }

func (o rows) leading() (string, float64) { return "M", o.m }

func (o rows) threads(Tile) int { return rowThreads }

// lds exchanges one partial result a wave for each of the two passes.
func (o rows) lds(Tile) int64 { return 2 * rowThreads / 64 * 8 }

func (o rows) vgprs(t Tile) int {
	kept := int(min(keptElements, ceilDiv(float64(t.BM)*o.n, rowThreads)))
	return kept*registersOf(vectorType(o.in)) + baseVGPRs
}

func registersOf(dtype string) int {
	if dtype == "f64" {
		return 2
	}
	return 1
}

// candidates has one tile: a row for each workgroup, or for each wave where a wave's loads cover the row. BN is what all
// lanes load at a time.
func (o rows) candidates(soc.SoC) []Tile {
	perWave := 64 * vectorElements(o.in)
	t := Tile{BM: 1, BN: int(min(powerOfTwo(o.n), stepElements(o.in))), BK: 1, Buffers: 1}
	if o.n <= float64(perWave) && o.m > 1 {
		t.BM = int(min(rowThreads/64, powerOfTwo(o.m)))
	}
	return []Tile{t}
}

func (o rows) why(t Tile, s soc.SoC) string {
	text := fmt.Sprintf("one row a workgroup, kept in registers: %s of %d CUs", rounds(o.workgroups(o.m, t), s.CUs), s.CUs)
	switch {
	case t.BM > 1:
		text = fmt.Sprintf("a wave's loads cover a row of %.0f, so each of %d waves has one: %s of %d CUs", o.n, t.BM, rounds(o.workgroups(o.m, t), s.CUs), s.CUs)
	case o.n > rowThreads*keptElements:
		text += fmt.Sprintf("; a row of %.0f does not fit the registers and is read more than once, which the compulsory traffic does not count", o.n)
	}
	return text
}

func (o rows) misfit(t Tile) string {
	if t.BK > 1 || t.Buffers > 2 {
		return "a kernel along rows has no depth: bk and buffers have no effect on these figures"
	}
	return ""
}

// flat is an operator on M*N elements that does not look at rows.
type flat struct {
	rowOperator
	m, n    float64
	in, out element
}

func newFlat(p problem) flat {
	return flat{pickRow(flatOperators, p), float64(p.dim("M")), float64(p.dim("N")), p.in, p.out}
}

func (o flat) describe(r *ProblemReading) { rows(o).describe(r) }

func (o flat) pipe() (string, string) { return vectorPipe, vectorType(o.in) }

func (o flat) whole() work { return rows(o).whole() }

func (o flat) tile(t Tile) work {
	one := rows{o.rowOperator, 1, float64(t.BM) * float64(t.BN), o.in, o.out}
	return one.whole()
}

func (o flat) steps(Tile) float64 { return 1 }

func (o flat) clip(t Tile) Tile {
	t.BM = int(min(float64(t.BM), o.m*o.n))
	t.BN = int(min(float64(t.BN), math.Ceil(o.m*o.n/float64(t.BM))))
	return t
}

func (o flat) complete(t Tile, _ soc.SoC) Tile { return t }

func (o flat) workgroups(lead float64, t Tile) float64 {
	return ceilDiv(lead*o.n, float64(t.BM)*float64(t.BN))
}

func (o flat) leading() (string, float64) { return "M", o.m }

func (o flat) threads(Tile) int { return rowThreads }

func (o flat) lds(Tile) int64 { return 0 }

// vgprs holds what a lane has in flight, 16 bytes a tensor at a time.
func (o flat) vgprs(t Tile) int {
	perLane := min(ceilInt(t.BM*t.BN, rowThreads), vectorElements(o.in))
	return ceilInt(perLane*o.in.aBits, 32)*int(o.reads+o.writes) + 4
}

// candidates is a full-width load for each lane, narrower while the grid leaves CUs idle.
func (o flat) candidates(s soc.SoC) []Tile {
	bn := int(stepElements(o.in))
	for bn > rowThreads && ceilDiv(o.m*o.n, float64(bn)) < float64(s.CUs) {
		bn /= 2
	}
	return []Tile{{BM: 1, BN: bn, BK: 1, Buffers: 1}}
}

func (o flat) why(t Tile, s soc.SoC) string {
	return fmt.Sprintf("%d elements a lane and load of at most %d bytes: %s of %d CUs", t.BN/rowThreads, vectorBytes, rounds(o.workgroups(o.m, t), s.CUs), s.CUs)
}

func (o flat) misfit(t Tile) string { return rows(o).misfit(t) }

// vectorElements is how many elements the widest load of a lane brings, a power of two.
func vectorElements(in element) int {
	return lineElements(element{aBits: in.aBits}) * vectorBytes / 128
}

// stepElements is what a workgroup loads at a time.
func stepElements(in element) float64 {
	return min(float64(rowThreads*vectorElements(in)), maxTileSide)
}

// powerOfTwo rounds up.
func powerOfTwo(x float64) float64 { return math.Exp2(math.Ceil(math.Log2(x))) }
