package att

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestUnresolvedBusiest: the unresolved row of 3.1.0 may have more hits than the kernel, and is still no code object.
func TestUnresolvedBusiest(t *testing.T) {
	d := opened(t, map[string]string{"code.json": strings.Replace(goodCode, `["s_endpgm"`, `["",0,99,"",0,0,1000,5000,5,0],["s_endpgm"`, 1)})
	for _, kernel := range []string{"", "k_0"} {
		if v := d.Verdict(kernel); v.State != Kept || v.Ins != 3 || v.Totals.Hit != 6 {
			t.Errorf("%q: %+v", kernel, v)
		}
	}
}

// TestKernelDidNotRun: code without a hit, in a trace where something else has hits, is no trace of that kernel.
func TestKernelDidNotRun(t *testing.T) {
	d := opened(t, map[string]string{"code.json": `{"code":[["; a",0,0,"",1,0,0,0,0,0],["s_nop 0",0,1,"",1,0,0,0,0,0],
		["; b",0,2,"",2,0,0,0,0,0],["s_nop 1",0,3,"x:1",2,0,9,9,9,0]],` + heading + `}`})
	if v := d.Verdict("a"); v.State != Empty || envelope.CodeOf(v.Err) != envelope.EmptyATT || !strings.Contains(v.Err.Error(), "code of a") {
		t.Errorf("%+v", v)
	}
	if v := d.Verdict("b"); v.State != Kept {
		t.Errorf("%+v", v)
	}
	d = opened(t, map[string]string{"code.json": `{"code":[["; a",0,0,"",1,0,0,0,0,0],["s_nop 0",0,1,"",1,0,0,0,0,0],["",0,2,"",0,0,5,5,5,0]],` + heading + `}`})
	if v := d.Verdict(""); v.State != Empty || !strings.Contains(v.Err.Error(), "any kernel") {
		t.Errorf("only unresolved hits: %+v", v)
	}
}

// TestUnknownLines: an instruction of a line that code.json lacks changes no row's sum, and is said nevertheless.
func TestUnknownLines(t *testing.T) {
	wave := strings.NewReplacer("[205,11,0,4,3]]", "[205,11,0,4,3],[209,6,0,4,77]]", `"num_insts":3`, `"num_insts":4`).Replace(waveB)
	d := opened(t, map[string]string{"w1.json": wave})
	if d.Integrity.RowsDiffering != 0 || d.Integrity.UnknownLines != 1 || len(d.Warnings) != 1 || d.Warnings[0].Code != WarnLinesUnknown {
		t.Errorf("%+v, %v", d.Integrity, d.Warnings)
	}
}

// TestSamplesWithoutManifest: columns of PC samples tell it without filenames.json.
func TestSamplesWithoutManifest(t *testing.T) {
	d := opened(t, map[string]string{"code.json": strings.Replace(goodCode, "Stall, Idle", "Stall, Idle, PC_Issued", 1), "filenames.json": ""})
	if !hasWarning(d, WarnNotATT) || !hasWarning(d, WarnManifestMissing) || hasWarning(d, WarnNoWavesListed) || d.Verdict("").State != Bad {
		t.Errorf("%v, %+v", d.Warnings, d.Verdict(""))
	}
}

// TestListedTwice: a wave or a code that stands twice would be counted twice; the place where it stands is named.
func TestListedTwice(t *testing.T) {
	again := `"1":["w1.json",150,209]`
	for name, c := range map[string]struct{ file, text, at string }{
		"wave id":             {"filenames.json", strings.Replace(goodFiles, again, again+","+again, 1), again + "}"},
		"another spelling":    {"filenames.json", strings.Replace(goodFiles, again, again+`,"01":["w1.json",150,209]`, 1), `"01":`},
		"wave_filenames":      {"filenames.json", strings.TrimSuffix(goodFiles, "}") + `,"wave_filenames":{"0":{"1":{"2":{"0":["w0.json",100,150]}}}}}`, ""},
		"code":                {"code.json", strings.TrimSuffix(goodCode, "}") + `,"code":[]}`, ""},
		"code is not there":   {"code.json", `{` + heading + `}`, ""},
		"a wave of two cells": {"filenames.json", strings.Replace(goodFiles, again, `"1":["w1.json",150]`, 1), ""},
	} {
		_, err := Open(t.Context(), trace(t, map[string]string{c.file: c.text}), Options{})
		if envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), c.file) || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.at == "" {
			continue
		}
		// The scanner stands at the value of the second mention: behind its key and colon.
		key, _, _ := strings.Cut(c.at, ":")
		want := strings.LastIndex(c.text, key+":") + len(key) + 1
		if !strings.Contains(err.Error(), fmt.Sprintf("byte %d: ", want)) {
			t.Errorf("%s: %v; it stands at byte %d", name, err, want)
		}
	}
}

// TestOccupancyRows: each form of a row that is known, and each that is none.
func TestOccupancyRows(t *testing.T) {
	for name, c := range map[string]struct {
		rows string
		want map[int][]int
		ok   bool
	}{
		"numbers":             {`[1,3,0,0,1,1],[2,3,0,0,0,1],[3,1,0,0,1,1]`, map[int][]int{2: {1, 3}}, true},
		"booleans":            {`[1,3,0,0,true,1],[2,4,0,0,false,1]`, map[int][]int{2: {3}}, true},
		"eleven columns":      {`[1,3,0,0,1,1,0,0,0,0,0]`, map[int][]int{2: {3}}, true},
		"none":                {``, map[int][]int{}, true},
		"five columns":        {`[1,3,0,0,1]`, nil, false},
		"a negative CU":       {`[1,-3,0,0,1,1]`, nil, false},
		"a negative CU ended": {`[1,-3,0,0,0,1]`, nil, false},
		"start is 2":          {`[1,3,0,0,2,1]`, nil, false},
		"start is a text":     {`[1,3,0,0,"1",1]`, nil, false},
		"a huge CU":           {`[1,9223372036854775808,0,0,1,1]`, nil, false},
	} {
		d := opened(t, map[string]string{"occupancy.json": `{"2":[` + c.rows + `],"dispatches":{"1":"k_0"},"version":"3.1.0"}`})
		if d.Occupancy.Known != c.ok || hasWarning(d, WarnOccupancyCorrupt) == c.ok {
			t.Errorf("%s: known %v, %v", name, d.Occupancy.Known, d.Warnings)
		}
		if busy := d.Occupancy.BusyCUs("k_0"); c.ok && !reflect.DeepEqual(busy, c.want) {
			t.Errorf("%s: %v, want %v", name, busy, c.want)
		}
		if v := d.Verdict("k_0"); v.State != Kept {
			t.Errorf("%s: a trace can be judged without an occupancy: %+v", name, v)
		}
	}
}

// TestSnapshotWarnings: sources that cannot be had are said, and names that lead out of the directory are not opened.
func TestSnapshotWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		found      int
	}{
		"good":     {`{"/":{"w":{"k.py":"w0.json"}}}`, "", 1},
		"missing":  {`{"/":{"w":{"k.py":"source_0_k.py","l.py":"w0.json"}}}`, WarnSnapshotsMissing, 1},
		"outside":  {`{"/":{"w":{"k.py":"../../../../etc/passwd"}}}`, WarnSnapshotsMissing, 0},
		"torn":     {`{"/":{"w":{"k.py":"w0`, WarnSnapshots, 0},
		"a number": {`{"/":{"w":3}}`, WarnSnapshots, 0},
		"deep":     {strings.Repeat(`{"a":`, 200) + `"w0.json"` + strings.Repeat("}", 200), WarnSnapshots, 0},
		"long":     {`{"` + strings.Repeat("x", 5000) + `":"w0.json"}`, WarnSnapshots, 0},
	} {
		d := opened(t, map[string]string{"snapshots.json": c.text})
		if len(d.Snapshots) != c.found || len(d.Warnings) > 1 || (c.want == "") != (len(d.Warnings) == 0) || c.want != "" && !hasWarning(d, c.want) {
			t.Errorf("%s: %v, %v", name, d.Snapshots, d.Warnings)
		}
	}
}

// TestBounds: a file over the limit is refused by name and size, in each place where a file is read.
func TestBounds(t *testing.T) {
	dir := trace(t, map[string]string{"w1.json": waveB + strings.Repeat(" ", 4000), "occupancy.json": goodOcc + strings.Repeat(" ", 4000)})
	d, err := Open(t.Context(), dir, Options{MaxFileBytes: 4000, ReadWaves: true})
	if err != nil || d.WavesPresent != 1 || !hasWarning(d, WarnWaveRefused) || !hasWarning(d, WarnOccupancyCorrupt) {
		t.Errorf("%v %+v", err, d)
	}
	if _, err := Open(t.Context(), dir, Options{MaxFileBytes: 100}); envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), "limit of 100") {
		t.Errorf("%v", err)
	}
}

// TestCutTrace: a wave that does not reach the end of its program, and waves on the traced CU without a record, are said with their
// share. goodOcc has the starts on CU 3.
func TestCutTrace(t *testing.T) {
	t.Parallel()
	cut := strings.Replace(waveA, `[146,11,0,4,3]`, `[146,9,0,4,2]`, 1)
	more := strings.Replace(goodOcc, `"0":[`, `"0":[[90,3,0,0,1,1],[91,3,0,1,1,1],[92,3,0,2,1,1],[93,3,0,3,1,1],`, 1)
	for name, c := range map[string]struct {
		change map[string]string
		want   string
	}{
		"complete":         {nil, ""},
		"a wave is cut":    {map[string]string{"w0.json": cut}, "1 of 2 traced waves (50.0%)"},
		"waves are lost":   {map[string]string{"occupancy.json": more}, "that began on the traced CU 3"},
		"CUs do not agree": {map[string]string{"occupancy.json": more, "w0.json": strings.Replace(waveA, `"cu":3`, `"cu":4`, 1)}, ""},
	} {
		d := opened(t, c.change)
		var said []string
		for _, w := range d.Warnings {
			if w.Code == WarnWavesUnfinished || w.Code == WarnWavesLost {
				said = append(said, w.Message)
			}
		}
		if (c.want == "") != (len(said) == 0) || c.want != "" && !strings.Contains(said[0], c.want) {
			t.Errorf("%s: %q", name, said)
		}
	}
}
