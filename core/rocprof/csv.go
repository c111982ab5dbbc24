package rocprof

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of one CSV file. Half a million launches of a library's kernels take about 200 MB.
const (
	maxCSVBytes = 512 << 20
	maxCSVRows  = 1_000_000
	maxColumns  = 512
)

// column is where a value stands, by the names that it had over the versions. Case does not count: an export of the
// database (rocpd) writes Vgpr_Count or queue_id where rocprofv3 itself writes VGPR_Count and Queue_Id.
type column struct {
	names    []string
	required bool
}

func need(names ...string) column { return column{names, true} }
func may(names ...string) column  { return column{names, false} }

// table reads a CSV file of rocprofv3 by the names in its header, never by position: columns came and went between versions.
type table struct {
	r    *csv.Reader
	in   *limited
	at   []int
	cols []column
	// rows counts up to maxRows.
	rows, maxRows int
	row           []string
	// line is where the row at hand begins, from 1.
	line int
}

// openTable reads the header. It gives nil without an error for an empty file, which rocprofv3 leaves where nothing was
// recorded.
func openTable(r io.Reader, cols []column) (*table, error) {
	in := &limited{r: r, left: maxCSVBytes}
	br := bufio.NewReaderSize(in, 64<<10)
	if bom, _ := br.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3)
	}
	t := &table{r: csv.NewReader(br), in: in, cols: cols, at: make([]int, len(cols)), maxRows: maxCSVRows}
	t.r.FieldsPerRecord, t.r.LazyQuotes, t.r.ReuseRecord = -1, true, true
	header, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, t.fail(err)
	}
	if len(header) > maxColumns {
		return nil, fmt.Errorf("the header has %d columns, more than %d", len(header), maxColumns)
	}
	return t, t.locate(header)
}

func (t *table) locate(header []string) error {
	index := make(map[string]int, len(header))
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := index[name]; !twice {
			index[name] = i
		}
	}
	var missing []string
	for i, c := range t.cols {
		t.at[i] = -1
		for _, name := range c.names {
			if at, ok := index[strings.ToLower(name)]; ok {
				t.at[i] = at
				break
			}
		}
		if t.at[i] < 0 && c.required {
			missing = append(missing, strings.Join(c.names, " or "))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	shown := slices.Clone(header[:min(len(header), 24)])
	for i := range shown {
		shown[i] = cutBytes(strings.ToValidUTF8(shown[i], "\uFFFD"), 40)
	}
	return fmt.Errorf("the header lacks %s; it has %q", strings.Join(missing, ", "), shown)
}

// next moves to the next row and says false at the end. A row that is cut short is an error, but for the last one of a file
// without a final newline: its writer was stopped, and what it wrote before stands.
func (t *table) next() (bool, error) {
	row, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, t.fail(err)
	}
	if t.rows++; t.rows > t.maxRows {
		return false, fmt.Errorf("more than %d rows", t.maxRows)
	}
	t.row = row
	t.line, _ = t.r.FieldPos(0)
	for i, c := range t.cols {
		if !c.required || t.at[i] < len(row) {
			continue
		}
		if t.in.done && t.in.last != '\n' && t.atEnd() {
			return false, nil
		}
		return false, fmt.Errorf("line %d: %d fields and no %s", t.line, len(row), c.names[0])
	}
	return true, nil
}

// atEnd says whether no row follows.
func (t *table) atEnd() bool {
	_, err := t.r.Read()
	return errors.Is(err, io.EOF)
}

func (t *table) fail(err error) error {
	if t.in.over {
		return fmt.Errorf("the file is larger than %d MiB", maxCSVBytes>>20)
	}
	return err
}

// text is a field as it stands, "" where the column or the field is missing.
func (t *table) text(col int) string {
	if at := t.at[col]; at >= 0 && at < len(t.row) {
		return strings.TrimSpace(t.row[at])
	}
	return ""
}

// count is a field that holds a number of 0 or more. An empty field of an optional column is 0: the database export writes
// NULL as nothing.
func (t *table) count(col int) (int64, error) {
	s := t.text(col)
	if s == "" && !t.cols[col].required {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("line %d: %s is %q, not a number of 0 or more", t.line, t.cols[col].names[0], cutBytes(s, 40))
	}
	return n, nil
}

// cell is a column and where its count goes.
type cell struct {
	col int
	to  *int64
}

// counts reads several fields at once.
func (t *table) counts(cells []cell) error {
	for _, c := range cells {
		n, err := t.count(c.col)
		if err != nil {
			return err
		}
		*c.to = n
	}
	return nil
}

// ident is a number that only tells things apart; 0 where it is none.
func (t *table) ident(col int) int64 {
	n, _ := strconv.ParseInt(t.text(col), 10, 64)
	return n
}

// float is a finite number; false for an empty field and for nan and inf, which a derived counter has where it divides by 0.
func (t *table) float(col int) (float64, bool, error) {
	s := t.text(col)
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "", "nan", "inf", "infinity":
		return 0, false, nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, false, fmt.Errorf("line %d: %s is %q, not a number", t.line, t.cols[col].names[0], cutBytes(s, 40))
	}
	return x, true, nil
}

// names keeps one copy of each text: a kernel's name can have 10 kB and stands in each of its rows.
type names map[string]string

func (n names) keep(s string) string {
	if have, ok := n[s]; ok {
		return have
	}
	s = strings.Clone(s)
	n[s] = s
	return s
}

// limited ends a file that is too large with an error, and remembers how the file ended.
type limited struct {
	r    io.Reader
	left int64
	over bool
	done bool
	last byte
}

var errTooLarge = errors.New("too large")

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.over = true
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if n > 0 {
		l.last = p[n-1]
	}
	if err != nil {
		l.done = true
	}
	return n, err
}
