package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLogicalLines: what the parser sees of a file.
func TestLogicalLines(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"plain":                 {"a\n  b\n", "1:0:a 2:2:b"},
		"no end of line":        {"a", "1:0:a"},
		"comments":              {"# x\na # y\n#\nb", "2:0:a 4:0:b"},
		"a hash in a string":    {"a('#')\n", "1:0:a('#')"},
		"brackets join":         {"f(\n  1,\n  2)\ng\n", "1:0:f(   1,   2) 4:0:g"},
		"backslash joins":       {"a \\\n b\nc\n", "1:0:a  b 3:0:c"},
		"docstring":             {"'''def f():\n@flyc.kernel\n'''\nb\n", "1:0:'' 4:0:b"},
		"docstring quotes":      {"\"\"\"a \\\"\"\" b\n\"\"\"\nc\n", "1:0:\"\" 3:0:c"},
		"unclosed docstring":    {"a\n\"\"\"b\nc\n", "1:0:a 2:0:\"\""},
		"unclosed string":       {"a = 'x\nb\n", "1:0:a = 'x' 2:0:b"},
		"unclosed bracket":      {"f(1\ndef g():\n", "1:0:f(1 2:0:def g():"},
		"stray closing bracket": {")\n]\nb\n", "1:0:) 2:0:] 3:0:b"},
		"Windows line ends":     {"a\r\n b\r\n", "1:0:a 2:1:b"},
		"escaped quote":         {"a('\\'#')\nb\n", "1:0:a('\\'#') 2:0:b"},
		"empty":                 {"", ""},
		"blank lines":           {"\n\n  \n\ta\n", "4:1:a"},
	} {
		var got []string
		for _, l := range logicalLines(c.src) {
			got = append(got, fmt.Sprintf("%d:%d:%s", l.no, l.indent, l.text))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), c.want)
		}
	}
}

// TestKernelDecorators: every way to say that a function is a kernel, and the symbols that follow from it.
func TestKernelDecorators(t *testing.T) {
	const use = "import flydsl.compiler as flyc\n"
	for name, c := range map[string]struct {
		src     string
		kind    string // "" where it is no kernel
		fits    []string
		unfit   []string
		exactly bool
	}{
		"def":              {use + "@flyc.kernel\ndef f(a): pass", KindDef, []string{"f_0", "f_12"}, []string{"f", "f_", "xf_0", "f_0_1", "f_a"}, true},
		"called":           {use + "@flyc.kernel()\ndef f(a): pass", KindDef, []string{"f_0"}, []string{"f"}, true},
		"other arguments":  {use + "@flyc.kernel(known_block_size=[256, 1, 1])\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"over lines":       {use + "@flyc.kernel(\n    known_block_size=[256, 1, 1],\n    name='x',\n)\ndef f(a): pass", KindName, []string{"x", "x_1"}, []string{"f_0", "x_"}, true},
		"below another":    {use + "@wraps(g)\n@flyc.kernel\n@other\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"async":            {use + "@flyc.kernel\nasync def f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"nested":           {use + "def g():\n    class A:\n        @flyc.kernel\n        def f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"full name":        {"import flydsl.compiler\n@flydsl.compiler.kernel\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"other alias":      {"import flydsl.compiler as C\n@C.kernel\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"from flydsl":      {"from flydsl import compiler as fc, expr\n@fc.kernel\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"bare":             {"from flydsl.compiler import (\n    jit,\n    kernel as k,\n)\n@k(name=\"x\")\ndef f(a): pass", KindName, []string{"x"}, nil, true},
		"name None":        {use + "@flyc.kernel(name=None)\ndef f(a): pass", KindDef, []string{"f_0"}, nil, true},
		"joined literals":  {use + "@flyc.kernel(name='ab' \"cd\")\ndef f(a): pass", KindName, []string{"abcd"}, []string{"ab"}, true},
		"f-string":         {use + "@flyc.kernel(name=f\"a_{x['y']}_b{{}}\")\ndef f(a): pass", KindVariable, nil, []string{"a_1_b"}, false}, // braces are in no symbol
		"f-string gaps":    {use + "@flyc.kernel(name=f'q_{m}_n{n}')\ndef f(a): pass", KindFString, []string{"q_fp8_n4", "q__n", "q_fp8_n4_1"}, []string{"q_fp8", "xq_a_n1", "q_a n1"}, false},
		"variable":         {use + "n = f'q_{m}'\n@flyc.kernel(name=n)\ndef f(a): pass", KindFString, []string{"q_a", "q_a_0"}, []string{"q"}, false},
		"unknown variable": {use + "@flyc.kernel(name=make())\ndef f(a): pass", KindVariable, nil, []string{"f_0", ""}, false},
		"nothing fixed":    {use + "@flyc.kernel(name=f'{m}')\ndef f(a): pass", KindVariable, nil, []string{"anything"}, false},
		"no symbol":        {use + "@flyc.kernel(name='a.*(b')\ndef f(a): pass", KindVariable, nil, []string{"a.*(b", "axxb"}, false},
		"other decorator":  {use + "@triton.jit\ndef f(a): pass", "", nil, nil, false},
		"other kernel":     {"@numba.kernel\ndef f(a): pass", "", nil, nil, false},
		"unimported":       {"@kernel\ndef f(a): pass", "", nil, nil, false},
		"jit":              {use + "@flyc.jit\ndef f(a): pass", "", nil, nil, false},
		"in a docstring":   {use + "\"\"\"\n@flyc.kernel\ndef f(a): pass\n\"\"\"\n", "", nil, nil, false},
		"in a comment":     {use + "# @flyc.kernel\ndef f(a): pass", "", nil, nil, false},
		"of no function":   {use + "@flyc.kernel\nx = 1\ndef f(a): pass", "", nil, nil, false},
	} {
		f := parsePython("kernels/k.py", c.src)
		if c.kind == "" {
			if len(f.symbols) != 0 {
				t.Errorf("%s: %+v", name, f.symbols)
			}
			continue
		}
		if len(f.symbols) != 1 || f.symbols[0].Kind != c.kind || f.symbols[0].Func != "f" || f.symbols[0].Exact != c.exactly {
			t.Errorf("%s: %+v", name, f.symbols)
			continue
		}
		for _, symbol := range c.fits {
			if !f.symbols[0].Match(symbol) {
				t.Errorf("%s: %s does not fit %s", name, symbol, f.symbols[0].Pattern)
			}
		}
		for _, symbol := range c.unfit {
			if f.symbols[0].Match(symbol) {
				t.Errorf("%s: %s fits %s", name, symbol, f.symbols[0].Pattern)
			}
		}
	}
	f := parsePython("kernels/k.py", use+"\n\n@flyc.kernel\ndef f(a): pass")
	if len(f.symbols) != 1 || f.symbols[0].Source != "kernels/k.py:4" {
		t.Errorf("%+v", f.symbols)
	}
}

// TestFlags: what add_argument says.
func TestFlags(t *testing.T) {
	for call, want := range map[string]pyFlag{
		`"-M", "--rows", type=int, default=4`:                        {names: []string{"-M", "--rows"}, def: "4"},
		`'-x', required=True`:                                        {names: []string{"-x"}, required: true},
		`"--bench", action="store_true"`:                             {names: []string{"--bench"}, isSwitch: true},
		`"--causal", action=argparse.BooleanOptionalAction`:          {names: []string{"--causal"}, isSwitch: true},
		`"--batch", type=int, nargs="+", default=[1, 2]`:             {names: []string{"--batch"}, many: true, def: "[1, 2]"},
		`"-dim", type=dtypes.str2tuple, default=(6144, 4096)`:        {names: []string{"-dim"}, tuple: true, def: "(6144, 4096)"},
		`"--dtype", choices=("f16", 'bf16'), help="a, b) c"`:         {names: []string{"--dtype"}, choices: []string{"f16", "bf16"}},
		`"--help-me", type=int, help="say (x, y), nargs='*' # here"`: {names: []string{"--help-me"}},
	} {
		f := parsePython("tests/kernels/test_x.py", "p.add_argument("+call+")\n")
		if len(f.flags) != 1 || fmt.Sprintf("%+v", f.flags[0]) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, want %+v", call, f.flags, want)
		}
	}
	for _, call := range []string{`"positional"`, `name`, ``, `*names`} {
		if f := parsePython("tests/kernels/test_x.py", "p.add_argument("+call+")\n"); len(f.flags) != 0 {
			t.Errorf("%s: %+v", call, f.flags)
		}
	}
}

// TestTests: which functions pytest would collect, and which of them is run.
func TestTests(t *testing.T) {
	for name, c := range map[string]struct{ src, nodes, pick string }{
		"functions":       {"def test_a():\n  pass\ndef test_b():\n  x.cuda()\ndef helper():\n  pass\ndef testing():\n  pass\n", "test_a test_b", "test_b"},
		"class":           {"class TestA:\n  def test_x(self):\n    pass\n  def other(self):\n    pass\nclass Helper:\n  def test_y(self):\n    pass\n", "TestA::test_x", "TestA::test_x"},
		"nested":          {"def make():\n  def test_x():\n    pass\ndef test_a():\n  def test_inner():\n    pass\n", "test_a", "test_a"},
		"skipped":         {"@pytest.mark.skip(reason='x')\ndef test_a():\n  pass\n@pytest.mark.skip\ndef test_b():\n  pass\ndef test_c():\n  pass\n", "test_a test_b test_c", "test_c"},
		"large":           {"@pytest.mark.large_shape\n@pytest.mark.parametrize('n', [1])\ndef test_a(n):\n  pass\ndef test_b():\n  pass\n", "test_a test_b", "test_b"},
		"several GPUs":    {"@pytest.mark.multi_gpu\ndef test_a():\n  dist.init_process_group('x')\ndef test_b():\n  pass\n", "test_a test_b", "test_b"},
		"class is over":   {"class TestA:\n  def test_x(self):\n    pass\ndef test_y():\n  pass\n  def test_z():\n    pass\n", "TestA::test_x test_y", "TestA::test_x"},
		"all are skipped": {"@pytest.mark.skip\ndef test_a():\n  pass\n", "test_a", ""},
	} {
		f := parsePython("tests/kernels/test_x.py", c.src)
		var nodes []string
		for _, test := range f.tests {
			nodes = append(nodes, test.node)
		}
		if got := strings.Join(nodes, " "); got != c.nodes || pickTest(f) != c.pick {
			t.Errorf("%s: %q, picked %q, want %q, %q", name, got, pickTest(f), c.nodes, c.pick)
		}
		if f.multi != "" {
			t.Errorf("%s: %s", name, f.multi)
		}
	}
}

// TestSigns: what a test needs.
func TestSigns(t *testing.T) {
	for src, want := range map[string]struct{ requires, multi string }{
		"aiter = pytest.importorskip(\"aiter\")\n":       {"aiter", ""},
		"def f():\n  pytest.importorskip('aiter.ops')\n": {"", ""},
		"import mori\n":             {"mori", "mori"},
		"import mori.shmem as ms\n": {"mori", "mori"},
		"from mori import shmem\n":  {"mori", "mori"},
		"pytest.skip('aiter is not installed', allow_module_level=True)\n":                  {"aiter", ""},
		"def main():\n  mp.spawn(worker, nprocs=2)\n":                                       {"", "mp.spawn"},
		"def main():\n  torch.multiprocessing.spawn(worker)\n":                              {"", "torch.multiprocessing"},
		"dist.init_process_group('nccl')\n":                                                 {"", "process group"},
		"cmd = ['torchrun', 'x']\n":                                                         {"", "torchrun"},
		"\"\"\"Run with torchrun: mp.spawn( is not used.\"\"\"\n":                           {"", ""},
		"# mp.spawn(\nimport memori\n":                                                      {"", ""},
		"@pytest.mark.multi_gpu\ndef test_a():\n  mp.spawn(w)\n\ndef test_b():\n  pass\n":   {"", ""},
		"@pytest.mark.multi_gpu\ndef test_a():\n  pass\n\ndef test_b():\n  mp.spawn(w)\n":   {"", "mp.spawn"},
		"@pytest.mark.multi_gpu\ndef test_a():\n  pass\n\ndef worker():\n  mp.spawn(w)\n":   {"", "mp.spawn"},
		"if not ok:\n  pytest.skip('needs gfx950, got ' + arch, allow_module_level=True)\n": {"", ""},
	} {
		f := parsePython("tests/kernels/test_x.py", src)
		if strings.Join(f.requires, " ") != want.requires || (f.multi == "") != (want.multi == "") || !strings.Contains(f.multi, want.multi) {
			t.Errorf("%q: requires %q, several GPUs %q", src, f.requires, f.multi)
		}
	}
}

// TestLooksForeign goes by the form of a name alone.
func TestLooksForeign(t *testing.T) {
	for _, name := range []string{
		"", "void at::native::vectorized_elementwise_kernel<4>", "_ZN2ck15kernel_moe_gemmE", "_Z16kn_mla_reduce_v1", "Cijk_Ailk_Bljk_BBS", "__amd_rocclr_copyBuffer", "triton_poi_fused_add",
		"rocprim::detail::trampoline", "f(int)", "aiter::pa_decode_ps_reduce", "Memcpy", "Memset", "Memcpy DtoD",
	} {
		if !LooksForeign(name) {
			t.Errorf("%q could be FlyDSL's", name)
		}
	}
	// Real kernels of FlyDSL that a filter of words would drop.
	for _, name := range []string{
		"moe_sorting_oneshot_kernel_0", "mxfp4_moe_scale_sort_c64", "pa_decode_sw_reduce_kernel_0", "rmsnorm_bwd_dweight_reduce_kernel_0", "colscan_kernel_0", "elementwise_add_kernel_0",
		"fa_prefill_kernel_0", "bias_broadcast_kernel_0", "vecAddKernel_0", "hgemm_bf16_32x64x256_W1x2x2_S2_BT_0", "memset_like_kernel_0", "_private_0",
	} {
		if LooksForeign(name) {
			t.Errorf("%q is taken for another library's", name)
		}
	}
}

// TestHints: a recipe's hint is a beginning that ends at a boundary.
func TestHints(t *testing.T) {
	k := &Kernel{Hints: []string{"pa", "moe_gemm1", "kn_mla_"}}
	for symbol, want := range map[string]bool{
		"pa_decode_kernel_0": true, "pa": true, "spatial_pad_kernel": false, "pad_kernel_0": false, "moe_gemm1_0": true, "moe_gemm12_0": false, "kn_mla_fwd": true,
		"void pa_x(int)": false, "": false,
	} {
		if exact, prefix := MatchSymbol(k, symbol); exact || prefix != want {
			t.Errorf("%q: exact %v, prefix %v", symbol, exact, prefix)
		}
	}
	if exact, prefix := MatchSymbol(nil, "pa"); exact || prefix {
		t.Error("no kernel fits")
	}
}

// TestMonstrousTrees: depth, breadth and odd files are bounded, and what was left out is said.
func TestMonstrousTrees(t *testing.T) {
	tree := checkout(t, flyFiles)
	deep := "tests/kernels" + strings.Repeat("/d", maxDepth+5)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(tree.Root(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(deep+"/test_deep.py", script(""))
	write("tests/kernels/test_empty.py", "")
	write("tests/kernels/test_binary.py", "\x00\xff\xfe"+strings.Repeat("(", 5000))
	write("tests/kernels/test_long.py", "x = '"+strings.Repeat("y", 200_000)+"'\n"+script(""))
	write("tests/kernels/test_folder.py/test_inside.py", script(""))
	write("tests/kernels/__pycache__/test_cached.py", script(""))
	write("tests/kernels/.hidden/test_hidden.py", script(""))
	write("tests/kernels/test_ümläut.py", script(""))
	for i := range 300 { // notes are bounded
		write(fmt.Sprintf("kernels/many/link%d.py", i), "")
		path := filepath.Join(tree.Root(), "kernels", "many", fmt.Sprintf("to%d.py", i))
		if err := os.Symlink("link0.py", path); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range l.Kernels {
		names = append(names, k.Name)
	}
	for _, name := range []string{"long", "inside", "ümläut"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, name := range []string{"deep", "empty", "binary", "cached", "hidden"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is listed", name)
		}
	}
	if len(l.Skipped) != maxNotes+1 || !strings.Contains(l.Skipped[maxNotes].Why, "more files") {
		t.Errorf("%d notes, the last %+v", len(l.Skipped), l.Skipped[len(l.Skipped)-1])
	}
}

// TestNamesApart: kernels of one name get different ones that find their own test.
func TestNamesApart(t *testing.T) {
	l, err := checkout(t, map[string]string{
		"kernels/x.py":                     "",
		"tests/kernels/test_a.py":          script(""),
		"tests/kernels/bench_a.py":         script(""),
		"tests/kernels/one/test_a.py":      script(""),
		"tests/kernels/two/test_a.py":      script(""),
		"tests/kernels/two/one/test_a.py":  script(""),
		"tests/kernels/test_bench_a.py":    script(""),
		"tests/kernels/bench_only.py":      script(""),
		"tests/kernels/helper_of_tests.py": script(""),
	}).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range l.Kernels {
		if other, ok := got[k.Name]; ok {
			t.Errorf("%s is %s and %s", k.Name, other, k.TestFile)
		}
		got[k.Name] = k.TestFile
		if found, err := l.Find(k.Name); err != nil || found.TestFile != k.TestFile {
			t.Errorf("%s finds %v", k.Name, found)
		}
		if found, err := l.Find(k.TestFile); err != nil || found.Name != k.Name {
			t.Errorf("%s finds %v", k.TestFile, found)
		}
	}
	if len(got) != 7 || got["only"] != "tests/kernels/bench_only.py" || got["bench_a"] == "" || got["one/a"] == "" {
		t.Errorf("%v", got)
	}
}
