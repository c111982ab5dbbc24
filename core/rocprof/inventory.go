package rocprof

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Inventory is every launch of a discovery, sorted into what can be asked for: kernels by name, and below them groups of one
// kernel id and one grid.
type Inventory struct {
	kernels []KernelSummary
	groups  map[string][]Group
}

// KernelSummary is all launches of one kernel name.
type KernelSummary struct {
	Name    string
	Calls   int
	AvgNS   float64
	TotalNS int64
	// KernelIDs and Groups say over how many symbols of that name and how many launch groups the calls are spread.
	KernelIDs, Groups int
}

// Group is the launches of one kernel id with one grid and workgroup.
type Group struct {
	// ID is "<kernel_id>:<x>x<y>x<z>" with the grid in workgroups. Where groups of a kernel id differ in the workgroup only,
	// "/<x>x<y>x<z>/<x>x<y>x<z>" follows: grid and workgroup in work-items.
	ID       string
	Kernel   string
	KernelID int64
	// Grid counts workgroups on each axis, Workgroups all of them, Workgroup is in work-items.
	Grid, Workgroup [3]int64
	Workgroups      int64
	Launches        int
	// Ordinals are the numbers of these launches as kernel_iteration_range counts them: from 1, within the kernel id, over all
	// its grids.
	Ordinals     IterSet
	AvgNS        float64
	TotalNS      int64
	MinNS, MaxNS int64
	// Registers and memory are those of the first launch; see Launch.
	VGPR, AccumVGPR, SGPR int64
	LDSBytes, Scratch     int64
	HasRegisters          bool

	items [3]int64
	spans []span
	// numbered are the first launches with their Dispatch_Id.
	numbered []numbered
}

// numbered is one launch: its number within the kernel id, and its number among all dispatches of the process.
type numbered struct{ ordinal, dispatch int64 }

// maxNumbered bounds the launches of a group whose Dispatch_Id is kept.
const maxNumbered = 1024

// GridItems is the grid in work-items, as the CSV has it.
func (g Group) GridItems() [3]int64 { return g.items }

// NewInventory sorts launches, which may stand in any order: rows of a kernel trace do. Launches are numbered by Dispatch_Id
// within each kernel id of each process, as rocprofv3 counts them (tool.cpp is_targeted_kernel).
func NewInventory(launches []Launch) Inventory {
	type sequence struct {
		process string
		id      int64
	}
	type key struct {
		kernel          string
		id              int64
		grid, workgroup [3]int64
	}
	order := make([]int, len(launches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &launches[i], &launches[j]
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.DispatchID, b.DispatchID))
	})
	counters, at := map[sequence]int64{}, map[key]int{}
	var all []Group
	for _, i := range order {
		l := launches[i]
		counters[sequence{l.Process, l.KernelID}]++
		k := key{l.Kernel, l.KernelID, l.Grid, l.Workgroup}
		if _, known := at[k]; !known {
			at[k] = len(all)
			all = append(all, newGroup(l))
		}
		g, ordinal := &all[at[k]], counters[sequence{l.Process, l.KernelID}]
		g.add(l.DurationNS(), ordinal)
		if len(g.numbered) < maxNumbered {
			g.numbered = append(g.numbered, numbered{ordinal, l.DispatchID})
		}
	}
	return summarise(all)
}

func newGroup(l Launch) Group {
	g := l.WorkgroupGrid()
	return Group{
		ID: fmt.Sprintf("%d:%s", l.KernelID, extent(g)), Kernel: l.Kernel, KernelID: l.KernelID,
		Grid: g, Workgroup: l.Workgroup, Workgroups: l.Workgroups(), items: l.Grid, MinNS: math.MaxInt64,
		VGPR: l.VGPR, AccumVGPR: l.AccumVGPR, SGPR: l.SGPR, LDSBytes: l.LDSBytes, Scratch: l.Scratch, HasRegisters: l.HasRegisters,
	}
}

func (g *Group) add(ns, ordinal int64) {
	g.Launches++
	g.TotalNS = plus(g.TotalNS, ns)
	g.MinNS, g.MaxNS = min(g.MinNS, ns), max(g.MaxNS, ns)
	if n := len(g.spans); n > 0 && g.spans[n-1].Last+1 == ordinal {
		g.spans[n-1].Last = ordinal
		return
	}
	g.spans = append(g.spans, span{ordinal, ordinal})
}

func extent(v [3]int64) string { return fmt.Sprintf("%dx%dx%d", v[0], v[1], v[2]) }

// summarise completes the groups, sorts them by total time, and sums them up by name.
func summarise(all []Group) Inventory {
	inv := Inventory{groups: map[string][]Group{}}
	same := map[string]int{}
	for _, g := range all {
		same[g.Kernel+"\x00"+g.ID]++
	}
	for _, g := range all {
		if same[g.Kernel+"\x00"+g.ID] > 1 {
			g.ID += "/" + extent(g.items) + "/" + extent(g.Workgroup)
		}
		g.Ordinals, g.spans = merge(g.spans), nil
		g.AvgNS = float64(g.TotalNS) / float64(g.Launches)
		inv.groups[g.Kernel] = append(inv.groups[g.Kernel], g)
	}
	for name, groups := range inv.groups {
		slices.SortFunc(groups, func(a, b Group) int {
			return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Launches, a.Launches), cmp.Compare(a.KernelID, b.KernelID), strings.Compare(a.ID, b.ID))
		})
		s := KernelSummary{Name: name, Groups: len(groups)}
		ids := map[int64]bool{}
		for _, g := range groups {
			s.Calls += g.Launches
			s.TotalNS = plus(s.TotalNS, g.TotalNS)
			ids[g.KernelID] = true
		}
		s.KernelIDs, s.AvgNS = len(ids), float64(s.TotalNS)/float64(s.Calls)
		inv.kernels = append(inv.kernels, s)
	}
	slices.SortFunc(inv.kernels, func(a, b KernelSummary) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name))
	})
	return inv
}

// Kernels are the launched kernels, the one with the most total time first.
func (inv Inventory) Kernels() []KernelSummary { return slices.Clone(inv.kernels) }

// Groups are the launch groups of a kernel, the one with the most total time first; none for a name that was not launched.
func (inv Inventory) Groups(kernel string) []Group { return slices.Clone(inv.groups[kernel]) }

// Choice is which launch to trace.
type Choice struct {
	// Iter is the value of kernel_iteration_range, Ordinal the first launch of the group in it.
	Iter    string
	Ordinal int64
	Group   Group
	// Also are the other groups of the kernel that the same range fires for: each kernel id has a counter of its own. Their
	// dispatches are told apart afterwards, by Dispatch_Id.
	Also     []Group
	Warnings []envelope.Warning
}

// steadyLaunch is late enough for caches and clocks to have settled. A later one would cost nothing either, since the workload
// runs to its end, but a run that launches fewer times than the discovery did would not reach it.
const steadyLaunch = 8

// ChooseLaunch decides which launch of a kernel to trace. group is a Group.ID, empty for the one with the most total time among
// those that iterRange meets. iterRange is in the terms of ParseIterRange; empty takes launch 8 of the group, or the last but
// one where there are fewer, or the second of two: never the first, which compiles and warms up, while there is another.
//
// Errors: NO_KERNEL_DISCOVERED for a name that was not launched, BAD_ARGS for a range that cannot be read, DISPATCH_OUT_OF_RANGE
// with the launches of every group for a group or launch that does not exist.
func (inv Inventory) ChooseLaunch(kernel, group, iterRange string) (Choice, error) {
	groups := inv.groups[kernel]
	if len(groups) == 0 {
		return Choice{}, inv.notLaunched(kernel)
	}
	var set IterSet
	if iterRange != "" {
		var err error
		if set, err = ParseIterRange(iterRange); err != nil {
			return Choice{}, err
		}
	}
	fit := groups
	if group != "" {
		fit = keep(groups, func(g Group) bool { return g.ID == group })
		if len(fit) == 0 {
			return Choice{}, outOfRange("group", group, fmt.Sprintf("%s has no launch group %q", clip(kernel), clip(group)), groups)
		}
	}
	if iterRange == "" {
		set = IterSet{[]span{{fit[0].steady(), fit[0].steady()}}}
	}
	met := keep(fit, func(g Group) bool { return meets(g, set) })
	if len(met) == 0 {
		return Choice{}, outOfRange("iter_range", set.String(), unmet(kernel, fit, set), before(fit, groups))
	}
	c := Choice{Iter: set.String(), Group: met[0], Ordinal: set.common(met[0].Ordinals).At(1)}
	c.Also = keep(groups, func(g Group) bool { return g.ID != c.Group.ID && meets(g, set) })
	c.warn(groups, group, iterRange, set)
	return c, nil
}

// steady is the number of the launch that is traced when none was asked for.
func (g Group) steady() int64 {
	n := g.Ordinals.Len()
	return g.Ordinals.At(max(min(n-1, steadyLaunch), min(n, 2)))
}

func meets(g Group, set IterSet) bool { return set.common(g.Ordinals).Len() > 0 }

func keep(groups []Group, is func(Group) bool) []Group {
	var out []Group
	for _, g := range groups {
		if is(g) {
			out = append(out, g)
		}
	}
	return out
}

// before puts the groups of first in front of the others.
func before(first, all []Group) []Group {
	ids := map[string]bool{}
	for _, g := range first {
		ids[g.ID] = true
	}
	return append(slices.Clone(first), keep(all, func(g Group) bool { return !ids[g.ID] })...)
}

func (c *Choice) warn(groups []Group, group, iterRange string, set IterSet) {
	add := func(code, format string, args ...any) {
		c.Warnings = append(c.Warnings, envelope.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	g := c.Group
	if len(groups) > 1 && group == "" {
		add("MULTIPLE_GROUPS", "the kernel is launched in %d groups of kernel id and grid; %s (%d workgroups, %d launches) was taken for its total time; give group for another", len(groups), g.ID, g.Workgroups, g.Launches)
	}
	if iterRange == "" && c.Ordinal == g.Ordinals.At(1) {
		add("FIRST_LAUNCH", "%s is launched once, so its first launch is traced, with cold caches", g.ID)
	}
	if found := set.common(g.Ordinals); iterRange != "" && found.Len() < set.Len() {
		add("ITER_RANGE_PARTIAL", "of the launches %s, %s has %s", set.String(), g.ID, found.String())
	}
	if len(c.Also) > 0 {
		ids := make([]string, 0, 4)
		for _, other := range c.Also[:min(len(c.Also), 4)] {
			ids = append(ids, other.ID)
		}
		add("OTHER_GROUPS_FIRE", "launches are counted within each kernel id, so %s is traced for %d other groups too (%s); they are told apart by Dispatch_Id", c.Iter, len(c.Also), strings.Join(ids, ", "))
	}
}

// maxAskedName is the longest name that a capture can be asked for; names of library kernels have up to 10 kB.
const maxAskedName = 400

func (inv Inventory) notLaunched(kernel string) error {
	f := envelope.Facts{
		Message:  fmt.Sprintf("%q was not launched; %d other kernels were", clip(kernel), len(inv.kernels)),
		Evidence: envelope.Evidence{Field: "kernel", Value: kernel},
	}
	for _, k := range inv.kernels {
		if len(k.Name) > maxAskedName || len(f.Candidates) == 12 {
			continue
		}
		f.Candidates = append(f.Candidates, envelope.Candidate{Kernel: k.Name, Calls: k.Calls, AvgNS: k.AvgNS, TotalNS: k.TotalNS, Why: "it was launched"})
	}
	return envelope.Build(envelope.NoKernelDiscovered, f)
}

func unmet(kernel string, fit []Group, set IterSet) string {
	var most int64
	for _, g := range fit {
		most = max(most, g.Ordinals.Max())
	}
	where := clip(kernel)
	if len(fit) == 1 {
		where += ", group " + fit[0].ID + ","
	}
	if set.At(1) > most {
		return fmt.Sprintf("launch %s of %s does not exist: the last is %d", set.String(), where, most)
	}
	return fmt.Sprintf("launch %s of %s does not exist: that number belongs to another grid of the same kernel id; this group has %s", set.String(), where, ordinals(fit[0]))
}

// outOfRange is DISPATCH_OUT_OF_RANGE with what exists, group by group.
func outOfRange(field, value, message string, groups []Group) error {
	f := envelope.Facts{Message: message, Evidence: envelope.Evidence{Field: field, Value: value}}
	for _, g := range groups {
		a := envelope.Available{
			IterRange: fmt.Sprint(g.steady()), Group: g.ID, KernelID: g.KernelID, Workgroups: g.Workgroups, Launches: g.Launches,
			Value: "launches " + ordinals(g),
		}
		if len(g.Kernel) <= 64 { // the same in each row; a long one would fill the answer
			a.Kernel = g.Kernel
		}
		f.Available = append(f.Available, a)
	}
	f.Evidence.Allowed = "a launch and group of available"
	return envelope.Build(envelope.DispatchOutOfRange, f)
}

// ordinals are the group's launch numbers, cut where grids take turns.
func ordinals(g Group) string {
	const most = 60
	s := g.Ordinals.String()
	if len(s) <= most {
		return s
	}
	return s[:strings.LastIndexByte(s[:most], ',')+1] + "..."
}

// clip shortens a name for a message.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return cutBytes(s, most) + "..."
}
