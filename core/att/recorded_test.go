package att

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// dispatches gives the dispatch directories of real captures beside the project; they are not part of it.
func dispatches(t testing.TB) []string {
	t.Helper()
	dirs, err := FindDispatches(recorded.Traces(t))
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d recorded directories, %v", len(dirs), err)
	}
	return dirs
}

func plainly(t testing.TB, path string, v any) bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return false
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return true
}

// TestRecorded compares what Open gives with a plain reading of every recorded directory: rows, sums, waves, busy CUs, and the
// sums over the wave files.
func TestRecorded(t *testing.T) {
	exact := 0
	for _, dir := range dispatches(t) {
		d, err := Open(t.Context(), dir, Options{ReadWaves: true})
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		name := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
		sameCode(t, name, dir, d)
		sameOccupancy(t, name, dir, d)
		if sameWaves(t, name, dir, d) {
			exact++
		}
		for _, w := range d.Warnings {
			t.Logf("%s: %s: %s", name, w.Code, w.Message)
		}
	}
	if exact < 5 {
		t.Errorf("the waves of %d directories add up to code.json exactly; those of all complete ones do", exact)
	}
}

func sameCode(t *testing.T, name, dir string, d *Dispatch) {
	t.Helper()
	var code struct {
		Code    [][]any
		Version string
	}
	plainly(t, filepath.Join(dir, "code.json"), &code)
	if len(code.Code) != len(d.Code.Rows) || (code.Code == nil) != d.Code.Null || code.Version != d.Version {
		t.Errorf("%s: %d rows, null %v, version %s; the file has %d of %s", name, len(d.Code.Rows), d.Code.Null, d.Version, len(code.Code), code.Version)
		return
	}
	for i, r := range code.Code {
		want := Row{ISA: r[0].(string), Line: int64(r[2].(float64)), Source: r[3].(string), Codeobj: int64(r[4].(float64)), Vaddr: int64(r[5].(float64)),
			Hit: int64(r[6].(float64)), Latency: int64(r[7].(float64)), Stall: int64(r[8].(float64)), Idle: int64(r[9].(float64))}
		if d.Code.Rows[i] != want {
			t.Errorf("%s: row %d is %+v, want %+v", name, i, d.Code.Rows[i], want)
			return
		}
	}
}

func sameOccupancy(t *testing.T, name, dir string, d *Dispatch) {
	t.Helper()
	var file map[string]json.RawMessage
	if !plainly(t, filepath.Join(dir, "occupancy.json"), &file) {
		if d.Occupancy.Known {
			t.Errorf("%s: an occupancy without a file", name)
		}
		return
	}
	want, starts := map[int]map[int]bool{}, int64(0)
	for key, raw := range file {
		se, err := strconv.Atoi(key)
		var rows [][]float64
		if err != nil || json.Unmarshal(raw, &rows) != nil {
			continue
		}
		for _, r := range rows {
			if r[4] == 1 {
				if want[se] == nil {
					want[se] = map[int]bool{}
				}
				want[se][int(r[1])] = true
				starts++
			}
		}
	}
	got := map[int]map[int]bool{}
	for se, cus := range d.Occupancy.BusyCUs("") {
		got[se] = map[int]bool{}
		for _, cu := range cus {
			got[se][cu] = true
		}
	}
	if !reflect.DeepEqual(got, want) || d.Occupancy.WavesStarted("") != starts {
		t.Errorf("%s: busy CUs %v (%d waves), want %v (%d)", name, got, d.Occupancy.WavesStarted(""), want, starts)
	}
}

// sameWaves sums the wave files plainly; it says whether they are complete and add up to code.json.
func sameWaves(t *testing.T, name, dir string, d *Dispatch) bool {
	t.Helper()
	var manifest struct {
		Waves map[string]map[string]map[string]map[string][]any `json:"wave_filenames"`
	}
	plainly(t, filepath.Join(dir, "filenames.json"), &manifest)
	listed, present := 0, 0
	var total Totals
	count := int64(0)
	for _, se := range manifest.Waves {
		for _, simd := range se {
			for _, slot := range simd {
				for _, wave := range slot {
					listed++
					var w struct {
						Wave struct{ Instructions [][]float64 }
					}
					if !plainly(t, filepath.Join(dir, wave[0].(string)), &w) {
						continue
					}
					present++
					for _, i := range w.Wave.Instructions {
						count++
						total.Hit++
						total.Stall += int64(i[2])
						total.Latency += int64(i[3])
					}
				}
			}
		}
	}
	if len(d.Manifest.Waves) != listed || d.WavesPresent != present {
		t.Errorf("%s: %d waves listed and %d present, want %d and %d", name, len(d.Manifest.Waves), d.WavesPresent, listed, present)
	}
	if present < listed != hasWarning(d, WarnWavesMissing) {
		t.Errorf("%s: %d of %d wave files are there, and the warnings are %v", name, present, listed, d.Warnings)
	}
	if present == 0 {
		return false
	}
	i := d.Integrity
	if i == nil || i.WavesRead != present || i.Instructions != count || i.Totals.Hit != total.Hit || i.Totals.Latency != total.Latency || i.Totals.Stall != total.Stall {
		t.Errorf("%s: the waves give %+v, want %d files, %d instructions, %+v", name, i, present, count, total)
		return false
	}
	if i.CorruptFiles > 0 || i.Inconsistent > 0 {
		t.Errorf("%s: %+v", name, i)
	}
	if present == listed && i.RowsDiffering == 0 {
		return true
	}
	if present == listed && !strings.HasPrefix(d.Version, "3.1") {
		t.Errorf("%s: %d rows differ from the sums of the waves of a complete 3.0 trace", name, i.RowsDiffering)
	}
	return false
}

func hasWarning(d *Dispatch, code string) bool {
	for _, w := range d.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// BenchmarkOpen reads the recorded directory with most waves.
func BenchmarkOpen(b *testing.B) {
	var dir string
	var most int64
	for _, one := range dispatches(b) {
		size := int64(0)
		entries, err := os.ReadDir(one)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		if size > most {
			dir, most = one, size
		}
	}
	for name, waves := range map[string]bool{"summary": false, "waves": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			if waves {
				b.SetBytes(most)
			}
			for b.Loop() {
				if _, err := Open(b.Context(), dir, Options{ReadWaves: waves}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
