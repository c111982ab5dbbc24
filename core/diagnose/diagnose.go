// Package diagnose explains a thread trace that holds nothing of the kernel, from the files that rocprofv3 left. A capture asks
// it what to try next, triage asks it about directories by whomever they were captured.
//
// What each sign means is in the facts of rocprofv3: silence where nothing matched, .att files of header size from an idle
// engine, "code":null where no wave ran on the traced CU, occupancy.json over all CUs of the traced engines.
package diagnose

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

// Kind is what sort of empty a trace is.
type Kind string

// The kinds, in the order in which they are looked for.
const (
	// BufferFull: the buffer was full before a wave of the traced CU began.
	BufferFull Kind = "buffer_full"
	// OtherKernel: the trace holds another kernel than the one that was asked for.
	OtherKernel Kind = "other_kernel"
	// Elsewhere: waves ran on other CUs of the traced shader engines.
	Elsewhere Kind = "elsewhere"
	// OtherGPU: the traced GPU is not the one that ran the kernel.
	OtherGPU Kind = "other_gpu"
	// IdleEngines: the trace was armed, and nothing ran on the traced shader engines.
	IdleEngines Kind = "idle_engines"
	// Corrupt: the files of the trace cannot be read.
	Corrupt Kind = "corrupt"
	// NotDecoded: raw traces hold data, and no decoder made anything of them.
	NotDecoded Kind = "not_decoded"
	// NotLaunched: the kernel was not launched in this process.
	NotLaunched Kind = "not_launched"
	// OtherProcess: no process launched the kernel as often as the launch number needs, several together did.
	OtherProcess Kind = "other_process"
	// NeverReached: the kernel was launched fewer times than the launch number.
	NeverReached Kind = "never_reached"
	// NotSelected: the kernel was launched, as often as needed where that is known, and no trace was armed: the name filter did not match.
	NotSelected Kind = "not_selected"
	// Silent: nothing tells what was launched.
	Silent Kind = "silent"
)

// KindInfo describes a kind for readers.
type KindInfo struct {
	Kind Kind
	// Shows is how it is recognised, Tries what a capture does about it unasked, where the caller left that open.
	Shows, Tries string
}

// Kinds gives all kinds in the order in which they are looked for.
func Kinds() []KindInfo {
	return []KindInfo{
		{BufferFull, "a dispatch directory without waves, and the log's line that the buffer was full", "twice the buffer"},
		{OtherKernel, "the rows of code.json are of another kernel or launch", ""},
		{Elsewhere, "code.json without rows, and occupancy.json with waves on other CUs", "the CU that had waves in most shader engines, on all engines"},
		{OtherGPU, ".att files of header size only, and launches by another agent", "the same GPU under the number that rocprofv3 gives it; never another GPU"},
		{IdleEngines, "no wave in occupancy.json, or .att files of header size only", "all shader engines"},
		{Corrupt, "a dispatch directory that cannot be read", ""},
		{NotDecoded, ".att files with data, and no dispatch directory", ""},
		{NotLaunched, "no .att file, and a kernel trace that does not list the kernel", ""},
		{NeverReached, "no .att file, and fewer launches in the kernel trace than the launch number", "a launch that the traced run has"},
		{OtherProcess, "the same, with enough launches over several processes", "a launch that one process has"},
		{NotSelected, "no .att file, and the launches are there", ""},
		{Silent, "no .att file, and a kernel trace without a row", ""},
	}
}

// Facts are what lies on disk, and what is known of the job; what is not known stays zero.
type Facts struct {
	Files      rocprof.Outputs
	Dispatches []Dispatch
	// Launches are of the kernel traces beside the dispatch directories, with Process set; Agents of the agent info.
	Launches []rocprof.Launch
	Agents   []rocprof.Agent
	Log      rocprof.Report
	// Kernel, Iter and GPUIndex are what the job asked for: the symbol, the launches, the number of the GPU; nil for an unknown GPU.
	Kernel   string
	Iter     rocprof.IterSet
	GPUIndex *int
}

// Dispatch is one dispatch directory that was judged.
type Dispatch struct {
	// Dir names it for people; State is att's; What says why it is not kept.
	Dir, State, What string
	// Ins counts instruction rows of the kernel; Holds are kernels that the directory names.
	Ins   int
	Holds []string
	// Busy are the CUs that had waves, by shader engine.
	Busy map[int][]int
}

// Diagnosis is why there is no trace.
type Diagnosis struct {
	Kind       Kind
	Code       envelope.Code
	Cause      string
	Confidence envelope.Confidence
	// Evidence names files with figures; Do says what helps.
	Evidence []string
	Do       string
	// Dispatch is the directory that shows it; nil where none does.
	Dispatch *Dispatch
	// CU is the one that had waves in most engines, Engines in how many, for Elsewhere.
	CU, Engines int
	// Agent is the GPU that ran the kernel, for OtherGPU.
	Agent rocprof.Agent
	// Inventory is what was launched, as far as it is known.
	Inventory rocprof.Inventory
}

// Empty explains a directory without a trace of the kernel; nil where a dispatch was kept.
func Empty(f Facts) *Diagnosis {
	for _, d := range f.Dispatches {
		if d.State == att.Kept {
			return nil
		}
	}
	s := signs{Facts: f, inventory: rocprof.NewInventory(f.Launches)}
	s.count()
	for _, look := range []func(*signs) *Diagnosis{bufferFull, otherKernel, elsewhere, otherGPU, idleEngines, corrupt, notDecoded, notLaunched, neverReached, notSelected, silent} {
		if d := look(&s); d != nil {
			d.Inventory = s.inventory
			return d
		}
	}
	return nil
}

// signs are the facts with what is counted from them.
type signs struct {
	Facts
	inventory rocprof.Inventory
	// empty is the empty dispatch with the most engines at work, bad an unreadable one.
	empty, bad *Dispatch
	headerOnly int
}

func (s *signs) count() {
	for i := range s.Dispatches {
		switch d := &s.Dispatches[i]; d.State {
		case att.Empty:
			if s.empty == nil || len(d.Busy) > len(s.empty.Busy) {
				s.empty = d
			}
		default:
			s.bad = d
		}
	}
	for _, file := range s.Files.ATTFiles {
		if file.HeaderOnly() {
			s.headerOnly++
		}
	}
}

// raw and grid are the lines of evidence that most kinds have.
func (s *signs) raw() string {
	return fmt.Sprintf("%d .att files, %d of them of header size", len(s.Files.ATTFiles), s.headerOnly)
}

func (s *signs) grid() string {
	var list []string
	for _, k := range s.inventory.Kernels() {
		if s.Kernel != "" && k.Name != s.Kernel {
			continue
		}
		for _, g := range s.inventory.Groups(k.Name) {
			if len(list) == maxGroups {
				return strings.Join(list, "; ") + "; ..."
			}
			list = append(list, fmt.Sprintf("%.80s: %d launches of %d workgroups", k.Name, g.Launches, g.Workgroups))
		}
	}
	if len(list) == 0 {
		return "no kernel trace beside it lists the kernel, so the size of its grid is not known"
	}
	return strings.Join(list, "; ")
}

const maxGroups = 3

func (s *signs) warned(id string) bool {
	for _, w := range s.Log.Warnings {
		if w.ID == id {
			return true
		}
	}
	return false
}

func bufferFull(s *signs) *Diagnosis {
	if s.empty == nil || len(s.empty.Busy) > 0 || !s.warned("BUFFER_FULL") {
		return nil
	}
	return &Diagnosis{
		Kind: BufferFull, Code: envelope.EmptyATT, Dispatch: s.empty, Confidence: envelope.High, Cause: "the trace buffer was full before a wave of the traced CU began",
		Evidence: []string{"the log says that the buffer was full", s.raw()}, Do: "trace with a larger att_buffer_size, or fewer shader engines: they share it",
	}
}

func otherKernel(s *signs) *Diagnosis {
	if s.empty == nil || s.empty.Ins == 0 || s.Kernel == "" {
		return nil
	}
	return &Diagnosis{
		Kind: OtherKernel, Code: envelope.EmptyATT, Dispatch: s.empty, Confidence: envelope.High, Cause: s.empty.What,
		Evidence: []string{s.empty.Dir + "/code.json"}, Do: "anchor the name filter, or ask for the kernel that the trace holds",
	}
}

func elsewhere(s *signs) *Diagnosis {
	if s.empty == nil || len(s.empty.Busy) == 0 {
		return nil
	}
	d := &Diagnosis{
		Kind: Elsewhere, Code: envelope.EmptyATT, Dispatch: s.empty, Confidence: envelope.High, Cause: "the kernel ran, and none of its workgroups on the traced CU",
		Evidence: []string{fmt.Sprintf(`%s/code.json has "code":null`, s.empty.Dir), fmt.Sprintf("%s/occupancy.json has waves on %d shader engines, on other CUs", s.empty.Dir, len(s.empty.Busy)), s.grid()},
		Do:       "enlarge the leading dimension so that the grid reaches every CU, or trace a CU that had work over all shader engines",
	}
	d.CU, d.Engines = att.BusiestCU(s.empty.Busy)
	return d
}

// otherGPU needs a trace of nothing, the number of the GPU that was to be traced, and the agent that the kernel's launches name.
func otherGPU(s *signs) *Diagnosis {
	if s.GPUIndex == nil || s.headerOnly < len(s.Files.ATTFiles) || s.empty == nil && len(s.Files.ATTFiles) == 0 {
		return nil
	}
	agent, ok := rocprof.AgentOf(s.Agents, s.ofKernel())
	if !ok || agent.Index == *s.GPUIndex {
		return nil
	}
	return &Diagnosis{
		Kind: OtherGPU, Code: envelope.EmptyATT, Dispatch: s.empty, Confidence: envelope.High, Agent: agent,
		Cause:    fmt.Sprintf("GPU %d was traced, and the kernel ran on GPU %d (%s) in rocprofv3's numbering", *s.GPUIndex, agent.Index, agent.BDF()),
		Evidence: []string{s.raw(), "the kernel trace names the agent of the launches", s.grid()}, Do: "trace the GPU that runs the kernel, and let the test leave the visible-devices masks alone",
	}
}

// ofKernel are the launches of the kernel, all where no kernel is named.
func (s *signs) ofKernel() []rocprof.Launch {
	if s.Kernel == "" {
		return s.Launches
	}
	var out []rocprof.Launch
	for _, l := range s.Launches {
		if l.Kernel == s.Kernel {
			out = append(out, l)
		}
	}
	return out
}

func idleEngines(s *signs) *Diagnosis {
	idle := len(s.Files.ATTFiles) > 0 && s.headerOnly == len(s.Files.ATTFiles)
	if s.empty == nil && (s.bad != nil || !idle) {
		return nil
	}
	d := &Diagnosis{
		Kind: IdleEngines, Code: envelope.EmptyATT, Dispatch: s.empty, Confidence: envelope.Medium, Cause: "nothing ran on the traced shader engines while the trace was armed", Evidence: []string{s.raw(), s.grid()},
		Do: "trace shader engines of every XCD (att_shader_engine_mask 0x11111111 or 0xffffffff), and check that the traced GPU is the one that ran the kernel: att_gpu_index counts all GPUs of the driver, whatever the visible-devices masks say",
	}
	if s.empty != nil {
		d.Evidence = append([]string{s.empty.Dir + "/occupancy.json has no wave, or is not there"}, d.Evidence...)
	}
	if idle {
		d.Confidence = envelope.High
		if s.GPUIndex == nil {
			d.Cause = "the traced shader engines were idle, or another GPU than the one that ran the kernel was traced"
		}
	}
	return d
}

func corrupt(s *signs) *Diagnosis {
	if s.bad == nil {
		return nil
	}
	return &Diagnosis{Kind: Corrupt, Code: envelope.TraceCorrupt, Dispatch: s.bad, Cause: s.bad.What, Confidence: envelope.High, Evidence: []string{s.bad.Dir}, Do: "capture again; report the damage if it comes back"}
}

func notDecoded(s *signs) *Diagnosis {
	if len(s.Files.ATTFiles) == 0 {
		return nil
	}
	return &Diagnosis{
		Kind: NotDecoded, Code: envelope.DecoderMissing, Confidence: envelope.High, Cause: "the kernel was traced and the trace was not decoded",
		Evidence: []string{s.raw(), "no ui_output directory"}, Do: "install the trace decoder for rocprofv3, or set its directory, and capture again",
	}
}

func notLaunched(s *signs) *Diagnosis {
	if s.Kernel == "" || len(s.Launches) == 0 || len(s.inventory.Groups(s.Kernel)) > 0 {
		return nil
	}
	names := make([]string, 0, maxGroups)
	for _, k := range s.inventory.Kernels() {
		if len(names) < maxGroups {
			names = append(names, fmt.Sprintf("%.80s", k.Name))
		}
	}
	return &Diagnosis{
		Kind: NotLaunched, Code: envelope.EmptyATT, Confidence: envelope.High, Cause: fmt.Sprintf("%.120s was not launched in the traced run", s.Kernel),
		Evidence: []string{"no .att file", fmt.Sprintf("the kernel trace lists %d other kernels: %s", len(s.inventory.Kernels()), strings.Join(names, ", "))},
		Do:       "look why the test takes another way under the profiler; name a kernel that it launches",
	}
}

// neverReached compares the launch number with what each process launched: rocprofv3 counts in one process and one kernel id.
func neverReached(s *signs) *Diagnosis {
	groups := s.inventory.Groups(s.Kernel)
	if s.Iter.Len() == 0 || len(groups) == 0 {
		return nil
	}
	first, total := s.Iter.At(1), int64(0)
	processes := map[string]bool{}
	for _, l := range s.ofKernel() {
		processes[l.Process] = true
		total++
	}
	var most int64
	for _, g := range groups {
		most = max(most, g.Ordinals.Max())
	}
	if most >= first {
		return nil
	}
	d := &Diagnosis{
		Kind: NeverReached, Code: envelope.EmptyATT, Confidence: envelope.High, Cause: fmt.Sprintf("launch %s never came: the kernel was launched %d times in the traced run", s.Iter, most),
		Evidence: []string{"no .att file", s.grid()}, Do: "take a launch that the traced run has, counted from 1 within its kernel id",
	}
	if len(processes) > 1 && total >= first {
		d.Kind = OtherProcess
		d.Cause = fmt.Sprintf("launch %s never came in any of %d processes: each counts for itself, the most is %d", s.Iter, len(processes), most)
		d.Do = "take a launch that one process has, or trace a test that launches the kernel in a single process"
	}
	return d
}

func notSelected(s *signs) *Diagnosis {
	if len(s.ofKernel()) == 0 {
		return nil
	}
	d := &Diagnosis{
		Kind: NotSelected, Code: envelope.EmptyATT, Confidence: envelope.Medium, Cause: "the kernel was launched and no trace was armed: the launch number never came, or the name filter did not match",
		Evidence: []string{"no .att file", s.grid()}, Do: "take a launch that the list of launches has, counted from 1 within its kernel id, and give the symbol as the kernel trace has it",
	}
	if s.Iter.Len() > 0 {
		d.Cause, d.Do = "the kernel was launched often enough and no trace was armed: the name filter did not match, or the trace could not be set up", "give the symbol as the kernel trace has it, and read the log of the step"
	}
	return d
}

func silent(s *signs) *Diagnosis {
	if len(s.Files.KernelTraces) == 0 {
		return nil
	}
	return &Diagnosis{
		Kind: Silent, Code: envelope.EmptyATT, Confidence: envelope.Low, Cause: "nothing was traced, and the kernel trace lists no launch",
		Evidence: []string{"no .att file", filepath.Base(s.Files.KernelTraces[0]) + " has no row"}, Do: "read the log: the workload may have launched nothing, or in a process that the profiler was not in",
	}
}
