package att

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// TestTornFiles tears each file of a good directory at every byte: code.json and filenames.json are then TRACE_CORRUPT that names
// the file and the byte of the end; the others are a warning, and what the rest says stays.
func TestTornFiles(t *testing.T) {
	type outcome struct{ file, text, warning string }
	for _, c := range []outcome{
		{"code.json", goodCode, ""}, {"filenames.json", goodFiles, ""},
		{"occupancy.json", goodOcc, WarnOccupancyCorrupt}, {"w1.json", waveB, WarnWaveCorrupt}, {"snapshots.json", `{"/":{"w":{"k.py":"w0.json"}}}`, WarnSnapshots},
	} {
		dir := trace(t, map[string]string{c.file: c.text})
		for n := range len(c.text) {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text[:n]), 0o644); err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), dir, Options{ReadWaves: true, Workers: 1})
			if c.warning == "" {
				torn(t, c.file, n, err)
				continue
			}
			if err != nil || len(d.Warnings) != 1 || d.Warnings[0].Code != c.warning {
				t.Fatalf("%s torn at byte %d: %v, %+v", c.file, n, err, d)
			}
			if v := d.Verdict("k_0"); v.State != Kept || v.Ins != 3 {
				t.Fatalf("%s torn at byte %d: %+v", c.file, n, v)
			}
		}
	}
}

func torn(t *testing.T, file string, n int, err error) {
	t.Helper()
	at := cause(err)
	if envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), file) || at == nil {
		t.Fatalf("%s torn at byte %d: %v", file, n, err)
	}
	// A torn number or key is found where it begins; nothing of the kind is longer than a line of source.
	if at.Offset > int64(n) || at.Offset < int64(n)-maxNumber {
		t.Fatalf("%s torn at byte %d: said to be at byte %d: %v", file, n, at.Offset, err)
	}
}

// TestTornRecorded tears code.json and filenames.json of real captures, the two layouts, at every 100th byte of the beginning and
// of the end, and at steps between.
func TestTornRecorded(t *testing.T) {
	for _, from := range []string{"variants/solo_v3.1.0_prettyprinted/ui_output_agent_1_dispatch_1", "dispatches/rmsnorm/big/ui_output_agent_19276_dispatch_18"} {
		for _, file := range []string{"code.json", "filenames.json"} {
			whole, err := os.ReadFile(filepath.Join(recorded.Traces(t), filepath.FromSlash(from), file))
			if err != nil {
				t.Fatal(err)
			}
			whole = bytes.TrimRight(whole, " \n")
			step := 100 * max(1, len(whole)/100/400)
			for n := 0; n < len(whole); n += step {
				part := bytes.NewReader(whole[:n])
				if file == codeFile {
					_, _, err = readCode(part, nil)
				} else {
					_, err = readManifest(part)
				}
				if at, ok := err.(*FormatError); !ok || at.Offset > int64(n) || json.Valid(whole[:n]) {
					t.Fatalf("%s of %s torn at byte %d of %d: %v", file, from, n, len(whole), err)
				}
			}
		}
	}
}

func cause(err error) *FormatError {
	var at *FormatError
	if errors.As(err, &at) {
		return at
	}
	return nil
}
