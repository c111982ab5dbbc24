package att

import (
	"bytes"
	"encoding/json"
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
	f.Fuzz(func(_ *testing.T, raw []byte) {
		w := &waveReader{scan: newScanner(nil), sums: make([]lineSums, 4)}
		_, _ = w.wave(bytes.NewReader(raw))
	})
}
