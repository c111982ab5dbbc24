package rocprof

import (
	"slices"
	"strings"
	"testing"
)

// blocks are the hardware blocks whose counters a pass shares, by how counters are named.
var blocks = []string{"SQ_", "TCC_", "TCP_", "TA_", "TD_", "GRBM_", "SPI_", "CPC_", "CPF_"}

func TestCounterGroupsFitOnePass(t *testing.T) {
	// The perfmon limits of gfx9, written down apart from the table under test.
	limit := map[string]int{"SQ_": 8, "TCC_": 4, "TCP_": 4, "TA_": 2, "TD_": 2, "GRBM_": 2, "SPI_": 2, "CPC_": 2, "CPF_": 2}
	for _, arch := range []string{"gfx942", "gfx950"} {
		groups := CounterGroups(arch)
		if len(groups) == 0 {
			t.Errorf("%s has no groups", arch)
		}
		seen := map[string]int{}
		for i, group := range groups {
			used := map[string]int{}
			for _, counter := range group {
				at := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(counter, b) })
				if at < 0 {
					t.Errorf("%s group %d: %s is of no known block", arch, i+1, counter)
					continue
				}
				used[blocks[at]]++
				if seen[counter]++; seen[counter] > 1 && counter != "GRBM_GUI_ACTIVE" {
					t.Errorf("%s: %s is collected twice", arch, counter)
				}
			}
			for block, n := range used {
				if n > limit[block] {
					t.Errorf("%s group %d: %d counters of %s, more than %d", arch, i+1, n, block, limit[block])
				}
			}
			if !slices.Contains(group, "GRBM_GUI_ACTIVE") {
				t.Errorf("%s group %d has no GRBM_GUI_ACTIVE to divide by", arch, i+1)
			}
			if _, err := (PMCJob{Kernel: "k", Counters: group, OutputDir: abs("/o"), OutputFile: "out"}).JSON(); err != nil {
				t.Errorf("%s group %d is no job: %v", arch, i+1, err)
			}
		}
	}
}

func TestCounterGroupsAreNotGuessed(t *testing.T) {
	for _, arch := range []string{"", "gfx90a", "gfx1201", "gfx95", "gfx9500"} {
		if got := CounterGroups(arch); got != nil {
			t.Errorf("%q: %v", arch, got)
		}
	}
}

func TestCounterGroupsAreCopies(t *testing.T) {
	first := CounterGroups("gfx950")
	first[0][0] = "CHANGED"
	if CounterGroups("gfx950")[0][0] == "CHANGED" {
		t.Error("a caller can change the table")
	}
}

// TestRotate: the launches that are counted fall one on each turn, and none is the first.
func TestRotate(t *testing.T) {
	t.Parallel()
	// every is a group whose launches stand stride dispatches apart, the first at dispatch first.
	every := func(n int, first, stride int64) Group {
		var all []Launch
		for i := range int64(n) {
			all = append(all, Launch{Kernel: "k", KernelID: 1, DispatchID: first + i*stride, Grid: [3]int64{64, 1, 1}, Workgroup: [3]int64{64, 1, 1}})
		}
		return NewInventory(all).Groups("k")[0]
	}
	for name, c := range map[string]struct {
		group    Group
		interval int64
		ok       bool
	}{
		"one after the other":               {every(12, 1, 1), 1, true},
		"two kernels take turns":            {every(12, 5, 2), 1, true},
		"as many apart as there are groups": {every(12, 4, 3), 3, true},
		"just enough after the first":       {every(4, 1, 1), 1, true},
		"too few":                           {every(3, 1, 1), 0, false},
		"one":                               {every(1, 1, 1), 0, false},
	} {
		interval, iter, ok := Rotate(c.group, 3)
		if ok != c.ok || interval != c.interval {
			t.Errorf("%s: every %d, %v", name, interval, ok)
			continue
		}
		if !ok {
			continue
		}
		turns := map[int64]int{}
		for _, n := range c.group.numbered {
			if iter.Contains(n.ordinal) {
				turns[(n.dispatch-1)/interval%3]++
			}
		}
		if iter.Len() != 3 || len(turns) != 3 || iter.Contains(1) {
			t.Errorf("%s: launches %s on turns %v", name, iter, turns)
		}
	}
	if _, _, ok := Rotate(every(12, 1, 1), 1); ok {
		t.Error("one group needs no turns")
	}
}

// TestSplitTurns: a dispatch belongs to the group all of whose counters it has; a counter that every group has is not mixed up.
func TestSplitTurns(t *testing.T) {
	t.Parallel()
	row := func(dispatch int64, counter string, v float64) CounterRow {
		return CounterRow{Agent: "Agent 2", DispatchID: dispatch, Counter: counter, Value: v, HasValue: true}
	}
	groups := [][]string{{"G", "A"}, {"G", "B"}, {"G", "C"}}
	got := SplitTurns([]CounterRow{row(7, "G", 70), row(7, "A", 1), row(8, "G", 80), row(8, "B", 2), row(9, "G", 90)}, groups)
	if len(got[0]) != 2 || got[0][0].Value != 70 || len(got[1]) != 2 || got[1][0].Value != 80 || len(got[2]) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRotationJob(t *testing.T) {
	t.Parallel()
	job := PMCJob{Kernel: "k", Iter: "7,8", Groups: [][]string{{"SQ_WAVES"}, {"GRBM_COUNT"}}, Interval: 2, OutputDir: abs("/o"), OutputFile: "out"}
	text, err := job.JSON()
	if err != nil || !strings.Contains(string(text), `"pmc_group_interval": 2`) || strings.Contains(string(text), `"pmc":`) {
		t.Errorf("%v %s", err, text)
	}
	for name, change := range map[string]func(*PMCJob){
		"counters besides": func(j *PMCJob) { j.Counters = []string{"SQ_WAVES"} },
		"no interval":      func(j *PMCJob) { j.Interval = 0 },
		"an empty group":   func(j *PMCJob) { j.Groups = [][]string{{"SQ_WAVES"}, {}} },
		"too much for one": func(j *PMCJob) { j.Groups[1] = []string{"GRBM_COUNT", "GRBM_GUI_ACTIVE", "GRBM_CP_BUSY"} },
	} {
		other := job
		other.Groups = slices.Clone(job.Groups)
		change(&other)
		if _, err := other.JSON(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
