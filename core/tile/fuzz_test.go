package tile

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

var verdicts = regexp.MustCompile(`^(saturated|exact-fit|(tail-underfill|underfilled)-([1-9][0-9]?|100)pct)$`)

// Whatever is asked, the answer is finite JSON that agrees with itself, or a catalogue error that names a field.
func FuzzAdvise(f *testing.F) {
	f.Add("softmax_kernel_0", Reduction, "M N", int64(32768), int64(8192), int64(0), int64(0), int64(0), "bf16", "", "MI350X", 0, 0, 0, 0, int64(0))
	f.Add("gemm", GEMM, "M N K", int64(8192), int64(1), int64(1<<31-1), int64(0), int64(0), "fp4", "f32", "MI300X", 4096, 4096, 4096, 8, int64(0))
	f.Add("pa_decode", Attention, "B H S D Hkv", int64(16), int64(32), int64(1<<30), int64(1), int64(8), "a8w4", "", "MI355X", 1, 1, 1, 1, int64(7))
	f.Add("mla", Attention, "B H S D Sq", int64(1), int64(1), int64(1), int64(4096), int64(1), "f64", "", "MI300A", 0, 0, 0, 0, int64(1<<62))
	f.Add("moe_stage2", MoE, "T E k D I", int64(1<<31-1), int64(1<<31-1), int64(1), int64(1), int64(1), "int4", "fp8", "MI325X", 16, 16, 16, 1, int64(0))
	f.Add("moe_sorting", MoE, "T E k", int64(1), int64(1), int64(1), int64(0), int64(0), "", "", "", 0, 0, 0, 0, int64(-1))
	f.Add("vecAdd\xff", Elementwise, "M N", int64(1), int64(1), int64(0), int64(0), int64(0), "f64", "fp6", "gfx90a", -1, 0, 1, 0, int64(1))
	f.Add("", "conv", "", int64(-1), int64(0), int64(0), int64(0), int64(0), "\x00", "", "MI350X", 0, 0, 0, 0, int64(0))
	f.Fuzz(func(t *testing.T, kernel, category, names string, v0, v1, v2, v3, v4 int64, dtype, out, gpu string, bm, bn, bk, buffers int, measured int64) {
		in := Input{Kernel: kernel, Category: category, OutDType: out, Arch: gpu, MeasuredWorkgroups: measured}
		in.Problem.DType = dtype
		values := []int64{v0, v1, v2, v3, v4}
		for i, name := range strings.Fields(names) {
			in.Problem.Dims = append(in.Problem.Dims, Dim{name, values[i%len(values)]})
		}
		in.SoC, _ = soc.ByProduct(gpu)
		for _, a := range []struct {
			value int
			into  **int
		}{{bm, &in.BM}, {bn, &in.BN}, {bk, &in.BK}, {buffers, &in.Buffers}} {
			if a.value != 0 {
				*a.into = &a.value
			}
		}
		if category == Attention && v0%2 == 0 {
			causal := v1%2 == 0
			in.Problem.Causal = &causal
		}
		d, _, err := Advise(in)
		if err != nil {
			code := envelope.CodeOf(err)
			if code != envelope.BadArgs && code != envelope.NoRecommendation {
				t.Fatalf("code %q: %v", code, err)
			}
			if envelope.As(err).Evidence.Field == "" {
				t.Fatalf("no field: %v", err)
			}
			return
		}
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(raw) || len(raw) > 16000 {
			t.Fatalf("%d bytes, valid UTF-8 %v", len(raw), utf8.Valid(raw))
		}
		checkAnswer(t, in, d)
	})
}

func checkAnswer(t *testing.T, in Input, d Data) {
	t.Helper()
	w := d.Roofline.Whole
	if w.Bytes <= 0 || w.FLOPs < 0 || w.Intensity < 0 {
		t.Fatalf("whole %+v", w)
	}
	if tile := d.Roofline.Tile; tile != nil && (tile.Bytes <= 0 || tile.FLOPs < 0) {
		t.Fatalf("tile %+v", tile)
	}
	if (w.Ridge > 0) != (d.Recommended.Regime != "") {
		t.Fatalf("ridge %g and regime %q", w.Ridge, d.Recommended.Regime)
	}
	if !in.SoC.Known() {
		if d.Recommended.Regime != "" || d.Grid.TailVerdict != "" || d.Occupancy != nil {
			t.Fatalf("figures without a GPU: %+v", d)
		}
		return
	}
	g := d.Grid
	if d.Evaluated.BM > 0 || in.MeasuredWorkgroups > 0 {
		if g.Workgroups < 1 || !verdicts.MatchString(g.TailVerdict) || *g.FullWaves*int64(g.TargetCUs)+*g.Tail != g.Workgroups {
			t.Fatalf("grid %+v", g)
		}
		if !slices.Contains([]string{"likely", "unlikely", "none"}, g.ATT.Verdict) || g.ATT.MinLeadingDim < 0 {
			t.Fatalf("att %+v", g.ATT)
		}
	}
	if o := d.Occupancy; o != nil && (o.WavesPerCU < 0 || o.WavesPerCU > 32 || d.LDSBytes < 0 || d.VGPREstimate < 1) {
		t.Fatalf("occupancy %+v, LDS %d, registers %d", o, d.LDSBytes, d.VGPREstimate)
	}
}
