//go:build linux

package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, token, script string) Process {
	t.Helper()
	dir := t.TempDir()
	p, err := Local{}.Start(Command{
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "DIR=" + dir},
		Dir: dir, Stdout: filepath.Join(dir, "out"), Stderr: filepath.Join(dir, "out"),
	}, token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

func TestExitIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   Exit
	}{
		"status": {"exit 3", Exit{Code: 3}},
		"signal": {"kill -ABRT $$", Exit{Code: -1, Signal: "SIGABRT"}},
		"zero":   {"true", Exit{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, NewToken(), c.script)
			<-p.Done()
			if p.Exit() != c.want {
				t.Errorf("exit %v, want %v", p.Exit(), c.want)
			}
		})
	}
}

func TestSweepEndsWhatLeftTheGroup(t *testing.T) {
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"child in the group":          "sleep 300 & sleep 300",
		"grandchild in a new session": "setsid sh -c 'sleep 300' & sleep 300",
		"leader ignores SIGTERM":      "trap '' TERM; sleep 300 & wait",
		"leader has ended":            "setsid sleep 300 & exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			token := NewToken()
			p := start(t, token, script)
			eventually(t, "the sleep runs", func() bool { return len(Marked(token)) > 0 })
			time.Sleep(50 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := p.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			if left := Marked(token); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestLauncherSweepGoesByTokenAndIdentity(t *testing.T) {
	token, other := NewToken(), NewToken()
	mine, theirs := start(t, token, "setsid sleep 300 & sleep 300"), start(t, other, "sleep 300")
	eventually(t, "both run", func() bool { return len(Marked(token)) > 0 && len(Marked(other)) > 0 })
	stale := theirs.ID()
	stale.Start++ // the same PID, another process: must not be touched
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := (Local{}).Sweep(ctx, token, []ID{mine.ID(), stale}); err != nil {
		t.Fatal(err)
	}
	<-mine.Done()
	if len(Marked(token)) != 0 {
		t.Errorf("left running: %v", Marked(token))
	}
	if Identify(theirs.ID().PID) != theirs.ID() {
		t.Error("a process of another run was ended")
	}
	_ = theirs.Sweep(ctx)
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("FLYPROF_TEST_SECRET", "leaks")
	stdout, _, exit, err := Output(context.Background(), Command{Argv: []string{"/usr/bin/env"}, Env: []string{"ONLY=this"}, Dir: "/"}, 1<<16)
	if err != nil || !exit.OK() {
		t.Fatal(err, exit)
	}
	if strings.Contains(string(stdout), "leaks") || !strings.Contains(string(stdout), "ONLY=this") {
		t.Errorf("environment: %s", stdout)
	}
}

func TestOutputIsBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	stdout, _, _, err := Output(ctx, Command{Argv: []string{"/bin/sh", "-c", "echo begun; sleep 300"}, Dir: "/"}, 3)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want deadline exceeded", err)
	}
	if string(stdout) != "beg" {
		t.Errorf("output %q, want it cut at 3 bytes", stdout)
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Local{}.Start(Command{Argv: []string{"no-such-program-here"}, Dir: "/"}, NewToken())
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v, want exec.ErrNotFound", err)
	}
}
