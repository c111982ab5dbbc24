package gpu

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/soc"
)

const (
	nodesDir     = "sys/class/kfd/kfd/topology/nodes"
	maxNodes     = 1024    // topology nodes; a host has tens
	maxFileBytes = 1 << 16 // of a file under /sys; they have a page at most
)

// Topology reads the GPUs off the driver's files below sysRoot ("/" but in tests) and applies the inherited masks. A host
// without GPUs or driver is no error: Host.Why says what was missing and Select refuses.
//
// The numbering is that of rocprofiler-sdk (agent.cpp) and ROCr: nodes from 0 up to the first number that is missing; a node
// that may not be read does not count. No hardware is touched, so this does not hang where the GPU does.
func Topology(ctx context.Context, sysRoot string, getenv func(string) string) (Host, error) {
	dir := filepath.Join(sysRoot, nodesDir)
	h := Host{Source: "sysfs", LookedAt: []string{dir}, Visible: []int{}}
	if _, err := os.Stat(dir); err != nil {
		h.accessDenied = errors.Is(err, fs.ErrPermission)
		h.Why = fmt.Sprintf("%s is not there (the amdgpu driver is not loaded, or /sys is not mounted)", dir)
		if h.accessDenied {
			h.Why = fmt.Sprintf("%s may not be read", dir)
		}
		h.applyMasks(getenv)
		return h, nil
	}
	for n := range maxNodes {
		if err := ctx.Err(); err != nil {
			return Host{}, err
		}
		node := filepath.Join(dir, strconv.Itoa(n))
		if _, err := os.Stat(node); errors.Is(err, fs.ErrNotExist) {
			break
		}
		raw, err := readSmall(filepath.Join(node, "properties"))
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				h.Denied++
			}
			continue
		}
		if g, ok := nodeGPU(n, parseProperties(raw)); ok {
			h.add(g)
		}
	}
	for i := range h.GPUs {
		describe(sysRoot, &h.GPUs[i])
	}
	if len(h.GPUs) == 0 {
		h.Why = fmt.Sprintf("%s lists no GPU", dir)
		if h.Denied > 0 {
			h.accessDenied = true
			h.Why = fmt.Sprintf("%d nodes of %s may not be read: the device rules of a container, or missing groups", h.Denied, dir)
		}
	}
	h.applyMasks(getenv)
	return h, nil
}

// add appends a GPU and gives it the next number of those that rocprofv3 counts.
func (h *Host) add(g GPU) {
	if g.KFDIndex >= 0 {
		g.KFDIndex = 0
		for _, other := range h.GPUs {
			if other.KFDIndex >= 0 {
				g.KFDIndex++
			}
		}
	}
	h.GPUs = append(h.GPUs, g)
}

// properties are the "name value" lines of a topology node.
type properties map[string]uint64

func parseProperties(raw []byte) properties {
	p := properties{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
			p[name] = n
		}
	}
	return p
}

// small gives a figure that fits a count; 0 for what is absent or absurd.
func (p properties) small(name string) int {
	if n := p[name]; n <= 1<<31-1 {
		return int(n)
	}
	return 0
}

// nodeGPU makes a GPU of a node, and false of one that has no SIMDs.
func nodeGPU(node int, p properties) (GPU, bool) {
	if p["simd_count"] == 0 {
		return GPU{}, false
	}
	g := GPU{
		Node: node, Arch: archName(p.small("gfx_target_version")), DeviceID: p.small("device_id"),
		XCCs: max(1, p.small("num_xcc")), PhysicalCUsPerArray: p.small("cu_per_simd_array"), SIMDsPerCU: p.small("simd_per_cu"),
		WaveSize: p.small("wave_front_size"), ClockMHz: p.small("max_engine_clk_fcompute"),
	}
	if p["cpu_cores_count"] > 0 {
		g.KFDIndex = -1
	}
	if g.SIMDsPerCU > 0 {
		g.CUs = p.small("simd_count") / g.SIMDsPerCU
	}
	if per := p.small("simd_arrays_per_engine"); per > 0 {
		g.ShaderEngines = p.small("array_count") / per
	}
	if id := p["unique_id"]; id != 0 {
		g.UUID = fmt.Sprintf("GPU-%016x", id)
	}
	if _, ok := p["location_id"]; ok {
		g.BDF = bdf(p.small("domain"), p["location_id"])
	}
	if minor := p.small("drm_render_minor"); minor > 0 {
		g.RenderNode = fmt.Sprintf("/dev/dri/renderD%d", minor)
	}
	return g, true
}

// bdf writes a PCI address: the driver's location_id has the bus in bits 15 to 8, the device in 7 to 3, the function below.
func bdf(domain int, location uint64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, location>>8&0xff, location>>3&0x1f, location&7)
}

// archName writes gfx_target_version as LLVM does: two decimal digits each of major, minor and stepping, the last in hex
// (90402 is gfx942, 90010 gfx90a, 120001 gfx1201).
func archName(version int) string {
	if version <= 0 {
		return ""
	}
	return fmt.Sprintf("gfx%d%d%x", version/10000%100, version/100%100, version%100)
}

// describe adds what the GPU's PCI device says: product and partition mode.
func describe(sysRoot string, g *GPU) {
	if product, ok := soc.ByDevice(g.DeviceID); ok {
		g.Product = "AMD Instinct " + product.Product
	}
	dir := pciDir(sysRoot, *g)
	if dir == "" {
		return
	}
	if g.Product == "" {
		g.Product = word(dir, "product_name")
	}
	g.ComputePartition = word(dir, "current_compute_partition")
	g.MemoryPartition = word(dir, "current_memory_partition")
}

// pciDir finds the device's directory; the partitions of a GPU have that of function 0. Empty where there is none.
func pciDir(sysRoot string, g GPU) string {
	if len(g.BDF) < 2 {
		return ""
	}
	for _, address := range []string{g.BDF, g.BDF[:len(g.BDF)-1] + "0"} {
		dir := filepath.Join(sysRoot, "sys", "bus", "pci", "devices", address)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// word reads a file that holds one short line.
func word(dir, name string) string {
	raw, err := readSmall(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return clean(string(raw), 80)
}

// clean makes a foreign text one short printable line.
func clean(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(s, "")), "\n")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, s))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes))
}
