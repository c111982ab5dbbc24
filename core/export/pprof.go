package export

import (
	"context"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// writePprof writes a profile whose samples are the executed instructions: the kernel at the root, then the places of the inline chain,
// the outermost first, then the instruction. Its values are stall (shown by default), latency and idle in cycles, and hitcount.
func writePprof(ctx context.Context, w io.Writer, dir string, about About) error {
	d, err := kept(ctx, dir, about, att.Options{})
	if err != nil {
		return err
	}
	b := builder{functions: map[string]*profile.Function{}, places: map[string]*profile.Location{}, mappings: map[int64]*profile.Mapping{}, p: &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "stall", Unit: "cycles"}, {Type: "latency", Unit: "cycles"}, {Type: "idle", Unit: "cycles"}, {Type: "hitcount", Unit: "count"}},
		DefaultSampleType: "stall",
		Comments:          comments(d, about),
	}}
	kernel := ""
	for _, r := range d.Code.KernelRows(about.Kernel) {
		if r.Header() {
			kernel = kernelName(r)
			continue
		}
		if r.Instruction() && r.Hit > 0 {
			b.add(r, kernel)
		}
	}
	if err := b.p.CheckValid(); err != nil {
		return fmt.Errorf("the profile does not hold together: %w", err)
	}
	return b.p.Write(w)
}

// kernelName is the demangled name, which stands where other rows have their source.
func kernelName(r att.Row) string {
	if r.Source != "" {
		return r.Source
	}
	return r.Kernel()
}

func comments(d *att.Dispatch, about About) []string {
	out := []string{"rocprofv3 thread trace: cycles of the shader clock, summed over the traced waves of one CU in each traced shader engine"}
	if about.Run != "" {
		out = append(out, "run "+about.Run)
	}
	if about.Arch != "" {
		out = append(out, "arch "+about.Arch)
	}
	if about.Simulated {
		out = append(out, "SIMULATED: every figure is invented")
	}
	for _, warning := range d.Warnings {
		out = append(out, warning.Code+": "+warning.Message)
	}
	return out
}

type builder struct {
	p         *profile.Profile
	functions map[string]*profile.Function
	places    map[string]*profile.Location
	mappings  map[int64]*profile.Mapping
}

func (b *builder) add(r att.Row, kernel string) {
	m := b.mapping(r)
	chain := places(r.Source)
	where := place{}
	if len(chain) > 0 {
		where = chain[0]
	}
	// The instruction itself is a location of its own, at its address.
	leaf := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: m, Address: uint64(max(r.Vaddr, 0)), Line: []profile.Line{{Function: b.function(r.ISA, where.file), Line: where.line}}}
	b.p.Location = append(b.p.Location, leaf)
	stack := []*profile.Location{leaf}
	for _, p := range chain {
		stack = append(stack, b.place(m, p.String(), p))
	}
	if kernel != "" {
		stack = append(stack, b.place(m, kernel, place{}))
	}
	b.p.Sample = append(b.p.Sample, &profile.Sample{Location: stack, Value: []int64{r.Stall, r.Latency, r.Idle, r.Hit}, Label: map[string][]string{"class": {isa.Parse(r.ISA).Kind()}}})
}

// mapping is the code object; its range grows with the addresses.
func (b *builder) mapping(r att.Row) *profile.Mapping {
	m := b.mappings[r.Codeobj]
	at := uint64(max(r.Vaddr, 0))
	if m == nil {
		m = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), Start: at, File: fmt.Sprintf("codeobj_%d", r.Codeobj), HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
		b.mappings[r.Codeobj], b.p.Mapping = m, append(b.p.Mapping, m)
	}
	m.Start, m.Limit = min(m.Start, at), max(m.Limit, at+maxInstructionBytes)
	return m
}

// maxInstructionBytes is the longest instruction of these GPUs.
const maxInstructionBytes = 16

// place is a location that several instructions share.
func (b *builder) place(m *profile.Mapping, name string, p place) *profile.Location {
	key := fmt.Sprintf("%d\x00%s", m.ID, name)
	l := b.places[key]
	if l == nil {
		l = &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: m, Line: []profile.Line{{Function: b.function(name, p.file), Line: p.line}}}
		b.places[key], b.p.Location = l, append(b.p.Location, l)
	}
	return l
}

func (b *builder) function(name, file string) *profile.Function {
	key := name + "\x00" + file
	f := b.functions[key]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[key], b.p.Function = f, append(b.p.Function, f)
	}
	return f
}

// place is a line of a source file.
type place struct {
	file string
	line int64
}

// String names it shortly; files of one name differ by their path in the function's file.
func (p place) String() string {
	name := path.Base(strings.ReplaceAll(p.file, `\`, "/"))
	if p.line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, p.line)
}

// places reads a chain "a.py:1 -> b.py:2", the innermost first. What has no number has line 0.
func places(source string) []place {
	if source == "" {
		return nil
	}
	var out []place
	for part := range strings.SplitSeq(source, " -> ") {
		p := place{file: strings.TrimSpace(part)}
		if i := strings.LastIndexByte(p.file, ':'); i > 0 {
			if n, err := strconv.ParseInt(p.file[i+1:], 10, 64); err == nil && n >= 0 && n < math.MaxInt32 {
				p = place{p.file[:i], n}
			}
		}
		if p.file != "" {
			out = append(out, p)
		}
	}
	return out
}
