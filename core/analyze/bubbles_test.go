package analyze

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// stallsOf writes the division of the stall down: "vmcnt 169 (vmem_load 149, flat 12, ? 8); ...".
func stallsOf(b Bubbles) string {
	var out []string
	for _, s := range b.Stalls {
		text := s.Kind + " " + big.NewInt(s.Stall).String()
		var on []string
		for _, o := range s.On {
			class := string(o.Class)
			if class == "" {
				class = "?"
			}
			on = append(on, class+" "+big.NewInt(o.Stall).String())
		}
		if len(on) > 0 {
			text += " (" + strings.Join(on, ", ") + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestStalls: how the stall of waits is divided, by hand. Line 2 stalls 99 in w0 (LDS and load: 49 and 50) and 100 in w1 (load); line 6 25
// in w0 (flat memory: 12 and 13) and 25 in w1 (not said: 8, 8 and 9).
func TestStalls(t *testing.T) {
	t.Parallel()
	const others = "; branch 30; mfma 30; expcnt 9 (? 9); lds 8"
	noEdges := func(wave string) string { return wave[:strings.Index(wave, `,"waitcnt"`)] + "}}" }
	half := strings.Replace(fixtureCode, `11",1,4104,2,201,199,0]`, `11",1,4104,2,201,1990,0]`, 1)
	for name, c := range map[string]struct {
		change map[string]string
		want   string
		warn   string
	}{
		"edges": {nil, "vmcnt 169 (vmem_load 149, flat 12, ? 8); lgkmcnt 71 (lds 50, flat 13, ? 8)" + others, ""},
		// 99 and 100 in two parts, 25 and 25 in three.
		"no edges": {map[string]string{"w0.json": noEdges(fixtureW0), "w1.json": noEdges(fixtureW1)},
			"vmcnt 115 (? 115); lgkmcnt 116 (? 116)" + strings.Replace(others, "9 (? 9)", "18 (? 18)", 1), WarnNoEdges},
		"null edges": {map[string]string{"w0.json": noEdges(fixtureW0), "w1.json": strings.Replace(fixtureW1, `[[2,[[1,0],[1,0]]]]`, "null", 1)},
			"vmcnt 115 (? 115); lgkmcnt 116 (? 116)" + strings.Replace(others, "9 (? 9)", "18 (? 18)", 1), WarnNoEdges},
		// 199 in two parts, 50 in three.
		"no waves": {map[string]string{"w0.json": "", "w1.json": ""},
			"lgkmcnt 117 (? 117); vmcnt 115 (? 115)" + strings.Replace(others, "9 (? 9)", "17 (? 17)", 1), att.WarnWavesMissing},
		// The one wave that is there decides for all: line 2 half and half, line 6 flat alone.
		"one wave": {map[string]string{"w1.json": ""}, "vmcnt 122 (vmem_load 98, flat 24); lgkmcnt 127 (lds 101, flat 26)" + strings.Replace(others, "; expcnt 9 (? 9)", "", 1), att.WarnWavesMissing},
		"torn wave": {map[string]string{"w1.json": fixtureW1[:len(fixtureW1)-3]},
			"vmcnt 122 (vmem_load 98, flat 24); lgkmcnt 127 (lds 101, flat 26)" + strings.Replace(others, "; expcnt 9 (? 9)", "", 1), att.WarnWaveCorrupt},
		// code.json says ten times what the waves hold: divided as in the waves.
		"waves that differ": {map[string]string{"code.json": half}, "vmcnt 1510 (vmem_load 1490, flat 12, ? 8); lgkmcnt 521 (lds 500, flat 13, ? 8)" + others, att.WarnWavesDiffer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := opened(t, c.change)
			b := bubbles(t, tr, BubblesQuery{})
			sum := int64(0)
			for _, s := range b.Stalls {
				sum += s.Stall
			}
			if got := stallsOf(b); sortedParts(got) != sortedParts(c.want) || sum != b.Totals.Stall {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if c.warn != "" && warned(tr, c.warn) == "" {
				t.Errorf("no %s in %v", c.warn, tr.Warnings())
			}
			if b.WaitRule == "" {
				t.Error("the rule is not said")
			}
		})
	}
}

func sortedParts(s string) string {
	parts := strings.Split(s, "; ")
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			if parts[j] < parts[i] {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
	}
	return strings.Join(parts, "; ")
}

// TestBubbles: the other figures of the fixture, by hand.
func TestBubbles(t *testing.T) {
	t.Parallel()
	tr := opened(t, nil)
	b := bubbles(t, tr, BubblesQuery{Limit: 2, Offset: 1})
	if b.Totals.Totals != (att.Totals{Hit: 18, Latency: 379, Stall: 317, Idle: 4}) || b.Totals.Issue != 62 || *b.Totals.StallPct != 82.77 || *b.Totals.IdlePct != 1.04 {
		t.Errorf("%+v", b.Totals)
	}
	if b.Trace.Kernel != "k_0" || b.Trace.Ins != 9 || *b.Trace.MappedPct != 77.8 || b.Trace.WavesRead != 2 {
		t.Errorf("%+v", b.Trace)
	}
	if b.States.States != (States{Idle: 10, Exec: 110, Wait: 231, Stall: 49}) || *b.States.WaitPct != 57.75 {
		t.Errorf("%+v", b.States)
	}
	// Line 8 was not executed; lines 5 and 7 stall equally and stand by address.
	if b.HotTotal != 8 || len(b.Hot) != 2 || b.Hot[0].CodeLine != 6 || b.Hot[1].CodeLine != 5 || b.Offset != 1 {
		t.Errorf("%d: %+v", b.HotTotal, b.Hot)
	}
	if h := b.Hot[0]; h.TextState != TextBeyondEnd || h.Text != "" || h.Address != "0x1024" || h.WaitedFor[0].ISA != "flat_load_dword v6, v[2:3]" {
		t.Errorf("%+v", h)
	}
	one := bubbles(t, tr, BubblesQuery{CodeLine: new(int64(2))})
	if len(one.Hot) != 1 || one.HotTotal != 1 || one.Hot[0].WaitedForTotal != 2 || one.Hot[0].WaitedFor[0].Count != 2 || one.Hot[0].Text != "  wait()" {
		t.Errorf("%+v", one.Hot)
	}
	if _, err := tr.Bubbles(t.Context(), BubblesQuery{CodeLine: new(int64(21))}); envelope.CodeOf(err) != envelope.BadArgs {
		t.Errorf("an instruction of another code object: %v", err)
	}
	if s := b.Spread; s.Min != 180 || s.Median != 180 || s.Max != 220 || s.Mean != 200 || *s.Imbalance != 1.22 || s.Slowest.Slot != 0 || s.Slowest.Totals.Idle != 4 || len(s.Groups) != 1 {
		t.Errorf("%+v", s)
	}
	// CU 1: [100, 320) and [120, 300); CU 2: two waves one after the other in one slot.
	if o := b.Occupancy; o.Waves != 4 || o.Peak != 2 || o.WaveCycles != 220+180+200 || o.SpanCycles != 420 || *o.Mean != 1.43 || o.CUs[0].CU != 1 || !o.CUs[0].Traced || o.CUs[1].Peak != 1 || o.Slots != 32 || *o.PeakPct != 6.25 {
		t.Errorf("%+v", o)
	}
	if o := b.Occupancy.Timeline; len(o) != 16 || o[0].From != 100 || *o[0].Mean != 1 || *o[8].Mean != 2 || o[15].To != 320 {
		t.Errorf("%+v", o)
	}
	if o := b.WaveOccupancy; o.Waves != 2 || o.WaveCycles != 400 || o.SpanCycles != 220 || o.Timeline != nil {
		t.Errorf("%+v", o)
	}
	if len(b.CodeObjects) != 2 || b.CodeObjects[1].Hit != 3 || b.CodeObjects[1].Analysed || warned(tr, WarnSeveralObjects) == "" || warned(tr, WarnUnresolved) == "" {
		t.Errorf("%+v, %v", b.CodeObjects, tr.Warnings())
	}
	if past := bubbles(t, tr, BubblesQuery{Offset: 1 << 40}); len(past.Hot) != 0 || past.HotTotal != 8 || len(past.Lines) != 0 {
		t.Errorf("past the end: %+v", past.Hot)
	}
}

// TestOtherKernel: the other code object of the trace, and one that is not there.
func TestOtherKernel(t *testing.T) {
	t.Parallel()
	dir := fixture(t, nil)
	tr, err := Open(t.Context(), dir, Options{Kernel: "other_1"})
	if err != nil {
		t.Fatal(err)
	}
	b := bubbles(t, tr, BubblesQuery{})
	if b.Trace.Codeobj != 2 || b.Totals.Hit != 3 || b.Occupancy.Waves != 1 || b.Occupancy.Slots != 0 || b.Occupancy.Unfinished != 1 {
		t.Errorf("%+v, %+v", b.Trace, b.Occupancy)
	}
	if _, err := Open(t.Context(), dir, Options{Kernel: "k_1"}); envelope.CodeOf(err) != envelope.EmptyATT {
		t.Errorf("%v", err)
	}
	busiest, err := Open(t.Context(), dir, Options{})
	if err != nil || busiest.Info().Kernel != "k_0" {
		t.Errorf("%+v, %v", busiest.Info(), err)
	}
}

// TestLost: for each file that is torn or missing, the error or the warning names it, and what is left is right.
func TestLost(t *testing.T) {
	t.Parallel()
	torn := func(s string) string { return s[:len(s)*2/3] }
	for name, c := range map[string]struct {
		change map[string]string
		code   envelope.Code // of the error
		warn   string
		says   string
	}{
		"no code.json":        {map[string]string{"code.json": ""}, envelope.NoArtifact, "", "code.json"},
		"torn code.json":      {map[string]string{"code.json": torn(fixtureCode)}, envelope.TraceCorrupt, "", "code.json"},
		"torn filenames.json": {map[string]string{"filenames.json": torn(fixtureFiles)}, envelope.TraceCorrupt, "", "filenames.json"},
		"no filenames.json":   {map[string]string{"filenames.json": ""}, "", att.WarnManifestMissing, "filenames.json"},
		"torn wave":           {map[string]string{"w0.json": torn(fixtureW0)}, "", att.WarnWaveCorrupt, "w0.json"},
		"all waves torn":      {map[string]string{"w0.json": torn(fixtureW0), "w1.json": torn(fixtureW1)}, envelope.TraceCorrupt, "", "w"},
		"no waves":            {map[string]string{"w0.json": "", "w1.json": ""}, "", att.WarnWavesMissing, "2 of 2"},
		"torn occupancy":      {map[string]string{"occupancy.json": torn(fixtureOccupancy)}, "", att.WarnOccupancyCorrupt, "occupancy.json"},
		"no occupancy":        {map[string]string{"occupancy.json": ""}, "", att.WarnOccupancyMissing, "occupancy.json"},
		"an occupancy without times": {map[string]string{"occupancy.json": strings.Replace(fixtureOccupancy, "[100,", `["x",`, 1)}, "", att.WarnOccupancyCorrupt,
			"occupancy.json"},
		"lost ends":      {map[string]string{"occupancy.json": strings.Replace(fixtureOccupancy, ",[320,1,0,0,0,1]", "", 1)}, "", WarnOccupancyTorn, "1 waves without an end"},
		"lost begins":    {map[string]string{"occupancy.json": strings.Replace(fixtureOccupancy, "[120,1,0,1,1,1],", "", 1)}, "", WarnOccupancyTorn, "1 without a begin"},
		"torn snapshots": {map[string]string{"snapshots.json": torn(fixtureSnapshots)}, "", att.WarnSnapshots, "snapshots.json"},
		"no snapshot":    {map[string]string{"source_0_k.py": ""}, "", att.WarnSnapshotsMissing, "snapshots.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, err := Open(t.Context(), fixture(t, c.change), Options{Kernel: "k_0"})
			if c.code != "" {
				if envelope.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %s with %s", err, c.code, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if said := warned(tr, c.warn); !strings.Contains(said, c.says) {
				t.Errorf("%q in %v, want %s", said, tr.Warnings(), c.says)
			}
			b := bubbles(t, tr, BubblesQuery{})
			if b.Totals.Stall != 317 || (b.Spread == nil) != (tr.Info().WavesRead == 0) || (b.States == nil) != (tr.Info().WavesRead == 0) {
				t.Errorf("%+v", b)
			}
			if strings.Contains(name, "occupancy") != (b.Occupancy == nil) {
				t.Errorf("%+v", b.Occupancy)
			}
		})
	}
}

// TestTornOccupancy: a wave whose end was lost lasts to the next begin in its slot, or to the end of the engine's events.
func TestTornOccupancy(t *testing.T) {
	t.Parallel()
	tr := opened(t, map[string]string{"occupancy.json": `{"0":[[100,1,0,0,1,1],[200,1,0,0,1,1],[250,1,0,3,0,1],[400,1,0,1,1,1],[500,1,0,1,0,1]],"1":[[50,1,0,0,1,1],[80,1,0,0,0,1]],"dispatches":{"1":"k_0"}}`})
	o := bubbles(t, tr, BubblesQuery{}).Occupancy
	if o.Waves != 4 || o.Peak != 2 || o.WaveCycles != 100+300+100+30 || o.SpanCycles != 400+30 || o.Unfinished != 2 || o.Unbegun != 1 {
		t.Errorf("%+v", o)
	}
}

// TestSize: a full answer of a real kind stays small enough for an envelope.
func TestSize(t *testing.T) {
	t.Parallel()
	for _, dir := range dispatchDirs(t) {
		tr, err := Open(t.Context(), dir, Options{Arch: "gfx950"})
		if err != nil {
			continue
		}
		text, err := json.Marshal(bubbles(t, tr, BubblesQuery{}))
		if err != nil || len(text) > 18_000 {
			t.Errorf("%s: %d bytes, %v", dir, len(text), err)
		}
	}
}

// FuzzApportion: the parts add up, keep the order and never differ from the exact share by a cycle or more.
func FuzzApportion(f *testing.F) {
	f.Add(int64(199), int64(2520), int64(5040), int64(0))
	f.Add(int64(1)<<62, int64(1)<<62, int64(1)<<61, int64(7))
	f.Add(int64(0), int64(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, total, a, b, c int64) {
		if total < 0 || a < 0 || b < 0 || c < 0 || a > 1<<61 || b > 1<<61 || c > 1<<61 {
			return
		}
		parts := apportion(total, []int64{a, b, c})
		sum := parts[0] + parts[1] + parts[2]
		if a+b+c == 0 {
			if sum != 0 {
				t.Fatalf("%v", parts)
			}
			return
		}
		if sum != total {
			t.Fatalf("%v is %d of %d", parts, sum, total)
		}
		for i, w := range []int64{a, b, c} {
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(total), big.NewInt(w)), big.NewInt(a+b+c))
			diff := new(big.Rat).Sub(exact, new(big.Rat).SetInt64(parts[i]))
			if diff.Abs(diff).Cmp(big.NewRat(1, 1)) >= 0 || parts[i] < 0 {
				t.Fatalf("%d of %v gives %v", total, []int64{a, b, c}, parts)
			}
		}
	})
}

// FuzzTrace: whatever the files hold, an analysis gives an error or sums that fit together.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(fixtureW0), []byte(fixtureOccupancy), []byte(fixtureSource), "k.py:11")
	f.Add([]byte(`{"wave":{"instructions":[[9223372036854775807,1,9223372036854775807,9223372036854775807,2]],"timeline":[[4,9223372036854775807]],"waitcnt":[[2,[[2,0]]],[3,[[9,0]]]]}}`),
		[]byte(`{"0":[[-9223372036854775808,1,0,0,1,1],[9223372036854775807,1,0,0,0,1]],"dispatches":{"1":"k_0"}}`), []byte{0xff, 0}, "1-99999999")
	f.Fuzz(func(t *testing.T, wave, occupancy, source []byte, at string) {
		dir := fixture(t, nil)
		for name, text := range map[string][]byte{"w0.json": wave, "occupancy.json": occupancy, "source_0_k.py": source} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tr, err := Open(t.Context(), dir, Options{Kernel: "k_0", Arch: "gfx942", Read: att.Options{Workers: 1}})
		if err != nil {
			t.Fatalf("the other wave can be read: %v", err)
		}
		b, err := tr.Bubbles(t.Context(), BubblesQuery{})
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, s := range b.Stalls {
			on := int64(0)
			for _, o := range s.On {
				on += o.Stall
			}
			if sum += s.Stall; s.Stall <= 0 || len(s.On) > 0 && on != s.Stall {
				t.Fatalf("%+v", s)
			}
		}
		if sum != b.Totals.Stall {
			t.Fatalf("the kinds add up to %d of %d", sum, b.Totals.Stall)
		}
		for _, o := range []*Residency{b.Occupancy, b.WaveOccupancy} {
			if o != nil && (o.Peak < 0 || o.WaveCycles < 0 || o.SpanCycles < 0 || o.Waves < o.Peak) {
				t.Fatalf("%+v", o)
			}
		}
		if s := b.Spread; s.Min < 0 || s.Min > s.Median || s.Median > s.Max || s.Sum < s.Max {
			t.Fatalf("%+v", s)
		}
		m, err := tr.Map(t.Context(), MapQuery{SourceLine: at})
		if err == nil && (m.Total > b.Trace.Ins || m.Totals.Stall > b.Totals.Stall) {
			t.Fatalf("%+v", m)
		}
		if _, err := json.Marshal(b); err != nil {
			t.Fatal(err)
		}
	})
}
