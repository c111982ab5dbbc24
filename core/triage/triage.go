// Package triage explains a failure from whatever is at hand - a code, a run, a directory of trace files, a log, an envelope -
// with the evidence for each cause and what to do next. It needs no GPU, no ROCm and no checkout.
package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/diagnose"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Data is the answer.
type Data struct {
	Source  string         `json:"source" jsonschema:"enum=code,enum=run,enum=path,enum=log,enum=envelope" jsonschema_description:"What was looked at."`
	Code    envelope.Code  `json:"code,omitempty" jsonschema_description:"The failure; absent where none was found."`
	Class   envelope.Class `json:"class,omitempty"`
	Summary string         `json:"summary" jsonschema_description:"What happened in one sentence."`
	Causes  []Cause        `json:"causes" jsonschema_description:"Likely causes, the likeliest first."`
	Caveats []Caveat       `json:"caveats,omitempty" jsonschema_description:"Things to know before trusting the trace."`
	// Directory is set for a path and for a run with traces.
	Directory *Directory `json:"directory,omitempty"`
	RunID     string     `json:"run_id,omitempty"`
	// Round and Rounds bound the loop of capture and triage for one lineage of runs.
	Round  int        `json:"round,omitempty" jsonschema_description:"Which attempt of its lineage the run is; counted from 1."`
	Rounds int        `json:"rounds,omitempty" jsonschema_description:"How many attempts triage proposes; after them it says stop."`
	State  runs.State `json:"state,omitempty"`
}

// Cause is one explanation.
type Cause struct {
	Code envelope.Code `json:"code,omitempty"`
	// Kind is diagnose's, for a directory without a trace.
	Kind       diagnose.Kind       `json:"kind,omitempty" jsonschema_description:"What sort of empty a trace is such as elsewhere or idle_engines or never_reached."`
	Cause      string              `json:"cause"`
	Confidence envelope.Confidence `json:"confidence" jsonschema:"enum=high,enum=medium,enum=low"`
	Evidence   []string            `json:"evidence" jsonschema_description:"What shows it: files with figures or log lines; or what would show it."`
	Do         string              `json:"do"`
}

// Caveat is a warning of a log or of a trace.
type Caveat struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Service answers triage calls.
type Service struct {
	Store *runs.Store
	// Resolve jails a path that a caller names.
	Resolve func(field, path string) (string, error)
}

type reply = envelope.Reply[Data]

// Triage looks at the one source that is given.
//
// Errors: BAD_ARGS for none or several sources, RUN_NOT_FOUND, RUN_NOT_FINISHED, PATH_NOT_ALLOWED, NO_ARTIFACT.
func (s Service) Triage(ctx context.Context, in request.Triage) (reply, error) {
	given := map[string]string{"run_id": in.RunID, "path": in.Path, "code": in.Code, "log_text": in.LogText, "envelope": in.Envelope}
	var names []string
	for _, name := range []string{"run_id", "path", "code", "log_text", "envelope"} {
		if given[name] != "" {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return reply{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("exactly one source is looked at, and %d are given", len(names)),
			Evidence: envelope.Evidence{Field: "run_id", Value: strings.Join(names, ", "), Allowed: "one of run_id, path, code, log_text, envelope"},
		})
	}
	switch names[0] {
	case "run_id":
		return s.run(ctx, in)
	case "path":
		return s.path(ctx, in)
	case "code":
		return code(in)
	case "log_text":
		return log(in)
	}
	return fromEnvelope(in)
}

// request makes the capture that actions repeat, nil where no kernel is known.
func captureOf(in request.Triage) *request.Capture {
	if in.Kernel == "" {
		return nil
	}
	return &request.Capture{Kernel: in.Kernel, Shape: in.Shape}
}

// answer completes the data of a code: its class, its cause from the catalogue, and the actions that an error of it carries.
func answer(data Data, in request.Triage, f envelope.Facts) reply {
	row, ok := envelope.Lookup(data.Code)
	if !ok {
		return reply{Data: &data}
	}
	data.Class = row.Class
	if f.Request == nil {
		f.Request = captureOf(in)
	}
	e := envelope.Build(data.Code, f)
	acts := e.Actions
	if data.Code == envelope.EmptyATT && in.Kernel != "" && in.Shape != "" {
		tile := envelope.Action{Kind: envelope.CallTool, Args: request.Tile{Kernel: in.Kernel, Shape: in.Shape}, Confidence: envelope.High,
			Reason: "says how many workgroups the shape has, whether they reach the traced CU, and from which extent they are likely to"}
		acts = append([]envelope.Action{tile}, acts...)
	}
	return reply{Data: &data, Actions: acts}
}

// code answers from the catalogue alone: general causes, and what would show each.
func code(in request.Triage) (reply, error) {
	row, ok := envelope.Lookup(envelope.Code(strings.ToUpper(strings.TrimSpace(in.Code))))
	if !ok {
		var names []string
		for _, r := range envelope.Catalogue() {
			names = append(names, string(r.Code))
		}
		return reply{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("there is no code %.64q", in.Code),
			Evidence: envelope.Evidence{Field: "code", Value: in.Code, Allowed: "a code of the catalogue", ValidNames: names},
		})
	}
	data := Data{Source: "code", Code: row.Code, Summary: row.Meaning, Causes: general(row)}
	return answer(data, in, envelope.Facts{Message: row.Meaning}), nil
}

// general are the causes of a code when nothing else is known.
func general(row envelope.Row) []Cause {
	var out []Cause
	for _, g := range generalCauses {
		if g.code == row.Code {
			out = append(out, Cause{Code: row.Code, Cause: g.cause, Confidence: g.confidence, Evidence: []string{"would show it: " + g.shows}, Do: g.do})
		}
	}
	if len(out) == 0 {
		out = append(out, Cause{Code: row.Code, Cause: row.Meaning, Confidence: envelope.Low, Evidence: []string{"nothing but the code"}, Do: row.Help})
	}
	return out
}

// generalCause is one row of the table of what a code may come from.
type generalCause struct {
	code             envelope.Code
	cause, shows, do string
	confidence       envelope.Confidence
}

// generalCauses is the table, the likelier causes of a code first.
var generalCauses = []generalCause{
	{envelope.EmptyATT, "the grid is small and no workgroup landed on the traced CU of the traced shader engines", `code.json has "code":null and occupancy.json has rows on other CUs`, "enlarge the leading dimension, or trace a CU that occupancy.json shows as busy with att_shader_engine_mask over all XCDs", envelope.High},
	{envelope.EmptyATT, "the launch that was asked for never came: launches count from 1 within one kernel id", "no .att file and no ui_output directory, and the workload ended well", "leave iter_range out, or take a launch that a discovery lists", envelope.Medium},
	{envelope.EmptyATT, "the traced GPU was not the one that ran the kernel: att_gpu_index counts all GPUs of the driver, whatever the visible-devices masks say", ".att files of 424 bytes only", "set gpu, and let the tool derive the index", envelope.Medium},
	{envelope.EmptyATT, "the kernel name filter did not match: rocprofv3 searches with std::regex in the formatted name", "no .att file, though a kernel trace lists the kernel", "give the symbol as the discovery prints it", envelope.Low},
	{envelope.NoKernelDiscovered, "the test ran another case than the one that launches the kernel: a skip, a default of tiny size, a missing flag", "the log names a skip, or no launch of the kernel's name in the kernel trace", "try a shape that is not trivial, and read the log of the discovery", envelope.Medium},
	{envelope.NoKernelDiscovered, "the kernel is launched under another name", "error.candidates lists a symbol that resembles it", "name that symbol in full", envelope.Medium},
	{envelope.CaptureTimeout, "the test compiles or sweeps many cases before it comes to the kernel", "the log still grows, and names other shapes", "give one shape, or a larger timeout_s", envelope.Medium},
	{envelope.CaptureTimeout, "the kernel or the GPU hangs", "the log stands still while the GPU is at 100%", "run the test without the profiler; report a hang", envelope.Low},
}

// log answers for a pasted log.
func log(in request.Triage) (reply, error) {
	report := rocprof.Classify(strings.NewReader(in.LogText))
	data := Data{Source: "log", Causes: []Cause{}, Caveats: caveats(report)}
	if report.Primary == nil {
		data.Summary = "the log names no failure that is known"
		if len(report.Opened) > 0 {
			data.Summary += fmt.Sprintf("; rocprofv3 says that it wrote %d files, which is what it does on success", len(report.Opened))
		}
		return reply{Data: &data, Actions: []envelope.Action{
			{Kind: envelope.ReadResource, URI: "flyprof://reference/rocprofv3-quirks", Reason: "what goes wrong without a word in the log"},
			{Kind: envelope.AskUser, Reason: "ask for the directory that rocprofv3 wrote, or for the whole log"},
		}}, nil
	}
	p := report.Primary
	data.Code, data.Summary = p.Code, p.Message
	data.Causes = append(data.Causes, causeOf(p))
	return answer(data, in, envelope.Facts{Message: p.Message, Evidence: envelope.Evidence{Signature: p.Line, Source: p.Source, Traceback: p.Traceback}}), nil
}

func causeOf(p *rocprof.Finding) Cause {
	row, _ := envelope.Lookup(p.Code)
	c := Cause{Code: p.Code, Cause: p.Message, Confidence: envelope.High, Evidence: []string{p.Line}, Do: row.Help}
	if p.Source != "" {
		c.Evidence = append(c.Evidence, "at "+p.Source)
	}
	return c
}

func caveats(report rocprof.Report) []Caveat {
	var out []Caveat
	for _, w := range report.Warnings {
		out = append(out, Caveat{ID: w.ID, Message: w.Message})
	}
	return out
}

// fromEnvelope answers for a pasted envelope of this or another flyprof.
func fromEnvelope(in request.Triage) (reply, error) {
	var e struct {
		OK   *bool `json:"ok"`
		Data struct {
			RecipeKernel    string `json:"recipe_kernel"`
			MatchConfidence string `json:"match_confidence"`
			Tags            struct {
				Big struct {
					KeptDir   string   `json:"kept_dir"`
					Shape     string   `json:"shape"`
					MappedPct *float64 `json:"mapped_pct"`
				} `json:"big"`
			} `json:"tags"`
		} `json:"data"`
		Error *struct {
			Code     string          `json:"code"`
			Message  string          `json:"message"`
			LogTail  []string        `json:"log_tail"`
			Evidence json.RawMessage `json:"evidence"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(in.Envelope), &e); err != nil || e.OK == nil {
		return reply{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  "the text is no envelope: " + whyNot(err),
			Evidence: envelope.Evidence{Field: "envelope", Value: in.Envelope[:min(len(in.Envelope), 200)], Allowed: `a JSON object with "ok", and "data" or "error"`},
		})
	}
	if in.Kernel == "" {
		in.Kernel = e.Data.RecipeKernel
	}
	if in.Shape == "" {
		in.Shape = e.Data.Tags.Big.Shape
	}
	data := Data{Source: "envelope", Causes: []Cause{}}
	if e.Error == nil {
		data.Summary, data.Causes = goodEnvelope(e.Data.Tags.Big.KeptDir, e.Data.MatchConfidence, e.Data.Tags.Big.MappedPct)
		return reply{Data: &data}, nil
	}
	row, known := envelope.Lookup(envelope.Code(e.Error.Code))
	report := rocprof.Classify(strings.NewReader(strings.Join(e.Error.LogTail, "\n")))
	data.Caveats = caveats(report)
	data.Summary = e.Error.Message
	if !known {
		data.Summary = fmt.Sprintf("the code %.64q is not of this catalogue: %s", e.Error.Code, e.Error.Message)
	} else {
		data.Code = row.Code
		if data.Summary == "" {
			data.Summary = row.Meaning
		}
		shown := []string{data.Summary}
		if len(e.Error.Evidence) > 2 {
			shown = append(shown, "evidence "+string(e.Error.Evidence[:min(len(e.Error.Evidence), 600)]))
		}
		data.Causes = append(data.Causes, Cause{Code: row.Code, Cause: row.Meaning, Confidence: envelope.High, Evidence: shown, Do: row.Help})
	}
	if p := report.Primary; p != nil && p.Code != data.Code {
		data.Causes = append(data.Causes, causeOf(p))
		if !known {
			data.Code = p.Code
		}
	}
	return answer(data, in, envelope.Facts{Message: e.Error.Message}), nil
}

func whyNot(err error) string {
	if err == nil {
		return `it has no "ok"`
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v at byte %d", syntax, syntax.Offset)
	}
	return err.Error()
}

// goodEnvelope goes through the runbook's confirmations.
func goodEnvelope(kept, confidence string, mapped *float64) (string, []Cause) {
	causes := []Cause{}
	if kept == "" {
		causes = append(causes, Cause{Code: envelope.EmptyATT, Cause: "no trace was kept", Confidence: envelope.High, Evidence: []string{"data.tags.big.kept_dir is not set"}, Do: "capture the tag big"})
	}
	if mapped != nil && *mapped <= 90 {
		causes = append(causes, Cause{Cause: "many instructions have no source line", Confidence: envelope.High, Evidence: []string{fmt.Sprintf("data.tags.big.mapped_pct is %g", *mapped)}, Do: "capture with a fresh compile cache and debug information; a cached kernel of before has none"})
	}
	if confidence == "heuristic" {
		causes = append(causes, Cause{Cause: "the kernel was chosen by its time and may be another", Confidence: envelope.Medium, Evidence: []string{"data.match_confidence is heuristic"}, Do: "check data.candidates, and name the symbol in full"})
	}
	if len(causes) == 0 {
		return "the envelope is a success, and the runbook's confirmations that it holds pass", causes
	}
	return "the envelope is a success, and not all of the runbook's confirmations pass", causes
}

// run answers for a run of this server.
func (s Service) run(ctx context.Context, in request.Triage) (reply, error) {
	r, err := s.Store.Load(in.RunID)
	if err != nil {
		return reply{}, err
	}
	if !r.State.Ended() {
		return reply{}, envelope.Build(envelope.RunNotFinished, envelope.Facts{
			Message: fmt.Sprintf("the run goes on (%s, phase %q): nothing has failed yet", r.State, r.Phase), RunID: r.ID, Evidence: envelope.Evidence{RunState: string(r.State), Phase: r.Phase},
		})
	}
	res, err := s.Store.Result(r.ID)
	if err != nil {
		return reply{}, err
	}
	data := Data{Source: "run", RunID: r.ID, State: r.State, Causes: []Cause{}}
	for _, w := range res.Warnings {
		data.Caveats = append(data.Caveats, Caveat{ID: w.Code, Message: w.Message})
	}
	if dir, err := Look(ctx, s.Store.Path(r.ID), s.asked(r.ID, res)); err == nil {
		data.Directory = dir
	}
	if res.Error == nil {
		data.Summary = "the run succeeded"
		return reply{Bundle: r.ID, Data: &data, Actions: res.Actions}, nil
	}
	e := res.Error
	row, _ := envelope.Lookup(e.Code)
	data.Code, data.Class, data.Summary = e.Code, row.Class, e.Message
	c := Cause{Code: e.Code, Cause: e.Message, Confidence: envelope.High, Evidence: shown(e), Do: e.Help}
	data.Causes = append(data.Causes, c)
	if d := data.Directory; d != nil && d.Cause != nil && !slices.ContainsFunc(data.Causes, func(c Cause) bool { return c.Cause == d.Cause.Cause }) {
		data.Causes = append(data.Causes, *d.Cause)
	}
	data.Round, data.Rounds = r.Retries+1, maxRounds
	if data.Round > maxRounds {
		return reply{Bundle: r.ID, Data: &data, Actions: []envelope.Action{
			{Kind: envelope.ReportFinding, Reason: fmt.Sprintf("%d runs of this lineage have failed, the last with %s: report it with the evidence; an edit of the kernel opens a new lineage", data.Round, e.Code)},
			{Kind: envelope.Stop, Reason: fmt.Sprintf("%d rounds of triage for one lineage are over", maxRounds)},
		}}, nil
	}
	return reply{Bundle: r.ID, Data: &data, Actions: e.Actions}, nil
}

// maxRounds is how many failed runs of one lineage get proposals.
const maxRounds = 3

// asked tells what a run had asked the profiler for.
func (s Service) asked(id string, res runs.Result) Asked {
	var data struct {
		Kernel    string `json:"kernel"`
		IterRange string `json:"iter_range"`
	}
	if len(res.Data) > 0 {
		_ = json.Unmarshal(res.Data, &data) // what is not there is not known
	}
	a := Asked{Kernel: data.Kernel}
	if data.IterRange != "" {
		a.Iter, _ = rocprof.ParseIterRange(data.IterRange)
	}
	var plan struct {
		GPU *struct {
			KFD int `json:"kfd"`
		} `json:"gpu"`
	}
	if s.Store.ReadJSON(id, "plan.json", &plan) == nil && plan.GPU != nil {
		a.GPUIndex = &plan.GPU.KFD
	}
	return a
}

// shown lists what an error's evidence says, in words.
func shown(e *envelope.Error) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	v := e.Evidence
	if v.Signature != "" {
		add("log line: %s", v.Signature)
	}
	if v.Source != "" {
		add("at %s", v.Source)
	}
	if v.Workgroups > 0 {
		add("%d workgroups for %d CUs", v.Workgroups, v.TargetCUs)
	}
	for _, i := range v.DispatchInventory[:min(len(v.DispatchInventory), 4)] {
		add("%s: %d waves, %d instruction rows", i.Dir, i.Waves, i.Ins)
	}
	if v.Phase != "" {
		add("in phase %s", v.Phase)
	}
	if v.Signal != "" {
		add("the test ended by %s", v.Signal)
	}
	if v.ExitCode != nil {
		add("the test ended with exit %d", *v.ExitCode)
	}
	if v.Log != "" {
		add("log: %s", v.Log)
	}
	if len(out) == 0 {
		add("%s", e.Message)
	}
	return out
}
