// Package doctor answers whether this host can capture, and what stands in the way: one check for each thing that a capture
// needs, with what was looked at and what to do.
package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/gpu"
	"github.com/flyprof/flyprof-mcp/core/request"
)

// The verdicts.
const (
	Ready    = "ready"
	NotReady = "not-ready"
)

// The states of a check.
const (
	StateOK      = "ok"
	StateFail    = "fail"
	StateWarn    = "warn"
	StateSkipped = "skipped"
)

// Data is the answer.
type Data struct {
	Verdict  string          `json:"verdict" jsonschema:"enum=ready,enum=not-ready"`
	Blockers []envelope.Code `json:"blockers" jsonschema_description:"Catalogue codes of the checks that failed; empty when ready."`
	Checks   []Check         `json:"checks"`
	// GPU is the one that the index means; absent where there is none.
	GPU       *gpu.GPU  `json:"gpu,omitempty"`
	GPUs      []gpu.GPU `json:"gpus" jsonschema_description:"All GPUs that the driver shows."`
	Simulated bool      `json:"simulated"`
	// What was found of the programs.
	Rocprofv3 string `json:"rocprofv3,omitempty" jsonschema_description:"Version of the rocprofiler SDK."`
	ROCm      string `json:"rocm_version,omitempty"`
	FlyDSL    string `json:"flydsl_version,omitempty"`
	Worktree  string `json:"worktree,omitempty"`
	Commit    string `json:"commit,omitempty"`
	RunsDir   string `json:"runs_dir"`
}

// Check is one thing that a capture needs.
type Check struct {
	ID string `json:"id"`
	// OK is false for a check that failed; a warning and a check that was skipped do not stand in the way.
	OK       bool          `json:"ok"`
	State    string        `json:"state" jsonschema:"enum=ok,enum=fail,enum=warn,enum=skipped"`
	LookedAt []string      `json:"looked_at" jsonschema_description:"Files and commands behind the answer."`
	Found    string        `json:"found"`
	Do       string        `json:"do,omitempty" jsonschema_description:"What to do about it."`
	Code     envelope.Code `json:"code,omitempty"`
}

func pass(id, found string, looked ...string) Check {
	return Check{ID: id, OK: true, State: StateOK, Found: found, LookedAt: looked}
}

func fail(id string, code envelope.Code, found, do string, looked ...string) Check {
	return Check{ID: id, State: StateFail, Code: code, Found: found, Do: do, LookedAt: looked}
}

func caution(id, found, do string, looked ...string) Check {
	return Check{ID: id, OK: true, State: StateWarn, Found: found, Do: do, LookedAt: looked}
}

func skipped(id, why string) Check {
	return Check{ID: id, OK: true, State: StateSkipped, Found: why, LookedAt: []string{}}
}

// limits of one check: none may keep the answer, whatever a hung GPU does.
const (
	commandLimit = 20 * time.Second
	importLimit  = 60 * time.Second
	maxOutput    = 1 << 20
)

// Run makes every check, those that do not need each other at the same time. An unready host is an answer and no error.
func Run(ctx context.Context, p Probe, in request.Doctor) (envelope.Reply[Data], error) {
	h := &host{Probe: p, in: in}
	h.data = Data{Simulated: p.Simulated != "", RunsDir: p.RunsDir, GPUs: []gpu.GPU{}, Blockers: []envelope.Code{}}
	groups := []func(context.Context) []Check{
		one(h.platform), one(h.rocprofv3), one(h.decoder), h.gpus, h.worktree, one(h.runsDir), one(h.space), one(h.profilers),
	}
	results := make([][]Check, len(groups))
	var wait sync.WaitGroup
	for i, check := range groups {
		wait.Go(func() { results[i] = check(ctx) })
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return envelope.Reply[Data]{}, err
	}
	for _, r := range results {
		h.data.Checks = append(h.data.Checks, r...)
	}
	h.judge()
	return envelope.Reply[Data]{Data: &h.data, Warnings: h.warnings, Actions: h.actions()}, nil
}

func one(check func(context.Context) Check) func(context.Context) []Check {
	return func(ctx context.Context) []Check { return []Check{check(ctx)} }
}

// judge makes the verdict of the checks.
func (h *host) judge() {
	h.data.Verdict = Ready
	for i := range h.data.Checks {
		c := &h.data.Checks[i]
		if c.LookedAt == nil {
			c.LookedAt = []string{}
		}
		if c.State != StateFail {
			continue
		}
		h.data.Verdict = NotReady
		if !slices.Contains(h.data.Blockers, c.Code) {
			h.data.Blockers = append(h.data.Blockers, c.Code)
		}
	}
}

// actions say how to go on: to the list when ready, else what to mend.
func (h *host) actions() []envelope.Action {
	if h.data.Verdict == Ready {
		return []envelope.Action{{Kind: envelope.CallTool, Args: request.List{Worktree: h.in.Worktree}, Reason: "the host is ready; this shows which kernels there are", Confidence: envelope.High}}
	}
	var out []envelope.Action
	for _, c := range h.data.Checks {
		if c.State == StateFail && len(out) < 5 {
			out = append(out, envelope.Action{Kind: envelope.FixConfig, Reason: c.ID + ": " + c.Do})
		}
	}
	return append(out, envelope.Action{Kind: envelope.Stop, Reason: "do not capture before the blockers are gone"})
}

// host is the state of one run.
type host struct {
	Probe
	in       request.Doctor
	mu       sync.Mutex
	data     Data
	warnings []envelope.Warning
}

// set changes the answer under its lock: checks run at the same time.
func (h *host) set(change func(d *Data)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.data)
}

func (h *host) warn(list ...envelope.Warning) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warnings = append(h.warnings, list...)
}
