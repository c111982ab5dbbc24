package rocprof

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Finding is what one row of the table found in a log.
type Finding struct {
	// ID is the row's name, Code the failure; empty for a caveat.
	ID   string
	Code envelope.Code
	// Message says what it means, with the words of the log.
	Message string
	// Line is the log line, without colours.
	Line string
	// Source is the file:line that the failure names, where it names one.
	Source string
	// Traceback holds the lines of the traceback that ended in it, innermost last.
	Traceback []string
	// Count is how many lines matched.
	Count int
}

// Report is what a log says. It decides nothing by itself: a kernel may have been traced before the test failed.
type Report struct {
	// Primary is the failure that explains the others; nil where the log names none.
	Primary *Finding
	// Warnings are caveats, in the order of the table.
	Warnings []Finding
	// Opened are the files that rocprofv3 says it wrote, at most 256.
	Opened []string
}

const (
	maxLogLine   = 8 << 10
	maxOpened    = 256
	maxTraceback = 40
	maxFrames    = 4096 // lines that are looked at as one traceback
)

// Classify reads the combined output of rocprofv3, the workload and their children. It holds a few lines at a time; a line
// beyond 8 KiB is cut. Neither the level of a log line nor an exit code counts: "Opened result file" is logged as an error on
// every success.
func Classify(r io.Reader) Report {
	c := classifier{seen: make([]*Finding, len(signatures))}
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		if line != "" || err == nil {
			c.line(line)
		}
		if err != nil {
			break
		}
	}
	return c.report()
}

// readLine gives a line without its end, cut at maxLogLine; the rest of a longer one is passed over.
func readLine(in *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := maxLogLine - len(b); room > 0 {
			b = append(b, part[:min(len(part), room)]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return strings.TrimRight(StripANSI(strings.ToValidUTF8(string(b), "\uFFFD")), "\r\n"), err
	}
}

type classifier struct {
	seen   []*Finding
	opened []string
	// trace is the traceback that is being read; frames the places in it.
	trace  []string
	frame  string // the innermost place so far, as file:line
	inside bool
	// dsl: a DSL traceback follows a compile error; its first place is the user's source.
	waiting *Finding
	lines   int
}

// glog is the prefix of a log line: glog's with a date, Abseil's without.
var glog = regexp.MustCompile(`^[IWEF]\d{4,8} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] `)

// framePlace is a frame of a Python or DSL traceback.
var framePlace = regexp.MustCompile(`^(?:E\s+)?\s*File "([^"]{1,1000})", line (\d+)`)

// pytestPlace is a frame as pytest prints it: path:line: Error.
var pytestPlace = regexp.MustCompile(`^([\w./-]{1,500}\.py):(\d+): (?:\w+)?`)

func (c *classifier) line(line string) {
	text := line
	if at := glog.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	}
	c.traceback(text)
	for i, s := range signatures {
		if !s.fits(text) {
			continue
		}
		c.note(i, line, text)
	}
	if _, path, ok := strings.Cut(text, "Opened result file: "); ok && len(c.opened) < maxOpened {
		c.opened = append(c.opened, strings.TrimSpace(path))
	}
	if m := pythonError.FindStringSubmatch(text); m != nil {
		c.exception(line, m[1])
		c.inside = false
	}
}

func (s Signature) fits(text string) bool {
	if s.pattern.String() == "" {
		return false
	}
	if len(s.hints) > 0 && !slices.ContainsFunc(s.hints, func(h string) bool { return strings.Contains(text, h) }) {
		return false
	}
	if slices.ContainsFunc(s.without, func(w string) bool { return strings.Contains(text, w) }) {
		return false
	}
	return s.pattern.MatchString(text)
}

func (c *classifier) note(i int, line, text string) {
	if f := c.seen[i]; f != nil {
		f.Count++
		return
	}
	s := signatures[i]
	f := &Finding{ID: s.ID, Code: s.Code, Line: strings.TrimSpace(line), Count: 1, Source: c.frame, Traceback: slices.Clone(c.trace)}
	f.Message = s.Meaning
	if s.Code != "" {
		f.Message = fmt.Sprintf("%s: %s", s.Meaning, cutBytes(strings.TrimSpace(text), 300))
	}
	c.seen[i] = f
	if s.ID == "COMPILE_FAIL" {
		c.waiting = f
	}
}

// traceback keeps the lines of the traceback that goes on, and the innermost place in it.
func (c *classifier) traceback(text string) {
	switch {
	case strings.HasPrefix(text, "Traceback (most recent call last)"):
		c.trace, c.frame, c.inside, c.lines = nil, "", true, 0
	case strings.HasPrefix(text, "DSL Traceback"):
		c.trace, c.inside, c.lines = nil, true, 0
	}
	if m := framePlace.FindStringSubmatch(text); m != nil {
		c.frame, c.inside = m[1]+":"+m[2], true
		// Frames of a DSL traceback follow the error: its last one is the operation that failed.
		if c.waiting != nil {
			c.waiting.Source = c.frame
		}
	} else if m := pytestPlace.FindStringSubmatch(text); m != nil {
		c.frame = m[1] + ":" + m[2]
	}
	if !c.inside {
		return
	}
	if c.lines++; c.lines > maxFrames {
		c.inside = false
		return
	}
	if len(c.trace) == maxTraceback {
		c.trace = c.trace[1:]
	}
	c.trace = append(c.trace, cutBytes(text, 300))
	if c.waiting != nil {
		c.waiting.Traceback = slices.Clone(c.trace)
	}
}

// pythonError is the last line of a traceback.
var pythonError = regexp.MustCompile(`^(?:E\s+)?([A-Za-z_][\w.]*(?:Error|Exception)): `)

// exception judges a Python exception by the file it was raised in: in FlyDSL's compiler it is the kernel's source that cannot
// be compiled, in kernels/ a builder that refuses the configuration.
func (c *classifier) exception(line, kind string) {
	file, _, _ := strings.Cut(c.frame, ":")
	file = "/" + strings.ReplaceAll(file, `\`, "/")
	short := kind[strings.LastIndexByte(kind, '.')+1:]
	switch {
	case short == "ImportError" || short == "ModuleNotFoundError" || short == "AssertionError":
	case strings.Contains(file, "/flydsl/compiler/"), strings.Contains(file, "/flydsl/expr/"), strings.Contains(file, "/flydsl/_mlir/"):
		c.noteID(traceFail, line)
	case strings.Contains(file, "/kernels/") && !strings.Contains(file, "/tests/") && (short == "RuntimeError" || short == "ValueError" || short == "NotImplementedError"):
		c.noteID(configRefused, line)
	}
}

func (c *classifier) noteID(id, line string) {
	for i, s := range signatures {
		if s.ID == id {
			c.note(i, line, line)
		}
	}
}

func (c *classifier) saw(id string) bool {
	for i, s := range signatures {
		if s.ID == id {
			return c.seen[i] != nil
		}
	}
	return false
}

func (c *classifier) report() Report {
	out := Report{Opened: c.opened}
	for i, s := range signatures {
		f := c.seen[i]
		if f == nil || s.Meaning == "" || s.needs != "" && !c.saw(s.needs) {
			continue
		}
		if s.Code == "" {
			if f.Count > 1 {
				f.Message = fmt.Sprintf("%s (%d lines)", f.Message, f.Count)
			}
			out.Warnings = append(out.Warnings, *f)
			continue
		}
		if out.Primary == nil {
			out.Primary = f
		}
	}
	return out
}
