package att

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// TestStallType: the words of a capture's top_stall_type.
func TestStallType(t *testing.T) {
	for text, want := range map[string]string{
		"s_waitcnt vmcnt(0) lgkmcnt(0)":                             "vmcnt+lgkmcnt",
		"s_wait_loadcnt_dscnt 0x0":                                  "loadcnt+dscnt",
		"s_waitcnt 0xf70":                                           "wait",
		"v_mfma_f32_32x32x16_bf16 a[0:15], v[2:5], v[6:9], a[0:15]": "mfma",
		"global_load_dwordx4 v[250:253], v[0:1], off":               "vmem_load",
		"s_barrier": "barrier",
		"; kernel":  "other",
		"":          "other",
	} {
		if got := StallType(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// recordedDirs are the folders that hold a code.json.
func recordedDirs(t testing.TB) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(recorded.Traces(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "code.json" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d folders with a code.json: %v", len(dirs), err)
	}
	return dirs
}

// recordedRows reads a code.json the simple way: line to ISA.
func recordedRows(t testing.TB, dir string) map[int64]string {
	t.Helper()
	var file struct{ Code [][]any }
	decode(t, filepath.Join(dir, "code.json"), &file)
	rows := map[int64]string{}
	for _, row := range file.Code {
		rows[int64(row[2].(float64))] = row[0].(string)
	}
	return rows
}

func decode(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
