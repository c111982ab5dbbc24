package tile

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

func product(t testing.TB, name string) soc.SoC {
	t.Helper()
	s, ok := soc.ByProduct(name)
	if !ok {
		t.Fatalf("%s is not in the table", name)
	}
	return s
}

// dims reads "M=1 N=2".
func dims(text string) []Dim {
	var out []Dim
	for _, f := range strings.Fields(text) {
		name, digits, _ := strings.Cut(f, "=")
		v := int64(0)
		for _, c := range digits {
			v = v*10 + int64(c-'0')
		}
		out = append(out, Dim{name, v})
	}
	return out
}

func withTile(in Input, bm, bn, bk, buffers int) Input {
	in.BM, in.BN, in.BK, in.Buffers = &bm, &bn, &bk, &buffers
	return in
}

func codes(warnings []envelope.Warning) string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*math.Abs(want) }

// hand is one problem with a tile, worked out by hand. Ridges: bf16 1,307.4 / 5.3 = 246.7 on the MI300X and 2,306.9 / 8.0 =
// 288.4 on the MI350X, fp8 twice as much, f32 on either pipe 163.4 / 5.3 = 30.84 and 144.2 / 8.0 = 18.02.
type hand struct {
	name, kernel, category, dims, dtype string
	causal                              bool
	bm, bn, bk, buffers                 int
	bytes, flops, intensity             float64 // of the whole problem
	tileIntensity                       float64
	lds                                 int64
	on                                  [2]onGPU // MI300X, MI350X
}

type onGPU struct {
	ridge      float64
	regime     string
	workgroups int64
	full, tail int64
	verdict    string
	att        string
}

var byHand = []hand{
	{
		// 3 tensors of 8192^2 x 2 bytes; 2 x 8192^3. Tile: 2x128x128x8192 / (256x8192x2 + 128x128x2). 64 x 64 tiles:
		// 13 x 304 + 144 of which (304-144)/304/14 = 3.8% idles; 16 x 256. LDS: 2 x (128+128) x 64 x 2.
		name: "square gemm", kernel: "gemm_kernel_0", category: GEMM, dims: "M=8192 N=8192 K=8192", dtype: "bf16", bm: 128, bn: 128, bk: 64, buffers: 2,
		bytes: 402653184, flops: 1099511627776, intensity: 2730.667, tileIntensity: 63.504, lds: 65536,
		on: [2]onGPU{{246.687, ComputeBound, 4096, 13, 144, "tail-underfill-4pct", "likely"}, {288.358, ComputeBound, 4096, 16, 0, "saturated", "likely"}},
	}, {
		// (16x8192 + 8192x8192 + 16x8192) x 2; 2x16x8192x8192. Tile: 2x16x64x8192 / (80x8192x2 + 16x64x2). 1 x 128 tiles:
		// 176/304 = 57.9% and 128/256 = 50% of the CUs idle. LDS: 2 x (16+64) x 64 x 2.
		name: "gemm of 16 tokens", kernel: "gemm_kernel_0", category: GEMM, dims: "M=16 N=8192 K=8192", dtype: "bf16", bm: 16, bn: 64, bk: 64, buffers: 2,
		bytes: 134742016, flops: 2147483648, intensity: 15.9377, tileIntensity: 12.780, lds: 20480,
		on: [2]onGPU{{246.687, MemoryBound, 128, 0, 128, "underfilled-58pct", "likely"}, {288.358, MemoryBound, 128, 0, 128, "underfilled-50pct", "likely"}},
	}, {
		// 2 x 4096^2 x 1 + 4096^2 x 2 (bf16 out); 2 x 4096^3. Tile: 2x256x256x4096 / (512x4096 + 256x256x2). 16 x 16 tiles:
		// 48/304 idle; one for each of 256 CUs. LDS: 2 x (256+256) x 128, more than the MI300X has.
		name: "fp8 gemm", kernel: "preshuffle_gemm", category: GEMM, dims: "M=4096 N=4096 K=4096", dtype: "fp8", bm: 256, bn: 256, bk: 128, buffers: 2,
		bytes: 67108864, flops: 137438953472, intensity: 2048, tileIntensity: 240.941, lds: 131072,
		on: [2]onGPU{{493.375, ComputeBound, 256, 0, 256, "underfilled-16pct", "likely"}, {576.717, ComputeBound, 256, 1, 0, "exact-fit", "likely"}},
	}, {
		// 3 x 256^2 x 4; 2 x 256^3. Tile: 2x64x64x256 / (128x256x4 + 64x64x4). 4 x 4 tiles: 288/304 = 94.7%, 240/256 = 93.75%.
		// MI300X: 2 workgroups an XCD, half of one an SE of 9.5 CUs: 1 - (1-0.5/9.5)^32 = 82%. MI350X 1 - (1-0.5/8)^32 = 87%.
		name: "small f32 gemm", kernel: "gemm_kernel_0", category: GEMM, dims: "M=256 N=256 K=256", dtype: "f32", bm: 64, bn: 64, bk: 32, buffers: 2,
		bytes: 786432, flops: 33554432, intensity: 42.667, tileIntensity: 14.222, lds: 32768,
		on: [2]onGPU{{30.836, ComputeBound, 16, 0, 16, "underfilled-95pct", "likely"}, {18.022, ComputeBound, 16, 0, 16, "underfilled-94pct", "likely"}},
	}, {
		// Read and written once: 2 x 32768 x 8192 x 2; 5 operations an element on the vector ALU.
		// 107 x 304 + 240: 64/304/108 = 0.2%; 128 x 256.
		name: "softmax", kernel: "softmax_kernel_0", category: Reduction, dims: "M=32768 N=8192", dtype: "bf16", bm: 1, bn: 2048, bk: 1, buffers: 1,
		bytes: 1073741824, flops: 1342177280, intensity: 1.25, tileIntensity: 1.25, lds: 64,
		on: [2]onGPU{{30.836, MemoryBound, 32768, 107, 240, "saturated", "likely"}, {18.022, MemoryBound, 32768, 128, 0, "saturated", "likely"}},
	}, {
		// 2 x 1024 x 8192 x 2 and one weight vector of 8192 x 2; 4 operations an element. Tile: 4x8192 / (2x8192x2 + 8192x2).
		// 3 x 304 + 112: 192/304/4 = 15.8%; 4 x 256.
		name: "rmsnorm", kernel: "rmsnorm_kernel_0", category: Reduction, dims: "M=1024 N=8192", dtype: "bf16", bm: 1, bn: 2048, bk: 1, buffers: 1,
		bytes: 33570816, flops: 33554432, intensity: 0.99951, tileIntensity: 0.66667, lds: 64,
		on: [2]onGPU{{30.836, MemoryBound, 1024, 3, 112, "tail-underfill-16pct", "likely"}, {18.022, MemoryBound, 1024, 4, 0, "saturated", "likely"}},
	}, {
		// Two reads, one write of 10,240,000 x 4; one add each. The recorded grid has 10,000 workgroups too.
		// 32 x 304 + 272: 32/304/33 = 0.3%; 39 x 256 + 16: 240/256/40 = 2.3%.
		name: "vector add", kernel: "vecAddKernel_0", category: Elementwise, dims: "M=1 N=10240000", dtype: "f32", bm: 1, bn: 1024, bk: 1, buffers: 1,
		bytes: 122880000, flops: 10240000, intensity: 1.0 / 12, tileIntensity: 1.0 / 12, lds: 0,
		on: [2]onGPU{{30.836, MemoryBound, 10000, 32, 272, "saturated", "likely"}, {18.022, MemoryBound, 10000, 39, 16, "tail-underfill-2pct", "likely"}},
	}, {
		// Q, K, V, O: 4 x 32 x 4096 x 128 x 2. Causal pairs 4096 x 4097 / 2 = 8,390,656, a mean of 2,048.5 keys a query;
		// 4 x 32 x 8390656 x 128. Tile: 4x128x2048.5x128 / (2x128x128x2 + 2x2048.5x128x2). 32 heads x 32 blocks.
		// LDS: two blocks of keys and one of values, 3 x 64 x 128 x 2.
		name: "attention prefill", kernel: "flash_attn_func_kernel_0", category: Attention, dims: "B=1 H=32 S=4096 D=128", dtype: "bf16", causal: true, bm: 128, bn: 64, bk: 128, buffers: 2,
		bytes: 134217728, flops: 137472507904, intensity: 1024.25, tileIntensity: 120.472, lds: 49152,
		on: [2]onGPU{{246.687, ComputeBound, 1024, 3, 112, "tail-underfill-16pct", "likely"}, {288.358, ComputeBound, 1024, 4, 0, "saturated", "likely"}},
	}, {
		// K and V: 2 x 16 x 8 x 8192 x 128 x 2; Q and O: 2 x 16 x 32 x 128 x 2. 4 x 16 x 32 x 8192 x 128.
		// 4 heads share a key head; 16 x 8 = 128 workgroups unsplit, 4 splits of 2,048 keys fill 304 (1.7 times) and 256 (twice).
		// Tile: 4x4x2048x128 / (2x4x128x2 + 2x2048x128x2). 304 + 208: 96/304/2 = 15.8%.
		name: "attention decode", kernel: "pa_decode_kernel_0", category: Attention, dims: "B=16 H=32 S=8192 D=128 Hkv=8", dtype: "bf16", bm: 16, bn: 64, bk: 128, buffers: 2,
		bytes: 537133056, flops: 2147483648, intensity: 3.99805, tileIntensity: 3.99220, lds: 49152,
		on: [2]onGPU{{246.687, MemoryBound, 512, 1, 208, "tail-underfill-16pct", "likely"}, {288.358, MemoryBound, 512, 2, 0, "saturated", "likely"}},
	}, {
		// 16 tokens to 2 of 8 experts: 8 x (1 - 0.75^16) = 7.91982 experts have any, 4.04 tokens each. Weights 7.91982 x 3 x 4096
		// x 14336 x 2 = 2,790,323,930; x and y 2 x 16 x 4096 x 2; between the stages 2 x 32 x 14336 x 2. 6 x 32 x 4096 x 14336.
		// Tile of 5 rows: 2x5x128x4096 / (133x4096x2 + 5x128x2). 8 x 1 x 28672/128 tiles: 5 x 304 + 272: 32/304/6 = 1.8%.
		name: "moe of 16 tokens", kernel: "moe_gemm", category: MoE, dims: "T=16 E=8 k=2 D=4096 I=14336", dtype: "bf16", bm: 16, bn: 128, bk: 64, buffers: 2,
		bytes: 2790323930 + 262144 + 1835008, flops: 11274289152, intensity: 4.03744, tileIntensity: 4.80638, lds: 36864,
		on: [2]onGPU{{246.687, MemoryBound, 1792, 5, 272, "saturated", "likely"}, {288.358, MemoryBound, 1792, 7, 0, "saturated", "likely"}},
	}, {
		// 65,536 tokens: all experts, 16,384 tokens each. Weights 8 x 3 x 4096 x 14336 x 2; x and y 2 x 65536 x 4096 x 2; between
		// the stages 2 x 131072 x 14336 x 2. Tile: 2x128x128x4096 / (256x4096x2 + 128x128x2). 8 x 128 x 224 tiles:
		// 754 x 304 + 160; 896 x 256.
		name: "moe of 65,536 tokens", kernel: "moe_gemm", category: MoE, dims: "T=65536 E=8 k=2 D=4096 I=14336", dtype: "bf16", bm: 128, bn: 128, bk: 64, buffers: 2,
		bytes: 11408506880, flops: 46179488366592, intensity: 4047.81, tileIntensity: 63.0154, lds: 65536,
		on: [2]onGPU{{246.687, ComputeBound, 229376, 754, 160, "saturated", "likely"}, {288.358, ComputeBound, 229376, 896, 0, "saturated", "likely"}},
	},
}

func TestProblemsWorkedOutByHand(t *testing.T) {
	for _, h := range byHand {
		for i, name := range []string{"MI300X", "MI350X"} {
			t.Run(h.name+" on "+name, func(t *testing.T) {
				in := Input{Kernel: h.kernel, Category: h.category, Problem: Problem{Dims: dims(h.dims), DType: h.dtype}, SoC: product(t, name)}
				if h.causal {
					in.Problem.Causal = &h.causal
				}
				d, _, err := Advise(withTile(in, h.bm, h.bn, h.bk, h.buffers))
				if err != nil {
					t.Fatal(err)
				}
				want, w := h.on[i], d.Roofline.Whole
				if !near(w.Bytes, h.bytes, 1e-6) || !near(w.FLOPs, h.flops, 1e-12) || !near(w.Intensity, h.intensity, 1e-4) {
					t.Errorf("whole %+v, want %g bytes, %g operations, %g", w, h.bytes, h.flops, h.intensity)
				}
				if !near(w.Ridge, want.ridge, 1e-4) || w.Regime != want.regime || d.Recommended.Regime != want.regime {
					t.Errorf("ridge %g, regime %s and %s, want %g, %s", w.Ridge, w.Regime, d.Recommended.Regime, want.ridge, want.regime)
				}
				if d.Roofline.Tile == nil || !near(d.Roofline.Tile.Intensity, h.tileIntensity, 1e-4) {
					t.Errorf("tile %+v, want %g", d.Roofline.Tile, h.tileIntensity)
				}
				if d.LDSBytes != h.lds {
					t.Errorf("LDS %d, want %d", d.LDSBytes, h.lds)
				}
				g := d.Grid
				if g.Workgroups != want.workgroups || g.WorkgroupsSource != "estimated" || *g.FullWaves != want.full || *g.Tail != want.tail || g.TailVerdict != want.verdict {
					t.Errorf("grid %+v, %d full, tail %d; want %+v", g, *g.FullWaves, *g.Tail, want)
				}
				if g.ATT.Verdict != want.att || g.ATT.Basis == "" {
					t.Errorf("att %+v, want %s", g.ATT, want.att)
				}
			})
		}
	}
}

// Every recommended tile fits, is no larger than the problem needs, and the answer is JSON that says the contract's names.
func TestRecommendationsFit(t *testing.T) {
	for _, h := range byHand {
		for _, name := range []string{"MI300X", "MI300A", "MI325X", "MI350X", "MI355X"} {
			d, warnings, err := Advise(Input{Kernel: h.kernel, Category: h.category, Problem: Problem{Dims: dims(h.dims), DType: h.dtype}, SoC: product(t, name)})
			if err != nil {
				t.Fatalf("%s on %s: %v", h.name, name, err)
			}
			r := d.Recommended
			if r.BM < 1 || r.BN < 1 || r.BK < 1 || r.Buffers < 1 || r.Why == "" || d.Evaluated.Tile != r.Tile || d.Evaluated.Source != "recommended" {
				t.Errorf("%s on %s: %+v, evaluated %+v", h.name, name, r, d.Evaluated)
			}
			// What is recommended can be sent back as it is.
			if again, _, err := Advise(withTile(Input{Kernel: h.kernel, Category: h.category, Problem: Problem{Dims: dims(h.dims), DType: h.dtype}, SoC: product(t, name)}, r.BM, r.BN, r.BK, r.Buffers)); err != nil || again.LDSBytes != d.LDSBytes {
				t.Errorf("%s on %s: the recommended tile sent back: %v", h.name, name, err)
			}
			if d.Occupancy == nil || d.Occupancy.WavesPerCU < 1 || strings.Contains(codes(warnings), "TILE_DOES_NOT_FIT") {
				t.Errorf("%s on %s does not fit: %+v", h.name, name, d.Occupancy)
			}
			for _, a := range d.Alternatives {
				if a.RelativeCost < 1 {
					t.Errorf("%s on %s: an alternative is better than the recommendation: %+v", h.name, name, a)
				}
			}
			raw, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) > 8000 {
				t.Errorf("%s: the answer has %d bytes", h.name, len(raw))
			}
			var wire struct {
				Recommended struct{ Regime string }
				Grid        struct {
					TailVerdict string `json:"tail_verdict"`
				}
			}
			if err := json.Unmarshal(raw, &wire); err != nil || wire.Recommended.Regime == "" || wire.Grid.TailVerdict == "" {
				t.Errorf("%s: %s (%v)", h.name, raw, err)
			}
		}
	}
}

func TestRecommendationDependsOnTheShape(t *testing.T) {
	tile := func(kernel, category, shape, dtype, on string) Tile {
		d, _, err := Advise(Input{Kernel: kernel, Category: category, Problem: Problem{Dims: dims(shape), DType: dtype}, SoC: product(t, on)})
		if err != nil {
			t.Fatal(err)
		}
		return d.Recommended.Tile
	}
	big := tile("gemm", GEMM, "M=8192 N=8192 K=8192", "bf16", "MI300X")
	if big.BM < 128 || big.BN < 128 || big.BK != 64 {
		t.Errorf("a large GEMM gets %+v", big)
	}
	if skinny := tile("gemm", GEMM, "M=16 N=8192 K=8192", "bf16", "MI300X"); skinny.BM != 16 || skinny.BN > 64 {
		t.Errorf("a GEMM of 16 rows gets %+v", skinny)
	}
	if shallow := tile("gemm", GEMM, "M=4096 N=4096 K=32", "bf16", "MI300X"); shallow.BK != 32 {
		t.Errorf("a GEMM of depth 32 gets %+v", shallow)
	}
	if deep := tile("gemm", GEMM, "M=8192 N=8192 K=8192", "fp8", "MI300X"); deep.BK != 128 {
		t.Errorf("an 8-bit GEMM gets %+v: a cache line holds 128", deep)
	}
	if long, short := tile("softmax", Reduction, "M=4096 N=8192", "bf16", "MI350X"), tile("softmax", Reduction, "M=4096 N=256", "bf16", "MI350X"); long.BM != 1 || short.BM != 4 || long.BN == short.BN {
		t.Errorf("rows of 8192 get %+v, of 256 %+v", long, short)
	}
	if few, many := tile("moe_gemm", MoE, "T=16 E=8 k=2 D=4096", "bf16", "MI350X"), tile("moe_gemm", MoE, "T=65536 E=8 k=2 D=4096", "bf16", "MI350X"); few.BM != 16 || many.BM < 128 {
		t.Errorf("4 tokens an expert get %+v, 16,384 get %+v", few, many)
	}
	if prefill, decode := tile("flash_attn", Attention, "B=16 H=32 S=8192 D=128", "bf16", "MI350X"), tile("pa_decode", Attention, "B=16 H=32 S=8192 D=128", "bf16", "MI350X"); prefill.BM <= decode.BM || decode.KVSplits < 1 || prefill.KVSplits != 0 {
		t.Errorf("a prefill gets %+v, a decode %+v", prefill, decode)
	}
}

// The chance of 8 workgroups, one an XCD, on the MI300X: 1 - (1 - 1/4/9.5)^32 = 57%; of 11: 69%. A tile of 16x16 makes
// ceil(M/16) x 8, so 17 rows are the least.
func TestSmallestLeadingDimension(t *testing.T) {
	in := withTile(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=1 N=128 K=8192")}, SoC: product(t, "MI300X")}, 16, 16, 64, 2)
	d, warnings, err := Advise(in)
	if err != nil {
		t.Fatal(err)
	}
	if a := d.Grid.ATT; a.Verdict != "unlikely" || a.MinWorkgroups != 11 || a.MinLeadingDim != 17 || a.LeadingDim != "M" || a.ShaderEngineMask != "0xffffffff" {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(codes(warnings), "ATT_MAY_BE_EMPTY") {
		t.Errorf("warnings %s", codes(warnings))
	}
	in.Problem.Dims = dims("M=17 N=128 K=8192")
	if d, _, _ = Advise(in); d.Grid.ATT.Verdict != "likely" || d.Grid.ATT.MinLeadingDim != 17 {
		t.Errorf("with the dimension it named: %+v", d.Grid.ATT)
	}
	in.Problem.Dims = dims("M=16 N=128 K=8192")
	if d, _, _ = Advise(in); d.Grid.ATT.Verdict != "unlikely" {
		t.Errorf("with one less: %+v", d.Grid.ATT)
	}
}

func TestMeasuredGridBeatsTheEstimate(t *testing.T) {
	in := Input{Kernel: "softmax", Category: Reduction, Problem: Problem{Dims: dims("M=4096 N=1024")}, SoC: product(t, "MI350X"), MeasuredWorkgroups: 8}
	d, _, err := Advise(in)
	if err != nil {
		t.Fatal(err)
	}
	// 8 workgroups for 4096 rows; 9 are likely (MinWorkgroupsLikely): ceil(4096 x 9 / 8) rows.
	if g := d.Grid; g.Workgroups != 8 || g.WorkgroupsSource != "measured" || g.TailVerdict != "underfilled-97pct" || g.ATT.MinLeadingDim != 4608 {
		t.Errorf("%+v %+v", g, g.ATT)
	}
	in.MeasuredWorkgroups = -1
	if _, _, err := Advise(in); envelope.CodeOf(err) != envelope.BadArgs {
		t.Errorf("-1 workgroups: %v", err)
	}
}

func TestCategoriesHaveTheirOwnPipeAndPhase(t *testing.T) {
	for _, c := range []struct {
		kernel, category, shape string
		pipe, phase, operator   string
	}{
		{"softmax_kernel_0", Reduction, "M=64 N=64", "vector", "", "softmax"},
		{"softmax_bwd_kernel", Reduction, "M=64 N=64", "vector", "", "softmax backward"},
		{"fused_add_rmsnorm_kernel_0", Reduction, "M=64 N=64", "vector", "", "fused add and rmsnorm"},
		{"LayerNorm", Reduction, "M=64 N=64", "vector", "", "layernorm"},
		{"vecAddKernel_0", Elementwise, "M=64 N=64", "vector", "", "vector add"},
		{"hgemm_splitk", GEMM, "M=64 N=64 K=64", "matrix", "", "gemm"},
		{"flash_attn_func", Attention, "B=1 H=8 S=128 D=64", "matrix", "prefill", "attention"},
		{"mla_prefill", Attention, "B=1 H=8 S=128 D=64", "matrix", "prefill", "attention"},
		{"mla_decode", Attention, "B=1 H=8 S=128 D=64 Hkv=1", "matrix", "decode", "attention"},
		{"flash_attn_func", Attention, "B=1 H=8 S=128 D=64 Sq=1", "matrix", "decode", "attention"},
		{"pa_mqa_logits_fp4_kernel_0", Attention, "B=1 H=8 S=128 D=64", "matrix", "decode", "attention"},
		// "pa" is a word of its own there and not here.
		{"spatial_pad_attn", Attention, "B=1 H=8 S=128 D=64", "matrix", "prefill", "attention"},
		{"moe_gemm1", MoE, "T=64 E=8 k=2 D=64", "matrix", "", "moe gemm, stage 1"},
		{"moe_stage2", MoE, "T=64 E=8 k=2 D=64 I=128", "matrix", "", "moe gemm, stage 2"},
		{"moe_sorting", MoE, "T=64 E=8 k=2", "vector", "", "sorting of tokens by expert"},
		{"topk_gating_softmax", MoE, "T=64 E=8 k=2", "vector", "", "gating: softmax over the experts and the k largest"},
	} {
		d, _, err := Advise(Input{Kernel: c.kernel, Category: c.category, Problem: Problem{Dims: dims(c.shape)}, SoC: product(t, "MI300X")})
		if err != nil {
			t.Errorf("%s: %v", c.kernel, err)
			continue
		}
		if d.Roofline.Pipe != c.pipe || d.Problem.Phase != c.phase || d.Problem.Operator != c.operator {
			t.Errorf("%s: %s %q %q, want %s %q %q", c.kernel, d.Roofline.Pipe, d.Problem.Phase, d.Problem.Operator, c.pipe, c.phase, c.operator)
		}
	}
}

// Latent attention reads one tensor for keys and values: half the bytes of two.
func TestLatentAttentionReadsItsKeysOnce(t *testing.T) {
	d, _, err := Advise(Input{Kernel: "mla_decode", Category: Attention, Problem: Problem{Dims: dims("B=4 H=128 S=8192 D=576 Hkv=1"), DType: "fp8"}, SoC: product(t, "MI350X")})
	if err != nil {
		t.Fatal(err)
	}
	// 4 x 8192 x 576 x 1, Q 4 x 128 x 576 x 1, O 4 x 128 x 576 x 2.
	if want := 18874368.0 + 294912 + 589824; d.Roofline.Whole.Bytes != want {
		t.Errorf("%g bytes, want %g", d.Roofline.Whole.Bytes, want)
	}
}

// A, B and C of 1,024 squared, in bytes an element of each: the output is bf16 where the input is narrower than 16 bits.
func TestElementTypesHaveTheirWidths(t *testing.T) {
	for dtype, each := range map[string]float64{
		"bf16": 2 + 2 + 2, "half": 2 + 2 + 2, "f32": 4 + 4 + 4, "f64": 8 + 8 + 8, "fp8": 1 + 1 + 2, "int8": 1 + 1 + 2, "int8smooth": 1 + 1 + 2,
		"int4": 1 + 0.5 + 2, "a8w4": 1 + 0.5 + 2, "a16w4": 2 + 0.5 + 2, "int4_bf16": 2 + 0.5 + 2, "fp6": 0.75 + 0.75 + 2, "fp4": 0.5 + 0.5 + 2, "": 2 + 2 + 2,
	} {
		d, _, err := Advise(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=1024 N=1024 K=1024"), DType: dtype}, SoC: product(t, "MI350X")})
		if err != nil || d.Roofline.Whole.Bytes != each*1024*1024 {
			t.Errorf("%q: %g bytes, want %g (%v)", dtype, d.Roofline.Whole.Bytes, each*1024*1024, err)
		}
	}
	d, _, err := Advise(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=1024 N=1024 K=1024"), DType: "fp8"}, OutDType: "f32", SoC: product(t, "MI350X")})
	if err != nil || d.Roofline.Whole.Bytes != (1+1+4)*1024*1024 || d.Problem.OutDType != "f32" {
		t.Errorf("an f32 output: %g bytes, %s (%v)", d.Roofline.Whole.Bytes, d.Problem.OutDType, err)
	}
}

func TestTailVerdicts(t *testing.T) {
	for _, c := range []struct {
		workgroups, cus int64
		want            string
	}{
		{1, 304, "underfilled-100pct"}, {152, 304, "underfilled-50pct"}, {303, 304, "underfilled-1pct"}, {304, 304, "exact-fit"},
		{305, 304, "tail-underfill-50pct"}, {608, 304, "saturated"}, {256, 256, "exact-fit"}, {257, 256, "tail-underfill-50pct"},
		{1024, 256, "saturated"}, {1025, 256, "tail-underfill-20pct"}, {1270, 256, "saturated"}, {1 << 50, 304, "saturated"},
	} {
		if got := tailVerdict(c.workgroups, c.cus); got != c.want {
			t.Errorf("%d workgroups on %d CUs: %s, want %s", c.workgroups, c.cus, got, c.want)
		}
	}
}
