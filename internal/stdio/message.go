package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// line is one line of input.
type line struct {
	text    []byte
	tooLong bool
	err     error
}

// byteOrderMark is what some Windows programs put before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readLines sends the lines of in that are not blank, without their ends, and closes the channel at the end of input. A
// line of more than limit bytes is skipped up to the next newline without being kept.
func readLines(ctx context.Context, in io.Reader, limit int, out chan<- line) {
	defer close(out)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, tooLong, err := readLine(r, limit)
		l := line{text: bytes.TrimSpace(bytes.TrimPrefix(text, byteOrderMark)), tooLong: tooLong}
		if len(l.text) > 0 || l.tooLong {
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			select {
			case out <- line{err: err}:
			case <-ctx.Done():
			}
			return
		}
	}
}

func readLine(r *bufio.Reader, limit int) (text []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			text = append(text, part...)
		}
		if len(text) > limit+len("\r\n") {
			text, tooLong = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, tooLong, err
		}
	}
}

// kind is what a message is.
type kind byte

const (
	request kind = iota
	notification
	// reply to a request of the server's.
	reply
)

// message is what the loop must know of a message.
type message struct {
	kind   kind
	id     json.RawMessage
	method string
	params json.RawMessage
}

// parseMessage reads the envelope of a message. With a fault the id is there where it could be read.
func parseMessage(raw []byte) (message, *Error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return message{}, &Error{mcp.PARSE_ERROR, "not a line of JSON in UTF-8"}
	}
	var e struct {
		JSONRPC, ID, Method, Params, Result, Error json.RawMessage
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return message{}, &Error{mcp.INVALID_REQUEST, "a message is a JSON object; batches are not served"}
	}
	m := message{params: e.Params}
	id, ok := canonicalID(e.ID)
	if e.ID != nil && !ok {
		return m, &Error{mcp.INVALID_REQUEST, "the id must be a string or a number"}
	}
	m.id = id
	if string(e.JSONRPC) != `"2.0"` {
		return m, &Error{mcp.INVALID_REQUEST, `jsonrpc must be "2.0"`}
	}
	switch {
	case e.Method == nil && (e.Result != nil || e.Error != nil):
		m.kind = reply
		return m, nil
	case e.Method == nil || json.Unmarshal(e.Method, &m.method) != nil || m.method == "":
		return m, &Error{mcp.INVALID_REQUEST, "method must be a string"}
	case e.ID == nil:
		m.kind = notification
	}
	return m, nil
}

// canonicalID gives an id in one form: 1 and "1" stay different, "a" and its escaped spelling become the same.
func canonicalID(raw json.RawMessage) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, false
	}
	switch c := raw[0]; {
	case c == '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
		out, err := json.Marshal(text)
		return out, err == nil
	case c == '-' || c >= '0' && c <= '9':
		return raw, true
	}
	return nil, false
}

// shorten cuts a text to at most n bytes at a character boundary.
func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
