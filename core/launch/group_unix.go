//go:build unix

package launch

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a process group: its number is the leader's PID, which the kernel does not reuse while the group lives.
type group struct{}

func (group) prepare(cmd *exec.Cmd)       { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
func (group) started(cmd *exec.Cmd) error { return nil }

func (group) terminate(cmd *exec.Cmd) error {
	err := unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func (group) kill(cmd *exec.Cmd) { killGroup(cmd.Process.Pid) }

// gone says that the group has no member left. Zombies count as members, so orphans that this process adopted are reaped
// first.
func (group) gone(cmd *exec.Cmd) bool {
	reapAdopted(cmd.Process.Pid)
	return errors.Is(unix.Kill(-cmd.Process.Pid, 0), unix.ESRCH)
}

func killGroup(pgid int) {
	if pgid > 1 {
		_ = unix.Kill(-pgid, unix.SIGKILL)
	}
}

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}

// Detach makes cmd the leader of a session of its own, so that no terminal and no group of its parent reaches it.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
