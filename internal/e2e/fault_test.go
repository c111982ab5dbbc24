package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// TestFaults: each fault that can be dialled in ends with the code that its table names, or in a success, never in a hang and
// never with something left.
func TestFaults(t *testing.T) {
	for _, f := range sim.FaultNames() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := simulated(t, "", "--fault", f.Name)
			args := map[string]any{"kernel": "softmax", "shape": "8192,8192"}
			if f.Code == "CAPTURE_TIMEOUT" {
				args["timeout_s"] = 10
			}
			a := s.capture(args)
			switch {
			case f.Code == "" && !a.OK:
				t.Errorf("should succeed: %s", a.raw)
			case f.Code != "" && (a.Error == nil || a.Error.Code != string(f.Code)):
				t.Errorf("should end with %s: %s", f.Code, a.raw)
			}
			if a.Error != nil && a.Bundle != "" {
				checkFiles(t, s.runs+"/"+a.Bundle)
			}
			s.stop()
			noProcesses(t, s.runs)
		})
	}
}

// TestEmptyATT: a grid that is too small is EMPTY_ATT with the figures, and the first next action mends it.
func TestEmptyATT(t *testing.T) {
	for _, arch := range []string{"gfx950", "gfx942"} {
		s := simulated(t, "", "--simulate="+arch)
		a := s.capture(map[string]any{"kernel": "softmax", "shape": "8,8192", "att_target_cu": 1, "att_shader_engine_mask": "0x1"})
		if a.Error == nil || a.Error.Code != "EMPTY_ATT" || a.Error.ExitCode != 66 {
			t.Fatalf("%s: %s", arch, a.raw)
		}
		if a.Error.Evidence["workgroups"] != 8.0 || a.Error.Evidence["target_cus"] == nil || a.Error.Evidence["dispatch_inventory"] == nil {
			t.Errorf("%s: evidence %v", arch, a.Error.Evidence)
		}
		if attempts, _ := a.get("attempts").([]any); len(attempts) != 1 {
			t.Errorf("%s: the caller fixed the CU and it was tried %d times", arch, len(attempts))
		}
		first := a.Error.NextActions[0]
		if first.Tool != "flyprof_capture" || first.Arguments["shape"] == "8,8192" {
			t.Fatalf("%s: %+v", arch, first)
		}
		if b := s.capture(first.Arguments); !b.OK {
			t.Errorf("%s: the first next action ended with %s", arch, b.raw)
		}
	}
}

// TestSecondAttempt: a small grid that misses the traced CU is traced once more where it had work, and says so.
func TestSecondAttempt(t *testing.T) {
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8,8192"})
	attempts, _ := a.get("attempts").([]any)
	if !a.OK || len(attempts) != 2 {
		t.Fatalf("%s", a.raw)
	}
	first, second := attempts[0].(map[string]any), attempts[1].(map[string]any)
	if first["result"] != "empty" || second["result"] != "kept" || first["att_target_cu"] == second["att_target_cu"] && first["att_shader_engine_mask"] == second["att_shader_engine_mask"] {
		t.Errorf("attempts %v", attempts)
	}
	if runs := a.get("cost.workload_runs"); runs != 3.0 {
		t.Errorf("%v workload runs for a discovery and two attempts", runs)
	}
}

// TestDemo: the README's command, without a server of this test's own.
func TestDemo(t *testing.T) {
	cmd := exec.Command(binary, "demo")
	cmd.Env = environ("TMPDIR=" + t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Done.") {
		t.Errorf("demo: %v\n%s", err, out)
	}
	left, err := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="))
	if err != nil || len(left) > 0 {
		t.Errorf("the demo left %v (%v)", left, err)
	}
}
