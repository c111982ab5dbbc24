//go:build unix

package stdio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ReserveStdout takes standard output for the protocol: it gives the real one, which no child inherits, and points
// descriptor 1 at standard error, so that nothing that prints in this process or its children breaks a message. Call it
// once, before anything prints.
func ReserveStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(1), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate standard output: %w", err)
	}
	elsewhere := 2
	if _, err := unix.FcntlInt(uintptr(2), unix.F_GETFD, 0); err != nil { // started without a standard error
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			_ = unix.Close(fd)
			return nil, err
		}
		defer null.Close()
		elsewhere = int(null.Fd())
	}
	if err := redirect(elsewhere, 1); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("point standard output elsewhere: %w", err)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}
