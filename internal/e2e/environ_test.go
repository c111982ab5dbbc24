package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEnvironmentOfTheWorkload: of the server's environment a workload has what tests need and what is let pass by name. The workload is
// the program env, which writes what it has into its log.
func TestEnvironmentOfTheWorkload(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("env"); err != nil {
		t.Skip("there is no program env here")
	}
	runs := t.TempDir()
	env := []string{
		"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + runs, "FLYPROF_LOG_LEVEL=error", "FLYPROF_ALLOW_ANY_INVOCATION=1", "FLYPROF_PASS_ENV=TEAM_*,LICENCE_TOKEN",
		"AWS_SECRET_ACCESS_KEY=hidden-1", "AWS_REGION=hidden-2", "GITHUB_TOKEN=hidden-3", "OPENAI_API_KEY=hidden-4", "TORCH_SIGNING_KEY=hidden-5", "SSH_AUTH_SOCK=hidden-6", "TEAM_SECRET=hidden-7",
		"FLYPROF_HTTP_TOKEN=hidden-8", "ROCPROF_OUTPUT_PATH=hidden-9", "COMPILE_ONLY=1",
		"TEAM_SHARE=shared", "LICENCE_TOKEN=licensed-to-pass", "TORCH_LOGS=inherited", "LC_ALL=C",
	}
	a, exit := cli(t, env, "capture", "softmax_kernel_0", "--invocation", "FLYDSL_BENCH=1 OWN=2 env")
	if exit == 0 || a.Error == nil || a.Bundle == "" && a.Data["run_id"] == nil {
		t.Fatalf("exit %d: %s", exit, a.raw)
	}
	run := filepath.Join(runs, a.Bundle)
	log, err := os.ReadFile(filepath.Join(run, "logs", "discover.log"))
	if err != nil {
		t.Fatal(err)
	}
	has := strings.Split(string(log), "\n")
	for _, kv := range []string{
		"TEAM_SHARE=shared", "LICENCE_TOKEN=licensed-to-pass", "TORCH_LOGS=inherited", "LC_ALL=C", "PATH=" + os.Getenv("PATH"), "FLYDSL_BENCH=1", "OWN=2", "HIP_VISIBLE_DEVICES=0", "FLYDSL_DEBUG_ENABLE_DEBUG_INFO=1",
	} {
		if !slices.Contains(has, kv) {
			t.Errorf("the workload lacks %s", kv)
		}
	}
	for _, name := range []string{"AWS_REGION", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "TEAM_SECRET", "COMPILE_ONLY", "FLYPROF_RUNS_DIR", "FLYPROF_HTTP_TOKEN", "FLYPROF_ALLOW_ANY_INVOCATION"} {
		if i := slices.IndexFunc(has, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }); i >= 0 {
			t.Errorf("the workload has %s", has[i])
		}
	}
	// The run's record says what was left out, by name, and holds no value that passed by name only.
	raw, err := os.ReadFile(filepath.Join(run, "jobs", "discover.argv.json"))
	if err != nil {
		t.Fatal(err)
	}
	var step struct {
		EnvDelta []string `json:"env_delta"`
	}
	if err := json.Unmarshal(raw, &step); err != nil || !slices.Contains(step.EnvDelta, "-AWS_REGION") || !slices.Contains(step.EnvDelta, "-GITHUB_TOKEN") || !slices.Contains(step.EnvDelta, "OWN=2") {
		t.Errorf("%v: the record has %q", err, step.EnvDelta)
	}
	err = filepath.WalkDir(run, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		said := slices.Contains([]string{"discover.log", "result.json"}, filepath.Base(path)) // what the workload wrote, and the end of that
		if strings.Contains(string(text), "hidden-") || strings.Contains(string(text), "licensed-to-pass") && !said {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestInvocationIsConfined: what an agent may run is confined until the settings say otherwise.
func TestInvocationIsConfined(t *testing.T) {
	t.Parallel()
	env := []string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + t.TempDir(), "FLYPROF_LOG_LEVEL=error"}
	script := filepath.Join(t.TempDir(), "test_own.py")
	if err := os.WriteFile(script, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for invocation, code := range map[string]string{"env": "BAD_ARGS", "LD_PRELOAD=x.so python tests/kernels/test_softmax.py": "BAD_ARGS", "python " + filepath.ToSlash(script): "PATH_NOT_ALLOWED"} {
		a, exit := cli(t, env, "capture", "softmax_kernel_0", "--invocation", invocation)
		if exit != 78 || a.Error == nil || a.Error.Code != code || a.Error.Evidence["field"] != "invocation" || !strings.Contains(string(a.raw), "--allow-any-invocation (FLYPROF_ALLOW_ANY_INVOCATION)") {
			t.Errorf("%s: exit %d: %s", invocation, exit, a.raw)
		}
	}
	a, exit := cli(t, append(env, "FLYPROF_ALLOW_ANY_INVOCATION=1"), "capture", "softmax_kernel_0", "--invocation", "no-such-program x")
	if exit != 78 || a.Error == nil || !strings.Contains(a.Error.Message, "no-such-program") {
		t.Errorf("exit %d: %s", exit, a.raw)
	}
	a, exit = cli(t, env, "capture", "softmax", "--invocation", "ROCDSL_SOFTMAX_SHAPES=8192,8192,bf16 python tests/kernels/test_softmax.py")
	if exit != 0 {
		t.Errorf("exit %d: %s", exit, a.raw)
	}
}
