package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Reply is the answer of capture, status and cancel.
type Reply = envelope.Reply[Data]

// Service starts, watches and stops runs. It is safe for concurrent use and keeps no state of runs: that lives on disk.
type Service struct {
	Store *runs.Store
	Spawn *Spawner
	// Prepare resolves a request to a plan: tools, worktree, invocation, GPU. It starts no process.
	Prepare func(ctx context.Context, in request.Capture) (Prepared, error)
	// OnServerExit is the policy of new runs.
	OnServerExit runs.OnServerExit
	Log          *slog.Logger
}

// Prepared is a request that can be started.
type Prepared struct {
	Request request.Capture
	Plan    Plan
	// RequestKey and SameKey as runs.Run has them.
	RequestKey, SameKey string
}

// Capture starts a run, or finds the one that already does the same, and waits for it up to wait_s.
func (s *Service) Capture(ctx context.Context, in request.Capture, tell Progress) (Reply, error) {
	wait := DefaultWaitS
	if in.WaitS != nil {
		wait = *in.WaitS
	}
	p, err := s.Prepare(ctx, in)
	if err != nil {
		return Reply{}, err
	}
	id, repeated, err := s.startOrFind(ctx, p, in.Force)
	if err != nil {
		return Reply{}, err
	}
	reply, err := s.await(ctx, id, wait, tell)
	if repeated && reply.Data != nil {
		reply.Data.Repeated = true
	}
	return reply, err
}

// Status waits for a run up to wait_s and answers what capture would have.
func (s *Service) Status(ctx context.Context, in request.Status, tell Progress) (Reply, error) {
	wait := DefaultWaitS
	if in.WaitS != nil {
		wait = *in.WaitS
	}
	return s.await(ctx, in.RunID, wait, tell)
}

// Cancel asks the supervisor to stop and waits until the run is terminal, which is bounded by the run's grace.
func (s *Service) Cancel(ctx context.Context, in request.Cancel) (Reply, error) {
	r, err := s.Store.Load(in.RunID)
	if err != nil {
		return Reply{}, err
	}
	if !r.State.Ended() {
		if err := s.Store.RequestCancel(r.ID, "flyprof_capture_cancel was called"); err != nil {
			return Reply{}, err
		}
	}
	var plan Plan
	_ = s.Store.ReadJSON(r.ID, "plan.json", &plan)
	reply, err := s.await(ctx, r.ID, plan.StopGraceS+int(2*sweepLimit/time.Second), nil)
	// A run that was stopped as asked is what the caller wanted: the cancelled envelope is a success of cancel.
	if envelope.CodeOf(err) == envelope.Cancelled {
		reply.Command = ""
		reply.Actions = []envelope.Action{{Kind: envelope.CallTool, Args: request.Read{URI: "flyprof://runs/" + r.ID}, Reason: "shows the envelope of the stopped run", Confidence: envelope.Low}}
		return reply, nil
	}
	if err == nil && reply.Data != nil && reply.Data.State.Ended() {
		reply.Command = ""
		reply.Warnings = append(reply.Warnings, envelope.Warning{Code: "ALREADY_ENDED", Message: "the run had ended before the request to stop reached it"})
	}
	return reply, err
}

// startOrFind is one step under the store's lock: two servers that are asked the same start one run.
func (s *Service) startOrFind(ctx context.Context, p Prepared, force bool) (id string, repeated bool, err error) {
	unlock, err := s.Store.Lock(ctx)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if last, ok := s.Store.Latest(p.SameKey); ok {
		_, _ = s.Store.Recover(ctx, last.ID, s.Salvage)
		if last, err = s.Store.Load(last.ID); err != nil {
			return "", false, err
		}
		if !last.State.Ended() {
			return last.ID, false, nil
		}
		if !force && last.State == runs.Failed && !retryable(last) {
			return last.ID, true, nil
		}
	}
	lineage, used, err := s.lineage(p)
	if err != nil {
		return "", false, err
	}
	run := runs.Run{
		Request: p.Request, OnServerExit: s.OnServerExit, TimeoutS: p.Request.TimeoutS, EstimateS: estimateS(p.Request),
		RequestKey: p.RequestKey, SameKey: p.SameKey, Lineage: lineage, Retries: used,
	}
	if run, err = s.Store.Create(run); err != nil {
		return "", false, err
	}
	p.Plan.RetriesUsed, p.Plan.RetriesBudget = used, retryBudget
	if err := s.start(run, p); err != nil {
		run.State = runs.Failed
		return "", false, errors.Join(err, s.Store.Finish(run, runs.Result{Error: envelope.As(err)}))
	}
	return run.ID, false, nil
}

func (s *Service) start(run runs.Run, p Prepared) error {
	if err := s.Store.WriteJSON(run.ID, "plan.json", p.Plan); err != nil {
		return err
	}
	return s.Spawn.Start(s.Store, run.ID, func() {
		if _, err := s.Store.Recover(context.Background(), run.ID, s.Salvage); err != nil {
			s.Log.Error("a run could not be recovered", "run", run.ID, "error", err)
		}
	})
}

// retryBudget is how often a transient failure may be tried again.
const retryBudget = 1

// retryable says that the same request may be run again although nothing changed: the failure was transient and its budget
// is not spent.
func retryable(r runs.Run) bool {
	row, ok := envelope.Lookup(r.Code)
	return ok && row.Class == envelope.ClassTransient && r.Retries < retryBudget
}

// lineage tells of which chain of retries a new run is, and how many runs of it failed transiently before: the run that
// retry_of names, or else the latest run of the same request whose failure was transient.
func (s *Service) lineage(p Prepared) (string, int, error) {
	if p.Request.RetryOf != "" {
		before, err := s.Store.Load(p.Request.RetryOf)
		if err != nil {
			return "", 0, err
		}
		var plan Plan
		if s.Store.ReadJSON(before.ID, "plan.json", &plan) == nil && plan.Provenance.SourceHash != p.Plan.Provenance.SourceHash {
			return "", 0, nil // the kernel's source was edited: what failed before says nothing of it
		}
		return before.Lineage, before.Retries + 1, nil
	}
	before, ok := s.Store.Latest(p.RequestKey)
	if ok && before.State == runs.Failed && before.SameKey == p.SameKey && retryable(before) {
		return before.Lineage, before.Retries + 1, nil
	}
	return "", 0, nil
}

// estimateS is a rough length of the run in seconds: an ATT pass takes about 11 s and discovery the same plus compilation
// (median of 17 kernels on MI350X); PMC passes run the workload again each.
func estimateS(r request.Capture) int {
	s := 40
	if r.Tag == "both" {
		s += 15
	}
	if r.WithPMC {
		s += 60
	}
	return s
}

// Progress is told how far a run got while a caller waits; it may be nil.
type Progress func(elapsedS float64, estimateS int, message string)

// progressEvery is the time between two progress notes.
const progressEvery = 5 * time.Second

// await answers for a run as soon as it has ended, or after wait seconds how far it got. When ctx ends, only the waiting
// does.
func (s *Service) await(ctx context.Context, id string, wait int, tell Progress) (Reply, error) {
	deadline := time.NewTimer(time.Duration(wait) * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	told := time.Now()
	for {
		if _, err := s.Store.Recover(ctx, id, s.Salvage); err != nil {
			return Reply{}, err
		}
		r, err := s.Store.Load(id)
		if err != nil {
			return Reply{}, err
		}
		if r.State.Ended() {
			return s.ended(r)
		}
		if tell != nil && time.Since(told) >= progressEvery {
			told = time.Now()
			tell(elapsed(r), r.EstimateS, fmt.Sprintf("%s: %s", r.State, r.Phase))
		}
		select {
		case <-ctx.Done():
			return s.running(r), nil
		case <-deadline.C:
			return s.running(r), nil
		case <-tick.C:
		}
	}
}

func elapsed(r runs.Run) float64 {
	if r.Started.IsZero() {
		return 0
	}
	return seconds(time.Since(r.Started))
}

// ended renders the stored answer of a run.
func (s *Service) ended(r runs.Run) (Reply, error) {
	res, err := s.Store.Result(r.ID)
	if err != nil {
		return Reply{}, err
	}
	if len(res.Data) == 0 && res.Error == nil {
		return Reply{}, s.Store.Damaged(r.ID, "result.json", "it holds neither data nor an error")
	}
	reply := Reply{Bundle: r.ID, Command: "capture", Warnings: res.Warnings, Actions: res.Actions}
	if len(res.Data) > 0 {
		reply.Data = new(Data)
		if err := json.Unmarshal(res.Data, reply.Data); err != nil {
			return Reply{}, s.Store.Damaged(r.ID, "result.json", err.Error())
		}
	}
	if res.Error != nil {
		return reply, res.Error
	}
	return reply, nil
}

// running tells how far a run got.
func (s *Service) running(r runs.Run) Reply {
	data := Data{RecipeKernel: r.Request.Kernel}
	_ = s.Store.ReadJSON(r.ID, "progress.json", &data) // absent until the first phase is over
	data.RunID, data.State, data.Phase, data.ElapsedS, data.EstimateS = r.ID, r.State, r.Phase, elapsed(r), r.EstimateS
	data.LogTail = logTail(s.Store, r.ID, "logs/"+stepName(r.Phase)+".log", 5)
	return Reply{Bundle: r.ID, Command: "capture", Data: &data, Actions: []envelope.Action{
		{Kind: envelope.CallTool, Args: request.Status{RunID: r.ID}, Reason: "the run goes on; this waits for it", Confidence: envelope.High},
		{Kind: envelope.CallTool, Args: request.Cancel{RunID: r.ID}, Reason: "stops the run and its whole process tree", Confidence: envelope.Low},
	}}
}

// Envelope answers for a run as it stands, without waiting.
func (s *Service) Envelope(ctx context.Context, id string) (Reply, error) {
	return s.await(ctx, id, 0, nil)
}
