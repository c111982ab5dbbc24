//go:build unix && !linux

package launch

import "golang.org/x/sys/unix"

// Adopt is not possible here: orphans go to init. Captures on real hardware need Linux; elsewhere only the simulated GPU
// runs, whose processes stay in their group.
func Adopt() error { return nil }

// BootID is not known here.
func BootID() string { return "" }

// Identify gives the identity of a process that runs now; Start is 0 when there is none.
func Identify(pid int) ID {
	if pid <= 1 || unix.Kill(pid, 0) != nil {
		return ID{PID: pid}
	}
	return ID{PID: pid, Start: startTime(pid)}
}

// Marked cannot read other processes' environments here.
func Marked(string) []int { return nil }

func killMarked(string) bool { return false }

func reapAdopted(int) {}
