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

// collectPMC collects performance counters of the traced launch, one pass for each group that the hardware can count at once,
// each a run of the workload of its own: counters in the job of a trace are unreliable. A pass that fails is a warning; what
// was traced stands.
func (d *driver) collectPMC(ctx context.Context, c rocprof.Choice) error {
	groups := rocprof.CounterGroups(d.plan.Provenance.Arch)
	if len(groups) == 0 {
		d.warn("PMC_UNKNOWN_ARCH", fmt.Sprintf("no counter groups are known for %q; no counters were collected", d.plan.Provenance.Arch))
		return nil
	}
	for i, counters := range groups {
		if err := d.enter(fmt.Sprintf("pmc:%d/%d", i+1, len(groups))); err != nil {
			return err
		}
		pass, err := d.pmcPass(ctx, i+1, counters, c)
		if err != nil && envelope.CodeOf(err) == "" {
			return err // stopped, timed out, or the disk
		}
		if err != nil {
			e := envelope.As(err)
			pass.Error = &TagError{Code: e.Code, Message: e.Message}
			d.warn("PMC_FAILED", fmt.Sprintf("pass %d of %d (%v) failed: %s: %s", i+1, len(groups), counters, e.Code, e.Message))
		}
		d.data.PMC = append(d.data.PMC, pass)
	}
	return nil
}

func (d *driver) pmcPass(ctx context.Context, n int, counters []string, c rocprof.Choice) (PMCPass, error) {
	pass := PMCPass{Counters: counters}
	name := fmt.Sprintf("pmc_%d", n)
	out, err := d.dir("pmc", fmt.Sprintf("group_%d", n))
	if err != nil {
		return pass, err
	}
	text, err := rocprof.PMCJob{Kernel: d.data.Kernel, Iter: c.Iter, Counters: counters, OutputDir: out, OutputFile: "out_%pid%"}.JSON()
	if err != nil {
		return pass, err
	}
	job := filepath.Join(d.store.Path(d.run.ID), "jobs", name+".json")
	if err := os.WriteFile(job, text, 0o644); err != nil {
		return pass, err
	}
	argv := append(append(slices.Clone(d.plan.Tools.Rocprofv3), "-i", job, "--"), d.workload()...)
	d.workloadRuns++
	st, err := d.runStep(ctx, name, argv, d.env())
	pass.CaptureS = seconds(time.Duration(st.Seconds * float64(time.Second)))
	if err != nil {
		return pass, err
	}
	return d.readPMC(st, out, pass, c)
}

// readPMC takes the rows of the group that was traced: the job fires for every kernel id of that name.
func (d *driver) readPMC(st step, out string, pass PMCPass, c rocprof.Choice) (PMCPass, error) {
	report := d.findings(st)
	d.adopt(report.Warnings)
	files, err := rocprof.FindOutputs(out)
	if err != nil {
		return pass, err
	}
	var rows []rocprof.CounterRow
	for _, path := range files.Counters {
		pass.CSV = append(pass.CSV, d.relative(path))
		part, err := readFile(path, rocprof.ReadCounters)
		if err != nil {
			return pass, d.fail(envelope.TraceCorrupt, envelope.Facts{Message: fmt.Sprintf("%s cannot be read: %v", filepath.Base(path), err), Evidence: envelope.Evidence{Path: d.relative(path)}})
		}
		rows = append(rows, part...)
	}
	sums := map[string]*Counter{}
	for _, r := range groupRows(rows, d.data.Kernel, c.Group) {
		if sums[r.Counter] == nil {
			sums[r.Counter] = &Counter{Name: r.Counter}
		}
		if r.HasValue {
			sums[r.Counter].Value += r.Value
		}
		sums[r.Counter].Dispatches++
	}
	for _, name := range pass.Counters {
		if s := sums[name]; s != nil {
			pass.Values = append(pass.Values, *s)
		}
	}
	switch {
	case len(pass.Values) > 0:
		return pass, nil
	case report.Primary != nil:
		return pass, d.named(report.Primary, st)
	case st.Exit == nil || !st.Exit.OK():
		return pass, d.unnamed(st)
	}
	return pass, d.fail(envelope.NoArtifact, envelope.Facts{
		Message:  "the counter pass ended well and wrote no row of the traced launch group",
		Evidence: envelope.Evidence{Log: logURI(d.run.ID, st.Name), Phase: d.run.Phase},
	})
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
