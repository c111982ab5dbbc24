//go:build unix

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runFile is what the tests go by in run.json.
type runFile struct {
	State      string `json:"state"`
	Code       string `json:"code"`
	Phase      string `json:"phase"`
	Supervisor struct {
		PID int `json:"pid"`
	} `json:"supervisor"`
}

func runOf(t *testing.T, runs, id string) runFile {
	t.Helper()
	var r runFile
	b, err := os.ReadFile(filepath.Join(runs, id, "run.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatalf("run.json of %s: %v", id, err)
	}
	return r
}

// begun starts a capture that hangs, and waits until its workload runs.
func begun(t *testing.T, s *session) string {
	t.Helper()
	a := s.call("flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8192,8192", "wait_s": 0})
	id, _ := a.Data["run_id"].(string)
	if id == "" {
		t.Fatalf("%s", a.raw)
	}
	for deadline := time.Now().Add(patience); runOf(t, s.runs, id).Phase != "discover"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("discovery did not begin: %+v", runOf(t, s.runs, id))
		}
	}
	return id
}

// terminal waits until a run has ended, and looks at what it left.
func terminal(t *testing.T, runs, id string, states ...string) runFile {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		r := runOf(t, runs, id)
		for _, state := range states {
			if r.State == state {
				checkFiles(t, filepath.Join(runs, id))
				return r
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s is %+v and should be %v", id, r, states)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"timeout", "ignore_sigterm"} {
		t.Run(fault, func(t *testing.T) {
			s := simulated(t, "", "--fault", fault)
			id := begun(t, s)
			a := s.call("flyprof_capture_cancel", map[string]any{"run_id": id})
			if !a.OK || a.Data["state"] != "cancelled" {
				t.Errorf("%s", a.raw)
			}
			terminal(t, s.runs, id, "cancelled")
			s.stop()
			noProcesses(t, s.runs)
			if status := simulated(t, s.runs).call("flyprof_capture_status", map[string]any{"run_id": id}); status.Error == nil || status.Error.Code != "CANCELLED" {
				t.Errorf("status of a cancelled run: %s", status.raw)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "timeout")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192", "timeout_s": 10})
	if a.Error == nil || a.Error.Code != "CAPTURE_TIMEOUT" || a.Error.ExitCode != 75 || !a.Error.Retry.Allowed {
		t.Fatalf("%s", a.raw)
	}
	retry := a.Error.NextActions[0]
	if retry.Tool != "flyprof_capture" || retry.Arguments["timeout_s"] != 20.0 || retry.Arguments["retry_of"] != a.Bundle {
		t.Errorf("the first next action is %+v", retry)
	}
	noWorkload(t, s)
	second := s.capture(retry.Arguments)
	if second.Error == nil || second.Error.Code != "CAPTURE_TIMEOUT" || second.Error.Retry.Allowed {
		t.Errorf("the retry: %s", second.raw)
	}
	for _, n := range second.Error.NextActions {
		if n.Tool == "flyprof_capture" {
			t.Errorf("the budget is spent and the answer says to capture again: %+v", n)
		}
	}
}

// noWorkload: the server lives, and nothing else does.
func noWorkload(t *testing.T, s *session) {
	t.Helper()
	for _, p := range processesOf(t, s.runs) {
		if strings.Contains(p, "sim-exec") || strings.Contains(p, "supervise") {
			t.Errorf("a process is left: %s", p)
		}
	}
}

// TestServerEnds: the end of a client's input ends the run by its policy.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "timeout")
	id := begun(t, s)
	begin := time.Now()
	_ = s.stdin.Close()
	<-s.done
	_ = s.cmd.Wait()
	t.Logf("the server ended %v after its input", time.Since(begin))
	if r := terminal(t, s.runs, id, "cancelled"); r.Code != "CANCELLED" {
		t.Errorf("%+v", r)
	}
	noProcesses(t, s.runs)
}

// TestKeepRuns: with --keep-runs the run goes on without its server, and another server finds it.
func TestKeepRuns(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--keep-runs")
	a := s.call("flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8192,8192", "wait_s": 0})
	id, _ := a.Data["run_id"].(string)
	s.stop()
	terminal(t, s.runs, id, "done")
	if b := simulated(t, s.runs).call("flyprof_capture_status", map[string]any{"run_id": id}); !b.OK || b.get("tags.big.kept_dir") == nil {
		t.Errorf("%s", b.raw)
	}
}

// TestKillServer kills the server with SIGKILL at ten random moments of a capture: the run becomes terminal by itself, and
// nothing is left.
func TestKillServer(t *testing.T) {
	t.Parallel()
	for range 10 {
		s := simulated(t, "")
		a := s.call("flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8192,8192", "wait_s": 0})
		id, _ := a.Data["run_id"].(string)
		time.Sleep(rand.N(600 * time.Millisecond))
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.done
		r := terminal(t, s.runs, id, "done", "cancelled")
		t.Logf("killed in phase %q: %s", r.Phase, r.State)
		noProcesses(t, s.runs)
	}
}

// TestKillSupervisor kills the supervisor at ten random moments: the server finds it, ends what is left, and the run is
// interrupted, with a trace that was complete kept.
func TestKillSupervisor(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	for range 10 {
		a := s.call("flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8192,8192", "wait_s": 0, "force": true})
		id, _ := a.Data["run_id"].(string)
		pid := 0
		for deadline := time.Now().Add(patience); pid == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			pid = runOf(t, s.runs, id).Supervisor.PID
		}
		time.Sleep(rand.N(350 * time.Millisecond))
		err := syscall.Kill(pid, syscall.SIGKILL)
		b := s.wait(s.call("flyprof_capture_status", map[string]any{"run_id": id, "wait_s": 30}))
		r := terminal(t, s.runs, id, "interrupted", "done")
		if err == nil && r.State == "interrupted" {
			if b.Error == nil || b.Error.Code != "RUN_INTERRUPTED" {
				t.Errorf("%s", b.raw)
			}
		}
		t.Logf("killed in phase %q: %s (%v)", r.Phase, r.State, err)
		noWorkload(t, s)
	}
	s.stop()
	noProcesses(t, s.runs)
}

// TestKillBoth kills server and supervisor; the next server on the directory ends the leftovers.
func TestKillBoth(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "timeout")
	id := begun(t, s)
	_ = s.cmd.Process.Kill()
	_ = syscall.Kill(runOf(t, s.runs, id).Supervisor.PID, syscall.SIGKILL)
	<-s.done
	next := simulated(t, s.runs)
	a := next.wait(next.call("flyprof_capture_status", map[string]any{"run_id": id}))
	if a.Error == nil || a.Error.Code != "RUN_INTERRUPTED" && a.Error.Code != "CANCELLED" {
		t.Errorf("%s", a.raw)
	}
	terminal(t, s.runs, id, "interrupted", "cancelled")
	next.stop()
	noProcesses(t, s.runs)
}
