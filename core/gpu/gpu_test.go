package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// node is a topology node of a made-up host.
type node struct {
	cores, simds, simdsPerCU, arrays, perEngine, cuPerArray, xcc, version, device, location, domain, minor, clock, wave int
	uuid                                                                                                                uint64
}

func cpu() node { return node{cores: 128} }

// mi300x, mi350x and the others have the figures of recorded agent_info.csv files and of AMD's tables.
func mi300x(i int) node {
	return node{simds: 1216, simdsPerCU: 4, arrays: 32, perEngine: 1, cuPerArray: 10, xcc: 8, version: 90402, device: 0x74a1,
		location: buses[i] << 8, minor: 128 + 8*i, clock: 2100, wave: 64, uuid: 0xa8673551b40c6374 + uint64(i)}
}

var buses = []int{0x75, 0x05, 0x65, 0x15, 0xf5, 0x85, 0xe5, 0x95}

// write makes the nodes' files below a new root.
func write(t *testing.T, nodes ...node) string {
	t.Helper()
	root := t.TempDir()
	for i, n := range nodes {
		text := fmt.Sprintf("cpu_cores_count %d\nsimd_count %d\nsimd_per_cu %d\narray_count %d\nsimd_arrays_per_engine %d\ncu_per_simd_array %d\nnum_xcc %d\n"+
			"gfx_target_version %d\ndevice_id %d\nlocation_id %d\ndomain %d\ndrm_render_minor %d\nmax_engine_clk_fcompute %d\nwave_front_size %d\nunique_id %d\n",
			n.cores, n.simds, n.simdsPerCU, n.arrays, n.perEngine, n.cuPerArray, n.xcc, n.version, n.device, n.location, n.domain, n.minor, n.clock, n.wave, n.uuid)
		put(t, filepath.Join(root, nodesDir, fmt.Sprint(i), "properties"), text)
	}
	return root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func env(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

func topology(t *testing.T, root string, kv ...string) Host {
	t.Helper()
	h, err := Topology(t.Context(), root, env(kv...))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTopologyOfProducts(t *testing.T) {
	device := func(root, address, name, text string) {
		put(t, filepath.Join(root, "sys/bus/pci/devices", address, name), text)
	}
	cpx := func(partition int) node {
		return node{simds: 152, simdsPerCU: 4, arrays: 4, perEngine: 1, cuPerArray: 10, xcc: 1, version: 90402, device: 0x74a1,
			location: 0x0c00 | partition, minor: 128 + partition, clock: 2100, wave: 64, uuid: 7}
	}
	cases := []struct {
		name  string
		nodes []node
		files func(root string)
		at    int
		want  GPU
		count int
	}{
		{"MI300X, last of eight", []node{cpu(), cpu(), mi300x(0), mi300x(1), mi300x(2), mi300x(3), mi300x(4), mi300x(5), mi300x(6), mi300x(7)},
			func(root string) {
				device(root, "0000:95:00.0", "current_compute_partition", "SPX\n")
				device(root, "0000:95:00.0", "current_memory_partition", "NPS1\n")
			}, 7,
			GPU{KFDIndex: 7, HIPIndex: 7, Node: 9, BDF: "0000:95:00.0", UUID: "GPU-a8673551b40c637b", Arch: "gfx942", Product: "AMD Instinct MI300X", DeviceID: 0x74a1,
				RenderNode: "/dev/dri/renderD184", CUs: 304, XCCs: 8, ShaderEngines: 32, PhysicalCUsPerArray: 10, SIMDsPerCU: 4, WaveSize: 64, ClockMHz: 2100,
				ComputePartition: "SPX", MemoryPartition: "NPS1"}, 8},
		{"MI350X in another PCI domain", []node{cpu(), {simds: 1024, simdsPerCU: 4, arrays: 32, perEngine: 1, cuPerArray: 9, xcc: 8, version: 90500, device: 0x75a0,
			location: 0x7500, domain: 0x12, minor: 128, clock: 2200, wave: 64, uuid: 0x51130000000000ab}}, nil, 0,
			GPU{KFDIndex: 0, HIPIndex: 0, Node: 1, BDF: "0012:75:00.0", UUID: "GPU-51130000000000ab", Arch: "gfx950", Product: "AMD Instinct MI350X", DeviceID: 0x75a0,
				RenderNode: "/dev/dri/renderD128", CUs: 256, XCCs: 8, ShaderEngines: 32, PhysicalCUsPerArray: 9, SIMDsPerCU: 4, WaveSize: 64, ClockMHz: 2200}, 1},
		{"one CPX partition of an MI300X", []node{cpu(), cpx(0), cpx(1), cpx(2), cpx(3), cpx(4), cpx(5), cpx(6), cpx(7)},
			func(root string) { device(root, "0000:0c:00.0", "current_compute_partition", "CPX\n") }, 3,
			GPU{KFDIndex: 3, HIPIndex: 3, Node: 4, BDF: "0000:0c:00.3", UUID: "GPU-0000000000000007", Arch: "gfx942", Product: "AMD Instinct MI300X", DeviceID: 0x74a1,
				RenderNode: "/dev/dri/renderD131", CUs: 38, XCCs: 1, ShaderEngines: 4, PhysicalCUsPerArray: 10, SIMDsPerCU: 4, WaveSize: 64, ClockMHz: 2100, ComputePartition: "CPX"}, 8},
		{"Radeon, product from the board", []node{cpu(), {simds: 128, simdsPerCU: 2, arrays: 8, perEngine: 2, cuPerArray: 8, version: 120001, device: 0x7550,
			location: 0x0300, minor: 128, clock: 2460, wave: 32, uuid: 1}}, func(root string) { device(root, "0000:03:00.0", "product_name", "Radeon RX 9070 XT\n") }, 0,
			GPU{KFDIndex: 0, HIPIndex: 0, Node: 1, BDF: "0000:03:00.0", UUID: "GPU-0000000000000001", Arch: "gfx1201", Product: "Radeon RX 9070 XT", DeviceID: 0x7550,
				RenderNode: "/dev/dri/renderD128", CUs: 64, XCCs: 1, ShaderEngines: 4, PhysicalCUsPerArray: 8, SIMDsPerCU: 2, WaveSize: 32, ClockMHz: 2460}, 1},
		{"no UUID, stepping in hex", []node{cpu(), {simds: 416, simdsPerCU: 4, arrays: 8, perEngine: 1, cuPerArray: 16, version: 90010, location: 0xc100}}, nil, 0,
			GPU{KFDIndex: 0, HIPIndex: 0, Node: 1, BDF: "0000:c1:00.0", Arch: "gfx90a", CUs: 104, XCCs: 1, ShaderEngines: 8, PhysicalCUsPerArray: 16, SIMDsPerCU: 4}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.files != nil {
				t.Skip("a PCI address is no file name on Windows")
			}
			root := write(t, c.nodes...)
			if c.files != nil {
				c.files(root)
			}
			h := topology(t, root)
			if len(h.GPUs) != c.count {
				t.Fatalf("%d GPUs, want %d", len(h.GPUs), c.count)
			}
			got, err := h.Select(c.at)
			if err != nil || got != c.want {
				t.Errorf("got  %+v (%v)\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestMasks(t *testing.T) {
	// KFD order 0..3 with UUIDs ...6374 to ...6377.
	root := write(t, cpu(), mi300x(0), mi300x(1), mi300x(2), mi300x(3))
	cases := []struct {
		name, rocr, hip, cuda string
		kfd, hipIndex         []int // by index inside the mask
	}{
		{"no mask", "", "", "", []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{"HIP reorders", "", "3,1", "", []int{3, 1}, []int{3, 1}},
		{"CUDA is read where HIP is empty", "", "", "2", []int{2}, []int{2}},
		{"HIP beats CUDA", "", "1", "2", []int{1}, []int{1}},
		{"HIP stops at the first bad entry", "", "2,9,1", "", []int{2}, []int{2}},
		{"HIP ends at -1", "", "0,-1,1", "", []int{0}, []int{0}},
		{"HIP wants plain decimals", "", "1, 2", "", []int{1}, []int{1}},
		{"HIP passes over a repetition", "", "1,1,2", "", []int{1, 2}, []int{1, 2}},
		{"HIP by UUID", "", "GPU-a8673551b40c6376,0", "", []int{2, 0}, []int{2, 0}},
		{"HIP hides all", "", "x", "", nil, nil},
		{"ROCr renumbers for HIP", "2,3", "", "", []int{2, 3}, []int{0, 1}},
		{"HIP indexes what ROCr shows", "3,1,0", "2,0", "", []int{0, 3}, []int{2, 0}},
		{"HIP beyond what ROCr shows", "1", "1", "", nil, nil},
		{"ROCr trims and reads C numbers", " 0x2 , 01", "", "", []int{2, 1}, []int{0, 1}},
		{"ROCr stops at a repetition", "1,1,2", "", "", []int{1}, []int{0}},
		{"ROCr stops at a bad index", "1,4,2", "", "", []int{1}, []int{0}},
		{"ROCr by UUID in any case", "gpu-A8673551B40C6377,0", "", "", []int{3, 0}, []int{0, 1}},
		{"ROCr by a beginning that fits several", "GPU-a867", "", "", nil, nil},
		{"ROCr by a UUID that is too long", "GPU-a8673551b40c63770", "", "", nil, nil},
		{"trailing comma", "1,", "0,", "", []int{1}, []int{0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := topology(t, root, "ROCR_VISIBLE_DEVICES", c.rocr, "HIP_VISIBLE_DEVICES", c.hip, "CUDA_VISIBLE_DEVICES", c.cuda)
			var kfd, hip []int
			for i := range len(h.Visible) {
				g, err := h.Select(i)
				if err != nil {
					t.Fatal(err)
				}
				kfd, hip = append(kfd, g.KFDIndex), append(hip, g.HIPIndex)
			}
			if !slices.Equal(kfd, c.kfd) || !slices.Equal(hip, c.hipIndex) {
				t.Errorf("KFD %v HIP %v, want %v and %v (masks %+v)", kfd, hip, c.kfd, c.hipIndex, h.Masks)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	four := []node{cpu(), mi300x(0), mi300x(1), mi300x(2), mi300x(3)}
	cases := []struct {
		name    string
		root    func(t *testing.T) string
		mask    string
		index   int
		code    envelope.Code
		says    string
		allowed string
		choices int
	}{
		{"beyond the host", func(t *testing.T) string { return write(t, four...) }, "", 4, envelope.NoGPU, "no GPU 4: this host has 4", "0 to 3", 4},
		{"negative", func(t *testing.T) string { return write(t, four...) }, "", -1, envelope.NoGPU, "no GPU -1", "0 to 3", 4},
		{"beyond the mask", func(t *testing.T) string { return write(t, four...) }, "2", 1, envelope.NoGPU, `HIP_VISIBLE_DEVICES="2" shows 1 of this host's 4`, "0", 1},
		{"all masked", func(t *testing.T) string { return write(t, four...) }, "-1", 0, envelope.NoGPU, "all 4 GPUs of this host are masked by HIP_VISIBLE_DEVICES", "", 0},
		{"no driver", func(t *testing.T) string { return t.TempDir() }, "", 0, envelope.NoGPU, "amdgpu driver is not loaded", "", 0},
		{"CPUs only", func(t *testing.T) string { return write(t, cpu(), cpu()) }, "", 0, envelope.NoGPU, "lists no GPU", "", 0},
		{"a node that is CPU and GPU", func(t *testing.T) string {
			return write(t, node{cores: 8, simds: 32, simdsPerCU: 4, version: 90002})
		}, "", 0, envelope.NoGPU, "counts such a node as a CPU", "0", 1},
		{"unreadable nodes", func(t *testing.T) string {
			if runtime.GOOS == "windows" || os.Getuid() == 0 {
				t.Skip("file modes bind nobody here")
			}
			root := write(t, four...)
			for i := 1; i <= 4; i++ {
				if err := os.Chmod(filepath.Join(root, nodesDir, fmt.Sprint(i), "properties"), 0); err != nil {
					t.Fatal(err)
				}
			}
			return root
		}, "", 0, envelope.GPUAccessDenied, "4 nodes", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := topology(t, c.root(t), "HIP_VISIBLE_DEVICES", c.mask).Select(c.index)
			e := envelope.As(err)
			if e.Code != c.code || !strings.Contains(e.Message, c.says) || e.Evidence.Allowed != c.allowed || len(e.Available) != c.choices {
				t.Errorf("%s %q allowed %q, %d choices", e.Code, e.Message, e.Evidence.Allowed, len(e.Available))
			}
			if e.Evidence.Field != "gpu" || e.Evidence.Value != fmt.Sprint(c.index) || len(e.Evidence.LookedAt) == 0 {
				t.Errorf("evidence %+v", e.Evidence)
			}
		})
	}
}

// rocprofiler-sdk stops at the first missing number, and does not count a node that combines CPU and GPU as a GPU, where
// ROCr does.
func TestNumberingWithGapsAndCombinedNodes(t *testing.T) {
	root := write(t, node{cores: 8, simds: 32, simdsPerCU: 4, version: 90002}, mi300x(0), mi300x(1), cpu(), mi300x(2))
	if err := os.RemoveAll(filepath.Join(root, nodesDir, "3")); err != nil {
		t.Fatal(err)
	}
	h := topology(t, root)
	if len(h.GPUs) != 3 {
		t.Fatalf("%d GPUs, want the 3 before the gap", len(h.GPUs))
	}
	if g, err := h.Select(2); err != nil || g.KFDIndex != 1 || g.HIPIndex != 2 || g.Node != 2 {
		t.Errorf("%+v %v", g, err)
	}
	// An empty file is a node that the driver hides: it does not count.
	put(t, filepath.Join(root, nodesDir, "1", "properties"), "")
	if g, err := topology(t, root).Select(1); err != nil || g.KFDIndex != 0 || g.Node != 2 {
		t.Errorf("%+v %v", g, err)
	}
}

func TestTopologyStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Topology(ctx, write(t, cpu(), mi300x(0)), env()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReadUsage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a PCI address is no file name on Windows")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "sys/bus/pci/devices/0000:75:00.0")
	put(t, filepath.Join(dir, "gpu_busy_percent"), "97\n")
	put(t, filepath.Join(dir, "mem_info_vram_used"), "298844160\n")
	put(t, filepath.Join(dir, "mem_info_vram_total"), "309220868096\n")
	u, err := ReadUsage(t.Context(), root, GPU{BDF: "0000:75:00.2"})
	if err != nil || u.BusyPercent == nil || *u.BusyPercent != 97 || *u.VRAMUsed != 298844160 || *u.VRAMTotal != 309220868096 {
		t.Errorf("%+v %v", u, err)
	}
	put(t, filepath.Join(dir, "gpu_busy_percent"), "N/A\n")
	put(t, filepath.Join(dir, "mem_info_vram_used"), "-5\n")
	if u, err := ReadUsage(t.Context(), root, GPU{BDF: "0000:75:00.0"}); err != nil || u.BusyPercent != nil || u.VRAMUsed != nil || u.VRAMTotal == nil {
		t.Errorf("%+v %v", u, err)
	}
	if u, err := ReadUsage(t.Context(), root, GPU{BDF: "0000:01:00.0"}); err != nil || u != (Usage{}) {
		t.Errorf("no device: %+v %v", u, err)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte("simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 29952\n"))
	f.Add([]byte("simd_count 18446744073709551615\nsimd_per_cu 18446744073709551615\nlocation_id 1\nunique_id 1\ndomain 99999999999\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, ok := nodeGPU(1, parseProperties(raw))
		if ok && (g.CUs < 0 || g.XCCs < 1 || g.ShaderEngines < 0 || (g.BDF != "" && len(g.BDF) < 12)) {
			t.Errorf("%+v", g)
		}
	})
}

func FuzzMasks(f *testing.F) {
	f.Add("0,GPU-a867", "1,0")
	f.Add(" 0x1,01,,", "GPU-,-1")
	f.Fuzz(func(t *testing.T, rocr, hip string) {
		h := Host{GPUs: []GPU{{UUID: "GPU-a8673551b40c6374"}, {KFDIndex: 1, UUID: "GPU-a8673551b40c6375"}, {KFDIndex: 2}}}
		h.applyMasks(env("ROCR_VISIBLE_DEVICES", rocr, "HIP_VISIBLE_DEVICES", hip))
		used := map[int]bool{}
		for _, at := range h.Visible {
			if at < 0 || at > 2 || used[at] || h.GPUs[at].HIPIndex < 0 {
				t.Fatalf("visible %v of %+v", h.Visible, h.GPUs)
			}
			used[at] = true
		}
	})
}
