package gpu

import (
	"slices"
	"strconv"
	"strings"
)

// Mask is one of the variables that hide or reorder GPUs.
type Mask struct {
	Variable string `json:"variable"`
	Value    string `json:"value"`
	// Shows is how many GPUs are left. Stopped is the entry at which reading ended, as the runtimes ignore that entry and
	// all after it; empty where every entry counts.
	Shows   int    `json:"shows"`
	Stopped string `json:"stopped,omitempty"`
}

// maxMaskLen is far more than a list of all GPUs of a host takes.
const maxMaskLen = 4096

// applyMasks fills Visible, Masks and every HIPIndex. Variables that are set and empty count as not set.
func (h *Host) applyMasks(getenv func(string) string) {
	seen := make([]int, len(h.GPUs))
	for i := range seen {
		seen[i] = i
		h.GPUs[i].HIPIndex = -1
	}
	if value := getenv("ROCR_VISIBLE_DEVICES"); value != "" {
		mask := Mask{Variable: "ROCR_VISIBLE_DEVICES", Value: value}
		seen, mask.Stopped = h.rocrMask(value)
		mask.Shows = len(seen)
		h.Masks = append(h.Masks, mask)
	}
	for i, at := range seen {
		h.GPUs[at].HIPIndex = i
	}
	h.Visible = seen
	// HIP reads CUDA_VISIBLE_DEVICES only where its own is empty (ROCclr, rocdevice.cpp).
	for _, name := range []string{"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		mask := Mask{Variable: name, Value: value}
		h.Visible, mask.Stopped = h.hipMask(value, seen)
		mask.Shows = len(h.Visible)
		h.Masks = append(h.Masks, mask)
		return
	}
}

// rocrMask reads ROCR_VISIBLE_DEVICES as ROCr does (amd_filter_device.cpp): indices in C notation or the unique beginning of
// a UUID, in any case; the first bad or repeated entry ends the list, and so does an entry more than there are GPUs.
func (h *Host) rocrMask(value string) (visible []int, stopped string) {
	visible = []int{}
	for i, entry := range entries(value) {
		token := strings.ToUpper(strings.TrimSpace(entry))
		at := -1
		if strings.HasPrefix(token, "G") {
			at = h.byUUIDPrefix(token)
		} else if n, ok := cInteger(token); ok {
			at = n
		}
		if i >= len(h.GPUs) || at < 0 || at >= len(h.GPUs) || slices.Contains(visible, at) {
			return visible, entry
		}
		visible = append(visible, at)
	}
	return visible, ""
}

// cInteger reads what strtol with base 0 takes whole: 010 is eight.
func cInteger(token string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(token, "+"), 0, 32)
	if err != nil || strings.ContainsAny(token, "_oO") || strings.HasPrefix(token, "0B") {
		return 0, false
	}
	return int(n), true
}

// byUUIDPrefix finds the only GPU whose UUID begins so, or -1.
func (h *Host) byUUIDPrefix(token string) int {
	if len(token) < 5 || len(token) > 20 {
		return -1
	}
	found := -1
	for i, g := range h.GPUs {
		if !strings.HasPrefix(strings.ToUpper(g.UUID), token) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// hipMask reads HIP_VISIBLE_DEVICES as HIP does: plain decimal indices into what ROCr shows, or a part of a UUID with its
// GPU-; a repeated entry is passed over, the first bad one ends the list.
func (h *Host) hipMask(value string, seen []int) (visible []int, stopped string) {
	visible = []int{}
	for _, entry := range entries(value) {
		index := -1
		if strings.Contains(entry, "GPU-") {
			index = slices.IndexFunc(seen, func(at int) bool { return strings.Contains(h.GPUs[at].UUID, entry) })
		} else if n, err := strconv.Atoi(entry); err == nil && strconv.Itoa(n) == entry {
			index = n
		}
		if index < 0 || index >= len(seen) {
			return visible, entry
		}
		if !slices.Contains(visible, seen[index]) {
			visible = append(visible, seen[index])
		}
	}
	return visible, ""
}

// entries splits a mask at its commas. One trailing comma adds nothing.
func entries(value string) []string {
	if len(value) > maxMaskLen {
		value = value[:maxMaskLen]
	}
	return strings.Split(strings.TrimSuffix(value, ","), ",")
}
