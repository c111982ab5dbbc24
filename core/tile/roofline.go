package tile

import "fmt"

// Roofline is the problem and its tile under the GPU's roof.
type Roofline struct {
	Whole Roof   `json:"whole" jsonschema_description:"The whole problem with compulsory HBM traffic: inputs read once and outputs written once."`
	Tile  *Roof  `json:"tile,omitempty" jsonschema_description:"One tile over its whole depth if no other tile shared its reads in a cache."`
	Pipe  string `json:"pipe" jsonschema:"enum=matrix,enum=vector" jsonschema_description:"Which pipe's peak was taken; softmax and norms have no matrix instructions."`
	// Peaks are absent where they are not known.
	ComputeType       string  `json:"compute_dtype"`
	PeakOpsPerS       float64 `json:"peak_ops_per_s,omitempty"`
	PeakBytesPerS     float64 `json:"peak_bytes_per_s,omitempty"`
	LeastTimeUs       float64 `json:"least_time_us,omitempty" jsonschema_description:"No run can be faster than this by the peaks: the larger of memory and compute time."`
	FitsInfinityCache bool    `json:"fits_infinity_cache,omitempty" jsonschema_description:"All of the problem's data fits the Infinity Cache: a repeated launch may read from there and beat the HBM roof."`
}

// Roof is one point under it.
type Roof struct {
	Bytes     float64 `json:"bytes"`
	FLOPs     float64 `json:"flops" jsonschema_description:"Operations; a multiply-add is two."`
	Intensity float64 `json:"intensity" jsonschema_description:"Operations a byte."`
	Ridge     float64 `json:"ridge,omitempty" jsonschema_description:"Intensity from which the pipe and not memory limits; absent where peaks are not known."`
	Regime    string  `json:"regime,omitempty" jsonschema:"enum=memory-bound,enum=compute-bound"`
}

// roofline computes both points and the regime. The whole problem decides: what a tile reads beside that comes from caches
// or not, which a shape cannot say.
func (a *advisor) roofline() {
	pipe, dtype := a.op.pipe()
	peak, ok := peakOf(a.op, a.soc)
	bandwidth := a.soc.HBMBytesPerS
	ok = ok && bandwidth > 0
	r := Roofline{Pipe: pipe, ComputeType: dtype}
	ridge := 0.0
	w := a.op.whole()
	if ok {
		ridge = peak / bandwidth
		r.PeakOpsPerS, r.PeakBytesPerS = peak, bandwidth
		r.LeastTimeUs = 1e6 * max(w.ops/peak, w.bytes/bandwidth)
		r.FitsInfinityCache = w.bytes <= float64(a.soc.MALLBytes)
	}
	r.Whole = roof(w, ridge)
	if t := a.data.Evaluated.Tile; t.BM > 0 {
		of := roof(a.op.tile(a.op.clip(t)), ridge)
		r.Tile = &of
	}
	a.data.Roofline = r
	a.data.Recommended.Regime = r.Whole.Regime
	a.data.DecidedBy = a.decidedBy(r, ok)
	if !ok && a.soc.Known() {
		a.warn("PEAK_UNKNOWN", "the %s has no %s rate for %s: there is no peak and no regime", a.soc.Product, pipe, dtype)
	}
}

func roof(w work, ridge float64) Roof {
	r := Roof{Bytes: w.bytes, FLOPs: w.ops, Intensity: w.intensity(), Ridge: ridge}
	switch {
	case ridge <= 0:
	case r.Intensity < ridge:
		r.Regime = MemoryBound
	default:
		r.Regime = ComputeBound
	}
	return r
}

// decidedBy says in one sentence what the regime follows from.
func (a *advisor) decidedBy(r Roofline, ok bool) string {
	if !ok {
		return "nothing: no peaks are known"
	}
	text := fmt.Sprintf("roofline.whole: %.4g operations a byte of compulsory traffic against a ridge of %.4g (%s peak of %s over HBM)", r.Whole.Intensity, r.Whole.Ridge, r.Pipe, r.ComputeType)
	if r.Tile != nil && r.Tile.Regime != r.Whole.Regime {
		text += fmt.Sprintf("; the tile by itself has %.4g and would be %s, so the whole problem's regime needs tiles to share their reads in L2 and Infinity Cache", r.Tile.Intensity, r.Tile.Regime)
	}
	return text
}
