// Package artifact finds the trace that a caller means: the one that a run kept for a tag, or the one in a directory of somebody's own.
package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Trace is one dispatch directory and what is known of where it is from.
type Trace struct {
	// Dir is the directory, absolute; Name is it for people: relative to the run, or to the path that was asked for.
	Dir, Name string
	// RunID and Tag are empty for a directory that is no run's.
	RunID, Tag string
	// Kernel is the traced symbol, empty where it is not known.
	Kernel, Shape, Arch, Product string
	// RecipeKernel is the kernel as the worktree names it.
	RecipeKernel              string
	Workgroups, WorkgroupSize int64
	AvgNS                     float64
	// MaxWaves are the waves that registers and LDS allow on a CU, Limiter what allows no more; 0 and "" where not known.
	MaxWaves  int64
	Limiter   string
	Simulated bool
	// Counters are the CSV files of performance counters beside the trace, absolute.
	Counters []string
	// Others are further dispatch directories with a trace, by name: which one was meant is the caller's to say.
	Others []string
}

// Finder finds traces.
type Finder struct {
	Store *runs.Store
	// Resolve jails a path that a caller names.
	Resolve func(field, path string) (string, error)
}

// record is what result.json, progress.json and capture.json say of a run, by the public names.
type record struct {
	Kernel       string  `json:"kernel"`
	RecipeKernel string  `json:"recipe_kernel"`
	AvgNS        float64 `json:"avg_ns"`
	Tags         map[string]*struct {
		State   string `json:"state"`
		Shape   string `json:"shape"`
		KeptDir string `json:"kept_dir"`
		Waves   int64  `json:"occupancy_waves_per_cu"`
		Limiter string `json:"occupancy_limiter"`
		Grid    *struct {
			Workgroups    int64 `json:"workgroups"`
			WorkgroupSize int64 `json:"workgroup_size"`
		} `json:"grid"`
	} `json:"tags"`
	PMC []struct {
		CSV []string `json:"csv"`
	} `json:"pmc"`
	PMCCSV     []string `json:"pmc_csv"`
	Provenance *struct {
		Arch      string `json:"arch"`
		Product   string `json:"product"`
		Simulated bool   `json:"simulated"`
	} `json:"provenance"`
}

// Find gives the trace of a run (run_id) or of a directory (path); exactly one is given. tag is "big", "small" or empty for what there is,
// big first.
//
// Errors: BAD_ARGS for none or both, RUN_NOT_FOUND, RUN_NOT_FINISHED, NO_ARTIFACT where there is no trace or not of that tag,
// PATH_NOT_ALLOWED.
func (f Finder) Find(ctx context.Context, runID, path, tag string) (Trace, error) {
	if (runID == "") == (path == "") {
		return Trace{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  "one of run_id and path says which trace is meant",
			Evidence: envelope.Evidence{Field: "run_id", Value: strings.Trim(runID+", "+path, ", "), Allowed: "run_id or path, one of them"},
		})
	}
	if tag != "" && tag != "big" && tag != "small" {
		return Trace{}, envelope.Build(envelope.BadArgs, envelope.Facts{Message: fmt.Sprintf("there is no tag %.40q", tag), Evidence: envelope.Evidence{Field: "tag", Value: tag, Allowed: "big or small", ValidNames: []string{"big", "small"}}})
	}
	if runID != "" {
		return f.ofRun(ctx, runID, tag)
	}
	dir, err := f.Resolve("path", path)
	if err != nil {
		return Trace{}, err
	}
	return inDirectory(ctx, dir, tag)
}

// FindCounters gives what Find does, and for a directory without a trace the counter files in it.
func (f Finder) FindCounters(ctx context.Context, runID, path, tag string) (Trace, error) {
	t, err := f.Find(ctx, runID, path, tag)
	if path == "" || err == nil && len(t.Counters) > 0 || err != nil && envelope.CodeOf(err) != envelope.NoArtifact {
		return t, err
	}
	dir, resolveErr := f.Resolve("path", path)
	if resolveErr != nil {
		return t, resolveErr
	}
	files, findErr := rocprof.FindOutputs(dir)
	if findErr != nil || len(files.Counters) == 0 {
		return t, err
	}
	t.Counters = files.Counters
	if t.Name == "" {
		t.Name = filepath.Base(dir)
	}
	return t, nil
}

func (f Finder) ofRun(ctx context.Context, id, tag string) (Trace, error) {
	r, err := f.Store.Load(id)
	if err != nil {
		return Trace{}, err
	}
	var rec record
	if r.State.Ended() {
		res, err := f.Store.Result(id)
		if err != nil {
			return Trace{}, err
		}
		if len(res.Data) > 0 && json.Unmarshal(res.Data, &rec) != nil {
			return Trace{}, f.Store.Damaged(id, "result.json", "its data are not those of a capture")
		}
	} else if err := f.Store.ReadJSON(id, "progress.json", &rec); err != nil && envelope.CodeOf(err) != envelope.NoArtifact {
		return Trace{}, err
	}
	t, err := rec.trace(ctx, f.Store.Path(id), tag)
	t.RunID = id
	if err == nil || envelope.CodeOf(err) != envelope.NoArtifact {
		return t, err
	}
	if !r.State.Ended() {
		return t, envelope.Build(envelope.RunNotFinished, envelope.Facts{
			Message: fmt.Sprintf("the run goes on (%s, phase %q) and has no such trace yet", r.State, r.Phase), RunID: id, Evidence: envelope.Evidence{RunState: string(r.State), Phase: r.Phase},
		})
	}
	e := envelope.As(err)
	return t, envelope.Build(envelope.NoArtifact, envelope.Facts{
		Message: fmt.Sprintf("run %s: %s", id, e.Message), RunID: id, Evidence: e.Evidence,
		Suggestions: []envelope.Action{{Kind: envelope.CallTool, Args: request.Triage{RunID: id}, Reason: "says why the run has no such trace", Confidence: envelope.High}},
	})
}

// trace is the kept directory of a tag. Directories are those that the run itself names, never the last by name.
func (rec record) trace(_ context.Context, root, tag string) (Trace, error) {
	var have []string
	for _, name := range []string{"big", "small"} {
		if t := rec.Tags[name]; t != nil && t.KeptDir != "" {
			have = append(have, name)
		}
	}
	if tag == "" && len(have) > 0 {
		tag = have[0]
	}
	if !slices.Contains(have, tag) {
		there := "no trace was kept"
		if len(have) > 0 {
			there = "there is one of tag " + strings.Join(have, " and ")
		}
		if tag == "" {
			return Trace{}, missing(root, there)
		}
		return Trace{}, missing(root, fmt.Sprintf("there is no trace of tag %s: %s", tag, there))
	}
	one := rec.Tags[tag]
	dir, ok := inside(root, one.KeptDir)
	if !ok {
		return Trace{}, missing(root, fmt.Sprintf("the record names a directory that is not in it: %.200q", one.KeptDir))
	}
	t := Trace{Dir: dir, Name: relative(root, dir), Tag: tag, Kernel: rec.Kernel, RecipeKernel: rec.RecipeKernel, Shape: one.Shape, AvgNS: rec.AvgNS, MaxWaves: one.Waves, Limiter: one.Limiter}
	if one.Grid != nil {
		t.Workgroups, t.WorkgroupSize = one.Grid.Workgroups, one.Grid.WorkgroupSize
	}
	if rec.Provenance != nil {
		t.Arch, t.Product, t.Simulated = rec.Provenance.Arch, rec.Provenance.Product, rec.Provenance.Simulated
	}
	names := rec.PMCCSV
	for _, p := range rec.PMC {
		names = append(names, p.CSV...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if file, ok := inside(root, name); ok {
			t.Counters = append(t.Counters, file)
		}
	}
	if _, err := os.Stat(filepath.Join(t.Dir, "code.json")); err != nil {
		return t, missing(root, fmt.Sprintf("the trace %s is not there any more", one.KeptDir))
	}
	return t, nil
}

// inside gives a path of a record, relative or absolute, where it is there and in the directory with all links followed.
func inside(root, name string) (string, bool) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", false
	}
	rel, err := filepath.Rel(root, real)
	return filepath.Join(root, rel), err == nil && filepath.IsLocal(rel)
}

func missing(dir, why string) error {
	return envelope.Build(envelope.NoArtifact, envelope.Facts{Message: why, Evidence: envelope.Evidence{Path: dir, Needed: "a kept dispatch directory (ui_output_agent_*_dispatch_*)"}})
}

// maxRecord bounds a capture.json that somebody else wrote.
const maxRecord = 16 << 20

// inDirectory finds the trace in a dispatch directory, a run's directory of this or the public flyprof, or a folder that holds some.
func inDirectory(ctx context.Context, dir, tag string) (Trace, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Trace{}, missing(dir, fmt.Sprintf("%s is no directory", filepath.Base(dir)))
	}
	if _, err := os.Stat(filepath.Join(dir, "code.json")); err == nil {
		return Trace{Dir: dir, Name: filepath.Base(dir)}, nil
	}
	if rec, ok, err := readRecord(filepath.Join(dir, "capture.json")); err != nil {
		return Trace{}, err
	} else if ok {
		return rec.trace(ctx, dir, tag)
	}
	dirs, err := att.FindDispatches(dir)
	if err != nil {
		return Trace{}, fmt.Errorf("%s: %w", filepath.Base(dir), err)
	}
	var kept []string
	best, most := "", -1
	for _, one := range dirs[:min(len(dirs), maxLooked)] {
		d, err := att.Open(ctx, one, att.Options{})
		if err != nil {
			if ctx.Err() != nil {
				return Trace{}, ctx.Err()
			}
			continue
		}
		if v := d.Verdict(""); v.State == att.Kept {
			kept = append(kept, one)
			if v.Waves > most {
				best, most = one, v.Waves
			}
		}
	}
	if best == "" {
		return Trace{}, missing(dir, fmt.Sprintf("none of the %d dispatch directories in %s holds a trace", len(dirs), filepath.Base(dir)))
	}
	t := Trace{Dir: best, Name: relative(dir, best)}
	for _, one := range kept {
		if one != best {
			t.Others = append(t.Others, relative(dir, one))
		}
	}
	return t, nil
}

// maxLooked bounds the dispatch directories of a folder that are opened.
const maxLooked = 64

func relative(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.Base(path)
}

func readRecord(path string) (record, bool, error) {
	var rec record
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, missing(filepath.Dir(path), err.Error())
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return rec, false, missing(filepath.Dir(path), "capture.json is no regular file of a fitting size")
	}
	if err := json.NewDecoder(f).Decode(&rec); err != nil {
		return rec, false, envelope.Build(envelope.TraceCorrupt, envelope.Facts{Message: fmt.Sprintf("capture.json cannot be read: %v", err), Evidence: envelope.Evidence{Path: path}})
	}
	return rec, true, nil
}
