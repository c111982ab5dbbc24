package att

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// FuzzScan: what the scanner takes for a document, encoding/json takes too.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{goodCode, goodFiles, goodOcc, waveA, `{"a":"\ud83d\ude00\ud800"}`, `{"a":1e5,"b":-0.5,"c":[null,true,false]}`, `{"a":01}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newScanner(bytes.NewReader(raw))
		err := s.document(func([]byte) error { return s.skip() })
		if err == nil && !json.Valid(raw) {
			t.Fatalf("taken for JSON: %q", raw)
		}
	})
}

func FuzzCode(f *testing.F) {
	f.Add([]byte(goodCode))
	f.Fuzz(func(t *testing.T, raw []byte) {
		code, _, err := readCode(bytes.NewReader(raw), nil)
		if err != nil {
			return
		}
		for _, r := range code.Rows {
			if r.Hit < 0 || r.Latency < 0 || r.Stall < 0 || r.Idle < 0 {
				t.Fatalf("%+v", r)
			}
		}
		code.KernelRows("k_0")
		code.Totals()
		var plain map[string]json.RawMessage
		var rows []json.RawMessage
		if json.Unmarshal(raw, &plain) != nil || plain["code"] != nil && json.Unmarshal(plain["code"], &rows) != nil {
			t.Fatalf("taken for JSON: %q", raw)
		}
		if len(rows) != len(code.Rows)+code.Short {
			t.Fatalf("%d rows and %d short ones of %d", len(code.Rows), code.Short, len(rows))
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(goodFiles))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = readManifest(bytes.NewReader(raw)) })
}

func FuzzOccupancy(f *testing.F) {
	f.Add([]byte(goodOcc))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := readOccupancy(bytes.NewReader(raw))
		if err == nil {
			BusiestCU(o.BusyCUs(""))
			if o.WavesStarted("") < 0 {
				t.Fatal("negative")
			}
		}
	})
}

func FuzzWave(f *testing.F) {
	f.Add([]byte(waveA))
	f.Add([]byte(waveB[:150]))
	f.Fuzz(func(t *testing.T, raw []byte) {
		w := &waveReader{scan: newScanner(nil), sums: make([]lineSums, 4)}
		if _, err := w.wave(bytes.NewReader(raw)); err != nil && (w.count != 0 || w.totals != Totals{}) {
			t.Fatalf("%v, and yet %+v", err, w.totals)
		}
		if w.totals.Latency < 0 || w.totals.Stall < 0 || w.totals.Hit != w.count {
			t.Fatalf("%+v", w.totals)
		}
	})
}

func FuzzSnapshots(f *testing.F) {
	f.Add([]byte(`{"/":{"w":{"..":{"k.py":"w0.json"}}},"a":"b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := readSnapshotTree(bytes.NewReader(raw))
		for _, s := range list {
			if err == nil && len(s.Path) > maxSnapshotPath {
				t.Fatalf("a path of %d bytes", len(s.Path))
			}
		}
	})
}

// FuzzDirName: a name that is taken apart can be put together again.
func FuzzDirName(f *testing.F) {
	for _, seed := range []string{"ui_output_agent_1_dispatch_2", "ui_output_agent_32235_dispatch_44_after_loc_fix", "ui_output_agent_-1_dispatch_2", "ui_output_agent_1_dispatch_2_\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		agent, dispatch, suffix, ok := ParseDirName(name)
		if !ok {
			return
		}
		digits := strings.NewReplacer("_0", "_")
		plain := fmt.Sprintf("ui_output_agent_%d_dispatch_%d%s", agent, dispatch, suffix)
		for before := ""; before != name; {
			before, name = name, digits.Replace(name)
		}
		for before := ""; before != plain; {
			before, plain = plain, digits.Replace(plain)
		}
		if agent < 0 || dispatch < 0 || name != plain {
			t.Fatalf("%q and %q", name, plain)
		}
	})
}
