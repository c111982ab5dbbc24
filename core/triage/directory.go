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
	found, err := Look(ctx, dir, in.Kernel)
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

// Look reads a folder: its dispatch directories, raw traces, kernel traces and logs. NO_ARTIFACT where it holds none of them.
func Look(ctx context.Context, dir, kernel string) (*Directory, error) {
	files, err := rocprof.FindOutputs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(dir), err)
	}
	dirs, err := att.FindDispatches(dir)
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
		d.Dispatches = append(d.Dispatches, look(ctx, dir, one, kernel))
	}
	d.launches(files)
	logs := findLogs(dir)
	d.logs = classify(logs)
	if len(dirs) == 0 && len(files.ATTFiles) == 0 && len(files.KernelTraces) == 0 && len(logs) == 0 {
		return nil, envelope.Build(envelope.NoArtifact, envelope.Facts{
			Message:  fmt.Sprintf("%s holds no trace, no kernel trace and no log", dir),
			Evidence: envelope.Evidence{Path: dir, Needed: "ui_output_agent_* directories, .att files, *_kernel_trace.csv or logs"},
		})
	}
	d.Cause = d.cause(kernel)
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
	var all []rocprof.Launch
	for _, path := range files.KernelTraces {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		part, err := rocprof.ReadKernelTrace(f)
		f.Close()
		if err != nil {
			continue
		}
		for _, l := range part {
			l.Process = filepath.Base(path)
			all = append(all, l)
		}
	}
	inv := rocprof.NewInventory(all)
	for _, k := range inv.Kernels() {
		for _, g := range inv.Groups(k.Name) {
			if len(d.Launches) < maxLaunches {
				d.Launches = append(d.Launches, LaunchSummary{Kernel: k.Name, Group: g.ID, Workgroups: g.Workgroups, Launches: g.Launches})
			}
		}
	}
}

// cause explains a folder without a trace by what lies in it; nil where there is a trace.
func (d *Directory) cause(kernel string) *Cause {
	var empty, bad *Dispatch
	for i := range d.Dispatches {
		switch x := &d.Dispatches[i]; x.State {
		case att.Kept:
			return nil
		case att.Empty:
			if empty == nil || len(x.BusyCUs) > len(empty.BusyCUs) {
				empty = x
			}
		default:
			bad = x
		}
	}
	raw := fmt.Sprintf("%d .att files, %d of them of header size", d.ATTFiles, d.HeaderOnly)
	switch {
	case empty != nil && empty.Ins > 0 && kernel != "":
		return &Cause{Code: envelope.EmptyATT, Cause: empty.What, Confidence: envelope.High, Evidence: []string{empty.Dir + "/code.json"}, Do: "anchor the name filter, or ask for the kernel that the trace holds"}
	case empty != nil && len(empty.BusyCUs) > 0:
		return &Cause{Code: envelope.EmptyATT, Cause: "the kernel ran, and none of its workgroups on the traced CU", Confidence: envelope.High,
			Evidence: []string{fmt.Sprintf(`%s/code.json has "code":null`, empty.Dir), fmt.Sprintf("%s/occupancy.json has waves on %d shader engines, on other CUs", empty.Dir, len(empty.BusyCUs)), d.grid()},
			Do:       "enlarge the leading dimension so that the grid reaches every CU, or trace a CU that had work over all shader engines"}
	case empty != nil:
		return &Cause{Code: envelope.EmptyATT, Cause: "nothing ran on the traced shader engines while the trace was armed", Confidence: envelope.Medium,
			Evidence: []string{empty.Dir + "/occupancy.json has no wave, or is not there", raw, d.grid()}, Do: "trace shader engines of every XCD (att_shader_engine_mask 0x11111111 or 0xffffffff), and check that the traced GPU is the one that ran the kernel"}
	case bad != nil:
		return &Cause{Code: envelope.TraceCorrupt, Cause: bad.What, Confidence: envelope.High, Evidence: []string{bad.Dir}, Do: "capture again; report the damage if it comes back"}
	case d.ATTFiles > 0 && d.HeaderOnly == d.ATTFiles:
		return &Cause{Code: envelope.EmptyATT, Cause: "the traced shader engines were idle, or another GPU than the one that ran the kernel was traced", Confidence: envelope.High, Evidence: []string{raw}, Do: "check att_gpu_index: it counts all GPUs of the driver, whatever the visible-devices masks say"}
	case d.ATTFiles > 0:
		return &Cause{Code: envelope.DecoderMissing, Cause: "the kernel was traced and the trace was not decoded", Confidence: envelope.High, Evidence: []string{raw, "no ui_output directory"}, Do: "install the trace decoder for rocprofv3, or set its directory, and capture again"}
	case len(d.Launches) > 0:
		return &Cause{Code: envelope.EmptyATT, Cause: "kernels were launched and none was selected for a trace: the launch number never came, or the name did not match", Confidence: envelope.Medium, Evidence: []string{"no .att file", d.grid()}, Do: "take a launch that the list of launches has, counted from 1 within its kernel id"}
	}
	return nil
}

// grid says what the kernel traces list, for evidence.
func (d *Directory) grid() string {
	if len(d.Launches) == 0 {
		return "no kernel trace lies beside it, so the size of the grid is not known"
	}
	var list []string
	for _, l := range d.Launches[:min(len(d.Launches), 3)] {
		list = append(list, fmt.Sprintf("%.80s: %d launches of %d workgroups", l.Kernel, l.Launches, l.Workgroups))
	}
	return strings.Join(list, "; ")
}

// findLogs lists log files in the folder and its logs folder.
func findLogs(dir string) []string {
	var out []string
	for _, pattern := range []string{"*.log", "*.txt", "*stderr*", "*stdout*", "logs/*.log"} {
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
