package analyze

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// Codes of the warnings about counters.
const (
	WarnCountersZero  = "COUNTERS_ZERO"     // counters that cannot be 0 are
	WarnCounterFile   = "COUNTER_FILE"      // a file cannot be read, or only in part
	WarnSeveralGrids  = "SEVERAL_GRIDS"     // the kernel was counted with several grids
	WarnCountersMixed = "COUNTERS_MIXED"    // a metric is of counters of different dispatches
	WarnImplausible   = "COUNTERS_TOO_HIGH" // more active cycles than the time allows
)

// CounterOptions say whose counters are meant, on what GPU.
type CounterOptions struct {
	// Kernel is the name in the files, mangled or demangled, with or without its parameters; empty for the only kernel that is not the
	// runtime's own.
	Kernel string
	// GridItems is the grid in work-items; 0 for the one that was counted most often.
	GridItems int64
	// Arch is the architecture such as "gfx950"; empty where it is not known: formulas of one architecture are left out then.
	Arch string
	// SoC are the figures of the GPU at hand; the zero value where they are not known.
	SoC soc.SoC
}

// Counters are the performance counters of one kernel with one grid.
type Counters struct {
	Kernel string `json:"kernel"`
	// GridItems and WorkgroupItems are in work-items.
	GridItems      int64 `json:"grid_items,omitempty"`
	WorkgroupItems int64 `json:"workgroup_items,omitempty"`
	// Dispatches were counted; each counter's value is the mean over those that counted it.
	Dispatches int            `json:"dispatches"`
	DurationNS *float64       `json:"duration_ns,omitempty" jsonschema_description:"Mean duration of the counted dispatches."`
	Values     []CounterValue `json:"values"`
	Metrics    []Metric       `json:"metrics"`
	Bound      Bound          `json:"bound"`
	// AllZero says that no counter counted anything: the profiler did not work, and no metric is given.
	AllZero bool `json:"all_zero,omitempty"`
	// Kernels are the others in the files; at most twelve.
	Kernels []string `json:"other_kernels,omitempty"`
}

// CounterValue is one counter.
type CounterValue struct {
	Name       string  `json:"name"`
	Value      float64 `json:"value" jsonschema_description:"Mean over the dispatches; of each the sum over the counter's instances."`
	Dispatches int     `json:"dispatches"`
	Zero       bool    `json:"zero,omitempty" jsonschema_description:"0 in every dispatch."`
	Suspect    bool    `json:"suspect,omitempty" jsonschema_description:"0 though a kernel that ran must have counted."`
}

// Metric is a figure that is computed from counters.
type Metric struct {
	ID      string   `json:"id"`
	Says    string   `json:"says"`
	Unit    string   `json:"unit"`
	Value   *float64 `json:"value,omitempty"`
	Formula string   `json:"formula,omitempty"`
	// Missing are the counters that would be needed, Why is any other reason why there is no value.
	Missing []string `json:"missing,omitempty"`
	Why     string   `json:"why,omitempty"`
	// Dispatches counted all of the counters; 0 where they are of different dispatches.
	Dispatches int `json:"dispatches,omitempty"`
}

// CounterFile are the rows of one counter_collection.csv. Dispatch ids are those of its process.
type CounterFile struct {
	Name string
	Rows []rocprof.CounterRow
}

// ReadCounterFiles reads counter_collection.csv files of any generation; those that are empty hold nothing. A file that cannot be read, or is cut
// short, is a warning that names it, as long as one can be read; else the error TRACE_CORRUPT. Without files the error is NO_ARTIFACT.
func ReadCounterFiles(ctx context.Context, paths []string) ([]CounterFile, []envelope.Warning, error) {
	var out []CounterFile
	var warnings []envelope.Warning
	var last error
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		name := filepath.Base(path)
		rows, err := readCounterFile(path)
		if err != nil {
			last = err
			warnings = append(warnings, envelope.Warning{Code: WarnCounterFile, Message: fmt.Sprintf("%s cannot be read beyond %d rows: %v", name, len(rows), err)})
		}
		if err == nil || len(rows) > 0 {
			out = append(out, CounterFile{Name: name, Rows: rows})
		}
	}
	switch {
	case len(paths) == 0:
		return nil, nil, envelope.Build(envelope.NoArtifact, envelope.Facts{Message: "there are no counter files (counter_collection.csv): capture with_pmc writes them"})
	case len(out) == 0:
		return nil, nil, envelope.Build(envelope.TraceCorrupt, envelope.Facts{Message: warnings[0].Message, Evidence: envelope.Evidence{Path: filepath.Base(paths[0]), Found: last.Error()}})
	}
	return out, warnings, nil
}

func readCounterFile(path string) ([]rocprof.CounterRow, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rocprof.ReadCounters(f)
}

// dispatchID tells dispatches apart: each file numbers its own.
type dispatchID struct {
	file     int
	agent    string
	dispatch int64
}

// counted are the counters of one dispatch.
type counted struct {
	values     map[string]float64
	grid, size int64
	ns         int64
}

// CountersOf computes the metrics of one kernel. Errors: NO_ARTIFACT where the files hold no row, or none of the kernel; AMBIGUOUS_KERNEL where
// none was named and there are several.
func CountersOf(files []CounterFile, opt CounterOptions) (Counters, []envelope.Warning, error) {
	byKernel := map[string]map[dispatchID]*counted{}
	for i, f := range files {
		for _, r := range f.Rows {
			if byKernel[r.Kernel] == nil {
				byKernel[r.Kernel] = map[dispatchID]*counted{}
			}
			id := dispatchID{i, r.Agent, r.DispatchID}
			d := byKernel[r.Kernel][id]
			if d == nil {
				d = &counted{values: map[string]float64{}, grid: r.GridItems, size: r.WorkgroupItems, ns: max(r.EndNS-r.StartNS, 0)}
				byKernel[r.Kernel][id] = d
			}
			if r.HasValue {
				d.values[r.Counter] += r.Value
			}
		}
	}
	kernel, others, err := chooseKernel(slices.Sorted(maps.Keys(byKernel)), opt.Kernel)
	if err != nil {
		return Counters{}, nil, err
	}
	c := Counters{Kernel: kernel, Kernels: page(others, 0, maxOtherKernels), Values: []CounterValue{}, Metrics: []Metric{}}
	set, warnings, err := chooseGrid(&c, byKernel[kernel], opt)
	if err != nil {
		return Counters{}, nil, err
	}
	c.addValues(set)
	if c.AllZero {
		warnings = append(warnings, envelope.Warning{Code: WarnCountersZero, Message: "every counter is 0: the profiler counted nothing, which happens by the GPU's power state, its rights or an unsupported GPU"})
	} else if names := c.suspects(); len(names) > 0 {
		warnings = append(warnings, envelope.Warning{Code: WarnCountersZero, Message: strings.Join(names, ", ") + " cannot be 0 when a kernel ran: do not trust these counters"})
	}
	c.addMetrics(set, opt)
	warnings = append(warnings, c.check(opt)...)
	c.Bound = BoundOf(nil, &c)
	return c, warnings, nil
}

const maxOtherKernels = 12

// runtimeKernel names kernels of the HIP runtime, which copy and fill memory.
func runtimeKernel(name string) bool { return strings.HasPrefix(name, "__amd_rocclr_") }

// chooseKernel finds the kernel among the names.
func chooseKernel(names []string, asked string) (kernel string, others []string, err error) {
	var fit []string
	for _, name := range names {
		if asked == "" && !runtimeKernel(name) || asked != "" && sameKernel(name, asked) {
			fit = append(fit, name)
		} else {
			others = append(others, name)
		}
	}
	if exact := slices.Index(fit, asked); exact >= 0 {
		return asked, append(others, slices.Delete(slices.Clone(fit), exact, exact+1)...), nil
	}
	switch {
	case len(names) == 0:
		return "", nil, envelope.Build(envelope.NoArtifact, envelope.Facts{Message: "the counter files hold no row: no dispatch was counted"})
	case len(fit) == 0 && asked == "":
		return "", nil, envelope.Build(envelope.NoArtifact, envelope.Facts{Message: "the counter files hold only the runtime's own kernels: " + list(names)})
	case len(fit) == 0:
		return "", nil, envelope.Build(envelope.NoArtifact, envelope.Facts{Message: fmt.Sprintf("the counter files hold no row of %s; they hold %s", trimmed(asked, 100), list(names))})
	case len(fit) > 1:
		var candidates []envelope.Candidate
		for _, name := range fit {
			candidates = append(candidates, envelope.Candidate{Kernel: trimmed(name, 160)})
		}
		return "", nil, envelope.Build(envelope.AmbiguousKernel, envelope.Facts{Message: "the counter files hold several kernels: " + list(fit), Candidates: candidates})
	}
	return fit[0], others, nil
}

// sameKernel compares names that may lack the suffix of a descriptor or the parameters.
func sameKernel(name, asked string) bool {
	clean := func(s string) string {
		return strings.TrimSuffix(strings.TrimSuffix(s, " [clone .kd]"), ".kd")
	}
	name, asked = clean(name), clean(asked)
	return name == asked || strings.HasPrefix(name, asked+"(") || strings.HasPrefix(name, "void "+asked+"(")
}

func list(names []string) string {
	var out []string
	for _, n := range page(names, 0, maxNames) {
		out = append(out, trimmed(n, 100))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// chooseGrid takes the dispatches of one grid: the one that was asked for, else the one that was counted most often, the largest of equals.
func chooseGrid(c *Counters, all map[dispatchID]*counted, opt CounterOptions) ([]*counted, []envelope.Warning, error) {
	byGrid := map[int64][]*counted{}
	for _, id := range slices.SortedFunc(maps.Keys(all), func(a, b dispatchID) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.agent, b.agent), cmp.Compare(a.dispatch, b.dispatch))
	}) {
		byGrid[all[id].grid] = append(byGrid[all[id].grid], all[id])
	}
	grids := slices.SortedFunc(maps.Keys(byGrid), func(a, b int64) int { return cmp.Or(cmp.Compare(len(byGrid[b]), len(byGrid[a])), cmp.Compare(b, a)) })
	var warnings []envelope.Warning
	grid := grids[0]
	if opt.GridItems > 0 {
		grid = opt.GridItems
	} else if len(grids) > 1 {
		warnings = append(warnings, envelope.Warning{Code: WarnSeveralGrids, Message: fmt.Sprintf("%s was counted with %d grids; the figures are of the grid of %d work-items", trimmed(c.Kernel, 100), len(grids), grid)})
	}
	set := byGrid[grid]
	if len(set) == 0 {
		return nil, nil, envelope.Build(envelope.NoArtifact, envelope.Facts{Message: fmt.Sprintf("no dispatch of %s with a grid of %d work-items was counted; there are grids of %v", trimmed(c.Kernel, 100), grid, page(grids, 0, maxNames))})
	}
	c.GridItems, c.WorkgroupItems, c.Dispatches = grid, set[0].size, len(set)
	total, timed := int64(0), int64(0)
	for _, d := range set {
		if d.ns > 0 {
			total, timed = plus(total, d.ns), timed+1
		}
	}
	c.DurationNS = ratio(total, timed)
	return set, warnings, nil
}

// addValues gives each counter's mean over the dispatches that counted it.
func (c *Counters) addValues(set []*counted) {
	sums, dispatches := map[string]float64{}, map[string]int{}
	for _, d := range set {
		for name, v := range d.values {
			sums[name] += v
			dispatches[name]++
		}
	}
	c.AllZero = len(sums) > 0
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		zero := sums[name] == 0
		c.AllZero = c.AllZero && zero
		c.Values = append(c.Values, CounterValue{Name: name, Value: sums[name] / float64(dispatches[name]), Dispatches: dispatches[name], Zero: zero, Suspect: zero && slices.Contains(mustCount, name)})
	}
}

func (c *Counters) suspects() []string {
	var out []string
	for _, v := range c.Values {
		if v.Suspect {
			out = append(out, v.Name)
		}
	}
	return out
}

// value is a counter's mean; false where it was not counted.
func (c *Counters) value(name string) (float64, bool) {
	for _, v := range c.Values {
		if v.Name == name {
			return v.Value, true
		}
	}
	return 0, false
}

// addMetrics computes the table, then what follows from it and the time.
func (c *Counters) addMetrics(set []*counted, opt CounterOptions) {
	for _, row := range metrics {
		c.Metrics = append(c.Metrics, c.metric(row, set, opt))
	}
	c.addBandwidth(opt.SoC)
}

// metric computes one metric by the first way whose counters are there, over the dispatches that counted all of them. Where no dispatch did, which is so for
// counters of different passes, the means are taken, and that is said.
func (c *Counters) metric(row metricRow, set []*counted, opt CounterOptions) Metric {
	m := Metric{ID: row.id, Unit: row.unit, Says: row.says}
	for _, w := range row.ways {
		if len(w.archs) > 0 && opt.Arch != "" && !slices.Contains(w.archs, opt.Arch) {
			if m.Why == "" && m.Missing == nil {
				m.Why = "no formula is known for " + opt.Arch
			}
			continue
		}
		var missing []string
		for _, name := range w.needs {
			if _, ok := c.value(name); !ok {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			if m.Missing == nil || len(missing) < len(m.Missing) {
				m.Missing, m.Formula, m.Why = missing, w.formula, ""
			}
			continue
		}
		m.Missing, m.Formula, m.Why = nil, w.formula, ""
		if len(w.archs) > 0 && opt.Arch == "" {
			m.Why = "the architecture is not known"
			return m
		}
		if c.AllZero {
			m.Why = "every counter is 0"
			return m
		}
		values := c.together(w.needs, set, &m)
		x, ok, why := w.f(values, opt.SoC)
		if !ok {
			m.Why = why
			return m
		}
		m.Value = rounded(x)
		return m
	}
	return m
}

// together gives the means of counters over the dispatches that counted all of them, else their means.
func (c *Counters) together(needs []string, set []*counted, m *Metric) []float64 {
	out := make([]float64, len(needs))
	for _, d := range set {
		has := func(name string) bool { _, ok := d.values[name]; return ok }
		if slices.ContainsFunc(needs, func(name string) bool { return !has(name) }) {
			continue
		}
		m.Dispatches++
		for i, name := range needs {
			out[i] += d.values[name]
		}
	}
	for i, name := range needs {
		if m.Dispatches > 0 {
			out[i] /= float64(m.Dispatches)
		} else {
			out[i], _ = c.value(name)
		}
	}
	return out
}

// addBandwidth divides the bytes by the time, where both are known.
func (c *Counters) addBandwidth(s soc.SoC) {
	read, write := c.metricNamed("read_bytes"), c.metricNamed("write_bytes")
	bw := Metric{ID: "memory_gbps", Unit: unitGBs, Says: "bytes to and from memory over the time of a dispatch", Formula: "(read_bytes + write_bytes) / duration_ns"}
	share := Metric{ID: "memory_pct", Unit: unitPct, Says: "the same of the GPU's peak", Formula: "100 x memory_gbps / peak"}
	switch {
	case read.Value == nil || write.Value == nil:
		bw.Why = "the bytes are not known"
		bw.Missing = slices.Concat(read.Missing, write.Missing)
	case c.DurationNS == nil:
		bw.Why = "the files have no timestamps"
	default:
		bw.Value = rounded((*read.Value + *write.Value) / *c.DurationNS)
	}
	switch {
	case bw.Value == nil:
		share.Why = "the bandwidth is not known"
	case s.HBMBytesPerS <= 0:
		share.Why = whyNoGPU
	default:
		share.Value = rounded(100 * *bw.Value * 1e9 / s.HBMBytesPerS)
	}
	c.Metrics = append(c.Metrics, bw, share)
}

func (c *Counters) metricNamed(id string) Metric {
	for _, m := range c.Metrics {
		if m.ID == id {
			return m
		}
	}
	return Metric{ID: id}
}

// check warns of figures that cannot be, and of metrics over different dispatches.
func (c *Counters) check(opt CounterOptions) []envelope.Warning {
	var out []envelope.Warning
	if active, ok := c.value("GRBM_GUI_ACTIVE"); ok && c.DurationNS != nil && opt.SoC.Known() && opt.SoC.XCDs > 0 {
		perXCD, most := active/float64(opt.SoC.XCDs), *c.DurationNS*opt.SoC.ClockHz/1e9
		if perXCD > plausible*most {
			out = append(out, envelope.Warning{Code: WarnImplausible, Message: fmt.Sprintf("GRBM_GUI_ACTIVE is %.0f cycles an XCD where a dispatch of %.0f ns has at most %.0f at %.0f MHz: it counted more than the dispatch, or the GPU is another one", perXCD, *c.DurationNS, most, opt.SoC.ClockHz/1e6)})
		}
	}
	var mixed []string
	for _, m := range c.Metrics {
		if m.Value != nil && m.Dispatches == 0 && m.Unit == unitPct && m.ID != "memory_pct" {
			mixed = append(mixed, m.ID)
		}
	}
	if len(mixed) > 0 {
		out = append(out, envelope.Warning{Code: WarnCountersMixed, Message: strings.Join(mixed, ", ") + " are of counters that no dispatch counted together"})
	}
	return out
}

// plausible leaves room for the work before and after the timestamps.
const plausible = 1.5
