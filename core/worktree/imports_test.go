package worktree

import (
	"slices"
	"strings"
	"testing"
)

// importFiles has tests that reach their kernels by other ways than one import of the module that defines them.
var importFiles = map[string]string{
	// A package whose __init__ hands on what its modules define, one of them under another name.
	"kernels/__init__.py":          "from kernels.moe import anything\n",
	"kernels/moe/__init__.py":      "",
	"kernels/moe/two/__init__.py":  "from .gemm1 import build as build1\nfrom kernels.moe.two.gemm2 import build2\nfrom .reduce import build_reduce\nimport json\n",
	"kernels/moe/two/gemm1.py":     kernelFile("moe_gemm1"),
	"kernels/moe/two/gemm2.py":     kernelFile("moe_gemm2"),
	"kernels/moe/two/reduce.py":    kernelFile("moe_reduction_kernel"),
	"kernels/moe/star/__init__.py": "from .inner import *\n",
	"kernels/moe/star/inner.py":    kernelFile("star_kernel"),
	// A host function that chooses among kernels when it is called.
	"kernels/attention/interface.py": "def run(arch):\n    if arch == 'a':\n        from kernels.attention.generic import build\n    else:\n        from . import special\n",
	"kernels/attention/generic.py":   kernelFile("attn_generic_kernel"),
	"kernels/attention/special.py":   kernelFile("attn_special_kernel"),
	// A ring.
	"kernels/ring/a.py": "from kernels.ring.b import x\n" + kernelFile("ring_a"),
	"kernels/ring/b.py": "from kernels.ring.a import y\n" + kernelFile("ring_b"),

	"tests/kernels/common_bench.py": "from kernels.moe.two.reduce import build_reduce\n\ndef bench_all():\n    from kernels.attention.generic import build\n    from kernels.ring.a import x\n",

	"tests/kernels/test_stage1.py":    "from kernels.moe.two import build1\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_both.py":      "from kernels.moe.two import (\n    build1,  # noqa\n    build2 as second,\n)\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_package.py":   "from kernels.moe import two\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_star.py":      "from kernels.moe.star import build_star_kernel\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_interface.py": "from kernels.attention.interface import run\nfrom tests.kernels.common_bench import bench_all\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_sibling.py":   "import common_bench\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_ring.py":      "import kernels.ring.a as ring\n\ndef test_it():\n    pass\n",
	"tests/kernels/test_dynamic.py":   "import importlib\n\ndef test_it():\n    importlib.import_module('kernels.attention.special')\n",
	"tests/kernels/test_nothing.py":   "import kernels\nimport torch, json\n\ndef test_it():\n    pass\n",
}

// TestImports: which kernels a test launches, and which merely come along.
func TestImports(t *testing.T) {
	l, err := checkout(t, importFiles).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kernel, near, far string }{
		{"stage1", "moe_gemm1_", "moe_gemm2_ moe_reduction_kernel_"},
		{"both", "moe_gemm1_ moe_gemm2_", "moe_reduction_kernel_"},
		{"package", "moe_gemm1_ moe_gemm2_ moe_reduction_kernel_", ""},
		{"star", "star_kernel_", ""},
		{"interface", "attn_generic_kernel_ attn_special_kernel_ moe_reduction_kernel_", "moe_gemm1_ moe_gemm2_ ring_a_ ring_b_"},
		{"sibling", "moe_reduction_kernel_", "attn_generic_kernel_ moe_gemm1_ moe_gemm2_ ring_a_ ring_b_"},
		{"ring", "ring_a_ ring_b_", ""},
		{"dynamic", "attn_special_kernel_", ""},
		{"nothing", "", ""},
	} {
		k, err := l.Find(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		var near, far []string
		for _, s := range k.Symbols {
			if s.Direct {
				near = append(near, s.Prefix)
			} else {
				far = append(far, s.Prefix)
			}
		}
		slices.Sort(near)
		slices.Sort(far)
		if got := strings.Join(near, " "); got != c.near {
			t.Errorf("%s launches %q, want %q", c.kernel, got, c.near)
		}
		if got := strings.Join(far, " "); got != c.far {
			t.Errorf("with %s come %q, want %q", c.kernel, got, c.far)
		}
	}
	stage1, err := l.Find("stage1")
	if err != nil {
		t.Fatal(err)
	}
	for symbol, want := range map[string][2]bool{"moe_gemm1_0": {true, false}, "moe_gemm2_0": {false, true}, "star_kernel_0": {false, false}} {
		if exact, prefix := MatchSymbol(stage1, symbol); exact != want[0] || prefix != want[1] {
			t.Errorf("stage1 and %s: exact %v, prefix %v", symbol, exact, prefix)
		}
	}
	// A kernel that two tests are made of is ambiguous; one that a single test launches and others only bring along is not.
	if k, err := l.Find("star_kernel_3"); err != nil || k.Name != "star" {
		t.Errorf("star_kernel_3: %v", err)
	}
}
