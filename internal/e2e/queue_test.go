//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestQueue: two runs on one GPU, of two servers, come one after the other, and the one that waits says so.
func TestQueue(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	first, second := simulated(t, runs, "--fault", "slow=2"), simulated(t, runs)
	a := begun(t, first)
	b := second.call("flyprof_capture", map[string]any{"kernel": "rmsnorm", "wait_s": 0})
	if !b.OK || b.Data["state"] != "queued" {
		t.Errorf("a second run on the GPU: %s", b.raw)
	}
	time.Sleep(300 * time.Millisecond)
	if r := runOf(t, runs, b.Bundle); r.State != "queued" || r.Phase != "queue" {
		t.Errorf("the second run is %+v while the first has the GPU", r)
	}
	// A run that waits can be stopped like any other.
	c := second.call("flyprof_capture", map[string]any{"kernel": "vec_add", "wait_s": 0})
	if stopped := second.call("flyprof_capture_cancel", map[string]any{"run_id": c.Bundle}); stopped.Data["state"] != "cancelled" {
		t.Errorf("a queued run that was cancelled: %s", stopped.raw)
	}
	if ended := second.wait(b); !ended.OK {
		t.Errorf("%s", ended.raw)
	}
	terminal(t, runs, a, "done")
}

// TestGPUBusy: a run that waits for the GPU longer than its limit names who holds it.
func TestGPUBusy(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	first, second := simulated(t, runs, "--fault", "timeout"), simulated(t, runs)
	a := begun(t, first)
	b := second.capture(map[string]any{"kernel": "rmsnorm", "timeout_s": 10})
	if b.Error == nil || b.Error.Code != "GPU_BUSY" {
		t.Fatalf("%s", b.raw)
	}
	if who, _ := b.Error.Evidence["holder"].(string); who == "" || !strings.Contains(who, a) {
		t.Errorf("the holder is %q and should be %s", who, a)
	}
	// The lock goes with its process, however that ends.
	if err := syscall.Kill(runOf(t, runs, a).Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c := second.capture(map[string]any{"kernel": "rmsnorm"}); !c.OK {
		t.Errorf("after the holder was killed: %s", c.raw)
	}
}
