package prompts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/resources"
	"github.com/flyprof/flyprof-mcp/tools"
)

// runView is what is known of a run, for diagnose_empty_att.md and explain_trace.md.
type runView struct {
	ID, Kernel, Shape string
	State             runs.State
	Ended             bool
	envelope.Wire[capture.Data]
	// D is the data, never nil.
	D capture.Data
	// Empty: the trace is empty, which is one failure of several.
	Empty bool
	// Facts are what was found, in sentences; Evidence the error's, as JSON.
	Facts    []string
	Evidence string
	// Actions are the envelope's next actions in words.
	Actions []string
	// Log is the log that matters, Logs all of them.
	Log, Logs []fileView

	// The trace that is explained.
	Tag      string
	Trace    *capture.Tag
	Files    []fileView
	Analysis []string

	Status    request.Status
	Triage    request.Triage
	Manifest  request.Read
	Quirks    request.Read
	Tile      *request.Tile
	Recapture *request.Capture
}

// fileView is a file to read.
type fileView struct {
	Read request.Read
	Size int64
	What string
}

const quirksURI = "flyprof://reference/rocprofv3-quirks"

// look reads all that is known of a run. The answer to begin with has its envelope.
func (p *Prompts) look(ctx context.Context, value string) (runView, answer, error) {
	r, err := p.run(value)
	if err != nil {
		return runView{}, answer{}, err
	}
	uri := "flyprof://runs/" + r.ID
	raw, err := p.Source.Envelope(ctx, r.ID)
	if err != nil {
		return runView{}, answer{}, err
	}
	v := runView{
		ID: r.ID, Kernel: r.Request.Kernel, Shape: r.Request.Shape,
		Status: request.Status{RunID: r.ID}, Triage: request.Triage{RunID: r.ID}, Manifest: request.Read{URI: uri + "/files"}, Quirks: request.Read{URI: quirksURI},
	}
	if err := json.Unmarshal(raw, &v.Wire); err != nil {
		return runView{}, answer{}, fmt.Errorf("the envelope of run %s: %w", r.ID, err)
	}
	if v.Data != nil {
		v.D = *v.Data
	}
	// The envelope is newer than what was read before it.
	if v.State = v.D.State; !v.State.Known() {
		v.State = r.State
	}
	if !v.State.Known() {
		return runView{}, answer{}, p.Source.Store.Damaged(r.ID, "run.json", "its state is none")
	}
	v.Ended = v.State.Ended()
	actions := v.NextActions
	if v.Error != nil {
		if _, ok := envelope.Lookup(v.Error.Code); !ok { // written by another version
			v.Error.Code = envelope.Internal
		}
		v.Empty = v.Error.Code == envelope.EmptyATT
		v.Evidence = compact(v.Error.Evidence, 1500)
		actions = v.Error.NextActions
	}
	for _, a := range actions {
		v.Actions = append(v.Actions, p.action(a))
	}
	v.Facts = append(v.Facts, facts(v)...)
	for _, f := range p.Source.FilesOf(r.ID) {
		if name, ok := strings.CutPrefix(f.Path, "logs/"); ok && !strings.Contains(name, "/") && f.Size > 0 && len(v.Logs) < 12 {
			v.Logs = append(v.Logs, fileView{Read: request.Read{URI: "flyprof://logs/" + r.ID + "/" + name + "?line=-80"}, Size: f.Size})
		}
	}
	return v, answer{uri: uri, envelope: string(raw)}, nil
}

// facts says what a run found, and what of it is not as it should be.
func facts(v runView) []string {
	d := v.D
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if d.Kernel != "" {
		text := fmt.Sprintf("Traced symbol: %s", quote(d.Kernel))
		if d.MatchConfidence != "" {
			text += fmt.Sprintf(", match_confidence %s", quote(d.MatchConfidence))
		}
		if d.IterRange != "" {
			text += fmt.Sprintf(", launch %s of %d (group %s)", quote(d.IterRange), d.Calls, quote(d.Group))
		}
		say("%s.", text)
	}
	for _, tag := range []struct {
		name string
		t    *capture.Tag
	}{{"big", d.Tags.Big}, {"small", d.Tags.Small}} {
		if tag.t == nil {
			continue
		}
		text := fmt.Sprintf("Tag %s: %s", tag.name, quote(tag.t.State))
		if tag.t.Shape != "" {
			text += ", shape " + quote(tag.t.Shape)
		}
		if g := tag.t.Grid; g != nil {
			text += fmt.Sprintf(", %d workgroups (%s)", g.Workgroups, quote(g.Source))
		}
		if e := tag.t.Error; e != nil {
			text += fmt.Sprintf(", %s: %s", quote(string(e.Code)), quote(e.Message))
		}
		if tag.t.Why != "" {
			text += ", " + quote(tag.t.Why)
		}
		say("%s.", text)
	}
	for _, a := range d.Attempts {
		say("Attempt %d, tag %s: launch %s on CU %d of the shader engines %s: %s, %s.", a.N, quote(a.Tag), quote(a.IterRange), a.ATTTargetCU, quote(a.ATTShaderEngineMask), quote(a.Result), quote(a.Why))
	}
	for _, c := range d.Checks {
		if !c.Pass {
			say("The check %s fails: it is %s and should be %s.", quote(c.ID), quote(c.Value), quote(c.Want))
		}
	}
	for _, w := range v.Warnings {
		say("Warning %s: %s", quote(w.Code), quote(w.Message))
	}
	if pr := d.Provenance; pr != nil {
		if pr.Arch != "" {
			say("GPU: %s %s, rocprofv3 %s.", quote(pr.Product), quote(pr.Arch), quote(pr.Rocprofv3))
		}
		if pr.Simulated {
			say("The GPU is SIMULATED: every figure is invented and says nothing about a real one.")
		}
	}
	return out[:min(len(out), 40)]
}

func (p *Prompts) diagnose(ctx context.Context, args map[string]string) (answer, error) {
	v, a, err := p.look(ctx, args["run"])
	if err != nil {
		return answer{}, err
	}
	if v.Error != nil && v.Error.Evidence.Log != "" {
		v.Log = []fileView{{Read: request.Read{URI: v.Error.Evidence.Log}}}
	}
	a.description = fmt.Sprintf("Why run %s is %s", quote(v.ID), v.State)
	a.text, err = p.write("diagnose_empty_att.md", v)
	return a, err
}

func (p *Prompts) explain(ctx context.Context, args map[string]string) (answer, error) {
	tag := args["tag"]
	if tag != "" && tag != "big" && tag != "small" {
		return answer{}, refuse("tag", tag, []string{"big", "small"}, "tag is %s, and may be big or small", quote(tag))
	}
	v, a, err := p.look(ctx, args["run"])
	if err != nil {
		return answer{}, err
	}
	v.Tag, v.Trace = tag, v.D.Tags.Big
	switch {
	case tag == "small", tag == "" && v.Trace == nil && v.D.Tags.Small != nil:
		v.Tag, v.Trace = "small", v.D.Tags.Small
	case tag == "":
		v.Tag = "big"
	}
	if v.Trace != nil && v.Trace.KeptDir == "" {
		v.Trace = nil
	}
	if tag != "" && v.Trace == nil && v.Ended && v.OK {
		return answer{}, refuse("tag", tag, p.tags(v.ID), "run %s has no trace of the tag %s; it was captured with %s", quote(v.ID), quote(tag), strings.Join(p.tags(v.ID), " and "))
	}
	if v.Trace != nil {
		p.traceFiles(&v)
		if name := v.D.RecipeKernel; name != "" && len(name) <= maxTileKernel && v.Trace.Shape != "" {
			v.Tile = &request.Tile{Kernel: name, Shape: v.Trace.Shape}
		}
	}
	v.Analysis = p.analysis(v.ID, v.Tag, slices.ContainsFunc(v.D.PMC, func(pass capture.PMCPass) bool { return len(pass.Values) > 0 }))
	a.description = fmt.Sprintf("The trace of run %s", quote(v.ID))
	a.text, err = p.write("explain_trace.md", v)
	return a, err
}

// known says what the files of a dispatch directory hold. The waves are thousands of files, and code.json is their sum.
var known = []struct{ name, what string }{
	{"code.json", "every instruction: `header` names the columns of the rows in `code` - the instruction, its source `file:line` (innermost first where inlined), how often it was executed (Hit), and cycles summed over the traced waves: Latency, Stall (a part of Latency), Idle (between instructions, no part of it)"},
	{"occupancy.json", "which CU, SIMD and slot ran a wave of which kernel, from when to when, for each traced shader engine: rows of time, cu, simd, slot, start, kernel"},
	{"snapshots.json", "which file beside it is the saved copy of which source path"},
	{"filenames.json", "the waves: a file for each, with begin and end in cycles"},
}

// traceFiles names the files of the trace that are there, each with its size.
func (p *Prompts) traceFiles(v *runView) {
	files := p.Source.FilesOf(v.ID)
	add := func(path, query, what string) {
		i := slices.IndexFunc(files, func(f runs.File) bool { return f.Path == path })
		if i >= 0 {
			v.Files = append(v.Files, fileView{request.Read{URI: resources.FileURI(v.ID, path) + query}, files[i].Size, what})
		}
	}
	dir := v.Trace.KeptDir
	parent, base, _ := strings.Cut(dir, "/ui_output_")
	add(parent+"/stats_ui_output_"+base+".csv", "?line=1&lines=200", "the same table as CSV, one line for each instruction; it can be read by line")
	for _, k := range known {
		add(dir+"/"+k.name, "", k.what)
	}
	for _, pass := range v.D.PMC {
		for _, csv := range pass.CSV {
			if len(v.Files) < 16 {
				add(csv, "", "counters "+quote(strings.Join(pass.Counters, " ")))
			}
		}
	}
}

// analysis writes the calls of the tools that explain a run, where some are served; that of the counters only where there are any.
func (p *Prompts) analysis(id, tag string, counted bool) []string {
	var out []string
	for _, t := range p.Served.Tools {
		var schema struct{ Properties map[string]any }
		if t.Verb == request.VerbCounters && !counted {
			continue
		}
		if t.Toolset != tools.ToolsetAnalyze || json.Unmarshal(t.InputSchema, &schema) != nil || schema.Properties["run_id"] == nil {
			continue
		}
		args := map[string]string{"run_id": id}
		if schema.Properties["tag"] != nil {
			args["tag"] = tag
		}
		first, _, _ := strings.Cut(t.Description, "\n")
		out = append(out, fmt.Sprintf("`%s %s`: %s", t.Name, jsonText(args), first))
	}
	return out
}
