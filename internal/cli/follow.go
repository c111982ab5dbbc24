package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// follower is a call that may take long: it tells how it goes, and ends well when it is interrupted.
type follower struct {
	verb *verb
	app  *app
	host tools.Host
	// run is the run that is waited for, "" before it is known.
	run   atomic.Value
	began time.Time
	// leaves: the run is to go on when this process ends.
	leaves bool
}

// stopMarginS is what a run that is being stopped may take beyond its grace, in seconds: its leftovers are looked for.
const stopMarginS = 30

// mostWait is the longest wait_s that status takes, in seconds.
const mostWait = 3600

// follow calls the tool, and waits for a capture to its end: on a command line nobody gives up after a minute.
func (v *verb) follow(ctx context.Context, a *app, call map[string]any) tools.Answer {
	f := &follower{verb: v, app: a, began: time.Now(), host: tools.Host{Log: a.log, Renderer: tools.CommandLine(v.caller.program.Name, v.caller.flags.given())}}
	id, _ := call["run_id"].(string)
	f.run.Store(id)
	if v.tool.Verb == request.VerbCapture {
		_, limited := call["wait_s"]
		f.leaves = v.noWait || limited
		if v.noWait || !limited {
			call["wait_s"] = 0
		}
		if f.leaves {
			a.service.OnServerExit = runs.FinishOnExit
		}
	}
	stop := func() {}
	if !v.quiet {
		stop = v.caller.screen.progress(f.howFar)
	}
	defer stop()
	if id != "" {
		a.log.Debug("waits for a run", "run", id)
	}
	answer := a.call(ctx, v.tool.Verb, call, f.host)
	for v.tool.Verb == request.VerbCapture && !f.leaves && ctx.Err() == nil {
		id, ended := runOf(answer)
		if id == "" || ended {
			break
		}
		f.run.Store(id)
		a.log.Debug("waits for a run", "run", id)
		answer = a.call(ctx, request.VerbStatus, map[string]any{"run_id": id, "wait_s": mostWait}, f.host)
	}
	if ctx.Err() != nil {
		return f.interrupted(answer)
	}
	return answer
}

// runOf gives the run that an answer is about, and whether it has ended.
func runOf(a tools.Answer) (id string, ended bool) {
	var e struct {
		Bundle string `json:"bundle"`
		Data   struct {
			State runs.State `json:"state"`
		} `json:"data"`
	}
	if json.Unmarshal(a.JSON, &e) != nil {
		return "", false
	}
	return e.Bundle, e.Bundle != "" && (a.Failed() || e.Data.State.Ended())
}

// howFar is the progress line: of the run where one is waited for, else of the call.
func (f *follower) howFar() string {
	id, _ := f.run.Load().(string)
	run, err := f.app.service.Store.Load(id)
	if err != nil {
		return howFar(string(f.verb.tool.Verb), "", time.Since(f.began), 0)
	}
	since := run.Started
	if since.IsZero() { // it waits for the GPU
		since = run.Created
	}
	return howFar(run.ID+" "+string(run.State), run.Phase, time.Since(since), run.EstimateS)
}

// interrupted answers for a call that a signal ended. A run that this process started is stopped, as its policy says, and answers
// itself; a second signal stops the waiting for that.
func (f *follower) interrupted(answer tools.Answer) tools.Answer {
	id, ended := runOf(answer)
	if ended {
		return answer
	}
	if id != "" && f.app.spawner.Live() > 0 && f.app.service.OnServerExit == runs.CancelOnExit {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		fmt.Fprintf(f.verb.caller.screen, "stopping %s; interrupt again to leave at once\n", id)
		if err := f.app.service.Store.RequestCancel(id, "it was interrupted on the command line"); err != nil {
			f.app.log.Warn("the run cannot be asked to stop", "run", id, "err", err)
		}
		wait := min(mostWait, f.app.config.StopGraceS+stopMarginS)
		answer = f.app.call(ctx, request.VerbStatus, map[string]any{"run_id": id, "wait_s": wait}, f.host)
		if _, ended := runOf(answer); ended {
			return answer
		}
	}
	return f.cancelled(answer)
}

// cancelled is the answer where only the waiting ended, with what was known by then.
func (f *follower) cancelled(answer tools.Answer) tools.Answer {
	var known envelope.Wire[json.RawMessage]
	_ = json.Unmarshal(answer.JSON, &known)
	facts := envelope.Facts{Message: "interrupted before there was an answer"}
	reply := envelope.Reply[json.RawMessage]{Bundle: known.Bundle}
	if known.Bundle != "" {
		reply.Data = known.Data
		facts.RunID, facts.Message = known.Bundle, "interrupted while waiting for the run "+known.Bundle+", which has not ended yet"
		facts.Suggestions = []envelope.Action{
			{Kind: envelope.CallTool, Args: request.Status{RunID: known.Bundle}, Reason: "waits for the run", Confidence: envelope.Medium},
			{Kind: envelope.CallTool, Args: request.Cancel{RunID: known.Bundle}, Reason: "stops the run", Confidence: envelope.Medium},
		}
	}
	e := envelope.Build(envelope.Cancelled, facts)
	wire := envelope.NewWire(string(f.verb.tool.Verb), reply, e, f.host.Renderer)
	raw, err := jsontree.Marshal(wire)
	if err != nil {
		f.app.log.Error("the answer cannot be written", "err", err)
		return answer
	}
	return tools.Answer{JSON: raw, Code: e.Code, Exit: wire.Error.ExitCode}
}
