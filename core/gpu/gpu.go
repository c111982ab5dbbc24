// Package gpu answers which GPUs this host has and what each layer calls them: the driver (KFD) and rocprofv3, ROCr under
// ROCR_VISIBLE_DEVICES, and HIP under HIP_VISIBLE_DEVICES. Three numbers may stand for one GPU.
//
// The driver's files under /sys are the first source: reading them starts nothing and wakes no GPU. What rocminfo and
// amd-smi print is understood too, for hosts where /sys says nothing.
package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// GPU is one GPU, or one partition of one, as the driver describes it. Figures that a source does not give are 0 or empty.
type GPU struct {
	// KFDIndex is the number among the driver's GPU nodes: what rocprofv3 takes for att_gpu_index, whatever masks are set.
	// It is -1 for a node that is a CPU at the same time: rocprofiler-sdk (agent.cpp) counts those as CPUs.
	KFDIndex int `json:"kfd_index"`
	// HIPIndex is the value for HIP_VISIBLE_DEVICES that selects this GPU while ROCR_VISIBLE_DEVICES stays as it was
	// inherited; -1 where that mask hides the GPU.
	HIPIndex int `json:"hip_index"`
	// Node is the number of the KFD topology node, CPUs counted.
	Node int `json:"node"`
	// BDF is the PCI address as domain:bus:device.function. The partitions of one GPU differ in their function.
	BDF string `json:"bdf,omitempty"`
	// UUID has the form that ROCr takes: GPU- and 16 hex digits.
	UUID string `json:"uuid,omitempty"`
	// Arch is the LLVM target without features, such as gfx942.
	Arch string `json:"arch"`
	// Product is AMD's name such as "AMD Instinct MI300X".
	Product  string `json:"product,omitempty"`
	DeviceID int    `json:"device_id,omitempty"`
	// RenderNode is the device file such as /dev/dri/renderD128, which a user must be allowed to open.
	RenderNode string `json:"render_node,omitempty"`
	// CUs are active compute units, XCCs accelerator dies, ShaderEngines those of all XCCs.
	CUs           int `json:"cus,omitempty"`
	XCCs          int `json:"xccs,omitempty"`
	ShaderEngines int `json:"shader_engines,omitempty"`
	// PhysicalCUsPerArray counts fused-off CUs too (cu_per_simd_array).
	PhysicalCUsPerArray int `json:"physical_cus_per_array,omitempty"`
	SIMDsPerCU          int `json:"simds_per_cu,omitempty"`
	WaveSize            int `json:"wave_size,omitempty"`
	ClockMHz            int `json:"clock_mhz,omitempty"`
	// ComputePartition is SPX, DPX, TPX, QPX or CPX; MemoryPartition is NPS1 to NPS8. Empty where the driver does not say.
	ComputePartition string `json:"compute_partition,omitempty"`
	MemoryPartition  string `json:"memory_partition,omitempty"`
}

// String is for people: index, architecture, product and address.
func (g GPU) String() string {
	words := []string{g.Arch}
	for _, w := range []string{g.Product, g.BDF} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// Host is what was found about the GPUs of this machine.
type Host struct {
	// GPUs are all that the driver shows to this process, in its order.
	GPUs []GPU `json:"gpus"`
	// Visible are indices into GPUs in the order in which HIP numbers them under the inherited masks.
	Visible []int `json:"visible"`
	// Masks are the variables that were set, in the order in which they apply.
	Masks []Mask `json:"masks,omitempty"`
	// Denied counts topology nodes that this process may not read: a container's device rules hide them.
	Denied int `json:"denied,omitempty"`
	// Source is "sysfs", "rocminfo" or "amd-smi"; LookedAt are the files or commands.
	Source   string   `json:"source"`
	LookedAt []string `json:"looked_at"`
	// Why says what stood in the way where there is no GPU.
	Why string `json:"why,omitempty"`
	// accessDenied is set where a GPU is known to be there that this user may not open.
	accessDenied bool
}

// Select gives the GPU of an index inside the inherited masks: the number that HIP would give it.
//
// Errors: NO_GPU names what exists; GPU_ACCESS_DENIED where the driver hides all GPUs from this user.
func (h Host) Select(index int) (GPU, error) {
	if index >= 0 && index < len(h.Visible) {
		g := h.GPUs[h.Visible[index]]
		if g.KFDIndex >= 0 {
			return g, nil
		}
		return GPU{}, h.refuse(index, fmt.Sprintf("GPU %d (%s) shares its node with a CPU; rocprofv3 counts such a node as a CPU and cannot trace it", index, g))
	}
	switch {
	case len(h.GPUs) == 0 && h.Why != "":
		return GPU{}, h.refuse(index, "no AMD GPU is there: "+h.Why)
	case len(h.GPUs) == 0:
		return GPU{}, h.refuse(index, "no AMD GPU is there")
	case len(h.Visible) == 0:
		return GPU{}, h.refuse(index, fmt.Sprintf("all %d GPUs of this host are masked by %s", len(h.GPUs), h.masks()))
	case len(h.Visible) < len(h.GPUs):
		return GPU{}, h.refuse(index, fmt.Sprintf("there is no GPU %d: %s shows %d of this host's %d", index, h.masks(), len(h.Visible), len(h.GPUs)))
	}
	return GPU{}, h.refuse(index, fmt.Sprintf("there is no GPU %d: this host has %d", index, len(h.GPUs)))
}

func (h Host) masks() string {
	var set []string
	for _, m := range h.Masks {
		set = append(set, fmt.Sprintf("%s=%.80q", m.Variable, m.Value))
	}
	return strings.Join(set, " and ")
}

func (h Host) refuse(index int, message string) error {
	code := envelope.NoGPU
	if h.accessDenied && len(h.GPUs) == 0 {
		code = envelope.GPUAccessDenied
	}
	facts := envelope.Facts{
		Message: message,
		Evidence: envelope.Evidence{
			Field: "gpu", Value: strconv.Itoa(index), Setting: "--gpu (FLYPROF_GPU)", LookedAt: h.LookedAt,
			Found: fmt.Sprintf("%d GPUs, %d of them visible", len(h.GPUs), len(h.Visible)),
		},
	}
	switch n := len(h.Visible); n {
	case 0:
	case 1:
		facts.Evidence.Allowed = "0"
	default:
		facts.Evidence.Allowed = fmt.Sprintf("0 to %d", n-1)
	}
	for i, at := range h.Visible {
		facts.Available = append(facts.Available, envelope.Available{Value: fmt.Sprintf("%d: %s", i, h.GPUs[at])})
	}
	return envelope.Build(code, facts)
}
