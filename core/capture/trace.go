package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// traceTags takes the traces that were asked for. Big decides: a small trace beside it that fails is a warning.
func (d *driver) traceTags(ctx context.Context) error {
	slot, name := &d.data.Tags.Big, "big"
	if d.run.Request.Tag == "small" {
		slot, name = &d.data.Tags.Small, "small"
	}
	choice, err := d.inventory.ChooseLaunch(d.data.Kernel, d.run.Request.Group, d.run.Request.IterRange)
	if err != nil {
		*slot = &Tag{State: "running", Shape: d.plan.Invocation.Shape}
		return d.failTag(name, *slot, d.withRequest(err))
	}
	d.adoptChoice(choice)
	d.bigWorkgroups = choice.Group.Workgroups
	if d.run.Request.Tag == "small" {
		if err := d.traceSmall(ctx, choice); err != nil || !d.run.Request.WithPMC {
			return err
		}
		return d.collectPMC(ctx, choice)
	}
	if err := d.traceWith(ctx, "big", slot, choice); err != nil {
		return err
	}
	if d.run.Request.WithPMC {
		if err := d.collectPMC(ctx, choice); err != nil {
			return err
		}
	}
	if d.run.Request.Tag != "both" {
		return nil
	}
	if err := d.traceSmall(ctx, choice); err != nil {
		if context.Cause(ctx) != nil {
			return err
		}
		d.bigDecides(err)
	}
	return nil
}

// traceWith takes one trace: run the job, judge what was written. An empty trace is tried once more where the evidence says
// that the kernel had waves, unless the caller fixed CU or mask.
func (d *driver) traceWith(ctx context.Context, name string, slot **Tag, choice rocprof.Choice) error {
	tag := &Tag{State: "running", Shape: d.plan.Invocation.Shape}
	*slot = tag
	if name == "big" {
		tag.Grid = &Grid{Workgroups: choice.Group.Workgroups, WorkgroupSize: product(choice.Group.Workgroup), Source: "measured"}
	}
	plan := d.tracePlan(choice)
	var shells []string
	for n := 1; ; n++ {
		if err := d.enter("att:" + name); err != nil {
			return d.failTag(name, tag, err)
		}
		got, err := d.traceOnce(ctx, name, n, choice, plan)
		if err != nil {
			d.noteAttempt(n, name, plan, "failed", err.Error())
			return d.failTag(name, tag, err)
		}
		d.fillTag(tag, got, plan)
		if got.kept != nil {
			d.removeShells(append(shells, got.shells...))
			d.noteAttempt(n, name, plan, "kept", fmt.Sprintf("%d waves on the traced CUs; %s", tag.Waves, plan.Why))
			tag.State = "done"
			return nil
		}
		shells = append(shells, got.shells...)
		d.noteAttempt(n, name, plan, "empty", got.why)
		next, ok := d.another(plan, got)
		if n > 1 || !ok || d.workloadRuns >= maxWorkloadRuns {
			return d.failTag(name, tag, d.emptyError(choice, plan, got))
		}
		plan = next
	}
}

// removeShells removes the dispatch directories that hold no trace, once there is one: nobody is to take them for it. The
// inventory in the answer still names them.
func (d *driver) removeShells(dirs []string) {
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			d.warn("SHELL_LEFT", fmt.Sprintf("%s holds no trace and could not be removed: %v", d.relative(dir), err))
		}
	}
}

func (d *driver) failTag(name string, tag *Tag, err error) error {
	e := envelope.As(err)
	tag.State, tag.Error = "failed", &TagError{Code: e.Code, Message: e.Message}
	if envelope.CodeOf(err) == "" {
		tag.Error = &TagError{Code: envelope.Internal, Message: err.Error()}
		switch c := err.(type) {
		case stopped:
			tag.Error = &TagError{Code: envelope.Cancelled, Message: c.Error()}
		case timedOut:
			tag.Error = &TagError{Code: envelope.CaptureTimeout, Message: c.Error()}
		}
	}
	return err
}

// withRequest completes an error of a lower layer with the run and the request, so that its actions are calls.
func (d *driver) withRequest(err error) error {
	e := envelope.As(err)
	return d.fail(e.Code, envelope.Facts{Message: e.Message, Evidence: e.Evidence, Available: e.Available, Candidates: e.Candidates})
}

func (d *driver) adoptChoice(c rocprof.Choice) {
	d.data.IterRange, d.data.Group = c.Iter, c.Group.ID
	for _, w := range c.Warnings {
		d.warn(w.Code, w.Message)
	}
}

func product(v [3]int64) int64 { return max(v[0], 1) * max(v[1], 1) * max(v[2], 1) }

// tracePlan chooses what the caller left open.
func (d *driver) tracePlan(c rocprof.Choice) TracePlan {
	r := d.run.Request
	p := TracePlan{ATTTargetCU: DefaultTargetCU, ATTBufferSize: DefaultBufferSize, ATTGPUIndex: d.plan.GPU.KFD}
	if r.ATTTargetCU != nil {
		p.ATTTargetCU = *r.ATTTargetCU
	}
	if r.ATTBufferSize != 0 {
		p.ATTBufferSize = int64(r.ATTBufferSize)
	}
	if r.ATTShaderEngineMask != "" && r.ATTShaderEngineMask != autoMask {
		p.ATTShaderEngineMask, p.Why = r.ATTShaderEngineMask, "the mask was given"
		return p
	}
	mask, why := soc.SEMaskFor(c.Group.Workgroups, d.gpu)
	p.ATTShaderEngineMask, p.Why = fmt.Sprintf("0x%x", mask), why
	return p
}

func (d *driver) noteAttempt(n int, tag string, p TracePlan, result, why string) {
	d.data.Attempts = append(d.data.Attempts, Attempt{N: n, Tag: tag, ATTTargetCU: p.ATTTargetCU, ATTShaderEngineMask: p.ATTShaderEngineMask, Result: result, Why: why})
}

// traced is what one ATT job left.
type traced struct {
	step      step
	kept      *dispatch
	inventory []envelope.Inventory
	// empty is the dispatch whose occupancy tells where the kernel ran, when none was kept.
	empty *dispatch
	why   string
	files rocprof.Outputs
	// shells are dispatch directories without a trace.
	shells []string
}

// dispatch is one dispatch directory and its verdict.
type dispatch struct {
	att     *att.Dispatch
	verdict att.Verdict
	rel     string
	// launch is the row of this run's own kernel trace; nil where there is none.
	launch *rocprof.Launch
}

func (d *driver) traceOnce(ctx context.Context, tag string, n int, c rocprof.Choice, p TracePlan) (traced, error) {
	dirName := tag
	if n > 1 {
		dirName = fmt.Sprintf("%s_attempt%d", tag, n)
	}
	out, err := d.dir("att", dirName)
	if err != nil {
		return traced{}, err
	}
	mask, err := rocprof.ParseSEMask(p.ATTShaderEngineMask)
	if err != nil {
		return traced{}, err
	}
	job := rocprof.ATTJob{
		Kernel: d.data.Kernel, Iter: c.Iter, OutputDir: out, OutputFile: "out_%pid%", TargetCU: p.ATTTargetCU, SEMask: mask, SIMDSelect: 0xf,
		BufferBytes: p.ATTBufferSize, GPUIndex: p.ATTGPUIndex, LibraryPath: d.plan.Tools.ATTLibraryPath, KernelTrace: true,
	}
	text, err := job.JSON()
	if err != nil {
		return traced{}, err
	}
	jobFile := filepath.Join(d.store.Path(d.run.ID), "jobs", "att_"+dirName+".json")
	if err := os.WriteFile(jobFile, text, 0o644); err != nil {
		return traced{}, err
	}
	argv := append(append(slices.Clone(d.plan.Tools.Rocprofv3), "-i", jobFile, "--"), d.workload()...)
	d.workloadRuns++
	st, err := d.runStep(ctx, "att_"+dirName, argv, d.env())
	if err != nil {
		return traced{step: st}, err
	}
	return d.judge(ctx, tag, st, out, c)
}

// judge decides by the files that were written, never by the exit status alone.
func (d *driver) judge(ctx context.Context, tag string, st step, out string, c rocprof.Choice) (traced, error) {
	got := traced{step: st}
	report := d.findings(st)
	d.adopt(report.Warnings)
	files, err := rocprof.FindOutputs(out)
	if err != nil {
		return got, err
	}
	got.files = files
	all, corrupt := d.openAll(ctx, files, &got)
	best := d.best(tag, all, c)
	switch {
	case best != nil:
		got.kept = best
		if report.Primary != nil {
			d.warn(string(report.Primary.Code), "after the kernel had been traced: "+report.Primary.Message)
		} else if st.Exit != nil && !st.Exit.OK() {
			d.warn("WORKLOAD_EXIT", fmt.Sprintf("the test ended with %s after the kernel had been traced", st.exitText()))
		}
		return got, nil
	case corrupt != nil:
		e := envelope.As(corrupt)
		return got, d.fail(e.Code, envelope.Facts{Message: e.Message, Evidence: e.Evidence})
	case report.Primary != nil:
		return got, d.named(report.Primary, st)
	case len(all) == 0 && (st.Exit == nil || !st.Exit.OK()):
		return got, d.unnamed(st)
	}
	got.why, got.empty = emptyWhy(files, all, c)
	return got, nil
}

// openAll reads every dispatch directory of the job. The error is that of the last unreadable one.
func (d *driver) openAll(ctx context.Context, files rocprof.Outputs, got *traced) ([]dispatch, error) {
	launches := map[int64]rocprof.Launch{}
	for _, path := range files.KernelTraces {
		part, err := readFile(path, rocprof.ReadKernelTrace)
		if err != nil {
			d.warn("KERNEL_TRACE_UNREADABLE", fmt.Sprintf("%s: %v", filepath.Base(path), err))
			continue
		}
		for _, l := range part {
			launches[l.DispatchID] = l
		}
	}
	var all []dispatch
	var corrupt error
	for _, dir := range files.UIDirs {
		one, err := att.Open(ctx, dir, att.Options{ReadWaves: true})
		if err != nil {
			corrupt = err
			got.inventory = append(got.inventory, envelope.Inventory{Dir: filepath.Base(dir)})
			continue
		}
		x := dispatch{att: one, verdict: one.Verdict(d.data.Kernel), rel: d.relative(dir)}
		if l, ok := launches[one.Dispatch]; ok {
			x.launch = &l
		}
		if x.verdict.State == "corrupt" {
			corrupt = x.verdict.Err
		}
		if x.verdict.State == att.Empty {
			got.shells = append(got.shells, dir)
		}
		got.inventory = append(got.inventory, envelope.Inventory{Dir: filepath.Base(dir), Waves: x.verdict.Waves, Ins: x.verdict.Ins, Mapped: x.verdict.Mapped})
		all = append(all, x)
	}
	return all, corrupt
}

// fit says how well a traced launch is the one that was meant: 2 for the same kernel id and grid, 1 where only the kernel id
// differs (it is the process's own numbering), 0 for another. For the small trace any smaller grid of the kernel is meant.
func (d *driver) fit(tag string, l *rocprof.Launch, c rocprof.Choice) int {
	switch {
	case l == nil:
		return 2 // no kernel trace of this process: the job's own filter is all there is
	case l.Kernel != d.data.Kernel:
		return 0
	case tag == "small":
		if l.Workgroups() < d.bigWorkgroups {
			return 2
		}
		return 0
	case l.Grid != c.Group.GridItems():
		return 0
	case l.KernelID != c.Group.KernelID:
		return 1
	}
	return 2
}

// best takes the dispatch that was meant, as far as this run's own kernel trace tells, and among equals the one with the most
// waves.
func (d *driver) best(tag string, all []dispatch, c rocprof.Choice) *dispatch {
	var best *dispatch
	bestFit, other := 0, 0
	for i, x := range all {
		fit := d.fit(tag, x.launch, c)
		switch {
		case x.verdict.State != "kept":
		case fit == 0:
			other++
		case fit > bestFit || fit == bestFit && x.verdict.Waves > best.verdict.Waves:
			best, bestFit = &all[i], fit
		}
	}
	if other > 0 {
		d.warn("OTHER_DISPATCH_TRACED", fmt.Sprintf("%d dispatches of another kernel or grid were traced too and are not counted", other))
	}
	if bestFit == 1 {
		d.warn("KERNEL_ID_CHANGED", fmt.Sprintf("the traced launch has kernel id %d and discovery had %d; name and grid are the same", best.launch.KernelID, c.Group.KernelID))
	}
	return best
}

// emptyWhy says what kind of empty the trace is (facts of rocprofv3: silence means no match, header-only files an idle SE).
func emptyWhy(files rocprof.Outputs, all []dispatch, c rocprof.Choice) (string, *dispatch) {
	for i := range all {
		if busy := all[i].att.Occupancy.BusyCUs(""); len(busy) > 0 {
			return fmt.Sprintf("%d workgroups, and no wave ran on the traced CU; waves ran on other CUs of %d traced shader engines", c.Group.Workgroups, len(busy)), &all[i]
		}
	}
	switch {
	case len(all) > 0:
		return fmt.Sprintf("%d workgroups, and no wave ran on any traced shader engine", c.Group.Workgroups), &all[0]
	case len(files.ATTFiles) > 0:
		return "trace files were written and nothing was decoded from them: the traced GPU or its shader engines were idle", nil
	default:
		return fmt.Sprintf("nothing was traced: launch %s of %s never came, in this process", c.Iter, c.Group.Kernel), nil
	}
}

// another is the plan for one more attempt: the CU that was busy in most shader engines, or more shader engines. It says
// false when the caller fixed CU or mask, or when no evidence speaks for another try.
func (d *driver) another(p TracePlan, got traced) (TracePlan, bool) {
	r := d.run.Request
	if r.ATTTargetCU != nil || (r.ATTShaderEngineMask != "" && r.ATTShaderEngineMask != autoMask) || got.empty == nil {
		return p, false
	}
	if cu, engines := att.BusiestCU(got.empty.att.Occupancy.BusyCUs("")); engines > 0 {
		p.ATTTargetCU = cu
		p.ATTShaderEngineMask, p.Why = d.allEngines(), fmt.Sprintf("CU %d had waves in %d traced shader engines of the attempt before; all engines are traced, since placement differs between runs", cu, engines)
		return p, true
	}
	p.ATTShaderEngineMask, p.Why = d.allEngines(), "no traced shader engine had waves in the attempt before, so all are traced"
	return p, true
}

// allEngines is the mask of every shader engine that the GPU has; of all 32 of a whole Instinct where that is not known.
func (d *driver) allEngines() string {
	n := d.gpu.SEs()
	if n < 1 || n > 64 {
		n = 32
	}
	return fmt.Sprintf("0x%x", uint64(1)<<n-1)
}

// emptyError is EMPTY_ATT with the evidence and the calls that it speaks for, best first.
func (d *driver) emptyError(c rocprof.Choice, p TracePlan, got traced) error {
	cus := d.gpu.CUs
	f := envelope.Facts{
		Message: fmt.Sprintf("%s was traced and no wave ran on a traced CU: %s", d.data.Kernel, got.why),
		Evidence: envelope.Evidence{
			Workgroups: c.Group.Workgroups, TargetCUs: cus, DispatchInventory: head(got.inventory, 16), Basis: "the files of the last attempt",
			Phase: d.run.Phase, Log: logURI(d.run.ID, got.step.Name),
		},
	}
	if bigger, rows := d.largerShape(c, cus); bigger != nil {
		f.Suggestions = append(f.Suggestions, envelope.Action{
			Kind: envelope.CallTool, Args: *bigger, Confidence: envelope.High,
			Reason: fmt.Sprintf("%d workgroups instead of %d, at least two for each of the %d CUs: a wave on the traced CU is likely", rows, c.Group.Workgroups, cus),
		})
	}
	if got.empty != nil {
		busy := got.empty.att.Occupancy.BusyCUs("")
		f.Evidence.BusyCUs = map[string][]int{}
		for se, list := range busy {
			f.Evidence.BusyCUs[strconv.Itoa(se)] = list
		}
		f.Evidence.Basis = "occupancy.json of the last attempt"
		if cu, engines := att.BusiestCU(busy); engines > 0 {
			r := d.again()
			r.ATTTargetCU, r.ATTShaderEngineMask = &cu, d.allEngines()
			f.Suggestions = append(f.Suggestions, envelope.Action{
				Kind: envelope.CallTool, Args: r, Confidence: envelope.Medium,
				Reason: fmt.Sprintf("keeps the shape and traces CU %d, which had waves in %d shader engines, on all of them", cu, engines),
			})
		}
	}
	return d.fail(envelope.EmptyATT, f)
}

// again is the request of this run as a retry of it.
func (d *driver) again() request.Capture {
	r := d.run.Request
	r.WaitS, r.Force, r.RetryOf = nil, false, d.run.ID
	return r
}

// largerShape scales the leading dimension so that the measured workgroups grow to two for each CU. The growth is taken to
// be in proportion, which holds for a leading dimension that the grid is made of; nil where no shape was bound.
func (d *driver) largerShape(c rocprof.Choice, cus int) (*request.Capture, int64) {
	if cus == 0 || c.Group.Workgroups <= 0 || !d.plan.Invocation.ShapeBound || d.plan.Kernel == nil {
		return nil, 0
	}
	factor := (2*int64(cus) + c.Group.Workgroups - 1) / c.Group.Workgroups
	if factor < 2 {
		return nil, 0
	}
	shape, err := d.plan.Kernel.ParseShape(d.plan.Invocation.Shape)
	if err != nil {
		return nil, 0
	}
	axis := shape.LeadingAxis()
	larger := shape.Scaled(axis, factor, 1)
	if before, _ := shape.Value(axis); larger.String() == shape.String() || before <= 0 {
		return nil, 0
	}
	r := d.again()
	r.Shape, r.ATTTargetCU, r.ATTShaderEngineMask = larger.String(), nil, ""
	return &r, c.Group.Workgroups * factor
}

// fillTag writes down what a trace holds.
func (d *driver) fillTag(tag *Tag, got traced, p TracePlan) {
	tag.Plan, tag.DispatchInventory = &p, head(got.inventory, 32)
	if got.step.Exit != nil {
		tag.CaptureRC = got.step.Exit.Code
	}
	tag.CaptureS = seconds(time.Duration(got.step.Seconds * float64(time.Second)))
	if got.kept == nil {
		return
	}
	if l := got.kept.launch; l != nil {
		tag.Grid = &Grid{Workgroups: l.Workgroups(), WorkgroupSize: product(l.Workgroup), Source: "measured"}
	}
	v := got.kept.verdict
	tag.KeptDir, tag.Waves, tag.Ins, tag.Mapped = got.kept.rel, v.Waves, v.Ins, v.Mapped
	tag.MappedPct, tag.MappedLatencyPct, tag.FlyDSLPct = v.MappedPct, v.MappedLatencyPct, v.FlyDSLPct
	tag.Hitcount, tag.Latency, tag.Stall, tag.Idle = v.Totals.Hit, v.Totals.Latency, v.Totals.Stall, v.Totals.Idle
	tag.TopStallType = v.TopStallType
	for _, w := range got.kept.att.Warnings {
		d.warn(w.Code, w.Message)
	}
	d.fillRegisters(tag, got)
}

// fillRegisters takes the registers from the best source at hand and computes the occupancy from them.
func (d *driver) fillRegisters(tag *Tag, got traced) {
	reg, warnings, ok := registersOf(got, d.data.Kernel)
	for _, w := range warnings {
		d.warn(w.Code, w.Message)
	}
	if !ok {
		return
	}
	tag.ArchVGPR, tag.AccumVGPR, tag.RegistersFrom = &reg.Arch, &reg.Accum, reg.From
	if d.gpu.CUs == 0 {
		return
	}
	lds := 0
	if got.kept.launch != nil {
		lds = int(got.kept.launch.LDSBytes)
	}
	o := soc.OccupancyOf(d.gpu, reg.Arch, reg.Accum, lds, int(tag.Grid.WorkgroupSize))
	tag.OccupancyWavesPerCU, tag.OccupancyLimiter = o.WavesPerCU, o.Limiter
}

// checks evaluates the runbook's confirmations.
func checks(data Data) []Check {
	tag := data.Tags.Big
	if tag == nil {
		tag = data.Tags.Small
	}
	if tag == nil {
		return nil
	}
	mapped := "absent"
	pass := false
	if tag.MappedPct != nil {
		mapped, pass = strconv.FormatFloat(*tag.MappedPct, 'f', 1, 64), *tag.MappedPct > 90
	}
	return []Check{
		{ID: "kept_dir", Pass: tag.KeptDir != "", Value: tag.KeptDir, Want: "set"},
		{ID: "mapped_pct", Pass: pass, Value: mapped, Want: "> 90"},
		{ID: "match_confidence", Pass: data.MatchConfidence == matchExact || data.MatchConfidence == matchFuzzy, Value: data.MatchConfidence, Want: "exact or fuzzy"},
	}
}
