package worktree

import (
	"fmt"
	"slices"
	"strings"
)

// anySetting lifts what an own command is confined to.
const anySetting = "--allow-any-invocation (FLYPROF_ALLOW_ANY_INVOCATION)"

// masks are the variables that choose the GPU.
var masks = []string{"*_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}

// owned are variables that this tool sets, or that contradict what it does: they choose the GPU, inject into the process that is
// traced, or steer the profiler behind the job file's back. No setting lifts this.
var owned = append([]string{"ROCPROF_*", "ROCP_*", "ROCPROFILER_*", "HSA_TOOLS_*", "FLYPROF_*"}, masks...)

// assignable are the variables that a command or recipe may set: switches of FlyDSL, of its tests and of what they compare with, and
// switches of the runtimes that say how to run or what to print. None of them says where code is loaded from or a file is written.
var assignable = []string{
	// FlyDSL, its kernels and its tests (flydsl/utils/env.py, tests/).
	"FLYDSL_*", "FLIR_*", "ROCDSL_*", "*_SHAPES", "*_SHAPE", "FA_*", "FP4_DMA_INTRINSIC", "CONV_STRIP_IM2COL", "MOE_SORTING_BENCH", "BENCH_CONFIGS", "BENCH_ITERS", "BENCH_WARMUP",
	"MORI_SHMEM_HEAP_SIZE",
	// What the tests compare with.
	"AITER_*", "TRITON_ALWAYS_COMPILE", "TRITON_DEBUG", "TRITON_DEFAULT_FP_FUSION", "TRITON_DISABLE_LINE_INFO", "TRITON_F32_DEFAULT", "TRITON_HIP_*", "TRITON_INTERPRET",
	"TRITON_KERNEL_DUMP", "TRITON_PRINT_AUTOTUNING", "TRITON_STORE_BINARY_ONLY", "AMDGCN_*", "LLVM_IR_ENABLE_DUMP", "MLIR_ENABLE_DUMP", "MLIR_ENABLE_TIMING",
	"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_BLAS_PREFER_HIPBLASLT", "TORCH_COMPILE_DISABLE", "TORCH_CPP_LOG_LEVEL", "TORCH_LOGS", "TORCH_SHOW_CPP_STACKTRACES",
	"TORCHDYNAMO_DISABLE", "TORCHINDUCTOR_MAX_AUTOTUNE", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
	"PYTORCH_NO_HIP_MEMORY_CACHING", "PYTORCH_TUNABLEOP_ENABLED", "PYTORCH_TUNABLEOP_TUNING", "HIPBLASLT_LOG_LEVEL", "MIOPEN_FIND_ENFORCE", "MIOPEN_FIND_MODE", "MIOPEN_LOG_LEVEL",
	"ROCBLAS_LAYER", "ROCBLAS_USE_HIPBLASLT",
	// HIP and HSA.
	"AMD_DIRECT_DISPATCH", "AMD_LOG_LEVEL", "AMD_LOG_MASK", "AMD_SERIALIZE_COPY", "AMD_SERIALIZE_KERNEL", "CUDA_LAUNCH_BLOCKING", "GPU_MAX_HW_QUEUES", "HIP_FORCE_DEV_KERNARG",
	"HIP_LAUNCH_BLOCKING", "HSA_CU_MASK", "HSA_ENABLE_DEBUG", "HSA_ENABLE_INTERRUPT", "HSA_ENABLE_SDMA", "HSA_NO_SCRATCH_RECLAIM", "HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK",
	// Python and the numeric libraries.
	"HF_HUB_OFFLINE", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "PYTHONHASHSEED",
	"PYTHONUNBUFFERED", "PYTHONUTF8", "TOKENIZERS_PARALLELISM", "TRANSFORMERS_OFFLINE",
}

// places are parts of a name that say where something is: code that is loaded (FLYDSL_COMPILE_LLVM_DIR, AITER_REPO), a cache whose
// entries are unpickled (FLYDSL_RUNTIME_CACHE_DIR), a file that is written (FLYDSL_DEBUG_LOG_TO_FILE).
var places = []string{
	"DIR", "DIRS", "DIRECTORY", "FILE", "FILES", "HOME", "LIB", "LIBRARIES", "LIBRARY", "LIBS", "MODULE", "MODULES", "PATH", "PATHS", "PLUGIN", "PLUGINS", "PREFIX", "PRELOAD", "REPO", "ROOT",
}

// refuseVariable says why a command or recipe may not set a variable, empty where it may; any lifts all but what is owned, and lifted
// says whether it would.
func refuseVariable(name, value string, any bool) (why string, lifted bool) {
	switch {
	case named(owned, name):
		return name + " is set by this tool (the GPU by the argument gpu, the profiler by --rocprofv3 and --att-library-path)", false
	case any:
		return "", false
	case slices.Contains(never, name):
		return name + " keeps a test from launching what is to be traced, or is set by this tool", true
	case !named(assignable, name):
		return name + " is none of the variables that may be set: switches of FlyDSL, its tests, Triton, PyTorch, HIP and HSA", true
	case slices.ContainsFunc(strings.Split(name, "_"), func(part string) bool { return slices.Contains(places, part) }):
		return name + " says where code is loaded from or a file is written", true
	case strings.ContainsAny(value, `/\`) || strings.HasPrefix(value, "~"):
		return fmt.Sprintf("the value of %s is a path, and none may be given", name), true
	}
	return "", false
}

// named says whether a name is on a list, in which * stands for any beginning or end.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		if stem, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, stem)
		}
		if end, ok := strings.CutPrefix(pattern, "*"); ok {
			return strings.HasSuffix(name, end)
		}
		return name == pattern
	})
}
