package analyze

import (
	"cmp"
	"slices"
)

// Spread compares the durations of the traced waves, in cycles.
type Spread struct {
	Waves int   `json:"waves"`
	Min   int64 `json:"min"`
	// Median is the lower one of the two in the middle where the number is even.
	Median int64   `json:"median"`
	Max    int64   `json:"max"`
	Sum    int64   `json:"sum"`
	Mean   float64 `json:"mean"`
	// Imbalance is Max / Median: 1 where all waves took equally long.
	Imbalance *float64 `json:"imbalance,omitempty" jsonschema_description:"Longest over median duration; 1 is even."`
	// Begin and End are the times of the first begin and the last end.
	Begin   int64 `json:"begin"`
	End     int64 `json:"end"`
	Slowest Wave  `json:"slowest"`
	// Groups are the same by shader engine and CU; at most 16 of GroupsTotal.
	Groups      []SpreadGroup `json:"groups,omitempty"`
	GroupsTotal int           `json:"groups_total"`
}

// SpreadGroup are the waves of one CU.
type SpreadGroup struct {
	SE     int64 `json:"se"`
	CU     int64 `json:"cu"`
	Waves  int   `json:"waves"`
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	Max    int64 `json:"max"`
	Begin  int64 `json:"begin"`
	End    int64 `json:"end"`
}

const maxShownGroups = 16

// spreadOf compares waves; nil where there are none.
func spreadOf(waves []Wave) *Spread {
	if len(waves) == 0 {
		return nil
	}
	by := map[cuID][]Wave{}
	for _, w := range waves {
		id := cuID{w.SE, w.CU}
		by[id] = append(by[id], w)
	}
	var groups []SpreadGroup
	for id, of := range by {
		g := groupOf(of)
		g.SE, g.CU = id.se, id.cu
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b SpreadGroup) int { return cmp.Or(cmp.Compare(a.SE, b.SE), cmp.Compare(a.CU, b.CU)) })
	all := groupOf(waves)
	s := &Spread{Waves: all.Waves, Min: all.Min, Median: all.Median, Max: all.Max, Begin: all.Begin, End: all.End, Imbalance: ratio(all.Max, all.Median),
		Groups: page(groups, 0, maxShownGroups), GroupsTotal: len(groups)}
	for _, w := range waves {
		s.Sum = plus(s.Sum, w.Duration)
		if w.Duration > s.Slowest.Duration || s.Slowest.Duration == 0 {
			s.Slowest = w
		}
	}
	s.Mean = *rounded(float64(s.Sum) / float64(len(waves)))
	return s
}

func groupOf(waves []Wave) SpreadGroup {
	durations := make([]int64, len(waves))
	g := SpreadGroup{Waves: len(waves), Begin: waves[0].Begin, End: waves[0].End}
	for i, w := range waves {
		durations[i] = w.Duration
		g.Begin, g.End = min(g.Begin, w.Begin), max(g.End, w.End)
	}
	slices.Sort(durations)
	g.Min, g.Median, g.Max = durations[0], durations[(len(durations)-1)/2], durations[len(durations)-1]
	return g
}
