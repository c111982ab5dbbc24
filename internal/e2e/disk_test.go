//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDiskFull: a disk that fills up at any moment of a run ends it as failed with DISK_FULL, and the answer is on disk.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"1500k", "900k", "600k", "100k"} {
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
				t.Skipf("a small file system cannot be mounted here: %s", out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
			env := []string{"FLYPROF_SIMULATE=1", "FLYPROF_RUNS_DIR=" + filepath.Join(dir, "runs"), "FLYPROF_WORKTREE=" + demoTree(t), "FLYPROF_LOG_LEVEL=error"}
			a, code := cli(t, env, "capture", "softmax", "--shape", "8192,8192")
			if code != 74 || a.Error == nil || a.Error.Code != "DISK_FULL" {
				t.Fatalf("exit %d: %s", code, a.raw)
			}
			if a.Bundle != "" {
				terminal(t, filepath.Join(dir, "runs"), a.Bundle, "failed")
			}
			noProcesses(t, dir)
		})
	}
}
