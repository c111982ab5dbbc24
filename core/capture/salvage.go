package capture

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Salvage makes the answer of a run whose supervisor was killed: what progress.json tells, and every complete trace that
// lies in the run's directory.
func Salvage(ctx context.Context, store *runs.Store, r runs.Run) runs.Result {
	data := Data{RecipeKernel: r.Request.Kernel}
	_ = store.ReadJSON(r.ID, "progress.json", &data) // absent when the run had not begun
	data.RunID, data.State, data.Phase, data.LogTail = r.ID, runs.Interrupted, "", nil
	saved := salvageTrace(ctx, store, r, &data)
	f := envelope.Facts{
		Message:  fmt.Sprintf("the process that drove the run was killed in phase %q; its leftovers were ended", r.Phase),
		Request:  &r.Request,
		RunID:    r.ID,
		Evidence: envelope.Evidence{Phase: r.Phase, RunState: string(runs.Interrupted)},
		Retry:    &envelope.Retry{Allowed: r.Retries < retryBudget, Used: r.Retries, Budget: retryBudget},
	}
	if name := stepName(r.Phase); name != "" {
		if tail := logTail(store, r.ID, "logs/"+name+".log", 20); tail != nil {
			f.LogTail, f.Evidence.Log = tail, logURI(r.ID, name)
		}
	}
	if saved != "" {
		f.Message += "; a complete trace was kept in " + saved
		f.Suggestions = []envelope.Action{{Kind: envelope.ReadResource, URI: "flyprof://files/" + r.ID + "/" + saved + "/code.json", Reason: "the trace that was complete"}}
	}
	return runs.Result{Data: mustJSON(data), Error: envelope.Build(envelope.RunInterrupted, f)}
}

// salvageTrace looks for the dispatch directory with the most waves that reads as a whole trace.
func salvageTrace(ctx context.Context, store *runs.Store, r runs.Run, data *Data) string {
	if data.Tags.Big != nil && data.Tags.Big.KeptDir != "" {
		return data.Tags.Big.KeptDir
	}
	dirs, err := att.FindDispatches(filepath.Join(store.Path(r.ID), "att"))
	if err != nil {
		return ""
	}
	best := Tag{}
	for _, dir := range dirs {
		one, err := att.Open(ctx, dir, att.Options{})
		if err != nil {
			continue
		}
		v := one.Verdict(data.Kernel)
		rel, relErr := filepath.Rel(store.Path(r.ID), dir)
		if v.State == "kept" && v.Waves > best.Waves && relErr == nil {
			best = Tag{State: "done", KeptDir: filepath.ToSlash(rel), Waves: v.Waves, Ins: v.Ins, Mapped: v.Mapped, MappedPct: v.MappedPct, TopStallType: v.TopStallType}
		}
	}
	if best.KeptDir == "" {
		return ""
	}
	data.Tags.Big = &best
	return best.KeptDir
}
