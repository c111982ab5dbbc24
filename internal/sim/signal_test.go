//go:build unix

package sim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hanging starts a discovery whose test hangs, and waits until it does (its grandchild sleeps).
func hanging(t *testing.T, fault string) (cmd *exec.Cmd, dir string, stderr *bytes.Buffer, grandchild int) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc to find the grandchild in")
	}
	worktree := demo(t)
	dir = t.TempDir()
	argv := append(Tool(self(t), "rocprofv3"), "--kernel-trace", "--stats", "-f", "csv", "-d", dir, "-o", "x", "--")
	argv = append(append(argv, Tool(self(t), "python")...), softmaxTest)
	cmd = exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = worktree, []string{"PATH=" + os.Getenv("PATH"), pythonPath(worktree), "FLYPROF_FAULT=" + fault}
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second // the grandchild holds the pipe
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	for range 200 {
		if grandchild = childOf(cmd.Process.Pid); grandchild != 0 {
			t.Cleanup(func() { _ = syscall.Kill(grandchild, syscall.SIGKILL) })
			return cmd, dir, stderr, grandchild
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no grandchild; %s", stderr)
	return nil, "", nil, 0
}

// childOf finds a process whose parent is pid and that has become `sleep`.
func childOf(pid int) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var child, parent, group int
		var name, state string
		if _, err := fmt.Sscan(string(data), &child, &name, &state, &parent, &group); err == nil && parent == pid && name == "(sleep)" && group == child {
			return child
		}
	}
	return 0
}

// TestTerminationWritesOutput: on SIGTERM the profiler's library says so, writes what it has and lets the signal kill.
func TestTerminationWritesOutput(t *testing.T) {
	cmd, dir, stderr, grandchild := hanging(t, "timeout")
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended as %v", cmd.ProcessState)
	}
	if !strings.Contains(stderr.String(), "rocprofv3 caught signal 15...") {
		t.Errorf("%s", stderr)
	}
	if _, rows := readCSV(t, filepath.Join(dir, "x_kernel_trace.csv")); len(rows) == 0 {
		t.Error("no launches written")
	}
	// In a group of its own it has outlived the group's signal: only a sweep of the whole tree ends it.
	if err := syscall.Kill(grandchild, 0); err != nil {
		t.Errorf("the grandchild %s is gone: %v", strconv.Itoa(grandchild), err)
	}
}

func TestIgnoredTermination(t *testing.T) {
	cmd, dir, _, _ := hanging(t, "ignore_sigterm")
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Error("SIGTERM ended it")
	}
	_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	if fileExists(filepath.Join(dir, "x_kernel_trace.csv")) {
		t.Error("SIGKILL left output")
	}
}
