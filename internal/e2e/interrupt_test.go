//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// calling is a command line that goes on.
type calling struct {
	cmd    *exec.Cmd
	out    strings.Builder
	stderr lockedBuffer
}

func callProgram(t *testing.T, env []string, args ...string) *calling {
	t.Helper()
	c := &calling{cmd: exec.Command(binary, args...)}
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = environ(env...), &c.out, &c.stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	return c
}

// interrupt does what Ctrl-C does.
func (c *calling) interrupt(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end and reads the envelope.
func (c *calling) ended(t *testing.T) answer {
	t.Helper()
	_ = c.cmd.Wait()
	return envelopeOf(t, c.cmd.Args[1:], c.out.String(), c.stderr.String(), c.cmd.ProcessState.ExitCode())
}

// discovering waits until a run of the runs directory has its workload, and gives its id.
func discovering(t *testing.T, runs string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(runs, "*-*-*", "run.json"))
		for _, path := range found {
			if id := filepath.Base(filepath.Dir(path)); runOf(t, runs, id).Phase == "discover" {
				return id
			}
		}
	}
	t.Fatal("no run began")
	return ""
}

func commandEnv(runs string, more ...string) []string {
	return append([]string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + runs, "FLYPROF_LOG_LEVEL=error", "FLYPROF_STOP_GRACE=2"}, more...)
}

// TestInterruptedCapture: Ctrl-C and SIGTERM stop the run that the command line started, and print its envelope.
func TestInterruptedCapture(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := t.TempDir()
			c := callProgram(t, commandEnv(runs, "FLYPROF_FAULT=timeout"), "capture", "softmax")
			id := discovering(t, runs)
			if err := c.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			a := c.ended(t)
			if a.Error == nil || a.Error.Code != "CANCELLED" || a.Error.ExitCode != 130 || a.Bundle != id || a.Data["state"] != "cancelled" || !strings.Contains(a.Error.Message, "interrupted") {
				t.Errorf("%s", a.raw)
			}
			terminal(t, runs, id, "cancelled")
			noProcesses(t, runs)
		})
	}
}

// TestInterruptedTwice: who does not want to wait for the run to stop interrupts again, and is told how to go on.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	c := callProgram(t, commandEnv(runs, "FLYPROF_FAULT=ignore_sigterm", "FLYPROF_STOP_GRACE=10"), "capture", "softmax")
	id := discovering(t, runs)
	c.interrupt(t)
	for deadline := time.Now().Add(patience); !strings.Contains(c.stderr.String(), "interrupt again"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("standard error has %q", c.stderr.String())
		}
	}
	c.interrupt(t)
	a := c.ended(t)
	if a.Error == nil || a.Error.Code != "CANCELLED" || a.Bundle != id || a.Data["state"] != "running" || strings.Join(a.Error.NextActions[0].Argv, " ") != "flyprof-mcp status "+id {
		t.Errorf("%s", a.raw)
	}
	terminal(t, runs, id, "cancelled")
	noProcesses(t, runs)
}

// TestInterruptedWaiting: a run that somebody else started goes on when the waiting for it is interrupted.
func TestInterruptedWaiting(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	env := commandEnv(runs, "FLYPROF_FAULT=timeout")
	started, _ := cli(t, env, "capture", "softmax", "--no-wait")
	discovering(t, runs)
	for _, args := range [][]string{{"status", started.Bundle}, {"capture", "softmax"}} { // the second one joins the run
		c := callProgram(t, append(env, "FLYPROF_LOG_LEVEL=debug"), args...)
		for deadline := time.Now().Add(patience); !strings.Contains(c.stderr.String(), "waits for a run"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("standard error has %q", c.stderr.String())
			}
		}
		c.interrupt(t)
		a := c.ended(t)
		if a.Error == nil || a.Error.Code != "CANCELLED" || a.Bundle != started.Bundle || a.Data["state"] != "running" {
			t.Errorf("%v: %s", args, a.raw)
		}
		if r := runOf(t, runs, started.Bundle); r.State != "running" {
			t.Errorf("%v: the run is %+v", args, r)
		}
	}
	if a, code := cli(t, env, "cancel", started.Bundle); code != 0 || a.Data["state"] != "cancelled" {
		t.Errorf("exit %d: %s", code, a.raw)
	}
	noProcesses(t, runs)
}
