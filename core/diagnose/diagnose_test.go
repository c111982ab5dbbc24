package diagnose

import (
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

// launches are n launches of a kernel in one process.
func launches(kernel, process string, n int) []rocprof.Launch {
	var out []rocprof.Launch
	for i := range n {
		out = append(out, rocprof.Launch{Kernel: kernel, KernelID: 7, DispatchID: int64(i + 1), Process: process, Agent: "Agent 3", Grid: [3]int64{256, 1, 1}, Workgroup: [3]int64{64, 1, 1}})
	}
	return out
}

// raw are trace files of those sizes.
func raw(bytes ...int64) rocprof.Outputs {
	o := rocprof.Outputs{KernelTraces: []string{"/run/out_kernel_trace.csv"}}
	for i, n := range bytes {
		o.ATTFiles = append(o.ATTFiles, rocprof.ATTFile{Bytes: n, ShaderEngine: i})
	}
	return o
}

func iter(t *testing.T, text string) rocprof.IterSet {
	t.Helper()
	set, err := rocprof.ParseIterRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestEmpty: each kind of empty by the signs that show it.
func TestEmpty(t *testing.T) {
	t.Parallel()
	gpu0, gpu1 := 0, 1
	agents := []rocprof.Agent{{Name: "gfx950", Index: 0, Logical: 2}, {Name: "gfx950", Index: 1, Logical: 3}}
	empty := Dispatch{Dir: "ui", State: att.Empty, What: "no wave of k was traced"}
	busy := empty
	busy.Busy = map[int][]int{0: {3, 4}, 1: {4}}
	other := empty
	other.Ins, other.What = 20, "the trace holds j and not k"
	full := rocprof.Report{Warnings: []rocprof.Finding{{ID: "BUFFER_FULL"}}}
	cases := map[string]struct {
		facts Facts
		kind  Kind
		code  envelope.Code
		says  string
	}{
		"waves on other CUs":          {Facts{Files: raw(9000), Dispatches: []Dispatch{empty, busy}, Launches: launches("k", "p", 9), Kernel: "k"}, Elsewhere, envelope.EmptyATT, "2 shader engines"},
		"nothing on these engines":    {Facts{Files: raw(9000), Dispatches: []Dispatch{empty}, Launches: launches("k", "p", 9), Kernel: "k"}, IdleEngines, envelope.EmptyATT, "occupancy.json has no wave"},
		"header-size files only":      {Facts{Files: raw(424, 424)}, IdleEngines, envelope.EmptyATT, "2 of them of header size"},
		"another GPU by its agent":    {Facts{Files: raw(424), Launches: launches("k", "p", 9), Agents: agents, Kernel: "k", GPUIndex: &gpu0}, OtherGPU, envelope.EmptyATT, "ran on GPU 1"},
		"the right GPU and idle":      {Facts{Files: raw(424), Launches: launches("k", "p", 9), Agents: agents, Kernel: "k", GPUIndex: &gpu1}, IdleEngines, envelope.EmptyATT, "header size"},
		"a full buffer":               {Facts{Files: raw(9000), Dispatches: []Dispatch{empty}, Log: full, Kernel: "k"}, BufferFull, envelope.EmptyATT, "full"},
		"another kernel":              {Facts{Files: raw(9000), Dispatches: []Dispatch{other}, Kernel: "k"}, OtherKernel, envelope.EmptyATT, "code.json"},
		"an unreadable directory":     {Facts{Files: raw(9000), Dispatches: []Dispatch{{Dir: "ui", State: att.Bad, What: "torn"}}}, Corrupt, envelope.TraceCorrupt, "ui"},
		"no decoder":                  {Facts{Files: raw(9000, 424)}, NotDecoded, envelope.DecoderMissing, "no ui_output"},
		"not launched":                {Facts{Files: raw(), Launches: launches("j", "p", 9), Kernel: "k", Iter: iter(t, "8")}, NotLaunched, envelope.EmptyATT, "1 other kernels: j"},
		"launched too seldom":         {Facts{Files: raw(), Launches: launches("k", "p", 3), Kernel: "k", Iter: iter(t, "8")}, NeverReached, envelope.EmptyATT, "3 launches"},
		"launched by two processes":   {Facts{Files: raw(), Launches: append(launches("k", "p", 5), launches("k", "q", 5)...), Kernel: "k", Iter: iter(t, "8")}, OtherProcess, envelope.EmptyATT, "launches"},
		"launched and never selected": {Facts{Files: raw(), Launches: launches("k", "p", 9), Kernel: "k", Iter: iter(t, "8")}, NotSelected, envelope.EmptyATT, "9 launches of 4 workgroups"},
		"nothing is known of the job": {Facts{Files: raw(), Launches: launches("k", "p", 9)}, NotSelected, envelope.EmptyATT, "no .att file"},
		"an empty list of launches":   {Facts{Files: raw(), Kernel: "k"}, Silent, envelope.EmptyATT, "has no row"},
	}
	for name, c := range cases {
		d := Empty(c.facts)
		if d == nil || d.Kind != c.kind || d.Code != c.code || d.Cause == "" || d.Do == "" || d.Confidence == "" {
			t.Errorf("%s: %+v", name, d)
			continue
		}
		if all := d.Cause + strings.Join(d.Evidence, "\n"); !strings.Contains(all, c.says) {
			t.Errorf("%s: %q is not in %s", name, c.says, all)
		}
	}
	seen := map[Kind]bool{}
	for _, c := range cases {
		seen[c.kind] = true
	}
	for _, k := range Kinds() {
		if !seen[k.Kind] || k.Shows == "" {
			t.Errorf("%s has no case, or no sign", k.Kind)
		}
	}
	if d := Empty(Facts{Dispatches: []Dispatch{empty, {State: att.Kept}}}); d != nil {
		t.Errorf("a trace was kept: %+v", d)
	}
	if d := Empty(Facts{}); d != nil {
		t.Errorf("nothing at all: %+v", d)
	}
	if d := Empty(Facts{Dispatches: []Dispatch{busy}}); d.CU != 4 || d.Engines != 2 {
		t.Errorf("CU %d on %d engines", d.CU, d.Engines)
	}
}
