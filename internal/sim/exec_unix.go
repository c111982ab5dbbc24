//go:build unix

package sim

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// replaceProcess is execve: the profiler's script becomes the application, with the same process id.
func replaceProcess(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }

func signalNumber(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int(status.Signal())
	}
	return 0
}

// terminationSignals are those that rocprofv3's library handles by writing its output (tool.cpp).
func terminationSignals() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
}

func signalValue(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 15
}

// dieOf ends this process by a real signal. The Go runtime keeps SIGSEGV and SIGABRT for itself, so a shell that took
// this process's place sends them; where there is none the exit code is the shell's 128 plus the number.
func dieOf(number int) int {
	s := syscall.Signal(number)
	if s == syscall.SIGSEGV || s == syscall.SIGABRT {
		script := "ulimit -c 0; kill -" + strconv.Itoa(number) + " $$"
		err := syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			return 128 + number
		}
		return 128 + number
	}
	signal.Reset(s)
	if syscall.Kill(os.Getpid(), s) == nil {
		select {}
	}
	return 128 + number
}

// ownGroup makes a child the leader of its own process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
