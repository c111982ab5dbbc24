package att

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// seen is an observer that keeps one line for each thing it is shown.
type seen struct {
	lines []string
	mu    *sync.Mutex
	all   *[]string
}

func (s *seen) Instruction(i WaveInstruction) { s.lines = append(s.lines, fmt.Sprintf("i %+v", i)) }
func (s *seen) Wait(row int, targets []int) {
	s.lines = append(s.lines, fmt.Sprintf("w %d %v", row, targets))
}
func (s *seen) State(state, cycles int64) {
	s.lines = append(s.lines, fmt.Sprintf("t %d %d", state, cycles))
}
func (s *seen) End(w WaveEnd, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.all = append(*s.all, fmt.Sprintf("%s cu %d %v: %s", w.File, w.CU, err != nil, strings.Join(s.lines, "; ")))
	s.lines = nil
}

func observed(t *testing.T, change map[string]string) []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	_, err := Open(t.Context(), trace(t, change), Options{ReadWaves: true, Observe: func(d *Dispatch) WaveObserver {
		if len(d.Code.Rows) != 4 {
			t.Errorf("%d rows are known", len(d.Code.Rows))
		}
		return &seen{mu: &mu, all: &all}
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestObserve: an observer is shown what the files hold, by rows, and the end of each file.
func TestObserve(t *testing.T) {
	t.Parallel()
	const (
		a = "w0.json cu 3 false: i {Row:1 Time:100 Stall:2 Duration:10}; i {Row:2 Time:110 Stall:40 Duration:42}; i {Row:3 Time:146 Stall:0 Duration:4}"
		b = "w1.json cu 3 false: i {Row:1 Time:150 Stall:2 Duration:10}; i {Row:2 Time:161 Stall:40 Duration:48}; i {Row:3 Time:205 Stall:0 Duration:4}"
	)
	waits := func(text string) map[string]string {
		return map[string]string{"w0.json": strings.Replace(waveA, `"waitcnt":null`, `"waitcnt":`+text, 1)}
	}
	for name, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"plain":              {nil, []string{a + "; t 2 50", b}},
		"waits":              {waits(`[[2,[[1,0],[3]]],[2,null],[2,[]],[99,[[1,0]]],[1,[[99,0],[2,0]],7]]`), []string{a + "; t 2 50; w 2 [1 3]; w 1 [2]", b}},
		"no timeline":        {map[string]string{"w0.json": strings.Replace(waveA, `[[2,50]]`, "null", 1)}, []string{a, b}},
		"an unknown line":    {map[string]string{"w0.json": strings.Replace(waveA, `10,1]`, `10,77]`, 1)}, []string{strings.Replace(a, "Row:1", "Row:-1", 1) + "; t 2 50", b}},
		"a torn file":        {map[string]string{"w0.json": waveA[:len(waveA)-1]}, []string{strings.Replace(a, "false", "true", 1) + "; t 2 50", b}},
		"a wait without end": {waits(`[[2]]`), []string{strings.Replace(a, "false", "true", 1) + "; t 2 50", b}},
		"a span of less":     {map[string]string{"w0.json": strings.Replace(waveA, `[[2,50]]`, "[[2,-1]]", 1)}, []string{strings.Replace(a, "false", "true", 1), b}},
	} {
		if got := observed(t, c.change); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestEachOccupancy: the waves of one kernel, in the file's order; an error of the caller ends it.
func TestEachOccupancy(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	for kernel, want := range map[string][]OccupancyEvent{
		"k_0":     {{0, 100, 3, 1, 2, true}, {0, 150, 3, 1, 2, false}, {0, 150, 3, 1, 2, true}, {0, 209, 3, 1, 2, false}},
		"other_0": {{0, 101, 5, 0, 0, true}},
		"":        {{0, 100, 3, 1, 2, true}, {0, 150, 3, 1, 2, false}, {0, 150, 3, 1, 2, true}, {0, 209, 3, 1, 2, false}, {0, 101, 5, 0, 0, true}},
	} {
		var got []OccupancyEvent
		err := d.EachOccupancy(t.Context(), kernel, func(e OccupancyEvent) error { got = append(got, e); return nil })
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", kernel, got, err)
		}
	}
	enough := errors.New("enough")
	if err := d.EachOccupancy(t.Context(), "", func(OccupancyEvent) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	none := opened(t, map[string]string{"occupancy.json": ""})
	if err := none.EachOccupancy(t.Context(), "", func(OccupancyEvent) error { return enough }); err != nil {
		t.Errorf("no file: %v", err)
	}
}

// TestReadSnapshot: the copy in the directory is read, and nothing else.
func TestReadSnapshot(t *testing.T) {
	t.Parallel()
	d := opened(t, map[string]string{"snapshots.json": `{"/":{"w":{"k.py":"source_0_k.py"}}}`, "source_0_k.py": "a\nb\n"})
	if len(d.Snapshots) != 1 {
		t.Fatalf("%+v", d.Snapshots)
	}
	if text, err := d.ReadSnapshot(t.Context(), d.Snapshots[0]); err != nil || string(text) != "a\nb\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"../ui_output_agent_7_dispatch_12/code.json", "..", "", "/etc/passwd", "none"} {
		if _, err := d.ReadSnapshot(t.Context(), Snapshot{Path: "/w/k.py", File: name}); err == nil {
			t.Errorf("%q was read", name)
		}
	}
	if err := os.Truncate(filepath.Join(d.Dir, "source_0_k.py"), MaxSnapshotBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadSnapshot(t.Context(), d.Snapshots[0]); err == nil {
		t.Error("a file of more than the limit was read")
	}
}
