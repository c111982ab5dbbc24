package att

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// bothWays reads the same bytes whole and byte by byte: where the buffer ends must not matter, neither to what is read nor to
// what is wrong and where.
func bothWays[T any](t *testing.T, raw []byte, read func(r io.Reader) (T, error)) (T, error) {
	t.Helper()
	whole, err := read(bytes.NewReader(raw))
	pieces, perr := read(iotest.OneByteReader(bytes.NewReader(raw)))
	if (err == nil) != (perr == nil) || err != nil && withinBounds(raw) && err.Error() != perr.Error() {
		t.Fatalf("read whole: %v; byte by byte: %v", err, perr)
	}
	if err == nil && !reflect.DeepEqual(whole, pieces) {
		t.Fatalf("read whole: %+v; byte by byte: %+v", whole, pieces)
	}
	if err == nil && !json.Valid(raw) {
		t.Fatalf("taken for JSON: %q", raw)
	}
	if at := cause(err); err != nil && (at == nil || at.Offset < 0 || at.Offset > int64(len(raw))) {
		t.Fatalf("an error without a place in the file of %d bytes: %v", len(raw), err)
	}
	return whole, err
}

// withinBounds says that no bound of the scanner can be the reason why it refuses the bytes.
func withinBounds(raw []byte) bool {
	brackets, number := 0, 0
	for _, c := range raw {
		if c == '[' || c == '{' {
			brackets++
		}
		if number++; !strings.ContainsRune("0123456789+-.eE", rune(c)) {
			number = 0
		}
		if number > maxNumber {
			return false
		}
	}
	return brackets <= maxDepth && len(raw) <= maxText
}

// FuzzScan: the scanner and encoding/json agree on what is a document, and on the texts in it.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{goodCode, goodFiles, goodOcc, waveA, `{"a":"\ud83d\ude00\ud800"}`, `{"a":"\ud800\ud83d\ude00\udc00\n\ud800"}`, `{"a":1e5,"b":-0.5,"c":[null,true,false]}`,
		`{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":tru}`, ` {"a" : [ ] , "b" : { } } `, `{}x`, `{"\u0061":"b"}`, "{\"a\":\"\x01\"}", `{"a":123456789012345678901234567890}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		texts, err := bothWays(t, raw, func(r io.Reader) (map[string]string, error) {
			s, out := newScanner(r), map[string]string{}
			return out, s.document(func(key []byte) error {
				name := string(key)
				delete(out, name)
				if s.peek() != '"' {
					return s.skip()
				}
				text, err := s.str()
				out[name] = text
				return err
			})
		})
		var want map[string]any
		if object := json.Unmarshal(raw, &want) == nil && want != nil; object && err != nil && withinBounds(raw) {
			t.Fatalf("refused: %q: %v", raw, err)
		}
		if err != nil || !utf8.Valid(raw) { // what stands for bytes that are no UTF-8 differs
			return
		}
		for key, text := range texts {
			if want[key] != text {
				t.Fatalf("%q is %q, want %q", key, text, want[key])
			}
		}
	})
}

// FuzzInt: integers as strconv reads them, whatever stands around them.
func FuzzInt(f *testing.F) {
	for _, seed := range []string{"0", "-0", "-1", "7", "00", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "999999999999999999", "1000000000000000000", "4.0", "4.5", "1e3", "1E-1", "1+1", "--1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimSpace(text)
		raw := `{"a":` + text + `}` + strings.Repeat(" ", 40) // the room that the quick way needs
		got, err := bothWays(t, []byte(raw), func(r io.Reader) (v int64, err error) {
			s := newScanner(r)
			return v, s.document(func([]byte) (err error) { v, err = s.int64(); return err })
		})
		want, werr := strconv.ParseInt(text, 10, 64)
		if werr == nil && json.Valid([]byte(text)) && (err != nil || got != want) {
			t.Fatalf("%q is %d (%v), want %d", text, got, err, want)
		}
		if whole, ferr := strconv.ParseFloat(text, 64); err == nil && werr != nil && (ferr != nil || float64(got) != whole) {
			t.Fatalf("%q was read as %d", text, got)
		}
	})
}

func FuzzCode(f *testing.F) {
	f.Add([]byte(goodCode))
	f.Add([]byte(`{"header":["Stall","ISA","LineNumber","Source","Codeobj","Vaddr","Hit","Latency","_","Idle"],"code":null}`))
	f.Add([]byte(`{"code":[["",0,5,null,0,0,1,2,3,4],["s_nop 0",0],[]],"header":null,"sqtt_funcmap":[[1,2,"k"]]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		code, err := bothWays(t, raw, func(r io.Reader) (Code, error) {
			code, _, err := readCode(r, nil)
			return code, err
		})
		if err != nil {
			return
		}
		for _, r := range code.Rows {
			if r.Hit < 0 || r.Latency < 0 || r.Stall < 0 || r.Idle < 0 {
				t.Fatalf("%+v", r)
			}
			StallType(r.ISA)
		}
		d := Dispatch{Code: code}
		for _, kernel := range append(code.Kernels(), "k_0", "") {
			v := d.Verdict(kernel)
			if v.Mapped > v.Ins || v.Ins > len(code.Rows) || (v.State == Kept) != (v.Err == nil) || v.Totals.Hit < 0 || v.Totals.Stall < 0 {
				t.Fatalf("%q: %+v", kernel, v)
			}
			for _, share := range []*float64{v.MappedPct, v.MappedLatencyPct, v.FlyDSLPct} {
				if share != nil && !(*share >= 0 && *share <= 100) {
					t.Fatalf("%q: %v%%", kernel, *share)
				}
			}
		}
		RegistersFromISA(code.Rows)
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(goodFiles))
	f.Add([]byte(`{"wave_filenames":{"0":{"0":{"0":{"0":["a",1,2],"00":["b",3,4]}}},"1":null},"pc_sampling":true,"gfxip":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := bothWays(t, raw, readManifest)
		if err != nil {
			return
		}
		seen := map[[4]int64]bool{}
		for _, w := range m.Waves {
			id := [4]int64{w.SE, w.SIMD, w.Slot, w.ID}
			if seen[id] || min(w.SE, w.SIMD, w.Slot, w.ID) < 0 {
				t.Fatalf("%+v", w)
			}
			seen[id] = true
		}
	})
}

func FuzzOccupancy(f *testing.F) {
	f.Add([]byte(goodOcc))
	f.Add([]byte(`{"0":[[1,2,3,4,true,1,0,0,0,0,0]],"1":null,"dispatches":{"1":"1 / 0x10","x":"y","2":3},"events":{"0":[{"kind":"event"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := bothWays(t, raw, readOccupancy)
		if err != nil {
			return
		}
		all := o.WavesStarted("")
		for _, kernel := range append(o.Kernels(), "") {
			if n := o.WavesStarted(kernel); n < 0 || n > all {
				t.Fatalf("%q: %d of %d waves", kernel, n, all)
			}
			for se, cus := range o.BusyCUs(kernel) {
				for i, cu := range cus {
					if se < 0 || cu < 0 || i > 0 && cu <= cus[i-1] {
						t.Fatalf("SE %d: %v", se, cus)
					}
				}
			}
			if cu, engines := BusiestCU(o.BusyCUs(kernel)); cu < 0 || cu >= maxPhysicalCUs || engines < 0 {
				t.Fatalf("CU %d on %d engines", cu, engines)
			}
		}
	})
}

func FuzzWave(f *testing.F) {
	f.Add([]byte(waveA))
	f.Add([]byte(`{"wave":{"instructions":null,"timeline":null},"num_insts":0}`))
	f.Add([]byte(`{"wave":{"instructions":[[1,2,3,4,99,0],[1,2,3,4,-1]]}}`))
	f.Add([]byte(`{"wave":{"instructions":[[1,2,3,4,1]],"timeline":[[1,2],[2,3,4]],"waitcnt":[[1,[[2,0],[3]]],[2,null],[9,[[1,0]],0]]}}`))
	type sums struct {
		Head         waveHead
		Lines        [4]lineSums
		Other, Count int64
		Totals       Totals
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := bothWays(t, raw, func(r io.Reader) (sums, error) {
			plain := &waveReader{scan: newScanner(nil), sums: make([]lineSums, 4)}
			watched := &counting{}
			w := &waveReader{scan: newScanner(nil), sums: make([]lineSums, 4), observer: watched}
			head, err := w.wave(bytes.NewReader(raw))
			if err == nil { // who watches sees all that is counted, and is stricter
				if again, err := plain.wave(bytes.NewReader(raw)); err != nil || again != head || watched.rows != w.count {
					t.Fatalf("%+v with an observer, %+v without: %v", head, again, err)
				}
			}
			w = &waveReader{scan: newScanner(nil), sums: make([]lineSums, 4), observer: &counting{}}
			head, err = w.wave(r)
			return sums{head, [4]lineSums(w.sums), w.other, w.count, w.totals}, err
		})
		if err != nil && (got.Count != 0 || got.Other != 0 || got.Totals != Totals{}) {
			t.Fatalf("a file that cannot be read counts: %+v", got)
		}
		hits := got.Other
		for _, l := range got.Lines {
			if hits += l.hit; l.latency < 0 || l.stall < 0 {
				t.Fatalf("%+v", got)
			}
		}
		if err == nil && (hits != got.Count || got.Totals.Hit != got.Count || got.Head.read != got.Count) {
			t.Fatalf("%+v", got)
		}
	})
}

// counting is an observer that checks what it is shown against 4 rows.
type counting struct{ rows int64 }

func (c *counting) Instruction(i WaveInstruction) {
	if c.rows++; i.Row < -1 || i.Row >= 4 || i.Stall < 0 || i.Duration < 0 {
		panic("an instruction of no row")
	}
}

func (c *counting) Wait(row int, targets []int) {
	for _, r := range append([]int{row}, targets...) {
		if r < 0 || r >= 4 {
			panic("a wait of no row")
		}
	}
}

func (c *counting) State(_, cycles int64) {
	if cycles < 0 {
		panic("a span of less than nothing")
	}
}

func (c *counting) End(WaveEnd, error) {}

func FuzzSnapshots(f *testing.F) {
	f.Add([]byte(`{"/":{"w":{"..":{"k.py":"source_0_k.py"}},"x.py":"source_1_x.py"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := bothWays(t, raw, readSnapshotTree)
		for _, s := range list {
			if err == nil && len(s.Path) > maxSnapshotPath {
				t.Fatalf("a path of %d bytes", len(s.Path))
			}
		}
	})
}

// FuzzDirName: a name that is taken is spelled of its parts, and is one component of a path.
func FuzzDirName(f *testing.F) {
	for _, seed := range []string{"ui_output_agent_1_dispatch_2", "ui_output_agent_32235_dispatch_44_after_loc_fix", "ui_output_agent_9223372036854775807_dispatch_007", "ui_output_agent_1_dispatch_2_..", "ui_output_agent_1_dispatch_2_/../x",
		"ui_output_agent_1_dispatch_2_a\nb", "ui_output_agent_-1_dispatch_2", "ui_output_agent_1_dispatch_2.csv", "ui_output_agent_\u0661_dispatch_2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		agent, dispatch, suffix, ok := ParseDirName(name)
		if !ok {
			if agent != 0 || dispatch != 0 || suffix != "" {
				t.Fatalf("%q is refused and gives %d, %d, %q", name, agent, dispatch, suffix)
			}
			return
		}
		rest, found := strings.CutPrefix(strings.TrimSuffix(name, suffix), "ui_output_agent_")
		a, d, parts := strings.Cut(rest, "_dispatch_")
		va, ea := strconv.ParseInt(a, 10, 64)
		vd, ed := strconv.ParseInt(d, 10, 64)
		if !found || !parts || ea != nil || ed != nil || va != agent || vd != dispatch || agent < 0 || dispatch < 0 {
			t.Fatalf("%q gives %d, %d, %q", name, agent, dispatch, suffix)
		}
		if strings.ContainsAny(name, "/\\\x00") || filepath.Base(name) != name {
			t.Fatalf("%q is no name of a directory", name)
		}
	})
}
