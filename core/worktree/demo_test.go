package worktree_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/worktree"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// TestDemoCheckout: the checkout that the simulated GPU brings, kernel by kernel.
func TestDemoCheckout(t *testing.T) {
	dir := t.TempDir()
	if err := sim.WriteDemoWorktree(dir); err != nil {
		t.Fatal(err)
	}
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ category, runner, node, bind, axes, shape, argv, env string }
	wants := map[string]row{
		"softmax":         {"reduction", "script", "", "env", "M N", "8192,4096,f32", "tests/kernels/test_softmax.py", "ROCDSL_SOFTMAX_SHAPES=8192,4096,f32"},
		"rmsnorm":         {"reduction", "script", "", "env", "M N", "rows=64,cols=128", "tests/kernels/test_rmsnorm.py", "ROCDSL_RMSNORM_SHAPES=64,128,bf16"},
		"gemm":            {"gemm", "script", "", "flags", "M N K", "8x16x32xfp8", "tests/kernels/test_gemm.py --no_aiter_bench -M 8 -N 16 -K 32 --in_dtype fp8", ""},
		"moe_sorting":     {"moe", "script", "", "flags", "T E k", "4096,64,8", "tests/kernels/test_moe_sorting.py -T 4096 -E 64 -k 8", ""},
		"moe_gemm_2stage": {"moe", "script", "", "flags", "T E k D", "4096,8,2,2048", "tests/kernels/test_moe_gemm_2stage.py --tokenNum 4096 --expert 8 --topk 2 --hidden 2048", ""},
		"flash_attn_fwd": {"attention", "script", "", "flags", "B H S D Hkv", "1,32,4096,128,Hkv=8,causal=no,fp16",
			"tests/kernels/test_flash_attn_fwd.py --batch 1 --num_heads 32 --seq_len 4096 --head_dim 128 --num_kv_heads 8 --dtype fp16 --no-causal", ""},
		"conv3d_implicit": {"conv", "pytest", "test_conv3d_forward", "none", "", "", "-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_conv3d_implicit.py::test_conv3d_forward", ""},
		"vec_add":         {"elementwise", "script", "", "none", "", "", "tests/kernels/test_vec_add.py", ""},
		"allreduce":       {"comm", "script", "", "none", "", "", "", ""},
	}
	if len(l.Kernels) != len(wants) || len(sim.DemoKernels()) != len(wants) {
		t.Errorf("%d kernels are listed and %d can be launched, want %d", len(l.Kernels), len(sim.DemoKernels()), len(wants))
	}
	for _, d := range sim.DemoKernels() {
		want := wants[d.Name]
		k, err := l.Find(d.Name)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		got := row{k.Category, k.Runner, k.Node, k.Shape.Kind, strings.Join(k.Shape.Axes, " "), want.shape, want.argv, want.env}
		if got != want || k.TestFile != d.Test || k.RecipeSource != worktree.Synthesized || (k.MultiGPU == "") != d.Runs {
			t.Errorf("%s is %+v (%s, %s, %q)", d.Name, got, k.TestFile, k.RecipeSource, k.MultiGPU)
		}
		if exact, prefix := worktree.MatchSymbol(k, d.Symbol); !exact || prefix {
			t.Errorf("%s: its symbol %s: exact %v, prefix %v", d.Name, d.Symbol, exact, prefix)
		}
		if by, err := l.Find(d.Symbol); err != nil || by.Name != d.Name {
			t.Errorf("%s: by its symbol %s: %v", d.Name, d.Symbol, err)
		}
		// No other kernel's symbol fits.
		for _, other := range sim.DemoKernels() {
			if exact, prefix := worktree.MatchSymbol(k, other.Symbol); other.Name != d.Name && (exact || prefix) {
				t.Errorf("%s: %s fits", d.Name, other.Symbol)
			}
		}
		// A kernel is stored with a run and read back by its supervisor.
		raw, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		var stored worktree.Kernel
		if err := json.Unmarshal(raw, &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*k, stored); diff != "" {
			t.Errorf("%s changed on disk: %s", d.Name, diff)
		}
		inv, err := tree.Invocation(&stored, worktree.InvocationRequest{Shape: want.shape})
		if !d.Runs {
			if envelope.CodeOf(err) != envelope.NeedsMultiGPU {
				t.Errorf("%s: %v", d.Name, err)
			}
			continue
		}
		if err != nil || strings.Join(inv.Argv, " ") != want.argv || want.env != "" && !strings.Contains(strings.Join(inv.Env, "\n"), want.env) {
			t.Errorf("%s: %v %+v", d.Name, err, inv)
			continue
		}
		if _, err := os.Stat(filepath.Join(inv.Cwd, filepath.FromSlash(d.Test))); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if inv.Recipe != worktree.Synthesized || inv.ShapeBound != (want.shape != "") || inv.ShapeBound != (inv.Shape != "") {
			t.Errorf("%s: %+v", d.Name, inv)
		}
	}
	if len(l.Helpers) != 1 || l.Helpers[0].Path != "tests/kernels/test_ref.py" || l.Truncated != "" || len(l.Skipped) != 0 || len(l.Warnings) != 0 {
		t.Errorf("%+v", l)
	}
}
