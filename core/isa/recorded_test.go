package isa

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

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

func decode(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// recordedRows reads a code.json the simple way: line to text.
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

// TestRecordedMnemonics: the fixture has every mnemonic of the recorded captures, and no wait of theirs is without a counter.
func TestRecordedMnemonics(t *testing.T) {
	t.Parallel()
	known, seen := fixture(t), map[string]bool{}
	for _, dir := range recordedDirs(t) {
		for _, text := range recordedRows(t, dir) {
			i := Parse(text)
			if text == "" || strings.HasPrefix(text, ";") { // an unresolved address, a header
				continue
			}
			seen[i.Mnemonic] = true
			if known[i.Mnemonic] == "" || i.Class == Other || i.Kind() == "wait" {
				t.Errorf("%s: %q is %q, in the fixture %q", dir, text, i.Kind(), known[i.Mnemonic])
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d mnemonics were seen", len(seen))
	}
	t.Logf("%d mnemonics", len(seen))
}

// categories are the trace decoder's own (rocprof-trace-decoder, trace_decoder_instrument: instruction categories), with the
// classes that one may hold.
var categories = map[int][]Class{
	1: {SMEM, Cache}, 2: {SALU}, 3: {VMEMLoad, VMEMStore, VMEMAtomic, Cache}, 4: {Flat, Scratch, VMEMLoad, VMEMStore, VMEMAtomic}, 5: {LDS}, 6: {VALU, Matrix}, 7: {Branch}, 8: {Branch},
	9: {Nop, Barrier, Wait}, 11: {Message, Barrier},
}

// TestAgreesWithDecoder: the class of each executed instruction is one that the decoder's category allows.
func TestAgreesWithDecoder(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, dir := range recordedDirs(t) {
		rows := recordedRows(t, dir)
		files, _ := filepath.Glob(filepath.Join(dir, "se*_wv*.json"))
		for _, file := range files[:min(4, len(files))] {
			var wave struct {
				Wave struct{ Instructions [][5]int64 }
			}
			decode(t, file, &wave)
			for _, i := range wave.Wave.Instructions {
				text, ok := rows[i[4]]
				allowed, known := categories[int(i[1])]
				if !ok || !known || text == "" {
					continue
				}
				if checked++; !slices.Contains(allowed, Parse(text).Class) {
					t.Errorf("%s: %s is %s, and category %d", file, text, Parse(text).Class, i[1])
				}
			}
		}
	}
	if checked < 10000 {
		t.Errorf("only %d instructions were checked", checked)
	}
	t.Logf("%d instructions", checked)
}

// TestWaitEdges: what the trace says a wait waited for is an instruction that counts on one of the counters that the wait names.
func TestWaitEdges(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, dir := range recordedDirs(t) {
		rows := recordedRows(t, dir)
		files, _ := filepath.Glob(filepath.Join(dir, "se*_wv*.json"))
		for _, file := range files[:min(8, len(files))] {
			var wave struct {
				Wave struct{ Waitcnt [][2]any }
			}
			decode(t, file, &wave)
			for _, w := range wave.Wave.Waitcnt {
				wait := Parse(rows[int64(w[0].(float64))])
				for _, edge := range w[1].([]any) {
					target := rows[int64(edge.([]any)[0].(float64))]
					if checked++; wait.Waits&Parse(target).Uses == 0 {
						t.Errorf("%s: %+v does not wait for %s", file, wait, target)
					}
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d edges were checked", checked)
	}
	t.Logf("%d edges", checked)
}
