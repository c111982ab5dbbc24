// Package recorded finds the recorded real captures that tests compare with. They lie beside the project and are no part of it.
package recorded

import (
	"os"
	"path/filepath"
	"testing"
)

// Traces gives the folder ../shared/traces beside the repository; the test skips where it is absent.
func Traces(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	traces := filepath.Join(filepath.Dir(dir), "shared", "traces")
	if _, err := os.Stat(traces); err != nil {
		t.Skip("the recorded captures are not beside the project (../shared/traces)")
	}
	return traces
}
