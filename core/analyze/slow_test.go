package analyze

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// This file computes everything again, slowly and from the raw files, without the code that it checks.

// dispatchDirs are the recorded dispatch directories that hold a thread trace.
func dispatchDirs(t testing.TB) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(recorded.Traces(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "ui_output_") {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d directories, %v", len(dirs), err)
	}
	return dirs
}

func load(t testing.TB, path string, into any) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return false
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return true
}

// slowRow is a row of code.json; its sums are those of the wave files, where there are any.
type slowRow struct {
	isa, source, class string
	addr               int64
	sum                att.Totals
	named              []string            // counters of a wait
	parts              map[[2]string]int64 // counter and class of what was waited for, to stall
	targets            map[int64]int64
}

type slowWave struct {
	se, simd, slot, id, cu, begin, end int64
	sum                                att.Totals
}

type slowTrace struct {
	rows   map[int64]*slowRow
	lines  []int64 // of instructions
	waves  []slowWave
	states [5]int64
}

// slowClass looks a mnemonic up in the fixture of core/isa.
func slowClasses(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../isa/testdata/mnemonics.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[1]] = f[0]
		}
	}
	return out
}

var counterWord = regexp.MustCompile(`vmcnt|lgkmcnt|expcnt|vscnt|loadcnt|storecnt|kmcnt|dscnt|alu`)

// slowUses says by the class what counter of a wait an instruction raises.
func slowUses(class, counter string) bool {
	switch class {
	case "vmem_load", "scratch", "cache":
		return counter == "vmcnt" || counter == "loadcnt"
	case "vmem_store", "vmem_atomic":
		return counter == "vmcnt" || counter == "storecnt" || counter == "vscnt"
	case "lds":
		return counter == "lgkmcnt" || counter == "dscnt"
	case "smem", "message":
		return counter == "lgkmcnt" || counter == "kmcnt"
	}
	return false
}

// canonical is the order in which counters are divided.
var canonical = []string{"vmcnt", "lgkmcnt", "expcnt", "vscnt", "loadcnt", "storecnt", "kmcnt", "dscnt", "alu"}

// slowly reads a directory.
func slowly(t testing.TB, dir string) *slowTrace {
	t.Helper()
	classes := slowClasses(t)
	out := &slowTrace{rows: map[int64]*slowRow{}}
	var code struct{ Code [][]any }
	load(t, filepath.Join(dir, "code.json"), &code)
	for _, r := range code.Code {
		n := func(i int) int64 { return int64(r[i].(float64)) }
		row := &slowRow{isa: r[0].(string), source: r[3].(string), addr: n(5), sum: att.Totals{Hit: n(6), Latency: n(7), Stall: n(8), Idle: n(9)}, parts: map[[2]string]int64{}, targets: map[int64]int64{}}
		if row.isa == "" || row.isa[0] == ';' {
			continue
		}
		mnemonic := strings.Fields(row.isa)[0]
		if row.class = classes[mnemonic]; strings.HasPrefix(mnemonic, "s_wait") {
			row.class = "wait"
			have := counterWord.FindAllString(row.isa, -1)
			for _, c := range canonical {
				if slices.Contains(have, c) {
					row.named = append(row.named, c)
				}
			}
		}
		out.rows[n(2)] = row
		out.lines = append(out.lines, n(2))
	}
	var manifest struct {
		Waves map[string]map[string]map[string]map[string][]any `json:"wave_filenames"`
	}
	load(t, filepath.Join(dir, "filenames.json"), &manifest)
	sums := map[int64]att.Totals{}
	for se, a := range manifest.Waves {
		for simd, b := range a {
			for slot, c := range b {
				for id, file := range c {
					out.wave(t, filepath.Join(dir, file[0].(string)), se, simd, slot, id, sums)
				}
			}
		}
	}
	if len(out.waves) > 0 {
		for line, row := range out.rows {
			idle := row.sum.Idle
			if row.sum = sums[line]; strings.Contains(dir, "/variants/") {
				row.sum.Idle = idle // the times of made-up waves do not give the idle cycles of their code.json
			}
		}
	}
	for _, row := range out.rows { // without a wave, a wait is divided equally
		if row.class == "wait" && len(out.waves) == 0 {
			row.divide(row.sum.Stall, nil)
		}
	}
	return out
}

// divide adds the stall to the parts by the documented rule, with exact fractions.
func (r *slowRow) divide(stall int64, weights map[[2]string]*big.Rat) {
	if len(weights) == 0 {
		weights = map[[2]string]*big.Rat{}
		for _, c := range r.named {
			weights[[2]string{c, ""}] = big.NewRat(1, 1)
		}
	}
	var keys [][2]string
	all := new(big.Rat)
	for k, w := range weights {
		keys = append(keys, k)
		all.Add(all, w)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := slices.Index(canonical, keys[i][0]), slices.Index(canonical, keys[j][0])
		return a < b || a == b && keys[i][1] < keys[j][1]
	})
	so, given := new(big.Rat), int64(0)
	for _, k := range keys {
		so.Add(so, weights[k])
		x := new(big.Rat).Mul(big.NewRat(stall, 1), new(big.Rat).Quo(so, all))
		upTo := new(big.Int).Quo(x.Num(), x.Denom()).Int64()
		r.parts[k] += upTo - given
		given = upTo
	}
}

func (s *slowTrace) wave(t testing.TB, path, se, simd, slot, id string, sums map[int64]att.Totals) {
	var file struct {
		Wave struct {
			Begin, End, CU int64
			Instructions   [][5]int64
			Timeline       [][2]int64
			Waitcnt        [][2]any
		}
	}
	if !load(t, path, &file) {
		return
	}
	num := func(s string) (n int64) { _, _ = fmt.Sscan(s, &n); return n }
	w := slowWave{se: num(se), simd: num(simd), slot: num(slot), id: num(id), cu: file.Wave.CU, begin: file.Wave.Begin, end: file.Wave.End}
	stalls := map[int64]int64{}
	free := w.begin
	for _, i := range file.Wave.Instructions {
		idle := int64(0)
		if i[0] > free {
			idle = i[0] - free
		}
		free = i[0] + i[3]
		one := att.Totals{Hit: 1, Latency: i[3], Stall: i[2], Idle: idle}
		l := sums[i[4]]
		sums[i[4]] = att.Totals{Hit: l.Hit + 1, Latency: l.Latency + one.Latency, Stall: l.Stall + one.Stall, Idle: l.Idle + idle}
		w.sum = att.Totals{Hit: w.sum.Hit + 1, Latency: w.sum.Latency + one.Latency, Stall: w.sum.Stall + one.Stall, Idle: w.sum.Idle + idle}
		stalls[i[4]] += i[2]
	}
	s.waves = append(s.waves, w)
	for _, span := range file.Wave.Timeline {
		s.states[span[0]] += span[1]
	}
	weights := map[int64]map[[2]string]*big.Rat{}
	for _, entry := range file.Wave.Waitcnt {
		line := int64(entry[0].(float64))
		row := s.rows[line]
		targets, classes := map[int64]bool{}, map[string]bool{}
		for _, edge := range entry[1].([]any) {
			to := int64(edge.([]any)[0].(float64))
			targets[to] = true
			classes[s.rows[to].class] = true
		}
		var counters []string
		for _, c := range row.named {
			all := true
			for class := range classes {
				all = all && slowUses(class, c)
			}
			if all {
				counters = append(counters, c)
			}
		}
		if len(counters) == 0 {
			t.Fatalf("%s: %s waits for %v", path, row.isa, classes)
		}
		for to := range targets {
			row.targets[to]++
		}
		for _, c := range counters {
			for class := range classes {
				if weights[line] == nil {
					weights[line] = map[[2]string]*big.Rat{}
				}
				k := [2]string{c, class}
				if weights[line][k] == nil {
					weights[line][k] = new(big.Rat)
				}
				weights[line][k].Add(weights[line][k], big.NewRat(1, int64(len(counters)*len(classes))))
			}
		}
	}
	for line, stall := range stalls {
		if row := s.rows[line]; row != nil && row.class == "wait" {
			row.divide(stall, weights[line])
		}
	}
}

// TestRecordedTraces: everything that is computed equals what the raw files give, to the last cycle.
func TestRecordedTraces(t *testing.T) {
	t.Parallel()
	withWaves := 0
	for _, dir := range dispatchDirs(t) {
		name := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
		tr, err := Open(t.Context(), dir, Options{})
		if strings.Contains(dir, "code_null") {
			if err == nil {
				t.Errorf("%s: a trace without code was analysed", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		slow := slowly(t, dir)
		if len(slow.waves) > 0 {
			withWaves++
		}
		b, err := tr.Bubbles(t.Context(), BubblesQuery{Limit: MaxLimit})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sameTotals(t, name, slow, tr, b)
		sameHot(t, name, slow, tr, b)
		sameLines(t, name, slow, tr)
		sameSpread(t, name, slow, b)
		sameOccupancy(t, name, dir, slow, tr)
	}
	if withWaves < 8 {
		t.Errorf("only %d directories had waves", withWaves)
	}
}

func sameTotals(t *testing.T, name string, slow *slowTrace, tr *Trace, b Bubbles) {
	t.Helper()
	var total att.Totals
	classes, ins, kinds, on := map[string]att.Totals{}, map[string]int{}, map[string]int64{}, map[[2]string]int64{}
	mapped := 0
	for _, row := range slow.rows {
		c := classes[row.class]
		classes[row.class] = att.Totals{Hit: c.Hit + row.sum.Hit, Latency: c.Latency + row.sum.Latency, Stall: c.Stall + row.sum.Stall, Idle: c.Idle + row.sum.Idle}
		ins[row.class]++
		total = att.Totals{Hit: total.Hit + row.sum.Hit, Latency: total.Latency + row.sum.Latency, Stall: total.Stall + row.sum.Stall, Idle: total.Idle + row.sum.Idle}
		if row.source != "" {
			mapped++
		}
		if row.class != "wait" {
			kinds[row.class] += row.sum.Stall
		}
		for k, part := range row.parts {
			kinds[k[0]] += part
			on[k] += part
		}
	}
	if b.Totals.Totals != total || b.Trace.Ins != len(slow.rows) || b.Trace.Mapped != mapped || b.Totals.Issue != total.Latency-total.Stall {
		t.Errorf("%s: %+v, %d instructions, %d mapped; want %+v, %d, %d", name, b.Totals, b.Trace.Ins, b.Trace.Mapped, total, len(slow.rows), mapped)
	}
	if len(b.Mix) != len(classes) {
		t.Errorf("%s: %d classes, want %d", name, len(b.Mix), len(classes))
	}
	for _, m := range b.Mix {
		if m.Totals != classes[string(m.Class)] || m.Ins != ins[string(m.Class)] {
			t.Errorf("%s: %s is %+v of %d, want %+v of %d", name, m.Class, m.Totals, m.Ins, classes[string(m.Class)], ins[string(m.Class)])
		}
	}
	sum := int64(0)
	for i, s := range b.Stalls {
		sum += s.Stall
		if s.Stall != kinds[s.Kind] || i > 0 && s.Stall > b.Stalls[i-1].Stall {
			t.Errorf("%s: %s stalls %d, want %d", name, s.Kind, s.Stall, kinds[s.Kind])
		}
		delete(kinds, s.Kind)
		for _, o := range s.On {
			if key := ([2]string{s.Kind, string(o.Class)}); o.Stall != on[key] {
				t.Errorf("%s: %s on %s stalls %d, want %d", name, s.Kind, o.Class, o.Stall, on[key])
			}
		}
	}
	for kind, stall := range kinds {
		if stall != 0 {
			t.Errorf("%s: %s is missing with %d", name, kind, stall)
		}
	}
	if sum != total.Stall {
		t.Errorf("%s: the kinds add up to %d of %d", name, sum, total.Stall)
	}
	if want := slow.states; b.States != nil && (b.States.Idle != want[1] || b.States.Exec != want[2] || b.States.Wait != want[3] || b.States.Stall != want[4]) || b.States == nil && want != [5]int64{} {
		t.Errorf("%s: states %+v, want %v", name, b.States, want)
	}
}

func sameHot(t *testing.T, name string, slow *slowTrace, tr *Trace, b Bubbles) {
	t.Helper()
	var lines []int64
	for _, line := range slow.lines {
		if slow.rows[line].sum.Hit > 0 {
			lines = append(lines, line)
		}
	}
	sort.SliceStable(lines, func(i, j int) bool {
		a, b := slow.rows[lines[i]], slow.rows[lines[j]]
		return a.sum.Stall > b.sum.Stall || a.sum.Stall == b.sum.Stall && a.addr < b.addr
	})
	if b.HotTotal != len(lines) || len(b.Hot) != min(len(lines), MaxLimit) {
		t.Errorf("%s: %d of %d hot instructions, want %d", name, len(b.Hot), b.HotTotal, len(lines))
		return
	}
	for i, h := range b.Hot {
		row := slow.rows[lines[i]]
		first, _, _ := strings.Cut(row.source, " -> ")
		if h.CodeLine != lines[i] || h.Totals != row.sum || h.Address != fmt.Sprintf("0x%x", row.addr) || string(h.Class) != row.class || strings.TrimSuffix(h.Place, ":0") != strings.TrimSuffix(first, ":0") || !slices.Equal(h.WaitsFor, row.named) {
			t.Errorf("%s: hot %d is %+v, want line %d, %+v", name, i, h, lines[i], row)
			return
		}
		if h.WaitedForTotal != len(row.targets) {
			t.Errorf("%s: %s waited for %d, want %d", name, h.ISA, h.WaitedForTotal, len(row.targets))
		}
		for n, w := range h.WaitedFor {
			if w.Count != row.targets[w.CodeLine] || n > 0 && w.Count > h.WaitedFor[n-1].Count || !strings.HasPrefix(slow.rows[w.CodeLine].isa, strings.TrimSuffix(w.ISA, "...")) {
				t.Errorf("%s: %s waited for %+v, want %v", name, h.ISA, w, row.targets)
			}
		}
	}
}

func sameLines(t *testing.T, name string, slow *slowTrace, tr *Trace) {
	t.Helper()
	want := map[string]att.Totals{}
	for _, row := range slow.rows {
		first, _, _ := strings.Cut(row.source, " -> ")
		l := want[first]
		want[first] = att.Totals{Hit: l.Hit + row.sum.Hit, Latency: l.Latency + row.sum.Latency, Stall: l.Stall + row.sum.Stall, Idle: l.Idle + row.sum.Idle}
	}
	got := map[string]att.Totals{}
	var last int64 = 1 << 62
	for _, l := range tr.lines() {
		key := fmt.Sprintf("%s:%d", l.File, l.Line)
		if l.File == "" {
			key = ""
		}
		got[key] = l.Totals
		if l.Stall > last {
			t.Errorf("%s: the lines are not in order", name)
		}
		last = l.Stall
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: lines %v, want %v", name, got, want)
	}
}

func sameSpread(t *testing.T, name string, slow *slowTrace, b Bubbles) {
	t.Helper()
	if (b.Spread == nil) != (len(slow.waves) == 0) || b.Trace.WavesRead != len(slow.waves) {
		t.Errorf("%s: a spread of %d waves: %+v", name, len(slow.waves), b.Spread)
		return
	}
	if b.Spread == nil {
		return
	}
	var d []int
	sum := 0
	for _, w := range slow.waves {
		d = append(d, int(w.end-w.begin))
		sum += int(w.end - w.begin)
	}
	sort.Ints(d)
	s := b.Spread
	if int(s.Min) != d[0] || int(s.Max) != d[len(d)-1] || int(s.Median) != d[(len(d)-1)/2] || int(s.Sum) != sum || int(s.Slowest.Duration) != d[len(d)-1] {
		t.Errorf("%s: %+v, want %v", name, s, d)
	}
	for _, w := range slow.waves {
		if w.se == s.Slowest.SE && w.simd == s.Slowest.SIMD && w.slot == s.Slowest.Slot && w.id == s.Slowest.ID && (w.sum != s.Slowest.Totals || w.cu != s.Slowest.CU) {
			t.Errorf("%s: the slowest is %+v, want %+v", name, s.Slowest, w)
		}
	}
}

// sameOccupancy counts the resident waves of each CU between all its events, one by one.
func sameOccupancy(t *testing.T, name, dir string, slow *slowTrace, tr *Trace) {
	t.Helper()
	type life struct{ begin, end int64 }
	lives := map[[2]int64][]life{}
	var file map[string]json.RawMessage
	if load(t, filepath.Join(dir, "occupancy.json"), &file) {
		for key, raw := range file {
			var rows [][]int64
			if json.Unmarshal(raw, &rows) != nil || key == "dispatches" {
				continue
			}
			var se int64
			_, _ = fmt.Sscan(key, &se)
			for i, r := range rows {
				if r[4] != 1 {
					continue
				}
				for _, e := range rows[i+1:] { // its end is the next event of its slot
					if e[1] == r[1] && e[2] == r[2] && e[3] == r[3] {
						lives[[2]int64{se, r[1]}] = append(lives[[2]int64{se, r[1]}], life{r[0], e[0]})
						break
					}
				}
			}
		}
	}
	traced := map[[2]int64][]life{}
	for _, w := range slow.waves {
		traced[[2]int64{w.se, w.cu}] = append(traced[[2]int64{w.se, w.cu}], life{w.begin, w.end})
	}
	check := func(what string, r *Residency, lives map[[2]int64][]life) {
		if r == nil || len(lives) == 0 {
			if r != nil || len(lives) > 0 {
				t.Errorf("%s: %s is %+v with %d CUs", name, what, r, len(lives))
			}
			return
		}
		cycles, spans, most := int64(0), int64(0), int64(0)
		for _, c := range r.CUs {
			of := lives[[2]int64{c.SE, c.CU}]
			var times []int64
			for _, l := range of {
				times = append(times, l.begin, l.end)
			}
			slices.Sort(times)
			area, peak := int64(0), int64(0)
			for i := 1; i < len(times); i++ {
				now := int64(0)
				for _, l := range of {
					if l.begin <= times[i-1] && times[i-1] < l.end {
						now++
					}
				}
				if times[i] > times[i-1] {
					peak = max(peak, now)
				}
				area += now * (times[i] - times[i-1])
			}
			if c.Waves != int64(len(of)) || c.Peak != peak || c.WaveCycles != area || c.First != times[0] || c.Last != times[len(times)-1] || c.Traced != (len(traced[[2]int64{c.SE, c.CU}]) > 0) {
				t.Errorf("%s: %s of %+v, want %d waves, peak %d, %d cycles", name, what, c, len(of), peak, area)
			}
			cycles, spans, most = cycles+area, spans+times[len(times)-1]-times[0], max(most, peak)
		}
		if r.Total != len(lives) || len(r.CUs) != len(lives) || r.WaveCycles != cycles || r.SpanCycles != spans || r.Peak != most || *r.Mean != *rounded(float64(cycles) / float64(spans)) {
			t.Errorf("%s: %s is %d cycles over %d on %d CUs, peak %d; want %d over %d on %d, %d", name, what, r.WaveCycles, r.SpanCycles, r.Total, r.Peak, cycles, spans, len(lives), most)
		}
	}
	check("the occupancy", tr.fromEvents, lives)
	check("the occupancy of the waves", tr.fromWaves, traced)
	if r := tr.fromEvents; r != nil && r.Timeline != nil && len(traced) > 0 {
		area := 0.0
		for _, b := range r.Timeline {
			area += *b.Mean * float64(b.To-b.From) * float64(len(traced))
		}
		want := int64(0)
		for _, c := range r.CUs {
			if c.Traced {
				want += c.WaveCycles
			}
		}
		if diff := area - float64(want); diff > 0.02*float64(want) || diff < -0.02*float64(want) {
			t.Errorf("%s: the timeline holds %v cycles, want %d", name, area, want)
		}
	}
}

// TestRmsnormResident: fault 19. wstates1 says at most 4; 16 waves are resident on each of the four traced CUs.
func TestRmsnormResident(t *testing.T) {
	t.Parallel()
	dir, _ := filepath.Glob(filepath.Join(recorded.Traces(t), "dispatches/rmsnorm/big/ui_output_*"))
	tr, err := Open(t.Context(), dir[0], Options{Arch: "gfx950"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := tr.Bubbles(t.Context(), BubblesQuery{})
	if err != nil || b.Occupancy.Peak != 16 || b.Occupancy.Slots != 32 || *b.Occupancy.PeakPct != 50 || b.Occupancy.CUs[3].Traced != true || b.Occupancy.CUs[4].Traced {
		t.Errorf("%+v, %v", b.Occupancy, err)
	}
	if isa.Parse(b.Hot[0].ISA).Kind() != "vmcnt" {
		t.Errorf("%+v", b.Hot[0])
	}
}
