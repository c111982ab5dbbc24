package gpu

import (
	"bufio"
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxToolBytes = 4 << 20 // of what a tool printed; eight GPUs take 60 kB
	maxToolLine  = 1 << 16
	maxToolGPUs  = 1024
)

var (
	ansiColour = regexp.MustCompile("\x1b\\[[0-9;]*m")
	agentLine  = regexp.MustCompile(`^Agent \d+$`)
)

// agent is one HSA agent's lines at the first level, by label: those of its caches, pools and ISAs stand deeper.
type agent map[string]string

// FromRocminfo reads what rocminfo printed, with or without success. rocminfo runs under ROCR_VISIBLE_DEVICES itself, so
// its GPUs are those that the mask left, in the mask's order; only HIP's masks are applied here.
//
// Layout: rocminfo.cc of the ROCm tools. A host without GPUs or without access answers with Host.Why.
func FromRocminfo(text []byte, getenv func(string) string) Host {
	h := Host{Source: "rocminfo", LookedAt: []string{"rocminfo"}, Visible: []int{}}
	var agents []agent
	in := false
	lines := bufio.NewScanner(bytes.NewReader(text[:min(len(text), maxToolBytes)]))
	lines.Buffer(nil, maxToolLine)
	for lines.Scan() {
		line := strings.TrimRight(ansiColour.ReplaceAllString(lines.Text(), ""), " \r\t")
		switch {
		case agentLine.MatchString(line):
			if in = len(agents) < maxToolGPUs; in {
				agents = append(agents, agent{})
			}
		case strings.HasPrefix(line, "*** Done"):
			in = false
		case in && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			label, value, ok := strings.Cut(strings.TrimSpace(line), ":")
			if _, had := agents[len(agents)-1][label]; ok && !had {
				agents[len(agents)-1][label] = clean(value, 120)
			}
		case !in:
			h.rocminfoSays(line)
		}
	}
	h.addAgents(agents)
	if len(h.GPUs) > 0 {
		h.Why, h.accessDenied = "", false
	} else if h.Why == "" {
		h.Why = "rocminfo lists no GPU"
	}
	h.applyMasks(func(name string) string {
		if name == "ROCR_VISIBLE_DEVICES" {
			return ""
		}
		return getenv(name)
	})
	return h
}

// rocminfoSays takes the reasons that rocminfo gives before it gives up. The one that names the device file says most.
func (h *Host) rocminfoSays(line string) {
	line = clean(line, 240)
	switch {
	case strings.HasPrefix(line, "Unable to open /dev/kfd"):
		h.Why = line
		h.accessDenied = strings.Contains(line, "Permission denied") || strings.Contains(line, "not permitted")
	case strings.Contains(line, `is not member of "`):
		h.accessDenied = true
		if h.Why == "" {
			h.Why = line
		}
	case strings.HasPrefix(line, "ROCk module is NOT loaded") && h.Why == "":
		h.Why = line
	}
}

func (h *Host) addAgents(agents []agent) {
	var cpus []int // nodes
	for _, a := range agents {
		if a["Device Type"] == "CPU" {
			cpus = append(cpus, a.number("Node"))
		}
	}
	for _, a := range agents {
		if a["Device Type"] != "GPU" {
			continue
		}
		g := GPU{
			Node: a.number("Node"), Arch: a["Name"], Product: a["Marketing Name"], DeviceID: a.number("Chip ID"),
			CUs: a.number("Compute Unit"), SIMDsPerCU: a.number("SIMDs per CU"), ShaderEngines: a.number("Shader Engines"),
			WaveSize: a.number("Wavefront Size"), ClockMHz: a.number("Max Clock Freq. (MHz)"),
		}
		if len(g.Arch) < 4 || !strings.HasPrefix(g.Arch, "gfx") {
			continue
		}
		if strings.HasPrefix(a["Uuid"], "GPU-") && a["Uuid"] != "GPU-XX" {
			g.UUID = a["Uuid"]
		}
		if location := a.number("BDFID"); location > 0 {
			g.BDF = bdf(a.number("Domain"), uint64(location))
		}
		// No mask hides CPUs, so the GPU nodes before this one are the nodes that are not theirs.
		g.KFDIndex = g.Node
		for _, n := range cpus {
			if n < g.Node {
				g.KFDIndex--
			}
		}
		if slices.Contains(cpus, g.Node) {
			g.KFDIndex = -1
		}
		h.GPUs = append(h.GPUs, g)
	}
}

// number reads "304", "29857(0x74a1)" and the like; 0 for anything else.
func (a agent) number(label string) int {
	text, _, _ := strings.Cut(a[label], "(")
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}
