//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// notByCommand are the codes that no command line of this test raises, and the test that raises them.
var notByCommand = map[envelope.Code]string{
	envelope.GPUAccessDenied:     "core/gpu and core/doctor: the tests that drop root's rights",
	envelope.PlatformUnsupported: "tools: TestPlatform",
	envelope.Internal:            "tools: TestPanicAndErrors",
	envelope.RunInterrupted:      "TestKillSupervisor",
	envelope.Cancelled:           "TestInterruptedCapture",
	envelope.RunNotFinished:      "TestExitCodeOfRunning",
}

// TestExitCodes: the exit code of a command line is that of its error's class (sysexits.h), for each code of the catalogue.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	tree, allowed := demoTree(t), t.TempDir()
	recipes := filepath.Join(allowed, "recipes.json")
	if err := os.WriteFile(recipes, []byte(`[{"test_file":"tests/kernels/test_gone.py","invocation":"python tests/kernels/test_gone.py"}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(t.TempDir(), "flyprof-triage")
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(theirs, "SKILL.md"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	type call struct {
		code envelope.Code
		args []string
	}
	calls := map[string]call{
		"no such kernel":      {envelope.KernelNotFound, []string{"capture", "softmux"}},
		"several kernels":     {envelope.AmbiguousKernel, []string{"capture", "moe_gemm_2stage"}},
		"no such launch":      {envelope.DispatchOutOfRange, []string{"capture", "softmax", "--iter-range", "9999"}},
		"small grid":          {envelope.EmptyATT, []string{"capture", "softmax", "--shape", "8,8192", "--att-target-cu", "1", "--att-shader-engine-mask", "0x1"}},
		"no model":            {envelope.NoRecommendation, []string{"tile", "conv3d_implicit", "--shape", "8,8,8"}},
		"no such run":         {envelope.RunNotFound, []string{"status", "nothing"}},
		"no such resource":    {envelope.NoArtifact, []string{"read", "flyprof://reference/nothing"}},
		"bad shape":           {envelope.BadArgs, []string{"capture", "softmax", "--shape", "8,x"}},
		"bad flag":            {envelope.BadArgs, []string{"capture", "softmax", "--nonsense"}},
		"bad verb":            {envelope.BadArgs, []string{"nonsense"}},
		"no shape taken":      {envelope.ShapeNotBound, []string{"capture", "vec_add", "--shape", "8,8"}},
		"several GPUs":        {envelope.NeedsMultiGPU, []string{"capture", "allreduce"}},
		"stale recipe":        {envelope.RecipeStale, []string{"capture", "gone", "--recipes", recipes}},
		"path not allowed":    {envelope.PathNotAllowed, []string{"triage", "--path", "/etc"}},
		"somebody's skill":    {envelope.FileConflict, []string{"skills", "install", "--dir", filepath.Dir(theirs)}},
		"no checkout":         {envelope.WorktreeInvalid, []string{"list", "--worktree", allowed}},
		"no rocprofv3":        {envelope.Rocprofv3Missing, []string{"capture", "softmax", "--worktree", tree, "--simulate=no", "--rocprofv3", filepath.Join(tree, "none")}},
		"no worktree":         {envelope.MissingPrereq, []string{"list", "--simulate=no"}},
		"runs not writable":   {envelope.StoreUnwritable, []string{"capture", "softmax", "--worktree", tree, "--runs-dir", filepath.Join(tree, "README.md", "runs")}},
		"runs cannot be read": {envelope.StoreUnwritable, []string{"read", "flyprof://runs", "--worktree", tree, "--runs-dir", filepath.Join(tree, "README.md", "runs")}},
	}
	for _, f := range sim.FaultNames() {
		args := []string{"capture", "softmax", "--shape", "8192,8192", "--stop-grace", "2", "--fault", f.Name}
		if f.Code == envelope.CaptureTimeout {
			args = append(args, "--timeout-s", "10")
		}
		if f.Code != "" {
			calls["fault "+f.Name] = call{f.Code, args}
		}
	}
	var mu sync.Mutex
	raised := map[envelope.Code]bool{}
	t.Run("calls", func(t *testing.T) {
		for name, c := range calls {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a, exit := cli(t, []string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + t.TempDir(), "FLYPROF_LOG_LEVEL=error"}, c.args...)
				row, _ := envelope.Lookup(c.code)
				if a.Error == nil || a.Error.Code != string(c.code) || exit != row.Exit || a.Error.Class != string(row.Class) {
					t.Errorf("exit %d, want %s (%d): %s", exit, c.code, row.Exit, a.raw)
				}
				mu.Lock()
				raised[c.code] = true
				mu.Unlock()
			})
		}
	})
	for _, row := range envelope.Catalogue() {
		if !raised[row.Code] && notByCommand[row.Code] == "" {
			t.Errorf("no command line raises %s", row.Code)
		}
	}
}

// TestExitCodeOfRunning: what needs an ended run says that this one goes on.
func TestExitCodeOfRunning(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	env := commandEnv(runs, "FLYPROF_FAULT=timeout")
	started, _ := cli(t, env, "capture", "softmax", "--no-wait")
	if a, code := cli(t, env, "triage", "--run-id", started.Bundle); code != 75 || a.Error == nil || a.Error.Code != "RUN_NOT_FINISHED" {
		t.Errorf("exit %d: %s", code, a.raw)
	}
	if a, code := cli(t, env, "cancel", started.Bundle); code != 0 {
		t.Errorf("exit %d: %s", code, a.raw)
	}
}
