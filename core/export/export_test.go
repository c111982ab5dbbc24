package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// trace writes a small dispatch directory: two waves, an inline chain, another code object.
func trace(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ui_output_agent_7_dispatch_12")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"code.json": `{"code":[["; k_0",0,0,"k_0(int)",1,0,0,0,0,0],["v_mov_b32 v1, v2",0,1,"/w/lib/p.py:3 -> /w/k.py:9",1,0,2,20,4,1],["s_waitcnt vmcnt(0)",0,2,"/w/k.py:10",1,8,2,90,80,0],["s_nop 0",0,3,"",1,12,0,0,0,0],
			["s_endpgm",0,4,"",1,16,2,8,0,0],["; other",0,5,"",2,0,0,0,0,0],["s_endpgm",0,6,"",2,4,1,4,0,0]],"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0"}`,
		"filenames.json": `{"wave_filenames":{"0":{"1":{"2":{"0":["w0.json",100,150],"1":["w1.json",150,209]}}}},"gfxip":9,"version":"3.0.0"}`,
		"occupancy.json": `{"0":[[100,3,1,2,1,1],[150,3,1,2,0,1],[150,3,1,2,1,1],[209,3,1,2,0,1]],"dispatches":{"1":"k_0"},"version":"3.0.0"}`,
		"w0.json":        `{"duration":50,"num_insts":3,"wave":{"begin":100,"cu":3,"end":150,"id":0,"instructions":[[100,6,2,10,1],[110,9,40,42,2],[146,11,0,4,4]],"simd":1,"slot":2,"timeline":[[2,12],[3,38]],"waitcnt":null}}`,
		"w1.json":        `{"duration":59,"num_insts":3,"wave":{"begin":150,"cu":3,"end":209,"id":1,"instructions":[[150,6,2,10,1],[161,9,40,48,2],[205,11,0,4,4]],"simd":1,"slot":2,"timeline":[[2,59]],"waitcnt":[]}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func written(t testing.TB, dir string, format Format, about About) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(t.Context(), &out, dir, format, about); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return out.Bytes()
}

func profileOf(t testing.TB, raw []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sums are the totals of a profile by sample type.
func sums(p *profile.Profile) map[string]int64 {
	out := map[string]int64{}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			out[p.SampleType[i].Type] += v
		}
	}
	return out
}

func TestPprof(t *testing.T) {
	t.Parallel()
	p := profileOf(t, written(t, trace(t), Pprof, About{Kernel: "k_0", Run: "r", Simulated: true}))
	if p.DefaultSampleType != "stall" || len(p.Sample) != 3 || len(p.Mapping) != 1 || p.Mapping[0].File != "codeobj_1" || !strings.Contains(strings.Join(p.Comments, "\n"), "SIMULATED") {
		t.Fatalf("%v", p)
	}
	if got := sums(p); got["stall"] != 84 || got["latency"] != 118 || got["idle"] != 1 || got["hitcount"] != 6 {
		t.Errorf("%v", got)
	}
	var stack []string
	for _, l := range p.Sample[0].Location {
		stack = append(stack, l.Line[0].Function.Name)
	}
	if got := strings.Join(stack, " < "); got != "v_mov_b32 v1, v2 < p.py:3 < k.py:9 < k_0(int)" {
		t.Errorf("stack %s", got)
	}
	if l := p.Sample[0].Location[1].Line[0]; l.Line != 3 || l.Function.Filename != "/w/lib/p.py" {
		t.Errorf("%+v", l)
	}
	if p.Sample[1].Location[0].Address != 8 || p.Sample[1].Label["class"][0] != "vmcnt" {
		t.Errorf("%+v", p.Sample[1])
	}
}

func TestPerfetto(t *testing.T) {
	t.Parallel()
	var got struct {
		TraceEvents []event
		OtherData   struct{ Simulated bool }
		Truncated   int
	}
	if err := json.Unmarshal(written(t, trace(t), Perfetto, About{Simulated: true}), &got); err != nil {
		t.Fatal(err)
	}
	var waves, exec, wait float64
	for _, e := range got.TraceEvents {
		switch {
		case strings.HasPrefix(e.Name, "wave "):
			waves += e.Dur * 1000
		case e.Name == "exec":
			exec += e.Dur * 1000
		case e.Name == "wait":
			wait += e.Dur * 1000
			if e.TS != 0.112 {
				t.Errorf("the wait begins at %v", e.TS)
			}
		}
	}
	if !got.OtherData.Simulated || got.Truncated != 0 || round(waves) != 109 || round(exec) != 71 || round(wait) != 38 {
		t.Errorf("waves %v exec %v wait %v: %+v", waves, exec, wait, got)
	}
}

func round(v float64) int { return int(v + 0.5) }

func TestCSV(t *testing.T) {
	t.Parallel()
	rows, err := csv.NewReader(bytes.NewReader(written(t, trace(t), CSV, About{Kernel: "k_0"}))).ReadAll()
	if err != nil || len(rows) != 5 || rows[2][2] != "s_waitcnt vmcnt(0)" || rows[2][3] != "vmcnt" || rows[2][6] != "80" {
		t.Errorf("%v %v", rows, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dir := trace(t)
	for name, c := range map[string]struct {
		dir    string
		format Format
		code   envelope.Code
	}{
		"a format":      {dir, "svg", envelope.BadArgs},
		"no directory":  {filepath.Join(dir, "none"), CSV, envelope.NoArtifact},
		"another place": {filepath.Dir(dir), Pprof, envelope.NoArtifact},
	} {
		var out bytes.Buffer
		if err := Write(t.Context(), &out, c.dir, c.format, About{}); envelope.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "w0.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "w1.json")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(t.Context(), &out, dir, Perfetto, About{}); err == nil || !strings.Contains(err.Error(), "no wave file") {
		t.Errorf("%v", err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]place{
		"": nil, "a.py:1": {{"a.py", 1}}, "/x y/a.py:1 -> b.py:22": {{"/x y/a.py", 1}, {"b.py", 22}}, "<string>": {{"<string>", 0}}, `C:\k.py:3`: {{`C:\k.py`, 3}}, "a.py:-3": {{"a.py:-3", 0}},
		"a.py:99999999999999999999": {{"a.py:99999999999999999999", 0}}, " -> a:1": {{"a", 1}},
	} {
		got := places(text)
		if len(got) != len(want) {
			t.Errorf("%q: %v", text, got)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %v", text, got)
			}
		}
	}
}

// TestRecorded: the sums of each export are those of a plain reading of code.json.
func TestRecorded(t *testing.T) {
	t.Parallel()
	dirs, err := att.FindDispatches(recorded.Traces(t))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v %v", dirs, err)
	}
	for _, dir := range dirs {
		var plain struct{ Code [][]any }
		raw, err := os.ReadFile(filepath.Join(dir, "code.json"))
		if err != nil || json.Unmarshal(raw, &plain) != nil || len(plain.Code) == 0 {
			continue
		}
		objects := map[any]bool{}
		want := map[string]int64{}
		for _, r := range plain.Code {
			isa, _ := r[0].(string)
			if isa == "" || strings.HasPrefix(isa, ";") {
				continue
			}
			objects[r[4]] = true
			for i, name := range []string{"hitcount", "latency", "stall", "idle"} {
				v, _ := r[6+i].(float64)
				want[name] += int64(v)
			}
		}
		if len(objects) != 1 {
			continue // the export is of one kernel
		}
		got := sums(profileOf(t, written(t, dir, Pprof, About{})))
		rows, err := csv.NewReader(bytes.NewReader(written(t, dir, CSV, About{}))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		table := map[string]int64{}
		for _, r := range rows[1:] {
			for i, name := range []string{"hitcount", "latency", "stall", "idle"} {
				v, _ := strconv.ParseInt(r[4+i], 10, 64)
				table[name] += v
			}
		}
		for name, v := range want {
			if got[name] != v || table[name] != v {
				t.Errorf("%s: %s is %d in pprof and %d in CSV, want %d", filepath.Base(dir), name, got[name], table[name], v)
			}
		}
	}
}

func FuzzPlaces(f *testing.F) {
	f.Add("a.py:1 -> b.py:2")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range places(text) {
			if p.file == "" || p.line < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}
