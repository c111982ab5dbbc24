package rocprof

import (
	"io"
	"math"
)

// Launch is one row of a kernel trace: one dispatch of one kernel.
type Launch struct {
	// Kernel is the demangled name, KernelID the number of the symbol in its process: the same name loaded by several code
	// objects has several.
	Kernel   string
	KernelID int64
	// DispatchID counts the dispatches of a process over all kernels, from 1.
	DispatchID int64
	// Agent is the GPU in rocprofv3's words: "Agent 2", "GPU 0", or a bare number (until ROCm 6.4). See AgentOf.
	Agent string
	// Process tells processes apart where the file does (Guid of a database export); empty otherwise.
	Process string
	// QueueID, StreamID and ThreadID only tell things apart.
	QueueID, StreamID, ThreadID int64
	// StartNS and EndNS are timestamps of the same clock.
	StartNS, EndNS int64
	// Grid and Workgroup are x, y and z in work-items, as HSA counts them. See Workgroups.
	Grid, Workgroup [3]int64
	// Registers a lane, as the file has them: VGPR is half the truth on gfx950 up to SDK 1.1.0. HasRegisters is false where the
	// version writes none (ROCm 6.4).
	VGPR, AccumVGPR, SGPR int64
	HasRegisters          bool
	// LDSBytes is of a workgroup, Scratch in bytes a work-item.
	LDSBytes, Scratch int64
}

// DurationNS is how long the launch ran, 0 where its timestamps are reversed.
func (l Launch) DurationNS() int64 {
	if l.EndNS <= l.StartNS {
		return 0
	}
	return l.EndNS - l.StartNS
}

// WorkgroupGrid is the grid in workgroups: a last workgroup that is only partly filled counts.
func (l Launch) WorkgroupGrid() [3]int64 {
	var out [3]int64
	for i := range out {
		grid, group := max(l.Grid[i], 1), max(l.Workgroup[i], 1)
		out[i] = (grid-1)/group + 1
	}
	return out
}

// Workgroups is the number of workgroups of the launch.
func (l Launch) Workgroups() int64 {
	g := l.WorkgroupGrid()
	return times(times(g[0], g[1]), g[2])
}

// times multiplies positive numbers and stops at the largest.
func times(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// plus adds numbers of 0 or more and stops at the largest.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// The columns of a kernel trace (source/lib/output/generateCSV.cpp; rocpd/csv.py for the export).
const (
	ktKind = iota
	ktAgent
	ktQueue
	ktStream
	ktThread
	ktDispatch
	ktKernelID
	ktKernel
	ktStart
	ktEnd
	ktLDS
	ktScratch
	ktVGPR
	ktAccum
	ktSGPR
	ktGroupX
	ktGroupY
	ktGroupZ
	ktGridX
	ktGridY
	ktGridZ
	ktGuid
)

func kernelTraceColumns() []column {
	return []column{
		ktKind: may("Kind"), ktAgent: may("Agent_Id"), ktQueue: may("Queue_Id"), ktStream: may("Stream_Id"), ktThread: may("Thread_Id"),
		ktDispatch: need("Dispatch_Id"), ktKernelID: need("Kernel_Id"), ktKernel: need("Kernel_Name"),
		ktStart: need("Start_Timestamp"), ktEnd: need("End_Timestamp"),
		// Until ROCm 6.4 the segments of the HSA packet stood in place of the registers.
		ktLDS: may("LDS_Block_Size", "Group_Segment_Size"), ktScratch: may("Scratch_Size", "Private_Segment_Size"),
		ktVGPR: may("VGPR_Count"), ktAccum: may("Accum_VGPR_Count"), ktSGPR: may("SGPR_Count"),
		ktGroupX: need("Workgroup_Size_X"), ktGroupY: need("Workgroup_Size_Y"), ktGroupZ: need("Workgroup_Size_Z"),
		ktGridX: need("Grid_Size_X"), ktGridY: need("Grid_Size_Y"), ktGridZ: need("Grid_Size_Z"),
		ktGuid: may("Guid"),
	}
}

// ReadKernelTrace reads <name>_kernel_trace.csv of any version, in the file's order, which is not the order of dispatch. An
// empty file has no launches. The error names the columns that are missing, or line and column of a bad value.
func ReadKernelTrace(r io.Reader) ([]Launch, error) {
	t, err := openTable(r, kernelTraceColumns())
	if t == nil || err != nil {
		return nil, err
	}
	var out []Launch
	kept := names{}
	for {
		more, err := t.next()
		if err != nil || !more {
			return out, err
		}
		if kind := t.text(ktKind); kind != "" && kind != "KERNEL_DISPATCH" {
			continue
		}
		l := Launch{
			Kernel: kept.keep(t.text(ktKernel)), Agent: kept.keep(t.text(ktAgent)), Process: kept.keep(t.text(ktGuid)),
			QueueID: t.ident(ktQueue), StreamID: t.ident(ktStream), ThreadID: t.ident(ktThread), HasRegisters: t.text(ktVGPR) != "",
		}
		err = t.counts([]cell{
			{ktKernelID, &l.KernelID}, {ktDispatch, &l.DispatchID}, {ktStart, &l.StartNS}, {ktEnd, &l.EndNS},
			{ktLDS, &l.LDSBytes}, {ktScratch, &l.Scratch}, {ktVGPR, &l.VGPR}, {ktAccum, &l.AccumVGPR}, {ktSGPR, &l.SGPR},
			{ktGroupX, &l.Workgroup[0]}, {ktGroupY, &l.Workgroup[1]}, {ktGroupZ, &l.Workgroup[2]},
			{ktGridX, &l.Grid[0]}, {ktGridY, &l.Grid[1]}, {ktGridZ, &l.Grid[2]},
		})
		if err != nil {
			return out, err
		}
		out = append(out, l)
	}
}

// KernelStat is one row of kernel_stats.csv: all launches of one name together, over all kernel ids and grids.
type KernelStat struct {
	Name     string
	Calls    int64
	TotalNS  int64
	AvgNS    float64
	Percent  float64
	MinNS    int64
	MaxNS    int64
	StdDevNS float64
}

const (
	ksName = iota
	ksCalls
	ksTotal
	ksAvg
	ksPercent
	ksMin
	ksMax
	ksDev
)

func kernelStatsColumns() []column {
	return []column{
		ksName: need("Name"), ksCalls: need("Calls"), ksTotal: need("TotalDurationNs"), ksAvg: may("AverageNs"),
		ksPercent: may("Percentage"), ksMin: may("MinNs"), ksMax: may("MaxNs"), ksDev: may("StdDev"),
	}
}

// ReadKernelStats reads <name>_kernel_stats.csv or <name>_domain_stats.csv, which have the same columns in every version.
// Errors as ReadKernelTrace.
func ReadKernelStats(r io.Reader) ([]KernelStat, error) {
	t, err := openTable(r, kernelStatsColumns())
	if t == nil || err != nil {
		return nil, err
	}
	var out []KernelStat
	kept := names{}
	for {
		more, err := t.next()
		if err != nil || !more {
			return out, err
		}
		s := KernelStat{Name: kept.keep(t.text(ksName))}
		if err := t.counts([]cell{{ksCalls, &s.Calls}, {ksTotal, &s.TotalNS}, {ksMin, &s.MinNS}, {ksMax, &s.MaxNS}}); err != nil {
			return out, err
		}
		for _, f := range []struct {
			col int
			to  *float64
		}{{ksAvg, &s.AvgNS}, {ksPercent, &s.Percent}, {ksDev, &s.StdDevNS}} {
			if *f.to, _, err = t.float(f.col); err != nil {
				return out, err
			}
		}
		out = append(out, s)
	}
}

// CounterRow is one value of one counter in one dispatch. A counter may have several rows in a dispatch, one for each instance.
type CounterRow struct {
	Counter string
	// Value is 0 where HasValue is false: a derived counter that divided by zero.
	Value    float64
	HasValue bool
	Kernel   string
	// KernelID is 0 in files of before ROCm 6.3.
	KernelID, DispatchID int64
	Agent                string
	// GridItems and WorkgroupItems are the whole grid and workgroup in work-items.
	GridItems, WorkgroupItems int64
	// StartNS and EndNS are 0 in files of before ROCm 6.4.
	StartNS, EndNS int64
}

const (
	ccDispatch = iota
	ccKernelID
	ccKernel
	ccAgent
	ccCounter
	ccValue
	ccGrid
	ccGroup
	ccStart
	ccEnd
)

func counterColumns() []column {
	return []column{
		ccDispatch: need("Dispatch_Id"), ccKernelID: may("Kernel_Id"), ccKernel: need("Kernel_Name"), ccAgent: may("Agent_Id"),
		ccCounter: need("Counter_Name"), ccValue: need("Counter_Value"), ccGrid: may("Grid_Size"), ccGroup: may("Workgroup_Size"),
		ccStart: may("Start_Timestamp"), ccEnd: may("End_Timestamp"),
	}
}

// EachCounter reads <name>_counter_collection.csv row by row. It ends with the first error of each, or its own, which are
// those of ReadKernelTrace.
func EachCounter(r io.Reader, each func(CounterRow) error) error {
	t, err := openTable(r, counterColumns())
	if t == nil || err != nil {
		return err
	}
	kept := names{}
	for {
		more, err := t.next()
		if err != nil || !more {
			return err
		}
		c := CounterRow{Counter: kept.keep(t.text(ccCounter)), Kernel: kept.keep(t.text(ccKernel)), Agent: kept.keep(t.text(ccAgent))}
		if c.Value, c.HasValue, err = t.float(ccValue); err != nil {
			return err
		}
		err = t.counts([]cell{{ccDispatch, &c.DispatchID}, {ccKernelID, &c.KernelID}, {ccGrid, &c.GridItems}, {ccGroup, &c.WorkgroupItems}, {ccStart, &c.StartNS}, {ccEnd, &c.EndNS}})
		if err != nil {
			return err
		}
		if err := each(c); err != nil {
			return err
		}
	}
}

// ReadCounters is EachCounter into a slice.
func ReadCounters(r io.Reader) ([]CounterRow, error) {
	var out []CounterRow
	err := EachCounter(r, func(c CounterRow) error {
		out = append(out, c)
		return nil
	})
	return out, err
}
