package rocprof

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Agent is a GPU as agent_info.csv describes it (the figures are the kernel driver's, /sys/class/kfd/kfd/topology).
type Agent struct {
	// Node is the driver's number of the node, Logical the number among the nodes that this process sees, CPUs included:
	// "Agent 2" means the latter.
	Node, Logical int
	// Index counts the GPUs of the file from 0: "GPU 0", and rocprofv3's att_gpu_index.
	Index int
	// Name is the architecture such as "gfx950", Product the name for people such as "AMD Instinct MI350X".
	Name, Product string
	// CUs, XCCs and ShaderEngines are of the whole device (of one partition where it is partitioned), as soc.WithTopology takes
	// them: 256, 8 and 32 for an MI350X.
	CUs, XCCs, ShaderEngines int
	// PhysicalCUsPerArray counts the CUs of a shader array with those that are fused off.
	PhysicalCUsPerArray int
	// SIMDsPerCU and WavesPerSIMD are the wave slots of a CU, WaveSize is in work-items.
	SIMDsPerCU, WavesPerSIMD, WaveSize int
	LDSKiB                             int
	// ClockMHz is the peak engine clock.
	ClockMHz int
	// DeviceID is the PCI device id such as 0x75a0, GPUID the driver's (KFD_ID of amd-smi).
	DeviceID, GPUID int
	// Domain and Location are where the GPU is on PCI; see BDF.
	Domain, Location int64
}

// BDF is the PCI address such as "0000:75:00.0", empty where the file has none. The driver packs bus, device and function into
// Location_Id as PCI does: 8, 5 and 3 bits.
func (a Agent) BDF() string {
	if a.Location <= 0 || a.Location > 0xffff || a.Domain < 0 || a.Domain > 0xffffffff {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Location>>8, a.Location>>3&0x1f, a.Location&7)
}

const (
	aiNode = iota
	aiLogical
	aiType
	aiSIMDs
	aiWaves
	aiLDS
	aiWave
	aiXCC
	aiCUs
	aiArrays
	aiBanks
	aiArraysPerEngine
	aiCUsPerArray
	aiDevice
	aiLocation
	aiDomain
	aiClock
	aiGPU
	aiName
	aiProduct
)

func agentColumns() []column {
	return []column{
		aiNode: need("Node_Id"), aiLogical: may("Logical_Node_Id"), aiType: need("Agent_Type"), aiSIMDs: may("Simd_Per_Cu"),
		aiWaves: may("Max_Waves_Per_Simd"), aiLDS: may("Lds_Size_In_Kb"), aiWave: may("Wave_Front_Size"), aiXCC: may("Num_Xcc"),
		aiCUs: need("Cu_Count"), aiArrays: may("Array_Count"), aiBanks: may("Num_Shader_Banks"), aiArraysPerEngine: may("Simd_Arrays_Per_Engine"),
		aiCUsPerArray: may("Cu_Per_Simd_Array"), aiDevice: may("Device_Id"), aiLocation: may("Location_Id"), aiDomain: may("Domain"),
		aiClock: may("Max_Engine_Clk_Fcompute"), aiGPU: may("Gpu_Id"), aiName: need("Name"), aiProduct: may("Product_Name"),
	}
}

// maxFigure bounds what is believed of an agent: more CUs than that are a broken file.
const maxFigure = 1 << 20

// ReadAgentInfo reads the GPUs of <name>_agent_info.csv in the file's order; CPUs are left out. Errors as ReadKernelTrace.
func ReadAgentInfo(r io.Reader) ([]Agent, error) {
	t, err := openTable(r, agentColumns())
	if t == nil || err != nil {
		return nil, err
	}
	var out []Agent
	for {
		more, err := t.next()
		if err != nil || !more {
			return out, err
		}
		if !strings.EqualFold(t.text(aiType), "GPU") {
			continue
		}
		a, err := t.agent()
		if err != nil {
			return out, err
		}
		a.Index = len(out)
		out = append(out, a)
	}
}

func (t *table) agent() (Agent, error) {
	a := Agent{Name: strings.Clone(t.text(aiName)), Product: strings.Clone(t.text(aiProduct))}
	var arrays, banks, perEngine int
	for _, f := range []struct {
		col int
		to  *int
	}{
		{aiNode, &a.Node}, {aiLogical, &a.Logical}, {aiXCC, &a.XCCs}, {aiCUs, &a.CUs}, {aiArrays, &arrays}, {aiBanks, &banks},
		{aiArraysPerEngine, &perEngine}, {aiCUsPerArray, &a.PhysicalCUsPerArray}, {aiSIMDs, &a.SIMDsPerCU}, {aiWaves, &a.WavesPerSIMD},
		{aiWave, &a.WaveSize}, {aiLDS, &a.LDSKiB}, {aiClock, &a.ClockMHz}, {aiDevice, &a.DeviceID}, {aiGPU, &a.GPUID},
	} {
		n, err := t.count(f.col)
		if err != nil {
			return a, err
		}
		if n > maxFigure {
			return a, fmt.Errorf("line %d: %s is %d, more than any GPU has", t.line, t.cols[f.col].names[0], n)
		}
		*f.to = int(n)
	}
	if t.at[aiLogical] < 0 {
		a.Logical = a.Node
	}
	// Array_Count counts shader arrays over all XCCs; RDNA has two in an engine.
	a.ShaderEngines = banks
	if arrays > 0 && perEngine > 0 {
		a.ShaderEngines = arrays / perEngine
	}
	return a, t.counts([]cell{{aiDomain, &a.Domain}, {aiLocation, &a.Location}})
}

// AgentOf finds the GPU that ran the launches; where several did, the one that ran most of them. Agent_Id is a bare number
// until ROCm 6.4, "Agent 2" since (both the logical node), "Agent 2" with the driver's node under `-A absolute`, "GPU 0" under
// `-A type-relative`; database exports write the same. A file without agents of launches is only believed when it has one GPU.
func AgentOf(agents []Agent, launches []Launch) (Agent, bool) {
	calls := map[string]int{}
	for _, l := range launches {
		if l.Agent != "" {
			calls[l.Agent]++
		}
	}
	best := ""
	for name, n := range calls {
		if c := cmp.Compare(n, calls[best]); c > 0 || c == 0 && name < best {
			best = name
		}
	}
	if best != "" {
		return named(agents, best)
	}
	for _, a := range agents {
		if a != agents[0] {
			return Agent{}, false
		}
	}
	if len(agents) == 0 {
		return Agent{}, false
	}
	return agents[0], true
}

func named(agents []Agent, name string) (Agent, bool) {
	kind, number, two := strings.Cut(name, " ")
	if !two {
		kind, number = "Agent", name
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return Agent{}, false
	}
	is := []func(Agent) bool{
		func(a Agent) bool { return a.Logical == n },
		func(a Agent) bool { return a.Node == n },
	}
	if strings.EqualFold(kind, "GPU") {
		is = []func(Agent) bool{func(a Agent) bool { return a.Index == n }}
	} else if !strings.EqualFold(kind, "Agent") {
		return Agent{}, false
	}
	for _, fits := range is {
		for _, a := range agents {
			if fits(a) {
				return a, true
			}
		}
	}
	return Agent{}, false
}
