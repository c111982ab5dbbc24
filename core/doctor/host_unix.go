//go:build unix

package doctor

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// FreeSpace is Probe.Free of this machine.
func FreeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// signalNumber is the number of a signal's name such as SIGSEGV, 1 where it is not known: an exit that is negative tells a signal.
func signalNumber(name string) int { return max(1, int(unix.SignalNum(name))) }

// owner says which group may open a device.
func owner(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	gid := strconv.FormatUint(uint64(st.Gid), 10)
	if g, err := user.LookupGroupId(gid); err == nil {
		return fmt.Sprintf("; its group is %s (%s)", g.Name, gid)
	}
	return "; its group is " + gid
}
