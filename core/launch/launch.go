// Package launch runs a command on the machine that has the GPU, and ends all of it: the process, its group and whatever
// it started besides.
//
// Launcher is the seam for other machines: ssh, containers and schedulers implement the same few methods. Local is the
// machine that this program runs on.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// TokenVar is the environment variable that marks every process of one run. A process that carries a run's token was
// started by that run, whatever its name, group or parent.
const TokenVar = "FLYPROF_RUN_TOKEN"

// Command is one program to run. Nothing in it passes through a shell.
type Command struct {
	// Argv is the program and its arguments. Argv[0] is a path, or is looked up in this process's own PATH.
	Argv []string
	// Env is the whole environment as NAME=value; nothing is inherited.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// Stdout and Stderr are files that the output is appended to, created when absent. The same path twice gives one
	// stream in order. Standard input is always empty.
	Stdout, Stderr string
}

// ID identifies a process beyond the reuse of its number: the same PID with another start time is another process.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in the unit of the operating system (Linux: clock ticks since boot); 0 where it cannot be had.
	Start uint64 `json:"start"`
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit status, -1 where a signal ended it.
	Code int `json:"code"`
	// Signal is the name of the signal that ended it, such as SIGABRT; empty otherwise.
	Signal string `json:"signal,omitempty"`
}

// OK says that the process ended with status 0. It decides nothing by itself: see the files that were written.
func (e Exit) OK() bool { return e.Code == 0 }

// String gives "exit 3" or "SIGABRT".
func (e Exit) String() string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Process is a running command, the leader of a group of its own.
type Process interface {
	// ID identifies the leader; its PID is the group's number.
	ID() ID
	// Done is closed when the leader has ended.
	Done() <-chan struct{}
	// Exit tells how the leader ended; valid after Done.
	Exit() Exit
	// Terminate asks the whole group to end (SIGTERM): rocprofv3 then writes its output.
	Terminate() error
	// Sweep ends at once whatever is left of the command: its group, and every descendant that left the group. It returns
	// when nothing is left or ctx ends.
	Sweep(ctx context.Context) error
}

// Launcher starts commands on one machine.
type Launcher interface {
	// Start runs the command with TokenVar set to token. An error that wraps exec.ErrNotFound or os.ErrNotExist means that
	// the program is not there.
	Start(cmd Command, token string) (Process, error)
	// Sweep ends the leftovers of a run whose supervisor died: every process that carries the token, and the groups whose
	// leader is still the recorded process. It never goes by name.
	Sweep(ctx context.Context, token string, groups []ID) error
}

// Local starts commands on this machine.
type Local struct{}

type localProcess struct {
	cmd   *exec.Cmd
	id    ID
	done  chan struct{}
	exit  Exit
	token string
	group group
}

// Start implements Launcher.
func (Local) Start(c Command, token string) (Process, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("no program to start")
	}
	stdout, err := openLog(c.Stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr := stdout
	if c.Stderr != c.Stdout {
		if stderr, err = openLog(c.Stderr); err != nil {
			return nil, err
		}
		defer stderr.Close()
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(append([]string(nil), c.Env...), TokenVar+"="+token)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, stdout, stderr
	p := &localProcess{cmd: cmd, done: make(chan struct{}), token: token}
	p.group.prepare(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.group.started(cmd); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	p.id = Identify(cmd.Process.Pid)
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
		p.exit = exitOf(cmd.ProcessState)
	}()
	return p, nil
}

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

func (p *localProcess) ID() ID                { return p.id }
func (p *localProcess) Done() <-chan struct{} { return p.done }
func (p *localProcess) Exit() Exit            { return p.exit }
func (p *localProcess) Terminate() error      { return p.group.terminate(p.cmd) }

// Sweep implements Process.
func (p *localProcess) Sweep(ctx context.Context) error {
	return until(ctx, func() (bool, error) {
		p.group.kill(p.cmd)
		left := killMarked(p.token)
		select {
		case <-p.done:
			return !left && p.group.gone(p.cmd), nil
		default:
			return false, nil
		}
	})
}

// Sweep implements Launcher.
func (Local) Sweep(ctx context.Context, token string, groups []ID) error {
	return until(ctx, func() (bool, error) {
		left := killMarked(token)
		for _, g := range groups {
			if g.PID > 1 && g.Start != 0 && Identify(g.PID) == g {
				killGroup(g.PID)
				left = true
			}
		}
		return !left, nil
	})
}

// until calls step every few milliseconds until it says true, fails, or ctx ends.
func until(ctx context.Context, step func() (bool, error)) error {
	wait := 5 * time.Millisecond
	for {
		done, err := step()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes are left: %w", ctx.Err())
		case <-time.After(wait):
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

// Output runs a short command to its end and gives what it printed, each stream cut at limit bytes. When ctx ends first,
// the whole group is killed and the error wraps ctx.Err(). A non-zero exit is no error.
func Output(ctx context.Context, c Command, limit int64) (stdout, stderr []byte, exit Exit, err error) {
	dir, err := os.MkdirTemp("", "flyprof-probe-")
	if err != nil {
		return nil, nil, Exit{Code: -1}, err
	}
	defer os.RemoveAll(dir)
	c.Stdout, c.Stderr = dir+"/out", dir+"/err"
	p, err := Local{}.Start(c, "probe-"+randomHex())
	if err != nil {
		return nil, nil, Exit{Code: -1}, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		err = fmt.Errorf("%s was stopped: %w", c.Argv[0], ctx.Err())
	}
	clean, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if sweepErr := p.Sweep(clean); sweepErr != nil && err == nil {
		err = sweepErr
	}
	if err != nil {
		return readHead(c.Stdout, limit), readHead(c.Stderr, limit), Exit{Code: -1}, err
	}
	return readHead(c.Stdout, limit), readHead(c.Stderr, limit), p.Exit(), nil
}

func readHead(path string, limit int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, limit))
	return b
}
