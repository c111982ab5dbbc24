package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// Kind is what a message is.
type Kind byte

const (
	Request Kind = iota
	Notification
	// Reply to a request of the server's.
	Reply
)

// Message is what a transport must know of a message.
type Message struct {
	Kind   Kind
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Parse reads the envelope of a message. With a fault the id is there where it could be read.
func Parse(raw []byte) (Message, *Error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return Message{}, &Error{Code: mcp.PARSE_ERROR, Message: "not a line of JSON in UTF-8"}
	}
	var e struct {
		JSONRPC, ID, Method, Params, Result, Error json.RawMessage
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Message{}, &Error{Code: mcp.INVALID_REQUEST, Message: "a message is a JSON object; batches are not served"}
	}
	m := Message{Params: e.Params}
	id, ok := CanonicalID(e.ID)
	if e.ID != nil && !ok {
		return m, &Error{Code: mcp.INVALID_REQUEST, Message: "the id must be a string or a number"}
	}
	m.ID = id
	if string(e.JSONRPC) != `"2.0"` {
		return m, &Error{Code: mcp.INVALID_REQUEST, Message: `jsonrpc must be "2.0"`}
	}
	switch {
	case e.Method == nil && (e.Result != nil || e.Error != nil):
		m.Kind = Reply
		return m, nil
	case e.Method == nil || json.Unmarshal(e.Method, &m.Method) != nil || m.Method == "":
		return m, &Error{Code: mcp.INVALID_REQUEST, Message: "method must be a string"}
	case e.ID == nil:
		m.Kind = Notification
	}
	return m, nil
}

// CanonicalID gives an id in one form: 1 and "1" stay different, "a" and its escaped spelling become the same.
func CanonicalID(raw json.RawMessage) (json.RawMessage, bool) {
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

// Shorten cuts a text to at most n bytes at a character boundary.
func Shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// CancelledError is the cause of a request's context (context.Cause) when the client cancelled it.
type CancelledError struct{ Reason string }

// Error gives the client's reason where it gave one.
func (e *CancelledError) Error() string {
	if e.Reason == "" {
		return "cancelled by the client"
	}
	return "cancelled by the client: " + e.Reason
}

// Cancelled reads the parameters of notifications/cancelled: which request, and why.
func Cancelled(params json.RawMessage) (id json.RawMessage, reason string, ok bool) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, "", false
	}
	id, ok = CanonicalID(p.RequestID)
	return id, Shorten(p.Reason, 200), ok
}
