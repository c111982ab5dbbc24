package att

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Verdict is what a dispatch directory is worth as a trace of one kernel.
type Verdict struct {
	// State is "kept" for a trace of the kernel, "empty" where no wave was traced, "corrupt" where the waves cannot be read.
	State string
	// Waves counts the traced waves that filenames.json lists.
	Waves int
	// Ins counts the instruction rows of the kernel's code object; Mapped those of them with a source line.
	Ins, Mapped int
	// MappedPct is 100 x Mapped / Ins, MappedLatencyPct the same weighted by latency; nil where there is nothing to divide by.
	MappedPct, MappedLatencyPct *float64
	// FlyDSLPct is the share of mapped rows whose innermost place lies inside the flydsl package itself.
	FlyDSLPct *float64
	// TopStallType is the class of instruction with most stall cycles; empty where nothing stalled.
	TopStallType string
	// Totals are the sums over the kernel's instruction rows.
	Totals Totals
	// Err is EMPTY_ATT or TRACE_CORRUPT for a trace that is not kept.
	Err error
}

// The states of a Verdict.
const (
	Kept  = "kept"
	Empty = "empty"
	Bad   = "corrupt"
)

// Verdict judges the directory as a trace of the kernel; "" for whatever it holds.
func (d *Dispatch) Verdict(kernel string) Verdict {
	v := Verdict{State: Kept, Waves: len(d.Manifest.Waves)}
	rows := d.Code.KernelRows(kernel)
	byType := map[string]int64{}
	inside := 0
	var mappedLatency int64
	for _, r := range rows {
		if !r.Instruction() {
			continue
		}
		v.Ins++
		v.Totals.Add(r.Totals())
		kind := StallType(r.ISA)
		byType[kind] = satAdd(byType[kind], r.Stall)
		if r.Mapped() {
			v.Mapped++
			mappedLatency = satAdd(mappedLatency, r.Latency)
			if insideFlyDSL(r.Source) {
				inside++
			}
		}
	}
	v.MappedPct = percent(int64(v.Mapped), int64(v.Ins))
	v.MappedLatencyPct = percent(mappedLatency, v.Totals.Latency)
	v.FlyDSLPct = percent(int64(inside), int64(v.Mapped))
	v.TopStallType = topType(byType)
	switch {
	case d.pcSamples():
		v.State = Bad
		v.Err = corrupt(d.Dir, codeFile, errors.New("the files hold PC samples and no thread trace"))
	case d.Code.Null || v.Ins == 0, v.Totals.Hit == 0 && v.Waves == 0:
		v.State = Empty
		v.Err = envelope.Build(envelope.EmptyATT, envelope.Facts{Message: d.emptyMessage(kernel)})
	case !d.holds(kernel):
		v.State = Empty
		v.Err = envelope.Build(envelope.EmptyATT, envelope.Facts{
			Message: fmt.Sprintf("the trace holds %s and not %s", d.Code.names(), kernel),
		})
	case v.Totals.Hit == 0 && d.Code.Totals().Hit > 0:
		v.State = Empty
		v.Err = envelope.Build(envelope.EmptyATT, envelope.Facts{
			Message: fmt.Sprintf("the trace has the code of %s and no hit of it: what ran is of another code object or could not be resolved", orAny(kernel)),
		})
	}
	return v
}

// pcSamples says that the files are those of PC sampling, which att-tool writes in the same form.
func (d *Dispatch) pcSamples() bool { return d.Manifest.PCSampling || d.Code.extra }

func (d *Dispatch) emptyMessage(kernel string) string {
	kernel = orAny(kernel)
	if busy := d.Occupancy.BusyCUs(""); len(busy) > 0 {
		return fmt.Sprintf("no wave of %s ran on a traced CU; waves ran on other CUs of %d traced shader engines", kernel, len(busy))
	}
	return fmt.Sprintf("no wave of %s was traced", kernel)
}

func orAny(kernel string) string {
	if kernel == "" {
		return "any kernel"
	}
	return kernel
}

// holds says whether the code may be that of the kernel: a header row names it, or no header row names anything, which is so
// in traces that begin inside a device function.
func (d *Dispatch) holds(kernel string) bool {
	if kernel == "" || len(d.Code.Kernels()) == 0 {
		return true
	}
	_, ok := d.Code.objectOf(kernel)
	return ok
}

func percent(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	p := math.Round(1000*float64(part)/float64(whole)) / 10
	return &p
}

// insideFlyDSL says whether the innermost place of a source chain is a file of the flydsl package.
func insideFlyDSL(source string) bool {
	first, _, _ := strings.Cut(source, " -> ")
	if i := strings.LastIndexByte(first, ':'); i >= 0 {
		first = first[:i]
	}
	for _, part := range strings.Split(path.Dir(strings.ReplaceAll(first, `\`, "/")), "/") {
		if part == "flydsl" {
			return true
		}
	}
	return false
}

// topType is the class with most stall cycles, the first by name among equals.
func topType(byType map[string]int64) string {
	best, most := "", int64(0)
	for name, stall := range byType {
		if stall > most || stall == most && stall > 0 && name < best {
			best, most = name, stall
		}
	}
	return best
}
