//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// soakRuns is how many captures TestSoak takes; FLYPROF_SOAK=200 makes it long, FLYPROF_SOAK_SEED repeats one.
const soakRuns = 12

// TestSoak takes captures with random faults, alone and in pairs, on servers that share a runs directory, and cancels, kills
// the server, kills the supervisor or leaves each alone. In the end every run is terminal, nothing is left and no lock is held.
func TestSoak(t *testing.T) {
	t.Parallel()
	n := number64(t, "FLYPROF_SOAK", soakRuns)
	seed := number64(t, "FLYPROF_SOAK_SEED", time.Now().UnixNano())
	t.Logf("FLYPROF_SOAK=%d FLYPROF_SOAK_SEED=%d", n, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	runs := t.TempDir()
	other := simulated(t, runs)
	codes := map[string]int{}
	for range n {
		codes[soakOnce(t, random, runs, other)]++
	}
	t.Logf("%v", codes)

	dirs, err := filepath.Glob(filepath.Join(runs, "*-*Z-*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d runs, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		r := terminal(t, runs, filepath.Base(dir), "done", "failed", "cancelled", "interrupted")
		b, err := os.ReadFile(filepath.Join(dir, "result.json"))
		var result struct {
			Data  json.RawMessage
			Error *struct{ Code string }
		}
		if err != nil || json.Unmarshal(b, &result) != nil || (r.State == "done") != (result.Error == nil) {
			t.Errorf("%s: state %s and result %.300s (%v)", filepath.Base(dir), r.State, b, err)
		}
		if a := other.call("flyprof_capture_status", map[string]any{"run_id": filepath.Base(dir), "wait_s": 0}); a.Command != "capture" {
			t.Errorf("%s", a.raw)
		}
	}
	other.stop()
	noProcesses(t, runs)
	locks, _ := filepath.Glob(filepath.Join(runs, ".locks", "*.lock"))
	for _, path := range append(locks, filepath.Join(runs, ".lock")) {
		lock := flock.New(path)
		if ok, err := lock.TryLock(); !ok || err != nil {
			t.Errorf("%s is held: %v", path, err)
		}
		_ = lock.Close()
	}
}

func number64(t *testing.T, name string, otherwise int64) int64 {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, v, err)
	}
	return n
}

// soakOnce takes one capture on a server with faults of its own, and says how it ended.
func soakOnce(t *testing.T, random *rand.Rand, runs string, other *session) string {
	var names []string
	for _, f := range sim.FaultNames() {
		names = append(names, f.Name)
	}
	var faults []string
	for range random.IntN(3) {
		faults = append(faults, names[random.IntN(len(names))])
	}
	var flags []string
	if len(faults) > 0 {
		flags = []string{"--fault", strings.Join(faults, ","), "--seed", strconv.Itoa(random.IntN(1000))}
	}
	s := simulated(t, runs, flags...)
	defer s.stop()
	requests := []map[string]any{
		{"kernel": "softmax", "shape": "8192,8192"}, {"kernel": "softmax", "shape": "8,8192"}, {"kernel": "rmsnorm", "with_pmc": true},
		{"kernel": "gemm", "shape": "2048,2048,2048,fp8", "tag": "both"}, {"kernel": "conv3d_implicit"}, {"kernel": "moe_gemm_2stage::moe_gemm2_0"},
	}
	args := requests[random.IntN(len(requests))]
	args["timeout_s"], args["wait_s"], args["force"] = 10, 0, true
	a := s.call("flyprof_capture", args)
	id := a.Bundle
	if id == "" {
		return "refused"
	}
	delay := time.Duration(random.IntN(800)) * time.Millisecond
	what := random.IntN(5)
	switch what {
	case 0:
		time.Sleep(delay)
		other.call("flyprof_capture_cancel", map[string]any{"run_id": id})
	case 1:
		time.Sleep(delay)
		_ = s.cmd.Process.Kill()
		<-s.done
	case 2:
		time.Sleep(delay)
		if pid := runOf(t, runs, id).Supervisor.PID; pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	ended := other.wait(other.call("flyprof_capture_status", map[string]any{"run_id": id, "wait_s": 60}))
	r := terminal(t, runs, id, "done", "failed", "cancelled", "interrupted")
	t.Logf("%-28s %v then %s: %s %s", strings.Join(faults, ","), args["kernel"], []string{"cancelled", "server killed", "supervisor killed", "left alone", "left alone"}[what], r.State, r.Code)
	if ended.Error != nil && ended.Error.Code == "INTERNAL" {
		t.Errorf("faults %v: %s", faults, ended.raw)
	}
	return fmt.Sprintf("%s/%s", r.State, r.Code)
}
