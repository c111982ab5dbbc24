package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

// collectPMC collects performance counters of the traced launch group, in runs of the workload of their own: counters in the job of a
// trace are unreliable. The groups that the hardware can count at once take turns in one run where the launches allow it; a group that
// got no turn has a run for itself. A pass that fails is a warning; what was traced stands.
func (d *driver) collectPMC(ctx context.Context, c rocprof.Choice) error {
	groups := rocprof.CounterGroups(d.plan.Provenance.Arch)
	if len(groups) == 0 {
		d.warn("PMC_UNKNOWN_ARCH", fmt.Sprintf("no counter groups are known for %q; no counters were collected", d.plan.Provenance.Arch))
		return nil
	}
	passes, err := d.rotatePMC(ctx, groups, c)
	if err != nil && envelope.CodeOf(err) == "" {
		return err
	}
	if err != nil {
		e := envelope.As(err)
		d.warn("PMC_FAILED", fmt.Sprintf("no counters were collected: %s: %s", e.Code, e.Message))
	}
	for i := range passes {
		if err != nil && len(passes[i].Values) == 0 {
			passes[i].Error = &TagError{Code: envelope.As(err).Code, Message: envelope.As(err).Message}
		}
		if err == nil && len(passes[i].Values) == 0 {
			if err := d.enter(fmt.Sprintf("pmc:%d/%d", i+1, len(groups))); err != nil {
				return err
			}
			job := rocprof.PMCJob{Iter: c.Iter, Counters: passes[i].Counters}
			got, err := d.pmcPass(ctx, fmt.Sprintf("group_%d", i+1), job, []PMCPass{passes[i]}, c)
			if err != nil && envelope.CodeOf(err) == "" {
				return err // stopped, timed out, or the disk
			}
			passes[i] = got[0]
			if err != nil {
				e := envelope.As(err)
				passes[i].Error = &TagError{Code: e.Code, Message: e.Message}
				d.warn("PMC_FAILED", fmt.Sprintf("pass %d of %d (%v) failed: %s: %s", i+1, len(groups), passes[i].Counters, e.Code, e.Message))
			}
		}
		d.data.PMC = append(d.data.PMC, passes[i])
	}
	return nil
}

// rotatePMC lets the groups take turns in one run of the workload. Groups without values are left to a run of their own: the launches
// do not fall on every turn, the run numbered its dispatches otherwise than the discovery, or this rocprofv3 knows no rotation. The
// error is a failure of the workload, which would only come again.
func (d *driver) rotatePMC(ctx context.Context, groups [][]string, c rocprof.Choice) ([]PMCPass, error) {
	passes := make([]PMCPass, len(groups))
	for i := range groups {
		passes[i].Counters = groups[i]
	}
	interval, iter, ok := rocprof.Rotate(c.Group, len(groups))
	if !ok || d.run.Request.IterRange != "" {
		return passes, nil // a launch that was asked for is the one to count
	}
	if err := d.enter("pmc:rotation"); err != nil {
		return nil, err
	}
	got, err := d.pmcPass(ctx, "rotation", rocprof.PMCJob{Iter: iter.String(), Groups: groups, Interval: interval}, passes, c)
	switch envelope.CodeOf(err) {
	case envelope.NoArtifact, envelope.BadArgs, envelope.ProfilerCrashed, envelope.UnsupportedConfig:
		d.log.Info("the counter groups could not take turns", "run", d.run.ID, "err", err)
		return got, nil
	}
	return got, err
}

// pmcPass runs the workload once and gives the passes with the values that were counted.
func (d *driver) pmcPass(ctx context.Context, name string, job rocprof.PMCJob, passes []PMCPass, c rocprof.Choice) ([]PMCPass, error) {
	passes = slices.Clone(passes)
	out, err := d.dir("pmc", name)
	if err != nil {
		return passes, err
	}
	job.Kernel, job.OutputDir, job.OutputFile = d.data.Kernel, out, "out_%pid%"
	text, err := job.JSON()
	if err != nil {
		return passes, err
	}
	name = stepName(d.run.Phase)
	file := filepath.Join(d.store.Path(d.run.ID), "jobs", name+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return passes, err
	}
	argv := append(append(slices.Clone(d.plan.Tools.Rocprofv3), "-i", file, "--"), d.workload()...)
	d.workloadRuns++
	st, err := d.runStep(ctx, name, argv, d.env())
	for i := range passes {
		passes[i].CaptureS = seconds(time.Duration(st.Seconds * float64(time.Second)))
	}
	if err != nil {
		return passes, err
	}
	return passes, d.readPMC(st, out, passes, c)
}

// readPMC takes the rows of the launch group that was traced: the job fires for every kernel id of that name. The error is why a pass
// has no value.
func (d *driver) readPMC(st step, out string, passes []PMCPass, c rocprof.Choice) error {
	report := d.findings(st)
	d.adopt(report.Warnings)
	files, err := rocprof.FindOutputs(out)
	if err != nil {
		return err
	}
	var rows []rocprof.CounterRow
	var csv []string
	for _, path := range files.Counters {
		csv = append(csv, d.relative(path))
		part, err := readFile(path, rocprof.ReadCounters)
		if err != nil {
			return d.fail(envelope.TraceCorrupt, envelope.Facts{Message: fmt.Sprintf("%s cannot be read: %v", filepath.Base(path), err), Evidence: envelope.Evidence{Path: d.relative(path)}})
		}
		rows = append(rows, part...)
	}
	rows = groupRows(rows, d.data.Kernel, c.Group)
	turns := [][]rocprof.CounterRow{rows}
	if len(passes) > 1 {
		groups := make([][]string, len(passes))
		for i := range passes {
			groups[i] = passes[i].Counters
		}
		turns = rocprof.SplitTurns(rows, groups)
	}
	missing := false
	for i := range passes {
		if passes[i].Values = sums(passes[i].Counters, turns[i]); len(passes[i].Values) > 0 {
			passes[i].CSV = csv
			continue
		}
		missing = true
	}
	switch {
	case !missing:
		return nil
	case report.Primary != nil:
		return d.named(report.Primary, st)
	case st.Exit == nil || !st.Exit.OK():
		return d.unnamed(st)
	}
	return d.fail(envelope.NoArtifact, envelope.Facts{
		Message:  "the counter pass ended well and wrote no row of the traced launch group",
		Evidence: envelope.Evidence{Log: logURI(d.run.ID, st.Name), Phase: d.run.Phase},
	})
}

// sums adds the rows up by counter, in the order of the names.
func sums(names []string, rows []rocprof.CounterRow) []Counter {
	byName := map[string]*Counter{}
	for _, r := range rows {
		if byName[r.Counter] == nil {
			byName[r.Counter] = &Counter{Name: r.Counter}
		}
		if r.HasValue {
			byName[r.Counter].Value += r.Value
		}
		byName[r.Counter].Dispatches++
	}
	var out []Counter
	for _, name := range names {
		if s := byName[name]; s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// groupRows gives the rows of the launch group: the kernel, its grid, and its kernel id where the process has that id; ids are
// numbered by each process, in the order of loading.
func groupRows(rows []rocprof.CounterRow, kernel string, g rocprof.Group) []rocprof.CounterRow {
	var fit, same []rocprof.CounterRow
	for _, r := range rows {
		if r.Kernel != kernel || r.GridItems != product(g.GridItems()) {
			continue
		}
		fit = append(fit, r)
		if r.KernelID == g.KernelID {
			same = append(same, r)
		}
	}
	if len(same) > 0 {
		return same
	}
	return fit
}
