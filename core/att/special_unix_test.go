//go:build unix

package att

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestSpecialFiles: a pipe, a link to a device or to a file, and a directory stand in for each file of the trace in turn; none is
// opened (opening a pipe without a writer would wait for ever).
func TestSpecialFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.json")
	if err := os.WriteFile(outside, []byte(waveB), 0o644); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]func(path string) error{
		"pipe":                      func(p string) error { return syscall.Mkfifo(p, 0o644) },
		"link to a device":          func(p string) error { return os.Symlink("/dev/zero", p) },
		"link to a file outside":    func(p string) error { return os.Symlink(outside, p) },
		"link to a file inside":     func(p string) error { return os.Symlink("w0.json", p) },
		"link that leads nowhere":   func(p string) error { return os.Symlink("absent", p) },
		"link that leads to itself": func(p string) error { return os.Symlink(filepath.Base(p), p) },
		"directory":                 func(p string) error { return os.Mkdir(p, 0o755) },
	}
	for kind, put := range kinds {
		for file, warning := range map[string]string{codeFile: "", manifestFile: "", occupancyFile: WarnOccupancyCorrupt, snapshotsFile: WarnSnapshots, "w1.json": WarnWaveRefused} {
			dir := trace(t, map[string]string{file: ""})
			if err := put(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			var d *Dispatch
			done := make(chan error, 1)
			go func() {
				var err error
				d, err = Open(ctx, dir, Options{ReadWaves: true})
				done <- err
			}()
			var err error
			select {
			case err = <-done:
			case <-ctx.Done():
				t.Fatalf("%s for %s: still waiting", kind, file)
			}
			stop()
			switch {
			case warning == "" && (envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), file)):
				t.Errorf("%s for %s: %v", kind, file, err)
			case warning != "" && (err != nil || !hasWarning(d, warning)):
				t.Errorf("%s for %s: %v, %+v", kind, file, err, d)
			}
		}
	}
}

// TestFindFollowsNoLink: a link to a dispatch directory, or to a parent of itself, is not followed.
func TestFindFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	real := filepath.Join(root, "b", "ui_output_agent_1_dispatch_10")
	for _, dir := range []string{real, filepath.Join(root, "a", "ui_output_agent_1_dispatch_9"), filepath.Join(root, "a", "other_dispatch_3")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ui_output_agent_1_dispatch_2": real, "loop": root} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := FindDispatches(root)
	if err != nil || len(got) != 2 || filepath.Base(got[0]) != "ui_output_agent_1_dispatch_9" || got[1] != real {
		t.Errorf("%v, %v", got, err)
	}
}
