package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// gpuBDF gives a simulated GPU's PCI address; bus numbers as on an 8-GPU host, spread over the sockets.
func gpuBDF(i int) string { return fmt.Sprintf("0000:%02x:00.0", gpuBuses[i%GPUs]) }

var gpuBuses = [GPUs]int{0x75, 0x05, 0x65, 0x15, 0xf5, 0x85, 0xe5, 0x95}

func gpuUUID(i int) string { return fmt.Sprintf("GPU-5113%012x", 0xf17b0f000000+i) }

// runRocminfo prints what rocminfo prints for the simulated host: two CPU agents, then the GPUs.
func runRocminfo(p *process) int {
	if p.set.has("no_gpu", "") {
		fmt.Fprintln(p.stdout, "ROCk module is NOT loaded, possibly no GPU devices")
		return 1
	}
	g := gpus[p.set.Arch]
	var b strings.Builder
	b.WriteString("ROCk module is loaded\n=====================\nHSA System Attributes\n=====================\nRuntime Version:         1.18\nRuntime Ext Version:     1.14\nSystem Timestamp Freq.:  1000.000000MHz\n\n==========\nHSA Agents\n==========\n")
	row := func(indent int, label, format string, a ...any) {
		fmt.Fprintf(&b, "%s%-*s%s\n", strings.Repeat(" ", indent), 25, label+":", fmt.Sprintf(format, a...))
	}
	for n := range cpuNodes + GPUs {
		fmt.Fprintf(&b, "*******\nAgent %d\n*******\n", n+1)
		if n < cpuNodes {
			row(2, "Name", "Simulated 64-Core Processor")
			row(2, "Uuid", "CPU-XX")
			row(2, "Marketing Name", "Simulated 64-Core Processor")
			row(2, "Vendor Name", "CPU")
			row(2, "Node", "%d", n)
			row(2, "Device Type", "CPU")
			row(2, "Compute Unit", "64")
			row(2, "SIMDs per CU", "0")
			row(2, "Shader Engines", "0")
			continue
		}
		row(2, "Name", "%s", g.arch)
		row(2, "Uuid", "%s", gpuUUID(n-firstGPUNode))
		row(2, "Marketing Name", "%s (simulated)", g.product)
		row(2, "Vendor Name", "AMD")
		row(2, "Node", "%d", n)
		row(2, "Device Type", "GPU")
		row(2, "Chip ID", "%d(0x%x)", g.device, g.device)
		row(2, "Max Clock Freq. (MHz)", "%d", g.clockMHz)
		row(2, "BDFID", "%d", gpuBuses[n-firstGPUNode]<<8)
		row(2, "Compute Unit", "%d", g.cus)
		row(2, "SIMDs per CU", "4")
		row(2, "Shader Engines", "%d", g.ses())
		row(2, "Shader Arrs. per Eng.", "1")
		row(2, "Wavefront Size", "64(0x40)")
		b.WriteString("  ISA Info:\n    ISA 1\n")
		row(6, "Name", "amdgcn-amd-amdhsa--%s:sramecc+:xnack-", g.arch)
		b.WriteString("    ISA 2\n")
		row(6, "Name", "amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-")
	}
	b.WriteString("*** Done ***\n")
	fmt.Fprint(p.stdout, b.String())
	return 0
}

// smiGPU is one GPU as `amd-smi list|static|metric --json` shows it, as far as the stand-in goes.
type smiGPU struct {
	GPU   int       `json:"gpu"`
	BDF   string    `json:"bdf,omitempty"`
	UUID  string    `json:"uuid,omitempty"`
	KFD   int       `json:"kfd_id,omitempty"`
	Node  int       `json:"node_id,omitempty"`
	ASIC  *smiASIC  `json:"asic,omitempty"`
	Usage *smiUsage `json:"usage,omitempty"`
	VRAM  *smiVRAM  `json:"mem_usage,omitempty"`
}

type smiASIC struct {
	MarketName string `json:"market_name"`
	DeviceID   string `json:"device_id"`
	CUs        int    `json:"num_compute_units"`
	Arch       string `json:"target_graphics_version"`
}

type smiUsage struct {
	GFX smiFigure `json:"gfx_activity"`
}

type smiVRAM struct {
	Total smiFigure `json:"total_vram"`
	Used  smiFigure `json:"used_vram"`
}

type smiFigure struct {
	Value int    `json:"value"`
	Unit  string `json:"unit"`
}

// runAMDSMI answers `amd-smi list`, `static` and `metric`, in JSON with --json.
func runAMDSMI(p *process) int {
	if p.set.has("no_gpu", "") {
		p.errf("AMDSMI_STATUS_DRIVER_NOT_LOADED: amdgpu driver not loaded")
		return 255
	}
	if len(p.args) == 0 || !slices.Contains([]string{"list", "static", "metric"}, p.args[0]) {
		p.errf("amd-smi: the simulated one knows list, static and metric")
		return 2
	}
	g := gpus[p.set.Arch]
	list := make([]smiGPU, GPUs)
	for i := range list {
		list[i] = smiGPU{GPU: i}
		switch p.args[0] {
		case "list":
			list[i].BDF, list[i].UUID, list[i].KFD, list[i].Node = gpuBDF(i), gpuUUID(i), 12600+i, firstGPUNode+i
		case "static":
			list[i].ASIC = &smiASIC{MarketName: g.product + " (simulated)", DeviceID: fmt.Sprintf("0x%x", g.device), CUs: g.cus, Arch: g.arch}
		case "metric":
			busy, used := 0, 285
			if p.set.has("busy", "") {
				busy, used = 97, 180000
			}
			list[i].Usage = &smiUsage{smiFigure{busy, "%"}}
			list[i].VRAM = &smiVRAM{smiFigure{294896, "MB"}, smiFigure{used, "MB"}}
		}
	}
	if slices.Contains(p.args, "--json") {
		text, err := json.MarshalIndent(list, "", "    ")
		if err != nil {
			return 1
		}
		fmt.Fprintln(p.stdout, string(text))
		return 0
	}
	for _, gpu := range list {
		fmt.Fprintf(p.stdout, "GPU: %d\n", gpu.GPU)
		switch {
		case gpu.ASIC != nil:
			fmt.Fprintf(p.stdout, "    ASIC:\n        MARKET_NAME: %s\n        DEVICE_ID: %s\n        NUM_COMPUTE_UNITS: %d\n        TARGET_GRAPHICS_VERSION: %s\n", gpu.ASIC.MarketName, gpu.ASIC.DeviceID, gpu.ASIC.CUs, gpu.ASIC.Arch)
		case gpu.Usage != nil:
			fmt.Fprintf(p.stdout, "    USAGE:\n        GFX_ACTIVITY: %d %%\n    MEM_USAGE:\n        USED_VRAM: %d MB\n", gpu.Usage.GFX.Value, gpu.VRAM.Used.Value)
		default:
			fmt.Fprintf(p.stdout, "    BDF: %s\n    UUID: %s\n    KFD_ID: %d\n    NODE_ID: %d\n", gpu.BDF, gpu.UUID, gpu.KFD, gpu.Node)
		}
	}
	return 0
}
