package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/core/soc"
)

// driver is one run being driven. It lives in the supervisor.
type driver struct {
	store    *runs.Store
	launcher launch.Launcher
	run      runs.Run
	plan     Plan
	log      *slog.Logger
	begin    time.Time

	data         Data
	warnings     []envelope.Warning
	workloadRuns int
	inventory    rocprof.Inventory
	gpu          soc.SoC
	// gpuIndex is rocprofv3's number of the GPU.
	gpuIndex int
	// bigWorkgroups is the grid of the problem that was asked for.
	bigWorkgroups int64
}

// drive is the whole run: probe, discover, one trace per tag, counters.
func (d *driver) drive(ctx context.Context) error {
	d.data = Data{
		RunID: d.run.ID, State: runs.Running, RecipeKernel: d.run.Request.Kernel, Provenance: &d.plan.Provenance,
		RecipeSource: d.plan.Invocation.Recipe, Invocation: strings.Join(d.workload(), " "),
	}
	d.warnings, d.gpuIndex = append(d.warnings, d.plan.Warnings...), d.plan.GPU.KFD
	if d.plan.Kernel != nil {
		d.data.RecipeKernel = d.plan.Kernel.Name
	}
	if err := d.probe(ctx); err != nil {
		return err
	}
	if err := d.watchGPU(ctx, "/"); err != nil {
		return err
	}
	if err := d.discover(ctx); err != nil {
		return err
	}
	return d.traceTags(ctx)
}

// enter begins a phase.
func (d *driver) enter(phase string) error {
	d.run.Phase, d.run.PhaseStarted = phase, time.Now().UTC()
	d.log.Info("phase", "run", d.run.ID, "phase", phase)
	if err := d.store.WriteJSON(d.run.ID, "progress.json", d.data); err != nil {
		return err
	}
	return d.store.Save(d.run)
}

// stepName is the name of a phase's job and log files.
func stepName(phase string) string { return strings.NewReplacer(":", "_", "/", "_").Replace(phase) }

func (d *driver) warn(code, message string) {
	w := envelope.Warning{Code: code, Message: message}
	if !slices.Contains(d.warnings, w) {
		d.warnings = append(d.warnings, w)
	}
}

// workload is the command that launches the kernel, as it follows `--` on rocprofv3's command line.
func (d *driver) workload() []string {
	program := d.plan.Tools.Python
	if own := d.plan.Invocation.Program; own != "" {
		program = []string{own}
	}
	return append(slices.Clone(program), d.plan.Invocation.Argv...)
}

// env is the workload's environment. The compile cache is the run's own and begins empty: a cached kernel of an earlier run
// may have been built without debug information, and then maps to no source line.
func (d *driver) env() []string {
	cache := filepath.Join(d.store.Path(d.run.ID), "cache")
	return rocprof.WithEnv(d.plan.Env, []string{"FLYDSL_RUNTIME_CACHE_DIR=" + cache}, nil)
}

// dir is a directory of the run, absolute, made when missing.
func (d *driver) dir(parts ...string) (string, error) {
	path := filepath.Join(append([]string{d.store.Path(d.run.ID)}, parts...)...)
	return path, os.MkdirAll(path, 0o755)
}

// probe asks rocprofv3 what it is: an old one ignores the options of a trace without a word.
func (d *driver) probe(ctx context.Context) error {
	if err := d.enter("probe"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, timedOut{time.Minute})
	defer cancel()
	program := d.plan.Tools.Rocprofv3
	st, err := d.runStep(ctx, "probe", append(slices.Clone(program), "--help"), d.plan.Env)
	if err != nil {
		return err
	}
	help, err := d.readLog(st)
	if err != nil {
		return err
	}
	if !rocprof.ParseHelp(help).Has("--att") {
		return d.fail(envelope.Rocprofv3TooOld, envelope.Facts{
			Message: fmt.Sprintf("%s has no --att (%s)", program[0], st.exitText()),
			Evidence: envelope.Evidence{Value: strings.Join(program, " "), Needed: "rocprofv3 of ROCm 7.0 or later", Found: string(bytes.TrimSpace(help[:min(len(help), 200)])),
				Setting: "--rocprofv3 (FLYPROF_ROCPROFV3)", Log: logURI(d.run.ID, "probe")},
		})
	}
	st, err = d.runStep(ctx, "version", append(slices.Clone(program), "--version"), d.plan.Env)
	if err != nil {
		return err
	}
	out, err := d.readLog(st)
	if err != nil {
		return err
	}
	if v, err := rocprof.ParseVersion(out); err == nil {
		d.plan.Provenance.Rocprofv3, d.plan.Provenance.ROCm = v.SDK, v.ROCm
	} else {
		d.warn("VERSION_UNKNOWN", fmt.Sprintf("rocprofv3 --version could not be read: %v", err))
	}
	return nil
}

func (d *driver) readLog(st step) ([]byte, error) {
	f, _, err := d.store.OpenFile(d.run.ID, filepath.ToSlash(st.log))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	n, err := f.Read(b)
	if n == 0 && err != nil && !errors.Is(err, fs.ErrClosed) {
		return nil, nil
	}
	return b[:n], nil
}

// discover runs the workload once under a kernel trace, and finds the kernel among what was launched.
func (d *driver) discover(ctx context.Context) error {
	if err := d.enter("discover"); err != nil {
		return err
	}
	limit := maxDiscoverS * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timedOut{limit})
	defer cancel()
	out, err := d.dir("discover")
	if err != nil {
		return err
	}
	args, err := rocprof.DiscoverArgs(out, "discover")
	if err != nil {
		return err
	}
	reused, err := d.reuseDiscovery(out)
	if err != nil {
		return err
	}
	if reused {
		err := d.readDiscovery(step{Name: "discover"}, out)
		if code := envelope.CodeOf(err); code != envelope.NoKernelDiscovered && code != envelope.TraceCorrupt {
			return err
		}
		d.data.Discovery = nil
		if err := d.emptyDir(out); err != nil {
			return err
		}
	}
	argv := append(append(append(slices.Clone(d.plan.Tools.Rocprofv3), args...), "--"), d.workload()...)
	d.workloadRuns++
	st, err := d.runStep(ctx, "discover", argv, d.env())
	if err != nil {
		return err
	}
	return d.readDiscovery(st, out)
}

func (d *driver) readDiscovery(st step, dir string) error {
	report := d.findings(st)
	d.adopt(report.Warnings)
	files, err := rocprof.FindOutputs(dir)
	if err != nil {
		return err
	}
	var launches []rocprof.Launch
	for _, path := range files.KernelTraces {
		part, err := readFile(path, rocprof.ReadKernelTrace)
		if err != nil {
			return d.fail(envelope.TraceCorrupt, envelope.Facts{Message: fmt.Sprintf("the list of launches %s cannot be read: %v", filepath.Base(path), err), Evidence: envelope.Evidence{Path: d.relative(path), Log: logURI(d.run.ID, st.Name)}})
		}
		for _, l := range part {
			l.Process = filepath.Base(path) // launches count within one process
			launches = append(launches, l)
		}
	}
	d.readAgents(files, launches)
	d.inventory = rocprof.NewInventory(launches)
	if d.data.Discovery == nil && len(launches) > 0 && report.Primary == nil && st.Exit != nil && st.Exit.OK() {
		d.offerDiscovery()
	}
	w := wanted{Symbol: d.plan.Symbol, Kernel: d.plan.Kernel, Name: d.run.Request.Kernel, Baseline: d.run.Request.Target == "baseline"}
	m, facts, code := pick(d.inventory.Kernels(), w)
	if code == "" {
		d.noteMatch(m)
		if report.Primary != nil {
			d.warn(string(report.Primary.Code), "after the kernel had been launched, discovery reported: "+report.Primary.Message)
		}
		return nil
	}
	// Nothing fits: a named failure of the test explains it better than the absence does.
	if report.Primary != nil {
		return d.named(report.Primary, st)
	}
	if len(launches) == 0 && (st.Exit == nil || !st.Exit.OK()) {
		return d.unnamed(st)
	}
	facts.Evidence.Log, facts.LogTail = logURI(d.run.ID, st.Name), d.tail(st)
	if d.plan.Kernel != nil {
		facts.Test = d.plan.Kernel.Name
	}
	return d.fail(code, *facts)
}

func (d *driver) noteMatch(m match) {
	d.data.Kernel, d.data.MatchConfidence, d.data.Candidates = m.Symbol, m.Confidence, head(m.Candidates, 12)
	for _, k := range d.inventory.Kernels() {
		if k.Name == m.Symbol {
			d.data.Calls, d.data.AvgNS, d.data.TotalNS = k.Calls, k.AvgNS, k.TotalNS
		}
	}
	groups := d.inventory.Groups(m.Symbol)
	if len(groups) > 1 {
		for _, g := range head(groups, 24) {
			d.data.Groups = append(d.data.Groups, Group{ID: g.ID, Workgroups: g.Workgroups, Launches: g.Launches, AvgNS: g.AvgNS})
		}
	}
	if m.Confidence == matchHeuristic {
		d.warn("MATCH_HEURISTIC", fmt.Sprintf("%s was chosen by its total time; check data.candidates", m.Symbol))
	}
}

// readAgents learns which GPU ran the workload.
func (d *driver) readAgents(files rocprof.Outputs, launches []rocprof.Launch) {
	var agents []rocprof.Agent
	for _, path := range files.AgentInfos {
		part, err := readFile(path, rocprof.ReadAgentInfo)
		if err != nil {
			d.warn("AGENT_INFO_UNREADABLE", fmt.Sprintf("%s: %v", filepath.Base(path), err))
			continue
		}
		agents = append(agents, part...)
	}
	agent, ok := rocprof.AgentOf(agents, launches)
	if !ok {
		d.warn("GPU_UNKNOWN", "rocprofv3 did not say which GPU ran the kernel; topology and occupancy are left out")
		return
	}
	p := &d.plan.Provenance
	p.Arch, p.Product = agent.Name, agent.Product
	switch {
	case p.GPU.BDF == "":
		p.GPU.BDF = agent.BDF()
	case agent.BDF() == p.GPU.BDF:
		d.gpuIndex = agent.Index // the profiler's own count, which needs no assumption about masks
	case agent.BDF() != "":
		d.warn("OTHER_GPU", fmt.Sprintf("the test ran on GPU %s and not on %s, which was asked for and is traced: it chooses its GPU itself", agent.BDF(), p.GPU.BDF))
	}
	figures, ok := soc.For(agent.Name, agent.Product)
	if !ok {
		d.warn("ARCH_UNKNOWN", fmt.Sprintf("no figures are known for %s (%s); occupancy and placement are left out", agent.Name, agent.Product))
		return
	}
	d.gpu = figures.WithTopology(agent.CUs, agent.XCCs, agent.ShaderEngines)
}

func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}

// adopt passes the caveats of a log on.
func (d *driver) adopt(findings []rocprof.Finding) {
	for _, f := range findings {
		d.warn(f.ID, f.Message)
	}
}

// named makes the error of a failure that the log names.
func (d *driver) named(f *rocprof.Finding, st step) error {
	facts := envelope.Facts{
		Message: f.Message, LogTail: d.tail(st),
		Evidence: envelope.Evidence{Phase: d.run.Phase, Signature: f.Line, Source: f.Source, Traceback: head(f.Traceback, 20), Log: logURI(d.run.ID, st.Name)},
	}
	d.noteExit(&facts.Evidence, st)
	return d.fail(f.Code, facts)
}

// unnamed makes the error of a workload that failed before it launched anything, for a reason that no row knows.
func (d *driver) unnamed(st step) error {
	facts := envelope.Facts{
		Message:  fmt.Sprintf("the test ended (%s) before it launched a kernel, and its log names no known reason", st.exitText()),
		LogTail:  d.tail(st),
		Evidence: envelope.Evidence{Phase: d.run.Phase, Log: logURI(d.run.ID, st.Name)},
	}
	d.noteExit(&facts.Evidence, st)
	return d.fail(envelope.WorkloadFailed, facts)
}

func (d *driver) noteExit(e *envelope.Evidence, st step) {
	if st.Exit == nil {
		return
	}
	if st.Exit.Signal != "" {
		e.Signal = st.Exit.Signal
		return
	}
	e.ExitCode = &st.Exit.Code
}

func (d *driver) tail(st step) []string {
	return logTail(d.store, d.run.ID, filepath.ToSlash(st.log), 20)
}

func (d *driver) relative(path string) string {
	if rel, err := filepath.Rel(d.store.Path(d.run.ID), path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.Base(path)
}

// successActions are what to do after a good capture.
func (d *driver) successActions() []envelope.Action {
	var acts []envelope.Action
	if big, small := d.data.Tags.Big, d.data.Tags.Small; big != nil && big.KeptDir != "" || small != nil && small.KeptDir != "" {
		acts = append(acts, envelope.Action{Kind: envelope.CallTool, Args: request.Bubbles{RunID: d.run.ID}, Reason: "says where the waves stalled and for what", Confidence: envelope.High})
	}
	if t := d.data.Tags.Big; t != nil && t.KeptDir != "" {
		acts = append(acts, envelope.Action{Kind: envelope.ReadResource, URI: "flyprof://files/" + d.run.ID + "/" + t.KeptDir + "/code.json", Reason: "the instructions with hitcount, latency, stall and idle"})
	}
	return append(acts, envelope.Action{Kind: envelope.CallTool, Args: request.Read{URI: "flyprof://runs/" + d.run.ID + "/files"}, Reason: "lists every file of the run"})
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Only NaN or Inf can do this, and every float of Data is checked where it is computed.
		return json.RawMessage("{}")
	}
	return b
}
