// Package runs is the store of runs on disk: one directory for each, written atomically, owned by one process at a time,
// recovered when its owner is dead, and readable only inside itself.
//
//	<runs-dir>/<run id>/run.json      what the run is and how far it got (this package)
//	                   /result.json   the answer that it ended with
//	                   /capture.json  the bundle's summary, with the field names of the public flyprof
//	                   /att/ pmc/ jobs/ logs/
//	<runs-dir>/.active/<run id>       marks runs that have not ended
//	<runs-dir>/.keys/<hash>           the latest run of a request
package runs

import (
	"encoding/json"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
)

// State is where a run stands.
type State string

// The states of a run. The last four are terminal.
const (
	Queued      State = "queued"
	Running     State = "running"
	Done        State = "done"
	Failed      State = "failed"
	Cancelled   State = "cancelled"
	Interrupted State = "interrupted"
)

// Ended says that the run will never change again.
func (s State) Ended() bool {
	return s == Done || s == Failed || s == Cancelled || s == Interrupted
}

// Known says that it is one of the states.
func (s State) Known() bool { return s == Queued || s == Running || s.Ended() }

// OnServerExit is what a run does when the server that started it goes away.
type OnServerExit string

// The two policies.
const (
	CancelOnExit OnServerExit = "cancel"
	FinishOnExit OnServerExit = "finish"
)

// Run is run.json.
type Run struct {
	Schema int    `json:"schema"`
	ID     string `json:"run_id"`
	State  State  `json:"state"`
	// Phase is what is being done: "probe", "discover", "att:big", ...; empty before the start.
	Phase   string    `json:"phase,omitempty"`
	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// PhaseStarted is when Phase began.
	PhaseStarted time.Time `json:"phase_started,omitzero"`

	// Host and BootID say on which machine, in which boot, the processes below were started.
	Host   string `json:"host"`
	BootID string `json:"boot_id,omitempty"`
	// Server is the process that created the run, Supervisor the one that drives it.
	Server     launch.ID `json:"server"`
	Supervisor launch.ID `json:"supervisor,omitzero"`
	// Groups are the leaders of the process groups that run now.
	Groups []launch.ID `json:"groups,omitempty"`
	// Token marks every process of the run (launch.TokenVar).
	Token string `json:"token"`

	Request      request.Capture `json:"request"`
	OnServerExit OnServerExit    `json:"on_server_exit"`
	TimeoutS     int             `json:"timeout_s"`
	EstimateS    int             `json:"estimate_s,omitempty"`

	// RequestKey is a hash of what was asked; SameKey also of all that the outcome depends on: worktree, recipe,
	// environment, tools.
	RequestKey string `json:"request_key"`
	SameKey    string `json:"same_key"`
	// Lineage is the first run of a chain of retries; Retries counts the runs of the chain before this one.
	Lineage string `json:"lineage"`
	Retries int    `json:"retries"`

	// Code is the catalogue code that a failed run ended with.
	Code envelope.Code `json:"code,omitempty"`
}

// Result is result.json: the answer that a run ended with, from which every client's envelope is rendered.
type Result struct {
	// Data is the verb's data, as core/capture defines it.
	Data     json.RawMessage    `json:"data,omitempty"`
	Error    *envelope.Error    `json:"error,omitempty"`
	Warnings []envelope.Warning `json:"warnings"`
	Actions  []envelope.Action  `json:"next_actions"`
}

// CancelRequest is cancel.json: somebody asks the supervisor to stop.
type CancelRequest struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}
