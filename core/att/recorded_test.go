package att

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// dispatches gives the dispatch directories of real captures beside the project, also those of another name (PC samples).
func dispatches(t testing.TB) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(recorded.Traces(t), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "code.json" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d recorded directories, %v", len(dirs), err)
	}
	return dirs
}

// TestFindRecorded: FindDispatches finds each directory that has the name of one.
func TestFindRecorded(t *testing.T) {
	want := map[string]bool{}
	for _, dir := range dispatches(t) {
		if strings.HasPrefix(filepath.Base(dir), "ui_output_agent_") {
			want[dir] = true
		}
	}
	got, err := FindDispatches(recorded.Traces(t))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d directories, want %d: %v", len(got), len(want), err)
	}
	for _, dir := range got {
		if !want[dir] {
			t.Errorf("%s", dir)
		}
	}
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
		sameVerdict(t, name, dir, d)
		sameSnapshots(t, name, dir, d)
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

// sameVerdict counts plainly what the verdict says; every recorded trace holds one code object.
func sameVerdict(t *testing.T, name, dir string, d *Dispatch) {
	t.Helper()
	var code struct{ Code [][]any }
	var manifest struct {
		PC bool `json:"pc_sampling"`
	}
	plainly(t, filepath.Join(dir, "code.json"), &code)
	plainly(t, filepath.Join(dir, "filenames.json"), &manifest)
	var want Totals
	ins, mapped, inside, mappedLatency := 0, 0, 0, 0.0
	kernel, objects := "", map[float64]bool{}
	for _, r := range code.Code {
		isa, source := r[0].(string), r[3].(string)
		if strings.HasPrefix(isa, "; ") {
			kernel = isa[2:]
		}
		if isa == "" || isa[0] == ';' || strings.HasPrefix(isa, "label") {
			continue
		}
		objects[r[4].(float64)] = true
		ins++
		want.Hit += int64(r[6].(float64))
		want.Latency += int64(r[7].(float64))
		want.Stall += int64(r[8].(float64))
		want.Idle += int64(r[9].(float64))
		if source != "" {
			mapped++
			mappedLatency += r[7].(float64)
			if strings.Contains(strings.Split(source, " -> ")[0], "/flydsl/") {
				inside++
			}
		}
	}
	if len(objects) > 1 && !manifest.PC {
		t.Fatalf("%s: %d code objects; this test knows one", name, len(objects))
	}
	share := func(part, whole float64) float64 {
		if whole == 0 {
			return -1
		}
		return 100 * part / whole
	}
	near := func(what string, got *float64, want float64) {
		if got == nil && want == -1 || got != nil && math.Abs(*got-want) <= 0.0501 {
			return
		}
		t.Errorf("%s: %s is %v, want %v", name, what, got, want)
	}
	for _, k := range []string{kernel, ""} {
		v := d.Verdict(k)
		switch {
		case manifest.PC:
			if v.State != Bad || envelope.CodeOf(v.Err) != envelope.TraceCorrupt || !hasWarning(d, WarnNotATT) {
				t.Errorf("%s: PC samples are %s, %v", name, v.State, v.Err)
			}
			continue
		case code.Code == nil:
			if v.State != Empty || envelope.CodeOf(v.Err) != envelope.EmptyATT {
				t.Errorf("%s: no code is %s, %v", name, v.State, v.Err)
			}
		case v.State != Kept || v.Err != nil:
			t.Errorf("%s: %s, %v", name, v.State, v.Err)
		}
		if v.Ins != ins || v.Mapped != mapped || v.Totals != want {
			t.Errorf("%s: %d instructions, %d mapped, %+v; want %d, %d, %+v", name, v.Ins, v.Mapped, v.Totals, ins, mapped, want)
		}
		near("mapped_pct", v.MappedPct, share(float64(mapped), float64(ins)))
		near("mapped_latency_pct", v.MappedLatencyPct, share(mappedLatency, float64(want.Latency)))
		near("the share inside flydsl", v.FlyDSLPct, share(float64(inside), float64(mapped)))
	}
	if other := d.Verdict("no_such_kernel"); kernel != "" && other.State == Kept {
		t.Errorf("%s is kept as a trace of another kernel", name)
	}
}

// sameSnapshots walks snapshots.json plainly.
func sameSnapshots(t *testing.T, name, dir string, d *Dispatch) {
	t.Helper()
	var tree map[string]any
	plainly(t, filepath.Join(dir, "snapshots.json"), &tree)
	want, lost := map[Snapshot]bool{}, false
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case string:
			if _, err := os.Stat(filepath.Join(dir, v)); err != nil {
				lost = true
				return
			}
			want[Snapshot{Path: at, File: v}] = true
		case map[string]any:
			for key, inner := range v {
				walk(strings.ReplaceAll(at+"/"+key, "//", "/"), inner)
			}
		}
	}
	for key, v := range tree {
		walk(key, v)
	}
	if len(want) != len(d.Snapshots) || lost != hasWarning(d, WarnSnapshotsMissing) {
		t.Errorf("%s: %v, want %v, lost %v: %v", name, d.Snapshots, want, lost, d.Warnings)
	}
	for _, s := range d.Snapshots {
		used := slices.ContainsFunc(d.Code.Rows, func(r Row) bool { return strings.Contains(r.Source, s.Path+":") })
		if !want[s] || !used {
			t.Errorf("%s: %+v, want %v; in use by a row: %v", name, s, want, used)
		}
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
	lines := map[int64]Totals{}
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
						l := lines[int64(i[4])]
						lines[int64(i[4])] = Totals{Hit: l.Hit + 1, Stall: l.Stall + int64(i[2]), Latency: l.Latency + int64(i[3])}
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
	differing := 0
	for _, r := range d.Code.Rows {
		l := lines[r.Line]
		if l.Idle = r.Idle; r.ISA != "" && l != (Totals{Hit: r.Hit, Latency: r.Latency, Stall: r.Stall, Idle: r.Idle}) {
			differing++
		}
	}
	if i.RowsDiffering != differing {
		t.Errorf("%s: %d rows differ, want %d", name, i.RowsDiffering, differing)
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
