package triage

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/diagnose"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

// Directory is what lies in a folder of traces, by whomever it was captured.
type Directory struct {
	Path string `json:"path"`
	// ATTFiles counts raw traces, HeaderOnly those of them that hold no more than a header.
	ATTFiles   int        `json:"att_files"`
	HeaderOnly int        `json:"header_only"`
	Dispatches []Dispatch `json:"dispatches" jsonschema_description:"Dispatch directories by number."`
	// Launches are what the kernel traces beside them list.
	Launches []LaunchSummary `json:"launches,omitempty"`
	// Cause explains why there is no trace; absent where there is one.
	Cause *Cause `json:"cause,omitempty"`
	logs  rocprof.Report
	all   []rocprof.Launch
}

// Asked is what a capture had asked the profiler for, as far as it is known.
type Asked struct {
	// Kernel is the symbol, Iter the launches, GPUIndex rocprofv3's number of the GPU.
	Kernel   string
	Iter     rocprof.IterSet
	GPUIndex *int
}

// Dispatch is one dispatch directory and its verdict.
type Dispatch struct {
	Dir       string           `json:"dir"`
	State     string           `json:"state" jsonschema:"enum=kept,enum=empty,enum=corrupt"`
	Kernels   []string         `json:"kernels,omitempty"`
	Waves     int              `json:"waves"`
	Ins       int              `json:"ins"`
	MappedPct *float64         `json:"mapped_pct,omitempty"`
	TopStall  string           `json:"top_stall_type,omitempty"`
	BusyCUs   map[string][]int `json:"busy_cus,omitempty" jsonschema_description:"Shader engine to CUs that had waves."`
	What      string           `json:"what,omitempty" jsonschema_description:"Why it is empty or corrupt."`
	Warnings  []Caveat         `json:"warnings,omitempty"`
	busy      map[int][]int
}

// LaunchSummary is one launched kernel with one grid.
type LaunchSummary struct {
	Kernel     string `json:"kernel"`
	Group      string `json:"group"`
	Workgroups int64  `json:"workgroups"`
	Launches   int    `json:"launches"`
}

const (
	maxDispatches = 24
	maxLaunches   = 12
	maxLogs       = 16
	maxLogBytes   = 16 << 20
)

// path answers for a directory on this host.
func (s Service) path(ctx context.Context, in request.Triage) (reply, error) {
	dir, err := s.Resolve("path", in.Path)
	if err != nil {
		return reply{}, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return reply{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("%.300s is no directory", in.Path),
			Evidence: envelope.Evidence{Field: "path", Value: in.Path, Allowed: "a ui_output directory, a folder that holds some, or a run's directory"},
		})
	}
	found, err := Look(ctx, dir, Asked{Kernel: in.Kernel})
	if err != nil {
		return reply{}, err
	}
	data := Data{Source: "path", Causes: []Cause{}, Directory: found, Caveats: caveats(found.logs)}
	kept := 0
	for _, d := range found.Dispatches {
		if d.State == att.Kept {
			kept++
		}
	}
	switch {
	case kept > 0:
		data.Summary = fmt.Sprintf("%d of %d dispatch directories hold a trace", kept, len(found.Dispatches))
		return reply{Data: &data}, nil
	case found.logs.Primary != nil:
		p := found.logs.Primary
		data.Code, data.Summary = p.Code, p.Message
		data.Causes = append(data.Causes, causeOf(p))
	case found.Cause != nil:
		data.Code, data.Summary = found.Cause.Code, found.Cause.Cause
	}
	if found.Cause != nil {
		data.Causes = append(data.Causes, *found.Cause)
	}
	return answer(data, in, found.facts(in, data.Summary)), nil
}

// facts are what the next actions are made of: a CU that was busy is the computed argument.
func (d *Directory) facts(in request.Triage, message string) envelope.Facts {
	f := envelope.Facts{Message: message, Request: captureOf(in)}
	if f.Request == nil {
		return f
	}
	for _, x := range d.Dispatches {
		if cu, engines := att.BusiestCU(x.busy); engines > 0 {
			r := *f.Request
			r.ATTTargetCU, r.ATTShaderEngineMask = &cu, "0xffffffff"
			f.Suggestions = []envelope.Action{{Kind: envelope.CallTool, Args: r, Confidence: envelope.Medium,
				Reason: fmt.Sprintf("traces CU %d, which had waves in %d shader engines of %s, on all of them", cu, engines, x.Dir)}}
			break
		}
	}
	return f
}

// Look reads a folder: its dispatch directories, raw traces, kernel traces and logs. Of a run's directory it reads what the traces
// left, not the discovery, whose launches are of another process. NO_ARTIFACT where there is none of them.
func Look(ctx context.Context, dir string, asked Asked) (*Directory, error) {
	traces, logs := dir, findLogs(dir)
	if own := findFiles(dir, "logs/att_*.log"); len(own) > 0 {
		traces, logs = filepath.Join(dir, "att"), own
	}
	files, err := rocprof.FindOutputs(traces)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(dir), err)
	}
	dirs, err := att.FindDispatches(traces)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(dir), err)
	}
	if len(dirs) == 0 {
		if _, err := os.Stat(filepath.Join(dir, "code.json")); err == nil {
			dirs = []string{dir} // a dispatch directory under a name of somebody's own
		}
	}
	d := &Directory{Path: dir, ATTFiles: len(files.ATTFiles), Dispatches: []Dispatch{}}
	for _, f := range files.ATTFiles {
		if f.HeaderOnly() {
			d.HeaderOnly++
		}
	}
	for _, one := range dirs[:min(len(dirs), maxDispatches)] {
		d.Dispatches = append(d.Dispatches, look(ctx, dir, one, asked.Kernel))
	}
	d.launches(files)
	d.logs = classify(logs)
	if len(dirs) == 0 && len(files.ATTFiles) == 0 && len(files.KernelTraces) == 0 && len(logs) == 0 {
		return nil, envelope.Build(envelope.NoArtifact, envelope.Facts{
			Message:  fmt.Sprintf("%s holds no trace, no kernel trace and no log", dir),
			Evidence: envelope.Evidence{Path: dir, Needed: "ui_output_agent_* directories, .att files, *_kernel_trace.csv or logs"},
		})
	}
	d.Cause = d.cause(files, asked)
	return d, nil
}

func look(ctx context.Context, root, dir, kernel string) Dispatch {
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." {
		rel = filepath.Base(dir)
	}
	out := Dispatch{Dir: filepath.ToSlash(rel), State: att.Bad}
	one, err := att.Open(ctx, dir, att.Options{ReadWaves: true})
	if err != nil {
		out.What = envelope.As(err).Message
		return out
	}
	v := one.Verdict(kernel)
	out.State, out.Waves, out.Ins, out.MappedPct, out.TopStall = v.State, v.Waves, v.Ins, v.MappedPct, v.TopStallType
	out.Kernels = one.Code.Kernels()
	if len(out.Kernels) == 0 {
		out.Kernels = one.Occupancy.Kernels()
	}
	out.Kernels = out.Kernels[:min(len(out.Kernels), 4)]
	for _, w := range one.Warnings {
		out.Warnings = append(out.Warnings, Caveat{ID: w.Code, Message: w.Message})
	}
	if v.Err != nil {
		out.What = envelope.As(v.Err).Message
	}
	if v.State == att.Empty {
		out.busy, out.BusyCUs = one.Occupancy.BusyCUs(""), map[string][]int{}
		for se, cus := range out.busy {
			out.BusyCUs[fmt.Sprint(se)] = cus
		}
	}
	return out
}

// launches sums up the kernel traces beside the dispatch directories.
func (d *Directory) launches(files rocprof.Outputs) {
	for _, path := range files.KernelTraces {
		for _, l := range readAll([]string{path}, rocprof.ReadKernelTrace) {
			l.Process = filepath.Base(path)
			d.all = append(d.all, l)
		}
	}
	inv := rocprof.NewInventory(d.all)
	for _, k := range inv.Kernels() {
		for _, g := range inv.Groups(k.Name) {
			if len(d.Launches) < maxLaunches {
				d.Launches = append(d.Launches, LaunchSummary{Kernel: k.Name, Group: g.ID, Workgroups: g.Workgroups, Launches: g.Launches})
			}
		}
	}
}

// cause explains a folder without a trace by what lies in it; nil where there is a trace.
func (d *Directory) cause(files rocprof.Outputs, asked Asked) *Cause {
	f := diagnose.Facts{
		Files: files, Launches: d.all, Agents: readAll(files.AgentInfos, rocprof.ReadAgentInfo), Log: d.logs,
		Kernel: asked.Kernel, Iter: asked.Iter, GPUIndex: asked.GPUIndex,
	}
	for _, x := range d.Dispatches {
		f.Dispatches = append(f.Dispatches, diagnose.Dispatch{Dir: x.Dir, State: x.State, What: x.What, Ins: x.Ins, Holds: x.Kernels, Busy: x.busy})
	}
	found := diagnose.Empty(f)
	if found == nil {
		return nil
	}
	return &Cause{Code: found.Code, Kind: found.Kind, Cause: found.Cause, Confidence: found.Confidence, Evidence: found.Evidence, Do: found.Do}
}

// readAll reads CSV files one after the other; those that cannot be read are passed over.
func readAll[T any](paths []string, read func(io.Reader) ([]T, error)) []T {
	var all []T
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		part, err := read(f)
		f.Close()
		if err == nil {
			all = append(all, part...)
		}
	}
	return all
}

// findLogs lists log files in the folder and its logs folder.
func findLogs(dir string) []string {
	return findFiles(dir, "*.log", "*.txt", "*stderr*", "*stdout*", "logs/*.log")
}

// findFiles lists regular files by patterns below the folder, each once and at most maxLogs.
func findFiles(dir string, patterns ...string) []string {
	var out []string
	for _, pattern := range patterns {
		list, _ := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		for _, path := range list {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && len(out) < maxLogs && !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

var globChars = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)

func escapeGlob(dir string) string {
	if os.PathSeparator == '\\' {
		return dir // no escapes there
	}
	return globChars.Replace(dir)
}

// classify joins what the logs say; the first failure in the table's order counts.
func classify(logs []string) rocprof.Report {
	var readers []io.Reader
	for _, path := range logs {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		defer f.Close()
		readers = append(readers, io.LimitReader(f, maxLogBytes), strings.NewReader("\n"))
	}
	return rocprof.Classify(io.MultiReader(readers...))
}
