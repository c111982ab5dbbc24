package tile

import (
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// What other tools of this kind have got wrong: arguments that vanish, tiles that cannot be, K without effect, grids that
// just fit, and another GPU's figures.

func TestWrongArgumentsAreNamed(t *testing.T) {
	n := func(v int) *int { return &v }
	causal := true
	gemm := func(change func(*Input)) Input {
		in := Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=512 N=512 K=512")}, SoC: product(t, "MI350X")}
		change(&in)
		return in
	}
	shape := func(category, text string) Input {
		return Input{Kernel: "k", Category: category, Problem: Problem{Dims: dims(text)}, SoC: product(t, "MI350X")}
	}
	for _, c := range []struct {
		name         string
		in           Input
		field, value string
	}{
		{"bm 0", gemm(func(in *Input) { in.BM, in.BN, in.BK = n(0), n(128), n(64) }), "bm", "0"},
		{"bn negative", gemm(func(in *Input) { in.BM, in.BN, in.BK = n(128), n(-128), n(64) }), "bn", "-128"},
		{"bk too large", gemm(func(in *Input) { in.BM, in.BN, in.BK = n(128), n(128), n(5000) }), "bk", "5000"},
		{"bm alone", gemm(func(in *Input) { in.BM = n(128) }), "bn", ""},
		{"bk missing", gemm(func(in *Input) { in.BM, in.BN = n(128), n(128) }), "bk", ""},
		{"buffers 0", gemm(func(in *Input) { in.BM, in.BN, in.BK, in.Buffers = n(128), n(128), n(64), n(0) }), "buffers", "0"},
		{"buffers -1", gemm(func(in *Input) { in.BM, in.BN, in.BK, in.Buffers = n(128), n(128), n(64), n(-1) }), "buffers", "-1"},
		{"buffers 9", gemm(func(in *Input) { in.BM, in.BN, in.BK, in.Buffers = n(128), n(128), n(64), n(9) }), "buffers", "9"},
		{"buffers without a tile", gemm(func(in *Input) { in.Buffers = n(2) }), "buffers", "2"},
		{"dtype", gemm(func(in *Input) { in.Problem.DType = "bf17" }), "dtype", "bf17"},
		{"out_dtype", gemm(func(in *Input) { in.OutDType = "fp3" }), "out_dtype", "fp3"},
		{"a mix as output", gemm(func(in *Input) { in.OutDType = "a8w4" }), "out_dtype", "a8w4"},
		{"M 0", gemm(func(in *Input) { in.Problem.Dims[0].Value = 0 }), "shape", "M=0"},
		{"K negative", gemm(func(in *Input) { in.Problem.Dims[2].Value = -1 }), "shape", "K=-1"},
		{"beyond 32 bits", gemm(func(in *Input) { in.Problem.Dims[2].Value = 1 << 31 }), "shape", "K=2147483648"},
		{"a fourth axis", gemm(func(in *Input) { in.Problem.Dims = append(in.Problem.Dims, Dim{"L", 4}) }), "shape", "L=4"},
		{"an axis twice", gemm(func(in *Input) { in.Problem.Dims = append(in.Problem.Dims, Dim{"M", 4}) }), "shape", "M=4"},
		{"an axis missing", shape(GEMM, "M=4096 N=4096"), "shape", ""},
		{"no axes", shape(Attention, ""), "shape", ""},
		{"causal gemm", gemm(func(in *Input) { in.Problem.Causal = &causal }), "shape", "causal"},
		{"key heads that do not divide", shape(Attention, "B=1 H=32 S=128 D=64 Hkv=5"), "shape", "Hkv=5"},
		{"more queries than keys", shape(Attention, "B=1 H=32 S=128 D=64 Sq=129"), "shape", "Sq=129"},
		{"more choices than experts", shape(MoE, "T=16 E=4 k=5 D=64"), "shape", "k=5"},
		{"intermediate size alone", shape(MoE, "T=16 E=4 k=2 I=64"), "shape", "I=64"},
		{"no memory holds it", shape(GEMM, "M=2147483647 N=2147483647 K=2147483647"), "shape", "M=2147483647,N=2147483647,K=2147483647,bf16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Advise(c.in)
			if envelope.CodeOf(err) != envelope.BadArgs {
				t.Fatalf("got %v", err)
			}
			ev := envelope.As(err).Evidence
			if ev.Field != c.field || ev.Value != c.value || ev.Allowed == "" {
				t.Errorf("%+v, want field %s, value %q and what is allowed", ev, c.field, c.value)
			}
			if len(envelope.As(err).Actions) == 0 {
				t.Error("no next action")
			}
		})
	}
}

// Every element type that both GPUs have is compute-bound at 8192 cubed, and none is at 16 rows. A model that charged the
// output tile to each K step would call all of them memory-bound.
func TestLargeGEMMsAreComputeBound(t *testing.T) {
	for _, on := range []string{"MI300X", "MI350X"} {
		for _, dtype := range []string{"bf16", "f16", "f32", "f64", "fp8", "bf8", "int8", "a16w4", "a8w4"} {
			for shape, want := range map[string]string{"M=8192 N=8192 K=8192": ComputeBound, "M=8 N=8192 K=8192": MemoryBound} {
				d, _, err := Advise(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims(shape), DType: dtype}, SoC: product(t, on)})
				if err != nil || d.Recommended.Regime != want {
					t.Errorf("%s %s %s: %s (%v), want %s", on, dtype, shape, d.Recommended.Regime, err, want)
				}
			}
		}
	}
}

func TestKHasAnEffect(t *testing.T) {
	at := func(k string) Data {
		d, _, err := Advise(withTile(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=4096 N=4096 K=" + k)}, SoC: product(t, "MI300X")}, 128, 128, 64, 2))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// (2 x 4096 x 64 + 4096^2) x 2 bytes for 2 x 4096^2 x 64: 62; with K=4096 1,365.
	shallow, deep := at("64"), at("4096")
	if shallow.Recommended.Regime != MemoryBound || deep.Recommended.Regime != ComputeBound {
		t.Errorf("K=64 %s, K=4096 %s", shallow.Recommended.Regime, deep.Recommended.Regime)
	}
	if shallow.Roofline.Tile.Intensity >= deep.Roofline.Tile.Intensity {
		t.Errorf("the tile's intensity does not grow with K: %g, %g", shallow.Roofline.Tile.Intensity, deep.Roofline.Tile.Intensity)
	}
	if !strings.Contains(deep.DecidedBy, "roofline.whole") || !strings.Contains(deep.DecidedBy, MemoryBound) {
		t.Errorf("it does not say which decided, and that the tile differs: %s", deep.DecidedBy)
	}
}

func TestKernelHasAnEffect(t *testing.T) {
	at := func(kernel string) float64 {
		d, _, err := Advise(Input{Kernel: kernel, Category: Reduction, Problem: Problem{Dims: dims("M=4096 N=4096")}, SoC: product(t, "MI300X")})
		if err != nil {
			t.Fatal(err)
		}
		return d.Roofline.Whole.Bytes
	}
	if plain, fused := at("rmsnorm"), at("fused_add_rmsnorm"); fused < 1.9*plain {
		t.Errorf("a fused add reads and writes twice as much: %g against %g", fused, plain)
	}
}

func TestUnknownArchitectureHasNoFigures(t *testing.T) {
	for _, arch := range []string{"gfx90a", "gfx1201", "gfx9500", ""} {
		s, _ := soc.For(arch, "")
		in := Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=8192 N=8192 K=8192")}, Arch: arch, SoC: s}
		d, warnings, err := Advise(in)
		if err != nil {
			t.Fatal(err)
		}
		if d.Recommended.Regime != "" || d.Recommended.BM != 0 || d.Product != "" || d.Roofline.PeakOpsPerS != 0 || d.Roofline.Whole.Ridge != 0 || d.Occupancy != nil || d.Grid.TailVerdict != "" || d.Grid.ATT != nil {
			t.Errorf("%q has figures: %+v", arch, d)
		}
		if d.Arch != arch || !strings.Contains(codes(warnings), "ARCH_UNKNOWN") {
			t.Errorf("%q: arch %q, warnings %s", arch, d.Arch, codes(warnings))
		}
		// What does not depend on the GPU is still said.
		if !near(d.Roofline.Whole.Intensity, 2730.667, 1e-4) {
			t.Errorf("%q: intensity %g", arch, d.Roofline.Whole.Intensity)
		}
		if d, _, err = Advise(withTile(in, 128, 128, 64, 2)); err != nil || d.LDSBytes != 65536 || d.Grid.Workgroups != 4096 || d.Grid.TailVerdict != "" {
			t.Errorf("%q with a tile: %+v, %v", arch, d, err)
		}
	}
}

func TestEachGPUHasItsOwnRates(t *testing.T) {
	peak := func(s soc.SoC, dtype string) Data {
		d, _, err := Advise(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=8192 N=8192 K=8192"), DType: dtype}, SoC: s})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	assumed, _ := soc.Lookup("gfx942")
	if d := peak(assumed, "bf16"); !near(d.Roofline.PeakOpsPerS, 1307.4e12, 1e-3) || d.Product != "MI300X" || !d.ProductAssumed {
		t.Errorf("gfx942 bf16: %g, %s", d.Roofline.PeakOpsPerS, d.Product)
	}
	if d := peak(product(t, "MI355X"), "fp4"); !near(d.Roofline.PeakOpsPerS, 10066e12, 1e-3) || d.ProductAssumed {
		t.Errorf("MI355X fp4: %g", d.Roofline.PeakOpsPerS)
	}
	d, warnings, err := Advise(Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=8192 N=8192 K=8192"), DType: "fp4"}, SoC: assumed})
	if err != nil || d.Recommended.Regime != "" || d.Roofline.PeakOpsPerS != 0 || codes(warnings) != "PEAK_UNKNOWN PRODUCT_ASSUMED" {
		t.Errorf("gfx942 has no fp4: regime %q, peak %g, %s, %v", d.Recommended.Regime, d.Roofline.PeakOpsPerS, codes(warnings), err)
	}
}

func TestNoRecommendation(t *testing.T) {
	deep := Input{Kernel: "attn", Category: Attention, Problem: Problem{Dims: dims("B=1 H=1 S=4096 D=4096"), DType: "f64"}, SoC: product(t, "MI300X")}
	for name, in := range map[string]Input{
		"no model":       {Kernel: "conv3d", Category: "conv", SoC: product(t, "MI350X")},
		"nothing fits":   deep,
		"empty category": {Kernel: "x", SoC: product(t, "MI350X")},
	} {
		if _, _, err := Advise(in); envelope.CodeOf(err) != envelope.NoRecommendation {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, warnings, err := Advise(withTile(deep, 16, 16, 4096, 1))
	if err != nil || d.Occupancy.WavesPerCU != 0 || !strings.Contains(codes(warnings), "TILE_DOES_NOT_FIT") || d.Recommended.BM != 0 {
		t.Errorf("a given tile is judged all the same: %+v, %s, %v", d.Occupancy, codes(warnings), err)
	}
}

func TestOddTilesAreSaid(t *testing.T) {
	in := Input{Kernel: "gemm", Category: GEMM, Problem: Problem{Dims: dims("M=512 N=512 K=512")}, SoC: product(t, "MI350X")}
	for _, c := range []struct {
		bm, bn, bk int
		want       bool
	}{{100, 128, 64, true}, {128, 128, 64, false}, {1, 1, 1, true}} {
		_, warnings, err := Advise(withTile(in, c.bm, c.bn, c.bk, 2))
		if err != nil || strings.Contains(codes(warnings), "TILE_UNUSUAL") != c.want {
			t.Errorf("%+v: %s, %v", c, codes(warnings), err)
		}
	}
}
