// Package analyze says why a traced kernel is slow: where its waves stall and for what, how instructions and source lines belong
// together, what its counters show, and what changed between two traces.
//
// Open reads a dispatch directory once; Bubbles, Map and Diff then compute from what was read. Sums are 64-bit integers of shader
// clock cycles over the traced waves (see att.Totals); a share is computed once, from the final sums. Lists are cut to a page and carry the
// number of all; their order is fixed, equal entries stand by address.
package analyze

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// Codes of the warnings that an analysis adds to those of att.
const (
	WarnEdgesCut       = "WAIT_EDGES_CUT"       // more pairs of waits and waited-for instructions than are kept
	WarnOccupancyCut   = "OCCUPANCY_CUT"        // occupancy.json has more waves than are kept
	WarnOccupancyTorn  = "OCCUPANCY_INCOMPLETE" // waves without a begin or an end
	WarnSeveralObjects = "SEVERAL_CODE_OBJECTS" // instructions of other code objects ran too and are not in the sums
	WarnUnresolved     = "UNRESOLVED_ADDRESSES" // instructions whose address could not be resolved ran too
	WarnNoEdges        = "NO_WAIT_EDGES"        // the trace does not say what waits waited for
)

// Options say what a trace is analysed as.
type Options struct {
	// Kernel is the traced symbol; empty for whatever ran.
	Kernel string
	// Arch is the architecture such as "gfx950", empty where it is not known: the files tell the generation only.
	Arch string
	// Read bounds what is read; ReadWaves and Observe are set by Open.
	Read att.Options
}

// Trace is a dispatch directory that was read for analysis. It does not change, and may be used by several goroutines.
type Trace struct {
	info    Info
	totals  att.Totals
	rows    []row
	waves   []Wave
	objects []CodeObject
	// fromEvents is the residency by occupancy.json, fromWaves by the traced waves; nil where there is none.
	fromEvents, fromWaves *Residency
	warnings              []envelope.Warning
	dispatch              *att.Dispatch
	sources               sources
}

// row is one instruction of the analysed code object.
type row struct {
	att.Row
	isa.Instruction
	// frames are the places of Source, the innermost first.
	frames []Frame
	// waits divides Stall of a wait; targets are the instructions that it waited for, most often first.
	waits   []waitShare
	targets []target
}

// target is an instruction that a wait waited for.
type target struct {
	row   int // in Trace.rows, -1 for an instruction of another code object
	count int64
}

// Info says what was analysed.
type Info struct {
	// Path is the dispatch directory's name, Kernel the traced symbol ("" where no header names one).
	Path   string `json:"path" jsonschema_description:"Name of the dispatch directory."`
	Kernel string `json:"kernel,omitempty"`
	// Codeobj is the id of the code object whose instructions are counted.
	Codeobj int64  `json:"codeobj"`
	Version string `json:"version,omitempty" jsonschema_description:"Version of the trace's format."`
	GfxIP   int64  `json:"gfxip,omitempty" jsonschema_description:"Generation of the GPU."`
	Arch    string `json:"arch,omitempty"`
	// Ins counts the instruction rows, Mapped those with a source line; the shares are the same weighted by 1 and by latency.
	Ins              int      `json:"ins"`
	Mapped           int      `json:"mapped"`
	MappedPct        *float64 `json:"mapped_pct,omitempty"`
	MappedLatencyPct *float64 `json:"mapped_latency_pct,omitempty" jsonschema_description:"The same weighted by latency."`
	// Waves are the traced waves that are listed, WavesRead those whose files were read whole.
	Waves     int `json:"waves"`
	WavesRead int `json:"waves_read"`
}

// Open reads a dispatch directory with its waves. The error is att.Open's, or that of a trace that holds nothing of the kernel: EMPTY_ATT,
// TRACE_CORRUPT or NO_ARTIFACT. What was lost beside that is a warning that names the file.
func Open(ctx context.Context, dir string, opt Options) (*Trace, error) {
	var observers []*observer
	var shared *observed
	read := opt.Read
	read.ReadWaves = true
	read.Observe = func(d *att.Dispatch) att.WaveObserver {
		if shared == nil {
			shared = observe(d.Code)
		}
		o := newObserver(shared)
		observers = append(observers, o)
		return o
	}
	d, err := att.Open(ctx, dir, read)
	if err != nil {
		return nil, err
	}
	v := d.Verdict(opt.Kernel)
	if v.Err != nil {
		return nil, v.Err
	}
	if n := len(d.Code.Rows); n > maxRows {
		return nil, envelope.Build(envelope.TraceCorrupt, envelope.Facts{
			Message:  fmt.Sprintf("code.json of %s has %d rows; at most %d are analysed", filepath.Base(dir), n, maxRows),
			Evidence: envelope.Evidence{Path: filepath.Join(filepath.Base(dir), "code.json"), Found: fmt.Sprintf("%d rows", n)},
		})
	}
	t := newTrace(d, v, merge(observers), opt)
	if err := t.readOccupancy(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// maxRows bounds the rows that are analysed: 400 MB. Kernels of more than 20,000 have not been seen.
const maxRows = 1 << 20

// newTrace puts together what was read.
func newTrace(d *att.Dispatch, v att.Verdict, seen observation, opt Options) *Trace {
	all := d.Code.KernelRows(opt.Kernel)
	t := &Trace{dispatch: d, totals: v.Totals, waves: seen.waves, warnings: slices.Clone(d.Warnings)}
	t.info = Info{
		Path: filepath.Base(d.Dir), Kernel: kernelOf(all, opt.Kernel), Version: d.Version, GfxIP: d.GfxIP, Arch: opt.Arch,
		Ins: v.Ins, Mapped: v.Mapped, MappedPct: v.MappedPct, MappedLatencyPct: v.MappedLatencyPct,
		Waves: v.Waves, WavesRead: len(seen.waves),
	}
	if len(all) > 0 {
		t.info.Codeobj = all[0].Codeobj
	}
	t.addRows(seen)
	t.addObjects()
	t.fromWaves = residencyOfWaves(t.waves)
	if seen.edgesCut {
		t.warn(WarnEdgesCut, "the trace has more pairs of waits and instructions than are kept; some are not named")
	}
	if stall := t.waitStall(); stall > 0 && len(seen.edges) == 0 && len(seen.waves) > 0 {
		t.warn(WarnNoEdges, "the wave files do not say what waits waited for; the stall of a wait for several counters is divided equally")
	}
	return t
}

func (t *Trace) warn(code, message string) {
	t.warnings = append(t.warnings, envelope.Warning{Code: code, Message: message})
}

// kernelOf is the symbol that the rows of a code object belong to: the one that was asked for, else that of the header below which most was executed.
func kernelOf(rows []att.Row, asked string) string {
	best, name, hits, most := asked, "", int64(0), int64(-1)
	if asked != "" {
		return best
	}
	note := func() {
		if name != "" && hits > most {
			best, most = name, hits
		}
	}
	for _, r := range rows {
		if k := r.Kernel(); k != "" {
			note()
			name, hits = k, 0
		}
		hits = plus(hits, r.Hit)
	}
	note()
	return best
}

// addRows takes the instructions of the code object, with what the waves say of their waits.
func (t *Trace) addRows(seen observation) {
	place := make(map[int]int) // index in Code.Rows to index in t.rows
	paths := map[string][]Frame{}
	for i, r := range t.dispatch.Code.Rows {
		if r.Codeobj != t.info.Codeobj || !r.Instruction() {
			continue
		}
		frames, ok := paths[r.Source]
		if !ok {
			frames = ParseFrames(r.Source)
			paths[r.Source] = frames
		}
		place[i] = len(t.rows)
		t.rows = append(t.rows, row{Row: r, Instruction: isa.Parse(r.ISA), frames: frames})
	}
	for i, at := range place {
		if r := &t.rows[at]; r.Class == isa.Wait {
			r.waits = shareOf(r.Stall, r.Waits, seen.shares[i])
		}
	}
	for pair, count := range seen.edges {
		at, ok := place[pair.wait]
		if !ok {
			continue
		}
		to, ok := place[pair.target]
		if !ok {
			to = -1
		}
		t.rows[at].targets = append(t.rows[at].targets, target{to, count})
	}
	for i := range t.rows {
		slices.SortFunc(t.rows[i].targets, func(a, b target) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.row, b.row)) })
	}
}

// waitStall is the stall of all waits.
func (t *Trace) waitStall() int64 {
	sum := int64(0)
	for _, r := range t.rows {
		if r.Class == isa.Wait {
			sum = plus(sum, r.Stall)
		}
	}
	return sum
}

// CodeObject is what ran of one code object that the trace holds.
type CodeObject struct {
	Codeobj int64    `json:"codeobj"`
	Kernels []string `json:"kernels,omitempty" jsonschema_description:"Names in its header rows; at most four."`
	Ins     int      `json:"ins"`
	att.Totals
	Analysed bool `json:"analysed" jsonschema_description:"Its instructions are the ones that the sums count."`
}

const maxNames = 4

// addObjects sums every code object up, and says when others than the analysed one ran.
func (t *Trace) addObjects() {
	at := map[int64]int{}
	var unresolved att.Totals
	others := 0
	for _, r := range t.dispatch.Code.Rows {
		if r.ISA == "" {
			unresolved.Add(r.Totals())
			continue
		}
		i, ok := at[r.Codeobj]
		if !ok {
			i = len(t.objects)
			at[r.Codeobj] = i
			t.objects = append(t.objects, CodeObject{Codeobj: r.Codeobj, Analysed: r.Codeobj == t.info.Codeobj})
		}
		o := &t.objects[i]
		if k := r.Kernel(); k != "" && len(o.Kernels) < maxNames {
			o.Kernels = append(o.Kernels, k)
		}
		if r.Instruction() {
			o.Ins++
			o.Totals.Add(r.Totals())
		}
	}
	slices.SortFunc(t.objects, func(a, b CodeObject) int { return cmp.Compare(a.Codeobj, b.Codeobj) })
	for _, o := range t.objects {
		if o.Hit > 0 && !o.Analysed {
			others++
		}
	}
	if others > 0 {
		t.warn(WarnSeveralObjects, number(others, "other code object", "other code objects")+" ran in the trace too; their instructions are in no sum")
	}
	if unresolved.Hit > 0 {
		t.warn(WarnUnresolved, "instructions whose address could not be resolved ran too; they are in no sum")
	}
}

// Info says what was analysed.
func (t *Trace) Info() Info { return t.info }

// Warnings are the caveats of the files and of the analysis.
func (t *Trace) Warnings() []envelope.Warning { return slices.Clone(t.warnings) }

// sources are the saved source files, read when they are asked for.
type sources struct {
	mu    sync.Mutex
	lines map[string][]string
	why   map[string]string
	bytes int64
}

// page gives the elements from offset, at most limit of them (all for a limit of 0 or less).
func page[T any](all []T, offset, limit int) []T {
	offset = min(max(offset, 0), len(all))
	rest := all[offset:]
	if limit > 0 && limit < len(rest) {
		rest = rest[:limit]
	}
	return slices.Clone(rest)
}

func trimmed(s string, most int) string {
	s = strings.TrimRight(s, " \t\r\n")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
