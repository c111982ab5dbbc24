package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// Wave is one traced wave, in cycles of the shader clock.
type Wave struct {
	SE   int64 `json:"se"`
	CU   int64 `json:"cu"`
	SIMD int64 `json:"simd"`
	Slot int64 `json:"slot"`
	ID   int64 `json:"wave" jsonschema_description:"Counts the waves that reused the slot."`
	// Begin and End are times, Duration the cycles between them.
	Begin    int64 `json:"begin"`
	End      int64 `json:"end"`
	Duration int64 `json:"duration"`
	// Totals are over its instructions: executions, and cycles.
	att.Totals
	states States
}

// States are cycles of waves by what they did, from the timelines of the traced waves.
type States struct {
	Idle  int64 `json:"idle" jsonschema_description:"Cycles in which the wave had nothing to issue."`
	Exec  int64 `json:"exec" jsonschema_description:"Cycles in which it executed."`
	Wait  int64 `json:"wait" jsonschema_description:"Cycles in which it waited at a wait instruction."`
	Stall int64 `json:"stall" jsonschema_description:"Cycles in which its next instruction could not issue."`
}

// add adds a span of the timeline; state 0 is an empty slot.
func (s *States) add(state, cycles int64) {
	switch state {
	case 1:
		s.Idle = plus(s.Idle, cycles)
	case 2:
		s.Exec = plus(s.Exec, cycles)
	case 3:
		s.Wait = plus(s.Wait, cycles)
	case 4:
		s.Stall = plus(s.Stall, cycles)
	}
}

// cell is what a part of a wait's stall waited for: one counter (0 where the wait names none), and the class of the waited-for
// instructions ("" where the trace does not say).
type cell struct {
	counter isa.Counters
	class   isa.Class
}

func (c cell) compare(o cell) int {
	return cmp.Or(cmp.Compare(c.counter, o.counter), cmp.Compare(c.class, o.class))
}

// waitShare is a part of the stall of a wait.
type waitShare struct {
	cell
	stall int64
}

// edge is a wait and an instruction that it waited for, by index in Code.Rows.
type edge struct{ wait, target int }

// observation is what the wave files say, beyond the sums of the rows.
type observation struct {
	waves    []Wave
	shares   map[int]map[cell]int64 // stall of waits, by index in Code.Rows
	edges    map[edge]int64         // how often the trace says that the wait waited for the target
	edgesCut bool
}

// observed is what observers know of the code.
type observed struct{ instructions []isa.Instruction }

func observe(code att.Code) *observed {
	o := &observed{instructions: make([]isa.Instruction, len(code.Rows))}
	for i, r := range code.Rows {
		o.instructions[i] = isa.Parse(r.ISA)
	}
	return o
}

// maxEdges bounds the pairs that one observer keeps: 32 MB. Real traces have thousands.
const maxEdges = 1 << 20

// observer collects from the wave files that one worker reads. What belongs to one wave is put aside until its file has been read
// whole.
type observer struct {
	*observed
	observation
	// Of the wave at hand:
	totals  att.Totals
	states  States
	first   int64 // time of the first instruction
	last    int64 // end of the instruction before
	begun   bool
	stalls  map[int]int64
	weights map[int]map[cell]int64
	found   map[edge]int64
	targets []int
	classes []isa.Class
}

func newObserver(shared *observed) *observer {
	o := &observer{observed: shared, observation: observation{shares: map[int]map[cell]int64{}, edges: map[edge]int64{}}}
	o.reset()
	return o
}

func (o *observer) reset() {
	o.totals, o.states, o.begun = att.Totals{}, States{}, false
	o.stalls, o.weights, o.found = map[int]int64{}, map[int]map[cell]int64{}, map[edge]int64{}
}

// Instruction adds to the wave's sums. The wave is idle between the end of an instruction and the first try of the next.
func (o *observer) Instruction(i att.WaveInstruction) {
	idle := int64(0)
	i.Time, i.Duration = clamp(i.Time), clamp(i.Duration)
	if o.begun {
		idle = max(i.Time-o.last, 0)
	} else {
		o.begun, o.first = true, i.Time
	}
	o.last = i.Time + i.Duration
	o.totals.Add(att.Totals{Hit: 1, Latency: i.Duration, Stall: i.Stall, Idle: idle})
	if i.Row >= 0 && o.instructions[i.Row].Class == isa.Wait {
		o.stalls[i.Row] = plus(o.stalls[i.Row], i.Stall)
	}
}

// unit is the weight of one entry; the counters and classes that share it are few.
const unit = 5040

// Wait notes what a wait waited for. An entry is of one counter: the one that all its targets raise, of those that the wait names. Where that
// leaves several (flat memory), they share it, as do the classes of the targets.
func (o *observer) Wait(row int, targets []int) {
	o.targets = append(o.targets[:0], targets...)
	slices.Sort(o.targets)
	o.targets = slices.Compact(o.targets)
	named := o.instructions[row].Waits
	every, any := named, isa.Counters(0)
	classes := o.classes[:0]
	for _, t := range o.targets {
		i := o.instructions[t]
		every &= i.Uses
		any |= i.Uses
		if !slices.Contains(classes, i.Class) {
			classes = append(classes, i.Class)
		}
		if pair := (edge{row, t}); o.found[pair] > 0 || len(o.found) < maxEdges {
			o.found[pair]++
		} else {
			o.edgesCut = true
		}
	}
	o.classes = classes
	counters := cmp.Or(every, any&named, named).Split()
	if len(counters) == 0 {
		counters = []isa.Counters{0}
	}
	if o.weights[row] == nil {
		o.weights[row] = map[cell]int64{}
	}
	share := max(1, unit/int64(len(counters)*len(classes)))
	for _, counter := range counters {
		for _, class := range classes {
			c := cell{counter, class}
			o.weights[row][c] = plus(o.weights[row][c], share)
		}
	}
}

// State adds a span of the timeline.
func (o *observer) State(state, cycles int64) { o.states.add(state, cycles) }

// End takes the wave over, unless its file is torn.
func (o *observer) End(w att.WaveEnd, err error) {
	defer o.reset()
	if err != nil {
		return
	}
	w.Begin, w.End = clamp(w.Begin), clamp(w.End)
	if o.begun {
		o.totals.Add(att.Totals{Idle: max(o.first-w.Begin, 0)})
	}
	o.waves = append(o.waves, Wave{SE: w.SE, CU: w.CU, SIMD: w.SIMD, Slot: w.Slot, ID: w.ID, Begin: w.Begin, End: w.End,
		Duration: max(w.End-w.Begin, 0), Totals: o.totals, states: o.states})
	for row, stall := range o.stalls {
		if o.shares[row] == nil {
			o.shares[row] = map[cell]int64{}
		}
		for _, s := range divide(stall, o.instructions[row].Waits, o.weights[row]) {
			o.shares[row][s.cell] = plus(o.shares[row][s.cell], s.stall)
		}
	}
	for pair, n := range o.found {
		if o.edges[pair] == 0 && len(o.edges) >= maxEdges {
			o.edgesCut = true
			continue
		}
		o.edges[pair] += n
	}
}

// divide shares the stall of a wait out by weights, in the order of the counters and then of the classes; without weights each named
// counter has the same part.
func divide(stall int64, named isa.Counters, weights map[cell]int64) []waitShare {
	cells := slices.SortedFunc(maps.Keys(weights), cell.compare)
	if len(cells) == 0 {
		for _, c := range named.Split() {
			cells = append(cells, cell{counter: c})
		}
		if len(cells) == 0 {
			cells = []cell{{}}
		}
	}
	by := make([]int64, len(cells))
	for i, c := range cells {
		if by[i] = weights[c]; len(weights) == 0 {
			by[i] = 1
		}
	}
	out := make([]waitShare, len(cells))
	for i, part := range apportion(stall, by) {
		out[i] = waitShare{cells[i], part}
	}
	return out
}

// shareOf divides the stall that code.json gives a wait as the waves that were read divide theirs; on a complete trace both are the same.
func shareOf(stall int64, named isa.Counters, seen map[cell]int64) []waitShare {
	if stall == 0 {
		return nil
	}
	total := int64(0)
	for _, s := range seen {
		total = plus(total, s)
	}
	if total == 0 {
		seen = nil
	}
	shares := divide(stall, named, seen)
	return slices.DeleteFunc(shares, func(s waitShare) bool { return s.stall == 0 })
}

// merge puts the observers' parts together; sums and a sorted list do not depend on who read what.
func merge(observers []*observer) observation {
	out := observation{shares: map[int]map[cell]int64{}, edges: map[edge]int64{}}
	for _, o := range observers {
		out.waves = append(out.waves, o.waves...)
		out.edgesCut = out.edgesCut || o.edgesCut
		for row, cells := range o.shares {
			if out.shares[row] == nil {
				out.shares[row] = map[cell]int64{}
			}
			for c, stall := range cells {
				out.shares[row][c] = plus(out.shares[row][c], stall)
			}
		}
		for pair, n := range o.edges {
			out.edges[pair] += n
		}
	}
	slices.SortFunc(out.waves, func(a, b Wave) int {
		return cmp.Or(cmp.Compare(a.SE, b.SE), cmp.Compare(a.SIMD, b.SIMD), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.ID, b.ID))
	})
	return out
}
