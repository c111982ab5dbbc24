package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// table is a CSV as generateCSV.cpp writes it: every string quoted, header included, numbers bare.
type table struct{ bytes.Buffer }

func newTable(header string) *table {
	t := &table{}
	for i, name := range strings.Split(header, ",") {
		if i > 0 {
			t.WriteByte(',')
		}
		t.WriteString(`"` + name + `"`)
	}
	t.WriteByte('\n')
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			t.WriteByte(',')
		}
		if text, ok := c.(string); ok {
			t.WriteString(`"` + text + `"`)
		} else {
			fmt.Fprint(t, c)
		}
	}
	t.WriteByte('\n')
}

// decimals is a float that is printed with a fixed number of decimals.
func decimals(v float64, n int) json.Number { return json.Number(fmt.Sprintf("%.*f", n, v)) }

// writeTables writes what the output formats ask for.
func (s *session) writeTables() {
	for _, format := range s.cfg.formats {
		switch format {
		case "csv":
			s.writeCSV()
		case "json":
			s.writeText(s.cfg.prefix+"_results.json", true, s.resultsJSON())
		case "rocpd":
			s.writeText(s.cfg.prefix+"_results.db", true, []byte("SQLite format 3\x00 simulated: no tables\n"))
		}
	}
}

func (s *session) writeCSV() {
	if s.cfg.kernelTrace && len(s.dispatches) > 0 {
		s.writeText(s.cfg.prefix+"_kernel_trace.csv", true, s.kernelTrace())
	}
	if s.counting() {
		if rows := s.counterRows(); rows != nil {
			s.writeText(s.cfg.prefix+"_counter_collection.csv", true, rows)
		}
	}
	if s.cfg.stats && s.cfg.kernelTrace && len(s.dispatches) > 0 {
		kernels, domain := s.statTables()
		s.writeText(s.cfg.prefix+"_kernel_stats.csv", true, kernels)
		s.writeText(s.cfg.prefix+"_domain_stats.csv", true, domain)
	}
	s.writeText(s.cfg.prefix+"_agent_info.csv", true, s.agentInfo())
}

// csvRegisters are the register columns. rocprofv3 1.1.0 decodes VGPRs in granules of 4 on gfx950, where they are
// allocated in granules of 8: it shows half.
func (s *session) csvRegisters(o *kernelObject) (arch, acc, sgpr int) {
	total := allocated(o)
	if s.model.csvGranule == 4 {
		return total / 2, 0, 112
	}
	if o.acc > 0 {
		return align(o.arch, 4), total - align(o.arch, 4), 112
	}
	return total, 0, 112
}

func align(n, to int) int { return (n + to - 1) / to * to }

// allocated is LLVM's rule for gfx90a and later: align8(align4(arch) + accum), or align8(arch).
func allocated(o *kernelObject) int {
	if o.acc > 0 {
		return align(align(o.arch, 4)+o.acc, 8)
	}
	return align(max(o.arch, 1), 8)
}

// items is the grid in work-items, which is what the CSVs show.
func (o *kernelObject) items() [3]int {
	return [3]int{o.grid[0] * o.block[0], o.grid[1] * o.block[1], o.grid[2] * o.block[2]}
}

func (o *kernelObject) workgroups() int { return o.grid[0] * o.grid[1] * o.grid[2] }
func (o *kernelObject) wavesPerGroup() int {
	return max(1, (o.block[0]*o.block[1]*o.block[2]+63)/64)
}

func (s *session) kernelTrace() []byte {
	if s.set.has("old_rocprof", "") {
		t := newTable("Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z")
		for _, d := range s.dispatches {
			o, grid := d.object, d.object.items()
			t.row("KERNEL_DISPATCH", firstGPUNode+s.gpu, 1, s.pid, d.id, o.kernelID, s.formatted(o.kernel), d.id, d.startNS, d.endNS, 0, o.lds,
				o.block[0], o.block[1], o.block[2], grid[0], grid[1], grid[2])
		}
		return t.Bytes()
	}
	t := newTable("Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z")
	for _, d := range s.dispatches {
		o, grid := d.object, d.object.items()
		arch, acc, sgpr := s.csvRegisters(o)
		t.row("KERNEL_DISPATCH", s.agentName(), 1, 0, s.pid, d.id, o.kernelID, s.formatted(o.kernel), d.id, d.startNS, d.endNS, align(o.lds, 512), 0, arch, acc, sgpr,
			o.block[0], o.block[1], o.block[2], grid[0], grid[1], grid[2])
	}
	return t.Bytes()
}

func (s *session) agentName() string { return fmt.Sprintf("Agent %d", firstGPUNode+max(s.gpu, 0)) }

// statTables give kernel_stats (by name, longest total first) and domain_stats.
func (s *session) statTables() (kernels, domain []byte) {
	byName := map[string][]int64{}
	var all []int64
	for _, d := range s.dispatches {
		name := s.formatted(d.object.kernel)
		byName[name] = append(byName[name], d.endNS-d.startNS)
		all = append(all, d.endNS-d.startNS)
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	total := sum(all)
	sort.Slice(names, func(i, j int) bool {
		a, b := sum(byName[names[i]]), sum(byName[names[j]])
		return a > b || a == b && names[i] < names[j]
	})
	const header = "Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs,MaxNs,StdDev"
	k, d := newTable(header), newTable(header)
	for _, name := range names {
		statRow(k, name, byName[name], total)
	}
	statRow(d, "KERNEL_DISPATCH", all, total)
	return k.Bytes(), d.Bytes()
}

func statRow(t *table, name string, ns []int64, total int64) {
	n, mine := float64(len(ns)), sum(ns)
	mean, square := float64(mine)/n, 0.0
	for _, v := range ns {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	t.row(name, len(ns), mine, decimals(mean, 6), decimals(100*float64(mine)/float64(total), 2), slices.Min(ns), slices.Max(ns), decimals(math.Sqrt(square/n), 6))
}

func sum(list []int64) (total int64) {
	for _, v := range list {
		total += v
	}
	return total
}

// agentInfo has the 53 columns of rocprofv3's agent_info.csv: two CPU nodes, then the GPUs. Masked GPUs are listed too.
func (s *session) agentInfo() []byte {
	t := newTable("Node_Id,Logical_Node_Id,Agent_Type,Cpu_Cores_Count,Simd_Count,Cpu_Core_Id_Base,Simd_Id_Base,Max_Waves_Per_Simd,Lds_Size_In_Kb,Gds_Size_In_Kb,Num_Gws,Wave_Front_Size,Num_Xcc,Cu_Count,Array_Count,Num_Shader_Banks,Simd_Arrays_Per_Engine,Cu_Per_Simd_Array,Simd_Per_Cu,Max_Slots_Scratch_Cu,Gfx_Target_Version,Vendor_Id,Device_Id,Location_Id,Domain,Drm_Render_Minor,Num_Sdma_Engines,Num_Sdma_Xgmi_Engines,Num_Sdma_Queues_Per_Engine,Num_Cp_Queues,Max_Engine_Clk_Ccompute,Max_Engine_Clk_Fcompute,Sdma_Fw_Version,Fw_Version,Capability,Cu_Per_Engine,Max_Waves_Per_Cu,Family_Id,Workgroup_Max_Size,Grid_Max_Size,Local_Mem_Size,Hive_Id,Gpu_Id,Workgroup_Max_Dim_X,Workgroup_Max_Dim_Y,Workgroup_Max_Dim_Z,Grid_Max_Dim_X,Grid_Max_Dim_Y,Grid_Max_Dim_Z,Name,Vendor_Name,Product_Name,Model_Name")
	const cpu = "Simulated 64-Core Processor"
	for n := range cpuNodes {
		t.row(n, n, "CPU", 64, 0, 128*n, 0, 0, 0, 0, 0, 0, 1, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3300, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu, "CPU", cpu, "")
	}
	if s.set.has("no_gpu", s.phase()) {
		return t.Bytes()
	}
	g := s.model
	for i := range GPUs {
		n := firstGPUNode + i
		t.row(n, n, "GPU", 0, 4*g.cus, 0, 2147487744+36*i, 8, g.ldsKiB, 0, 64, 64, g.xccs, g.cus, g.ses(), g.ses(), 1, g.cuPerArray, 4, 32, g.version, 4098, g.device,
			gpuBuses[i]<<8, 0, 128+8*i, 2, 14, 8, 24, 3300, g.clockMHz, 12, 30, 2755109504, g.cus/g.ses(), 32, 141, 1024, int64(4294967295), 0, 1, 12600+i,
			1024, 1024, 1024, 2147483647, 65535, 65535, g.arch, "AMD", g.product, "ip discovery")
	}
	return t.Bytes()
}

// resultsJSON holds of the real results.json the part that explains directory names: the agents' handles.
func (s *session) resultsJSON() []byte {
	type handle struct {
		Handle int64 `json:"handle"`
	}
	type agent struct {
		ID     handle `json:"id"`
		Node   int    `json:"node_id"`
		Name   string `json:"name"`
		Device string `json:"product_name"`
	}
	type tool struct {
		Metadata struct {
			PID       int  `json:"pid"`
			Simulated bool `json:"simulated"`
		} `json:"metadata"`
		Agents []agent `json:"agents"`
	}
	one := tool{}
	one.Metadata.PID, one.Metadata.Simulated = s.pid, true
	for i := range GPUs {
		one.Agents = append(one.Agents, agent{handle{s.agent(i)}, firstGPUNode + i, s.model.arch, s.model.product})
	}
	text, err := json.Marshal(struct {
		Tool []tool `json:"rocprofiler-sdk-tool"`
	}{[]tool{one}})
	if err != nil {
		return nil
	}
	return append(text, '\n')
}
