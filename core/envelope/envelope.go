// Package envelope is the one form of every answer, and the catalogue of everything that can go wrong.
//
// Core code returns a Reply, or an *Error made by Build; the boundary (tools, command line) renders both as a Wire.
package envelope

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flyprof/flyprof-mcp/core/request"
)

// Reply is what a verb found out, before it is rendered. D is the verb's own data.
type Reply[D any] struct {
	// Bundle is the run id that the answer is about; empty where there is no run.
	Bundle string
	// Command overrides the verb's own name in the envelope (status of an ended run answers as "capture"); empty otherwise.
	Command string
	// Data may be there beside an error: what was found before the failure. Nil leaves it out.
	Data *D
	// Warnings are facts that the reader must know before trusting the data.
	Warnings []Warning
	// Truncated says what was cut and how to read on; nil where nothing was.
	Truncated *Truncated
	// Actions are what to do next after a success; an error carries its own.
	Actions []Action
}

// Warning is a named caveat on an answer that is otherwise good.
type Warning struct {
	Code    string `json:"code" jsonschema_description:"Stable name of the caveat such as WAVES_MISSING."`
	Message string `json:"message"`
}

// Truncated tells what was cut from an answer to keep it small, and how to read on.
type Truncated struct {
	Field      string `json:"field" jsonschema_description:"What was cut such as data.kernels."`
	Shown      int    `json:"shown"`
	Total      int    `json:"total"`
	NextOffset int    `json:"next_offset,omitempty"`
	ReadOn     string `json:"read_on" jsonschema_description:"How to get the rest."`
}

// ActionKind is what a next action asks its reader to do.
type ActionKind string

// The kinds of next action.
const (
	CallTool      ActionKind = "call_tool"
	ReadResource  ActionKind = "read_resource"
	FixConfig     ActionKind = "fix_config"
	ReportFinding ActionKind = "report_finding"
	AskUser       ActionKind = "ask_user"
	Stop          ActionKind = "stop"
)

// Confidence says how likely an action is to help: "high", "medium" or "low"; empty where the question makes no sense.
type Confidence string

// The levels of Confidence.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Action is one thing to do next. Args is set for CallTool only, URI for ReadResource only.
type Action struct {
	Kind       ActionKind
	Args       request.Args
	URI        string
	Reason     string
	Confidence Confidence
}

type storedAction struct {
	Kind       ActionKind      `json:"action"`
	Verb       request.Verb    `json:"verb,omitempty"`
	Args       json.RawMessage `json:"arguments,omitempty"`
	URI        string          `json:"uri,omitempty"`
	Reason     string          `json:"reason"`
	Confidence Confidence      `json:"confidence,omitempty"`
}

// MarshalJSON writes the stored form: the verb beside its arguments.
func (a Action) MarshalJSON() ([]byte, error) {
	s := storedAction{Kind: a.Kind, URI: a.URI, Reason: a.Reason, Confidence: a.Confidence}
	if a.Args != nil {
		raw, err := json.Marshal(a.Args)
		if err != nil {
			return nil, err
		}
		s.Verb, s.Args = a.Args.Verb(), raw
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads the stored form.
func (a *Action) UnmarshalJSON(raw []byte) error {
	var s storedAction
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*a = Action{Kind: s.Kind, URI: s.URI, Reason: s.Reason, Confidence: s.Confidence}
	if s.Verb == "" {
		return nil
	}
	args, err := request.Decode(s.Verb, s.Args)
	a.Args = args
	return err
}

// Retry is what is left of a failure's retry budget.
type Retry struct {
	Allowed bool `json:"allowed"`
	Used    int  `json:"used"`
	Budget  int  `json:"budget"`
}

// Error is a failure with a catalogue code. It is made by Build, once, where the cause is known, and wrapped with %w on
// the way up.
type Error struct {
	Code       Code        `json:"code"`
	Message    string      `json:"message"`
	Help       string      `json:"help"`
	Evidence   Evidence    `json:"evidence"`
	Available  []Available `json:"available,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	LogTail    []string    `json:"log_tail,omitempty"`
	Retry      Retry       `json:"retry"`
	Actions    []Action    `json:"next_actions"`
	cause      error
}

// Error gives code and message.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap gives the underlying cause, if one was known.
func (e *Error) Unwrap() error { return e.cause }

// WithCause keeps the underlying error for logs; it is not shown to clients.
func (e *Error) WithCause(cause error) *Error {
	e.cause = cause
	return e
}

// As finds the catalogue error in err's chain. Any other error becomes INTERNAL with its text.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Build(Internal, Facts{Message: err.Error()}).WithCause(err)
}

// CodeOf gives the catalogue code in err's chain, or "" where there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Available is one choice that exists, such as a launch that can be traced.
type Available struct {
	IterRange  string `json:"iter_range,omitempty" jsonschema_description:"Value for iter_range."`
	Group      string `json:"group,omitempty" jsonschema_description:"Value for group."`
	Kernel     string `json:"kernel,omitempty"`
	KernelID   int64  `json:"kernel_id,omitempty"`
	Workgroups int64  `json:"workgroups,omitempty"`
	Launches   int    `json:"launches,omitempty"`
	Value      string `json:"value,omitempty" jsonschema_description:"Any other allowed value."`
}

// Candidate is a kernel that may have been meant, with what speaks for and against it.
type Candidate struct {
	Kernel  string  `json:"kernel"`
	Calls   int     `json:"calls,omitempty"`
	AvgNS   float64 `json:"avg_ns,omitempty"`
	TotalNS int64   `json:"total_ns,omitempty"`
	Why     string  `json:"why,omitempty" jsonschema_description:"Why it was or was not taken."`
}

// Inventory is one dispatch directory that a trace left, as capture.json of the public flyprof names it.
type Inventory struct {
	Dir    string `json:"dir"`
	Waves  int    `json:"waves"`
	Ins    int    `json:"ins"`
	Mapped int    `json:"mapped"`
}

// Evidence is what was seen. Every field is optional; a code fills those that prove it.
type Evidence struct {
	Field      string   `json:"field,omitempty" jsonschema_description:"Argument or setting at fault."`
	Value      string   `json:"value,omitempty" jsonschema_description:"The value that was given."`
	Allowed    string   `json:"allowed,omitempty" jsonschema_description:"What is allowed in words."`
	ValidNames []string `json:"valid_names,omitempty"`
	Path       string   `json:"path,omitempty"`
	Setting    string   `json:"setting,omitempty" jsonschema_description:"Flag and environment variable that decide."`
	LookedAt   []string `json:"looked_at,omitempty" jsonschema_description:"Places and commands that were tried."`
	Found      string   `json:"found,omitempty"`
	Needed     string   `json:"needed,omitempty"`

	Workgroups        int64            `json:"workgroups,omitempty"`
	TargetCUs         int              `json:"target_cus,omitempty"`
	DispatchInventory []Inventory      `json:"dispatch_inventory,omitempty"`
	BusyCUs           map[string][]int `json:"busy_cus,omitempty" jsonschema_description:"Shader engine to CUs that ran waves of the kernel."`
	Basis             string           `json:"basis,omitempty"`
	Diagnosis         string           `json:"diagnosis,omitempty" jsonschema_description:"What sort of empty a trace is such as elsewhere or idle_engines or never_reached."`

	Signature string   `json:"signature,omitempty" jsonschema_description:"Log line that named the failure."`
	Log       string   `json:"log,omitempty" jsonschema_description:"URI of the whole log."`
	Phase     string   `json:"phase,omitempty"`
	ExitCode  *int     `json:"exit_code,omitempty"`
	Signal    string   `json:"signal,omitempty"`
	ElapsedS  float64  `json:"elapsed_s,omitempty"`
	LimitS    float64  `json:"limit_s,omitempty"`
	Source    string   `json:"source,omitempty" jsonschema_description:"file:line that the failure names."`
	Traceback []string `json:"traceback,omitempty"`
	Holder    string   `json:"holder,omitempty" jsonschema_description:"Who holds the lock or the GPU."`
	FreeBytes int64    `json:"free_bytes,omitempty"`
	RunState  string   `json:"run_state,omitempty"`
}
