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
