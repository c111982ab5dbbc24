package analyze

import (
	"path"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Frame is a place in the sources; Line is 0 where it is not known.
type Frame struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// String is "file:line".
func (f Frame) String() string {
	if f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

const maxFrames = 64

// ParseFrames takes a Source of code.json apart: "file:line", or a chain of inlined places "a:1 -> b:2", the innermost first. It has none
// for "".
func ParseFrames(source string) []Frame {
	var out []Frame
	for source != "" && len(out) < maxFrames {
		var part string
		part, source, _ = strings.Cut(source, " -> ")
		if part == "" {
			continue
		}
		f := Frame{File: part}
		if at := strings.LastIndexByte(part, ':'); at >= 0 {
			if n, ok := lineNumber(part[at+1:]); ok {
				f = Frame{File: part[:at], Line: n}
			}
		}
		out = append(out, f)
	}
	return out
}

// lineNumber reads a line of a source file; 0 is what compilers write for code without a line.
func lineNumber(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// How well a path fits the one that was asked for.
const (
	MatchExact  = "exact"  // the whole path, "." and ".." resolved
	MatchSuffix = "suffix" // its last elements
)

// pathMatch says how a path of the trace fits the one that was asked for: "" for not at all. A suffix ends at a separator: "norm.py" is no
// suffix of "rmsnorm.py".
func pathMatch(have, asked string) string {
	if have == asked || path.Clean(have) == path.Clean(asked) {
		return MatchExact
	}
	asked = path.Clean(asked)
	if asked == "." || strings.HasPrefix(asked, "/") || strings.HasPrefix(asked, "../") {
		return ""
	}
	if strings.HasSuffix(path.Clean(have), "/"+asked) {
		return MatchSuffix
	}
	return ""
}

// sourceFilter is a place in the sources as a caller names it.
type sourceFilter struct {
	file     string // "" for any file
	from, to int    // 0 for any line
}

// parseSource reads "file", "file:12", "file:10-20", "12" or "10-20".
func parseSource(text string) (sourceFilter, error) {
	text = strings.TrimSpace(text)
	f, lines := sourceFilter{file: text}, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.ContainsAny(text[at:], `/\`) {
		f.file, lines = text[:at], text[at+1:]
	} else if isLines(text) {
		f.file, lines = "", text
	} else if text != "" && len(text) <= maxSourceText {
		return f, nil
	}
	from, to, both := strings.Cut(lines, "-")
	var ok, ok2 bool
	f.from, ok = lineNumber(from)
	if f.to, ok2 = f.from, true; both {
		f.to, ok2 = lineNumber(to)
	}
	if !ok || !ok2 || f.from < 1 || f.to < f.from || len(text) > maxSourceText {
		return f, badSource(text)
	}
	return f, nil
}

const maxSourceText = 4096

func isLines(s string) bool {
	return strings.Trim(s, "0123456789-") == ""
}

func badSource(text string) error {
	return badArg("source_line", text, `"12", "10-20", "file.py", "file.py:12" or "dir/file.py:10-20"`)
}

func badArg(field, value, allowed string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  field + ": " + strconv.QuoteToGraphic(trimmed(value, 80)) + " is not usable; allowed: " + allowed,
		Evidence: envelope.Evidence{Field: field, Value: trimmed(value, 80), Allowed: allowed},
	})
}

// match says whether a place is meant, and how its path fits.
func (f sourceFilter) match(at Frame) (how string, ok bool) {
	if f.from > 0 && (at.Line < f.from || at.Line > f.to) {
		return "", false
	}
	if f.file == "" {
		return MatchExact, true
	}
	how = pathMatch(at.File, f.file)
	return how, how != ""
}
