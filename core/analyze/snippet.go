package analyze

import (
	"context"
	"path"
	"strings"
)

// What is known of the text of a source line.
const (
	TextExact      = "exact"       // the text of the copy that was saved with the trace
	TextNoSnapshot = "no_snapshot" // the trace has no copy of the file
	TextUnreadable = "unreadable"  // the copy cannot be read
	TextBeyondEnd  = "beyond_end"  // the copy has fewer lines
	TextNoLine     = "no_line"     // the place has no line
)

const (
	maxLineText    = 200      // bytes of a shown line
	maxSourceBytes = 64 << 20 // of all copies that are kept
)

// sourceLine is the text of a line of a saved source file, and how sure it is.
func (t *Trace) sourceLine(ctx context.Context, at Frame) (text, state string) {
	if at.Line == 0 {
		return "", TextNoLine
	}
	lines, state := t.sourceLines(ctx, at.File)
	switch {
	case state != TextExact:
		return "", state
	case at.Line > len(lines):
		return "", TextBeyondEnd
	}
	return trimmed(lines[at.Line-1], maxLineText), TextExact
}

// sourceLines are the lines of a file that was saved with the trace. Only the directory's own copies are read: the path is a name in
// snapshots.json and nothing else.
func (t *Trace) sourceLines(ctx context.Context, file string) (lines []string, state string) {
	t.sources.mu.Lock()
	defer t.sources.mu.Unlock()
	if lines, ok := t.sources.lines[file]; ok {
		return lines, TextExact
	}
	if state, ok := t.sources.why[file]; ok {
		return nil, state
	}
	lines, state = t.readSource(ctx, file)
	if ctx.Err() != nil {
		return lines, state // that says nothing of the file
	}
	if t.sources.lines == nil {
		t.sources.lines, t.sources.why = map[string][]string{}, map[string]string{}
	}
	if state != TextExact {
		t.sources.why[file] = state
		return nil, state
	}
	t.sources.lines[file] = lines
	return lines, state
}

func (t *Trace) readSource(ctx context.Context, file string) ([]string, string) {
	for _, exact := range []bool{true, false} {
		for _, s := range t.dispatch.Snapshots {
			if exact && s.Path != file || !exact && path.Clean(s.Path) != path.Clean(file) {
				continue
			}
			text, err := t.dispatch.ReadSnapshot(ctx, s)
			if t.sources.bytes += int64(len(text)); err != nil || t.sources.bytes > maxSourceBytes {
				return nil, TextUnreadable
			}
			return strings.Split(strings.TrimSuffix(strings.ToValidUTF8(string(text), "\uFFFD"), "\n"), "\n"), TextExact
		}
	}
	return nil, TextNoSnapshot
}

// Snippet is a piece of a saved source file.
type Snippet struct {
	File  string        `json:"file"`
	State string        `json:"state" jsonschema:"enum=exact,enum=no_snapshot,enum=unreadable,enum=beyond_end,enum=no_line"`
	Lines []SnippetLine `json:"lines,omitempty"`
	// FileLines counts the lines of the file.
	FileLines int `json:"file_lines,omitempty"`
}

// SnippetLine is one line, with the stall of the instructions whose innermost place it is.
type SnippetLine struct {
	Line  int    `json:"line"`
	Text  string `json:"text"`
	Stall int64  `json:"stall,omitempty" jsonschema_description:"Stall cycles of the line's instructions over all traced waves."`
}

const maxSnippetLines = 60

// snippet shows lines of a file, with some around them.
func (t *Trace) snippet(ctx context.Context, file string, from, to, around int) Snippet {
	s := Snippet{File: file}
	lines, state := t.sourceLines(ctx, file)
	if s.State = state; state != TextExact {
		return s
	}
	if s.FileLines = len(lines); from > len(lines) {
		s.State = TextBeyondEnd
		return s
	}
	stalls := map[int]int64{}
	for _, r := range t.rows {
		if len(r.frames) > 0 && r.frames[0].File == file {
			stalls[r.frames[0].Line] = plus(stalls[r.frames[0].Line], r.Stall)
		}
	}
	from, to = max(from-around, 1), min(to+around, len(lines), from+maxSnippetLines-1)
	for n := from; n <= to; n++ {
		s.Lines = append(s.Lines, SnippetLine{Line: n, Text: trimmed(lines[n-1], maxLineText), Stall: stalls[n]})
	}
	return s
}
