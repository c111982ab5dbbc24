package att

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

const (
	heading   = `"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0"`
	goodCode  = `{"code":[["; k_0",0,0,"",1,0,0,0,0,0],["v_mov_b32 v1, v2",0,1,"/w/flydsl/expr/p.py:3 -> /w/kernels/k.py:9",1,0,2,20,4,1],["s_waitcnt vmcnt(0)",0,2,"/w/kernels/k.py:10",1,8,2,90,80,0],["s_endpgm",0,3,"",1,12,2,8,0,0]],` + heading + `}`
	goodFiles = `{"wave_filenames":{"0":{"1":{"2":{"0":["w0.json",100,150],"1":["w1.json",150,209]}}}},"gfxip":9,"gfxv":"vega","version":"3.0.0"}`
	goodOcc   = `{"0":[[100,3,1,2,1,1],[150,3,1,2,0,1],[150,3,1,2,true,1],[209,3,1,2,false,1],[101,5,0,0,1,2]],"dispatches":{"1":"k_0","2":"other_0"},"version":"3.0.0"}`
	waveA     = `{"duration":50,"name":"SE0","num_insts":3,"num_stitched":3,"wave":{"begin":100,"cu":3,"end":150,"id":0,"instructions":[[100,6,2,10,1],[110,9,40,42,2],[146,11,0,4,3]],"simd":1,"slot":2,"timeline":[[2,50]],"waitcnt":null}}`
	waveB     = `{"duration":59,"name":"SE0","num_insts":3,"num_stitched":3,"wave":{"begin":150,"cu":3,"end":209,"id":1,"instructions":[[150,6,2,10,1],[161,9,40,48,2],[205,11,0,4,3]],"simd":1,"slot":2,"timeline":[],"waitcnt":[]}}`
)

// trace writes a dispatch directory; a file that is "" is left out.
func trace(t testing.TB, change map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ui_output_agent_7_dispatch_12")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"code.json": goodCode, "filenames.json": goodFiles, "occupancy.json": goodOcc, "w0.json": waveA, "w1.json": waveB}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func opened(t *testing.T, change map[string]string) *Dispatch {
	t.Helper()
	d, err := Open(t.Context(), trace(t, change), Options{ReadWaves: true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

func TestGood(t *testing.T) {
	d := opened(t, nil)
	if len(d.Warnings) != 0 || d.Agent != 7 || d.Dispatch != 12 || d.GfxIP != 9 {
		t.Errorf("%+v", d)
	}
	v := d.Verdict("k_0")
	if v.State != Kept || v.Waves != 2 || v.Ins != 3 || v.Mapped != 2 || *v.MappedPct != 66.7 || *v.FlyDSLPct != 50 || v.TopStallType != "vmcnt" {
		t.Errorf("%+v", v)
	}
	if v.Totals != (Totals{Hit: 6, Latency: 118, Stall: 84, Idle: 1}) || *v.MappedLatencyPct != 93.2 {
		t.Errorf("%+v, %v%% of the latency is mapped", v.Totals, *v.MappedLatencyPct)
	}
	if i := d.Integrity; i.RowsDiffering != 0 || i.WavesRead != 2 || i.Instructions != 6 {
		t.Errorf("%+v", i)
	}
	if busy := d.Occupancy.BusyCUs("k_0"); len(busy[0]) != 1 || busy[0][0] != 3 {
		t.Errorf("busy for k_0: %v", busy)
	}
	if cu, engines := BusiestCU(d.Occupancy.BusyCUs("")); cu != 3 || engines != 1 {
		t.Errorf("busiest: CU %d on %d engines", cu, engines)
	}
}

// TestForms: every form of the files that is known gives the same verdict.
func TestForms(t *testing.T) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(goodCode), "", "  "); err != nil {
		t.Fatal(err)
	}
	other := `{"code":[[0,"; k_0",0,"",1,0,0,0,0,0],[4,"v_mov_b32 v1, v2",1,"a.py:3",1,0,2,20,4,1],[80,"s_waitcnt vmcnt(0)",2,"a.py:4",1,8,2,90,80,0],[0,"s_endpgm",3,"",1,12,2,8,0,0]],"header":["Stall","ISA","LineNumber","Source","Codeobj","Vaddr","Hit","Latency","_","Idle"],"version":"3.0.0"}`
	for name, change := range map[string]map[string]string{
		"indented":             {"code.json": pretty.String()},
		"header first":         {"code.json": `{` + heading + `,` + strings.TrimPrefix(strings.Replace(goodCode, `,`+heading, "", 1), "{")},
		"another column order": {"code.json": other},
		"11-column occupancy":  {"occupancy.json": `{"0":[[100,3,1,2,1,1,0,0,0,0,0]],"occupancy_fields":["x"],"events":{"0":[{"kind":"event"}]},"dispatches":{"1":"k_0"},"version":"3.1.0"}`},
		"unresolved row":       {"code.json": strings.Replace(goodCode, `["s_endpgm"`, `["",0,99,"",0,0,1,5,5,0],["s_endpgm"`, 1)},
		"function map":         {"code.json": strings.Replace(goodCode, `{"code"`, `{"sqtt_funcmap":[[1,2,"k","f"]],"code"`, 1)},
		"BOM-free unicode":     {"code.json": strings.Replace(goodCode, "/w/kernels/k.py:10", `/w/k\u00e4\ud83d\ude00.py:10`, 1)},
	} {
		v := opened(t, change).Verdict("k_0")
		if v.State != Kept || v.Ins != 3 || v.Mapped != 2 || v.Totals.Stall != 84 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestSeveralObjects: the rows of the traced kernel's code object count, whichever it is.
func TestSeveralObjects(t *testing.T) {
	two := `{"code":[["; a",0,0,"",1,0,0,0,0,0],["s_nop 0",0,1,"",1,0,1,1,0,0],["; b",0,2,"",2,0,0,0,0,0],["s_nop 1",0,3,"x:1",2,0,9,9,9,0],["s_endpgm",0,4,"x:2",2,4,9,9,0,0]],` + heading + `}`
	d := opened(t, map[string]string{"code.json": two})
	for kernel, want := range map[string]int{"a": 1, "b": 2, "": 2} {
		if v := d.Verdict(kernel); v.Ins != want || v.State != Kept {
			t.Errorf("%q: %+v", kernel, v)
		}
	}
	if v := d.Verdict("c"); v.State != Empty || !strings.Contains(v.Err.Error(), "a, b") {
		t.Errorf("a kernel that the trace does not hold: %+v", v)
	}
}

// TestEmpty: each kind of nothing is EMPTY_ATT.
func TestEmpty(t *testing.T) {
	for name, change := range map[string]map[string]string{
		"null":          {"code.json": `{"code":null,` + heading + `}`, "filenames.json": `{"wave_filenames":null,"gfxip":9}`},
		"no row":        {"code.json": `{"code":[],` + heading + `}`, "filenames.json": `{"wave_filenames":{},"gfxip":9}`},
		"header only":   {"code.json": `{"code":[["; k_0",0,0,"",1,0,0,0,0,0]],` + heading + `}`},
		"no hit, waves": {"code.json": `{"code":[["; k_0",0,0,"",1,0,0,0,0,0],["s_endpgm",0,1,"",1,0,0,0,0,0]],` + heading + `}`, "filenames.json": `{"wave_filenames":null}`},
	} {
		if v := opened(t, change).Verdict("k_0"); v.State != Empty || envelope.CodeOf(v.Err) != envelope.EmptyATT {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestWarnings: what is missing or odd is said, and the trace stays.
func TestWarnings(t *testing.T) {
	for want, change := range map[string]map[string]string{
		WarnWavesMissing:     {"w1.json": ""},
		WarnNoWavesListed:    {"filenames.json": `{"wave_filenames":null,"gfxip":12}`},
		WarnWaveCorrupt:      {"w1.json": waveB[:100]},
		WarnWaveInconsistent: {"w1.json": strings.Replace(waveB, `"num_insts":3`, `"num_insts":4`, 1)},
		WarnWavesDiffer:      {"w1.json": strings.Replace(waveB, "[161,9,40,48,2]", "[161,9,40,47,2]", 1)},
		WarnManifestMissing:  {"filenames.json": ""},
		WarnOccupancyMissing: {"occupancy.json": ""},
		WarnOccupancyCorrupt: {"occupancy.json": `{"0":[[1,2`},
		WarnShortRows:        {"code.json": strings.Replace(goodCode, `["s_endpgm"`, `["s_nop 0",0,9],["s_endpgm"`, 1)},
		WarnDuplicateLines:   {"code.json": strings.Replace(goodCode, `"s_endpgm",0,3`, `"s_endpgm",0,2`, 1)},
		WarnHeaderMissing:    {"code.json": strings.Replace(goodCode, heading, `"version":"3.0.0"`, 1)},
		WarnVersion:          {"code.json": strings.Replace(goodCode, `"3.0.0"`, `"4.2.0"`, 1)},
		WarnNotATT:           {"filenames.json": strings.Replace(goodFiles, `"gfxip"`, `"pc_sampling":true,"gfxip"`, 1)},
	} {
		d := opened(t, change)
		if !hasWarning(d, want) {
			t.Errorf("no %s: %v", want, d.Warnings)
		}
	}
	d, err := Open(t.Context(), trace(t, nil), Options{MaxWaveFiles: 1, ReadWaves: true})
	if err != nil || !hasWarning(d, WarnWavesCut) || hasWarning(d, WarnWavesDiffer) {
		t.Errorf("%v %v", err, d.Warnings)
	}
}

// TestCorrupt: a file that is not what it should be is TRACE_CORRUPT that names it and the byte.
func TestCorrupt(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		says   string
	}{
		"code no JSON":        {map[string]string{"code.json": "hello"}, "code.json"},
		"code empty":          {map[string]string{"code.json": " "}, "code.json"},
		"a text for a number": {map[string]string{"code.json": strings.Replace(goodCode, "2,90,80,0", `2,"90",80,0`, 1)}, "byte"},
		"a negative count":    {map[string]string{"code.json": strings.Replace(goodCode, "2,90,80,0", "2,-90,80,0", 1)}, "negative"},
		"a huge number":       {map[string]string{"code.json": strings.Replace(goodCode, "2,90,80,0", "2,99999999999999999999,80,0", 1)}, "64-bit"},
		"code twice":          {map[string]string{"code.json": strings.Replace(goodCode, `"header"`, `"code":[],"header"`, 1)}, "twice"},
		"text behind":         {map[string]string{"code.json": goodCode + "x"}, "after the end"},
		"a column is missing": {map[string]string{"code.json": strings.Replace(goodCode, ", Stall", "", 1)}, "lacks a column"},
		"manifest torn":       {map[string]string{"filenames.json": goodFiles[:60]}, "filenames.json"},
		"manifest, no waves":  {map[string]string{"filenames.json": `{"wave_filenames":{"0":{"x":{}}}}`}, "number"},
		"all waves torn":      {map[string]string{"w0.json": waveA[:50], "w1.json": waveB[:50]}, "w0.json"},
		"deep":                {map[string]string{"code.json": strings.Repeat("[", 100_000)}, "code.json"},
	} {
		_, err := Open(t.Context(), trace(t, c.change), Options{ReadWaves: true})
		if envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, dir := range map[string]string{"no code.json": trace(t, map[string]string{"code.json": ""}), "no directory": filepath.Join(t.TempDir(), "absent")} {
		if _, err := Open(t.Context(), dir, Options{}); envelope.CodeOf(err) != envelope.NoArtifact {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTornAnywhere: a file that ends at any byte is refused or, where the end is only white space, read.
func TestTornAnywhere(t *testing.T) {
	dir := trace(t, nil)
	for n := range len(goodCode) - 1 {
		if err := os.WriteFile(filepath.Join(dir, "code.json"), []byte(goodCode[:n]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), dir, Options{}); envelope.CodeOf(err) != envelope.TraceCorrupt {
			t.Fatalf("torn at byte %d: %v", n, err)
		}
	}
}

// TestHostileNames: names in the files do not lead out of the directory, and only regular files are read.
func TestHostileNames(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(outside, []byte(waveA), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../secret.json", outside, "..", ".", "", "a/b", `a\\b`, "w\u0000", strings.Repeat("x", 5000)} {
		raw, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		d := opened(t, map[string]string{"filenames.json": strings.Replace(goodFiles, `"w1.json"`, string(raw), 1)})
		if d.WavesPresent != 1 || !hasWarning(d, WarnWaveRefused) || hasWarning(d, WarnWavesMissing) {
			t.Errorf("%.40q was read or is said to be missing: %+v", name, d.WavesPresent)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := trace(t, map[string]string{"w1.json": ""})
	if err := os.Symlink(outside, filepath.Join(dir, "w1.json")); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(t.Context(), dir, Options{ReadWaves: true}); err != nil || d.WavesPresent != 1 {
		t.Errorf("a link was followed: %v", err)
	}
	// Links within the directory and directories are no files of a trace either.
	inside := trace(t, map[string]string{"w0.json": "", "w1.json": "", "w2.json": waveB})
	if err := errors.Join(os.Symlink("w2.json", filepath.Join(inside, "w1.json")), os.Mkdir(filepath.Join(inside, "w0.json"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(t.Context(), inside, Options{ReadWaves: true}); err != nil || d.WavesPresent != 0 || !hasWarning(d, WarnWaveRefused) {
		t.Errorf("a link or a directory was read: %+v %v", d, err)
	}
	code := filepath.Join(dir, "code.json")
	if err := os.Remove(code); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", code); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); envelope.CodeOf(err) != envelope.TraceCorrupt {
		t.Errorf("code.json is a link to a device: %v", err)
	}
}

func TestDirName(t *testing.T) {
	for name, want := range map[string]bool{
		"ui_output_agent_1_dispatch_2": true, "ui_output_agent_32235_dispatch_44_after_loc_fix": true, "ui_output_agent_1_dispatch_": false,
		"ui_output_agent_x_dispatch_2": false, "ui_output_agent_1_dispatch_2.csv": false, "ui_output_agent_99999999999999999999_dispatch_1": false, "": false,
	} {
		if _, _, _, ok := ParseDirName(name); ok != want {
			t.Errorf("%q: %v", name, ok)
		}
	}
}

func TestSatAdd(t *testing.T) {
	const most, least = 1<<63 - 1, -1 << 63
	for _, c := range [][3]int64{{1, 2, 3}, {most, 1, most}, {most, most, most}, {least, -1, least}, {least, most, -1}, {5, -7, -2}} {
		if got := satAdd(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestSameKernelTwice: a module that was loaded twice has two code objects with the kernel; the one that ran is judged.
func TestSameKernelTwice(t *testing.T) {
	twice := `{"code":[["; k",0,0,"k(int)",1,0,0,0,0,0],["s_nop 0",0,1,"",1,0,0,0,0,0],["s_nop 0",0,2,"",1,4,0,0,0,0],["; k",0,3,"k(int)",2,0,0,0,0,0],["s_endpgm",0,4,"x:2",2,4,9,9,0,0],` +
		`["; big",0,5,"",3,0,0,0,0,0],["s_nop 9",0,6,"",3,8,99,99,0,0]],` + heading + `}`
	d := opened(t, map[string]string{"code.json": twice})
	for _, kernel := range []string{"k", "k.kd", "k(int)", "k(int) [clone .kd]"} {
		if v := d.Verdict(kernel); v.State != Kept || v.Ins != 1 || v.Mapped != 1 || v.Totals.Hit != 9 {
			t.Errorf("%s: %+v", kernel, v)
		}
	}
	if rows := d.Code.KernelRows(""); len(rows) != 2 || rows[1].Hit != 99 {
		t.Errorf("the busiest: %+v", rows)
	}
}

// TestBusyCUs: those of the kernel where the file names it, under whichever ids; else those of the waves without a name.
func TestBusyCUs(t *testing.T) {
	d := opened(t, map[string]string{"occupancy.json": `{"0":[[1,3,0,0,1,1],[2,3,0,1,1,1],[3,5,0,0,1,0],[4,6,0,0,1,2],[5,7,0,0,0,1]],"4":[[1,9,0,0,true,3],[1,2,0,0,true,3]],` +
		`"dispatches":{"0":"0 / 0x0","1":"k_0","2":"other","3":"k_0"}}`})
	for kernel, want := range map[string]struct {
		busy  map[int][]int
		waves int64
	}{
		"k_0":   {map[int][]int{0: {3}, 4: {2, 9}}, 4},
		"other": {map[int][]int{0: {6}}, 1},
		"third": {map[int][]int{0: {5}}, 1},
		"":      {map[int][]int{0: {3, 5, 6}, 4: {2, 9}}, 6},
	} {
		if got := d.Occupancy.BusyCUs(kernel); !reflect.DeepEqual(got, want.busy) || d.Occupancy.WavesStarted(kernel) != want.waves {
			t.Errorf("%q: %v, %d waves, want %+v", kernel, got, d.Occupancy.WavesStarted(kernel), want)
		}
	}
}

// TestCancelled: the context's end is no fault of the files, before and while they are read.
func TestCancelled(t *testing.T) {
	dir := trace(t, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, dir, Options{ReadWaves: true}); !errors.Is(err, context.Canceled) || envelope.CodeOf(err) != "" {
		t.Errorf("%v", err)
	}
	for reads := range 12 {
		_, err := Open(&countdown{Context: t.Context(), left: reads}, dir, Options{ReadWaves: true, Workers: 1})
		if !errors.Is(err, context.Canceled) || envelope.CodeOf(err) != "" {
			t.Errorf("ended at question %d: %v", reads, err)
		}
	}
}

// countdown is a context that ends after it was asked some times.
type countdown struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *countdown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestPartial: what a torn wave file holds is not in the totals; what a wave says of its place is compared.
func TestPartial(t *testing.T) {
	d := opened(t, map[string]string{"w1.json": waveB[:strings.Index(waveB, ",[205")]})
	if i := d.Integrity; i.WavesRead != 1 || i.CorruptFiles != 1 || i.Instructions != 3 || i.Totals != (Totals{Hit: 3, Latency: 56, Stall: 42}) || hasWarning(d, WarnWavesDiffer) {
		t.Errorf("%+v %v", i, d.Warnings)
	}
	for _, c := range [][2]string{{`"simd":1`, `"simd":2`}, {`"slot":2`, `"slot":0`}, {`"id":1`, `"id":7`}, {`"begin":150`, `"begin":149`}} {
		changed := strings.Replace(waveB, c[0], c[1], 1)
		if d := opened(t, map[string]string{"w1.json": changed}); changed == waveB || !hasWarning(d, WarnWaveInconsistent) {
			t.Errorf("%s: %v", c[1], d.Warnings)
		}
	}
	bare := strings.NewReplacer(`,"simd":1,"slot":2,"timeline":[],"waitcnt":[]`, "").Replace(waveB)
	if d := opened(t, map[string]string{"w1.json": bare}); bare == waveB || len(d.Warnings) != 0 {
		t.Errorf("a wave file without what other writers leave out: %v", d.Warnings)
	}
}

// TestRefusedSize: a file above the limit is refused and said to be, code.json as TRACE_CORRUPT.
func TestRefusedSize(t *testing.T) {
	dir := trace(t, map[string]string{"w1.json": waveB + strings.Repeat(" ", 5000)})
	d, err := Open(t.Context(), dir, Options{ReadWaves: true, MaxFileBytes: 2000})
	if err != nil || d.WavesPresent != 1 || !hasWarning(d, WarnWaveRefused) || hasWarning(d, WarnWavesDiffer) {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := Open(t.Context(), dir, Options{MaxFileBytes: 20}); envelope.CodeOf(err) != envelope.TraceCorrupt || !strings.Contains(err.Error(), "limit of 20") {
		t.Errorf("%v", err)
	}
}

// TestKeptText: the text kept of one file is bounded, and one that comes again is kept once.
func TestKeptText(t *testing.T) {
	s := newScanner(strings.NewReader(`["` + strings.Repeat("a", 100) + `","` + strings.Repeat("a", 100) + `","b"]`))
	last, n := "", 0
	err := s.array(func() (err error) {
		last, err = s.strAfter(last)
		if n++; n == 2 {
			s.kept += maxKept - 100 // as if so much had been read
		}
		return err
	})
	if n != 3 || err == nil || !strings.Contains(err.Error(), "bytes of text") {
		t.Errorf("%d strings, %v", n, err)
	}
}

func TestSnapshots(t *testing.T) {
	good := `{"/":{"w":{"..":{"k.py":"w0.json"},".":{"l.py":"w1.json"}}},"rel":{"m.py":"w0.json"}}`
	want := []Snapshot{{"/w/../k.py", "w0.json"}, {"/w/./l.py", "w1.json"}, {"rel/m.py", "w0.json"}}
	if d := opened(t, map[string]string{"snapshots.json": good}); !reflect.DeepEqual(d.Snapshots, want) || len(d.Warnings) != 0 {
		t.Errorf("%+v %v", d.Snapshots, d.Warnings)
	}
	for text, c := range map[string]struct {
		warning string
		kept    int
	}{
		`{"/":{"a":"../../etc/passwd","b":"/etc/passwd","c":"w0.json"}}`: {WarnSnapshotsMissing, 1},
		`{"/":{"a":"absent.py"}}`: {WarnSnapshotsMissing, 0},
		`{"/":{"a":5}}`:           {WarnSnapshots, 0},
		`{"/":{"a":`:              {WarnSnapshots, 0},
		`{"` + strings.Repeat("p", 5000) + `":{"a":"w0.json"}}`:                 {WarnSnapshots, 0},
		strings.Repeat(`{"a":`, 1000) + `"w0.json"` + strings.Repeat(`}`, 1000): {WarnSnapshots, 0},
	} {
		d := opened(t, map[string]string{"snapshots.json": text})
		if !hasWarning(d, c.warning) || len(d.Snapshots) != c.kept || d.Verdict("k_0").State != Kept {
			t.Errorf("%.60s: %v %v", text, d.Snapshots, d.Warnings)
		}
	}
}

// TestFindDispatches: by number and not by text, ties by path, neither links nor what lies too deep.
func TestFindDispatches(t *testing.T) {
	root := t.TempDir()
	deep := strings.Repeat("d/", maxFindDepth+1)
	for _, dir := range []string{"b/ui_output_agent_1_dispatch_13", "b/ui_output_agent_1_dispatch_9", "a/x/ui_output_agent_2_dispatch_9", "ui_output_agent_1_dispatch_13/ui_output_agent_1_dispatch_1", "other", deep + "ui_output_agent_1_dispatch_2"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "ui_output_agent_1_dispatch_5"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for _, link := range []string{"loop", "ui_output_agent_1_dispatch_6"} {
			if err := os.Symlink(root, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := FindDispatches(root)
	want := []string{"a/x/ui_output_agent_2_dispatch_9", "b/ui_output_agent_1_dispatch_9", "b/ui_output_agent_1_dispatch_13", "ui_output_agent_1_dispatch_13"}
	for i := range want {
		want[i] = filepath.Join(root, filepath.FromSlash(want[i]))
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if got, err := FindDispatches(want[0]); err != nil || len(got) != 1 || got[0] != want[0] {
		t.Errorf("a dispatch directory itself: %v %v", got, err)
	}
	if _, err := FindDispatches(filepath.Join(root, "absent")); err == nil {
		t.Error("an absent root is no error")
	}
}

// TestRowsOfWaves: each of the three sums of a row is compared.
func TestRowsOfWaves(t *testing.T) {
	for what, c := range map[string][2]string{
		"hit":     {",0,2,20,4,1]", ",0,3,20,4,1]"},
		"latency": {",0,2,20,4,1]", ",0,2,21,4,1]"},
		"stall":   {",0,2,20,4,1]", ",0,2,20,5,1]"},
	} {
		d := opened(t, map[string]string{"code.json": strings.Replace(goodCode, c[0], c[1], 1)})
		if d.Integrity.RowsDiffering != 1 || !hasWarning(d, WarnWavesDiffer) {
			t.Errorf("%s: %+v", what, d.Integrity)
		}
	}
	unknown := opened(t, map[string]string{"w1.json": strings.Replace(waveB, "[150,6,2,10,1]", "[150,6,2,10,77]", 1)})
	if i := unknown.Integrity; i.UnknownLines != 1 || i.RowsDiffering != 1 {
		t.Errorf("a line that is no row: %+v", i)
	}
}

// TestUnresolvedRow: the row of what could not be resolved is no row of a kernel, whatever code object it claims.
func TestUnresolvedRow(t *testing.T) {
	d := opened(t, map[string]string{"code.json": strings.Replace(goodCode, `["s_endpgm"`, `["",0,99,"",1,0,1,5,5,0],["s_endpgm"`, 1)})
	if rows := d.Code.KernelRows("k_0"); len(rows) != 4 || rows[3].ISA != "s_endpgm" || len(d.Code.Rows) != 5 {
		t.Errorf("%+v", rows)
	}
}

// TestInsideFlyDSL: the innermost place decides, by whole names of directories.
func TestInsideFlyDSL(t *testing.T) {
	for source, want := range map[string]bool{
		"/w/python_packages/flydsl/expr/numeric.py:31":      true,
		"/w/flydsl/expr/numeric.py:31 -> /w/kernels/k.py:9": true,
		"/w/kernels/k.py:9 -> /w/flydsl/expr/numeric.py:31": false,
		"/w/kernels/k.py:9":        false,
		"/w/myflydsl/k.py:9":       false,
		"/w/FlyDSL/kernels/k.py:9": false,
		"/w/kernels/flydsl:9":      false,
		`C:\w\flydsl\k.py:9`:       true,
		"":                         false,
	} {
		if insideFlyDSL(source) != want {
			t.Errorf("%q: %v", source, !want)
		}
	}
}
