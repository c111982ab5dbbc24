// Package tile advises on a kernel's tile before anything runs: which regime the problem is in, what a tile needs of a
// CU, how well its grid fills the GPU, and how likely a trace of it is not empty.
//
// It is arithmetic on the problem's shape and core/soc's figures; nothing is measured but what the caller brings.
package tile

import (
	"fmt"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// Categories of operators. Others have no model here.
const (
	GEMM        = "gemm"
	Reduction   = "reduction"
	Elementwise = "elementwise"
	Attention   = "attention"
	MoE         = "moe"
)

// The two regimes of the roofline.
const (
	MemoryBound  = "memory-bound"
	ComputeBound = "compute-bound"
)

// Input is one question.
type Input struct {
	// Kernel is the name as flyprof_list gives it. Its words say which operator of the category it is (softmax, rmsnorm,
	// decode, stage1 ...).
	Kernel   string
	Category string
	Problem  Problem
	// OutDType is the output's element type; empty: bf16 for 8-bit and narrower inputs, else the input's.
	OutDType string
	// Arch is the architecture that was asked for, for an answer about a GPU without figures.
	Arch string
	// SoC is the GPU; its zero value where it is not known: no peak, no regime then.
	SoC soc.SoC
	// BM, BN and BK are a tile to judge: rows, columns and depth in elements; all nil for none. Buffers are its LDS
	// buffers, nil for 2.
	BM, BN, BK, Buffers *int
	// MeasuredWorkgroups of a recorded dispatch; 0 where none is.
	MeasuredWorkgroups int64
}

// Dim is one named axis and its extent in elements.
type Dim struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Problem is a shape by name. Axes: gemm M, N, K; reduction and elementwise M, N; attention B, H, S, D and where they
// differ Hkv (key and value heads) and Sq (query length); moe T, E, k and for its GEMMs D (model) and I (intermediate).
type Problem struct {
	Dims []Dim
	// DType is the input's element type, or a mix of activations and weights such as a8w4; empty: bf16.
	DType string
	// Causal is nil where nothing was said: not causal.
	Causal *bool
}

// Data is the answer.
type Data struct {
	Kernel   string         `json:"kernel"`
	Category string         `json:"category" jsonschema:"enum=gemm,enum=reduction,enum=elementwise,enum=attention,enum=moe"`
	Problem  ProblemReading `json:"problem" jsonschema_description:"The problem as it was understood."`

	Arch           string `json:"arch,omitempty"`
	Product        string `json:"product,omitempty" jsonschema_description:"Product whose figures were used; absent where none are known."`
	ProductAssumed bool   `json:"product_assumed" jsonschema_description:"True where only the architecture was known and the product is a guess."`

	Recommended  Recommended   `json:"recommended"`
	Alternatives []Alternative `json:"alternatives,omitempty" jsonschema_description:"The next best tiles of the same model."`
	Evaluated    Evaluated     `json:"evaluated" jsonschema_description:"The tile that the figures below are about: the given one else the recommended one."`

	Roofline  Roofline `json:"roofline"`
	DecidedBy string   `json:"decided_by" jsonschema_description:"Which figure decided the regime."`

	LDSBytes     int64          `json:"lds_bytes" jsonschema_description:"LDS of one workgroup in bytes by the model of a plain pipelined kernel."`
	VGPREstimate int            `json:"vgpr_estimate" jsonschema_description:"Registers a lane estimated from the tile; the compiler decides."`
	Threads      int            `json:"threads" jsonschema_description:"Work-items a workgroup that the estimates assume."`
	Occupancy    *soc.Occupancy `json:"occupancy,omitempty"`
	Grid         Grid           `json:"grid"`
}

// ProblemReading is the problem in canonical form.
type ProblemReading struct {
	Shape     string   `json:"shape" jsonschema_description:"Canonical shape; can be sent back as shape."`
	Dims      []Dim    `json:"dims"`
	DType     string   `json:"dtype"`
	OutDType  string   `json:"out_dtype"`
	Causal    *bool    `json:"causal,omitempty"`
	Operator  string   `json:"operator" jsonschema_description:"Which operator's arithmetic was counted."`
	Phase     string   `json:"phase,omitempty" jsonschema:"enum=prefill,enum=decode"`
	PerExpert float64  `json:"tokens_per_expert,omitempty" jsonschema_description:"Mean tokens for each expert that has any under uniform routing."`
	Assumed   []string `json:"assumed,omitempty" jsonschema_description:"What the shape did not say and was assumed."`
}

// Tile is a workgroup's share of the problem, in elements.
type Tile struct {
	BM      int `json:"bm,omitempty"`
	BN      int `json:"bn,omitempty"`
	BK      int `json:"bk,omitempty"`
	Buffers int `json:"buffers,omitempty"`
	// KVSplits cuts the keys of a decode among so many workgroups.
	KVSplits int `json:"kv_splits,omitempty"`
}

// Recommended is the advice. The tile is absent where the GPU is not known.
type Recommended struct {
	Tile
	Regime string `json:"regime,omitempty" jsonschema:"enum=memory-bound,enum=compute-bound" jsonschema_description:"By the whole problem; absent where peaks are not known."`
	Why    string `json:"why"`
}

// Alternative is another tile and what it costs against the recommended one.
type Alternative struct {
	Tile
	RelativeCost float64 `json:"relative_cost" jsonschema_description:"Modelled time over that of the recommended tile."`
}

// Evaluated is the tile that was judged.
type Evaluated struct {
	Tile
	Source string `json:"source,omitempty" jsonschema:"enum=given,enum=recommended"`
}

// Advise answers one question. BAD_ARGS names the argument that is wrong; NO_RECOMMENDATION says that there is no model
// for the category or that no tile of it fits. A GPU without figures is no error: it has no tile, no peaks and no regime.
func Advise(in Input) (Data, []envelope.Warning, error) {
	given, err := readTile(in)
	if err != nil {
		return Data{}, nil, err
	}
	p, err := readProblem(in)
	if err != nil {
		return Data{}, nil, err
	}
	op := p.operator()
	if in.MeasuredWorkgroups < 0 {
		return Data{}, nil, badArg("workgroups", fmt.Sprint(in.MeasuredWorkgroups), "a grid has at least one workgroup", "1 or more, or none at all")
	}
	if err := checkSize(op.whole(), p); err != nil {
		return Data{}, nil, err
	}
	a := advisor{in: in, soc: in.SoC, problem: p, op: op}
	a.data = Data{
		Kernel: short(in.Kernel), Category: in.Category, Problem: p.reading(), Arch: arch(in), Product: in.SoC.Product, ProductAssumed: in.SoC.Assumed,
	}
	if err := a.recommend(given); err != nil {
		return Data{}, nil, err
	}
	a.evaluate(given)
	a.roofline()
	a.resources()
	a.grid()
	a.caveats()
	return a.data, a.warnings, nil
}

// advisor carries one answer through its steps.
type advisor struct {
	in       Input
	soc      soc.SoC
	problem  problem
	op       operator
	data     Data
	warnings []envelope.Warning
}

func (a *advisor) warn(code, format string, args ...any) {
	a.warnings = append(a.warnings, envelope.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// recommend fills the recommended tile. Without figures there is none; where no candidate fits, that is an error unless a
// tile was given to be judged.
func (a *advisor) recommend(given *Tile) error {
	if !a.soc.Known() {
		a.data.Recommended.Why = "no figures are known for " + orUnknown(a.data.Arch) + ", so no tile is recommended and no regime is given"
		return nil
	}
	ranked := rank(a.op, a.soc)
	if len(ranked) == 0 {
		message := fmt.Sprintf("no tile for %s fits a CU of the %s: its LDS has %d bytes", a.data.Problem.Shape, a.soc.Product, a.soc.LDSBytesPerCU)
		if given == nil {
			return envelope.Build(envelope.NoRecommendation, envelope.Facts{
				Message: message, Help: "Pass bm, bn and bk to have a tile of your own judged.",
				Evidence: envelope.Evidence{Field: "shape", Value: a.data.Problem.Shape},
			})
		}
		a.data.Recommended.Why = message
		return nil
	}
	best := ranked[0]
	a.data.Recommended.Tile = best.tile
	a.data.Recommended.Why = a.op.why(best.tile, a.soc)
	for _, r := range ranked[1:min(len(ranked), 4)] {
		a.data.Alternatives = append(a.data.Alternatives, Alternative{r.tile, round3(r.cost / best.cost)})
	}
	return nil
}

// evaluate settles which tile the rest of the answer is about; none where nothing was given and nothing recommended.
func (a *advisor) evaluate(given *Tile) {
	switch {
	case given != nil:
		a.data.Evaluated = Evaluated{a.op.complete(*given, a.soc), "given"}
	case a.data.Recommended.BM > 0:
		a.data.Evaluated = Evaluated{a.data.Recommended.Tile, "recommended"}
	}
}

// resources estimates what the tile needs of a CU.
func (a *advisor) resources() {
	t := a.data.Evaluated.Tile
	if t.BM == 0 {
		return
	}
	a.data.Threads, a.data.LDSBytes, a.data.VGPREstimate = a.op.threads(t), a.op.lds(t), a.op.vgprs(t)
	if a.soc.Known() {
		o := occupancy(a.op, t, a.soc)
		a.data.Occupancy = &o
	}
}

// caveats are the warnings that need the whole answer.
func (a *advisor) caveats() {
	d := a.data
	if d.ProductAssumed {
		a.warn("PRODUCT_ASSUMED", "%s is several products; the figures are those of the %s (%d CUs, %.0f MHz, %.1f TB/s)", d.Arch, d.Product, a.soc.CUs, a.soc.ClockHz/1e6, a.soc.HBMBytesPerS/1e12)
	}
	if !a.soc.Known() {
		a.warn("ARCH_UNKNOWN", "no figures are known for %s: no peaks, no regime, no occupancy and no verdict on the grid; known are %v", orUnknown(d.Arch), soc.Archs())
	}
	if len(d.Problem.Assumed) > 0 {
		a.warn("PROBLEM_ASSUMED", "the shape does not say everything: %s", joined(d.Problem.Assumed))
	}
	if d.Occupancy != nil && d.Occupancy.WavesPerCU == 0 {
		a.warn("TILE_DOES_NOT_FIT", "the tile needs %d bytes of LDS and about %d registers a lane; a CU of the %s has %d bytes and %d registers: not one workgroup fits (%s)",
			d.LDSBytes, d.VGPREstimate, d.Product, a.soc.LDSBytesPerCU, a.soc.VGPRsPerSIMD, d.Occupancy.Limiter)
	}
	if t := d.Evaluated.Tile; d.Evaluated.Source == "given" {
		if msg := a.op.misfit(t); msg != "" {
			a.warn("TILE_UNUSUAL", "%s", msg)
		}
	}
	if att := d.Grid.ATT; att != nil && att.Verdict != soc.VerdictLikely {
		if att.MinLeadingDim > 0 {
			a.warn("ATT_MAY_BE_EMPTY", "a trace of this grid may hold no wave: %s; from %s=%d on it is likely to", att.Basis, att.LeadingDim, att.MinLeadingDim)
		} else {
			a.warn("ATT_MAY_BE_EMPTY", "a trace of this grid may hold no wave: %s", att.Basis)
		}
	}
}

func arch(in Input) string {
	if in.SoC.Known() {
		return in.SoC.Arch
	}
	return short(in.Arch)
}

func orUnknown(arch string) string {
	if arch == "" {
		return "this GPU"
	}
	return arch
}
