package att

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth  = 128       // nesting; real files reach 20 (snapshots.json)
	maxText   = 1 << 20   // bytes of one string; real ones stay under 2 KB
	maxNumber = 64        // bytes of one number
	maxKept   = 256 << 20 // bytes of all strings that are kept of one file; a code.json of 20,000 rows keeps 3 MB
	scanBuf   = 128 << 10
)

// FormatError says where a file leaves the format and how.
type FormatError struct {
	Offset int64  // byte offset in the file
	What   string // what is wrong there, with what was expected
}

// Error gives offset and text.
func (e *FormatError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.What) }

// scanner is a pull reader of JSON that holds one buffer, whatever the file's size. encoding/json's token reader allocates
// for every number, which is most of a wave file.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // file offset of buf[0]
	depth    int
	scratch  []byte // text of the last string that was not whole in buf
	key      []byte // the last object key
	kept     int64  // bytes of the strings that str gave out
	err      error  // of r, other than io.EOF
}

func newScanner(r io.Reader) *scanner {
	s := &scanner{buf: make([]byte, scanBuf)}
	s.reset(r)
	return s
}

// reset starts on another file with the same buffers.
func (s *scanner) reset(r io.Reader) {
	s.r, s.pos, s.end, s.base, s.depth, s.kept, s.err = r, 0, 0, 0, 0, 0, nil
}

func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fill replaces the buffer, which must be used up. It is false at the end of the file and after a read error.
func (s *scanner) fill() bool {
	if s.err != nil {
		return false
	}
	s.base += int64(s.end)
	s.pos, s.end = 0, 0
	for range 100 { // as bufio does, a reader that gives nothing for ever is an error
		n, err := s.r.Read(s.buf)
		s.end = n
		if n > 0 {
			return true
		}
		if err == io.EOF {
			return false
		}
		if err != nil {
			s.err = err
			return false
		}
	}
	s.err = io.ErrNoProgress
	return false
}

func (s *scanner) fail(format string, args ...any) error {
	if s.err != nil {
		return s.err
	}
	return &FormatError{Offset: s.offset(), What: fmt.Sprintf(format, args...)}
}

// unexpected tells what stands at the current place in stead of what was wanted.
func (s *scanner) unexpected(wanted string) error {
	if s.pos >= s.end && !s.fill() {
		return s.fail("the file ends where %s was expected", wanted)
	}
	return s.fail("found %q where %s was expected", s.buf[s.pos], wanted)
}

// peek passes over white space and gives the next byte without taking it; 0 at the end.
func (s *scanner) peek() byte {
	for {
		for s.pos < s.end {
			c := s.buf[s.pos]
			if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return c
			}
			s.pos++
		}
		if !s.fill() {
			return 0
		}
	}
}

// begin enters an array or object; more is false where it is empty (and already left).
func (s *scanner) begin(open, closing byte) (more bool, err error) {
	if s.peek() != open {
		return false, s.unexpected(wantedFor[open])
	}
	if s.depth++; s.depth > maxDepth {
		return false, s.fail("nested deeper than %d levels", maxDepth)
	}
	s.pos++
	if s.peek() == closing {
		s.pos++
		s.depth--
		return false, nil
	}
	return true, nil
}

var wantedFor = [256]string{'[': "an array", '{': "an object"}

// more is called after an element: true after a comma, false after the closing bracket.
func (s *scanner) more(closing byte) (bool, error) {
	switch s.peek() {
	case ',':
		s.pos++
		return true, nil
	case closing:
		s.pos++
		s.depth--
		return false, nil
	}
	return false, s.unexpected("',' or '" + string(rune(closing)) + "'")
}

// array calls element at each element, which must read it.
func (s *scanner) array(element func() error) error {
	ok, err := s.begin('[', ']')
	for err == nil && ok {
		if err = element(); err == nil {
			ok, err = s.more(']')
		}
	}
	return err
}

// object calls member at each value, which must read it. The key is valid until something is read.
func (s *scanner) object(member func(key []byte) error) error {
	ok, err := s.begin('{', '}')
	for err == nil && ok {
		if err = s.memberKey(); err != nil {
			return err
		}
		if err = member(s.key); err == nil {
			ok, err = s.more('}')
		}
	}
	return err
}

func (s *scanner) memberKey() error {
	if s.peek() != '"' {
		return s.unexpected("a key in quotes")
	}
	k, err := s.text()
	if err != nil {
		return err
	}
	s.key = append(s.key[:0], k...)
	if s.peek() != ':' {
		return s.unexpected("':'")
	}
	s.pos++
	return nil
}

// document reads a file that is one object and nothing after it.
func (s *scanner) document(member func(key []byte) error) error {
	if err := s.object(member); err != nil {
		return err
	}
	return s.finish()
}

func (s *scanner) finish() error {
	if s.peek(); s.pos < s.end {
		return s.fail("found %q after the end of the document", s.buf[s.pos])
	}
	return s.err
}

// null takes a null if there is one.
func (s *scanner) null() (bool, error) {
	if s.peek() != 'n' {
		return false, nil
	}
	return true, s.literal("null")
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.pos >= s.end && !s.fill() {
			return s.fail("the file ends inside %s", word)
		}
		if s.buf[s.pos] != word[i] {
			return s.unexpected(word)
		}
		s.pos++
	}
	return nil
}

// int64 reads an integer. A number with a fraction of zero (4.0) counts as one.
func (s *scanner) int64() (int64, error) {
	c := s.peek()
	if c != '-' && (c < '0' || c > '9') {
		return 0, s.unexpected("an integer")
	}
	if s.end-s.pos < 24 || c == '-' || c == '0' {
		return s.slowInt()
	}
	v, p := int64(0), s.pos
	for limit := p + 18; p < limit; p++ { // 18 digits cannot overflow
		d := s.buf[p] - '0'
		if d > 9 {
			break
		}
		v = v*10 + int64(d)
	}
	if c := s.buf[p]; c-'0' <= 9 || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+' {
		return s.slowInt()
	}
	s.pos = p
	return v, nil
}

func (s *scanner) slowInt() (int64, error) {
	at := s.offset()
	text, err := s.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		return v, nil
	}
	f, ferr := strconv.ParseFloat(string(text), 64)
	if ferr == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return 0, &FormatError{Offset: at, What: fmt.Sprintf("%s is no 64-bit integer", text)}
}

// number takes the text of a number and checks it against JSON's grammar.
func (s *scanner) number() ([]byte, error) {
	at := s.offset()
	s.scratch = s.scratch[:0]
	for {
		if s.pos >= s.end && !s.fill() {
			break
		}
		c := s.buf[s.pos]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		if len(s.scratch) == maxNumber {
			return nil, s.fail("a number of more than %d characters", maxNumber)
		}
		s.scratch = append(s.scratch, c)
		s.pos++
	}
	if s.err != nil {
		return nil, s.err
	}
	if !validNumber(s.scratch) {
		return nil, &FormatError{Offset: at, What: fmt.Sprintf("%q is no number", s.scratch)}
	}
	return s.scratch, nil
}

func validNumber(t []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(t) && t[n] >= '0' && t[n] <= '9' {
			n++
		}
		t = t[n:]
		return n > 0
	}
	if len(t) > 0 && t[0] == '-' {
		t = t[1:]
	}
	if len(t) > 0 && t[0] == '0' {
		t = t[1:]
	} else if !digits() {
		return false
	}
	if len(t) > 0 && t[0] == '.' {
		if t = t[1:]; !digits() {
			return false
		}
	}
	if len(t) > 0 && (t[0] == 'e' || t[0] == 'E') {
		if t = t[1:]; len(t) > 0 && (t[0] == '+' || t[0] == '-') {
			t = t[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(t) == 0
}

// flag reads true, false, 1 or 0: occupancy.json has had both forms for "start".
func (s *scanner) flag() (bool, error) {
	switch s.peek() {
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	}
	at := s.offset()
	v, err := s.int64()
	if err == nil && v != 0 && v != 1 {
		err = &FormatError{Offset: at, What: fmt.Sprintf("%d where 0, 1, true or false was expected", v)}
	}
	return v == 1, err
}

// text reads a string. The bytes are valid until something else is read.
func (s *scanner) text() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.unexpected("a string")
	}
	s.pos++
	for p := s.pos; p < s.end; p++ {
		switch c := s.buf[p]; {
		case c == '"':
			t := s.buf[s.pos:p]
			s.pos = p + 1
			return t, nil
		case c == '\\' || c < ' ':
			return s.slowText()
		}
	}
	return s.slowText()
}

// slowText reads on from after the opening quote, over escapes and buffer ends.
func (s *scanner) slowText() ([]byte, error) {
	s.scratch = s.scratch[:0]
	for {
		if s.pos >= s.end && !s.fill() {
			return nil, s.fail("the file ends inside a string")
		}
		c := s.buf[s.pos]
		switch {
		case c == '"':
			s.pos++
			return s.scratch, nil
		case c < ' ':
			return nil, s.fail("control character %#02x inside a string", c)
		case len(s.scratch) > maxText:
			return nil, s.fail("a string of more than %d bytes", maxText)
		case c == '\\':
			s.pos++
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			s.scratch = append(s.scratch, c)
			s.pos++
		}
	}
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (s *scanner) escape() error {
	if s.pos >= s.end && !s.fill() {
		return s.fail("the file ends inside a string")
	}
	c := s.buf[s.pos]
	if plain := escapes[c]; plain != 0 {
		s.scratch = append(s.scratch, plain)
		s.pos++
		return nil
	}
	if c != 'u' {
		return s.unexpected("an escape that JSON knows")
	}
	s.pos++
	r, err := s.hex4()
	if err != nil {
		return err
	}
	for utf16.IsSurrogate(r) {
		// A second half may follow; a half without its other half is U+FFFD, as in encoding/json.
		if (s.pos >= s.end && !s.fill()) || s.buf[s.pos] != '\\' {
			r = utf8.RuneError
			break
		}
		s.pos++
		if (s.pos >= s.end && !s.fill()) || s.buf[s.pos] != 'u' {
			s.scratch = utf8.AppendRune(s.scratch, utf8.RuneError)
			return s.escape()
		}
		s.pos++
		low, err := s.hex4()
		if err != nil {
			return err
		}
		pair := utf16.DecodeRune(r, low)
		if pair != utf8.RuneError {
			r = pair
			break
		}
		s.scratch = utf8.AppendRune(s.scratch, utf8.RuneError)
		if r = low; len(s.scratch) > maxText {
			return s.fail("a string of more than %d bytes", maxText)
		}
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return nil
}

func (s *scanner) hex4() (rune, error) {
	v := rune(0)
	for range 4 {
		if s.pos >= s.end && !s.fill() {
			return 0, s.fail("the file ends inside a string")
		}
		c := s.buf[s.pos]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, s.unexpected("a hexadecimal digit")
		}
		s.pos++
	}
	return v, nil
}

// str reads a string to keep, as valid UTF-8.
func (s *scanner) str() (string, error) { return s.strAfter("") }

// strAfter is str where the last string is likely to come again, which is then kept once: neighbours have one source line.
func (s *scanner) strAfter(last string) (string, error) {
	t, err := s.text()
	if err != nil {
		return "", err
	}
	if string(t) == last {
		return last, nil
	}
	if s.kept += int64(len(t)); s.kept > maxKept {
		return "", s.fail("more than %d bytes of text", maxKept)
	}
	return strings.ToValidUTF8(string(t), "\uFFFD"), nil
}

// skip reads any value, checks it and drops it.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '[':
		return s.skipArray()
	case c == '{':
		return s.skipObject()
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.skipNumber()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.unexpected("a value")
}

func (s *scanner) skipArray() error {
	ok, err := s.begin('[', ']')
	for err == nil && ok {
		if err = s.skip(); err == nil {
			ok, err = s.more(']')
		}
	}
	return err
}

func (s *scanner) skipObject() error {
	ok, err := s.begin('{', '}')
	for err == nil && ok {
		if err = s.memberKey(); err != nil {
			return err
		}
		if err = s.skip(); err == nil {
			ok, err = s.more('}')
		}
	}
	return err
}

func (s *scanner) skipNumber() error {
	p := s.pos
	if s.buf[p] != '0' {
		for p < s.end && s.buf[p]-'0' <= 9 {
			p++
		}
		if p > s.pos && p < s.end {
			if c := s.buf[p]; c == ',' || c == ']' || c == '}' {
				s.pos = p
				return nil
			}
		}
	}
	_, err := s.number()
	return err
}
