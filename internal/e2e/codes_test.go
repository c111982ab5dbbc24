//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// elsewhere are the codes that no call of this test can raise, and the test that does.
var elsewhere = map[envelope.Code]string{
	envelope.GPUAccessDenied:     "core/gpu and core/doctor: the tests that drop root's rights",
	envelope.PlatformUnsupported: "tools: TestPlatform",
	envelope.Internal:            "tools: TestPanicAndErrors",
	envelope.Cancelled:           "TestCancel",
	envelope.RunInterrupted:      "TestKillSupervisor",
	envelope.DiskFull:            "TestDiskFull, and the fault disk_full",
	envelope.GPUBusy:             "TestGPUBusy, and the fault busy",
	envelope.FileConflict:        "TestInstallIntoAClient, TestSkillsCommands",
}

// TestEveryCodeByACall raises each code of the catalogue through a tool call.
func TestEveryCodeByACall(t *testing.T) {
	t.Parallel()
	raised := map[envelope.Code]string{}
	raise := func(s *session, code envelope.Code, tool string, args map[string]any) {
		t.Helper()
		a := s.call(tool, args)
		if tool == "flyprof_capture" {
			a = s.wait(a)
		}
		if a.Error == nil || a.Error.Code != string(code) {
			t.Errorf("%s %v: want %s: %s", tool, args, code, a.raw)
			return
		}
		row, _ := envelope.Lookup(code)
		if a.Error.ExitCode != row.Exit || a.Error.Class != string(row.Class) {
			t.Errorf("%s: class %s, exit %d", code, a.Error.Class, a.Error.ExitCode)
		}
		raised[code] = tool
	}
	tree := demoTree(t)
	allowed := t.TempDir()
	recipes := filepath.Join(allowed, "recipes.json")
	if err := os.WriteFile(recipes, []byte(`[{"test_file":"tests/kernels/test_gone.py","invocation":"python tests/kernels/test_gone.py"}]`), 0o644); err != nil {
		t.Fatal(err)
	}

	s := simulated(t, "", "--allow-path", allowed, "--recipes", recipes)
	raise(s, envelope.KernelNotFound, "flyprof_capture", map[string]any{"kernel": "softmux"})
	raise(s, envelope.AmbiguousKernel, "flyprof_capture", map[string]any{"kernel": "moe_gemm_2stage"})
	raise(s, envelope.DispatchOutOfRange, "flyprof_capture", map[string]any{"kernel": "softmax", "iter_range": "9999"})
	raise(s, envelope.EmptyATT, "flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8,8192", "att_target_cu": 1, "att_shader_engine_mask": "0x1"})
	raise(s, envelope.NoRecommendation, "flyprof_tile", map[string]any{"kernel": "conv3d_implicit", "shape": "8,8,8"})
	raise(s, envelope.RunNotFound, "flyprof_capture_status", map[string]any{"run_id": "nothing"})
	raise(s, envelope.NoArtifact, "flyprof_read", map[string]any{"uri": "flyprof://reference/nothing"})
	raise(s, envelope.BadArgs, "flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8,x"})
	raise(s, envelope.ShapeNotBound, "flyprof_capture", map[string]any{"kernel": "vec_add", "shape": "8,8"})
	raise(s, envelope.NeedsMultiGPU, "flyprof_capture", map[string]any{"kernel": "allreduce"})
	raise(s, envelope.RecipeStale, "flyprof_capture", map[string]any{"kernel": "gone"})
	raise(s, envelope.PathNotAllowed, "flyprof_list", map[string]any{"worktree": "/etc"})
	raise(s, envelope.WorktreeInvalid, "flyprof_list", map[string]any{"worktree": allowed})

	real := start(t, "", "--worktree", tree, "--rocprofv3", filepath.Join(tree, "no-rocprofv3"))
	raise(real, envelope.Rocprofv3Missing, "flyprof_capture", map[string]any{"kernel": "softmax"})
	raise(start(t, ""), envelope.MissingPrereq, "flyprof_list", nil)
	raise(start(t, filepath.Join(tree, "README.md", "runs"), "--simulate", "--worktree", tree), envelope.StoreUnwritable, "flyprof_capture", map[string]any{"kernel": "softmax"})

	running := simulated(t, "", "--fault", "timeout")
	id := begun(t, running)
	raise(running, envelope.RunNotFinished, "flyprof_triage", map[string]any{"run_id": id})
	running.call("flyprof_capture_cancel", map[string]any{"run_id": id})

	for _, f := range sim.FaultNames() {
		if f.Code != "" {
			raised[f.Code] = "the fault " + f.Name + " (TestFaults)"
		}
	}
	for _, row := range envelope.Catalogue() {
		where := raised[row.Code]
		if where == "" {
			where = elsewhere[row.Code]
		}
		if where == "" {
			t.Errorf("nothing raises %s", row.Code)
		}
		t.Logf("%-22s %s", row.Code, where)
	}
}

// TestDemoKernels captures each kernel of the demo checkout with both tags and counters.
func TestDemoKernels(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	// rmsnorm runs its own shapes, three kernel ids of one name.
	shapes := map[string]string{"softmax": "8192,8192", "gemm": "4096,4096,4096", "flash_attn_fwd": "1,32,4096,128", "moe_sorting": "65536,64,8"}
	for _, k := range sim.DemoKernels() {
		name := k.Name
		if name == "moe_gemm_2stage" {
			name += "::" + k.Symbol
		}
		args := map[string]any{"kernel": name, "tag": "both", "with_pmc": true}
		if shapes[k.Name] != "" {
			args["shape"] = shapes[k.Name]
		}
		a := s.capture(args)
		if !k.Runs {
			if a.Error == nil || a.Error.Code != "NEEDS_MULTI_GPU" {
				t.Errorf("%s: %s", k.Name, a.raw)
			}
			continue
		}
		if !a.OK || a.get("kernel") != k.Symbol || a.get("tags.big.state") != "done" {
			t.Errorf("%s: %s", k.Name, a.raw)
			continue
		}
		if small := a.get("tags.small.state"); small != "done" && (small != "skipped" || a.get("tags.small.why") == nil) {
			t.Errorf("%s: small is %v", k.Name, small)
		} else if small == "done" && number(a.get("tags.small.grid.workgroups")) >= number(a.get("tags.big.grid.workgroups")) {
			t.Errorf("%s: small has %v workgroups and big %v", k.Name, a.get("tags.small.grid.workgroups"), a.get("tags.big.grid.workgroups"))
		}
		passes, _ := a.get("pmc").([]any)
		if len(passes) != 3 {
			t.Errorf("%s: %d counter passes", k.Name, len(passes))
		}
		for _, p := range passes {
			pass := p.(map[string]any)
			csv, _ := pass["csv"].([]any)
			if pass["error"] != nil || len(csv) == 0 || !strings.Contains(csv[0].(string), "/pass_1/") || len(pass["values"].([]any)) != len(pass["counters"].([]any)) {
				t.Errorf("%s: pass %v", k.Name, pass)
				continue
			}
			for _, v := range pass["values"].([]any) {
				if v.(map[string]any)["dispatches"] != 1.0 {
					t.Errorf("%s: the counters of one launch are summed over %v", k.Name, v)
				}
			}
		}
		left, err := filepath.Glob(filepath.Join(s.runs, a.Bundle, "att", "*", "ui_output_agent_*"))
		kept, _ := a.get("tags.big.kept_dir").(string)
		if err != nil || !slices.Contains(left, filepath.Join(s.runs, a.Bundle, filepath.FromSlash(kept))) {
			t.Errorf("%s: %v is kept, and there are %v", k.Name, kept, left)
		}
	}
}

// TestShellsAreRemoved: the empty dispatch directories of a run that found its trace in another attempt are gone.
func TestShellsAreRemoved(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8,8192"})
	attempts, _ := a.get("attempts").([]any)
	dirs, err := filepath.Glob(filepath.Join(s.runs, a.Bundle, "att", "*", "ui_output_agent_*"))
	if !a.OK || len(attempts) != 2 || err != nil || len(dirs) != 1 {
		t.Errorf("%d attempts, dispatch directories %v (%v): %s", len(attempts), dirs, err, a.raw)
	}
}

// TestRefusedBeforeARun: what cannot work is refused before a run exists, with field and limits.
func TestRefusedBeforeARun(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	for name, c := range map[string]struct {
		args  map[string]any
		code  envelope.Code
		field string
	}{
		"a mask of 64 engines":  {map[string]any{"att_shader_engine_mask": "0xffffffffffffffff"}, envelope.BadArgs, "att_shader_engine_mask"},
		"a mask beyond any GPU": {map[string]any{"att_shader_engine_mask": "0x100000000"}, envelope.BadArgs, "att_shader_engine_mask"},
		"no engine":             {map[string]any{"att_shader_engine_mask": "0"}, envelope.BadArgs, "att_shader_engine_mask"},
		"NUL in a token":        {map[string]any{"args": []any{"-k", "a\x00b"}}, envelope.BadArgs, "args[1]"},
		"a token of 200 kB":     {map[string]any{"args": []any{strings.Repeat("x", 200_000)}}, envelope.BadArgs, "args[0]"},
		"NUL in the invocation": {map[string]any{"invocation": "python tests/kernels/test_softmax.py a\x00b"}, envelope.BadArgs, "invocation"},
		"a GPU that is not":     {map[string]any{"gpu": 255}, envelope.NoGPU, "gpu"},
	} {
		args := map[string]any{"kernel": "softmax"}
		for k, v := range c.args {
			args[k] = v
		}
		a := s.call("flyprof_capture", args)
		if a.Error == nil || a.Error.Code != string(c.code) || a.Bundle != "" || a.Error.Evidence["field"] != c.field || a.Error.Evidence["allowed"] == "" {
			t.Errorf("%s: %.600s", name, a.raw)
		}
	}
}
