// Package tools is the MCP tools: one file for each, with its types, its description and a thin handler.
//
// This file is the boundary that all of them share. It turns a function over plain types into a tool: the schemas come
// from the types, arguments are coerced and validated, answers become envelopes of bounded size.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// The most characters of an envelope. Clients cut or file away what is longer.
const (
	MaxSuccessChars = 20_000
	MaxErrorChars   = 10_000
)

// Toolset groups tools that are switched on and off together.
type Toolset string

// The toolsets.
const (
	ToolsetCapture Toolset = "capture"
	ToolsetAnalyze Toolset = "analyze"
)

// Def is what is said about a tool. The hints are those of MCP's tool annotations.
type Def struct {
	// Name is the tool's name; empty for the usual name of the verb (see ToolName).
	Name string
	// Title is for people, Description for models: what it does, when to call it, what comes next.
	Title, Description string
	Toolset            Toolset
	// ReadOnly: changes nothing and starts no process; only such tools are served under --read-only.
	ReadOnly bool
	// Destructive: may end or remove something that was there before.
	Destructive bool
	// Idempotent: the same call again changes nothing more.
	Idempotent bool
	// OpenWorld: reaches beyond this host and the runs directory.
	OpenWorld bool
	// MaxChars replaces MaxSuccessChars for a tool whose answer is a page of text that a cut would break; 0 for the usual.
	MaxChars int
	// generated: the committed schemas are another tool's.
	generated bool
}

// Tool is one tool as a value: all that registration, documentation and tests need.
type Tool struct {
	Def
	Verb         request.Verb
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	run          func(ctx context.Context, args json.RawMessage, host Host) Answer
	// generate makes the schemas from the types. The committed ones are used when there are some: making them takes longer than
	// all else that happens before the first reply.
	generate func() (input, output json.RawMessage, err error)
}

// Host is what a tool is called by.
type Host struct {
	// Renderer turns next actions into what the caller can execute.
	Renderer envelope.Renderer
	// Log gets panics and internal errors; nil for slog's default.
	Log *slog.Logger
}

// Answer is a rendered envelope.
type Answer struct {
	// JSON is the envelope; it fits the tool's output schema.
	JSON json.RawMessage
	// Code is the catalogue code of a failure, empty for a success; Exit the command line's exit code.
	Code envelope.Code
	Exit int
}

// Failed says whether the answer is an error.
func (a Answer) Failed() bool { return a.Code != "" }

// Call runs the tool on raw JSON arguments. It does not fail and does not panic: whatever goes wrong is an envelope.
func (t Tool) Call(ctx context.Context, args json.RawMessage, host Host) Answer {
	if host.Log == nil {
		host.Log = slog.Default()
	}
	return t.run(ctx, args, host)
}

// New makes a tool of a function. In names the verb and gives the input schema, D is the data of the answer.
// It panics where a type has no portable schema: a mistake in the program, found by any test that makes the tool.
func New[In request.Args, D any](def Def, fn func(ctx context.Context, in In) (envelope.Reply[D], error)) Tool {
	var none In
	verb := none.Verb()
	if def.Name == "" {
		def.Name = ToolName(verb)
	}
	if def.MaxChars == 0 {
		def.MaxChars = MaxSuccessChars
	}
	t := Tool{Def: def, Verb: verb, generate: func() (input, output json.RawMessage, err error) {
		if input, err = schemas.Input[In](); err != nil {
			return nil, nil, fmt.Errorf("%s: input %w", def.Name, err)
		}
		if output, err = schemas.Output[envelope.Wire[D]](); err != nil {
			return nil, nil, fmt.Errorf("%s: output %w", def.Name, err)
		}
		return input, output, nil
	}}
	t.InputSchema, t.OutputSchema = schemas.Committed(def.Name+".input.json"), schemas.Committed(def.Name+".output.json")
	if t.InputSchema == nil || t.OutputSchema == nil || def.generated {
		var err error
		if t.InputSchema, t.OutputSchema, err = t.generate(); err != nil {
			panic(err)
		}
	}
	t.run = boundary[In, D]{def: def, verb: verb, args: schemas.NewValidator(t.InputSchema), shape: schemas.NewValidator(t.OutputSchema), fn: fn}.run
	return t
}

// ToolName gives the name under which a verb is served: flyprof_<verb>, and for verbs about a run the thing they act on too.
func ToolName(verb request.Verb) string {
	switch verb {
	case request.VerbStatus, request.VerbCancel:
		return "flyprof_capture_" + string(verb)
	}
	return "flyprof_" + string(verb)
}

// boundary is what stands between a caller and one tool's function.
type boundary[In request.Args, D any] struct {
	def   Def
	verb  request.Verb
	args  *schemas.Validator
	shape *schemas.Validator
	fn    func(context.Context, In) (envelope.Reply[D], error)
}

func (b boundary[In, D]) run(ctx context.Context, args json.RawMessage, host Host) Answer {
	reply, err := b.call(ctx, args, host.Log)
	answer, renderErr := b.render(reply, err, host.Renderer)
	if renderErr != nil {
		host.Log.ErrorContext(ctx, "the answer cannot be rendered", "tool", b.def.Name, "err", renderErr)
		answer, renderErr = b.render(envelope.Reply[D]{}, fmt.Errorf("the answer cannot be rendered: %w", renderErr), host.Renderer)
	}
	if renderErr != nil { // an envelope of texts alone always renders
		panic(renderErr)
	}
	return answer
}

// call validates, decodes and runs; a panic becomes an INTERNAL error.
func (b boundary[In, D]) call(ctx context.Context, args json.RawMessage, log *slog.Logger) (reply envelope.Reply[D], err error) {
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "panic in a tool", "tool", b.def.Name, "panic", p, "stack", string(debug.Stack()))
			reply = envelope.Reply[D]{}
			err = envelope.Build(envelope.Internal, envelope.Facts{Message: fmt.Sprintf("%s panicked: %v", b.def.Name, p)})
		}
	}()
	in, err := b.decode(args)
	if err != nil {
		return reply, err
	}
	reply, err = b.fn(ctx, in)
	if err == nil {
		return reply, nil
	}
	if code := envelope.CodeOf(err); errors.Is(err, context.Canceled) && ctx.Err() != nil && (code == "" || code == envelope.Internal) {
		err = envelope.Build(envelope.Cancelled, envelope.Facts{Message: "The caller cancelled this call. A run that it waited for goes on."})
	}
	if e := envelope.As(err); e.Code == envelope.Internal {
		log.ErrorContext(ctx, "internal error in a tool", "tool", b.def.Name, "err", err)
	}
	return reply, err
}

func (b boundary[In, D]) decode(args json.RawMessage) (In, error) {
	var in In
	checked, err := b.args.Check(args)
	if err != nil {
		return in, b.withRepair(args, err)
	}
	err = json.Unmarshal(checked, &in)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return in, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("The argument %q is %s, which is out of range.", wrong.Field, wrong.Value),
			Evidence: envelope.Evidence{Field: wrong.Field, Value: wrong.Value, Allowed: "a value that fits " + wrong.Type.String()},
		})
	}
	return in, err
}

// withRepair puts the corrected call into the error where a misspelt name is all that is wrong.
func (b boundary[In, D]) withRepair(args json.RawMessage, err error) error {
	var e *envelope.Error
	if !errors.As(err, &e) || e.Code != envelope.BadArgs {
		return err
	}
	name := near.Nearest(e.Evidence.Field, e.Evidence.ValidNames)
	tree, parseErr := jsontree.Parse(args, jsontree.Limits{Bytes: schemas.MaxArgs, Depth: 8})
	if name == "" || parseErr != nil || tree.Get(name) != nil || tree.Get(e.Evidence.Field) == nil {
		return err
	}
	for i, m := range tree.Members {
		if m.Name == e.Evidence.Field {
			tree.Members[i].Name = name
		}
	}
	checked, checkErr := b.args.Check(tree.Bytes())
	if checkErr != nil {
		return err
	}
	fixed, decodeErr := request.Decode(b.verb, checked)
	if decodeErr != nil {
		return err
	}
	action := envelope.Action{Kind: envelope.CallTool, Args: fixed, Confidence: envelope.Medium,
		Reason: fmt.Sprintf("the same call with %s written %s", e.Evidence.Field, name)}
	e.Actions = append([]envelope.Action{action}, e.Actions...)
	return err
}

func (b boundary[In, D]) render(reply envelope.Reply[D], err error, r envelope.Renderer) (Answer, error) {
	wire := envelope.NewWire(string(b.verb), reply, err, r)
	raw, marshalErr := jsontree.Marshal(wire)
	if marshalErr != nil {
		return Answer{}, marshalErr
	}
	answer, limit := Answer{}, b.def.MaxChars
	if wire.Error != nil {
		answer.Code, answer.Exit, limit = wire.Error.Code, wire.Error.ExitCode, MaxErrorChars
	}
	if raw, marshalErr = b.shape.FillNulls(raw); marshalErr != nil {
		return Answer{}, marshalErr
	}
	answer.JSON, marshalErr = fit(raw, limit)
	return answer, marshalErr
}

// Inventory is a list of tools.
type Inventory []Tool

// LeftOut is a tool that is not served, and why.
type LeftOut struct{ Tool, Why string }

// Served is what one server offers.
type Served struct {
	Tools   Inventory
	LeftOut map[request.Verb]LeftOut
	// Observe is told of each call over MCP when it has ended; the code is empty for a success. Nil for none.
	Observe func(tool string, code envelope.Code, took time.Duration)
}

// Selection says which tools are served. Each field takes tools away.
type Selection struct {
	// Toolsets are the sets that are served; none named: all.
	Toolsets []string
	// Only are the names of the tools that are served, none named: all; Except are names of tools that are not.
	Only, Except []string
	// ReadOnly leaves those that change nothing and start nothing.
	ReadOnly bool
}

// Filter picks the tools. A toolset or tool that is not there is BAD_ARGS with those that are.
func (inv Inventory) Filter(sel Selection) (Served, error) {
	var names []string
	for _, t := range inv {
		names = append(names, t.Name)
	}
	sets, err := known("toolset", "--toolsets (FLYPROF_TOOLSETS)", sel.Toolsets, []string{string(ToolsetCapture), string(ToolsetAnalyze)})
	if err != nil {
		return Served{}, err
	}
	only, err := known("tool", "--tools (FLYPROF_TOOLS)", sel.Only, names)
	if err != nil {
		return Served{}, err
	}
	except, err := known("tool", "--exclude-tools (FLYPROF_EXCLUDE_TOOLS)", sel.Except, names)
	if err != nil {
		return Served{}, err
	}
	served := Served{LeftOut: map[request.Verb]LeftOut{}}
	for _, t := range inv {
		why := ""
		switch {
		case len(sets) > 0 && !slices.Contains(sets, string(t.Toolset)):
			why = fmt.Sprintf("the toolset %s is off (--toolsets)", t.Toolset)
		case len(only) > 0 && !slices.Contains(only, t.Name):
			why = "it is none of the tools that are served (--tools)"
		case slices.Contains(except, t.Name):
			why = "it is left out (--exclude-tools)"
		case sel.ReadOnly && !t.ReadOnly:
			why = "the server is read-only (--read-only)"
		}
		if why == "" {
			served.Tools = append(served.Tools, t)
			continue
		}
		served.LeftOut[t.Verb] = LeftOut{t.Name, why}
	}
	return served, nil
}

// known gives the names as they are written here, and BAD_ARGS for one that is not there.
func known(what, setting string, given, valid []string) ([]string, error) {
	flag, _, _ := strings.Cut(setting, " ")
	var out []string
	for _, name := range given {
		plain := strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(valid, plain) {
			message := fmt.Sprintf("there is no %s %.100q", what, name)
			if meant := near.Nearest(name, valid); meant != "" {
				message += "; did you mean " + meant + "?"
			}
			return nil, envelope.Build(envelope.BadArgs, envelope.Facts{
				Message:  message,
				Evidence: envelope.Evidence{Field: flag, Value: name, Allowed: strings.Join(valid, ", "), ValidNames: valid, Setting: setting},
			})
		}
		out = append(out, plain)
	}
	return out, nil
}

// ByVerb finds the tool of a verb.
func (inv Inventory) ByVerb(verb request.Verb) (Tool, bool) {
	for _, t := range inv {
		if t.Verb == verb {
			return t, true
		}
	}
	return Tool{}, false
}

// SchemaFiles gives the schema files of the tools as the types make them: name to content.
func (inv Inventory) SchemaFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, t := range inv {
		input, output, err := t.generate()
		if err != nil {
			return nil, err
		}
		for kind, schema := range map[string]json.RawMessage{"input": input, "output": output} {
			text, err := schemas.Pretty(schema)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			files[t.Name+"."+kind+".json"] = text
		}
	}
	return files, nil
}

// Register adds the tools to an MCP server. Answers go out as structuredContent and as the same JSON in text; a failure
// sets isError.
func (s Served) Register(srv *server.MCPServer, log *slog.Logger) {
	host := Host{Renderer: s.Renderer(), Log: log}
	for _, t := range s.Tools {
		srv.AddTool(t.MCP(), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			args, err := rawArguments(req)
			if err != nil {
				return nil, err
			}
			began := time.Now()
			answer := t.Call(ctx, args, host)
			if s.Observe != nil {
				s.Observe(t.Name, answer.Code, time.Since(began))
			}
			return &mcp.CallToolResult{
				Content:           []mcp.Content{mcp.NewTextContent(string(answer.JSON))},
				StructuredContent: answer.JSON,
				IsError:           answer.Failed(),
			}, nil
		})
	}
}

// MCP gives the tool's definition. Every hint is set: a client takes an absent one for its worst case.
func (t Tool) MCP() mcp.Tool {
	def := mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema)
	def.RawOutputSchema = t.OutputSchema
	def.Title = t.Title
	def.Annotations = mcp.ToolAnnotation{
		Title:           t.Title,
		ReadOnlyHint:    &t.ReadOnly,
		DestructiveHint: &t.Destructive,
		IdempotentHint:  &t.Idempotent,
		OpenWorldHint:   &t.OpenWorld,
	}
	return def
}

func rawArguments(req mcp.CallToolRequest) (json.RawMessage, error) {
	switch raw := req.GetRawArguments().(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return raw, nil
	default: // a call from inside the process
		return json.Marshal(raw)
	}
}
