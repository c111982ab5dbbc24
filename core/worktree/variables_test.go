package worktree

import (
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestVariables: what a command of one's own may set, and what the setting lifts.
func TestVariables(t *testing.T) {
	t.Parallel()
	const free, lifted, never = "free", "lifted", "never"
	for kv, want := range map[string]string{
		"FLYDSL_BENCH=1": free, "FLYDSL_FLASH_ATTN_FUNC_X=a b": free, "FLYDSL_AUTOTUNE=1": free, "ROCDSL_SOFTMAX_SHAPES=8,8,bf16;16,8,f32": free, "MY_SHAPES=1,2": free, "FA_PP=1": free,
		"AITER_LOG_LEVEL=INFO": free, "TRITON_PRINT_AUTOTUNING=1": free, "TRITON_HIP_USE_BLOCK_PINGPONG=1": free, "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True": free, "TORCH_LOGS=+dynamo": free,
		"HSA_OVERRIDE_GFX_VERSION=9.4.2": free, "HSA_CU_MASK=0:0-7": free, "AMD_LOG_LEVEL=3": free, "PYTHONUNBUFFERED=1": free, "PYTHONHASHSEED=0": free, "OMP_NUM_THREADS=4": free, "BENCH_ITERS=": free,
		// Where code is loaded from, what runs besides, what is written.
		"LD_PRELOAD=x": lifted, "LD_LIBRARY_PATH=x": lifted, "LD_AUDIT=x": lifted, "DYLD_INSERT_LIBRARIES=x": lifted, "PATH=x": lifted, "HOME=x": lifted, "PYTHONPATH=x": lifted, "PYTHONSTARTUP=x": lifted,
		"PYTHONHOME=x": lifted, "PYTHONWARNINGS=error::evil.X": lifted, "PYTEST_ADDOPTS=-p evil": lifted, "PYTEST_PLUGINS=x": lifted, "BASH_ENV=x": lifted, "CC=x": lifted, "GCONV_PATH=x": lifted,
		"TORCH_EXTENSIONS_DIR=x": lifted, "TORCH_HOME=x": lifted, "TORCHINDUCTOR_CACHE_DIR=x": lifted, "TRITON_CACHE_DIR=x": lifted, "TRITON_OVERRIDE_DIR=x": lifted, "TRITON_PLUGIN_PATHS=x": lifted,
		"TRITON_BACKENDS_IN_TREE=1": lifted, "AITER_REPO=x": lifted, "AITER_JIT_DIR=x": lifted, "AITER_ASM_DIR=x": lifted, "FLYDSL_RUNTIME_CACHE_DIR=x": lifted, "FLYDSL_COMPILE_LLVM_DIR=x": lifted,
		"FLYDSL_EXTRA_SOURCE_DIRS=x": lifted, "FLYDSL_AUTOTUNE_CONFIG_DIR=x": lifted, "FLYDSL_DUMP_DIR=x": lifted, "FLYDSL_DEBUG_LOG_TO_FILE=x": lifted, "FLY_BUILD_DIR=x": lifted, "MLIR_PATH=x": lifted,
		"AMD_LOG_LEVEL_FILE=x": lifted, "HSA_VEN_AMD_AQLPROFILE_LOG=1": lifted, "AMD_COMGR_SAVE_TEMPS=1": lifted, "SSL_CERT_FILE=x": lifted, "A=1": lifted,
		"FLYDSL_BENCH=/x": lifted, "FLYDSL_BENCH=~": lifted, `FLYDSL_BENCH=c:\x`: lifted,
		// What keeps a test from launching anything, or launches it for another GPU.
		"ARCH=gfx942": lifted, "COMPILE_ONLY=1": lifted, "FLYDSL_RUNTIME_RUN_ONLY=1": lifted, "FLYDSL_DUMP_IR=1": lifted,
		// What this tool decides.
		"HIP_VISIBLE_DEVICES=1": never, "ROCR_VISIBLE_DEVICES=1": never, "CUDA_VISIBLE_DEVICES=1": never, "GPU_DEVICE_ORDINAL=1": never, "ROCPROF_ATT_LIBRARY_PATH=x": never, "ROCP_TOOL_LIBRARIES=x": never,
		"ROCPROFILER_LIBRARY_CTOR=1": never, "HSA_TOOLS_LIB=x": never, "FLYPROF_RUNS_DIR=x": never,
	} {
		name, value, _ := strings.Cut(kv, "=")
		got := free
		if why, lifts := refuseVariable(name, value, false); why != "" {
			got = map[bool]string{true: lifted, false: never}[lifts]
		}
		if got != want {
			t.Errorf("%s is %s, want %s", kv, got, want)
		}
		if why, _ := refuseVariable(name, value, true); (why == "") != (want != never) {
			t.Errorf("%s, where anything may run: %q", kv, why)
		}
	}
}

// TestAssignments: what may be set is set, and the rest is refused by name.
func TestAssignments(t *testing.T) {
	t.Parallel()
	tree := checkout(t, flyFiles)
	inv, err := tree.CustomInvocation("FLYDSL_BENCH=1 HSA_XNACK=0 python tests/kernels/test_softmax.py", tree.Root(), nil)
	if err != nil || !slices.Equal(inv.Env[len(inv.Env)-2:], []string{"FLYDSL_BENCH=1", "HSA_XNACK=0"}) {
		t.Errorf("%v %+v", err, inv)
	}
	_, err = tree.CustomInvocation("FLYDSL_BENCH=1 LD_PRELOAD=/x.so python tests/kernels/test_softmax.py", tree.Root(), nil)
	if e := envelope.As(err); e.Code != envelope.BadArgs || e.Evidence.Field != "invocation" || !strings.Contains(e.Message, "LD_PRELOAD") || !strings.Contains(e.Evidence.Setting, "FLYPROF_ALLOW_ANY_INVOCATION") {
		t.Errorf("%v", err)
	}
}
