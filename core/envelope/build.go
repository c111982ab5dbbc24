package envelope

import (
	"strings"

	"github.com/flyprof/flyprof-mcp/core/request"
)

// Facts is what is known about a failure. Build turns it into an error whose actions are complete.
type Facts struct {
	// Message says what happened, in one sentence with the figures.
	Message string
	// Help replaces the catalogue's help where more is known.
	Help string
	// Request is the capture that failed, as it was asked for; nil where no capture is involved. Actions repeat it with
	// changes.
	Request *request.Capture
	// RunID is the failed run; empty where there is none.
	RunID string
	// Test is the kernel whose test launched the candidates: a call that names one of them names the test before it
	// ("softmax::softmax_kernel_0"). Empty where the candidates are tests themselves, or where a command of the caller's ran.
	Test string
	// Evidence is what was seen.
	Evidence Evidence
	// Available lists choices that exist.
	Available []Available
	// Candidates lists kernels that may have been meant, best first.
	Candidates []Candidate
	// LogTail holds the last lines of the log that matters, at most 40.
	LogTail []string
	// Retry is the budget; nil for failures that have none.
	Retry *Retry
	// Suggestions are actions computed from the evidence, best first. They stand before the catalogue's own.
	Suggestions []Action
}

const (
	maxActions     = 6
	maxCandidates  = 12
	maxAvailable   = 24
	maxLogLines    = 40
	maxLogLineLen  = 240
	maxMessageLen  = 1200
	maxReasonLen   = 300
	maxEvidenceLen = 600
)

// Build makes the error for a code. Lists are cut so that the rendered envelope stays under 10,000 characters. A retry
// budget that is spent removes every capture call from the actions and ends them with stop.
func Build(code Code, f Facts) *Error {
	row, ok := Lookup(code)
	if !ok {
		f.Message = "unknown code " + string(code) + ": " + f.Message
		row, _ = Lookup(Internal)
	}
	help := row.Help
	if f.Help != "" {
		help = f.Help
	}
	if f.Message == "" {
		f.Message = row.Meaning
	}
	f.Request = withoutWait(f.Request)
	actions := append(append([]Action(nil), f.Suggestions...), row.actions(f)...)
	retry := Retry{Allowed: row.Class == ClassTransient, Budget: 0}
	if row.Class == ClassTransient {
		retry.Budget = 1
	}
	if f.Retry != nil {
		retry = *f.Retry
		if !retry.Allowed && retry.Budget > 0 {
			actions = withoutCaptures(actions)
			actions = append(actions, Action{Kind: Stop, Reason: "the retry budget is spent; report what was found"})
		}
	}
	if len(actions) > maxActions {
		actions = append(actions[:maxActions-1:maxActions-1], actions[len(actions)-1])
	}
	for i := range actions {
		actions[i].Reason = cut(actions[i].Reason, maxReasonLen)
	}
	e := &Error{
		Code: row.Code, Message: cut(f.Message, maxMessageLen), Help: help, Evidence: f.Evidence,
		Available: head(f.Available, maxAvailable), Candidates: head(f.Candidates, maxCandidates), LogTail: tail(f.LogTail, maxLogLines),
		Retry: retry, Actions: actions,
	}
	e.Evidence.Value = cut(e.Evidence.Value, maxEvidenceLen)
	e.Evidence.Found = cut(e.Evidence.Found, maxEvidenceLen)
	e.Evidence.Signature = cut(e.Evidence.Signature, maxEvidenceLen)
	return e
}

func withoutWait(r *request.Capture) *request.Capture {
	if r == nil {
		return nil
	}
	c := *r
	c.WaitS, c.Force = nil, false
	return &c
}

func withoutCaptures(actions []Action) []Action {
	var out []Action
	for _, a := range actions {
		if a.Args == nil || a.Args.Verb() != request.VerbCapture {
			out = append(out, a)
		}
	}
	return out
}

// captureEach makes one capture call for each of the first three candidates.
func captureEach(f Facts, candidates []Candidate, reason string) []Action {
	if f.Request == nil {
		return nil
	}
	var acts []Action
	for _, c := range head(candidates, 3) {
		r := *f.Request
		r.Kernel, r.RetryOf = c.Kernel, f.RunID
		if f.Test != "" {
			r.Kernel = f.Test + request.SymbolMark + c.Kernel
		}
		if len(r.Kernel) > request.MaxKernel {
			continue
		}
		acts = append(acts, Action{Kind: CallTool, Args: r, Reason: reason, Confidence: Medium})
	}
	return acts
}

func orAsk(acts []Action, question string) []Action {
	if len(acts) > 0 {
		return acts
	}
	return []Action{{Kind: AskUser, Reason: question}}
}

func report(reason string) func(Facts) []Action {
	return func(f Facts) []Action {
		acts := []Action{{Kind: ReportFinding, Reason: reason}}
		return append(acts, logResource(f, "the whole log of the failing step")...)
	}
}

func fix(reason string) func(Facts) []Action {
	return func(f Facts) []Action {
		acts := []Action{{Kind: FixConfig, Reason: reason}}
		return append(acts, Action{Kind: CallTool, Args: request.Doctor{Worktree: worktreeOf(f)}, Reason: "checks the host again after the change", Confidence: Medium})
	}
}

func again(reason string) func(Facts) []Action {
	return func(f Facts) []Action {
		var acts []Action
		if f.Request != nil {
			r := *f.Request
			r.RetryOf = f.RunID
			acts = append(acts, Action{Kind: CallTool, Args: r, Reason: reason, Confidence: Medium})
		}
		return append(acts, readLog(f, "shows what happened")...)
	}
}

// readLog reads the log where one is known, else the quirks.
func readLog(f Facts, reason string) []Action {
	if acts := logResource(f, reason); len(acts) > 0 {
		return acts
	}
	return []Action{{Kind: ReadResource, URI: quirksURI, Reason: "what is known to go wrong under rocprofv3"}}
}

func logResource(f Facts, reason string) []Action {
	if f.Evidence.Log == "" {
		return nil
	}
	return []Action{{Kind: ReadResource, URI: f.Evidence.Log, Reason: reason}}
}

func worktreeOf(f Facts) string {
	if f.Request == nil {
		return ""
	}
	return f.Request.Worktree
}

func head[T any](list []T, n int) []T { return list[:min(len(list), n)] }

func tail(lines []string, n int) []string {
	lines = lines[max(0, len(lines)-n):]
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, cut(line, maxLogLineLen))
	}
	return out
}

// cut shortens a text to at most n bytes at a character boundary and makes it valid UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 {
		s = s[:len(s)-1]
	}
	return s + "…"
}
