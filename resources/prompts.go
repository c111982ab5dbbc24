package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// prompt is one row of the table of prompts.
type prompt struct {
	name, title, description string
	arguments                []argument
	// text makes the message of the user. What is wrong with the arguments is an *invalid.
	text func(ctx context.Context, s *Source, args map[string]string) (string, error)
}

type argument struct {
	name, description string
	required          bool
	most              int
}

// invalid is an argument that does not fit: JSON-RPC invalid params.
type invalid struct{ message string }

func (e *invalid) Error() string { return e.message }

var runArgument = argument{"run", "run_id of a capture", true, 200}

// prompts is the table. A new prompt is a new row.
var prompts = []prompt{
	{
		"capture_kernel", "Capture a kernel", "Take an instruction-level trace of one FlyDSL kernel, step by step: doctor, list, tile, capture, each answer checked before the next.",
		[]argument{{"kernel", "kernel name as flyprof_list gives it", true, 2000}, {"shape", "problem shape such as 8192,8192 or M=8192,N=8192,bf16", false, 400}, {"gpu", "GPU index inside the visible-devices mask", false, 8}},
		captureText,
	},
	{
		"diagnose_empty_att", "Diagnose an empty trace", "Say why a capture has no trace and what to do next, from what the run left.",
		[]argument{runArgument}, diagnoseText,
	},
	{
		"explain_trace", "Explain a trace", "Say what a captured trace shows: where the stalls are and how far to trust it.",
		[]argument{runArgument}, explainText,
	},
}

// RegisterPrompts adds the prompts to an MCP server.
func (s *Source) RegisterPrompts(srv *server.MCPServer) {
	for _, p := range prompts {
		options := []mcp.PromptOption{mcp.WithPromptDescription(p.description)}
		for _, a := range p.arguments {
			about := []mcp.ArgumentOption{mcp.ArgumentDescription(a.description)}
			if a.required {
				about = append(about, mcp.RequiredArgument())
			}
			options = append(options, mcp.WithArgument(a.name, about...))
		}
		def := mcp.NewPrompt(p.name, options...)
		def.Title = p.title
		srv.AddPrompt(def, func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text, err := p.render(ctx, s, req.Params.Arguments)
			if err != nil {
				return nil, err
			}
			return mcp.NewGetPromptResult(p.description, []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
		})
	}
}

// render checks the arguments and makes the text.
func (p prompt) render(ctx context.Context, s *Source, args map[string]string) (string, error) {
	for name := range args {
		if !slices.ContainsFunc(p.arguments, func(a argument) bool { return a.name == name }) {
			return "", &invalid{fmt.Sprintf("the prompt %s has no argument %.60q; it has %s", p.name, name, p.names())}
		}
	}
	for _, a := range p.arguments {
		v := args[a.name]
		switch {
		case a.required && strings.TrimSpace(v) == "":
			return "", &invalid{fmt.Sprintf("the prompt %s needs %s: %s", p.name, a.name, a.description)}
		case len(v) > a.most || strings.ContainsFunc(v, unicode.IsControl):
			return "", &invalid{fmt.Sprintf("%s is %.60q; allowed: %s, at most %d bytes on one line", a.name, v, a.description, a.most)}
		}
	}
	return p.text(ctx, s, args)
}

func (p prompt) names() string {
	names := make([]string, len(p.arguments))
	for i, a := range p.arguments {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}

// PromptProblem tells the error of a prompts/get whose arguments do not fit, and false where the library should go on. The library would
// answer it as an internal error.
func (s *Source) PromptProblem(ctx context.Context, params json.RawMessage) (message string, bad bool) {
	var q struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if json.Unmarshal(params, &q) != nil {
		return "", false
	}
	for _, p := range prompts {
		if p.name == q.Name {
			if _, err := p.render(ctx, s, q.Arguments); err != nil {
				return err.Error(), true
			}
		}
	}
	return "", false
}

// quote writes a value of the caller's as JSON, so that it can be pasted into a call and can say nothing by itself.
func quote(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// asCall writes a tool call with the arguments that are set, in the given order.
func asCall(tool string, pairs ...any) string {
	var fields []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := pairs[i+1]; v != "" && v != nil {
			fields = append(fields, fmt.Sprintf("%q: %s", pairs[i], quote(v)))
		}
	}
	return fmt.Sprintf("%s {%s}", tool, strings.Join(fields, ", "))
}

func captureText(_ context.Context, s *Source, args map[string]string) (string, error) {
	kernel, shape := args["kernel"], args["shape"]
	var gpu any
	if text := strings.TrimSpace(args["gpu"]); text != "" {
		n := json.Number(text)
		if v, err := n.Int64(); err != nil || v < 0 || v > 255 {
			return "", &invalid{fmt.Sprintf("gpu is %.20q; allowed: a number from 0 to 255", text)}
		}
		gpu = n
	}
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("Take an instruction-level trace (ATT) of the FlyDSL kernel %s with the flyprof tools. Go step by step, and check each answer before the next call.\n", quote(kernel))
	say("1. %s - go on when data.verdict is \"ready\"; else stop and show data.blockers.", asCall("flyprof_doctor", "gpu", gpu))
	say("2. %s - the kernel must be in data.kernels; take its name as it stands there.", asCall("flyprof_list", "filter", kernel))
	if shape != "" {
		say("3. %s - note data.recommended.regime and data.grid: a grid that misses the traced CUs gives an empty trace.", asCall("flyprof_tile", "kernel", kernel, "shape", shape))
	} else {
		say("3. flyprof_tile with a shape, if one is known - note data.recommended.regime and data.grid. No shape was given: the test's own is used.")
	}
	say("4. %s - it answers when the run has ended, or with data.state \"running\" and a run_id; then flyprof_capture_status with that run_id until it has ended.", asCall("flyprof_capture", "kernel", kernel, "shape", shape, "gpu", gpu))
	say("\nThe capture is good when ok is true and every entry of data.checks passes. After an error send error.next_actions[0] as it stands; codes of the class \"finding\" are results to report, not to retry.")
	say("Then say which instructions stall most (the code.json that next_actions name), with source lines, and how far the trace can be trusted (warnings, mapped_pct, match_confidence).")
	return b.String(), nil
}

// answerOf is the envelope of a run, as far as the prompts read it.
type answerOf struct {
	OK   bool `json:"ok"`
	Data struct {
		State  string            `json:"state"`
		Kernel string            `json:"kernel"`
		Checks []json.RawMessage `json:"checks"`
		Tags   map[string]*struct {
			State        string   `json:"state"`
			KeptDir      string   `json:"kept_dir"`
			Waves        int      `json:"waves"`
			MappedPct    *float64 `json:"mapped_pct"`
			TopStallType string   `json:"top_stall_type"`
			Stall        int64    `json:"stall"`
			Latency      int64    `json:"latency"`
		} `json:"tags"`
		Attempts   json.RawMessage `json:"attempts"`
		Provenance struct {
			Simulated bool `json:"simulated"`
		} `json:"provenance"`
	} `json:"data"`
	Warnings []json.RawMessage `json:"warnings"`
	Error    *struct {
		Code        string            `json:"code"`
		Message     string            `json:"message"`
		Help        string            `json:"help"`
		Evidence    json.RawMessage   `json:"evidence"`
		NextActions []json.RawMessage `json:"next_actions"`
	} `json:"error"`
}

// run reads the envelope of a run that a prompt names.
func (s *Source) run(ctx context.Context, id string) (answerOf, error) {
	var a answerOf
	raw, err := s.Envelope(ctx, id)
	if err != nil {
		e := envelope.As(err)
		latest, _ := s.Store.IDs()
		return a, &invalid{fmt.Sprintf("run is %.100q: %s; the latest runs are %s", id, e.Message, orNone(latest[:min(len(latest), 5)]))}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("the envelope of run %s: %w", id, err)
	}
	return a, nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// cut keeps a part of JSON text short.
func cut(raw json.RawMessage) string {
	const most = 1500
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "... (cut; the whole is in the run's envelope)"
}

func diagnoseText(ctx context.Context, s *Source, args map[string]string) (string, error) {
	id := args["run"]
	a, err := s.run(ctx, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	say := func(format string, v ...any) { fmt.Fprintf(&b, format+"\n", v...) }
	say("Say why the capture %s has no usable trace, with the evidence, and what to do next.\n", quote(id))
	switch {
	case a.Error != nil:
		say("It ended with %s: %s", a.Error.Code, quote(a.Error.Message))
		say("Evidence: %s", cut(a.Error.Evidence))
		if len(a.Data.Attempts) > 0 {
			say("What was tried by itself: %s", cut(a.Data.Attempts))
		}
		if len(a.Error.NextActions) > 0 {
			say("The most promising next action, complete as it stands: %s", cut(a.Error.NextActions[0]))
		}
	case !a.OK || a.Data.State != "done":
		say("It is %s: wait with %s before any diagnosis.", quote(a.Data.State), asCall("flyprof_capture_status", "run_id", id))
	default:
		say("It succeeded: there is a trace. Say so, and look at data.checks and warnings for what is wrong with it.")
	}
	say("\n1. %s - causes with evidence; data.directory lists what lies on disk.", asCall("flyprof_triage", "run_id", id))
	say("2. Name the cause, the file or log line that shows it, and one next call. Do not propose what data.attempts already tried.")
	say("3. A code of the class \"finding\" is reported and not retried. A larger shape or another CU answers EMPTY_ATT.")
	say("\nThe whole envelope: flyprof://runs/%s. What bites: flyprof://reference/rocprofv3-quirks.", id)
	return b.String(), nil
}

func explainText(ctx context.Context, s *Source, args map[string]string) (string, error) {
	id := args["run"]
	a, err := s.run(ctx, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	say := func(format string, v ...any) { fmt.Fprintf(&b, format+"\n", v...) }
	say("Explain what the trace of the run %s shows: where the cycles go, which instructions and source lines stall, and how far the figures can be trusted.\n", quote(id))
	if a.Data.Provenance.Simulated {
		say("This run was SIMULATED: every figure is invented. Say so first.")
	}
	kept := false
	for _, tag := range []string{"big", "small"} {
		if t := a.Data.Tags[tag]; t != nil && t.KeptDir != "" {
			kept = true
			mapped := "unknown"
			if t.MappedPct != nil {
				mapped = fmt.Sprintf("%.1f", *t.MappedPct)
			}
			say("Trace %s of %s: %d waves, stall %d of %d cycles latency, most of it in %s, mapped_pct %s.", tag, quote(a.Data.Kernel), t.Waves, t.Stall, t.Latency, quote(t.TopStallType), mapped)
			say("   Read it: %s", asCall("flyprof_read", "uri", "flyprof://files/"+id+"/"+t.KeptDir+"/code.json"))
		}
	}
	if !kept {
		say("There is no trace in it (state %s): use %s instead.", quote(a.Data.State), asCall("flyprof_triage", "run_id", id))
		return b.String(), nil
	}
	for _, w := range a.Warnings[:min(len(a.Warnings), 8)] {
		say("Warning: %s", cut(w))
	}
	say("\n1. Rank the rows of code.json by stall (header: ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle; cycles summed over the traced waves; only one CU of each traced shader engine is in it).")
	say("2. For the top rows say what they wait on: s_waitcnt for memory or LDS, barriers, MFMA dependencies; name the source line.")
	say("3. Check data.checks; a mapped_pct of 90 or less, cut waves or a heuristic match must be said with the result.")
	say("4. Give at most three changes to the kernel, each with the rows that speak for it.")
	return b.String(), nil
}
