package rocprof

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/google/go-cmp/cmp"
)

// launched makes launches of 256 work-items a workgroup, in the order given: each is "kernel id workgroups ns".
func launched(rows ...string) []Launch {
	var out []Launch
	for i, row := range rows {
		l := Launch{DispatchID: int64(i + 1), StartNS: int64(i) * 1000, Workgroup: [3]int64{256, 1, 1}, Grid: [3]int64{0, 1, 1}}
		var workgroups, ns int64
		if _, err := fmt.Sscan(row, &l.Kernel, &l.KernelID, &workgroups, &ns); err != nil {
			panic(row)
		}
		l.Grid[0], l.EndNS = workgroups*256, l.StartNS+ns
		out = append(out, l)
	}
	return out
}

func times3(n int, rows ...string) []string {
	var out []string
	for range n {
		out = append(out, rows...)
	}
	return out
}

func TestWorkgroups(t *testing.T) {
	for _, c := range []struct {
		grid, workgroup [3]int64
		want            int64
	}{
		{[3]int64{262144, 1, 1}, [3]int64{256, 1, 1}, 1024}, // a recorded rmsnorm
		{[3]int64{1000, 6, 1}, [3]int64{64, 4, 1}, 32},      // 15.6 and 1.5 round up to 16 and 2
		{[3]int64{1, 1, 1}, [3]int64{1024, 1, 1}, 1},
		{[3]int64{0, 0, 0}, [3]int64{0, 0, 0}, 1},
		{[3]int64{math.MaxInt64, math.MaxInt64, 4}, [3]int64{1, 1, 1}, math.MaxInt64},
		{[3]int64{math.MaxInt64, 1, 1}, [3]int64{math.MaxInt64, 1, 1}, 1},
	} {
		if got := (Launch{Grid: c.grid, Workgroup: c.workgroup}).Workgroups(); got != c.want {
			t.Errorf("%v in workgroups of %v: %d, want %d", c.grid, c.workgroup, got, c.want)
		}
	}
}

func TestInventory(t *testing.T) {
	launches := launched("a 7 4 100", "b 9 1 5000", "a 7 8 300", "a 7 4 200", "a 8 4 50", "a 7 8 100")
	// The rows of a kernel trace stand in no order.
	launches[0], launches[5], launches[2], launches[3] = launches[5], launches[0], launches[3], launches[2]
	inv := NewInventory(launches)
	wantKernels := []KernelSummary{
		{Name: "b", Calls: 1, AvgNS: 5000, TotalNS: 5000, KernelIDs: 1, Groups: 1},
		{Name: "a", Calls: 5, AvgNS: 150, TotalNS: 750, KernelIDs: 2, Groups: 3},
	}
	if diff := cmp.Diff(wantKernels, inv.Kernels()); diff != "" {
		t.Error(diff)
	}
	type row struct {
		ID, Ordinals          string
		Workgroups            int64
		Launches              int
		Total, Min, Max       int64
		Avg                   float64
		Grid, Items, Workitem [3]int64
	}
	var got []row
	for _, g := range inv.Groups("a") {
		got = append(got, row{g.ID, g.Ordinals.String(), g.Workgroups, g.Launches, g.TotalNS, g.MinNS, g.MaxNS, g.AvgNS, g.Grid, g.GridItems(), g.Workgroup})
	}
	w := [3]int64{256, 1, 1}
	want := []row{
		{"7:8x1x1", "2,4", 8, 2, 400, 100, 300, 200, [3]int64{8, 1, 1}, [3]int64{2048, 1, 1}, w},
		{"7:4x1x1", "1,3", 4, 2, 300, 100, 200, 150, [3]int64{4, 1, 1}, [3]int64{1024, 1, 1}, w},
		{"8:4x1x1", "1", 4, 1, 50, 50, 50, 50, [3]int64{4, 1, 1}, [3]int64{1024, 1, 1}, w},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := inv.Groups("c"); len(got) != 0 {
		t.Errorf("a kernel that was not launched has groups %v", got)
	}
}

func TestInventoryOfSeveralProcesses(t *testing.T) {
	one, two := launched("k 7 4 10", "k 7 4 10"), launched("k 7 4 10", "k 7 4 10", "k 7 4 10")
	for i := range two {
		two[i].Process = "second"
	}
	g := NewInventory(append(two, one...)).Groups("k")
	if len(g) != 1 || g[0].Launches != 5 || g[0].Ordinals.String() != "1-3" {
		t.Errorf("%+v, want 5 launches, numbered 1-3 in the longer process", g)
	}
}

func TestGroupsThatDifferInTheWorkgroupOnly(t *testing.T) {
	launches := launched("k 7 4 10", "k 7 4 20")
	launches[1].Workgroup, launches[1].Grid = [3]int64{64, 1, 1}, [3]int64{250, 1, 1}
	inv := NewInventory(launches)
	var ids []string
	for _, g := range inv.Groups("k") {
		ids = append(ids, g.ID)
		c, err := inv.ChooseLaunch("k", g.ID, "")
		if err != nil || c.Group.ID != g.ID {
			t.Errorf("%s chooses %s, error %v", g.ID, c.Group.ID, err)
		}
	}
	if diff := cmp.Diff([]string{"7:4x1x1/250x1x1/64x1x1", "7:4x1x1/1024x1x1/256x1x1"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestInventoryOfAbsurdDurations(t *testing.T) {
	l := launched("k 7 4 10", "k 7 4 10", "k 7 4 10")
	l[0].StartNS, l[0].EndNS = 0, math.MaxInt64
	l[1].StartNS, l[1].EndNS = 0, math.MaxInt64
	l[2].StartNS, l[2].EndNS = 500, 20 // reversed
	k := NewInventory(l).Kernels()[0]
	if k.TotalNS != math.MaxInt64 || k.AvgNS <= 0 {
		t.Errorf("total %d, average %g", k.TotalNS, k.AvgNS)
	}
}

func TestChooseLaunch(t *testing.T) {
	turns := launched(times3(5, "k 7 4 10", "k 7 8 20")...) // 1,3,5,7,9 of 4 workgroups, 2,4,6,8,10 of 8
	two := append(launched(times3(12, "k 7 4 10")...), launched(times3(9, "k 8 16 10")...)...)
	for i := range two {
		two[i].DispatchID = int64(i + 1)
	}
	for _, c := range []struct {
		name          string
		launches      []Launch
		group, iter   string
		wantIter      string
		wantOrdinal   int64
		wantGroup     string
		also, warning string // comma separated
	}{
		{name: "launched once", launches: launched("k 7 4 10"), wantIter: "1", wantOrdinal: 1, wantGroup: "7:4x1x1", warning: "FIRST_LAUNCH"},
		{name: "twice: the second", launches: launched(times3(2, "k 7 4 10")...), wantIter: "2", wantOrdinal: 2, wantGroup: "7:4x1x1"},
		{name: "three times: the last but one", launches: launched(times3(3, "k 7 4 10")...), wantIter: "2", wantOrdinal: 2, wantGroup: "7:4x1x1"},
		{name: "five times: the last but one", launches: launched(times3(5, "k 7 4 10")...), wantIter: "4", wantOrdinal: 4, wantGroup: "7:4x1x1"},
		{name: "often: the eighth", launches: launched(times3(500, "k 7 4 10")...), wantIter: "8", wantOrdinal: 8, wantGroup: "7:4x1x1"},
		{name: "other kernels between", launches: launched(times3(3, "x 1 1 1", "k 7 4 10")...), wantIter: "2", wantOrdinal: 2, wantGroup: "7:4x1x1"},
		{name: "grids take turns: most time, numbered over both", launches: turns, wantIter: "8", wantOrdinal: 8, wantGroup: "7:8x1x1", warning: "MULTIPLE_GROUPS"},
		{name: "group given", launches: turns, group: "7:4x1x1", wantIter: "7", wantOrdinal: 7, wantGroup: "7:4x1x1"},
		{name: "a number decides the grid", launches: turns, iter: "3", wantIter: "3", wantOrdinal: 3, wantGroup: "7:4x1x1", warning: "MULTIPLE_GROUPS"},
		{name: "group and number", launches: turns, group: "7:8x1x1", iter: "[10]", wantIter: "10", wantOrdinal: 10, wantGroup: "7:8x1x1"},
		{name: "a range over both grids", launches: turns, iter: "3-6", wantIter: "3-6", wantOrdinal: 4, wantGroup: "7:8x1x1", also: "7:4x1x1", warning: "MULTIPLE_GROUPS,ITER_RANGE_PARTIAL,OTHER_GROUPS_FIRE"},
		{name: "kernel ids count apart and both fire", launches: two, iter: "9", wantIter: "9", wantOrdinal: 9, wantGroup: "7:4x1x1", also: "8:16x1x1", warning: "MULTIPLE_GROUPS,OTHER_GROUPS_FIRE"},
		{name: "a number that one kernel id has", launches: two, iter: "11", wantIter: "11", wantOrdinal: 11, wantGroup: "7:4x1x1", warning: "MULTIPLE_GROUPS"},
		{name: "range beyond the end", launches: launched(times3(5, "k 7 4 10")...), iter: "[4, [5-9]]", wantIter: "4-9", wantOrdinal: 4, wantGroup: "7:4x1x1", warning: "ITER_RANGE_PARTIAL"},
		{name: "the first on request", launches: launched(times3(5, "k 7 4 10")...), iter: "1", wantIter: "1", wantOrdinal: 1, wantGroup: "7:4x1x1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := NewInventory(c.launches).ChooseLaunch("k", c.group, c.iter)
			if err != nil {
				t.Fatal(err)
			}
			var also, warnings []string
			for _, g := range got.Also {
				also = append(also, g.ID)
			}
			for _, w := range got.Warnings {
				warnings = append(warnings, w.Code)
			}
			have := fmt.Sprintf("%s at %d of %s, also [%s], warnings [%s]", got.Iter, got.Ordinal, got.Group.ID, strings.Join(also, ","), strings.Join(warnings, ","))
			want := fmt.Sprintf("%s at %d of %s, also [%s], warnings [%s]", c.wantIter, c.wantOrdinal, c.wantGroup, c.also, c.warning)
			if have != want {
				t.Errorf("\nhave %s\nwant %s", have, want)
			}
		})
	}
}

func TestChooseLaunchErrors(t *testing.T) {
	inv := NewInventory(launched(append(times3(5, "k 7 4 10", "k 7 8 20"), "other 3 1 1")...))
	type row struct{ Group, Iter, Launches string }
	both := []row{{"7:8x1x1", "8", "launches 2,4,6,8,10"}, {"7:4x1x1", "7", "launches 1,3,5,7,9"}}
	for _, c := range []struct {
		name, kernel, group, iter string
		code                      envelope.Code
		message                   string
		available                 []row
		candidates                []string
	}{
		{name: "beyond the last", kernel: "k", iter: "500", code: envelope.DispatchOutOfRange, message: "launch 500 of k does not exist: the last is 10", available: both},
		{name: "beyond the last of a group", kernel: "k", group: "7:4x1x1", iter: "10", code: envelope.DispatchOutOfRange, message: "launch 10 of k, group 7:4x1x1, does not exist: the last is 9", available: []row{both[1], both[0]}},
		{name: "a number of the other grid", kernel: "k", group: "7:4x1x1", iter: "4", code: envelope.DispatchOutOfRange, message: "belongs to another grid of the same kernel id; this group has 1,3,5,7,9", available: []row{both[1], both[0]}},
		{name: "no such group", kernel: "k", group: "7:5x1x1", code: envelope.DispatchOutOfRange, message: `k has no launch group "7:5x1x1"`, available: both},
		{name: "zero", kernel: "k", iter: "0", code: envelope.BadArgs, message: "count from 1"},
		{name: "not launched", kernel: "q", code: envelope.NoKernelDiscovered, message: `"q" was not launched`, candidates: []string{"k", "other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := inv.ChooseLaunch(c.kernel, c.group, c.iter)
			var e *envelope.Error
			if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.message) {
				t.Fatalf("error %v, want %s: %s", err, c.code, c.message)
			}
			var available []row
			for _, a := range e.Available {
				available = append(available, row{a.Group, a.IterRange, a.Value})
			}
			var candidates []string
			for _, k := range e.Candidates {
				candidates = append(candidates, k.Kernel)
			}
			if diff := cmp.Diff(c.available, available) + cmp.Diff(c.candidates, candidates); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAvailableExists: whatever the error offers can be asked for.
func TestAvailableExists(t *testing.T) {
	inv := NewInventory(launched(append(times3(40, "k 7 4 10", "k 7 8 20", "k 9 1 1"), "k 11 2 9")...))
	_, err := inv.ChooseLaunch("k", "", "999")
	e := envelope.As(err)
	if len(e.Available) != 4 {
		t.Fatalf("%d choices, want 4", len(e.Available))
	}
	for _, a := range e.Available {
		c, err := inv.ChooseLaunch("k", a.Group, a.IterRange)
		if err != nil || c.Group.ID != a.Group {
			t.Errorf("%s of %s: %s, error %v", a.IterRange, a.Group, c.Group.ID, err)
		}
		if len(a.Value) > 80 {
			t.Errorf("%s lists its launches in %d characters", a.Group, len(a.Value))
		}
	}
}

// TestErrorsStaySmall: names of library kernels have thousands of characters.
func TestErrorsStaySmall(t *testing.T) {
	var rows []string
	long := strings.Repeat("x", 9000)
	for i := range 60 {
		rows = append(rows, fmt.Sprintf("%s %d %d 10", long, i, i+1), fmt.Sprintf("%s%d 1 1 1", long, i))
	}
	inv := NewInventory(launched(rows...))
	for _, args := range [][2]string{{long, "999"}, {"q", ""}} {
		_, err := inv.ChooseLaunch(args[0], "", args[1])
		e := envelope.As(err)
		size := len(e.Message) + len(e.Evidence.Value)
		for _, a := range e.Available {
			size += len(fmt.Sprintf("%+v", a))
		}
		for _, k := range e.Candidates {
			size += len(k.Kernel)
		}
		if size > 8000 {
			t.Errorf("%s: %d characters", e.Code, size)
		}
	}
}

// TestRecordedInventories holds launches against the statistics that rocprofv3 wrote of the same run.
func TestRecordedInventories(t *testing.T) {
	for kernel, want := range map[string]struct {
		dir, group, iter string
		calls            int
		total            int64
	}{
		"flash_attn_func_kernel_0": {"flash_attn_func", "195:512x1x1", "8", 9, 839765},
		"rmsnorm_kernel_0":         {"rmsnorm", "1684:1024x1x1", "8", 111, 874928},
		"vecAddKernel_0":           {"vec_add", "27:10000x1x1", "8", 24, 461564},
	} {
		t.Run(want.dir, func(t *testing.T) {
			launches, err := ReadKernelTrace(capture(t, "csv", "rocm7.2_gfx950", want.dir, "discover_kernel_trace.csv"))
			if err != nil {
				t.Fatal(err)
			}
			inv := NewInventory(launches)
			type sums struct {
				Calls int
				Total int64
			}
			got, stats := map[string]sums{}, map[string]sums{}
			for _, k := range inv.Kernels() {
				got[k.Name] = sums{k.Calls, k.TotalNS}
			}
			for _, row := range plain(t, capture(t, "csv", "rocm7.2_gfx950", want.dir, "discover_kernel_stats.csv")) {
				var s sums
				if _, err := fmt.Sscan(row["Calls"]+" "+row["TotalDurationNs"], &s.Calls, &s.Total); err != nil {
					t.Fatal(err)
				}
				stats[row["Name"]] = s
			}
			if diff := cmp.Diff(stats, got); diff != "" {
				t.Error(diff)
			}
			if got[kernel] != (sums{want.calls, want.total}) {
				t.Errorf("%s: %+v", kernel, got[kernel])
			}
			c, err := inv.ChooseLaunch(kernel, "", "")
			if err != nil || c.Group.ID != want.group || c.Iter != want.iter || len(c.Warnings) != 0 {
				t.Errorf("chose %s of %s, warnings %v, error %v", c.Iter, c.Group.ID, c.Warnings, err)
			}
		})
	}
	launches, err := ReadKernelTrace(capture(t, "csv", "rocm7.2_gfx950", "flash_attn_func", "discover_kernel_trace.csv"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, g := range NewInventory(launches).Groups("__amd_rocclr_copyBuffer") {
		got[g.ID] = g.Ordinals.String()
	}
	if diff := cmp.Diff(map[string]string{"24:1x1x1": "1-2,5", "24:32x1x1": "3-4"}, got); diff != "" {
		t.Error(diff)
	}
}
