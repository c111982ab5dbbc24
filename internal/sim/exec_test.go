package sim

import (
	"runtime"
	"testing"
)

func skipWithoutSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no such signals on this system")
	}
}
