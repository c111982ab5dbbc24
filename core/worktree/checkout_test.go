package worktree

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// checkout writes a small checkout in the manner of FlyDSL's, file by file.
func checkout(t testing.TB, files map[string]string) *Tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// kernelFile is a module that defines kernels of these names.
func kernelFile(names ...string) string {
	text := "import flydsl.compiler as flyc\n\n"
	for _, n := range names {
		text += fmt.Sprintf("def build_%s():\n    @flyc.kernel\n    def %s(a, b):\n        pass\n\n", n, n)
	}
	return text
}

// script is a test that is run as a program, with these flags.
func script(imports string, flags ...string) string {
	text := "import argparse\nimport torch\n" + imports + "\n\ndef run_case(m, n):\n    torch.cuda.synchronize()\n\n\nif __name__ == \"__main__\":\n    parser = argparse.ArgumentParser()\n"
	for _, f := range flags {
		text += "    parser.add_argument(" + f + ")\n"
	}
	return text + "    args = parser.parse_args()\n    run_case(1, 2)\n"
}

// flyFiles is the checkout: one file for each form that FlyDSL's tests have.
var flyFiles = map[string]string{
	"kernels/__init__.py":                        "",
	"kernels/norm/softmax_kernel.py":             kernelFile("softmax_kernel"),
	"kernels/norm/rmsnorm_kernel.py":             kernelFile("rmsnorm_kernel", "rmsnorm_large_m_small_n_kernel"),
	"kernels/norm/layernorm_kernel.py":           kernelFile("layernorm_kernel", "fused_add_layernorm_kernel"),
	"kernels/moe/topk_gating_softmax.py":         kernelFile("topk_gating_softmax_kernel"),
	"kernels/moe/moe_reduce.py":                  kernelFile("moe_reduction_kernel"),
	"kernels/moe/moe_gemm.py":                    "import flydsl.compiler as flyc\n\ndef build(h):\n    name = f\"moe_gemm1_fp8_h{h}_gateup\"\n\n    @flyc.kernel(name=name)\n    def stage1(a):\n        pass\n\n    @flyc.kernel(name=\"moe_gemm2\")\n    def stage2(a):\n        pass\n",
	"kernels/moe/moe_gemm_2stage/gemm1.py":       kernelFile("moe_gemm1"),
	"kernels/moe/moe_gemm_2stage/gemm2.py":       kernelFile("moe_gemm2"),
	"kernels/gemm/preshuffle_gemm.py":            "from flydsl import compiler as fc\n\n@fc.kernel\ndef kernel_gemm(a):\n    pass\n",
	"kernels/gemm/a16w16.py":                     "import flydsl.compiler as flyc\n\n@flyc.kernel\ndef hgemm(a):\n    pass\n\nhgemm._func.__name__ = f\"hgemm_{dt}_{bm}x{bn}\"\n",
	"kernels/attention/flash_attn.py":            kernelFile("flash_attn_func_kernel"),
	"kernels/attention/pa_decode.py":             kernelFile("pa_decode_ps_kernel"),
	"kernels/conv/conv3d.py":                     kernelFile("conv3d_implicit_kernel"),
	"kernels/comm/all_reduce.py":                 kernelFile("allreduce_1stage"),
	"kernels/common/mma/atoms.py":                "",
	"tests/__init__.py":                          "",
	"tests/conftest.py":                          "def pytest_configure():\n    pass\n",
	"tests/kernels/__init__.py":                  "",
	"tests/kernels/test_ref.py":                  "import torch\n\ndef torch_softmax(x):\n    return torch.softmax(x, -1)\n",
	"tests/kernels/test_softmax.py":              "import os\nfrom kernels.norm.softmax_kernel import build_softmax_kernel\n\ndef test_all():\n    os.environ.get(\"ROCDSL_SOFTMAX_SHAPES\", \"32768,8192,bf16\")\n    x.cuda()\n\nif __name__ == \"__main__\":\n    test_all()\n",
	"tests/kernels/test_rmsnorm.py":              "import os\nfrom kernels.norm.rmsnorm_kernel import build_rmsnorm_kernel\n\nBWD = os.environ.get('ROCDSL_RMSNORM_BWD_BENCH_SHAPES')\nFWD = os.environ.get('ROCDSL_RMSNORM_SHAPES')\n\ndef test_a():\n    run_it()\n\ndef test_b():\n    run_it()\n\nif __name__ == '__main__':\n    test_a()\n    test_b()\n",
	"tests/kernels/test_layernorm.py":            "import os, pytest\nfrom kernels.norm.layernorm_kernel import build_layernorm_kernel\nS = os.environ.get(\"ROCDSL_LAYERNORM_SHAPES\")\n\ndef test_fwd():\n    run_it()\n\n@pytest.mark.multi_gpu\ndef test_layernorm_multi_gpu():\n    torch.distributed.init_process_group('nccl')\n\nif __name__ == \"__main__\":\n    test_fwd()\n    test_layernorm_multi_gpu()\n",
	"tests/kernels/test_topk_gating_softmax.py":  "import os\nfrom kernels.moe.topk_gating_softmax import build\nS = os.environ.get(\"ROCDSL_TOPK_GATING_SHAPES\")\n\ndef test_all():\n    run_it()\n\nif __name__ == \"__main__\":\n    test_all()\n",
	"tests/kernels/test_quant.py":                script("import flydsl.compiler as flyc\n\n@flyc.kernel\ndef quant_kernel(a):\n    pass", `"-m", type=int, default=4096`, `"-n", type=int, default=8192`, `"--multi-test", action="store_true"`),
	"tests/kernels/test_moe_reduce.py":           script("from kernels.moe.moe_reduce import build", `"-t", "--tokens", type=int`, `"-k", "--topk", type=int`, `"-d", "--model_dim", type=int`, `"--dtype", choices=["f16", "bf16", "f32"]`),
	"tests/kernels/test_moe_gemm.py":             script("from kernels.moe.moe_gemm import build", `"--in_dtype", type=str, default="fp8", choices=["fp8", "fp16", "int8"]`, `"-dim", type=str2tuple, default=(6144, 4096)`, `"-t", "--tokenNum", type=int`, `"-e", "--expert", type=int`, `"-k", "--topk", type=int`),
	"tests/kernels/test_moe_gemm_2stage.py":      "import sys, pytest, argparse\nfrom kernels.moe.moe_gemm_2stage.gemm1 import a\nfrom kernels.moe.moe_gemm_2stage.gemm2 import b\n\ndef test_stage():\n    run_it()\n\nif __name__ == \"__main__\":\n    if len(sys.argv) == 1:\n        sys.exit(pytest.main([__file__]))\n    parser = argparse.ArgumentParser()\n    parser.add_argument(\"-t\", \"--tokenNum\", type=int)\n    parser.add_argument(\"-e\", \"--expert\", type=int)\n    parser.add_argument(\"-k\", \"--topk\", type=int)\n",
	"tests/kernels/test_preshuffle_gemm.py":      script("from kernels.gemm.preshuffle_gemm import build", `"-M", type=int`, `"-N", type=int`, `"-K", type=int`, `"--in_dtype", type=str, default="fp16"`, `"--no_aiter_bench", action="store_true"`),
	"tests/kernels/test_gemm_a16w16_gfx950.py":   "import pytest\nif arch != \"gfx950\":\n    pytest.skip(\"needs gfx950, got \" + arch, allow_module_level=True)\n" + script("from kernels.gemm.a16w16 import build", `"-m", type=int`, `"-n", type=int`, `"-k", type=int`, `"--dtype", type=str, default="bf16"`),
	"tests/kernels/test_gemm_fp8fp4_gfx1250.py":  script("from kernels.gemm.preshuffle_gemm import build", `"-mode", required=True`, `"-mnk", required=True`),
	"tests/kernels/test_gemm_modes.py":           script("from kernels.gemm.preshuffle_gemm import build\n\ndef test_gemm_one():\n    run_it()", `"-mode", required=True`, `"-M", type=int`, `"-N", type=int`, `"-K", type=int`),
	"tests/kernels/test_pa_pair.py":              script("from kernels.attention.pa_decode import build", `"-n", "--num_heads", type=dtypes.str2tuple`, `"-c", "--context_length", type=int`, `"-b", "--batch_size", type=int`, `"-d", "--head_dim", type=str2tuple`),
	"tests/kernels/test_conv3d_implicit.py":      "import pytest\nfrom kernels.conv.conv3d import build\n\n@pytest.mark.large_shape\ndef test_huge():\n    run_it()\n\n@pytest.mark.parametrize('c', [1])\ndef test_forward(c):\n    x.cuda()\n",
	"tests/kernels/test_flash_attn_fwd.py":       script("from kernels.attention.flash_attn import build", `"--batch", type=int`, `"--seq_len", type=int`, `"--num_heads", type=int`, `"--num_kv_heads", type=int`, `"--head_dim", type=int`, `"--causal", action=argparse.BooleanOptionalAction, default=True`, `"--dtype", type=str, default="bf16"`),
	"tests/kernels/test_swa_gfx950.py":           "from kernels.attention.flash_attn import build\n\ndef test_one():\n    run_it()\n\ndef test_two():\n    run_it()\n\nif __name__ == \"__main__\":\n    test_one()\n    test_two()\n",
	"tests/kernels/test_pa.py":                   "import pytest\naiter = pytest.importorskip(\"aiter\")\n" + script("from kernels.attention.pa_decode import build", `"-b", type=int`, `"-c", type=int`),
	"tests/kernels/test_allreduce.py":            "import torch.multiprocessing as mp\nfrom kernels.comm.all_reduce import build\n\nif __name__ == \"__main__\":\n    mp.spawn(worker, nprocs=8)\n",
	"tests/kernels/test_flydsl_shmem.py":         "import mori\n\ndef test_shmem():\n    pass\n",
	"tests/kernels/test_vec_add.py":              "import argparse\nimport flydsl.compiler as flyc\n\n@flyc.kernel\ndef vecAddKernel(a):\n    pass\n\nif __name__ == \"__main__\":\n    parser.add_argument(\"--vec-width\", type=int)\n",
	"tests/kernels/bench_preshuffle_gemm.py":     script("from kernels.gemm.preshuffle_gemm import build", `"-M", type=int`, `"-N", type=int`, `"-K", type=int`),
	"tests/kernels/attention/test_mla_decode.py": script("from kernels.attention.pa_decode import build", `"-b", type=int`, `"-c", type=int`, `"--num_iters", type=int`),
}

// TestListing asserts every file of the checkout: what it is, how it is run, and how a shape reaches it.
func TestListing(t *testing.T) {
	tree := checkout(t, flyFiles)
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		category, runner, node, bind string
		axes                         string
		multi                        bool
	}
	wants := map[string]want{
		"softmax":               {CategoryReduction, RunScript, "", BindEnv, "M,N", false},
		"rmsnorm":               {CategoryReduction, RunScript, "", BindEnv, "M,N", false},
		"layernorm":             {CategoryReduction, RunScript, "", BindEnv, "M,N", false},
		"topk_gating_softmax":   {CategoryMoE, RunScript, "", BindEnv, "T,E,k", false},
		"quant":                 {CategoryElementwise, RunScript, "", BindFlags, "M,N", false},
		"moe_reduce":            {CategoryMoE, RunScript, "", BindFlags, "T,k,D", false},
		"moe_gemm":              {CategoryMoE, RunScript, "", BindFlags, "T,E,k,D,I", false},
		"moe_gemm_2stage":       {CategoryMoE, RunPytest, "test_stage", BindFlags, "T,E,k", false},
		"preshuffle_gemm":       {CategoryGEMM, RunScript, "", BindFlags, "M,N,K", false},
		"gemm_a16w16_gfx950":    {CategoryGEMM, RunScript, "", BindFlags, "M,N,K", false},
		"gemm_fp8fp4_gfx1250":   {CategoryGEMM, RunScript, "", BindNone, "", false},
		"gemm_modes":            {CategoryGEMM, RunPytest, "test_gemm_one", BindFlags, "M,N,K", false},
		"pa_pair":               {CategoryAttention, RunScript, "", BindFlags, "B,H,S,Hkv", false},
		"conv3d_implicit":       {CategoryConv, RunPytest, "test_forward", BindNone, "", false},
		"flash_attn_fwd":        {CategoryAttention, RunScript, "", BindFlags, "B,H,S,D,Hkv", false},
		"swa_gfx950":            {CategoryAttention, RunPytest, "test_one", BindNone, "", false},
		"pa":                    {CategoryAttention, RunScript, "", BindFlags, "B,S", false},
		"allreduce":             {CategoryComm, RunScript, "", BindNone, "", true},
		"flydsl_shmem":          {CategoryComm, RunPytest, "test_shmem", BindNone, "", true},
		"vec_add":               {CategoryElementwise, RunScript, "", BindNone, "", false},
		"bench_preshuffle_gemm": {CategoryGEMM, RunScript, "", BindFlags, "M,N,K", false},
		"mla_decode":            {CategoryAttention, RunScript, "", BindFlags, "B,S", false},
	}
	for _, k := range l.Kernels {
		w, ok := wants[k.Name]
		if !ok {
			t.Errorf("%s (%s) is listed", k.Name, k.TestFile)
			continue
		}
		delete(wants, k.Name)
		got := want{k.Category, k.Runner, k.Node, k.Shape.Kind, strings.Join(k.Shape.Axes, ","), k.MultiGPU != ""}
		if got != w {
			t.Errorf("%s is %+v, want %+v", k.Name, got, w)
		}
		if k.RecipeSource != Synthesized || k.Shape.Form == "" {
			t.Errorf("%s: %+v", k.Name, k)
		}
	}
	for name := range wants {
		t.Errorf("%s is not listed", name)
	}
	if len(l.Helpers) != 1 || l.Helpers[0].Path != "tests/kernels/test_ref.py" {
		t.Errorf("helpers %v", l.Helpers)
	}
	if k, _ := l.Find("rmsnorm"); k.Shape.EnvVar != "ROCDSL_RMSNORM_SHAPES" {
		t.Errorf("rmsnorm's variable is %s", k.Shape.EnvVar)
	}
	if k, _ := l.Find("pa"); len(k.Requires) != 1 || k.Requires[0] != "aiter" {
		t.Errorf("pa requires %v", k.Requires)
	}
	if k, _ := l.Find("gemm_a16w16_gfx950"); len(k.ArchGates) == 0 {
		t.Error("the gate of gemm_a16w16_gfx950 is not told")
	}
}

// TestMatchSymbol: names that real runs launch, against what the checkout defines.
func TestMatchSymbol(t *testing.T) {
	l, err := checkout(t, flyFiles).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel, symbol string
		exact, prefix  bool
	}{
		{"softmax", "softmax_kernel_0", true, false},
		{"softmax", "softmax_kernel_1", true, false},
		{"softmax", "topk_gating_softmax_kernel_0", false, false},
		{"softmax", "softmax_kernel", false, false},
		{"softmax", "void (anonymous namespace)::softmax_warp_forward<float>", false, false},
		{"rmsnorm", "rmsnorm_large_m_small_n_kernel_0", true, false},
		{"quant", "quant_kernel_0", true, false},
		{"vec_add", "vecAddKernel_0", true, false},
		{"moe_gemm", "moe_gemm1_fp8_h4096_gateup", false, true},
		{"moe_gemm", "moe_gemm2", true, false},
		{"moe_gemm", "moe_gemm2_1", true, false},
		{"gemm_a16w16_gfx950", "hgemm_bf16_32x64_0", false, true},
		{"preshuffle_gemm", "kernel_gemm_0", true, false},
		{"preshuffle_gemm", "void ck::kernel_gemm_xdl_cshuffle_v3<int>", false, false},
		{"preshuffle_gemm", "Cijk_Ailk_Bljk", false, false},
	} {
		k, err := l.Find(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		if exact, prefix := MatchSymbol(k, c.symbol); exact != c.exact || prefix != c.prefix {
			t.Errorf("%s %s: exact %v, prefix %v", c.kernel, c.symbol, exact, prefix)
		}
	}
}

// TestInvocation: the command line and the environment that a request becomes.
func TestInvocation(t *testing.T) {
	tree := checkout(t, flyFiles)
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel, shape string
		args          []string
		argv, env     string
		code          envelope.Code
	}{
		{"softmax", "8192,4096", nil, "tests/kernels/test_softmax.py", "ROCDSL_SOFTMAX_SHAPES=8192,4096,bf16", ""},
		{"softmax", "M=8192,N=4096,f32", nil, "tests/kernels/test_softmax.py", "ROCDSL_SOFTMAX_SHAPES=8192,4096,f32", ""},
		{"softmax", "", nil, "tests/kernels/test_softmax.py", "", ""},
		{"topk_gating_softmax", "256,8,2,f32", nil, "tests/kernels/test_topk_gating_softmax.py", "ROCDSL_TOPK_GATING_SHAPES=256,8,2,f32", ""},
		{"preshuffle_gemm", "16x1024x2048xfp8", nil, "tests/kernels/test_preshuffle_gemm.py --no_aiter_bench -M 16 -N 1024 -K 2048 --in_dtype fp8", "", ""},
		{"preshuffle_gemm", "16,1024,2048,f16", []string{"--iters", "3"}, "tests/kernels/test_preshuffle_gemm.py --no_aiter_bench -M 16 -N 1024 -K 2048 --in_dtype fp16 --iters 3", "", ""},
		{"moe_gemm", "32,8,2,6144,I=4096,f16", nil, "tests/kernels/test_moe_gemm.py -dim 6144,4096 --tokenNum 32 --expert 8 --topk 2 --in_dtype fp16", "", ""},
		{"moe_gemm", "32,8,2,6144", nil, "", "", envelope.ShapeNotBound},
		{"moe_gemm", "32,8,2,6144,I=4096,fp4", nil, "", "", envelope.ShapeNotBound},
		{"moe_reduce", "16384,8,7168,f16", nil, "tests/kernels/test_moe_reduce.py --tokens 16384 --topk 8 --model_dim 7168 --dtype f16", "", ""},
		{"moe_reduce", "T=16384,E=4,k=8,D=7168", nil, "", "", envelope.BadArgs},
		{"flash_attn_fwd", "1,16,2048,128,Hkv=8,causal", nil, "tests/kernels/test_flash_attn_fwd.py --batch 1 --num_heads 16 --seq_len 2048 --head_dim 128 --num_kv_heads 8 --causal", "", ""},
		{"flash_attn_fwd", "1,16,2048,128,causal=false", nil, "tests/kernels/test_flash_attn_fwd.py --batch 1 --num_heads 16 --seq_len 2048 --head_dim 128 --no-causal", "", ""},
		{"conv3d_implicit", "", nil, "-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_conv3d_implicit.py::test_forward", "", ""},
		{"conv3d_implicit", "8,8", nil, "", "", envelope.ShapeNotBound},
		{"moe_gemm_2stage", "", nil, "-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_moe_gemm_2stage.py::test_stage", "", ""},
		{"moe_gemm_2stage", "32,8,2", nil, "tests/kernels/test_moe_gemm_2stage.py --tokenNum 32 --expert 8 --topk 2", "", ""},
		{"gemm_fp8fp4_gfx1250", "", nil, "", "", envelope.BadArgs},
		{"gemm_fp8fp4_gfx1250", "", []string{"-mode", "a", "-mnk", "1,2,3"}, "tests/kernels/test_gemm_fp8fp4_gfx1250.py -mode a -mnk 1,2,3", "", ""},
		// A test without arguments; as a script it demands a flag, also where a shape is given.
		{"gemm_modes", "", nil, "-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_gemm_modes.py::test_gemm_one", "", ""},
		{"gemm_modes", "8,16,32", nil, "", "", envelope.BadArgs},
		{"gemm_modes", "8,16,32", []string{"-mode=a"}, "tests/kernels/test_gemm_modes.py -M 8 -N 16 -K 32 -mode=a", "", ""},
		{"pa_pair", "B=3,H=8,S=1027,Hkv=1", nil, "tests/kernels/test_pa_pair.py -n 8,1 --batch_size 3 --context_length 1027", "", ""},
		{"pa_pair", "3,8,1027", nil, "", "", envelope.ShapeNotBound},
		{"pa_pair", "3,8,1027,Hkv=1,noncausal", nil, "", "", envelope.ShapeNotBound},
		{"pa_pair", "3,8,1027,Hkv=1,bf16", nil, "", "", envelope.ShapeNotBound},
		{"allreduce", "", nil, "", "", envelope.NeedsMultiGPU},
		{"softmax", "8192,4096,7", nil, "", "", envelope.BadArgs},
		{"preshuffle_gemm", "1,2,3,4", nil, "", "", envelope.BadArgs},
		{"preshuffle_gemm", "1,2", nil, "", "", envelope.BadArgs},
	} {
		k, err := l.Find(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		inv, err := tree.Invocation(k, InvocationRequest{Shape: c.shape, Args: c.args})
		if envelope.CodeOf(err) != c.code || (err != nil) != (c.code != "") {
			t.Errorf("%s %s: %v, want %q", c.kernel, c.shape, err, c.code)
			continue
		}
		if err != nil {
			continue
		}
		if got := strings.Join(inv.Argv, " "); got != c.argv {
			t.Errorf("%s %s:\n%s, want\n%s", c.kernel, c.shape, got, c.argv)
		}
		env := strings.Join(inv.Env, "\n")
		if !strings.Contains(env, "FLYDSL_PERFTEST_USE_EVENTS=1") || c.env != "" && !strings.Contains(env, c.env) || c.env == "" && strings.Contains(env, "_SHAPES=") {
			t.Errorf("%s %s: environment\n%s", c.kernel, c.shape, env)
		}
		if inv.ShapeBound != (c.shape != "") || inv.Cwd != tree.Root() {
			t.Errorf("%s %s: %+v", c.kernel, c.shape, inv)
		}
	}
}

func TestFind(t *testing.T) {
	l, err := checkout(t, flyFiles).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"softmax": "softmax", "test_softmax": "softmax", "test_softmax.py": "softmax", "tests/kernels/test_softmax.py": "softmax",
		"softmax_kernel_0": "softmax", "vecAddKernel_0": "vec_add", " rmsnorm ": "rmsnorm",
	} {
		if k, err := l.Find(name); err != nil || k.Name != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, code := range map[string]envelope.Code{
		"softmux": envelope.KernelNotFound, "": envelope.KernelNotFound, "kernel_gemm_0": envelope.AmbiguousKernel, strings.Repeat("x", 5000): envelope.KernelNotFound,
	} {
		_, err := l.Find(name)
		if envelope.CodeOf(err) != code {
			t.Errorf("%.40q: %v", name, err)
		}
		if name == "softmux" && (len(envelope.As(err).Candidates) == 0 || envelope.As(err).Candidates[0].Kernel != "softmax") {
			t.Errorf("softmux: %+v", envelope.As(err).Candidates)
		}
	}
}

func TestCustomInvocation(t *testing.T) {
	tree := checkout(t, flyFiles)
	outside := filepath.Join(t.TempDir(), "evil.py")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"python tests/kernels/test_softmax.py --a 1":                            "tests/kernels/test_softmax.py --a 1",
		"/usr/bin/python3.11 -u tests/kernels/test_softmax.py":                  "tests/kernels/test_softmax.py",
		"pytest tests/kernels/test_softmax.py::test_all -q":                     "-m pytest tests/kernels/test_softmax.py::test_all -q",
		"python -m pytest tests/kernels/test_softmax.py":                        "-m pytest tests/kernels/test_softmax.py",
		"tests/kernels/test_softmax.py":                                         "tests/kernels/test_softmax.py",
		`FLYDSL_A=1 FA_B="x y" python tests/kernels/test_softmax.py '$(id)' \|`: "tests/kernels/test_softmax.py $(id) |",
	} {
		inv, err := tree.CustomInvocation(text, tree.Root(), nil)
		if err != nil || strings.Join(inv.Argv, " ") != want {
			t.Errorf("%s: %v %+v, want %s", text, err, inv, want)
		}
	}
	for _, text := range []string{
		"", "bash -c ls", "python -c 'import os'", "python -m http.server", "python", "python ../evil.py", "pytest", "pytest -q",
		"HIP_VISIBLE_DEVICES=3 python tests/kernels/test_softmax.py", "LD_PRELOAD=/x python tests/kernels/test_softmax.py", "ROCPROF_X=1 python tests/kernels/test_softmax.py",
		"python tests/kernels/absent.py", "python tests/kernels", "python 'tests", "FA_X=1", "A=1 python tests/kernels/test_softmax.py", "python tests/kernels/test_softmax.py\nid", "sudo python tests/kernels/test_softmax.py",
		strings.Repeat("x", 5000),
	} {
		if _, err := tree.CustomInvocation(text, tree.Root(), nil); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	_, err := tree.CustomInvocation("python "+outside, tree.Root(), nil)
	if e := envelope.As(err); e.Code != envelope.PathNotAllowed || !strings.Contains(e.Message, "--allow-any-invocation") || !strings.Contains(e.Message, "--allow-path") || e.Evidence.Setting == "" {
		t.Errorf("a script elsewhere: %v", err)
	}
	_, err = tree.CustomInvocation("bash -c ls", tree.Root(), nil)
	if e := envelope.As(err); !strings.Contains(e.Message, "--allow-any-invocation") || e.Evidence.Setting == "" {
		t.Errorf("another program: %v", err)
	}
}

// TestAnyInvocation: with the setting any program runs, still cut by no shell, and what this tool sets stays its own.
func TestAnyInvocation(t *testing.T) {
	tree := checkout(t, flyFiles).WithAnyInvocation(true)
	for text, want := range map[string]string{
		"python tests/kernels/test_softmax.py --a 1":     "|tests/kernels/test_softmax.py --a 1",
		"python3 -X faulthandler -c 'print(1)'":          "|-X faulthandler -c print(1)",
		"/usr/bin/python3.11 -u /else/where.py":          "/usr/bin/python3.11|-u /else/where.py",
		"pytest -p evil /else/where.py":                  "|-m pytest -p evil /else/where.py",
		"../other/bench.py -x":                           "|../other/bench.py -x",
		"LD_LIBRARY_PATH=/a A=1 ./bench '$(id)' > out":   "./bench|$(id) > out",
		"torchrun --nproc_per_node=1 tests/kernels/x.py": "torchrun|--nproc_per_node=1 tests/kernels/x.py",
	} {
		inv, err := tree.CustomInvocation(text, tree.Root(), []string{"more"})
		if err != nil || inv.Program+"|"+strings.Join(inv.Argv, " ") != want+" more" {
			t.Errorf("%s: %v %+v, want %s", text, err, inv, want)
		}
	}
	inv, err := tree.CustomInvocation("ARCH=gfx950 LD_PRELOAD=/x ./bench", tree.Root(), nil)
	if err != nil || slices.Contains(inv.Unset, "ARCH") || !slices.Contains(inv.Unset, "COMPILE_ONLY") || !slices.Contains(inv.Env, "LD_PRELOAD=/x") {
		t.Errorf("%v %+v", err, inv)
	}
	for _, text := range []string{"", "A=1", "HIP_VISIBLE_DEVICES=3 ./bench", "ROCPROF_X=1 ./bench", "FLYPROF_RUN=1 ./bench", "./bench 'x", "./bench\nid"} {
		_, err := tree.CustomInvocation(text, tree.Root(), nil)
		if e := envelope.As(err); e.Code != envelope.BadArgs || strings.Contains(e.Message, "lifts") {
			t.Errorf("%q: %v", text, err)
		}
	}
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conv, err := l.Find("conv3d_implicit")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Invocation(conv, InvocationRequest{Args: []string{"-p", "evil"}}); err != nil {
		t.Errorf("an argument of pytest: %v", err)
	}
}

// TestRecipes: prose where values are expected, paths of other machines, GPUs that are pinned, tests that are gone.
func TestRecipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recipes.json")
	text := `[
	 {"test_file":"/some/where/FlyDSL/tests/kernels/test_softmax.py","invocation":"HIP_VISIBLE_DEVICES=0 ROCDSL_COMPARE_AITER=1 ROCDSL_SOFTMAX_SHAPES=\"32768,8192,bf16\" python tests/kernels/test_softmax.py","kernels":["softmax_kernel"],"shape_env":{"M":"256"},"notes":"long prose"},
	 {"test_file":"tests/kernels/test_preshuffle_gemm.py","invocation":"tests/kernels/test_preshuffle_gemm.py -M 16 -N 1024","kernels":["preshuffle_gemm.kernel_gemm"],"kernel_name_hint":"kernel_gemm (the fp8 one)"},
	 {"test_file":"tests/kernels/test_hgemm_splitk.py","invocation":"python tests/kernels/test_hgemm_splitk.py","kernels":[]},
	 {"test_file":42,"invocation":["x"]},
	 {"invocation":"python x.py"}
	]`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	recipes, err := LoadRecipes(path)
	if err != nil || len(recipes) != 3 {
		t.Fatalf("%v %+v", err, recipes)
	}
	tree := checkout(t, flyFiles).WithRecipes(recipes)
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	softmax, err := l.Find("softmax")
	if err != nil || softmax.RecipeSource != FromRegistry {
		t.Fatalf("%v %+v", err, softmax)
	}
	inv, err := tree.Invocation(softmax, InvocationRequest{Shape: "64,64"})
	env := ""
	if err == nil {
		env = strings.Join(inv.Env, "\n")
	}
	if err != nil || strings.Contains(env, "HIP_VISIBLE_DEVICES") || strings.Contains(env, "COMPARE_AITER=1") || strings.LastIndex(env, "SHAPES=64,64,bf16") < strings.LastIndex(env, "SHAPES=32768") {
		t.Errorf("%v\n%s", err, env)
	}
	if gemm, _ := l.Find("preshuffle_gemm"); strings.Join(gemm.RecipeArgs, " ") != "-M 16 -N 1024" || len(gemm.Hints) != 1 || gemm.Hints[0] != "kernel_gemm" {
		t.Errorf("%+v", gemm)
	}
	gone, err := l.Find("hgemm_splitk")
	if err != nil || gone.Stale == "" || len(l.Warnings) != 1 { // nothing is said of the GPU that a recipe pins
		t.Fatalf("%v %+v %v", err, gone, l.Warnings)
	}
	if _, err := tree.Invocation(gone, InvocationRequest{}); envelope.CodeOf(err) != envelope.RecipeStale {
		t.Errorf("%v", err)
	}
	own, err := parseRecipes([]byte(`[{"test_file":"tests/kernels/test_softmax.py","invocation":"FLYDSL_BENCH=1 PYTHONPATH=/x LD_PRELOAD=/y.so python tests/kernels/test_softmax.py"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for any, left := range map[bool]bool{false: true, true: false} {
		l, err := tree.WithRecipes(own).WithAnyInvocation(any).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Find("softmax")
		if err != nil || !slices.Contains(k.RecipeEnv, "FLYDSL_BENCH=1") || slices.Contains(k.RecipeEnv, "PYTHONPATH=/x") == left {
			t.Errorf("any=%v: %v %+v", any, err, k.RecipeEnv)
		}
		if warned := len(l.Warnings) == 1 && strings.Contains(l.Warnings[0].Message, "PYTHONPATH, LD_PRELOAD (test_softmax.py)"); warned != left {
			t.Errorf("any=%v: %v", any, l.Warnings)
		}
	}
	// The way that a recipe takes is kept where the file has it.
	for _, c := range []struct{ test, invocation, shape, argv string }{
		{"test_conv3d_implicit.py", "python -m pytest -q /else/where/tests/kernels/test_conv3d_implicit.py::test_huge -k 'c1 or c2'", "",
			"-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_conv3d_implicit.py::test_huge -k c1 or c2"},
		{"test_conv3d_implicit.py", "python tests/kernels/test_conv3d_implicit.py --iters 5", "",
			"-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_conv3d_implicit.py::test_forward"},
		{"test_swa_gfx950.py", "FLYDSL_BENCH=1 python tests/kernels/test_swa_gfx950.py", "", "tests/kernels/test_swa_gfx950.py"},
		{"test_moe_gemm_2stage.py", "tests/kernels/test_moe_gemm_2stage.py -t 8", "", "tests/kernels/test_moe_gemm_2stage.py -t 8"},
		{"test_moe_gemm_2stage.py", "pytest tests/kernels/test_moe_gemm_2stage.py", "",
			"-m pytest -q -x -s -p no:cacheprovider -p no:xdist -m not large_shape tests/kernels/test_moe_gemm_2stage.py::test_stage"},
		{"test_preshuffle_gemm.py", "python tests/kernels/test_preshuffle_gemm.py -M 16 -N 1024", "1,2,3", "tests/kernels/test_preshuffle_gemm.py --no_aiter_bench -M 16 -N 1024 -M 1 -N 2 -K 3"},
		{"test_gemm_modes.py", "python tests/kernels/test_gemm_modes.py -mode b", "", "tests/kernels/test_gemm_modes.py -mode b"},
	} {
		raw, err := json.Marshal([]map[string]string{{"test_file": "tests/kernels/" + c.test, "invocation": c.invocation}})
		if err != nil {
			t.Fatal(err)
		}
		recipes, err := parseRecipes(raw)
		if err != nil {
			t.Fatal(err)
		}
		own := tree.WithRecipes(recipes)
		l, err := own.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Find(c.test)
		if err != nil || k.RecipeSource != FromRegistry {
			t.Fatalf("%s: %v %+v", c.test, err, k)
		}
		inv, err := own.Invocation(k, InvocationRequest{Shape: c.shape})
		if err != nil || strings.Join(inv.Argv, " ") != c.argv || inv.Recipe != FromRegistry {
			t.Errorf("%s: %v %+v", c.invocation, err, inv)
		}
	}
	for name, text := range map[string]string{"torn": `[{`, "no list": `{"a":1}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadRecipes(path); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct{ category, text, want string }{
		{CategoryGEMM, "8192x4096*2048,bf16", "8192,4096,2048,bf16"},
		{CategoryGEMM, "M=1, N=2 K=3", "1,2,3"},
		{CategoryGEMM, "k=3;m=1;n=2;fp16", "1,2,3,f16"},
		{CategoryReduction, "rows=8,cols=9,float32", "8,9,f32"},
		{CategoryAttention, "1,32,4096,128,causal", "1,32,4096,128,causal"},
		{CategoryAttention, "B=1,H=32,S=4096,D=128,kv_heads=8,bf16", "1,32,4096,128,Hkv=8,bf16"},
		{CategoryMoE, "4096,8,2,7168,fp8", "4096,8,2,7168,fp8"},
		{CategoryMoE, "4096,8,2", "4096,8,2"},
		{CategoryMoE, "T=4096,E=8,k=2,I=2048", "4096,8,2,I=2048"},
		{CategoryGEMM, "1 x 2 X 3 x mxfp4", "1,2,3,fp4"},
		{CategoryGEMM, "1×2×3,dtype=half", "1,2,3,f16"},
		{CategoryAttention, "1,2,3,4,causal=0", "1,2,3,4,noncausal"},
	} {
		s, err := ParseShape(c.category, c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("%s %q: %q %v, want %q", c.category, c.text, s, err, c.want)
			continue
		}
		if again, err := ParseShape(c.category, s.String()); err != nil || again.String() != c.want {
			t.Errorf("%q is not read back: %v", c.want, err)
		}
	}
	for _, c := range []struct{ category, text string }{
		{CategoryGEMM, ""}, {CategoryGEMM, "1,2"}, {CategoryGEMM, "1,2,3,4"}, {CategoryGEMM, "0,2,3"}, {CategoryGEMM, "-1,2,3"}, {CategoryGEMM, "1e3,2,3"}, {CategoryGEMM, "1,2,3,bf16,fp8"},
		{CategoryGEMM, "M=1,M=2,N=3,K=4"}, {CategoryGEMM, "1,,3"}, {CategoryGEMM, "99999999999,1,1"}, {CategoryGEMM, "1,2,3,causal"}, {CategoryGEMM, "bf16,1,2,3"}, {CategoryGEMM, "M=1,2,3"}, {CategoryGEMM, "1,2,3,M=1"}, {CategoryGEMM, "1,2,3,Z=1"}, {CategoryGEMM, "M=,N=1,K=1"},
		{CategoryGEMM, "1,2,3,dtype=x"}, {CategoryAttention, "1,2,3,4,causal=maybe"}, {CategoryAttention, "1,2,3,4,causal,noncausal"}, {CategoryGEMM, "+1,2,3"}, {CategoryGEMM, "0x10,2,3"}, {CategoryGEMM, "1.5,2,3"}, {CategoryReduction, "8,9,bf17"}, {CategoryOther, "1,2"},
		{CategoryGEMM, strings.Repeat("1,", 300)},
	} {
		if s, err := ParseShape(c.category, c.text); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%s %.40q: %v %v", c.category, c.text, s, err)
		}
	}
}

// TestBounds: links are not followed, loops end, odd files are passed over, a huge file is not read.
func TestBounds(t *testing.T) {
	tree := checkout(t, flyFiles)
	dir := filepath.Join(tree.Root(), "tests", "kernels")
	big := filepath.Join(dir, "test_big.py")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "test_leak.py")); err != nil {
		t.Fatal(err)
	}
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	noted := map[string]string{}
	for _, n := range l.Skipped {
		noted[n.Path] = n.Why
	}
	for _, name := range []string{"tests/kernels/test_big.py", "tests/kernels/loop", "tests/kernels/out", "tests/kernels/test_leak.py"} {
		if noted[name] == "" {
			t.Errorf("%s was passed over without a word: %v", name, l.Skipped)
		}
	}
	if _, err := l.Find("big"); err == nil {
		t.Error("a file of a gigabyte was read")
	}
	for _, root := range []string{"", "/", filepath.Join(tree.Root(), "absent"), big, strings.Repeat("x", 5000)} {
		if _, err := Open(t.Context(), root); envelope.CodeOf(err) != envelope.WorktreeInvalid {
			t.Errorf("%.40q: %v", root, err)
		}
	}
}

// TestScaled: the smaller and larger problems of a capture.
func TestScaled(t *testing.T) {
	for _, c := range []struct {
		category, text, leads string
		num, den              int64
		want                  string
	}{
		{CategoryGEMM, "8192,4096,2048,bf16", "M", 1, 8, "1024,4096,2048,bf16"},
		{CategoryGEMM, "7,4,2", "M", 1, 2, "3,4,2"},
		{CategoryGEMM, "1,4,2", "M", 1, 4, "1,4,2"},
		{CategoryGEMM, "2147483647,4,2", "M", 4, 1, "2147483647,4,2"},
		{CategoryGEMM, "8,4,2", "M", 0, 1, "8,4,2"},
		{CategoryGEMM, "8,4,2", "M", 1, 0, "8,4,2"},
		{CategoryAttention, "1,32,4096,128,causal", "S", 1, 4, "1,32,1024,128,causal"},
		{CategoryMoE, "4096,8,2,7168", "T", 3, 2, "6144,8,2,7168"},
		{CategoryReduction, "M=64,N=128", "M", 2, 1, "128,128"},
	} {
		s, err := ParseShape(c.category, c.text)
		if err != nil {
			t.Fatal(err)
		}
		before := s.String()
		if got := s.Scaled(s.LeadingAxis(), c.num, c.den); s.LeadingAxis() != c.leads || got.String() != c.want || s.String() != before {
			t.Errorf("%s by %d/%d of %s: %s, want %s", c.text, c.num, c.den, s.LeadingAxis(), got, c.want)
		}
	}
	if (Shape{}).LeadingAxis() != "" {
		t.Error("nothing leads")
	}
}

func FuzzParsePython(f *testing.F) {
	for _, text := range flyFiles {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := parsePython("tests/kernels/test_x.py", text)
		for _, s := range file.symbols {
			s.Match("softmax_kernel_0")
		}
		bind(file, CategoryGEMM)
	})
}

func FuzzShape(f *testing.F) {
	for _, seed := range []string{"1,2,3", "M=1,N=2,K=3,bf16", "1x2x3xfp8", "B=1,H=2,S=3,D=4,causal", "T=1,E=2,k=3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for category := range axesOf {
			s, err := ParseShape(category, text)
			if err != nil {
				continue
			}
			again, err := ParseShape(category, s.String())
			if err != nil || again.String() != s.String() {
				t.Fatalf("%q became %q, which is read as %q (%v)", text, s, again, err)
			}
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`A=1 python "t s.py" 'x' \"`)
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitWords(text)
		if err == nil && len(words) > maxWords+1 {
			t.Fatalf("%d words", len(words))
		}
	})
}

func FuzzRecipes(f *testing.F) {
	f.Add([]byte(`[{"test_file":"tests/kernels/test_x.py","invocation":"A=1 python x.py -a"}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		recipes, err := parseRecipes(raw)
		if err == nil {
			for _, r := range recipes {
				if strings.Contains(r.Test, "..") && !strings.HasSuffix(r.Test, ".py") {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}

// BenchmarkList lists a checkout of FlyDSL's size: 35 tests among 300 Python files, of which the tests import 100 with 3 MB.
func BenchmarkList(b *testing.B) {
	files := map[string]string{}
	for name, text := range flyFiles {
		files[name] = text
	}
	body := strings.Repeat("        offset = fx.Int32(tid * vec + block[\"x\"] * stride)  # row-major\n        if const_expr(masked and offset >= limit):\n            value = buffer_ops.load(rsrc, offset, vec_width=vec, dtype=T.f32)\n", 150)
	var imports strings.Builder
	for i := range 270 {
		files[fmt.Sprintf("kernels/more/k%d.py", i)] = kernelFile(fmt.Sprintf("k%d", i)) + "def helper():\n    for i in range_constexpr(4):\n" + body
		if i < 100 {
			fmt.Fprintf(&imports, "from kernels.more.k%d import build_k%d\n", i, i)
		}
	}
	for i := range 12 {
		files[fmt.Sprintf("tests/kernels/test_more%d.py", i)] = imports.String() + "\ndef test_it():\n    run_it()\n"
	}
	tree := checkout(b, files)
	for b.Loop() {
		if l, err := tree.List(b.Context()); err != nil || len(l.Kernels) < 34 || l.FilesRead < 130 {
			b.Fatal(err, len(l.Kernels), l.FilesRead)
		}
	}
}
