package envelope

import (
	"encoding/json"

	"github.com/invopop/jsonschema"
)

// Wire is the envelope as clients read it: one object for success and failure, so that one output schema fits both.
// D is the verb's data.
type Wire[D any] struct {
	OK          bool         `json:"ok"`
	Command     string       `json:"command" jsonschema_description:"Verb that answers."`
	Bundle      string       `json:"bundle,omitempty" jsonschema_description:"run_id that the answer is about."`
	Data        *D           `json:"data,omitempty"`
	Error       *WireError   `json:"error,omitempty"`
	Warnings    []Warning    `json:"warnings"`
	Truncated   *Truncated   `json:"truncated,omitempty"`
	NextActions []WireAction `json:"next_actions,omitempty" jsonschema_description:"What to do next; after a failure see error.next_actions."`
}

// WireError is a failure as clients read it.
type WireError struct {
	Code        Code         `json:"code"`
	Class       Class        `json:"class" jsonschema:"enum=empty,enum=finding,enum=unavailable,enum=transient,enum=config,enum=io,enum=internal,enum=cancelled"`
	ExitCode    int          `json:"exitCode" jsonschema_description:"sysexits code of the command line."`
	Message     string       `json:"message"`
	Help        string       `json:"help"`
	Evidence    Evidence     `json:"evidence"`
	Available   []Available  `json:"available,omitempty"`
	Candidates  []Candidate  `json:"candidates,omitempty"`
	LogTail     []string     `json:"log_tail,omitempty"`
	Retry       Retry        `json:"retry"`
	NextActions []WireAction `json:"next_actions" jsonschema:"minItems=1"`
}

// WireAction is a next action as clients read it. Arguments validate against the tool's input schema.
type WireAction struct {
	Action     ActionKind `json:"action" jsonschema:"enum=call_tool,enum=read_resource,enum=fix_config,enum=report_finding,enum=ask_user,enum=stop"`
	Tool       string     `json:"tool,omitempty"`
	Arguments  Object     `json:"arguments,omitempty" jsonschema_description:"Complete arguments for the tool; send as they are."`
	Argv       []string   `json:"argv,omitempty" jsonschema_description:"The same call on the command line."`
	URI        string     `json:"uri,omitempty"`
	Reason     string     `json:"reason"`
	Confidence Confidence `json:"confidence,omitempty" jsonschema:"enum=high,enum=medium,enum=low"`
}

// Object is a JSON object kept as its bytes.
type Object json.RawMessage

// MarshalJSON writes the bytes as they are.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON keeps the bytes.
func (o *Object) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(raw) }

// JSONSchema describes it as an object of any members: the tool's own input schema says more.
func (Object) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

// Renderer turns core's actions into what one kind of client can execute.
type Renderer interface {
	// Render gives the client's form of an action, and false where the client cannot do it (a tool that is not served).
	Render(Action) (WireAction, bool)
}

// NewWire renders a reply and its error (nil for success) for one kind of client.
// An error whose every action was left out still says stop, so that next_actions is never empty.
func NewWire[D any](command string, reply Reply[D], err error, r Renderer) Wire[D] {
	if reply.Command != "" {
		command = reply.Command
	}
	w := Wire[D]{OK: err == nil, Command: command, Bundle: reply.Bundle, Data: reply.Data, Warnings: reply.Warnings, Truncated: reply.Truncated}
	if w.Warnings == nil {
		w.Warnings = []Warning{}
	}
	if err == nil {
		w.NextActions = renderAll(reply.Actions, r)
		return w
	}
	e := As(err)
	row, _ := Lookup(e.Code)
	w.Error = &WireError{
		Code: e.Code, Class: row.Class, ExitCode: row.Exit, Message: e.Message, Help: e.Help, Evidence: e.Evidence,
		Available: e.Available, Candidates: e.Candidates, LogTail: e.LogTail, Retry: e.Retry, NextActions: renderAll(e.Actions, r),
	}
	if len(w.Error.NextActions) == 0 {
		w.Error.NextActions = []WireAction{{Action: Stop, Reason: "nothing that this server serves can help: " + e.Help}}
	}
	return w
}

func renderAll(actions []Action, r Renderer) []WireAction {
	var out []WireAction
	for _, a := range actions {
		if w, ok := r.Render(a); ok {
			out = append(out, w)
		}
	}
	return out
}

// JSONSchema leaves the members of evidence open: each code has its own, skills/references/error-codes.md names them, and the schema of
// every tool would carry all of them.
func (Evidence) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: "What was seen; members depend on the code."}
}
