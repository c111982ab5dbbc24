package sim

// gpuModel is one simulated product. The figures are those that rocprofv3's agent_info.csv shows for the real one.
type gpuModel struct {
	arch, product   string
	version         int // Gfx_Target_Version
	device          int // PCI device id
	xccs, sesPerXCC int
	cus             int     // active, all XCCs
	cuPerArray      int     // physical, per SE
	activePerSE     [][]int // by SE within an XCC: physical ids of the active CUs
	ldsKiB          int
	clockMHz        int
	elfMach         uint32 // EF_AMDGPU_MACH of LLVM's AMDGPUUsage
	csvGranule      int    // VGPR granule that rocprofv3 1.1.0 decodes with; 4 is wrong on gfx950 (the CSV shows half)
	bytesPerNS      float64
}

// Harvesting: on gfx950 SEs 0 and 2 show CUs 0-7 and SEs 1 and 3 show 1-8, as recorded occupancy.json files have it on
// one MI350X. On gfx942 38 of 40 CUs of an XCC are active; which two are off is an assumption.
var gpus = map[string]gpuModel{
	"gfx950": {arch: "gfx950", product: "AMD Instinct MI350X", version: 90500, device: 0x75a0, xccs: 8, sesPerXCC: 4, cus: 256, cuPerArray: 9,
		activePerSE: [][]int{span(0, 8), span(1, 9), span(0, 8), span(1, 9)},
		ldsKiB:      160, clockMHz: 2200, elfMach: 0x4f, csvGranule: 4, bytesPerNS: 8000},
	"gfx942": {arch: "gfx942", product: "AMD Instinct MI300X", version: 90402, device: 0x74a1, xccs: 8, sesPerXCC: 4, cus: 304, cuPerArray: 10,
		activePerSE: [][]int{span(0, 10), span(0, 10), span(0, 9), span(1, 10)},
		ldsKiB:      64, clockMHz: 2100, elfMach: 0x4c, csvGranule: 8, bytesPerNS: 5300},
}

func span(from, to int) []int {
	out := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func (g gpuModel) ses() int { return g.xccs * g.sesPerXCC }

// GPUs is how many GPUs the simulated host has, behind two CPU nodes, as the recorded machines.
const GPUs = 8

const (
	cpuNodes     = 2
	firstGPUNode = cpuNodes
)
