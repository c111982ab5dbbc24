package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const probe = "import json,flydsl; from flydsl._mlir import ir; import importlib.util as u; print(json.dumps({'v':flydsl.__version__,'f':flydsl.__file__,'torch':bool(u.find_spec('torch'))}))"

func TestPythonProbe(t *testing.T) {
	worktree := demo(t)
	unbuilt := t.TempDir()
	if err := os.MkdirAll(filepath.Join(unbuilt, "flydsl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unbuilt, "flydsl", "__init__.py"), []byte("__version__ = '9'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	noLibs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(noLibs, "flydsl", "_mlir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(noLibs, "flydsl", "__init__.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	built := pythonPath(worktree)
	tests := []struct {
		name  string
		env   []string
		code  int
		text  string // stderr
		file  string // suffix of "f"
		torch bool
	}{
		{"built tree", []string{built}, 0, "", "build-fly/python_packages/flydsl/__init__.py", true},
		{"wheel", nil, 0, "", "site-packages/flydsl/__init__.py", true},
		{"no torch", []string{built, "FLYPROF_FAULT=torch_missing"}, 0, "", "flydsl/__init__.py", false},
		{"fault", []string{built, "FLYPROF_FAULT=not_built"}, 1, "ModuleNotFoundError: No module named 'flydsl'", "", false},
		{"unbuilt tree", []string{"PYTHONPATH=" + unbuilt}, 1, "ModuleNotFoundError: No module named 'flydsl._mlir'", "", false},
		{"interrupted build", []string{"PYTHONPATH=" + noLibs}, 1, "ImportError: cannot import name", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := start(t, worktree, tt.env, append(Tool(self(t), "python"), "-c", probe)...)
			if o.code != tt.code || !strings.Contains(o.stderr, tt.text) {
				t.Fatalf("%+v", o)
			}
			if tt.code != 0 {
				return
			}
			var got struct {
				V, F  string
				Torch bool
			}
			if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
				t.Fatal(err)
			}
			if got.V != "0.3.2" || !strings.HasSuffix(got.F, tt.file) || got.Torch != tt.torch {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestPythonVerbs(t *testing.T) {
	worktree := demo(t)
	tests := []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"--version"}, 0, "Python 3.", ""},
		{[]string{"-c", "import torch; print(torch.__version__)"}, 0, "rocm", ""},
		{[]string{"-c", "import os"}, 1, "", "the simulated Python cannot run code"},
		{[]string{"-m", "pip"}, 1, "", "No module named pip"},
		{[]string{"-u", "-X", "dev", softmaxTest}, 0, "softmax_kernel_0", ""},
		{[]string{"no.py"}, 2, "", "can't open file"},
		{nil, 2, "", "has no prompt"},
		{[]string{"-m", "pytest", "--collect-only", "-q", "tests/kernels/test_conv3d_implicit.py"}, 0, "test_conv3d_implicit.py::test_conv3d_forward", ""},
		{[]string{"-m", "pytest", "tests/kernels/test_ref.py"}, 0, "no tests ran", ""},
	}
	for _, tt := range tests {
		o := start(t, worktree, []string{pythonPath(worktree)}, append(Tool(self(t), "python"), tt.args...)...)
		if o.code != tt.code || !strings.Contains(o.stdout, tt.stdout) || !strings.Contains(o.stderr, tt.stderr) {
			t.Errorf("%q: %+v", tt.args, o)
		}
		if !strings.Contains(o.stderr, "SIMULATED GPU (gfx950)") {
			t.Errorf("%q is not marked", tt.args)
		}
	}
	if _, ok := Names("/usr/bin/python3"); !ok {
		t.Error("python3 is no stand-in's name")
	}
	if name, ok := Names(`rocprofv3.exe`); !ok || name != "rocprofv3" {
		t.Error("rocprofv3.exe")
	}
	if _, ok := Names("flyprof-mcp"); ok {
		t.Error("flyprof-mcp is taken for a stand-in")
	}
	if o := start(t, worktree, nil, Tool(self(t), "nvcc")...); o.code != 2 {
		t.Errorf("%+v", o)
	}
}

// TestPytestOutcomes: exit codes and words of pytest for faults.
func TestPytestOutcomes(t *testing.T) {
	worktree := demo(t)
	file := "tests/kernels/test_conv3d_implicit.py"
	for fault, want := range map[string]struct {
		code int
		text string
	}{
		"":                    {0, "2 passed"},
		"skipped":             {0, "2 skipped"},
		"torch_missing":       {2, "Interrupted: 1 error during collection"},
		"assert_after_kernel": {1, "AssertionError"},
		"no_gpu":              {1, "No HIP GPUs are available"},
		"compile_fail":        {1, "DSLCompileError"},
	} {
		o := start(t, worktree, []string{pythonPath(worktree), "FLYPROF_FAULT=" + fault}, append(Tool(self(t), "python"), "-m", "pytest", file)...)
		if o.code != want.code || !strings.Contains(o.text(), want.text) {
			t.Errorf("%q: %+v", fault, o)
		}
	}
}

// TestJITCache: every FlyDSL kernel leaves an entry that names it; a baseline leaves none.
func TestJITCache(t *testing.T) {
	worktree := demo(t)
	cache := t.TempDir()
	o := start(t, worktree, []string{pythonPath(worktree), "FLYDSL_RUNTIME_CACHE_DIR=" + cache}, append(Tool(self(t), "python"), "tests/kernels/test_flash_attn_fwd.py")...)
	found := map[string]bool{}
	for _, name := range listing(t, cache) {
		data, err := os.ReadFile(filepath.Join(cache, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, kernel := range []string{"flash_attn_func_kernel_0", "attn_fwd"} {
			if strings.HasSuffix(name, ".pkl") && strings.Contains(string(data), "gpu.func @"+kernel+"(") {
				found[kernel] = true
			}
		}
	}
	if !found["flash_attn_func_kernel_0"] || found["attn_fwd"] {
		t.Errorf("%v\n%s", found, o.text())
	}
}

func TestRocminfoAndSMI(t *testing.T) {
	dir := t.TempDir()
	o := start(t, dir, []string{"FLYPROF_SIMULATE=gfx942"}, Tool(self(t), "rocminfo")...)
	if n := strings.Count(o.stdout, "  Device Type:             GPU\n"); n != 8 || o.code != 0 {
		t.Errorf("%d GPUs", n)
	}
	for _, want := range []string{"ROCk module is loaded", "  Name:                    gfx942\n", "  Compute Unit:            304\n", "  Shader Engines:          32\n", "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("rocminfo lacks %q", want)
		}
	}
	if o := start(t, dir, []string{"FLYPROF_FAULT=no_gpu"}, Tool(self(t), "rocminfo")...); o.code != 1 || !strings.Contains(o.stdout, "ROCk module is NOT loaded, possibly no GPU devices") {
		t.Errorf("%+v", o)
	}
	var list []struct {
		GPU  int
		BDF  string
		ASIC struct {
			Arch string `json:"target_graphics_version"`
		}
		Usage struct {
			GFX struct{ Value int } `json:"gfx_activity"`
		}
	}
	for _, verb := range []string{"list", "static", "metric"} {
		o := start(t, dir, []string{"FLYPROF_FAULT=busy"}, append(Tool(self(t), "amd-smi"), verb, "--json")...)
		if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list) != 8 {
			t.Fatalf("%s: %v %d", verb, err, len(list))
		}
	}
	if list[0].BDF != "0000:75:00.0" || list[7].ASIC.Arch != "gfx950" || list[0].Usage.GFX.Value < 90 {
		t.Errorf("%+v", list[0])
	}
	if o := start(t, dir, nil, append(Tool(self(t), "amd-smi"), "reset")...); o.code != 2 {
		t.Errorf("%+v", o)
	}
}
