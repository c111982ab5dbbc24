package stdio

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// ReserveStdout takes standard output for the protocol: it gives the real one and makes standard error the standard output
// of this process and of the children that it starts, so that nothing that prints breaks a message. Call it once, before
// anything prints.
func ReserveStdout() (*os.File, error) {
	stderr, err := windows.GetStdHandle(windows.STD_ERROR_HANDLE)
	if err != nil {
		return nil, fmt.Errorf("find standard error: %w", err)
	}
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, stderr); err != nil {
		return nil, fmt.Errorf("point standard output elsewhere: %w", err)
	}
	real := os.Stdout
	os.Stdout = os.Stderr
	return real, nil
}
