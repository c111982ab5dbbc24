package gpu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// smiRow is one GPU in what `amd-smi list`, `static` and `metric` print with --json; each fills its own part. Figures are
// numbers, {"value", "unit"} or "N/A", by version.
type smiRow struct {
	GPU         json.RawMessage `json:"gpu"`
	BDF         string          `json:"bdf"`
	UUID        string          `json:"uuid"`
	NodeID      json.RawMessage `json:"node_id"`
	PartitionID json.RawMessage `json:"partition_id"`
	Render      string          `json:"render"`
	ASIC        struct {
		MarketName string          `json:"market_name"`
		DeviceID   string          `json:"device_id"`
		CUs        json.RawMessage `json:"num_compute_units"`
		Arch       string          `json:"target_graphics_version"`
	} `json:"asic"`
	Bus struct {
		BDF string `json:"bdf"`
	} `json:"bus"`
	Partition struct {
		Compute string `json:"compute_partition"`
		Memory  string `json:"memory_partition"`
	} `json:"partition"`
	Usage struct {
		GFX json.RawMessage `json:"gfx_activity"`
	} `json:"usage"`
	Memory struct {
		Total json.RawMessage `json:"total_vram"`
		Used  json.RawMessage `json:"used_vram"`
	} `json:"mem_usage"`
}

// smiRows reads a list of GPUs, bare or under gpu_data, after whatever warnings stand before it. A row whose parts have
// another form than expected is taken without them.
func smiRows(text []byte) ([]smiRow, error) {
	text = text[:min(len(text), maxToolBytes)]
	start := bytes.IndexAny(text, "[{")
	if start < 0 {
		return nil, fmt.Errorf("amd-smi printed no JSON: %.80q", clean(string(text), 80))
	}
	var raw []json.RawMessage
	var wrapped struct {
		GPUs []json.RawMessage `json:"gpu_data"`
	}
	// Decoders stop after the first value: a text may follow, too.
	if err := json.NewDecoder(bytes.NewReader(text[start:])).Decode(&raw); err != nil {
		if err := json.NewDecoder(bytes.NewReader(text[start:])).Decode(&wrapped); err != nil {
			return nil, fmt.Errorf("amd-smi's JSON cannot be read: %w", err)
		}
		raw = wrapped.GPUs
	}
	var rows []smiRow
	for _, r := range raw[:min(len(raw), maxToolGPUs)] {
		var row smiRow
		if err := json.Unmarshal(r, &row); err != nil && !isTypeError(err) {
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// isTypeError tells a part of another type (such as "N/A" for an object), after which decoding went on with the rest.
func isTypeError(err error) bool {
	_, ok := err.(*json.UnmarshalTypeError)
	return ok
}

// FromAMDSMI joins what `amd-smi list --json` and `amd-smi static --json` printed. amd-smi knows no masks, so all that were
// inherited are applied. Its own order is that of PCI addresses; the driver's is that of node_id, where it is given.
func FromAMDSMI(list, static []byte, getenv func(string) string) (Host, error) {
	h := Host{Source: "amd-smi", LookedAt: []string{"amd-smi list --json", "amd-smi static --json"}, Visible: []int{}}
	rows, err := smiRows(list)
	if err != nil {
		return Host{}, err
	}
	details, err := smiRows(static)
	if err != nil {
		return Host{}, err
	}
	for i, row := range rows {
		g := GPU{BDF: address(row.BDF), Node: figure(row.NodeID).int()}
		if strings.HasPrefix(row.UUID, "GPU-") {
			g.UUID = clean(row.UUID, 40)
		}
		if strings.HasPrefix(row.Render, "renderD") {
			g.RenderNode = "/dev/dri/" + clean(row.Render, 20)
		}
		for j, d := range details {
			if same(row, d, i, j) {
				g.take(d)
				break
			}
		}
		h.GPUs = append(h.GPUs, g)
	}
	slices.SortStableFunc(h.GPUs, func(a, b GPU) int { return a.Node - b.Node })
	for i := range h.GPUs {
		h.GPUs[i].KFDIndex = i
	}
	if len(h.GPUs) == 0 {
		h.Why = "amd-smi lists no GPU"
	}
	h.applyMasks(getenv)
	return h, nil
}

// same joins rows by amd-smi's own number, or by their place where it is missing.
func same(a, b smiRow, i, j int) bool {
	n, m := figure(a.GPU), figure(b.GPU)
	if n.known && m.known {
		return n.value == m.value
	}
	return i == j
}

func (g *GPU) take(d smiRow) {
	known := func(s string) string {
		if s = clean(s, 80); s == "N/A" {
			return ""
		}
		return s
	}
	g.Product, g.CUs = known(d.ASIC.MarketName), figure(d.ASIC.CUs).int()
	if arch := known(d.ASIC.Arch); strings.HasPrefix(arch, "gfx") {
		g.Arch = arch
	}
	if id, err := strconv.ParseInt(strings.TrimPrefix(d.ASIC.DeviceID, "0x"), 16, 32); err == nil && id > 0 {
		g.DeviceID = int(id)
	}
	if g.BDF == "" {
		g.BDF = address(d.Bus.BDF)
	}
	g.ComputePartition, g.MemoryPartition = known(d.Partition.Compute), known(d.Partition.Memory)
}

// SMIUsage reads `amd-smi metric --json`: one entry for each GPU in the order of amd-smi.
func SMIUsage(metric []byte) ([]Usage, error) {
	rows, err := smiRows(metric)
	if err != nil {
		return nil, err
	}
	var out []Usage
	for _, row := range rows {
		var u Usage
		if f := figure(row.Usage.GFX); f.known && f.value <= 100 {
			n := f.int()
			u.BusyPercent = &n
		}
		if f := figure(row.Memory.Used); f.known {
			n := f.bytes()
			u.VRAMUsed = &n
		}
		if f := figure(row.Memory.Total); f.known {
			n := f.bytes()
			u.VRAMTotal = &n
		}
		out = append(out, u)
	}
	return out, nil
}

// address takes what looks like a PCI address.
func address(s string) string {
	if len(s) < 7 || len(s) > 16 || strings.Trim(s, "0123456789abcdefABCDEF:.") != "" || !strings.Contains(s, ":") {
		return ""
	}
	return strings.ToLower(s)
}

// smiFigure is a number of amd-smi with its unit; known is false for "N/A" and whatever is no number.
type smiFigure struct {
	value float64
	unit  string
	known bool
}

func figure(raw json.RawMessage) smiFigure {
	var withUnit struct {
		Value *float64 `json:"value"`
		Unit  string   `json:"unit"`
	}
	var n float64
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return smiFigure{}
	case json.Unmarshal(raw, &n) == nil:
		return smiFigure{n, "", n >= 0}
	case json.Unmarshal(raw, &withUnit) == nil && withUnit.Value != nil:
		return smiFigure{*withUnit.Value, withUnit.Unit, *withUnit.Value >= 0}
	}
	return smiFigure{}
}

func (f smiFigure) int() int {
	if !f.known || f.value > 1<<31-1 {
		return 0
	}
	return int(f.value)
}

// bytes scales by the unit; amd-smi's MB are 2^20 bytes.
func (f smiFigure) bytes() int64 {
	scale := map[string]float64{"": 1 << 20, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[strings.ToUpper(f.unit)]
	if n := f.value * scale; n < 1<<62 {
		return int64(n)
	}
	return 0
}
