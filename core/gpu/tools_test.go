package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

const cpuAgent = `*******
Agent %d
*******
  Name:                    AMD EPYC 9575F 64-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD EPYC 9575F 64-Core Processor
  Node:                    %d
  Device Type:             CPU
  Cache Info:
    L1:                      32768(0x8000) KB
  BDFID:                   0
  Compute Unit:            128
`

// gpuAgent has the labels of the ROCm documentation's example, deeper lines with the same labels included.
const gpuAgent = `*******
Agent %d
*******
  Name:                    gfx942
  Uuid:                    GPU-a8673551b40c637%d
  Marketing Name:          AMD Instinct MI300X
  Vendor Name:             AMD
  Node:                    %d
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
  Chip ID:                 29857(0x74a1)
  Max Clock Freq. (MHz):   2100
  BDFID:                   %d
  Compute Unit:            304
  SIMDs per CU:            4
  Shader Engines:          32
  Shader Arrs. per Eng.:   1
  Wavefront Size:          64(0x40)
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-
`

func TestFromRocminfo(t *testing.T) {
	text := "\x1b[37mROCk module is loaded\x1b[0m\n==========\nHSA Agents\n==========\n" +
		fmt.Sprintf(cpuAgent, 1, 0) + fmt.Sprintf(cpuAgent, 2, 1) + fmt.Sprintf(gpuAgent, 3, 4, 2, 29952) + fmt.Sprintf(gpuAgent, 4, 5, 4, 25856) + "*** Done ***\n"
	h := FromRocminfo([]byte(text), env("ROCR_VISIBLE_DEVICES", "0,2", "HIP_VISIBLE_DEVICES", "1"))
	if len(h.GPUs) != 2 || len(h.Visible) != 1 || h.Why != "" {
		t.Fatalf("%+v", h)
	}
	// Node 4 behind two CPU nodes: number 2 of the driver's, number 1 of what ROCr shows.
	want := GPU{KFDIndex: 2, HIPIndex: 1, Node: 4, BDF: "0000:65:00.0", UUID: "GPU-a8673551b40c6375", Arch: "gfx942", Product: "AMD Instinct MI300X", DeviceID: 0x74a1,
		CUs: 304, ShaderEngines: 32, SIMDsPerCU: 4, WaveSize: 64, ClockMHz: 2100}
	if g, err := h.Select(0); err != nil || g != want {
		t.Errorf("got  %+v (%v)\nwant %+v", g, err, want)
	}
}

func TestRocminfoWithoutGPUs(t *testing.T) {
	cases := []struct {
		name, text string
		code       envelope.Code
		says       string
	}{
		{"module not loaded", "\x1b[31mROCk module is NOT loaded, possibly no GPU devices\x1b[0m\n", envelope.NoGPU, "NOT loaded"},
		{"no permission", "ROCk module is loaded\nUnable to open /dev/kfd read-write: Permission denied\nUSER is not member of \"render\" group, the default DRM access group.\n", envelope.GPUAccessDenied, "Permission denied"},
		{"container rules", "ROCk module version 6.12.12 is loaded\nUnable to open /dev/kfd read-write: Operation not permitted\nFailed to get user name to check for video group membership\n", envelope.GPUAccessDenied, "not permitted"},
		{"device not passed in", "ROCk module is loaded\nUnable to open /dev/kfd read-write: No such file or directory\n", envelope.NoGPU, "No such file"},
		{"group only", "root is not member of \"video\" group, the default DRM access group.\n", envelope.GPUAccessDenied, "not member"},
		{"CPUs only", "ROCk module is loaded\n" + fmt.Sprintf(cpuAgent, 1, 0), envelope.NoGPU, "lists no GPU"},
		{"nothing", "", envelope.NoGPU, "lists no GPU"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromRocminfo([]byte(c.text), env()).Select(0)
			if e := envelope.As(err); e.Code != c.code || !strings.Contains(e.Message, c.says) {
				t.Errorf("%s %q", e.Code, e.Message)
			}
		})
	}
}

// A recorded excerpt of a Radeon host has names but no Device Type lines: nothing may be made of it.
func TestRocminfoExcerpt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(recorded.Traces(t), "logs", "rocminfo_excerpt_gfx1201.txt"))
	if err != nil {
		t.Skip("the recorded logs are not beside this checkout")
	}
	if h := FromRocminfo(text, env()); len(h.GPUs) != 0 || h.Why == "" {
		t.Errorf("%+v", h)
	}
}

func TestRealRocminfo(t *testing.T) {
	program, err := exec.LookPath("rocminfo")
	if err != nil {
		t.Skip("rocminfo is not installed")
	}
	if _, err := os.Stat("/dev/kfd"); err == nil {
		t.Skip("this host has a GPU driver; the test is about one that has none")
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	h := FromRocminfo(out, env())
	if _, err := h.Select(0); envelope.CodeOf(err) != envelope.NoGPU || !strings.Contains(h.Why, "NOT loaded") {
		t.Errorf("why %q, error %v, from %q", h.Why, err, out)
	}
}

const smiList = `[
 {"gpu": 0, "bdf": "0000:05:00.0", "uuid": "09ff74a1-0000-1000-8012-000000000000", "kfd_id": 51110, "node_id": 3, "partition_id": 0},
 {"gpu": 1, "bdf": "0000:75:00.0", "uuid": "27ff74a1-0000-1000-8012-000000000000", "kfd_id": 9091, "node_id": 2, "partition_id": 0, "render": "renderD128"}]`

const smiStatic = `[{"gpu": 0, "asic": {"market_name": "N/A", "device_id": "0x74a1", "num_compute_units": 304, "target_graphics_version": "gfx942"}, "partition": "N/A"},
 {"gpu": 1, "asic": {"market_name": "AMD Instinct MI300X", "device_id": "0x74a1", "num_compute_units": {"value": 304, "unit": ""}, "target_graphics_version": "gfx942"},
  "partition": {"compute_partition": "SPX", "memory_partition": "NPS1"}}]`

func TestFromAMDSMI(t *testing.T) {
	for _, c := range []struct{ name, list, static string }{
		{"bare lists", smiList, smiStatic},
		{"wrapped, after a warning", "WARNING: run as root\n" + smiList + "\nbye", `{"gpu_data": ` + smiStatic + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := FromAMDSMI([]byte(c.list), []byte(c.static), env("ROCR_VISIBLE_DEVICES", "1,0"))
			if err != nil {
				t.Fatal(err)
			}
			// amd-smi's GPU 1 is the driver's first, and the mask puts it second.
			first, _ := h.Select(0)
			second, err := h.Select(1)
			if err != nil {
				t.Fatal(err)
			}
			if want := (GPU{KFDIndex: 1, HIPIndex: 0, Node: 3, BDF: "0000:05:00.0", Arch: "gfx942", DeviceID: 0x74a1, CUs: 304}); first != want {
				t.Errorf("first  %+v\nwant   %+v", first, want)
			}
			if want := (GPU{KFDIndex: 0, HIPIndex: 1, Node: 2, BDF: "0000:75:00.0", Arch: "gfx942", Product: "AMD Instinct MI300X", DeviceID: 0x74a1, CUs: 304,
				RenderNode: "/dev/dri/renderD128", ComputePartition: "SPX", MemoryPartition: "NPS1"}); second != want {
				t.Errorf("second %+v\nwant   %+v", second, want)
			}
		})
	}
	for _, bad := range []string{"", "AMDSMI_STATUS_DRIVER_NOT_LOADED", "[{", `{"gpu_data": 3}`} {
		if _, err := FromAMDSMI([]byte(bad), []byte(smiStatic), env()); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	h, err := FromAMDSMI([]byte("[]"), []byte("[]"), env())
	if _, no := h.Select(0); err != nil || envelope.CodeOf(no) != envelope.NoGPU {
		t.Errorf("empty lists: %v %v", err, no)
	}
}

func TestSMIUsage(t *testing.T) {
	got, err := SMIUsage([]byte(`[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 285, "unit": "MB"}}},
		{"gpu": 1, "usage": {"gfx_activity": "N/A"}, "mem_usage": "N/A"}, {"gpu": 2, "usage": {"gfx_activity": 3}}]`))
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if *got[0].BusyPercent != 97 || *got[0].VRAMUsed != 298844160 || *got[0].VRAMTotal != 206141652992 {
		t.Errorf("%d %d %d", *got[0].BusyPercent, *got[0].VRAMUsed, *got[0].VRAMTotal)
	}
	if got[1] != (Usage{}) || *got[2].BusyPercent != 3 {
		t.Errorf("%+v %+v", got[1], got[2])
	}
}

func FuzzRocminfo(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(cpuAgent, 1, 0) + fmt.Sprintf(gpuAgent, 2, 1, 1, 29952)))
	f.Add([]byte("Agent 1\n  Name: gfx942\n  Device Type: GPU\n  Node: 99999999999\n  BDFID: -1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := FromRocminfo(text, env("HIP_VISIBLE_DEVICES", "0"))
		if g, err := h.Select(0); err == nil && !strings.HasPrefix(g.Arch, "gfx") {
			t.Errorf("%+v", g)
		}
	})
}

func FuzzAMDSMI(f *testing.F) {
	f.Add([]byte(smiList), []byte(smiStatic))
	f.Add([]byte(`{"gpu_data":[{"gpu":{"value":1e300}}]}`), []byte(`[{"asic":null}, null, 3]`))
	f.Fuzz(func(t *testing.T, list, static []byte) {
		h, err := FromAMDSMI(list, static, env())
		if err != nil {
			return
		}
		if len(h.Visible) != len(h.GPUs) {
			t.Errorf("%d of %d visible", len(h.Visible), len(h.GPUs))
		}
		_, _ = SMIUsage(static)
	})
}
