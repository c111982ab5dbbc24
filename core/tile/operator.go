package tile

import (
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// work is memory traffic in bytes and arithmetic in operations (a multiply-add is two).
type work struct{ bytes, ops float64 }

func (w work) intensity() float64 {
	if w.bytes <= 0 {
		return 0
	}
	return w.ops / w.bytes
}

// The pipes that arithmetic runs on.
const (
	matrixPipe = "matrix"
	vectorPipe = "vector"
)

// operator is the model of one category: what it must move and compute, and what a tile of it needs.
type operator interface {
	// describe fills what the model read from the problem: operator, phase, assumptions.
	describe(r *ProblemReading)
	// pipe is where the arithmetic runs, and in which element type.
	pipe() (pipe, dtype string)
	// whole is the problem's arithmetic and its compulsory traffic: every input read once, every output written once.
	whole() work
	// tile is one tile's over its whole depth, when no other tile shares its reads through a cache. It is not clipped.
	tile(Tile) work
	// steps is how often a tile's loop runs: over K, or over blocks of keys.
	steps(Tile) float64
	// clip cuts a tile to the problem.
	clip(Tile) Tile
	// complete sets what follows from the tile and the GPU (KVSplits).
	complete(Tile, soc.SoC) Tile
	// workgroups is the grid's size with the leading axis at the given extent.
	workgroups(lead float64, t Tile) float64
	// leading is the axis that grows the grid, and its extent.
	leading() (name string, extent float64)
	// threads, lds and vgprs are a workgroup's work-items, its LDS in bytes and a lane's registers.
	threads(Tile) int
	lds(Tile) int64
	vgprs(Tile) int
	// candidates are the tiles to choose among; the first stands where all cost the same.
	candidates(soc.SoC) []Tile
	// why explains a recommended tile in a sentence.
	why(Tile, soc.SoC) string
	// misfit says what is odd about a given tile; empty for nothing.
	misfit(Tile) string
}

// occupancy applies the register and LDS rule to the estimates for a tile.
func occupancy(op operator, t Tile, s soc.SoC) soc.Occupancy {
	lds := int(min(op.lds(t), 1<<30))
	return soc.OccupancyOf(s, op.vgprs(t), 0, lds, op.threads(t))
}
