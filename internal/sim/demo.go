package sim

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// demoFiles is a small FlyDSL checkout of our own making: the real layout, kernels that nothing compiles.
//
//go:embed all:demo
var demoFiles embed.FS

// DemoSum names the sources of the demo checkout by their content.
func DemoSum() string {
	h := sha256.New()
	// The files are part of the program; reading them does not fail.
	_ = fs.WalkDir(demoFiles, "demo", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := demoFiles.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		h.Write(text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// DemoKernel is one entry of the demo checkout.
type DemoKernel struct {
	// Name is the test file's stem without test_, Test its path, Symbol the kernel that it launches (the longest).
	Name, Test, Symbol string
	// Runs says whether one GPU is enough.
	Runs bool
}

// DemoKernels lists what the demo checkout can launch.
func DemoKernels() []DemoKernel {
	return []DemoKernel{
		{"softmax", "tests/kernels/test_softmax.py", "softmax_kernel_0", true},
		{"rmsnorm", "tests/kernels/test_rmsnorm.py", "rmsnorm_kernel_0", true},
		{"gemm", "tests/kernels/test_gemm.py", "kernel_gemm_0", true},
		{"moe_sorting", "tests/kernels/test_moe_sorting.py", "moe_sorting_oneshot_kernel_0", true},
		{"moe_gemm_2stage", "tests/kernels/test_moe_gemm_2stage.py", "moe_gemm1_0", true},
		{"flash_attn_fwd", "tests/kernels/test_flash_attn_fwd.py", "flash_attn_func_kernel_0", true},
		{"conv3d_implicit", "tests/kernels/test_conv3d_implicit.py", "conv3d_implicit_kernel_0", true},
		{"vec_add", "tests/kernels/test_vec_add.py", "vecAddKernel_0", true},
		{"allreduce", "tests/kernels/test_allreduce.py", "allreduce_1stage_0", false},
	}
}

// WriteDemoWorktree writes the demo checkout into dir: the sources, and the built package as the real build leaves it (a
// copy of python/flydsl with placeholders for its shared libraries). Files that are there already are replaced.
func WriteDemoWorktree(dir string) error {
	const built = "build-fly/python_packages/flydsl/"
	extra := map[string]string{
		built + "_mlir/__init__.py":                         "",
		built + "_mlir/ir.py":                               "",
		built + "_mlir/_mlir_libs/__init__.py":              "",
		built + "_mlir/_mlir_libs/_mlirDialectsFly.abi3.so": "placeholder of a simulated build\n",
		built + "_mlir/_mlir_libs/libfly_jit_runtime.so":    "placeholder of a simulated build\n",
		"SIMULATED": "This checkout comes with flyprof-mcp's simulated GPU. Its kernels are never compiled.\n",
	}
	err := fs.WalkDir(demoFiles, "demo", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := demoFiles.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "demo/")
		if rest, ok := strings.CutPrefix(name, "python/flydsl/"); ok {
			extra[built+rest] = string(data)
		}
		return writeDemoFile(dir, name, data)
	})
	if err != nil {
		return err
	}
	// The copies come after the sources: a build is not older than what it was built from.
	for name, text := range extra {
		if err := writeDemoFile(dir, name, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

func writeDemoFile(dir, name string, data []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
