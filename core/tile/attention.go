package tile

import (
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

// attention is softmax(QK')V for B batches, H query heads on Hkv key heads, Sq queries on S keys of depth D. A prefill
// has as many queries as keys; a decode has one (or a few), so that each key and value is read for almost nothing.
type attention struct {
	b, h, hkv, sq, s, d float64
	// kv is how many tensors keys and values are: 1 for latent attention, whose values are part of its keys.
	kv             float64
	causal, decode bool
	phaseFrom      string
	in, out        element
}

// Words of a kernel's name that say decode: paged attention (pa) and multi-head latent attention (mla) serve decoding.
var decodeWords = []string{"decode", "pa", "paged", "mla"}

func newAttention(p problem) attention {
	a := attention{
		b: float64(p.dim("B")), h: float64(p.dim("H")), s: float64(p.dim("S")), d: float64(p.dim("D")),
		hkv: float64(p.dimOr("Hkv", p.dim("H"))), causal: p.causal != nil && *p.causal, in: p.in, out: p.out,
	}
	if a.kv = 2; p.has("mla") {
		a.kv = 1
	}
	sq, said := p.lookup("Sq")
	switch {
	case said:
		a.sq, a.decode = float64(sq), sq <= 16 && float64(sq) < a.s
	case p.has("prefill"):
		a.sq = a.s
	case p.has(decodeWords...):
		a.sq, a.decode, a.phaseFrom = 1, true, "the kernel's name says decode: one query on S keys"
	default:
		a.sq = a.s
	}
	return a
}

func (a attention) describe(r *ProblemReading) {
	r.Operator, r.Phase = "attention", "prefill"
	if a.decode {
		r.Phase = "decode"
	}
	if a.phaseFrom != "" {
		r.Assumed = append(r.Assumed, a.phaseFrom)
	}
	if a.kv == 1 {
		r.Assumed = append(r.Assumed, "latent attention: keys and values are one tensor of depth D")
	}
}

func (a attention) pipe() (string, string) { return matrixPipe, a.in.compute }

// pairs are the query-key pairs of one head that are computed; under a causal mask the last query sees all keys.
func (a attention) pairs() float64 {
	if a.causal {
		return a.sq*a.s - a.sq*(a.sq-1)/2
	}
	return a.sq * a.s
}

func (a attention) whole() work {
	return work{
		bytes: bytesOf(a.b*a.h*a.sq*a.d, a.in.aBits) + a.kv*bytesOf(a.b*a.hkv*a.s*a.d, a.in.wBits) + bytesOf(a.b*a.h*a.sq*a.d, a.out.aBits),
		ops:   4 * a.b * a.h * a.pairs() * a.d,
	}
}

// rows are the query rows that share one key head's keys in a workgroup's reach: those of one head in a prefill, those of
// the whole group of heads in a decode.
func (a attention) rows() float64 {
	if a.decode {
		return a.sq * a.h / a.hkv
	}
	return a.sq
}

func (a attention) tile(t Tile) work {
	bm, keys := float64(t.BM), a.keys(t)
	return work{
		bytes: bytesOf(bm*a.d, a.in.aBits) + a.kv*bytesOf(keys*a.d, a.in.wBits) + bytesOf(bm*a.d, a.out.aBits),
		ops:   4 * bm * keys * a.d,
	}
}

// keys is the mean number of keys that a row of the tile meets.
func (a attention) keys(t Tile) float64 { return a.pairs() / a.sq / float64(max(1, t.KVSplits)) }

func (a attention) steps(t Tile) float64 { return ceilDiv(a.keys(t), float64(t.BN)) }

func (a attention) clip(t Tile) Tile {
	t.BM, t.BN = int(min(float64(t.BM), a.rows())), int(min(float64(t.BN), a.s))
	return t
}

// minKeysPerSplit is the least that a split of a decode should have to do.
const minKeysPerSplit = 256

// complete cuts the keys of a decode into as many splits as fill the GPU at most twice.
func (a attention) complete(t Tile, s soc.SoC) Tile { return a.split(t, s, 2) }

// split cuts the keys of a decode so that the grid fills the GPU at most so many times, if it did not already.
func (a attention) split(t Tile, s soc.SoC, times float64) Tile {
	if a.decode {
		unsplit := a.b * a.hkv * ceilDiv(a.rows(), float64(t.BM))
		t.KVSplits = int(max(1, min(ceilDiv(a.s, minKeysPerSplit), math.Floor(times*float64(s.CUs)/unsplit))))
	}
	return t
}

func (a attention) workgroups(lead float64, t Tile) float64 {
	if a.decode {
		return lead * a.hkv * ceilDiv(a.rows(), float64(t.BM)) * float64(max(1, t.KVSplits))
	}
	return a.b * a.h * ceilDiv(lead, float64(t.BM))
}

// leading is the (query) sequence of a prefill; a decode's grid grows with the batch.
func (a attention) leading() (string, float64) {
	if a.decode {
		return "B", a.b
	}
	if a.sq != a.s {
		return "Sq", a.sq
	}
	return "S", a.s
}

func (a attention) threads(t Tile) int {
	if a.decode {
		return 256
	}
	return min(256, 64*max(1, t.BM/16))
}

// lds holds a block of keys in each buffer and one of values.
func (a attention) lds(t Tile) int64 {
	return int64(math.Ceil(bytesOf(float64(t.BN)*float64(t.BK), a.in.wBits))) * int64(t.Buffers+1)
}

// vgprs holds, for each lane: the output's and the scores' accumulators, the queries, fragments and temporaries of the
// softmax.
func (a attention) vgprs(t Tile) int {
	threads := float64(a.threads(t))
	output := ceilDiv(float64(t.BM)*a.d, threads)
	scores := ceilDiv(float64(t.BM)*float64(t.BN), threads)
	queries := ceilDiv(bytesOf(float64(t.BM)*a.d, a.in.aBits), 4*threads)
	return int(min(output+scores+queries, 1<<20)) + 32 + baseVGPRs
}

func (a attention) candidates(s soc.SoC) []Tile {
	if a.d > maxTileSide {
		return nil
	}
	var tiles []Tile
	for _, buffers := range []int{2, 1} {
		for _, bm := range []int{128, 64, 32, 16} {
			for _, bn := range []int{64, 128, 32, 16} {
				if (bm > 16 && float64(bm/2) >= a.rows()) || (bn > 16 && float64(bn/2) >= a.s) {
					continue
				}
				t := Tile{BM: bm, BN: bn, BK: int(a.d), Buffers: buffers}
				tiles = append(tiles, a.split(t, s, 2))
				if more := a.split(t, s, 4); more != tiles[len(tiles)-1] {
					tiles = append(tiles, more)
				}
				if fewer := a.split(t, s, 1); a.decode && fewer.KVSplits != a.split(t, s, 2).KVSplits {
					tiles = append(tiles, fewer)
				}
			}
		}
	}
	return tiles
}

func (a attention) why(t Tile, s soc.SoC) string {
	_, lead := a.leading()
	grid := a.workgroups(lead, t)
	if a.decode {
		return fmt.Sprintf("a decode reads every key and value once: %.0f query rows share a key head; with the keys in %d splits there are %s of %d CUs", a.rows(), t.KVSplits, rounds(grid, s.CUs), s.CUs)
	}
	return fmt.Sprintf("%d query rows reuse each key and value that is read: %s of %d CUs", t.BM, rounds(grid, s.CUs), s.CUs)
}

func (a attention) misfit(t Tile) string {
	if float64(t.BK) != a.d {
		return fmt.Sprintf("bk %d is not the head's depth %.0f; the LDS estimate takes bk", t.BK, a.d)
	}
	return matrixMisfit(t)
}
