package att

import (
	"fmt"
	"io"
	"strings"
)

// Code is code.json.
type Code struct {
	// Null: the file holds no code at all, which is what att-tool writes when it decoded nothing.
	Null bool
	Rows []Row
	// Version is the format's, "3.0.0" or "3.1.0".
	Version string
	// Short is the number of rows that were left out for having too few cells.
	Short int
	// header says whether the file named its columns; extra that they are more than a trace has (PC samples).
	header, extra bool
}

// The columns by name; their place is read off the header.
const (
	colISA = iota
	colLine
	colSource
	colCodeobj
	colVaddr
	colHit
	colLatency
	colStall
	colIdle
	colCount
)

var columnNames = map[string]int{
	"isa": colISA, "linenumber": colLine, "source": colSource, "codeobj": colCodeobj, "vaddr": colVaddr,
	"hit": colHit, "hitcount": colHit, "latency": colLatency, "stall": colStall, "idle": colIdle,
}

// usual is where the columns stand in every file seen so far; it is used when the header comes after the rows, as it does in
// the alphabetical order of the C++ writer, and then checked.
var usual = []int{colISA, -1, colLine, colSource, colCodeobj, colVaddr, colHit, colLatency, colStall, colIdle}

const (
	maxRows    = 4 << 20
	maxColumns = 64
)

// readCode reads code.json in any key order. columns is nil to use the usual ones; when the header says otherwise the error
// is reorder, and the caller reads again.
func readCode(r io.Reader, columns []int) (Code, []int, error) {
	s := newScanner(r)
	code := Code{}
	place := columns
	if place == nil {
		place = usual
	}
	var header []int
	seen := false
	err := s.document(func(key []byte) error {
		switch string(key) {
		case "code":
			if seen {
				return s.fail("the key code stands twice")
			}
			seen = true
			if null, err := s.null(); null || err != nil {
				code.Null = null
				return err
			}
			return s.array(func() error { return code.row(s, place) })
		case "header":
			var err error
			header, err = code.readHeader(s)
			return err
		case "version":
			return optionalText(s, &code.Version)
		}
		return s.skip()
	})
	if err == nil && !seen {
		err = s.fail("the file ends without the key code")
	}
	if header == nil {
		header = place
	}
	return code, header, err
}

func optionalText(s *scanner, into *string) error { return optionalTextAfter(s, into, "") }

func optionalTextAfter(s *scanner, into *string, last string) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	var err error
	*into, err = s.strAfter(last)
	return err
}

// readHeader reads the names of the columns: one string with commas, or an array (PC samples).
func (c *Code) readHeader(s *scanner) ([]int, error) {
	var names []string
	switch s.peek() {
	case 'n':
		_, err := s.null()
		return nil, err
	case '[':
		err := s.array(func() error {
			name, err := s.str()
			names = append(names, name)
			if len(names) > maxColumns {
				return s.fail("more than %d columns", maxColumns)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	default:
		text, err := s.str()
		if err != nil {
			return nil, err
		}
		names = strings.Split(text, ",")
		if len(names) > maxColumns {
			return nil, s.fail("more than %d columns", maxColumns)
		}
	}
	return c.place(s, names)
}

func (c *Code) place(s *scanner, names []string) ([]int, error) {
	c.header = true
	out, found := make([]int, len(names)), 0
	for i, name := range names {
		col, ok := columnNames[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			out[i] = -1
			c.extra = c.extra || strings.HasPrefix(strings.TrimSpace(name), "PC_")
			continue
		}
		out[i] = col
		found |= 1 << col
	}
	if found != 1<<colCount-1 {
		return nil, s.fail("the header %q lacks a column that is needed: ISA, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle", strings.Join(names, ", "))
	}
	return out, nil
}

// row reads one row; one with too few cells is counted and left out.
func (c *Code) row(s *scanner, place []int) error {
	if len(c.Rows) >= maxRows {
		return s.fail("more than %d rows", maxRows)
	}
	var r Row
	n, got, last := 0, 0, ""
	if len(c.Rows) > 0 {
		last = c.Rows[len(c.Rows)-1].Source
	}
	into := [colCount]*int64{colLine: &r.Line, colCodeobj: &r.Codeobj, colVaddr: &r.Vaddr, colHit: &r.Hit, colLatency: &r.Latency, colStall: &r.Stall, colIdle: &r.Idle}
	err := s.array(func() error {
		col := -1
		if n < len(place) {
			col = place[n]
		}
		n++
		if col < 0 {
			return s.skip()
		}
		got |= 1 << col
		switch col {
		case colISA:
			return optionalText(s, &r.ISA)
		case colSource:
			return optionalTextAfter(s, &r.Source, last)
		}
		return optionalInt(s, into[col])
	})
	if err != nil {
		return err
	}
	if got != 1<<colCount-1 {
		c.Short++
		return nil
	}
	if r.Hit < 0 || r.Latency < 0 || r.Stall < 0 || r.Idle < 0 {
		return s.fail("the row of line %d has a negative count", r.Line)
	}
	c.Rows = append(c.Rows, r)
	return nil
}

func optionalInt(s *scanner, into *int64) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	var err error
	*into, err = s.int64()
	return err
}

// KernelRows gives the rows of a kernel's code object. kernel is the symbol; "" or one that no header names gives the rows of
// the code object with most hits, since a trace holds what ran.
func (c Code) KernelRows(kernel string) []Row {
	if len(c.Rows) == 0 {
		return nil
	}
	object, ok := c.objectOf(kernel)
	if !ok {
		object = c.busiestObject(func(int64) bool { return true })
	}
	var out []Row
	for _, r := range c.Rows {
		if r.Codeobj == object && r.ISA != "" {
			out = append(out, r)
		}
	}
	return out
}

// Kernels are the names in the header rows, as mangled and, where it differs, as demangled.
func (c Code) Kernels() []string {
	var out []string
	for _, r := range c.Rows {
		if k := r.Kernel(); k != "" {
			out = append(out, k)
		}
	}
	return out
}

// objectOf finds the code object whose header row names the kernel, mangled or demangled. A module that was loaded twice is
// two code objects with the same kernel: the one that ran is meant.
func (c Code) objectOf(kernel string) (int64, bool) {
	// rocprofv3 has named kernels by their descriptor, "k.kd", which demanglers show as "k(int) [clone .kd]".
	kernel = strings.TrimSuffix(strings.TrimSuffix(kernel, " [clone .kd]"), ".kd")
	if kernel == "" {
		return 0, false
	}
	named := map[int64]bool{}
	for _, r := range c.Rows {
		if r.Header() && (r.Kernel() == kernel || r.Source == kernel || sameName(r.Source, kernel)) {
			named[r.Codeobj] = true
		}
	}
	if len(named) == 0 {
		return 0, false
	}
	return c.busiestObject(func(object int64) bool { return named[object] }), true
}

// sameName compares a demangled signature with a name that may lack its parameter list.
func sameName(signature, name string) bool {
	return signature != "" && strings.HasPrefix(signature, name) && strings.HasPrefix(signature[len(name):], "(")
}

// busiestObject is the code object with the most hits among those that may be it, the one with most rows where none was hit.
func (c Code) busiestObject(may func(object int64) bool) int64 {
	hits, rows := map[int64]int64{}, map[int64]int{}
	for _, r := range c.Rows {
		if r.ISA == "" || !may(r.Codeobj) {
			continue // the unresolved row of 3.1.0 stands for any code object and is none
		}
		hits[r.Codeobj] = satAdd(hits[r.Codeobj], r.Hit)
		rows[r.Codeobj]++
	}
	best, first := int64(0), true
	for object, n := range rows {
		better := hits[object] > hits[best] || hits[object] == hits[best] && (n > rows[best] || n == rows[best] && object < best)
		if first || better {
			best, first = object, false
		}
	}
	return best
}

// Totals are the sums over all rows.
func (c Code) Totals() Totals {
	var t Totals
	for _, r := range c.Rows {
		t.Add(r.Totals())
	}
	return t
}

// names says for messages which kernels the code holds.
func (c Code) names() string {
	list := c.Kernels()
	if len(list) == 0 {
		return "no kernel that it names"
	}
	text := strings.Join(list[:min(len(list), 4)], ", ")
	if len(list) > 4 {
		text += fmt.Sprintf(" and %d more", len(list)-4)
	}
	return text
}
