package rocprof

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentSifts(t *testing.T) {
	pass := []string{
		"PATH", "HOME", "LD_LIBRARY_PATH", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
		"HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH", "FLYDSL_GPU_ARCH", "FLYDSL_FLASH_ATTN_FUNC_X", "FA_PP", "FP4_DMA_INTRINSIC", "ROCDSL_RMSNORM_SHAPES", "TRITON_CACHE_DIR",
		"PYTORCH_HIP_ALLOC_CONF", "AITER_REPO", "SLURM_JOB_ID", "XDG_CACHE_HOME", "FLYPROF_SIMULATE", "ROCPROFILER_QUEUE_INTERPOSITION", "FLY_BUILD_DIR",
	}
	stop := []string{
		"ROCPROF_OUTPUT_FORMAT", "ROCPROF_ATT_LIBRARY_PATH", "ROCPROFILER_LIBRARY_CTOR", "ROCP_TOOL_LIBRARIES", "LD_PRELOAD", "HSA_TOOLS_LIB", "ARCH", "COMPILE_ONLY",
		"FLYDSL_RUNTIME_RUN_ONLY", "FLYDSL_RUNTIME_ENABLE_CACHE", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "SLURM_JWT", "TORCH_HUB_TOKEN", "AITER_API_KEY",
		"FLYDSL_DB_PASSWORD", "AITER_SIGNING_KEY", "TORCH_DEPLOY_PAT", "XDG_SESSION_COOKIE", "AWS_SESSION_TOKEN", "AWS_REGION", "GH_PAT", "OPENAI_API_KEY", "HTTPS_PROXY", "KUBECONFIG", "PYTHON_KEYRING_BACKEND", "FLYPROF_RUNS_DIR", "SSH_AUTH_SOCK", "MY_OWN", "PATHS", "HOMES", "FA",
	}
	var in []string
	for _, name := range append(slices.Clone(pass), stop...) {
		in = append(in, name+"=x")
	}
	var want []string
	for _, name := range pass {
		want = append(want, name+"=x")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, Environment(in, nil, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironmentOrder(t *testing.T) {
	for _, c := range []struct {
		name                       string
		inherited, set, unset, out []string
	}{
		{name: "nothing"},
		{name: "the later of two wins", inherited: []string{"PATH=/a", "PATH=/b"}, out: []string{"PATH=/b"}},
		{name: "set wins, whatever its name", inherited: []string{"PATH=/a"}, set: []string{"PATH=/b", "MY_OWN=1", "ROCPROF_X=2"}, out: []string{"MY_OWN=1", "PATH=/b", "ROCPROF_X=2"}},
		{name: "the later of set wins", set: []string{"HIP_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=3"}, out: []string{"HIP_VISIBLE_DEVICES=3"}},
		{name: "unset wins over all", inherited: []string{"CUDA_VISIBLE_DEVICES=0", "HOME=/h"}, set: []string{"CUDA_VISIBLE_DEVICES=1"}, unset: []string{"CUDA_VISIBLE_DEVICES", "NEVER_SET"}, out: []string{"HOME=/h"}},
		{name: "values with = and spaces", set: []string{"A=b=c d", "EMPTY="}, out: []string{"A=b=c d", "EMPTY="}},
		{name: "no variables", inherited: []string{"", "=C:=C:\\", "PATH", "HOME=a\x00b"}, set: []string{"nothing", "=x", "N=\x00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Environment(c.inherited, c.set, c.unset)
			if strings.Join(got, "\n") != strings.Join(c.out, "\n") {
				t.Errorf("%q, want %q", got, c.out)
			}
		})
	}
}

func TestWithEnvDoesNotSift(t *testing.T) {
	got := WithEnv([]string{"MY_OWN=1", "BENCH=2", "B=1"}, []string{"B=2"}, []string{"BENCH"})
	if diff := cmp.Diff([]string{"B=2", "MY_OWN=1"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPassed: a name in full beats every rule, a beginning lets pass only what no rule withholds.
func TestPassed(t *testing.T) {
	inherited := []string{"MY_OWN=1", "MY_TOKEN=2", "HF_TOKEN=3", "OTHER=4", "MY=5", "ROCPROF_X=6", "LD_PRELOAD=7"}
	for _, c := range []struct{ names, want []string }{
		{nil, nil},
		{[]string{"HF_TOKEN", "LD_PRELOAD", "ABSENT"}, []string{"HF_TOKEN=3", "LD_PRELOAD=7"}},
		{[]string{"MY_*"}, []string{"MY_OWN=1"}},
		{[]string{"MY_*", "MY_TOKEN"}, []string{"MY_OWN=1", "MY_TOKEN=2"}},
		{[]string{"ROCPROF_*", "LD_*"}, nil},
	} {
		if diff := cmp.Diff(c.want, Passed(inherited, c.names)); diff != "" {
			t.Errorf("%v: %s", c.names, diff)
		}
	}
	if diff := cmp.Diff([]string{"LD_PRELOAD", "OTHER"}, Withheld(inherited, []string{"MY_OWN=9", "MY_TOKEN=2", "HF_TOKEN=3", "MY=5", "ROCPROF_X="})); diff != "" {
		t.Error(diff)
	}
}

func TestEnvDelta(t *testing.T) {
	got := EnvDelta([]string{"PATH=/a", "HOME=/h", "GITHUB_TOKEN=abc", "LANG=C"}, []string{"PATH=/b", "HOME=/h", "NEW=1", "LANG=C"}, []string{"AWS_REGION", "NEW", "GITHUB_TOKEN"})
	if diff := cmp.Diff([]string{"-AWS_REGION", "-GITHUB_TOKEN", "NEW=1", "PATH=/b"}, got); diff != "" {
		t.Error(diff)
	}
	if got := EnvDelta(nil, nil, nil); len(got) != 0 {
		t.Errorf("nothing changed: %q", got)
	}
}

func TestCodegenEnv(t *testing.T) {
	got := CodegenEnv([]string{
		"PATH=/a", "FLYDSL_RUNTIME_CACHE_DIR=/c", "FLYDSL_COMPILE_OPT_LEVEL=3", "FA_TPV=1", "ROCDSL_SOFTMAX_SHAPES=1,2", "FLYDSL_DUMP_IR=1", "FLYDSL_DUMP_DIR=/d",
		"FLYDSL_DEBUG_ENABLE_DEBUG_INFO=1", "FLYDSL_DEBUG_LOG_LEVEL=INFO", "ARCH=gfx942", "HSA_OVERRIDE_GFX_VERSION=9.4.2", "HIP_VISIBLE_DEVICES=3", "TRITON_CACHE_DIR=/t", "FLYDSL_X_TOKEN=s",
	})
	want := []string{"ARCH=gfx942", "FA_TPV=1", "FLYDSL_COMPILE_OPT_LEVEL=3", "FLYDSL_DEBUG_ENABLE_DEBUG_INFO=1", "HSA_OVERRIDE_GFX_VERSION=9.4.2", "ROCDSL_SOFTMAX_SHAPES=1,2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOnWindows(t *testing.T) {
	got := Environment([]string{"Path=C:\\a", "SystemRoot=C:\\Windows"}, []string{"PATH=C:\\b"}, nil)
	want := []string{"PATH=C:\\b"}
	if runtime.GOOS == "windows" {
		want = []string{"PATH=C:\\b", "SystemRoot=C:\\Windows"}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
