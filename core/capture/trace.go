package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/diagnose"
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
	if choice, err = d.traceWith(ctx, "big", slot, choice); err != nil {
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

// maxAttempts bounds the traces that are tried for one tag, each for another reason.
const maxAttempts = 4

// traceWith takes one trace: run the job, judge what was written. An empty trace is tried again where the evidence says what would
// help and the caller left it open, each remedy once. It gives the launch that was traced in the end.
func (d *driver) traceWith(ctx context.Context, name string, slot **Tag, choice rocprof.Choice) (rocprof.Choice, error) {
	tag := &Tag{State: "running", Shape: d.plan.Invocation.Shape}
	*slot = tag
	if name == "big" {
		tag.Grid = &Grid{Workgroups: choice.Group.Workgroups, WorkgroupSize: product(choice.Group.Workgroup), Source: "measured"}
	}
	plan := d.tracePlan(choice)
	tried := map[diagnose.Kind]bool{}
	var shells []string
	for n := 1; ; n++ {
		if err := d.enter("att:" + name); err != nil {
			return choice, d.failTag(name, tag, err)
		}
		got, err := d.traceOnce(ctx, name, n, choice, plan)
		if err != nil {
			d.noteAttempt(n, name, choice, plan, "failed", err.Error())
			return choice, d.failTag(name, tag, err)
		}
		d.fillTag(tag, got, plan)
		if got.kept != nil {
			d.removeShells(append(shells, got.shells...))
			d.noteAttempt(n, name, choice, plan, "kept", fmt.Sprintf("%d waves on the traced CUs; %s", tag.Waves, plan.Why))
			tag.State = "done"
			return choice, d.traceLarger(ctx, name, n+1, tag, choice, plan, got)
		}
		shells = append(shells, got.shells...)
		d.noteAttempt(n, name, choice, plan, "empty", got.why.Cause)
		if tried[got.why.Kind] || n == maxAttempts || d.workloadRuns >= maxWorkloadRuns {
			return choice, d.failTag(name, tag, d.emptyError(choice, plan, got))
		}
		tried[got.why.Kind] = true
		nextChoice, next, ok, err := d.remedy(name, choice, plan, got)
		if err != nil {
			return choice, d.failTag(name, tag, err)
		}
		if !ok {
			return choice, d.failTag(name, tag, d.emptyError(choice, plan, got))
		}
		choice, plan = nextChoice, next
	}
}

// traceLarger takes a trace whose buffer was full once more with twice the buffer, where the caller left its size open. The larger
// trace is taken when it holds more; whatever becomes of it, the first one stands.
func (d *driver) traceLarger(ctx context.Context, name string, n int, tag *Tag, choice rocprof.Choice, plan TracePlan, first traced) error {
	if !first.full || d.run.Request.ATTBufferSize != 0 || plan.ATTBufferSize*2 > maxAutoBuffer || d.workloadRuns >= maxWorkloadRuns {
		return nil
	}
	plan.ATTBufferSize *= 2
	plan.Why = fmt.Sprintf("the buffer was full, so the trace is taken once more with twice of it; %s", plan.Why)
	if err := d.enter("att:" + name); err != nil {
		return err
	}
	got, err := d.traceOnce(ctx, name, n, choice, plan)
	switch {
	case err != nil && envelope.CodeOf(err) == "":
		return err // stopped, timed out, or the disk
	case err != nil:
		d.noteAttempt(n, name, choice, plan, "failed", err.Error())
		d.warn("BUFFER_NOT_DOUBLED", fmt.Sprintf("a trace with %d MiB failed, the one that was cut stands: %s", plan.ATTBufferSize>>20, envelope.As(err).Message))
	case got.kept == nil:
		d.noteAttempt(n, name, choice, plan, "empty", got.why.Cause)
	case got.full && got.kept.verdict.Totals.Hit <= first.kept.verdict.Totals.Hit:
		d.noteAttempt(n, name, choice, plan, "cut", "the larger buffer was full too and holds no more; the first trace stands")
	default:
		d.noteAttempt(n, name, choice, plan, "kept", fmt.Sprintf("%d executed instructions instead of %d", got.kept.verdict.Totals.Hit, first.kept.verdict.Totals.Hit))
		d.dropWarnings(first.warnings)
		*tag = Tag{State: "done", Shape: tag.Shape, Grid: tag.Grid}
		d.fillTag(tag, got, plan)
	}
	return nil
}

// dropWarnings takes back what was said of a trace that another has replaced.
func (d *driver) dropWarnings(old []envelope.Warning) {
	d.warnings = slices.DeleteFunc(d.warnings, func(w envelope.Warning) bool { return slices.Contains(old, w) })
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
	p := TracePlan{ATTTargetCU: DefaultTargetCU, ATTBufferSize: DefaultBufferSize, ATTGPUIndex: d.gpuIndex}
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

func (d *driver) noteAttempt(n int, tag string, c rocprof.Choice, p TracePlan, result, why string) {
	d.data.Attempts = append(d.data.Attempts, Attempt{
		N: n, Tag: tag, IterRange: c.Iter, ATTTargetCU: p.ATTTargetCU, ATTShaderEngineMask: p.ATTShaderEngineMask, ATTBufferSize: p.ATTBufferSize, ATTGPUIndex: p.ATTGPUIndex, Result: result, Why: why,
	})
}

// traced is what one ATT job left.
type traced struct {
	step      step
	kept      *dispatch
	inventory []envelope.Inventory
	// why there is no trace, when none was kept.
	why   *diagnose.Diagnosis
	files rocprof.Outputs
	// full says that the buffer was; warnings are what was said of this trace.
	full     bool
	warnings []envelope.Warning
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
	return d.judge(ctx, tag, st, out, c, p)
}

// judge decides by the files that were written, never by the exit status alone.
func (d *driver) judge(ctx context.Context, tag string, st step, out string, c rocprof.Choice, p TracePlan) (traced, error) {
	got := traced{step: st}
	report := d.findings(st)
	before := len(d.warnings)
	d.adopt(report.Warnings)
	got.full = slices.ContainsFunc(report.Warnings, func(f rocprof.Finding) bool { return f.ID == "BUFFER_FULL" })
	files, err := rocprof.FindOutputs(out)
	if err != nil {
		return got, err
	}
	got.files = files
	launches := d.launches(files)
	all, corrupt := d.openAll(ctx, files, launches, &got)
	best := d.best(tag, all, c)
	got.warnings = slices.Clone(d.warnings[before:])
	switch {
	case best != nil:
		got.kept = best
		if report.Primary != nil {
			d.warn(string(report.Primary.Code), "after the kernel had been traced: "+report.Primary.Message)
		} else if st.Exit != nil && !st.Exit.OK() {
			d.warn("WORKLOAD_EXIT", fmt.Sprintf("the test ended with %s after the kernel had been traced", st.exitText()))
		}
		got.warnings = append(got.warnings, best.att.Warnings...)
		return got, nil
	case corrupt != nil:
		e := envelope.As(corrupt)
		return got, d.fail(e.Code, envelope.Facts{Message: e.Message, Evidence: e.Evidence})
	case report.Primary != nil:
		return got, d.named(report.Primary, st)
	case len(all) == 0 && (st.Exit == nil || !st.Exit.OK()):
		return got, d.unnamed(st)
	}
	got.why = d.whyEmpty(files, all, launches, report, c, p)
	if got.why.Kind == diagnose.NotDecoded {
		return got, d.fail(got.why.Code, envelope.Facts{
			Message: got.why.Cause, Help: got.why.Do, LogTail: d.tail(st),
			Evidence: envelope.Evidence{Found: strings.Join(got.why.Evidence, "; "), Setting: "--att-library-path (FLYPROF_ATT_LIBRARY_PATH)", Phase: d.run.Phase, Log: logURI(d.run.ID, st.Name)},
		})
	}
	return got, nil
}

// launches reads the kernel traces of a job, by process.
func (d *driver) launches(files rocprof.Outputs) []rocprof.Launch {
	var all []rocprof.Launch
	for _, path := range files.KernelTraces {
		part, err := readFile(path, rocprof.ReadKernelTrace)
		if err != nil {
			d.warn("KERNEL_TRACE_UNREADABLE", fmt.Sprintf("%s: %v", filepath.Base(path), err))
			continue
		}
		for _, l := range part {
			l.Process = filepath.Base(path)
			all = append(all, l)
		}
	}
	return all
}

// whyEmpty asks for the reason of an empty trace. Dispatches of another kernel or grid than the one that was meant are empty too.
func (d *driver) whyEmpty(files rocprof.Outputs, all []dispatch, launches []rocprof.Launch, report rocprof.Report, c rocprof.Choice, p TracePlan) *diagnose.Diagnosis {
	f := diagnose.Facts{Files: files, Launches: launches, Log: report, Kernel: d.data.Kernel, GPUIndex: &p.ATTGPUIndex}
	for _, path := range files.AgentInfos {
		if part, err := readFile(path, rocprof.ReadAgentInfo); err == nil {
			f.Agents = append(f.Agents, part...)
		}
	}
	f.Iter, _ = rocprof.ParseIterRange(c.Iter)
	for _, x := range all {
		one := diagnose.Dispatch{Dir: x.rel, State: x.verdict.State, Ins: x.verdict.Ins, Holds: x.att.Code.Kernels(), Busy: x.att.Occupancy.BusyCUs("")}
		switch {
		case x.verdict.Err != nil:
			one.What = envelope.As(x.verdict.Err).Message
		case x.verdict.State == att.Kept:
			one.State, one.What = att.Empty, "the trace is of another launch than the one that was asked for"
		}
		f.Dispatches = append(f.Dispatches, one)
	}
	if why := diagnose.Empty(f); why != nil {
		return why
	}
	return &diagnose.Diagnosis{Kind: diagnose.Silent, Code: envelope.EmptyATT, Cause: "nothing was traced, and no file tells why", Confidence: envelope.Low, Evidence: []string{"no .att file, no kernel trace"}, Do: "read the log of the step"}
}

// openAll reads every dispatch directory of the job. The error is that of the last unreadable one.
func (d *driver) openAll(ctx context.Context, files rocprof.Outputs, listed []rocprof.Launch, got *traced) ([]dispatch, error) {
	launches := map[int64]rocprof.Launch{}
	for _, l := range listed {
		launches[l.DispatchID] = l
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

// remedy is what one more attempt would do otherwise, by the reason of the empty trace: another CU, more shader engines, a larger
// buffer, another launch, the GPU's other number. It says false where the caller fixed what would have to change, or where nothing
// speaks for another try. The error is of a launch that the caller asked for and the traced run does not have.
func (d *driver) remedy(tag string, c rocprof.Choice, p TracePlan, got traced) (rocprof.Choice, TracePlan, bool, error) {
	r, why := d.run.Request, got.why
	open := r.ATTTargetCU == nil && (r.ATTShaderEngineMask == "" || r.ATTShaderEngineMask == autoMask)
	switch why.Kind {
	case diagnose.Elsewhere:
		if !open || why.Engines == 0 {
			return c, p, false, nil
		}
		p.ATTTargetCU, p.ATTShaderEngineMask = why.CU, d.allEngines()
		p.Why = fmt.Sprintf("CU %d had waves in %d traced shader engines of the attempt before; all engines are traced, since placement differs between runs", why.CU, why.Engines)
		return c, p, true, nil
	case diagnose.IdleEngines:
		if !open || p.ATTShaderEngineMask == d.allEngines() {
			return c, p, false, nil
		}
		p.ATTShaderEngineMask, p.Why = d.allEngines(), "no traced shader engine had waves in the attempt before, so all are traced"
		return c, p, true, nil
	case diagnose.BufferFull:
		if r.ATTBufferSize != 0 || p.ATTBufferSize*2 > maxAutoBuffer {
			return c, p, false, nil
		}
		p.ATTBufferSize *= 2
		p.Why = "the buffer was full before a wave of the traced CU began, so it is twice as large"
		return c, p, true, nil
	case diagnose.OtherGPU:
		// The same GPU under another number is traced; a GPU that this run does not hold is not.
		if why.Agent.BDF() == "" || why.Agent.BDF() != d.plan.Provenance.GPU.BDF {
			return c, p, false, nil
		}
		p.ATTGPUIndex, p.Why = why.Agent.Index, fmt.Sprintf("rocprofv3 counts the GPU %s as %d", why.Agent.BDF(), why.Agent.Index)
		return c, p, true, nil
	case diagnose.NeverReached, diagnose.OtherProcess:
		return d.otherLaunch(tag, c, p, why.Inventory)
	}
	return c, p, false, nil
}

// otherLaunch chooses again among the launches of the traced run. A launch that the caller asked for and that is not there is
// DISPATCH_OUT_OF_RANGE with those that are.
func (d *driver) otherLaunch(tag string, c rocprof.Choice, p TracePlan, inv rocprof.Inventory) (rocprof.Choice, TracePlan, bool, error) {
	if d.run.Request.IterRange != "" {
		_, err := inv.ChooseLaunch(d.data.Kernel, "", d.run.Request.IterRange)
		if err != nil {
			err = d.withRequest(err)
		}
		return c, p, false, err
	}
	group := ""
	for _, g := range inv.Groups(d.data.Kernel) {
		if g.GridItems() == c.Group.GridItems() {
			group = g.ID
			break
		}
	}
	other, err := inv.ChooseLaunch(d.data.Kernel, group, "")
	if err != nil || other.Iter == c.Iter {
		return c, p, false, nil
	}
	if tag == "small" {
		other.Group.Workgroups = c.Group.Workgroups // what the small trace was shrunk to, an estimate
	} else {
		d.adoptChoice(other)
	}
	p.Why = fmt.Sprintf("launch %s never came in the attempt before; this run launches the kernel %d times", c.Iter, other.Group.Launches)
	return other, p, true, nil
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
		Message: fmt.Sprintf("%s has no trace: %s", d.data.Kernel, got.why.Cause), Help: got.why.Do,
		Evidence: envelope.Evidence{
			Diagnosis: string(got.why.Kind), Found: strings.Join(got.why.Evidence, "; "),
			Workgroups: c.Group.Workgroups, TargetCUs: cus, DispatchInventory: head(got.inventory, 16), Basis: "the files of the last attempt",
			Phase: d.run.Phase, Log: logURI(d.run.ID, got.step.Name),
		},
	}
	f.Suggestions = d.emptySuggestions(c, p, got, &f.Evidence)
	return d.fail(envelope.EmptyATT, f)
}

// emptySuggestions are the calls that the reason of an empty trace speaks for, the likeliest first.
func (d *driver) emptySuggestions(c rocprof.Choice, p TracePlan, got traced, evidence *envelope.Evidence) []envelope.Action {
	var out []envelope.Action
	call := func(r request.Capture, confidence envelope.Confidence, reason string) {
		out = append(out, envelope.Action{Kind: envelope.CallTool, Args: r, Confidence: confidence, Reason: reason})
	}
	why, cus := got.why, d.gpu.CUs
	switch why.Kind {
	case diagnose.Elsewhere, diagnose.IdleEngines:
		if bigger, rows := d.largerShape(c, cus); bigger != nil {
			call(*bigger, envelope.High, fmt.Sprintf("%d workgroups instead of %d, at least two for each of the %d CUs: a wave on the traced CU is likely", rows, c.Group.Workgroups, cus))
		}
		if why.Engines > 0 {
			r := d.again()
			r.ATTTargetCU, r.ATTShaderEngineMask = &why.CU, d.allEngines()
			call(r, envelope.Medium, fmt.Sprintf("keeps the shape and traces CU %d, which had waves in %d shader engines, on all of them", why.CU, why.Engines))
		} else if p.ATTShaderEngineMask != d.allEngines() {
			r := d.again()
			r.ATTShaderEngineMask = d.allEngines()
			call(r, envelope.Medium, "keeps the shape and traces all shader engines")
		}
	case diagnose.NotLaunched, diagnose.NotSelected:
		if d.data.Discovery != nil {
			r := d.again()
			r.Rediscover = true
			call(r, envelope.Medium, "the list of launches was an earlier run's; this makes a new one")
		}
	case diagnose.BufferFull:
		r := d.again()
		r.ATTBufferSize = int(min(p.ATTBufferSize*2, maxBuffer))
		call(r, envelope.Medium, fmt.Sprintf("a buffer of %d MiB instead of %d", r.ATTBufferSize>>20, p.ATTBufferSize>>20))
	}
	if d := why.Dispatch; d != nil && len(d.Busy) > 0 {
		evidence.Basis, evidence.BusyCUs = "occupancy.json of the last attempt", map[string][]int{}
		for se, list := range d.Busy {
			evidence.BusyCUs[strconv.Itoa(se)] = list
		}
	}
	return out
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
