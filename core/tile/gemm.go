package tile

import (
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// gemm is C[M,N] = A[M,K] B[K,N]: A in the activations' width, B in the weights', C written once.
type gemm struct {
	m, n, k float64
	in, out element
}

func (g gemm) describe(r *ProblemReading) { r.Operator = "gemm" }

func (g gemm) pipe() (string, string) { return matrixPipe, g.in.compute }

func (g gemm) whole() work {
	return work{
		bytes: bytesOf(g.m*g.k, g.in.aBits) + bytesOf(g.k*g.n, g.in.wBits) + bytesOf(g.m*g.n, g.out.aBits),
		ops:   2 * g.m * g.n * g.k,
	}
}

func (g gemm) tile(t Tile) work { return gemmTile(t, g.k, g.in, g.out) }

// gemmTile is the work of one tile over the whole depth: it reads its rows of A and columns of B once.
func gemmTile(t Tile, k float64, in, out element) work {
	bm, bn := float64(t.BM), float64(t.BN)
	return work{
		bytes: bytesOf(bm*k, in.aBits) + bytesOf(bn*k, in.wBits) + bytesOf(bm*bn, out.aBits),
		ops:   2 * bm * bn * k,
	}
}

func (g gemm) steps(t Tile) float64 { return ceilDiv(g.k, float64(t.BK)) }

func (g gemm) clip(t Tile) Tile {
	t.BM, t.BN = int(min(float64(t.BM), g.m)), int(min(float64(t.BN), g.n))
	return t
}

func (g gemm) complete(t Tile, _ soc.SoC) Tile { return t }

func (g gemm) workgroups(lead float64, t Tile) float64 {
	return ceilDiv(lead, float64(t.BM)) * ceilDiv(g.n, float64(t.BN))
}

func (g gemm) leading() (string, float64) { return "M", g.m }

func (g gemm) threads(t Tile) int { return gemmThreads(t) }

func (g gemm) lds(t Tile) int64 { return gemmLDS(t, g.in) }

func (g gemm) vgprs(t Tile) int { return gemmVGPRs(t, g.in) }

func (g gemm) candidates(soc.SoC) []Tile { return gemmCandidates(g.m, g.n, g.k, g.in) }

func (g gemm) why(t Tile, s soc.SoC) string {
	grid := g.workgroups(g.m, t)
	return fmt.Sprintf("of the tiles that fit a CU of the %s, %dx%d costs least for %.0fx%.0fx%.0f: %s of %d CUs, each K step reads %.0f bytes for %.0f multiply-adds",
		s.Product, t.BM, t.BN, g.m, g.n, g.k, rounds(grid, s.CUs), s.CUs,
		bytesOf(float64(t.BM), g.in.aBits)+bytesOf(float64(t.BN), g.in.wBits), float64(t.BM)*float64(t.BN))
}

func (g gemm) misfit(t Tile) string { return matrixMisfit(t) }

// gemmThreads assumes 4 waves, 8 for tiles beyond 128x256 and fewer where there are not enough 16x16 blocks for all.
func gemmThreads(t Tile) int {
	blocks := (t.BM + 15) / 16 * ((t.BN + 15) / 16)
	switch {
	case blocks > 128:
		return 512
	case blocks >= 4:
		return 256
	}
	return 64 * max(1, blocks)
}

// gemmLDS holds a BK deep slice of A and of B in every buffer.
func gemmLDS(t Tile, in element) int64 {
	slice := math.Ceil(bytesOf(float64(t.BM)*float64(t.BK), in.aBits)) + math.Ceil(bytesOf(float64(t.BN)*float64(t.BK), in.wBits))
	return int64(slice) * int64(t.Buffers)
}

// Registers a lane that every estimate adds for addresses, counters and temporaries. Recorded kernels have 20 to 40.
const baseVGPRs = 24

// gemmVGPRs counts, for each lane: the accumulators (one register for 4 bytes of f32, two of f64), two sets of operand
// fragments 32 bytes deep for the wave's share of the tile, and the slice in flight from memory to LDS.
func gemmVGPRs(t Tile, in element) int {
	threads := gemmThreads(t)
	waves := threads / 64
	rowsOfWaves := 1
	if waves >= 4 && t.BM >= 32 {
		rowsOfWaves = 2
	}
	accumulators := ceilInt(t.BM*t.BN, threads)
	if in.compute == "f64" {
		accumulators *= 2
	}
	fragments := 2 * (ceilInt(t.BM, 8*rowsOfWaves) + ceilInt(t.BN, 8*(waves/rowsOfWaves)))
	inFlight := ceilInt(int(gemmLDS(Tile{BM: t.BM, BN: t.BN, BK: t.BK, Buffers: 1}, in)), 4*threads)
	return accumulators + fragments + inFlight + baseVGPRs
}

// gemmCandidates are the tiles of common kernels that are no larger than the problem rounded up. A row of a slice is 128
// bytes, a cache line, of the wider operand.
func gemmCandidates(m, n, k float64, in element) []Tile {
	bk := lineElements(in)
	for bk > 32 && float64(bk/2) >= k {
		bk /= 2
	}
	var tiles []Tile
	for _, buffers := range []int{2, 1} {
		for _, bm := range []int{256, 128, 64, 32, 16} {
			for _, bn := range []int{256, 128, 64, 32, 16} {
				if (bm > 16 && float64(bm/2) >= m) || (bn > 16 && float64(bn/2) >= n) {
					continue
				}
				tiles = append(tiles, Tile{BM: bm, BN: bn, BK: bk, Buffers: buffers})
			}
		}
	}
	return tiles
}

// lineElements is how many elements of the wider operand 128 bytes hold, rounded down to a power of two.
func lineElements(in element) int {
	n := 1
	for n*2*max(in.aBits, in.wBits) <= 128*8 {
		n *= 2
	}
	return n
}

// matrixMisfit names sides that are no multiple of the smallest common MFMA block.
func matrixMisfit(t Tile) string {
	if t.BM%16 == 0 && t.BN%16 == 0 && t.BK%16 == 0 {
		return ""
	}
	return fmt.Sprintf("%dx%dx%d is no whole number of 16x16x16 MFMA blocks; the rest of a block is computed for nothing", t.BM, t.BN, t.BK)
}

func ceilInt(n, d int) int { return (n + d - 1) / d }

// rounds says how a grid goes over the CUs, one workgroup each at a time.
func rounds(grid float64, cus int) string {
	if grid <= float64(cus) {
		return fmt.Sprintf("%.0f workgroups in one round", grid)
	}
	return fmt.Sprintf("%.0f workgroups in %.0f rounds", grid, ceilDiv(grid, float64(cus)))
}
