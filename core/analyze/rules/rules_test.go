package rules

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/analyze"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// ins is an instruction of a made-up kernel: executed hit times (once for 0), with latency and stall in all, waiting for the instructions of those numbers.
type ins struct {
	isa            string
	hit            int
	latency, stall int64
	waits          []int
}

// kernel writes a dispatch directory in which each wave executes the instructions in order, and analyses it. Waves of one CU begin together and last as
// long as given, or as the instructions take.
func kernel(t testing.TB, code []ins, durations ...int64) *analyze.Trace {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ui_output_agent_1_dispatch_1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if len(durations) == 0 {
		durations = []int64{0}
	}
	waves := int64(len(durations))
	rows := [][]any{{"; k_0", 0, 0, "", 1, 0, 0, 0, 0, 0}}
	var executed [][5]int64
	waits, at := [][2]any{}, int64(0)
	for i, c := range code {
		line, hit := int64(i+1), int64(max(c.hit, 1))
		rows = append(rows, []any{c.isa, 0, line, "", 1, 8 * i, hit * waves, c.latency * waves, c.stall * waves, 0})
		for n := range hit {
			one := [5]int64{at, 0, 0, 0, line}
			if n == 0 {
				one[2], one[3] = c.stall, c.latency
			}
			executed = append(executed, one)
			at += one[3]
		}
		if len(c.waits) > 0 {
			targets := [][2]int{}
			for _, to := range c.waits {
				targets = append(targets, [2]int{to, 0})
			}
			waits = append(waits, [2]any{line, targets})
		}
	}
	slots, occupancy := map[int]any{}, [][]int64{}
	for i, d := range durations {
		if d == 0 {
			d = at
		}
		name := "w" + string(rune('a'+i)) + ".json"
		put(t, dir, name, map[string]any{"duration": d, "num_insts": len(executed), "wave": map[string]any{"begin": 0, "end": d, "cu": 1, "simd": 0, "slot": i, "id": 0, "instructions": executed, "waitcnt": waits}})
		slots[i] = map[int]any{0: []any{name, 0, d}}
		occupancy = append(occupancy, []int64{0, 1, 0, int64(i), 1, 1})
	}
	for i, d := range durations {
		if d == 0 {
			d = at
		}
		occupancy = append(occupancy, []int64{d, 1, 0, int64(i), 0, 1})
	}
	slices.SortStableFunc(occupancy, func(a, b []int64) int { return int(a[0] - b[0]) })
	put(t, dir, "code.json", map[string]any{"code": rows, "header": "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle", "version": "3.0.0"})
	put(t, dir, "filenames.json", map[string]any{"wave_filenames": map[int]any{0: map[int]any{0: slots}}, "gfxip": 9, "version": "3.0.0"})
	put(t, dir, "occupancy.json", map[string]any{"0": occupancy, "dispatches": map[int]string{1: "k_0"}})
	tr, err := analyze.Open(t.Context(), dir, analyze.Options{Kernel: "k_0", Arch: "gfx942"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func put(t testing.TB, dir, name string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// counters are those of one dispatch of 1,000 ns on an MI300X.
func counters(t testing.TB, values map[string]float64) *analyze.Counters {
	t.Helper()
	f := analyze.CounterFile{Name: "c.csv"}
	for name, v := range values {
		f.Rows = append(f.Rows, rocprof.CounterRow{Counter: name, Value: v, HasValue: true, Kernel: "k_0", DispatchID: 1, GridItems: 64, StartNS: 1000, EndNS: 2000})
	}
	gpu, _ := soc.ByProduct("MI300X")
	c, _, err := analyze.CountersOf([]analyze.CounterFile{f}, analyze.CounterOptions{Arch: "gfx942", SoC: gpu})
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

const (
	load     = "global_load_dwordx4 v[0:3], v[4:5], off"
	store    = "global_store_dwordx4 v[4:5], v[0:3], off"
	sload    = "s_load_dwordx2 s[0:1], s[2:3], 0x0"
	dsread   = "ds_read_b128 v[0:3], v4"
	mfma     = "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"
	add      = "v_add_f32_e32 v0, v1, v2"
	barrier_ = "s_barrier"
	end      = "s_endpgm"
)

// busyMatrix and busyMemory are counters of kernels at a limit of the hardware.
var (
	busyMatrix = map[string]float64{"SQ_VALU_MFMA_BUSY_CYCLES": 1300, "SQ_BUSY_CU_CYCLES": 100}
	busyMemory = map[string]float64{"TCC_EA0_RDREQ_sum": 35_000, "TCC_EA0_RDREQ_32B_sum": 0, "TCC_BUBBLE_sum": 25_000, "TCC_EA0_WRREQ_sum": 0, "TCC_EA0_WRREQ_64B_sum": 0}
)

// base is a kernel that gives no rule a reason: 80 of 100 cycles issue, in waves enough.
func base(more ...ins) []ins {
	return append([]ins{{isa: load, latency: 4}, {isa: add, hit: 5, latency: 70, stall: 4}, {isa: "s_waitcnt vmcnt(0)", latency: 6, stall: 6, waits: []int{1}}}, append(more, ins{isa: end, latency: 20})...)
}

func eight() []int64 { return make([]int64, 8) }

// TestRules: each rule speaks on what it is for, and not a little below its threshold.
func TestRules(t *testing.T) {
	t.Parallel()
	withTrace := func(code []ins, durations ...int64) Input { return Input{Trace: kernel(t, code, durations...)} }
	withCounters := func(code []ins, values map[string]float64) Input {
		return Input{Trace: kernel(t, code, eight()...), Counters: counters(t, values)}
	}
	quiet, tested := base(), map[string]bool{}
	for id, c := range map[string]struct{ speaks, silent Input }{
		"load_latency": {withTrace(base(ins{isa: "s_waitcnt vmcnt(0)", latency: 20, stall: 20, waits: []int{1}})), withTrace(quiet)},
		"store_before_load": {withTrace(base(ins{isa: store, latency: 4}, ins{isa: "s_waitcnt vmcnt(0)", latency: 20, stall: 20, waits: []int{4, 1}})),
			withTrace(base(ins{isa: store, latency: 4}, ins{isa: "s_waitcnt vmcnt(0)", latency: 5, stall: 5, waits: []int{4, 1}}))},
		"scalar_load_latency": {withTrace(base(ins{isa: sload, latency: 4}, ins{isa: "s_waitcnt lgkmcnt(0)", latency: 30, stall: 30, waits: []int{4}})),
			withTrace(base(ins{isa: dsread, latency: 4}, ins{isa: "s_waitcnt lgkmcnt(0)", latency: 30, stall: 30, waits: []int{4}}))},
		"lds_latency": {withTrace(base(ins{isa: dsread, latency: 4}, ins{isa: "s_waitcnt lgkmcnt(0)", latency: 30, stall: 30, waits: []int{4}})),
			withTrace(base(ins{isa: sload, latency: 4}, ins{isa: "s_waitcnt lgkmcnt(0)", latency: 30, stall: 30, waits: []int{4}}))},
		"lds_conflicts": {withCounters(quiet, map[string]float64{"SQ_LDS_BANK_CONFLICT": 10, "SQ_LDS_IDX_ACTIVE": 100}),
			withCounters(quiet, map[string]float64{"SQ_LDS_BANK_CONFLICT": 9, "SQ_LDS_IDX_ACTIVE": 100})},
		"lds_issue":         {withTrace(base(ins{isa: dsread, latency: 20, stall: 16})), withTrace(base(ins{isa: dsread, latency: 20, stall: 9}))},
		"barrier":           {withTrace(base(ins{isa: barrier_, latency: 20, stall: 20})), withTrace(base(ins{isa: barrier_, latency: 8, stall: 8}))},
		"memory_issue":      {withTrace(base(ins{isa: load, latency: 20, stall: 18})), withTrace(base(ins{isa: load, latency: 20, stall: 8}))},
		"matrix_dependency": {withTrace(base(ins{isa: mfma, latency: 40, stall: 30})), withTrace(base(ins{isa: mfma, latency: 40, stall: 8}))},
		"nops":              {withTrace(base(ins{isa: "s_nop 7", latency: 8, stall: 8})), withTrace(base(ins{isa: "s_nop 7", latency: 4, stall: 4}))},
		"arithmetic_issue":  {withTrace(base(ins{isa: add, latency: 60, stall: 50})), withTrace(base(ins{isa: add, latency: 60, stall: 20}))},
		"spills":            {withTrace(base(ins{isa: "scratch_load_dword v0, off, s32", latency: 4})), withTrace(quiet)},
		"narrow_loads": {withTrace(base(ins{isa: "global_load_dword v0, v[4:5], off", hit: 3, latency: 20, stall: 16})),
			withTrace(base(ins{isa: load, hit: 3, latency: 20, stall: 16}))},
		"partial_lines": {withCounters(quiet, map[string]float64{"TCC_EA0_RDREQ_32B_sum": 10, "TCC_EA0_RDREQ_sum": 100}),
			withCounters(quiet, map[string]float64{"TCC_EA0_RDREQ_32B_sum": 9, "TCC_EA0_RDREQ_sum": 100})},
		"l2_misses": {withCounters(base(ins{isa: mfma, hit: 5, latency: 20}), map[string]float64{"TCC_HIT_sum": 40, "TCC_MISS_sum": 60}),
			withCounters(quiet, map[string]float64{"TCC_HIT_sum": 1, "TCC_MISS_sum": 99})},
		"low_occupancy": {withTrace(base(ins{isa: "s_waitcnt vmcnt(0)", latency: 200, stall: 200, waits: []int{1}}), make([]int64, 7)...),
			withTrace(base(ins{isa: "s_waitcnt vmcnt(0)", latency: 200, stall: 200, waits: []int{1}}), eight()...)},
		"grid_too_small": {Input{Trace: kernel(t, quiet), Workgroups: 303, CUs: 304}, Input{Trace: kernel(t, quiet), Workgroups: 304, CUs: 304}},
		"uneven_waves":   {withTrace(quiet, 100, 100, 130), withTrace(quiet, 100, 100, 129)},
		"matrix_share":   {withTrace(base(ins{isa: mfma, hit: 3, latency: 20})), withTrace(base(ins{isa: mfma, hit: 5, latency: 20}))},
	} {
		if at := find(t, c.speaks, id); at == nil || at.Advice == "" || at.Source == "" || at.Evidence == "" || at.Title == "" {
			t.Errorf("%s does not speak: %+v", id, at)
		}
		if at := find(t, c.silent, id); at != nil {
			t.Errorf("%s speaks: %+v", id, at)
		}
		tested[id] = true
	}
	for _, r := range table {
		if !tested[r.id] {
			t.Errorf("%s has no test", r.id)
		}
	}
}

func apply(t testing.TB, in Input) Report {
	t.Helper()
	r, err := Apply(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func find(t testing.TB, in Input, id string) *Finding {
	t.Helper()
	for _, f := range apply(t, in).Findings {
		if f.Rule == id {
			return &f
		}
	}
	return nil
}

// TestOptimal: fault 27. Each way to be done with is reached, and every way not to be.
func TestOptimal(t *testing.T) {
	t.Parallel()
	stalls := []ins{{isa: load, latency: 4}, {isa: mfma, hit: 5, latency: 40}, {isa: "s_waitcnt vmcnt(0)", latency: 60, stall: 60, waits: []int{1}}, {isa: end, latency: 4}}
	few := slices.Clone(stalls)
	few[1].hit = 1
	issues := []ins{{isa: load, latency: 4}, {isa: add, hit: 5, latency: 90, stall: 2}, {isa: end, latency: 4}}
	for name, c := range map[string]struct {
		in      Input
		optimal bool
		bound   string
		basis   string
	}{
		"matrix cores busy":                    {Input{Trace: kernel(t, stalls, eight()...), Counters: counters(t, busyMatrix)}, true, analyze.BoundMatrix, "matrix cores worked 81.2 %"},
		"memory busy, few matrix instructions": {Input{Trace: kernel(t, few, eight()...), Counters: counters(t, busyMemory)}, false, analyze.BoundBandwidth, "matrix_share"},
		"memory busy, streaming":               {Input{Trace: kernel(t, slices.Delete(slices.Clone(stalls), 1, 2), eight()...), Counters: counters(t, busyMemory)}, true, analyze.BoundBandwidth, "memory moved"},
		"waves issue":                          {Input{Trace: kernel(t, issues, eight()...)}, true, analyze.BoundUnknown, "waves issue and execute 98.0 %"},
		"waves wait":                           {Input{Trace: kernel(t, stalls, eight()...)}, false, analyze.BoundMemory, "load_latency"},
		"matrix cores busy, few waves":         {Input{Trace: kernel(t, stalls), Counters: counters(t, busyMatrix)}, true, analyze.BoundMatrix, ""},
		"matrix cores busy, spills":            {Input{Trace: kernel(t, append(slices.Clone(stalls), ins{isa: "scratch_load_dword v0, off", latency: 4}), eight()...), Counters: counters(t, busyMatrix)}, false, analyze.BoundMatrix, "spills"},
		"matrix cores busy, small":             {Input{Trace: kernel(t, stalls, eight()...), Counters: counters(t, busyMatrix), Workgroups: 8, CUs: 304}, false, analyze.BoundMatrix, "grid_too_small"},
		"nothing stands out":                   {Input{Trace: kernel(t, base(ins{isa: barrier_, latency: 9, stall: 9}, ins{isa: dsread, latency: 9, stall: 9}), eight()...)}, false, analyze.BoundUnknown, "no rule found anything"},
	} {
		r := apply(t, c.in)
		if r.Optimal != c.optimal || r.Bound.Kind != c.bound || !strings.Contains(r.Basis, c.basis) || r.Optimal && len(r.Findings) > 0 {
			t.Errorf("%s: optimal %v (%s), bound %+v, %+v", name, r.Optimal, r.Basis, r.Bound, r.Findings)
		}
		if n := len(r.Findings) + len(r.Passed) + len(r.NotApplied); n != len(table) {
			t.Errorf("%s: %d of %d rules are accounted for", name, n, len(table))
		}
	}
}

// TestOneBound: fault 27. The bound of the report is that of the analysis, and rules of another are not applied.
func TestOneBound(t *testing.T) {
	t.Parallel()
	in := Input{Trace: kernel(t, base(ins{isa: "s_waitcnt vmcnt(0)", latency: 200, stall: 200, waits: []int{1}})), Counters: counters(t, busyMatrix)}
	r := apply(t, in)
	if want := analyze.BoundOf(in.Trace, in.Counters); r.Bound.Kind != want.Kind || r.Bound.Basis != want.Basis || r.Bound.Kind != analyze.BoundMatrix {
		t.Errorf("%+v, want %+v", r.Bound, want)
	}
	for _, f := range r.Findings {
		if f.Rule == "load_latency" || f.Rule == "low_occupancy" {
			t.Errorf("%+v under bound %s", f, r.Bound.Kind)
		}
	}
	if !slices.Contains(r.NotApplied, NotApplied{"load_latency", "the kernel is at the limit of matrix"}) {
		t.Errorf("%+v", r.NotApplied)
	}
	in.Counters = nil
	if r := apply(t, in); r.Bound.Kind != analyze.BoundMemory || r.Findings[0].Rule != "load_latency" || r.Findings[0].Severity != High || r.Findings[0].Where[0].WaitedFor != load {
		t.Errorf("%+v", r)
	}
	if !slices.Contains(apply(t, in).NotApplied, NotApplied{"lds_conflicts", "no counters were collected"}) {
		t.Error("a rule without a figure is not listed")
	}
}

// TestRecorded: reports of the recorded traces are made, are small, and say what is known of them.
func TestRecorded(t *testing.T) {
	t.Parallel()
	first := map[string]string{}
	err := filepath.WalkDir(recorded.Traces(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasPrefix(d.Name(), "ui_output_") {
			return err
		}
		tr, err := analyze.Open(t.Context(), path, analyze.Options{Arch: "gfx950"})
		if err != nil {
			return nil
		}
		r := apply(t, Input{Trace: tr})
		text, err := json.Marshal(r)
		if err != nil || len(text) > 15_000 {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
		var ids []string
		for _, f := range r.Findings {
			ids = append(ids, f.Rule)
		}
		first[tr.Info().Kernel] = strings.Join(ids, " ")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]string{
		"rmsnorm_kernel_0":           "store_before_load",   // each wait for a load waits for the store before it
		"vecAddKernel_0":             "load_latency",        // 55 % of the time
		"pa_mqa_logits_fp4_kernel_0": "scalar_load_latency", // a short kernel that waits for its arguments
		"_Z8micro_tk13micro_globals": "spills",
		"flash_attn_func_kernel_0":   "nops",
	} {
		if !slices.Contains(strings.Fields(first[kernel]), want) {
			t.Errorf("%s: %s, want %s among them", kernel, first[kernel], want)
		}
	}
}
