package capture

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
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

func TestWatchGPU(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a PCI address is no file name there")
	}
	const bdf = "0000:75:00.0"
	for name, c := range map[string]struct {
		busy, vram string
		warns      bool
	}{
		"idle":        {"0", "300000000", false},
		"busy":        {"55", "300000000", true},
		"memory used": {"0", "9000000000", true},
		"unreadable":  {"odd", "", false},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "sys", "bus", "pci", "devices", bdf)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"gpu_busy_percent": c.busy, "mem_info_vram_used": c.vram} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d := &driver{plan: Plan{GPU: GPU{BDF: bdf}}}
		err := d.watchGPU(t.Context(), root)
		if warned := len(d.warnings) > 0; warned != c.warns || err != nil {
			t.Errorf("%s: %v, %v", name, d.warnings, err)
		}
		d = &driver{plan: Plan{GPU: GPU{BDF: bdf}, RefuseBusy: true}}
		if err := d.watchGPU(t.Context(), root); (envelope.CodeOf(err) == envelope.GPUBusy) != c.warns || len(d.warnings) > 0 {
			t.Errorf("%s, refused: %v, %v", name, d.warnings, err)
		}
	}
}

// kernel is one that a worktree defines with these symbols.
func kernel(name string, patterns ...worktree.SymbolPattern) *worktree.Kernel {
	return &worktree.Kernel{Name: name, Symbols: patterns}
}

func def(fn string, direct bool) worktree.SymbolPattern {
	return worktree.SymbolPattern{Pattern: "^" + fn + `_\d+$`, Exact: true, Prefix: fn + "_", Kind: worktree.KindDef, Direct: direct}
}

func fstring(prefix string) worktree.SymbolPattern {
	return worktree.SymbolPattern{Pattern: "^" + prefix + `\w*(_\d+)?$`, Prefix: prefix, Kind: worktree.KindFString, Direct: true}
}

// TestPick: never a guess that is not called one.
func TestPick(t *testing.T) {
	launched := func(names ...string) []rocprof.KernelSummary {
		var out []rocprof.KernelSummary
		for i, n := range names {
			out = append(out, rocprof.KernelSummary{Name: n, Calls: 10, TotalNS: int64(1000 - i)})
		}
		return out
	}
	softmax := kernel("softmax", def("softmax_kernel", true))
	two := kernel("rmsnorm", def("rmsnorm_kernel", true), def("rmsnorm_large_kernel", true))
	for name, c := range map[string]struct {
		launched   []rocprof.KernelSummary
		w          wanted
		symbol     string
		confidence string
		code       envelope.Code
	}{
		"only one that fits":           {launched("void at::native::copy<float>", "softmax_kernel_0"), wanted{Kernel: softmax, Name: "softmax"}, "softmax_kernel_0", "exact", ""},
		"a sibling is not taken":       {launched("topk_gating_softmax_kernel_0", "softmax_kernel_0"), wanted{Kernel: softmax, Name: "softmax"}, "softmax_kernel_0", "exact", ""},
		"only a sibling":               {launched("topk_gating_softmax_kernel_0"), wanted{Kernel: softmax, Name: "softmax"}, "", "", envelope.NoKernelDiscovered},
		"nothing launched":             {nil, wanted{Kernel: softmax, Name: "softmax"}, "", "", envelope.NoKernelDiscovered},
		"one called like the kernel":   {launched("rmsnorm_large_kernel_0", "rmsnorm_kernel_0"), wanted{Kernel: two, Name: "rmsnorm"}, "rmsnorm_kernel_0", "fuzzy", ""},
		"two equally good":             {launched("rmsnorm_large_kernel_0", "rmsnorm_kernel_0"), wanted{Kernel: kernel("norms", two.Symbols...), Name: "norms"}, "", "", envelope.AmbiguousKernel},
		"a name with gaps":             {launched("gemm1_a8w4_h4096"), wanted{Kernel: kernel("moe", fstring("gemm1_")), Name: "moe"}, "gemm1_a8w4_h4096", "fuzzy", ""},
		"named in full":                {launched("attn_fwd", "softmax_kernel_0"), wanted{Kernel: softmax, Name: "softmax", Symbol: "attn_fwd"}, "attn_fwd", "exact", ""},
		"the baseline":                 {launched("softmax_kernel_0", "aiter_softmax"), wanted{Kernel: softmax, Name: "softmax", Baseline: true}, "aiter_softmax", "heuristic", ""},
		"a command of the caller's":    {launched("void at::native::copy<float>", "k_0"), wanted{Name: "x"}, "k_0", "heuristic", ""},
		"a command, library code only": {launched("void at::native::copy<float>", "Cijk_Ailk"), wanted{Name: "x"}, "", "", envelope.NoKernelDiscovered},
	} {
		m, facts, code := pick(c.launched, c.w)
		if m.Symbol != c.symbol || m.Confidence != c.confidence || code != c.code {
			t.Errorf("%s: %+v %s", name, m, code)
		}
		if code != "" && len(c.launched) > 0 && len(facts.Candidates) == 0 {
			t.Errorf("%s: no candidates", name)
		}
	}
}

// TestFit: another kernel, another grid or a small problem that is not smaller is never taken for the trace.
func TestFit(t *testing.T) {
	items := [3]int64{64 * 256, 1, 1}
	launched := rocprof.Launch{Kernel: "k", KernelID: 7, Grid: items, Workgroup: [3]int64{256, 1, 1}}
	choice := rocprof.Choice{Group: rocprof.NewInventory([]rocprof.Launch{launched}).Groups("k")[0]}
	if choice.Group.GridItems() != items || choice.Group.Workgroups != 64 {
		t.Fatalf("%+v", choice.Group)
	}
	d := &driver{bigWorkgroups: 64}
	d.data.Kernel = "k"
	for name, c := range map[string]struct {
		tag    string
		launch *rocprof.Launch
		want   int
	}{
		"the same":           {"big", &rocprof.Launch{Kernel: "k", KernelID: 7, Grid: items, Workgroup: choice.Group.Workgroup}, 2},
		"another kernel id":  {"big", &rocprof.Launch{Kernel: "k", KernelID: 8, Grid: items, Workgroup: choice.Group.Workgroup}, 1},
		"another grid":       {"big", &rocprof.Launch{Kernel: "k", KernelID: 7, Grid: [3]int64{256, 1, 1}, Workgroup: choice.Group.Workgroup}, 0},
		"another kernel":     {"big", &rocprof.Launch{Kernel: "j", KernelID: 7, Grid: items, Workgroup: choice.Group.Workgroup}, 0},
		"no kernel trace":    {"big", nil, 2},
		"a smaller problem":  {"small", &rocprof.Launch{Kernel: "k", Grid: [3]int64{2560, 1, 1}, Workgroup: choice.Group.Workgroup}, 2},
		"no smaller problem": {"small", &rocprof.Launch{Kernel: "k", Grid: items, Workgroup: choice.Group.Workgroup}, 0},
	} {
		if got := d.fit(c.tag, c.launch, choice); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestShrink(t *testing.T) {
	gpu, ok := soc.Lookup("gfx950")
	if !ok {
		t.Fatal("no gfx950")
	}
	least := soc.MinWorkgroupsLikely(gpu, DefaultTargetCU)
	for workgroups, want := range map[int64]int64{1 << 20: 1 << 18, 4 * least: least, 2 * least: least, least: 0, least / 2: 0, 0: 0} {
		num, den, why := shrink(workgroups, gpu)
		if num != want || (want == 0) != (why != "") || want > 0 && den != workgroups {
			t.Errorf("%d workgroups: %d/%d %q, want %d", workgroups, num, den, why, want)
		}
	}
}

// TestCompletedErrors: an error that was completed with its request still tells what it came from.
func TestCompletedErrors(t *testing.T) {
	err := withRequest(fmt.Errorf("rocminfo: %w", context.Canceled), request.Capture{Kernel: "softmax"})
	if !errors.Is(err, context.Canceled) || envelope.CodeOf(err) != envelope.Internal {
		t.Errorf("%v", err)
	}
}

// TestKeys: what changes the outcome changes the key, and nothing else does.
func TestKeys(t *testing.T) {
	p := Preparer{}
	base := func() (r Prepared) {
		r.Request.Kernel, r.Request.Shape = "softmax", "8,8"
		r.Plan = Plan{Env: []string{"A=1"}, Invocation: worktree.Invocation{Argv: []string{"t.py"}}, Provenance: Provenance{SourceHash: "h", Worktree: "/w"}}
		return r
	}
	build := "built"
	key := func(change func(*Prepared)) (string, string) {
		r := base()
		change(&r)
		return p.keys(r.Request, r.Plan, build)
	}
	req, same := key(func(*Prepared) {})
	for name, c := range map[string]struct {
		change              func(*Prepared)
		otherReq, otherSame bool
	}{
		"retry_of": {func(r *Prepared) { r.Request.RetryOf = "x" }, false, false},
		"force":    {func(r *Prepared) { r.Request.Force = true }, false, false},
		"shape":    {func(r *Prepared) { r.Request.Shape = "9,8" }, true, true},
		"gpu":      {func(r *Prepared) { r.Plan.GPU.KFD = 1 }, true, true},
		"source":   {func(r *Prepared) { r.Plan.Provenance.SourceHash = "i" }, false, true},
		"env":      {func(r *Prepared) { r.Plan.Env = []string{"A=2"} }, false, true},
		"a build":  {func(*Prepared) { build = "rebuilt" }, false, true},
	} {
		r, s := key(c.change)
		build = "built"
		if (r != req) != c.otherReq || (s != same) != c.otherSame {
			t.Errorf("%s: request key differs %v, same key differs %v", name, r != req, s != same)
		}
	}
}

// TestLockFile: the lock is shared, hostile files in its place are refused, and the holder's text is bounded.
func TestLockFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	path, err := lockFile(dir, lockKey(GPU{BDF: "0000:75:00.0/../x"}))
	if err != nil || filepath.Dir(path) != dir || strings.Contains(filepath.Base(path), "/") {
		t.Fatalf("%s %v", path, err)
	}
	again, err := lockFile(dir, lockKey(GPU{BDF: "0000:75:00.0/../x"}))
	if err != nil || again != path {
		t.Errorf("%s %v", again, err)
	}
	if lockKey(GPU{KFD: 3}) == lockKey(GPU{KFD: 4}) {
		t.Error("two GPUs share a lock")
	}
	if err := os.WriteFile(path, []byte(`{"run_id":"`+strings.Repeat("x", 5000)), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := readHolder(path); h.PID != 0 || len(h.String()) > 100 {
		t.Errorf("%+v", h)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "gpu-evil.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(dir, "evil"); err == nil {
		t.Error("a link was taken for a lock")
	}
}

// TestLineage: a retry of a transient failure counts, and a changed source opens a new lineage.
func TestLineage(t *testing.T) {
	store, err := runs.Open(t.TempDir(), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := store.Create(runs.Run{RequestKey: "r", SameKey: "s"})
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	first.State = runs.Failed
	if err := store.Finish(first, runs.Result{Error: envelope.Build(envelope.CaptureTimeout, envelope.Facts{})}); err != nil {
		t.Fatal(err)
	}
	s := &Service{Store: store}
	for name, c := range map[string]struct {
		p       Prepared
		lineage string
		used    int
	}{
		"the same again":  {Prepared{RequestKey: "r", SameKey: "s"}, first.ID, 1},
		"another source":  {Prepared{RequestKey: "r", SameKey: "t"}, "", 0},
		"another request": {Prepared{RequestKey: "q", SameKey: "q"}, "", 0},
	} {
		lineage, used, err := s.lineage(c.p)
		if err != nil || lineage != c.lineage || used != c.used {
			t.Errorf("%s: %q %d %v", name, lineage, used, err)
		}
	}
	if r, _ := store.Load(first.ID); !retryable(r) {
		t.Error("a first transient failure may be retried")
	}
}

func TestPrograms(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"rocprofv3", "python3"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"PATH": "relative" + string(os.PathListSeparator) + bin}
	f := Finder{Getenv: func(k string) string { return env[k] }}
	got := f.Tools("")
	if !slices.Equal(got.Rocprofv3, []string{filepath.Join(bin, "rocprofv3")}) || len(got.Python) != 1 {
		t.Errorf("%+v", got)
	}
	for _, p := range f.RocprofPlaces() {
		if !filepath.IsAbs(p) {
			t.Errorf("a relative entry of PATH is looked at: %s", p)
		}
	}
	f.Rocprofv3 = filepath.Join(bin, "absent")
	if got := f.Tools(""); got.Rocprofv3 != nil || len(f.RocprofPlaces()) != 1 {
		t.Errorf("a setting that names nothing is passed over: %+v", got)
	}
}

func TestSeconds(t *testing.T) {
	if got := seconds(1249 * time.Millisecond); got != 1.2 {
		t.Errorf("%v", got)
	}
}

func TestAllEngines(t *testing.T) {
	whole, ok := soc.Lookup("gfx950")
	if !ok {
		t.Fatal("no gfx950")
	}
	for want, gpu := range map[string]soc.SoC{"0xffffffff": whole, "0xf": whole.WithTopology(32, 1, 4)} {
		if got := (&driver{gpu: gpu}).allEngines(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (&driver{}).allEngines(); got != "0xffffffff" {
		t.Errorf("not known: %s", got)
	}
}

// TestGroupRows: counters of another kernel, grid or kernel id are not summed in.
func TestGroupRows(t *testing.T) {
	items := [3]int64{2560, 2, 1}
	g := rocprof.NewInventory([]rocprof.Launch{{Kernel: "k", KernelID: 7, Grid: items, Workgroup: [3]int64{256, 1, 1}}}).Groups("k")[0]
	row := func(kernel string, id, grid int64) rocprof.CounterRow {
		return rocprof.CounterRow{Kernel: kernel, KernelID: id, GridItems: grid, Counter: "SQ_WAVES"}
	}
	rows := []rocprof.CounterRow{row("k", 7, 5120), row("k", 8, 5120), row("k", 7, 256), row("j", 7, 5120)}
	if got := groupRows(rows, "k", g); len(got) != 1 || got[0] != rows[0] {
		t.Errorf("%+v", got)
	}
	if got := groupRows(rows[1:], "k", g); len(got) != 1 || got[0] != rows[1] {
		t.Errorf("where the process numbered its kernels otherwise: %+v", got)
	}
}
