package worktree

import (
	"bytes"
	"strings"
)

// line is one logical line of Python: comments gone, brackets joined, docstrings emptied.
type line struct {
	// no is the 1-based number of its first physical line.
	no int
	// indent is the column of its first character; a tab counts as one.
	indent int
	text   string
}

const (
	// maxLines bounds the logical lines of one file; the largest test file of FlyDSL has about 3,700.
	maxLines = 60_000
	// maxLine bounds the text of one logical line in bytes; what goes beyond is dropped.
	maxLine = 32 << 10
)

// lexer cuts Python source into logical lines. It knows strings, comments, brackets and continuation, and nothing else of
// the language; source that is not Python gives odd lines and never an error.
type lexer struct {
	src    string
	pos    int
	lineNo int
	depth  int
	out    []line
	cur    []byte
	start  int
	indent int
	fresh  bool // nothing of the current logical line was seen yet
}

// logicalLines gives the logical lines of a file.
func logicalLines(src string) []line {
	lx := &lexer{src: src, lineNo: 1, fresh: true}
	for lx.pos < len(lx.src) && len(lx.out) < maxLines {
		lx.step()
	}
	lx.flush()
	return lx.out
}

func (lx *lexer) step() {
	c := lx.src[lx.pos]
	switch {
	case c == '\n':
		lx.newline()
	case c == '#':
		if n := strings.IndexByte(lx.src[lx.pos:], '\n'); n >= 0 {
			lx.pos += n
		} else {
			lx.pos = len(lx.src)
		}
	case c == '\\' && lx.pos+1 < len(lx.src) && (lx.src[lx.pos+1] == '\n' || lx.src[lx.pos+1] == '\r'):
		lx.pos++
		if lx.src[lx.pos] == '\r' && lx.pos+1 < len(lx.src) && lx.src[lx.pos+1] == '\n' {
			lx.pos++
		}
		lx.pos++
		lx.lineNo++
	case c == '"' || c == '\'':
		lx.begin()
		lx.str(c)
	case c == '\r' || c == '\f':
		lx.pos++
	case (c == ' ' || c == '\t') && lx.fresh:
		lx.indent++
		lx.pos++
	case c == '(' || c == '[' || c == '{':
		lx.begin()
		lx.depth++
		lx.put(c)
		lx.pos++
	case c == ')' || c == ']' || c == '}':
		lx.begin()
		lx.depth = max(0, lx.depth-1)
		lx.put(c)
		lx.pos++
	default:
		lx.begin()
		lx.plain()
	}
}

// plain takes everything up to the next character that means something to step.
func (lx *lexer) plain() {
	rest := lx.src[lx.pos:]
	n := 1
	for n < len(rest) && !meaningful(rest[n]) {
		n++
	}
	lx.cur = append(lx.cur, rest[:min(n, max(0, maxLine-len(lx.cur)))]...)
	lx.pos += n
}

func meaningful(c byte) bool { return c < 128 && meaning[c] }

// meaning holds the characters at which step does something.
var meaning = [128]bool{
	'\n': true, '#': true, '\\': true, '"': true, '\'': true, '\r': true, '\f': true, '(': true, ')': true, '[': true, ']': true, '{': true, '}': true,
}

func (lx *lexer) begin() {
	if lx.fresh {
		lx.fresh, lx.start = false, lx.lineNo
	}
}

func (lx *lexer) put(c byte) {
	if len(lx.cur) < maxLine {
		lx.cur = append(lx.cur, c)
	}
}

// newline ends the logical line, unless a bracket is open. An open bracket that a new definition at the left margin
// follows was never closed: the line ends there, so that one slip does not swallow the file.
func (lx *lexer) newline() {
	lx.pos++
	lx.lineNo++
	if lx.depth > 0 && !startsDefinition(lx.src[lx.pos:]) {
		lx.put(' ')
		return
	}
	lx.depth = 0
	lx.flush()
}

func startsDefinition(rest string) bool {
	for _, word := range []string{"def ", "class ", "@", "import ", "if __name__"} {
		if strings.HasPrefix(rest, word) {
			return true
		}
	}
	return false
}

func (lx *lexer) flush() {
	if !lx.fresh {
		lx.out = append(lx.out, line{no: lx.start, indent: lx.indent, text: string(bytes.TrimRight(lx.cur, " \t"))})
	}
	lx.cur = lx.cur[:0]
	lx.fresh, lx.indent = true, 0
}

// str reads one string literal. Text of a triple-quoted one is left out: it is prose or generated code, in which nothing
// is defined.
func (lx *lexer) str(q byte) {
	rest := lx.src[lx.pos:]
	if triple := strings.Repeat(string(q), 3); strings.HasPrefix(rest, triple) {
		end := closing(rest[3:], triple)
		lx.lineNo += strings.Count(rest[:3+end], "\n")
		lx.pos += 3 + end
		lx.put(q)
		lx.put(q)
		return
	}
	lx.put(q)
	for lx.pos++; lx.pos < len(lx.src); lx.pos++ {
		c := lx.src[lx.pos]
		switch c {
		case '\\':
			if lx.pos+1 < len(lx.src) {
				if lx.src[lx.pos+1] == '\n' {
					lx.lineNo++
				} else {
					lx.put(c)
					lx.put(lx.src[lx.pos+1])
				}
				lx.pos++
			}
			continue
		case '\n': // an unclosed string ends with its line
			lx.put(q)
			return
		}
		lx.put(c)
		if c == q {
			lx.pos++
			return
		}
	}
}

// closing gives the offset behind the closing quotes, or the length where there are none.
func closing(s, quotes string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], quotes):
			return i + len(quotes)
		}
	}
	return len(s)
}

// callArgs gives the top-level arguments of a call whose opening parenthesis is at s[open].
func callArgs(s string, open int) []string {
	var args []string
	depth, start := 0, open+1
	add := func(end int) {
		if a := strings.TrimSpace(s[start:end]); a != "" {
			args = append(args, a)
		}
	}
	for i := open; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			i = skipString(s, i)
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				add(i)
				return args
			}
		case ',':
			if depth == 1 {
				add(i)
				start = i + 1
			}
		}
	}
	if start < len(s) {
		add(len(s))
	}
	return args
}

// skipString gives the index of the closing quote of the literal that opens at s[i], or the last index.
func skipString(s string, i int) int {
	q := s[i]
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case q:
			return j
		}
	}
	return len(s) - 1
}

// literal is the text of a string expression: one literal, or several side by side.
type literal struct {
	// parts are the fixed texts; between two of them something is filled in.
	parts []string
}

// plain gives the text of an expression that is made of plain string literals only.
func plain(expr string) (string, bool) {
	lit, ok := parseString(expr)
	if !ok || len(lit.parts) != 1 {
		return "", false
	}
	return lit.parts[0], true
}

// parseString reads an expression that consists of nothing but string literals, f-strings among them.
func parseString(expr string) (literal, bool) {
	s := strings.TrimSpace(expr)
	for strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		s = strings.TrimSpace(s[1 : len(s)-1])
	}
	lit := literal{parts: []string{""}}
	any := false
	for s != "" {
		n := 0
		for n < len(s) && n < 2 && strings.IndexByte("fFrRbBuU", s[n]) >= 0 {
			n++
		}
		if n >= len(s) || (s[n] != '"' && s[n] != '\'') {
			return literal{}, false
		}
		end := skipString(s, n)
		if end <= n || s[end] != s[n] {
			return literal{}, false
		}
		lit.add(s[n+1:end], strings.ContainsAny(s[:n], "fF"))
		any = true
		s = strings.TrimSpace(s[end+1:])
	}
	return lit, any
}

func (l *literal) add(body string, formatted bool) {
	last := len(l.parts) - 1
	if !formatted {
		l.parts[last] += body
		return
	}
	for body != "" {
		switch {
		case strings.HasPrefix(body, "{{"), strings.HasPrefix(body, "}}"):
			l.parts[len(l.parts)-1] += body[:1]
			body = body[2:]
		case body[0] == '{':
			l.parts = append(l.parts, "")
			body = body[closingBrace(body):]
		default:
			l.parts[len(l.parts)-1] += body[:1]
			body = body[1:]
		}
	}
}

func closingBrace(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}
