package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"mvdan.cc/sh/v3/syntax"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

// sheet is an answer as people read it. Whatever is written to it loses its control characters.
type sheet struct{ bytes.Buffer }

// writeTable writes an envelope for people. The verb says what its data is; one without a view of its own is shown as names and
// values.
func writeTable(out io.Writer, verb request.Verb, raw json.RawMessage, coloured bool) error {
	var e envelope.Wire[json.RawMessage]
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	s := &sheet{}
	if e.Error != nil {
		s.failure(e.Command, e.Error)
	}
	if e.Data != nil {
		view, ok := views[verb]
		if !ok {
			view = anyView
		}
		if err := view(s, *e.Data); err != nil {
			return err
		}
	}
	s.warnings(e.Warnings)
	if t := e.Truncated; t != nil {
		s.linef("%s: %d of %d are shown; %s", t.Field, t.Shown, t.Total, t.ReadOn)
	}
	actions := e.NextActions
	if e.Error != nil {
		actions = e.Error.NextActions
	}
	s.actions(actions)
	text := s.Bytes()
	if coloured {
		text = colour(text)
	}
	_, err := out.Write(text)
	return err
}

func (s *sheet) failure(command string, e *envelope.WireError) {
	s.linef("%s %s: %s: %s", markError, command, e.Code, e.Message)
	s.linef("%s", e.Help)
	s.pairs([][2]string{
		{"field", e.Evidence.Field}, {"value", e.Evidence.Value}, {"allowed", e.Evidence.Allowed}, {"setting", e.Evidence.Setting}, {"path", e.Evidence.Path},
		{"found", e.Evidence.Found}, {"needed", e.Evidence.Needed}, {"source", e.Evidence.Source}, {"signature", e.Evidence.Signature},
		{"holder", e.Evidence.Holder}, {"log", e.Evidence.Log},
	})
	var rows [][]string
	for _, a := range e.Available {
		rows = append(rows, []string{a.IterRange, a.Group, a.Kernel, count(a.Workgroups), count(a.Launches), a.Value})
	}
	s.rows([]string{"ITER_RANGE", "GROUP", "KERNEL", "WORKGROUPS", "LAUNCHES", "VALUE"}, rows)
	rows = nil
	for _, c := range e.Candidates {
		rows = append(rows, []string{c.Kernel, count(c.Calls), c.Why})
	}
	s.rows([]string{"CANDIDATE", "CALLS", "WHY"}, rows)
	if len(e.LogTail) > 0 {
		s.linef("Log:")
		for _, line := range e.LogTail {
			s.linef("  %s", line)
		}
	}
}

func (s *sheet) warnings(list []envelope.Warning) {
	for _, w := range list {
		s.linef("%s %s: %s", markWarn, w.Code, w.Message)
	}
}

// actions are the next steps; calls stand as command lines that a POSIX shell takes as they are.
func (s *sheet) actions(list []envelope.WireAction) {
	if len(list) == 0 {
		return
	}
	s.section()
	s.linef("Next:")
	for _, a := range list {
		if len(a.Argv) == 0 {
			s.linef("  - %s: %s", a.Action, a.Reason)
			continue
		}
		s.linef("  - %s", a.Reason)
		s.linef("      %s", shell(a.Argv))
	}
}

// shell writes a command line so that a shell reads these words and nothing else.
func shell(argv []string) string {
	var out []string
	for _, arg := range argv {
		q, err := syntax.Quote(arg, syntax.LangBash)
		if err != nil { // no argument of a program holds a NUL
			q = "''"
		}
		out = append(out, q)
	}
	return strings.Join(out, " ")
}

// section sets what follows apart.
func (s *sheet) section() {
	if s.Len() > 0 {
		s.WriteByte('\n')
	}
}

// linef writes one line. Its arguments cannot break it.
func (s *sheet) linef(format string, args ...any) {
	text := plain(fmt.Sprintf(format, args...))
	if strings.TrimSpace(text) != "" {
		s.WriteString(text + "\n")
	}
}

// pairs writes names and values; those without a value are left out.
func (s *sheet) pairs(list [][2]string) {
	var rows [][]string
	for _, p := range list {
		if p[1] != "" {
			rows = append(rows, []string{p[0], p[1]})
		}
	}
	s.columns(rows)
}

// rows writes a table after an empty line. A column without a value is left out, and a table without rows.
func (s *sheet) rows(header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	s.section()
	all := append([][]string{header}, rows...)
	shown := make([][]string, len(all))
	for column := range header {
		used := false
		for _, row := range rows {
			used = used || row[column] != ""
		}
		for i := range all {
			if used {
				shown[i] = append(shown[i], all[i][column])
			}
		}
	}
	s.columns(shown)
}

func (s *sheet) columns(rows [][]string) {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, plain(cell))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to a buffer
	for line := range strings.Lines(aligned.String()) {
		s.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// text writes many lines as they are, but for control characters.
func (s *sheet) text(t string) {
	for line := range strings.Lines(t) {
		s.WriteString(plain(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "        ")) + "\n")
	}
}

// The marks with which a line begins.
const (
	markOK    = "ok"
	markFail  = "FAIL"
	markWarn  = "warning"
	markError = "error"
)

// ansi are the colours of the marks (ECMA-48 SGR).
var ansi = map[string]string{markOK: "32", markFail: "31", markError: "31", markWarn: "33"}

// colour paints the mark at the start of a line. It comes last: columns are measured without it.
func colour(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		mark, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if code, ok := ansi[mark]; ok {
			fmt.Fprintf(&out, "\x1b[%sm%s\x1b[0m", code, mark)
			line = line[len(mark):]
		}
		out.Write(line)
	}
	return out.Bytes()
}
