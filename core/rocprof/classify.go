package rocprof

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Finding is what one row of the table of signatures found in a log.
type Finding struct {
	// ID is the row's; a stable word such as KERNEL_COMPILE or BUFFER_FULL.
	ID string
	// Code is the catalogue's; empty for a warning.
	Code envelope.Code
	// Message says what is the matter, in one line of at most maxMessage bytes.
	Message string
	// Line is the log's line that says so, without colours, cut at maxShown bytes.
	Line string
	// Source is the place "file:line" that the failure names: the kernel's for one of the compiler, else the innermost frame.
	Source string
	// Traceback is FlyDSL's traceback where there is one, else Python's or the native one; at most maxTraceback lines.
	Traceback []string
}

// Report is what a log says.
type Report struct {
	// Primary names the failure; nil where the log names none.
	Primary *Finding
	// Warnings are caveats on what was written, one a kind, in the order of the table.
	Warnings []Finding
	// Opened are the files that the profiler said to have opened for writing, in its order, each once.
	Opened []string
}

// Bounds on what is kept of a log. Its lines pass one by one, so its size costs time only.
const (
	maxLine      = 12 << 10 // of a longer line the beginning and the end are looked at
	maxShown     = 500
	maxMessage   = 600
	maxTraceback = 40
	maxContext   = 60 // lines kept before a match
	maxOpened    = 4096
	// lastWordsWithin is how many lines of the test's own may follow an exception that ended it.
	lastWordsWithin = 12
)

// Classify reads the output of a run under rocprofv3, stdout and stderr mixed as they came, of all its processes. An exit
// code is not asked: what was written decides about success, this about the reason.
//
// rocprofv3 logs "Opened result file" at level E on every success, so the level of a line says nothing; only F does. Lines
// that echo the command line or time a step are passed over, because they may hold any text.
func Classify(r io.Reader) Report {
	c := classifier{hits: make([]*hit, len(signatures)), facts: map[fact]bool{}, seen: map[string]bool{}}
	lines := lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	for {
		line, err := lines.next()
		if err == nil || line != "" {
			c.line(line)
		}
		if err != nil {
			return c.report()
		}
	}
}

// lineReader gives lines that end in LF, CR LF or CR (progress bars), without their ends.
type lineReader struct {
	r *bufio.Reader
	// afterCR: the last line ended in CR, so that an LF now belongs to it.
	afterCR bool
}

func (l *lineReader) next() (string, error) {
	var head, tail []byte
	for {
		b, err := l.r.ReadByte()
		if err != nil {
			return joined(head, tail), io.EOF
		}
		if l.afterCR {
			l.afterCR = false
			if b == '\n' {
				continue
			}
		}
		if b == '\n' || b == '\r' {
			l.afterCR = b == '\r'
			return joined(head, tail), nil
		}
		if len(head) < maxLine*2/3 {
			head = append(head, b)
			continue
		}
		if tail = append(tail, b); len(tail) >= maxLine {
			tail = append(tail[:0], tail[len(tail)-maxLine/3:]...)
		}
	}
}

func joined(head, tail []byte) string {
	tail = tail[max(0, len(tail)-maxLine/3):]
	return StripANSI(strings.ToValidUTF8(string(head)+string(tail), "\uFFFD"))
}

// hit is the line that a row matched, with what stood around it.
type hit struct {
	message, line, frame string
	// before is the traceback that the line ends, after what followed it.
	before, after []string
	own           int  // the number of the line among the test's own
	pytest        bool // the line is pytest's report of an exception
	times         int
	values        []string
}

type classifier struct {
	hits   []*hit // by row
	open   []*hit // those that still take lines
	facts  map[fact]bool
	opened []string
	seen   map[string]bool
	// context are the last lines of the test's own.
	context []string
	// frames are the places of the current Python traceback, the innermost last.
	frames []string
	// pending is an exception in pytest's report, whose place comes behind it.
	pending string
	own     int
	// first is the thread that started the profiler first: the test's, not a child's.
	first   string
	written bool // the profiler in the first process has written everything
}

// The forms of lines.
var (
	// logPrefix begins a line of the profiler: glog with the year, Abseil without. What the test had printed may stand before it.
	logPrefix = rx(`(?:^|[^\w\[])([IWEF])(?:20\d{6}|\d{4}) \d\d:\d\d:\d\d\.\d+ +(\d+) ([\w./+-]+:\d+)\] ?`)
	// echo are lines that hold the command line, or the time of a step.
	echo        = rx(`^\[rocprofv3\] (.*?) +::\s+[\d.]+ sec`)
	testPrefix  = rx(`^(?:\[(?:default\d+|rank\d+)\]: ?)?(E(?:   |$))?`)
	pythonFrame = rx(`^\s*File "(.+?)", line (\d+)`)
	pytestFrame = rx(`^(\S+\.\w+:\d+): in `)
	pytestPlace = rx(`^(\S+\.\w+:\d+): \w*(?:Error|Exception)$`)
	exception   = rx(`^(?:\w+\.)*\w*(?:Error|Exception)(?:: |$)`)
	nativeFrame = rx(`^\s*(?:@ |#\d+ )`)
	share       = rx(`\d+(?:\.\d+)? ?%`)
)

const (
	openedText    = "Opened result file: "
	tracebackText = "Traceback (most recent call last):"
	dslTraceback  = "DSL Traceback (most recent operation last):"
)

func (c *classifier) line(line string) {
	if strings.Contains(line, "] ") {
		if m := logPrefix.FindStringSubmatchIndex(line); m != nil {
			if before := line[:m[2]]; strings.TrimSpace(before) != "" {
				c.ownLine(before)
			}
			c.logLine(line[m[2]], line[m[4]:m[5]], line[m[1]:], line[m[2]:])
			return
		}
	}
	c.ownLine(line)
}

// logLine takes a line of the profiler's log; text is the line without its prefix.
func (c *classifier) logLine(level byte, thread, text, line string) {
	if m := echo.FindStringSubmatch(text); m != nil {
		switch {
		case m[1] == "tool initialization" && c.first == "":
			c.first = thread
		case m[1] == "tool finalization" && thread == c.first:
			c.written = true
		}
		return
	}
	if path, ok := strings.CutPrefix(text, openedText); ok {
		c.fileOpened(path)
		return
	}
	kind := anyLine
	if level == 'F' {
		kind = fatalLine
	}
	c.match(strings.TrimPrefix(text, "[rocprofv3] "), line, kind, false)
}

func (c *classifier) fileOpened(path string) {
	path = strings.TrimSpace(path)
	if path == "" || len(c.opened) >= maxOpened || c.seen[path] {
		return
	}
	c.seen[path] = true
	c.opened = append(c.opened, path)
	c.facts[filesOpened] = true
}

// ownLine takes a line of the test, of the Python that runs it, or of a runtime in the process.
func (c *classifier) ownLine(line string) {
	if path, ok := strings.CutPrefix(line, openedText); ok { // a log whose prefixes were cut
		c.fileOpened(path)
		return
	}
	if strings.Contains(line, "[rocprofv3]") && echo.MatchString(line) {
		return
	}
	c.follow(line)
	if strings.TrimSpace(line) != "" {
		c.own++
	}
	text, pytest := withoutPrefix(line)
	switch {
	case text == "":
	case isNativeFrame(text):
		c.match(text, line, stackFrame, false)
	case text == tracebackText:
		c.frames = nil
	case c.placed(text), isQuoted(line), isRule(text):
	default:
		c.match(text, line, ownLine, pytest)
		if pytest && exception.MatchString(text) {
			c.pending = text
		}
		if text[0] != ' ' {
			c.frames = nil
		}
	}
	if c.context = append(c.context, cutBytes(line, maxShown)); len(c.context) > 2*maxContext {
		c.context = append(c.context[:0], c.context[maxContext:]...)
	}
}

// withoutPrefix takes off what torchrun and pytest put before a line; pytest says whether pytest did.
func withoutPrefix(line string) (text string, pytest bool) {
	if line == "" || line[0] != 'E' && line[0] != '[' {
		return line, false
	}
	m := testPrefix.FindStringSubmatch(line)
	return line[len(m[0]):], m[1] != ""
}

// isQuoted: the line is source that a traceback shows.
func isQuoted(line string) bool {
	line = strings.TrimPrefix(line, ">")
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != ""
}

// isRule: the line that FlyDSL draws under a traceback.
func isRule(line string) bool { return line != "" && strings.Trim(line, "-") == "" }

func isNativeFrame(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line != "" && (line[0] == '@' || line[0] == '#') && nativeFrame.MatchString(line)
}

// placed takes the lines that name a place in the source.
func (c *classifier) placed(text string) bool {
	if strings.Contains(text, `File "`) {
		if m := pythonFrame.FindStringSubmatch(text); m != nil {
			c.addFrame(m[1] + ":" + m[2])
			return true
		}
	}
	if strings.Contains(text, ": in ") {
		if m := pytestFrame.FindStringSubmatch(text); m != nil {
			c.addFrame(m[1])
			return true
		}
	}
	if c.pending == "" {
		return false
	}
	if m := pytestPlace.FindStringSubmatch(text); m != nil {
		text := c.pending
		c.frames, c.pending = []string{m[1]}, ""
		c.match(text, text, ownLine, true)
		c.frames = nil
		return true
	}
	return false
}

func (c *classifier) addFrame(place string) {
	if len(c.frames) > maxContext { // an endless recursion: the outermost and the last ones matter
		c.frames = append(c.frames[:1], c.frames[2:]...)
	}
	c.frames = append(c.frames, cutBytes(place, maxShown))
}

// match asks the table about one line.
func (c *classifier) match(text, line string, kind lineKind, pytest bool) {
	for _, f := range factLines {
		if strings.Contains(text, f.literal) && f.re.MatchString(text) {
			c.facts[f.fact] = true
		}
	}
	for i := range signatures {
		s, old := &signatures[i], c.hits[i]
		if old != nil && s.code != "" && s.kind != lastWords || !s.takes(kind) || !s.timely(c.written) || !s.placedIn(c.frames) || !s.hasLiteral(text) {
			continue
		}
		m := s.re.FindStringSubmatchIndex(text)
		if m == nil || s.unless != nil && s.unless.MatchString(text) {
			continue
		}
		if old != nil && s.code == "" {
			old.again(text, m)
			continue
		}
		h := &hit{message: string(s.re.ExpandString(nil, s.says, text, m)), line: line, own: c.own, pytest: pytest, times: 1}
		if len(c.frames) > 0 {
			h.frame = c.frames[len(c.frames)-1]
		}
		if !pytest && kind != anyLine && kind != fatalLine {
			h.before = tracebackBefore(c.context)
		}
		h.addValue(text, m)
		if old != nil {
			c.open = slices.DeleteFunc(c.open, func(o *hit) bool { return o == old })
		}
		c.hits[i], c.open = h, append(c.open, h)
	}
}

func (s *signature) takes(kind lineKind) bool {
	switch s.kind {
	case anyLine:
		return kind != stackFrame
	case lastWords:
		return kind == ownLine
	}
	return s.kind == kind
}

func (s *signature) timely(written bool) bool {
	return s.output == anyTime || (s.output == afterOutput) == written
}

func (s *signature) hasLiteral(text string) bool {
	if len(s.has) == 0 {
		return true
	}
	for _, literal := range s.has {
		if strings.Contains(text, literal) {
			return true
		}
	}
	return false
}

func (s *signature) placedIn(frames []string) bool {
	if s.in == nil && s.from == nil {
		return true
	}
	if len(frames) == 0 {
		return false
	}
	inner := frames[len(frames)-1]
	return (s.in == nil || s.in.MatchString(inner)) && (s.notIn == nil || !s.notIn.MatchString(inner)) &&
		(s.from == nil || s.from.MatchString(frames[0]))
}

// again counts a further line of the same caveat.
func (h *hit) again(text string, m []int) {
	h.times++
	h.addValue(text, m)
}

func (h *hit) addValue(text string, m []int) {
	if len(m) < 4 || m[2] < 0 || len(h.values) >= 64 {
		return
	}
	if v := cutBytes(text[m[2]:m[3]], 64); !slices.Contains(h.values, v) {
		h.values = append(h.values, v)
	}
}

// follow gives a line to the hits before it.
func (c *classifier) follow(line string) {
	line = strings.TrimRight(cutBytes(line, maxShown), " \t")
	c.open = slices.DeleteFunc(c.open, func(h *hit) bool {
		h.after = append(h.after, line)
		return len(h.after) >= maxTraceback
	})
}

// tracebackBefore is the Python traceback that ends at the last of the lines; nil where none does.
func tracebackBefore(lines []string) []string {
	frames := false
	for i := len(lines) - 1; i >= 0 && i > len(lines)-maxContext; i-- {
		switch l := lines[i]; {
		case l == tracebackText:
			return slices.Clone(lines[i:])
		case strings.HasPrefix(l, "  "):
			frames = frames || pythonFrame.MatchString(l)
		case !isRule(l):
			if frames {
				return slices.Clone(lines[i+1:])
			}
			return nil
		}
	}
	if frames {
		return slices.Clone(lines[max(0, len(lines)-maxContext):])
	}
	return nil
}

// report picks the failure and the caveats.
func (c *classifier) report() Report {
	r := Report{Opened: c.opened}
	for i := range signatures {
		s, h := &signatures[i], c.hits[i]
		switch {
		case h == nil, s.with != noFact && !c.facts[s.with], s.without != noFact && c.facts[s.without]:
		case s.code == "":
			r.Warnings = append(r.Warnings, s.finding(h))
		case r.Primary != nil:
		case s.kind == lastWords && !h.pytest && c.own-h.own > lastWordsWithin:
		default:
			f := s.finding(h)
			r.Primary = &f
		}
	}
	return r
}

func (s *signature) finding(h *hit) Finding {
	f := Finding{ID: s.id, Code: s.code, Line: cutBytes(strings.TrimSpace(h.line), maxShown)}
	message := h.message
	if s.more {
		message += " " + continuation(h.after)
	}
	if s.list != "" && len(h.values) > 0 {
		message += fmt.Sprintf(" (%s %s)", s.list, strings.Join(h.values, ", "))
	}
	if s.code == "" {
		if p := share.FindString(h.line); p != "" {
			message += " (" + p + ")"
		}
		if h.times > 1 {
			message += fmt.Sprintf(" (said %d times)", h.times)
		}
	}
	message = strings.Join(strings.Fields(message), " ")
	f.Message = cutBytes(strings.TrimRight(message, ": "), maxMessage)
	if s.code != "" {
		f.Source, f.Traceback = h.traceback()
	}
	return f
}

// continuation is the rest of a message of several lines.
func continuation(after []string) string {
	var out []string
	for _, l := range after {
		l, _ = withoutPrefix(l)
		if l == "" || l == dslTraceback || l == tracebackText || len(out) == 8 {
			break
		}
		out = append(out, strings.TrimSpace(l))
	}
	return strings.Join(out, " ")
}

// traceback gives the place that the failure names and the traceback to show: that of FlyDSL before that of Python, and
// what a crashed process dumped when there is neither.
func (h *hit) traceback() (source string, lines []string) {
	after := make([]string, len(h.after))
	for i, l := range h.after {
		after[i], _ = withoutPrefix(l)
	}
	if i := slices.Index(after, dslTraceback); i >= 0 {
		block := indentedFrom(after, i+1)
		return lastPlace(block), append([]string{dslTraceback}, block...)
	}
	if h.pytest {
		for _, l := range after {
			if m := pytestPlace.FindStringSubmatch(l); m != nil {
				return m[1], nil
			}
		}
		return h.frame, nil
	}
	if len(h.before) > 0 {
		source = lastPlace(h.before)
		lines = append(slices.Clone(h.before), cutBytes(h.line, maxShown))
		return source, lines[max(0, len(lines)-maxTraceback):]
	}
	for i, l := range after {
		if isNativeFrame(l) || strings.HasSuffix(l, "(most recent call first):") {
			lines = append([]string{l}, indentedFrom(after, i+1)...)
			return firstPlace(lines), lines
		}
		if l != "" && i > 2 {
			break
		}
	}
	return h.frame, nil
}

func indentedFrom(lines []string, i int) []string {
	end := i
	for end < len(lines) && strings.HasPrefix(lines[end], " ") {
		end++
	}
	return lines[i:end]
}

func firstPlace(lines []string) string {
	for _, l := range lines {
		if m := pythonFrame.FindStringSubmatch(l); m != nil {
			return m[1] + ":" + m[2]
		}
	}
	return ""
}

func lastPlace(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if m := pythonFrame.FindStringSubmatch(l); m != nil {
			return m[1] + ":" + m[2]
		}
	}
	return ""
}
