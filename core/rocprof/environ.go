package rocprof

import (
	"runtime"
	"slices"
	"strings"
)

// envRule decides about inherited variables by name. A name that ends in * stands for all that begin so.
type envRule struct {
	names []string
	keep  bool
}

// inheritedEnv is what a workload may inherit: the first rule that names a variable decides, and one that no rule names is
// left out. So nobody's keys reach a test's log, and nothing of the caller's shell changes what is traced without being
// recorded.
var inheritedEnv = []envRule{
	// Arguments of rocprofv3 in disguise: they beat or contradict the job file.
	{names: []string{"ROCPROF_*", "ROCP_*"}},
	// Of the profiler's library, only what works around its faults may pass.
	{names: []string{"ROCPROFILER_QUEUE_INTERPOSITION"}, keep: true},
	{names: []string{"ROCPROFILER_*"}},
	// Another tool in the same process; rocprofv3 sets its own.
	{names: []string{"LD_PRELOAD", "HSA_TOOLS_LIB", "HSA_TOOLS_REPORT_LOAD_FAILURE", "DYLD_*"}},
	// FlyDSL: compile without launching, for another architecture, from a cache that is not there; and a cache that is off crashes
	// under a profiler.
	{names: []string{"ARCH", "COMPILE_ONLY", "FLYDSL_RUNTIME_RUN_ONLY", "FLYDSL_RUNTIME_ENABLE_CACHE"}},
	// Secrets, also under names that would pass below.
	{names: []string{"SLURM_JWT", "SLURM_SPANK_*", "PYTHON_KEYRING_*"}},

	{keep: true, names: []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "PWD", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "TMP", "TEMP", "XDG_*",
		"LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_*", "PYTHON*", "PYENV_*",
		"HIP_*", "ROCR_*", "HSA_*", "ROCM_*", "HCC_*", "AMD_*", "GPU_*", "CUDA_VISIBLE_DEVICES", "PYTORCH_*", "TORCH*", "TRITON_*", "AITER_*", "MIOPEN_*",
		"HIPBLASLT_*", "ROCBLAS_*", "TENSILE_*", "NCCL_*", "RCCL_*", "MORI_*", "OMP_*", "MKL_*", "OPENBLAS_*", "NUMEXPR_*",
		"SLURM_*", "OMPI_*", "PMI_*", "PMIX_*", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE",
		"FLYDSL_*", "FLY_BUILD_DIR", "ROCDSL_*", "FLIR_*", "MLIR_PATH", "FA_*", "FP4_DMA_INTRINSIC", "CONV_STRIP_IM2COL", "MOE_SORTING_BENCH",
		"BENCH_CONFIGS", "BENCH_WARMUP", "BENCH_ITERS", "HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
		// The switches of the simulated GPU.
		"FLYPROF_SIMULATE", "FLYPROF_REPLAY", "FLYPROF_FAULT", "FLYPROF_SEED",
	}},
	// Without these, no program starts on Windows; captures there are simulated.
	{keep: true, names: []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "NUMBER_OF_PROCESSORS"}},
}

// secretWords mark a name as a secret whatever rule it falls under, and so do the ends of names in secretEnds.
var (
	secretWords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "APIKEY"}
	secretEnds  = []string{"_KEY", "_KEYS", "_PAT", "_PWD"}
)

// codegenEnv are the variables that change the code which is traced, or which kernels are launched: FlyDSL's compile settings, the
// switches that its kernels read while they are built, shapes given by environment, and the baselines' own. The first rule
// that names a variable decides.
var codegenEnv = []envRule{
	{names: []string{"FLYDSL_RUNTIME_CACHE_DIR", "FLYDSL_AUTOTUNE_CACHE_DIR", "FLYDSL_DUMP_*", "FLYDSL_DEBUG_LOG_*", "FLYDSL_DEBUG_PRINT_*", "FLYDSL_DEBUG_SHOW_STACKTRACE",
		"FLYDSL_DEBUG_DUMP_ASM", "FLYDSL_DEBUG_AST_DIFF", "FLYDSL_LOG_*", "FLYDSL_ROCM_AGENT_TIMEOUT", "TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_DUMP_DIR", "AITER_JIT_DIR", "AITER_LOG_*"}},
	{keep: true, names: []string{"FLYDSL_*", "ROCDSL_*", "FLIR_*", "FA_*", "FP4_DMA_INTRINSIC", "CONV_STRIP_IM2COL", "ARCH", "HSA_OVERRIDE_GFX_VERSION", "TRITON_*", "AITER_*",
		"MOE_SORTING_BENCH", "BENCH_*"}},
}

// Environment makes a child's environment: the inherited variables that may pass, changed as WithEnv does.
func Environment(inherited, set, unset []string) []string {
	var pass []string
	for _, kv := range inherited {
		if name, _, ok := cutEnv(kv); ok && !secret(name) && decide(inheritedEnv, name) {
			pass = append(pass, kv)
		}
	}
	return WithEnv(pass, set, unset)
}

// Passed gives the inherited variables that are let pass besides. A name in full passes whatever it is; one that ends in * stands for all
// that begin so, but for those that are withheld by name or are secrets.
func Passed(inherited, names []string) []string {
	var out []string
	for _, kv := range inherited {
		name, _, ok := cutEnv(kv)
		if ok && slices.ContainsFunc(names, func(pattern string) bool {
			stem, many := strings.CutSuffix(envKey(pattern), "*")
			if !many {
				return envKey(name) == stem
			}
			return strings.HasPrefix(envKey(name), stem) && !secret(name) && decide(append(slices.Clone(inheritedEnv), envRule{names: []string{envKey(pattern)}, keep: true}), name)
		}) {
			out = append(out, kv)
		}
	}
	return out
}

// Withheld gives the names of the inherited variables that a child does not have, sorted.
func Withheld(inherited, env []string) []string {
	has := envMap(env)
	var out []string
	for key, kv := range envMap(inherited) {
		if _, ok := has[key]; !ok {
			name, _, _ := cutEnv(kv)
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// WithEnv changes an environment that was made before, without sifting it again. What stands later wins: set ("NAME=value") over
// env, and unset (names) over both. The result is sorted, each name once.
func WithEnv(env, set, unset []string) []string {
	kept := envMap(env)
	for _, kv := range set {
		if name, _, ok := cutEnv(kv); ok {
			kept[envKey(name)] = kv
		}
	}
	for _, name := range unset {
		delete(kept, envKey(name))
	}
	out := make([]string, 0, len(kept))
	for _, kv := range kept {
		out = append(out, kv)
	}
	slices.Sort(out)
	return out
}

// EnvDelta says how final differs from inherited, for the record: "NAME=value" for what was added or changed, "-NAME" for what was
// left out, whose value is nobody's business. withheld are names that had been left out before. Sorted by name.
func EnvDelta(inherited, final, withheld []string) []string {
	was, is := envMap(inherited), envMap(final)
	var out []string
	for key, kv := range is {
		if was[key] != kv {
			out = append(out, kv)
		}
	}
	gone := slices.Clone(withheld)
	for _, name := range Withheld(inherited, final) {
		if !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		if _, ok := is[envKey(name)]; !ok {
			out = append(out, "-"+name)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "-"), strings.TrimPrefix(b, "-"))
	})
	return out
}

// CodegenEnv gives the variables that change the traced code, as "NAME=value", sorted.
func CodegenEnv(env []string) []string {
	var out []string
	for _, kv := range envMap(env) {
		if name, _, _ := cutEnv(kv); !secret(name) && decide(codegenEnv, name) {
			out = append(out, kv)
		}
	}
	slices.Sort(out)
	return out
}

func envMap(env []string) map[string]string {
	out := make(map[string]string, len(env))
	for _, kv := range env {
		if name, _, ok := cutEnv(kv); ok {
			out[envKey(name)] = kv
		}
	}
	return out
}

// cutEnv splits NAME=value; false for what is none, such as Windows' hidden "=C:=C:\dir", and for what no child can be given.
func cutEnv(kv string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(kv, "=")
	return name, value, ok && name != "" && !strings.Contains(kv, "\x00")
}

// envKey is what makes two names the same: Windows takes Path for PATH.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func decide(rules []envRule, name string) bool {
	name = envKey(name)
	for _, r := range rules {
		for _, pattern := range r.names {
			stem, prefix := strings.CutSuffix(pattern, "*")
			if name == pattern || prefix && strings.HasPrefix(name, stem) {
				return r.keep
			}
		}
	}
	return false
}

func secret(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) }) ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}
