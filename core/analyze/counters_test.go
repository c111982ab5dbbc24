package analyze

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// pass makes the rows of one file: one dispatch of 1,000 ns for each map of counters.
func pass(kernel string, grid int64, dispatches ...map[string]float64) CounterFile {
	f := CounterFile{Name: "out_counter_collection.csv"}
	for i, d := range dispatches {
		for name, v := range d {
			f.Rows = append(f.Rows, rocprof.CounterRow{Counter: name, Value: v, HasValue: true, Kernel: kernel, DispatchID: int64(i + 1), Agent: "Agent 3", GridItems: grid, WorkgroupItems: 256, StartNS: 1000, EndNS: 2000})
		}
	}
	return f
}

func mi300x(t testing.TB) soc.SoC {
	t.Helper()
	s, ok := soc.ByProduct("MI300X")
	if !ok {
		t.Fatal("no MI300X")
	}
	return s
}

func metric(t testing.TB, c Counters, id string) Metric {
	t.Helper()
	m := c.metricNamed(id)
	if m.Unit == "" {
		t.Fatalf("no metric %s", id)
	}
	return m
}

// TestMetrics: each metric by hand.
func TestMetrics(t *testing.T) {
	t.Parallel()
	all := map[string]float64{
		"GRBM_GUI_ACTIVE": 16_000, "SQ_WAVES": 4096, "SQ_INSTS_VALU": 2000, "SQ_INSTS_MFMA": 500,
		"SQ_WAVE_CYCLES": 800, "SQ_BUSY_CU_CYCLES": 100, "SQ_WAIT_ANY": 600, "SQ_WAIT_INST_ANY": 80, "SQ_WAIT_INST_LDS": 8,
		"SQ_VALU_MFMA_BUSY_CYCLES": 400, "SQ_LDS_BANK_CONFLICT": 30, "SQ_LDS_IDX_ACTIVE": 120,
		"TCC_HIT_sum": 75, "TCC_MISS_sum": 25,
		"TCC_EA0_RDREQ_sum": 1000, "TCC_EA0_RDREQ_32B_sum": 100, "TCC_BUBBLE_sum": 500, "TCC_EA0_WRREQ_sum": 400, "TCC_EA0_WRREQ_64B_sum": 300,
	}
	c, warnings, err := CountersOf([]CounterFile{pass("k_0", 65536, all)}, CounterOptions{Kernel: "k_0", Arch: "gfx942", SoC: mi300x(t)})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("%v, %v", warnings, err)
	}
	for id, want := range map[string]float64{
		"l2_hit_pct": 75, "read_32b_pct": 10, "write_32b_pct": 25, "mfma_inst_pct": 25,
		"mfma_busy_pct":    25, // 400 of 4 x 100 cycles on 4 SIMDs
		"mfma_util_pct":    0.02,
		"lds_conflict_pct": 25, "occupancy_waves": 8, "occupancy_pct": 25, "wait_pct": 75, "wait_issue_pct": 10, "wait_lds_issue_pct": 1,
		"read_bytes": 500*128 + 400*64 + 100*32, "write_bytes": 100*32 + 300*64,
		"memory_gbps": 115.2, // 92,800 and 22,400 bytes in 1,000 ns
		"memory_pct":  2.17,  // of 5.3 TB/s
	} {
		if m := metric(t, c, id); m.Value == nil || *m.Value != want || m.Formula == "" || m.Says == "" || m.Why != "" || m.Missing != nil {
			t.Errorf("%s is %+v, want %v", id, m, want)
		}
	}
	if len(c.Metrics) != 16 || *c.DurationNS != 1000 || c.Dispatches != 1 || c.GridItems != 65536 || c.WorkgroupItems != 256 {
		t.Errorf("%+v", c)
	}
	if c.Bound.Kind != BoundWaiting || *c.Bound.Share != 75 || c.Bound.From != "counters" {
		t.Errorf("%+v", c.Bound)
	}
	// Half of the product is another dispatch's: the mean.
	twice := map[string]float64{"TCC_HIT_sum": 25, "TCC_MISS_sum": 75}
	c, _, err = CountersOf([]CounterFile{pass("k_0", 65536, map[string]float64{"TCC_HIT_sum": 75, "TCC_MISS_sum": 25}, twice)}, CounterOptions{})
	if m := metric(t, c, "l2_hit_pct"); err != nil || *m.Value != 50 || m.Dispatches != 2 || c.Values[0].Value != 50 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestNothingInvented: what is missing, zero or not of this GPU gives no figure and a reason.
func TestNothingInvented(t *testing.T) {
	t.Parallel()
	read := map[string]float64{"TCC_EA0_RDREQ_sum": 1000, "TCC_EA0_RDREQ_32B_sum": 100, "TCC_BUBBLE_sum": 500, "TCC_EA0_WRREQ_sum": 400, "TCC_EA0_WRREQ_64B_sum": 300}
	for name, c := range map[string]struct {
		values  map[string]float64
		opt     CounterOptions
		metric  string
		why     string
		missing []string
	}{
		"not collected":       {map[string]float64{"TCC_HIT_sum": 5}, CounterOptions{Arch: "gfx942"}, "l2_hit_pct", "", []string{"TCC_MISS_sum"}},
		"no requests":         {map[string]float64{"TCC_HIT_sum": 0, "TCC_MISS_sum": 0, "SQ_WAVES": 1}, CounterOptions{}, "l2_hit_pct", whyZero, nil},
		"more than all":       {map[string]float64{"SQ_LDS_BANK_CONFLICT": 5, "SQ_LDS_IDX_ACTIVE": 4}, CounterOptions{Arch: "gfx942"}, "lds_conflict_pct", whyReverse, nil},
		"another arch":        {read, CounterOptions{Arch: "gfx950"}, "read_bytes", "no formula is known for gfx950", nil},
		"arch not known":      {read, CounterOptions{}, "read_bytes", "the architecture is not known", nil},
		"gfx11 has no MFMA":   {map[string]float64{"SQ_INSTS_VALU": 5}, CounterOptions{Arch: "gfx1100"}, "mfma_inst_pct", "no formula is known for gfx1100", nil},
		"parts that exceed":   {map[string]float64{"TCC_EA0_RDREQ_sum": 10, "TCC_EA0_RDREQ_32B_sum": 8, "TCC_BUBBLE_sum": 8}, CounterOptions{Arch: "gfx942"}, "read_bytes", whyReverse, nil},
		"no GPU figures":      {map[string]float64{"SQ_VALU_MFMA_BUSY_CYCLES": 5, "GRBM_GUI_ACTIVE": 9}, CounterOptions{Arch: "gfx942"}, "mfma_util_pct", whyNoGPU, nil},
		"bandwidth of what":   {map[string]float64{"TCC_EA0_RDREQ_sum": 10}, CounterOptions{Arch: "gfx942"}, "memory_gbps", "the bytes are not known", []string{"TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum", "TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"}},
		"no peak":             {read, CounterOptions{Arch: "gfx942"}, "memory_pct", whyNoGPU, nil},
		"everything is 0":     {map[string]float64{"TCC_HIT_sum": 0, "TCC_MISS_sum": 0}, CounterOptions{}, "l2_hit_pct", "every counter is 0", nil},
		"sizes that are 0":    {map[string]float64{"GL2C_EA_RDREQ_sum": 7, "GL2C_EA_RDREQ_32B_sum": 0, "GL2C_EA_RDREQ_64B_sum": 0, "GL2C_EA_RDREQ_128B_sum": 0}, CounterOptions{Arch: "gfx1201"}, "read_32b_pct", whySizes, nil},
		"no bytes from those": {map[string]float64{"GL2C_EA_RDREQ_sum": 7, "GL2C_EA_RDREQ_32B_sum": 0, "GL2C_EA_RDREQ_64B_sum": 0, "GL2C_EA_RDREQ_128B_sum": 0}, CounterOptions{Arch: "gfx1201"}, "read_bytes", whySizes, nil},
	} {
		got, _, err := CountersOf([]CounterFile{pass("k_0", 1, c.values)}, c.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m := metric(t, got, c.metric); m.Value != nil || m.Why != c.why || !slices.Equal(m.Missing, c.missing) {
			t.Errorf("%s: %+v, want why %q, missing %v", name, m, c.why, c.missing)
		}
	}
}

// TestPasses: counters of several passes. Each pass numbers its own dispatches; a metric is of dispatches that have all of its counters, where there are any.
func TestPasses(t *testing.T) {
	t.Parallel()
	files := []CounterFile{
		pass("k_0", 64, map[string]float64{"SQ_WAVE_CYCLES": 100, "GRBM_GUI_ACTIVE": 10}, map[string]float64{"SQ_WAVE_CYCLES": 300, "GRBM_GUI_ACTIVE": 30}),
		pass("k_0", 64, map[string]float64{"SQ_BUSY_CU_CYCLES": 50, "GRBM_GUI_ACTIVE": 20}),
	}
	c, _, err := CountersOf(files, CounterOptions{Arch: "gfx942"})
	if err != nil || c.Dispatches != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	if v, _ := c.value("GRBM_GUI_ACTIVE"); v != 20 {
		t.Errorf("the mean over all passes is %v", v)
	}
	if m := metric(t, c, "occupancy_waves"); *m.Value != 4 || m.Dispatches != 0 {
		t.Errorf("%+v", m)
	}
	files = append(files, pass("k_0", 64, map[string]float64{"SQ_BUSY_CU_CYCLES": 10, "SQ_WAVE_CYCLES": 10}))
	c, _, _ = CountersOf(files, CounterOptions{Arch: "gfx942"})
	if m := metric(t, c, "occupancy_waves"); *m.Value != 1 || m.Dispatches != 1 {
		t.Errorf("one dispatch has both: %+v", m)
	}
	mixed := []CounterFile{pass("k_0", 64, map[string]float64{"TCC_HIT_sum": 1}), pass("k_0", 64, map[string]float64{"TCC_MISS_sum": 1})}
	_, warnings, _ := CountersOf(mixed, CounterOptions{})
	if len(warnings) != 1 || warnings[0].Code != WarnCountersMixed || !strings.Contains(warnings[0].Message, "l2_hit_pct") {
		t.Errorf("%v", warnings)
	}
	// Several rows of one counter in one dispatch are its instances: their sum counts.
	one := pass("k_0", 64, map[string]float64{"SQ_WAVES": 4})
	one.Rows = append(one.Rows, one.Rows[0])
	c, _, _ = CountersOf([]CounterFile{one}, CounterOptions{})
	if v, _ := c.value("SQ_WAVES"); v != 8 {
		t.Errorf("two instances of 4 are %v", v)
	}
}

// TestWhose: which kernel and grid is meant.
func TestWhose(t *testing.T) {
	t.Parallel()
	v := map[string]float64{"SQ_WAVES": 4}
	files := []CounterFile{pass("k_0", 64, v, v), pass("k_0", 128, v), pass("void gemm<4>(float*)", 64, v), pass("__amd_rocclr_copyBuffer", 64, v)}
	for name, c := range map[string]struct {
		files  []CounterFile
		opt    CounterOptions
		kernel string
		grid   int64
		code   envelope.Code
		warn   string
	}{
		"named":                {files, CounterOptions{Kernel: "k_0"}, "k_0", 64, "", WarnSeveralGrids},
		"named with grid":      {files, CounterOptions{Kernel: "k_0", GridItems: 128}, "k_0", 128, "", ""},
		"descriptor":           {files, CounterOptions{Kernel: "k_0.kd", GridItems: 128}, "k_0", 128, "", ""},
		"without parameters":   {files, CounterOptions{Kernel: "gemm<4>"}, "void gemm<4>(float*)", 64, "", ""},
		"no such grid":         {files, CounterOptions{Kernel: "k_0", GridItems: 7}, "", 0, envelope.NoArtifact, ""},
		"a prefix is no name":  {files, CounterOptions{Kernel: "k_"}, "", 0, envelope.NoArtifact, ""},
		"none named":           {files, CounterOptions{}, "", 0, envelope.AmbiguousKernel, ""},
		"the only one":         {files[2:], CounterOptions{}, "void gemm<4>(float*)", 64, "", ""},
		"the runtime's":        {files[3:], CounterOptions{}, "", 0, envelope.NoArtifact, ""},
		"the runtime's, named": {files[3:], CounterOptions{Kernel: "__amd_rocclr_copyBuffer"}, "__amd_rocclr_copyBuffer", 64, "", ""},
		"nothing":              {nil, CounterOptions{}, "", 0, envelope.NoArtifact, ""},
	} {
		got, warnings, err := CountersOf(c.files, c.opt)
		if envelope.CodeOf(err) != c.code || got.Kernel != c.kernel || got.GridItems != c.grid {
			t.Errorf("%s: %s, grid %d, %v", name, got.Kernel, got.GridItems, err)
		}
		if (c.warn != "") != (len(warnings) == 1) || c.warn != "" && warnings[0].Code != c.warn {
			t.Errorf("%s: %v", name, warnings)
		}
	}
}

// TestSuspect: counters that cannot be 0 are flagged, others are not.
func TestSuspect(t *testing.T) {
	t.Parallel()
	c, warnings, err := CountersOf([]CounterFile{pass("k_0", 64, map[string]float64{"SQ_WAVES": 0, "SQ_INSTS_MFMA": 0, "SQ_INSTS_VALU": 7})}, CounterOptions{Arch: "gfx942"})
	if err != nil || len(warnings) != 1 || warnings[0].Code != WarnCountersZero || !strings.Contains(warnings[0].Message, "SQ_WAVES") || strings.Contains(warnings[0].Message, "MFMA") || c.AllZero {
		t.Errorf("%v, %v", warnings, err)
	}
	for _, v := range c.Values {
		if v.Suspect != (v.Name == "SQ_WAVES") || v.Zero != (v.Name != "SQ_INSTS_VALU") {
			t.Errorf("%+v", v)
		}
	}
	if m := metric(t, c, "mfma_inst_pct"); *m.Value != 0 {
		t.Errorf("no matrix instruction is a share of 0: %+v", m)
	}
	_, warnings, _ = CountersOf([]CounterFile{pass("k_0", 64, map[string]float64{"GRBM_GUI_ACTIVE": 1e6})}, CounterOptions{Arch: "gfx942", SoC: mi300x(t)})
	if len(warnings) != 1 || warnings[0].Code != WarnImplausible {
		t.Errorf("125,000 cycles an XCD in 1,000 ns: %v", warnings)
	}
	c, warnings, _ = CountersOf([]CounterFile{pass("k_0", 64, map[string]float64{"SQ_WAVES": 0})}, CounterOptions{})
	if !c.AllZero || len(warnings) != 1 || c.Bound.Kind != BoundUnknown {
		t.Errorf("%+v, %v", c, warnings)
	}
}

// TestCounterFiles: torn and missing files are named, as long as one can be read.
func TestCounterFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const header = `"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"` + "\n"
	good := write("a_counter_collection.csv", header+`1,"k_0","SQ_WAVES",4.0`+"\n")
	torn := write("b_counter_collection.csv", header+`1,"k_0","SQ_WAVES",4.0`+"\n"+`1,"k_0","SQ_BUSY`+"\n")
	bad := write("c_counter_collection.csv", "x,y\n1,2\n")
	empty := write("d_counter_collection.csv", "")
	for name, c := range map[string]struct {
		paths []string
		files int
		warn  string
		code  envelope.Code
	}{
		"good":       {[]string{good}, 1, "", ""},
		"empty":      {[]string{good, empty}, 2, "", ""},
		"torn":       {[]string{good, torn}, 2, "b_counter_collection.csv", ""},
		"bad":        {[]string{bad, good}, 1, "c_counter_collection.csv", ""},
		"missing":    {[]string{good, filepath.Join(dir, "none.csv")}, 1, "none.csv", ""},
		"all bad":    {[]string{bad}, 0, "", envelope.TraceCorrupt},
		"no files":   {nil, 0, "", envelope.NoArtifact},
		"only empty": {[]string{empty}, 1, "", ""},
	} {
		files, warnings, err := ReadCounterFiles(t.Context(), c.paths)
		if len(files) != c.files || envelope.CodeOf(err) != c.code {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
		if (c.warn != "") != (len(warnings) == 1) || c.warn != "" && !strings.Contains(warnings[0].Message, c.warn) {
			t.Errorf("%s: %v", name, warnings)
		}
	}
	files, _, _ := ReadCounterFiles(t.Context(), []string{empty})
	if _, _, err := CountersOf(files, CounterOptions{}); envelope.CodeOf(err) != envelope.NoArtifact {
		t.Errorf("%v", err)
	}
}

// TestRecordedCounters: the recorded files of every generation.
func TestRecordedCounters(t *testing.T) {
	t.Parallel()
	root := recorded.Traces(t)
	read := func(path string, opt CounterOptions) (Counters, []envelope.Warning, error) {
		files, _, err := ReadCounterFiles(t.Context(), []string{filepath.Join(root, "csv", path)})
		if err != nil {
			t.Fatal(err)
		}
		return CountersOf(files, opt)
	}
	if _, _, err := read("counters_gfx950/lds_conflict_counter_collection.csv", CounterOptions{Arch: "gfx950"}); envelope.CodeOf(err) != envelope.AmbiguousKernel {
		t.Errorf("PyTorch's fill and the kernel: %v", err)
	}
	c, _, err := read("counters_gfx950/lds_conflict_counter_collection.csv", CounterOptions{Kernel: "micro_tk", Arch: "gfx950"})
	if err != nil || fmt.Sprint(c.Values) != "[{SQ_INSTS_LDS 1 1 false false} {SQ_LDS_BANK_CONFLICT 1 1 false false}]" || c.Dispatches != 1 || c.GridItems != 64 {
		t.Errorf("%+v, %v", c, err)
	}
	if m := metric(t, c, "lds_conflict_pct"); m.Value != nil || !slices.Equal(m.Missing, []string{"SQ_LDS_IDX_ACTIVE"}) {
		t.Errorf("%+v", m)
	}
	c, warnings, err := read("counters_gfx1201/gl2c_724/r_counter_collection.csv", CounterOptions{Arch: "gfx1201"})
	if err != nil || !c.AllZero || len(warnings) != 1 || warnings[0].Code != WarnCountersZero || len(c.Kernels) != 1 {
		t.Errorf("%+v, %v, %v", c, warnings, err)
	}
	c, _, err = read("counters_gfx1201/gl2c_714_profstd/r_counter_collection.csv", CounterOptions{Arch: "gfx1201"})
	if v, _ := c.value("GL2C_EA_RDREQ_sum"); err != nil || v != 1048578 || metric(t, c, "read_32b_pct").Why != whySizes || metric(t, c, "read_bytes").Value != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, path := range []string{"docs_2024-10/counter_collection.csv", "docs_2025-08/counter_collection.csv"} {
		c, _, err := read(path, CounterOptions{Kernel: "subtract_kernel"})
		if v, _ := c.value("SQ_WAVES"); err != nil || v != 16384 {
			t.Errorf("%s: %+v, %v", path, c, err)
		}
	}
	if _, _, err := read("empty_file/r_counter_collection.csv", CounterOptions{}); envelope.CodeOf(err) != envelope.NoArtifact {
		t.Errorf("%v", err)
	}
}

// TestCollectedCounters: what a capture collects gives these metrics.
func TestCollectedCounters(t *testing.T) {
	t.Parallel()
	var files []CounterFile
	for _, group := range rocprof.CounterGroups("gfx942") {
		d := map[string]float64{}
		for i, name := range group {
			d[name] = float64(100 + i)
		}
		files = append(files, pass("k_0", 64, d))
	}
	c, _, err := CountersOf(files, CounterOptions{Arch: "gfx942", SoC: mi300x(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"l2_hit_pct", "mfma_inst_pct", "mfma_busy_pct", "lds_conflict_pct", "occupancy_waves", "wait_pct"} {
		if m := metric(t, c, id); m.Value == nil && m.Why != whyReverse || m.Missing != nil {
			t.Errorf("%+v", m)
		}
	}
}
