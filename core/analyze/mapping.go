package analyze

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// MapQuery chooses instructions; what is set must fit, together.
type MapQuery struct {
	// CodeLine is an instruction's LineNumber.
	CodeLine *int64
	// SourceLine is "file", "file:12", "file:10-20", "12" or "10-20". A file is a whole path or its last elements; any place of an inline
	// chain may be meant.
	SourceLine string
	// Address is a virtual address, in hexadecimal with 0x or decimal.
	Address string
	// Class is a class, a counter of waits, or a group (isa.Filters).
	Class string
	// Limit and Offset cut a page; a limit of 0 is DefaultLimit.
	Limit, Offset int
}

// Map says which instructions belong to which source lines.
type Map struct {
	Trace Info `json:"trace"`
	// Total counts the instructions that fit, Totals sums them up; Instructions is a page of them in the order of the code.
	Total        int           `json:"total"`
	Totals       att.Totals    `json:"totals"`
	StallPct     *float64      `json:"stall_pct,omitempty" jsonschema_description:"Of all stall."`
	Offset       int           `json:"offset,omitempty"`
	Instructions []Instruction `json:"instructions"`
	// Lines sums what fits up by the place that fits, most stall first; at most DefaultLimit of LinesTotal.
	Lines      []LineSums `json:"lines"`
	LinesTotal int        `json:"lines_total"`
	// Files are the source files that fit, or all where none does; at most 24 of FilesTotal.
	Files      []FileSums `json:"files"`
	FilesTotal int        `json:"files_total"`
	// Nearest are the lines of the file that have instructions, where the ones that were asked for have none.
	Nearest []int `json:"nearest,omitempty"`
	// Snippet is the source around the lines that were asked for, where they are of one file.
	Snippet *Snippet `json:"snippet,omitempty"`
}

// FileSums is a source file that instructions come from.
type FileSums struct {
	File string `json:"file"`
	// Match is how the path fits the one that was asked for, absent where none was.
	Match string `json:"match,omitempty" jsonschema:"enum=exact,enum=suffix"`
	Ins   int    `json:"ins"`
	Stall int64  `json:"stall"`
	// Snapshot says that the trace has a copy of the file.
	Snapshot bool `json:"snapshot"`
}

const (
	maxShownFiles   = 24
	maxShownNearest = 12
	snippetAround   = 3
)

// filter is a query that was understood.
type filter struct {
	codeLine *int64
	source   *sourceFilter
	address  *int64
	class    string
}

func (q MapQuery) filter() (filter, error) {
	f := filter{codeLine: q.CodeLine, class: q.Class}
	if q.SourceLine != "" {
		s, err := parseSource(q.SourceLine)
		if err != nil {
			return f, err
		}
		f.source = &s
	}
	if q.Address != "" {
		n, err := strconv.ParseInt(strings.TrimSpace(q.Address), 0, 64)
		if err != nil || n < 0 {
			return f, badArg("address", q.Address, "an address such as 0x1740")
		}
		f.address = &n
	}
	if q.Class != "" && !slices.Contains(isa.Filters(), q.Class) {
		return f, badArg("class", q.Class, strings.Join(isa.Filters(), ", "))
	}
	return f, nil
}

// fits says whether an instruction is meant; at is the place that fits, the innermost where no source was asked for.
func (f filter) fits(r row) (at Frame, ok bool) {
	if len(r.frames) > 0 {
		at = r.frames[0]
	}
	switch {
	case f.codeLine != nil && r.Line != *f.codeLine, f.address != nil && r.Vaddr != *f.address, f.class != "" && !r.Is(f.class):
		return at, false
	case f.source == nil:
		return at, true
	}
	for _, frame := range r.frames {
		if _, ok := f.source.match(frame); ok {
			return frame, true
		}
	}
	return at, false
}

// Map finds the instructions that fit a query. The error is BAD_ARGS for a query that cannot be understood; one that nothing fits is answered
// with what there is.
func (t *Trace) Map(ctx context.Context, q MapQuery) (Map, error) {
	f, err := q.filter()
	if err != nil {
		return Map{}, err
	}
	m := Map{Trace: t.info, Offset: max(q.Offset, 0), Instructions: []Instruction{}, Lines: []LineSums{}, Files: []FileSums{}}
	byPlace, fitting := map[Frame]*LineSums{}, []int{}
	for i, r := range t.rows {
		at, ok := f.fits(r)
		if !ok {
			continue
		}
		fitting = append(fitting, i)
		m.Totals.Add(r.Totals())
		addLine(byPlace, at, r)
	}
	m.Total, m.StallPct = len(fitting), pct(m.Totals.Stall, t.totals.Stall)
	slices.SortFunc(fitting, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.rows[a].Vaddr, t.rows[b].Vaddr), cmp.Compare(t.rows[a].Line, t.rows[b].Line))
	})
	for _, at := range page(fitting, q.Offset, limitOf(q.Limit)) {
		m.Instructions = append(m.Instructions, t.instruction(ctx, at))
	}
	lines := t.ranked(byPlace)
	m.LinesTotal = len(lines)
	m.Lines = t.withText(ctx, page(lines, 0, DefaultLimit))
	t.addFiles(&m, f, byPlace)
	t.addSnippet(ctx, &m, f)
	return m, ctx.Err()
}

// addFiles lists the files that fit; where nothing does, those that fit but for the line, or all.
func (t *Trace) addFiles(m *Map, f filter, fitting map[Frame]*LineSums) {
	anyLine := filter{}
	if f.source != nil {
		anyLine.source = &sourceFilter{file: f.source.file}
	}
	files, nearest := map[string]*FileSums{}, map[int]bool{}
	add := func(of Frame, ins int, stall int64) {
		file := files[of.File]
		if file == nil {
			file = &FileSums{File: of.File, Snapshot: t.hasSnapshot(of.File)}
			if f.source != nil && f.source.file != "" {
				file.Match, _ = anyLine.source.match(of)
			}
			files[of.File] = file
		}
		file.Ins += ins
		file.Stall = plus(file.Stall, stall)
	}
	for at, l := range fitting {
		add(at, l.Ins, l.Stall)
	}
	if len(fitting) == 0 && f.source != nil {
		for _, r := range t.rows {
			if at, ok := anyLine.fits(r); ok && at.File != "" {
				add(at, 1, r.Stall)
				nearest[at.Line] = true
			}
		}
		if len(files) == 1 && f.source.from > 0 {
			m.Nearest = near(nearest, f.source.from)
		}
	}
	if len(files) == 0 {
		for _, r := range t.rows {
			for _, at := range r.frames {
				add(at, 1, r.Stall)
			}
		}
	}
	delete(files, "")
	all := []FileSums{}
	for _, file := range files {
		all = append(all, *file)
	}
	slices.SortFunc(all, func(a, b FileSums) int { return cmp.Or(cmp.Compare(b.Stall, a.Stall), cmp.Compare(a.File, b.File)) })
	m.FilesTotal = len(all)
	m.Files = page(all, 0, maxShownFiles)
}

// near are the lines that lie closest, in order.
func near(lines map[int]bool, to int) []int {
	var out []int
	for n := range lines {
		if n > 0 {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(abs(a-to), abs(b-to)), cmp.Compare(a, b)) })
	out = page(out, 0, maxShownNearest)
	slices.Sort(out)
	return out
}

func abs(n int) int { return max(n, -n) }

// addSnippet shows the source around what was asked for: the lines that were named, or those of the instructions, where one file fits.
func (t *Trace) addSnippet(ctx context.Context, m *Map, f filter) {
	if len(m.Files) != 1 || f == (filter{}) {
		return
	}
	from, to := 0, 0
	if f.source != nil {
		from, to = f.source.from, f.source.to
	}
	if from == 0 && len(m.Lines) == 1 {
		from, to = m.Lines[0].Line, m.Lines[0].Line
	}
	if from == 0 {
		return
	}
	s := t.snippet(ctx, m.Files[0].File, from, to, snippetAround)
	m.Snippet = &s
}

func (t *Trace) hasSnapshot(file string) bool {
	return slices.ContainsFunc(t.dispatch.Snapshots, func(s att.Snapshot) bool { return pathMatch(s.Path, file) == MatchExact })
}

// address is a virtual address as it is shown.
func address(at int64) string { return fmt.Sprintf("0x%x", at) }
