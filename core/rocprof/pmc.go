package rocprof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// counterGroup is what one hardware pass collects, and why those counters.
type counterGroup struct {
	archs    []string
	counters []string
}

// passLimits are the counters that one pass can collect of each block, by the prefix of the counter's name (AMD's perfmon limits
// for gfx942 and gfx950, rocprofiler-compute soc definitions; aqlprofile's block tables). A pass that asks for more ends the
// workload at its first dispatch, and more than four TCC counters have hung a gfx942.
var passLimits = map[string]int{"SQ": 8, "TCC": 4, "TCP": 4, "TA": 2, "TD": 2, "GRBM": 2, "SPI": 2, "CPC": 2, "CPF": 2}

var instinct = []string{"gfx942", "gfx950"}

// counterGroups is the table: a new pass is a new row. Every name is in rocprofiler-sdk's counter_defs.yaml for gfx942, and was
// collected on gfx950. GRBM_GUI_ACTIVE (cycles the GPU was busy) is in each row, so that rates need no other pass.
var counterGroups = []counterGroup{
	{instinct, []string{"GRBM_GUI_ACTIVE", "SQ_WAVES", "SQ_BUSY_CYCLES", "SQ_INSTS_VALU", "SQ_INSTS_MFMA", "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_LDS", "SQ_INSTS_VMEM"}},
	{instinct, []string{"GRBM_GUI_ACTIVE", "SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES", "SQ_WAIT_ANY", "SQ_WAIT_INST_ANY", "SQ_WAIT_INST_LDS", "SQ_VALU_MFMA_BUSY_CYCLES", "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"}},
	{instinct, []string{"GRBM_GUI_ACTIVE", "SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "TCC_HIT_sum", "TCC_MISS_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_WRREQ_sum"}},
}

// CounterGroups gives the counters to collect for an architecture such as "gfx950", one slice for each hardware pass. It is
// empty for an architecture that no row knows: nothing is collected by guess.
func CounterGroups(arch string) [][]string {
	var out [][]string
	for _, g := range counterGroups {
		if slices.Contains(g.archs, arch) {
			out = append(out, slices.Clone(g.counters))
		}
	}
	return out
}

// checkPass refuses counters that one pass cannot collect, before a GPU is asked for them.
func checkPass(counters []string) error {
	used := map[string]int{}
	for _, name := range counters {
		block, _, _ := strings.Cut(name, "_")
		limit, known := passLimits[block]
		if used[block]++; known && used[block] > limit {
			return badArg("counters", strings.Join(counters, " "), fmt.Sprintf("at most %d counters of %s in one pass", limit, block))
		}
	}
	return nil
}

// maxInterval is the longest turn of a rotation that is looked for.
const maxInterval = 64

// Rotate finds how counter groups can take turns in one run of the workload, so that each counts at least one launch of the launch
// group: interval is the length of a turn in dispatches of the process, iter the launches to count, one for each turn, near the
// launch that is traced by default and never the first while there is another. It says false where the launches do not fall on every
// turn. The dispatches are those of a discovery; a later run may number its own otherwise, which its rows tell (SplitTurns).
//
// Source: rocprofv3's documentation of pmc_groups and pmc_group_interval: the interval counts dispatches on the device by
// dispatch_id, over all kernels.
func Rotate(g Group, groups int) (interval int64, iter IterSet, ok bool) {
	if groups < 2 {
		return 0, IterSet{}, false
	}
	steady := g.steady()
	for interval = 1; interval <= maxInterval; interval++ {
		best := make([]int64, groups)
		covered := 0
		for _, n := range g.numbered {
			turn := (n.dispatch - 1) / interval % int64(groups)
			switch {
			case n.dispatch < 1 || n.ordinal < 2 && g.Launches > 1:
			case best[turn] == 0:
				best[turn] = n.ordinal
				covered++
			case distance(n.ordinal, steady) < distance(best[turn], steady):
				best[turn] = n.ordinal
			}
		}
		if covered == groups {
			spans := make([]span, groups)
			for i, ordinal := range best {
				spans[i] = span{ordinal, ordinal}
			}
			slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.First, b.First) })
			return interval, merge(spans), true
		}
	}
	return 0, IterSet{}, false
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// SplitTurns gives the rows of each counter group of a rotation: those of the dispatches that have all its counters. A group is
// empty where no dispatch was counted by it, or where the version of rocprofv3 knows no rotation.
func SplitTurns(rows []CounterRow, groups [][]string) [][]CounterRow {
	type dispatch struct {
		agent string
		id    int64
	}
	counted := map[dispatch]map[string]bool{}
	for _, r := range rows {
		d := dispatch{r.Agent, r.DispatchID}
		if counted[d] == nil {
			counted[d] = map[string]bool{}
		}
		counted[d][r.Counter] = true
	}
	out := make([][]CounterRow, len(groups))
	for _, r := range rows {
		for i, group := range groups {
			has := counted[dispatch{r.Agent, r.DispatchID}]
			if slices.Contains(group, r.Counter) && !slices.ContainsFunc(group, func(name string) bool { return !has[name] }) {
				out[i] = append(out[i], r)
				break
			}
		}
	}
	return out
}
