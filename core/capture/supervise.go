package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// pollEvery is how often the supervisor looks for a request to stop, and a waiting server at the state.
const pollEvery = 50 * time.Millisecond

// Supervise drives one run to a terminal state. It returns an error only when not even that could be written down.
//
// lifeline is the read end of a pipe that the server holds: when it ends, the server is gone, however it went, and the run
// follows its policy. ctx ends when this process is asked to stop.
func Supervise(ctx context.Context, store *runs.Store, launcher launch.Launcher, id string, lifeline io.Reader, log *slog.Logger) error {
	release, err := store.Own(id)
	if err != nil {
		return err
	}
	defer release()
	run, err := store.Load(id)
	if err != nil {
		return err
	}
	if run.State.Ended() {
		return nil
	}
	if err := launch.Adopt(); err != nil {
		log.Warn("orphans of the run cannot be adopted", "error", err)
	}
	run.Supervisor, run.Phase = launch.Identify(os.Getpid()), "queue"
	if err := store.Save(run); err != nil {
		return err
	}

	asked := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(asked))
	defer cancel(nil)
	defer context.AfterFunc(asked, func() { cancel(stopped{Why: "the process that drives the run was asked to end"}) })()
	go watchLifeline(lifeline, run.OnServerExit, cancel)
	go watchCancel(ctx, store, id, cancel)

	d := &driver{store: store, launcher: launcher, run: run, log: log, begin: time.Now()}
	res := d.finish(d.guarded(ctx))
	log.Info("run ended", "run", id, "state", d.run.State, "code", codeOf(res))
	return store.Finish(d.run, res)
}

func codeOf(res runs.Result) envelope.Code {
	if res.Error == nil {
		return ""
	}
	return res.Error.Code
}

func watchLifeline(lifeline io.Reader, policy runs.OnServerExit, cancel context.CancelCauseFunc) {
	_, _ = io.Copy(io.Discard, lifeline)
	if policy == runs.CancelOnExit {
		cancel(stopped{Why: "the server that started the run went away", ServerGone: true})
	}
}

func watchCancel(ctx context.Context, store *runs.Store, id string, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if c, ok := store.CancelRequested(id); ok {
			cancel(stopped{Why: c.Reason})
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// guarded turns a panic into INTERNAL, so that a bug of ours still ends the run.
func (d *driver) guarded(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("panic in the supervisor", "panic", p, "stack", string(debug.Stack()))
			err = envelope.Build(envelope.Internal, envelope.Facts{
				Message: fmt.Sprintf("the supervisor failed: %v", p), RunID: d.run.ID,
				Evidence: envelope.Evidence{Phase: d.run.Phase, Log: logURI(d.run.ID, "supervisor")},
			})
		}
	}()
	if err := d.store.ReadJSON(d.run.ID, "plan.json", &d.plan); err != nil {
		return err
	}
	d.plan.Env = d.plan.environment(os.Environ())
	limit := time.Duration(d.run.TimeoutS) * time.Second
	release, err := d.takeGPU(ctx, limit)
	if err != nil {
		return err
	}
	defer release()
	d.begin = time.Now()
	d.run.State, d.run.Started = runs.Running, d.begin.UTC()
	ctx, stop := context.WithTimeoutCause(ctx, limit, timedOut{limit})
	defer stop()
	err = d.drive(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause // whatever failed last, it failed because the run was being stopped
	}
	return err
}

// finish makes the answer of the run from what was found and from the error that ended it.
func (d *driver) finish(err error) runs.Result {
	var stop stopped
	var late timedOut
	switch {
	case err == nil:
		d.run.State = runs.Done
	case errors.As(err, &stop):
		d.run.State = runs.Cancelled
		err = d.fail(envelope.Cancelled, envelope.Facts{Message: fmt.Sprintf("the run was stopped in phase %s: %s", d.run.Phase, stop.Why), Evidence: envelope.Evidence{Phase: d.run.Phase}})
	case errors.As(err, &late):
		d.run.State = runs.Failed
		err = d.timeoutError(late)
	default:
		d.run.State = runs.Failed
		if envelope.CodeOf(err) == "" {
			err = d.fail(envelope.Internal, envelope.Facts{Message: err.Error(), Evidence: envelope.Evidence{Phase: d.run.Phase, Log: logURI(d.run.ID, "supervisor")}})
		}
	}
	d.data.State, d.data.Phase, d.data.LogTail = d.run.State, "", nil
	d.data.ElapsedS = seconds(time.Since(d.begin))
	d.data.Cost = &Cost{WorkloadRuns: d.workloadRuns, Seconds: d.data.ElapsedS}
	d.data.Checks = checks(d.data)
	res := runs.Result{Warnings: d.warnings}
	if err != nil {
		res.Error = envelope.As(err)
	} else {
		res.Actions = d.successActions()
	}
	if summaryErr := d.writeSummary(); summaryErr != nil && res.Error == nil {
		d.run.State = runs.Failed
		res.Error = envelope.As(summaryErr)
	}
	d.data.State = d.run.State
	res.Data = mustJSON(d.data)
	return res
}

// fail builds an error that knows the run, its request and its retry budget.
func (d *driver) fail(code envelope.Code, f envelope.Facts) error {
	f.RunID = d.run.ID
	if f.Request == nil {
		r := d.run.Request
		f.Request = &r
	}
	if row, ok := envelope.Lookup(code); ok && (row.Class == envelope.ClassTransient || code == envelope.EmptyATT) {
		used, budget := d.plan.RetriesUsed, d.plan.RetriesBudget
		f.Retry = &envelope.Retry{Allowed: used < budget, Used: used, Budget: budget}
	}
	return envelope.Build(code, f)
}

func (d *driver) timeoutError(late timedOut) error {
	phase := d.run.Phase
	name := stepName(phase)
	return d.fail(envelope.CaptureTimeout, envelope.Facts{
		Message:  fmt.Sprintf("the run was stopped in phase %s after %.0f s (limit %.0f s)", phase, time.Since(d.begin).Seconds(), late.Limit.Seconds()),
		Evidence: envelope.Evidence{Phase: phase, ElapsedS: seconds(time.Since(d.begin)), LimitS: late.Limit.Seconds(), Log: logURI(d.run.ID, name)},
		LogTail:  logTail(d.store, d.run.ID, "logs/"+name+".log", 20),
	})
}

// seconds rounds to a tenth.
func seconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Millisecond)) / float64(time.Second)
}
