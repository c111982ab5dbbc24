// Package jsontree is a JSON text as a tree that keeps the order of members and numbers as they are written.
//
// encoding/json offers maps, which lose both. Coercion and the cutting of answers change a text in few places and must
// leave the rest as it was.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind is what a node is.
type Kind byte

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Node is one JSON value.
type Node struct {
	Kind Kind
	// Text is the string's value, the number as it is written, or "true" and "false".
	Text    string
	Items   []*Node
	Members []Member
}

// Member is one name and value of an object.
type Member struct {
	Name  string
	Value *Node
}

// Limits bound what Parse takes.
type Limits struct {
	// Bytes of the text.
	Bytes int
	// Depth of nested arrays and objects.
	Depth int
}

// The limits of a number: longer ones, or with larger exponents, make readers that compute exactly use memory without bound.
const (
	maxNumberLen = 64
	maxExponent  = 400
)

// ErrTrailing is text after the JSON value.
var ErrTrailing = errors.New("text after the JSON value")

// Parse reads one JSON value. It refuses texts over the limits, an object with the same name twice (readers differ on
// which one counts) and numbers that cannot be computed with.
func Parse(raw []byte, limits Limits) (*Node, error) {
	if len(raw) > limits.Bytes {
		return nil, fmt.Errorf("%d bytes of JSON; at most %d are read", len(raw), limits.Bytes)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	n, err := parse(dec, limits.Depth)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrTrailing
	}
	return n, nil
}

func parse(dec *json.Decoder, depth int) (*Node, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case nil:
		return &Node{}, nil
	case bool:
		return &Node{Kind: Bool, Text: strconv.FormatBool(t)}, nil
	case string:
		return &Node{Kind: String, Text: t}, nil
	case json.Number:
		return &Node{Kind: Number, Text: t.String()}, checkNumber(t.String())
	case json.Delim:
		if depth <= 0 {
			return nil, errors.New("the JSON is nested too deeply")
		}
		if t == '[' {
			return parseArray(dec, depth-1)
		}
		return parseObject(dec, depth-1)
	}
	return nil, fmt.Errorf("unexpected token %v", tok)
}

func parseArray(dec *json.Decoder, depth int) (*Node, error) {
	n := &Node{Kind: Array}
	for dec.More() {
		item, err := parse(dec, depth)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	_, err := dec.Token()
	return n, err
}

func parseObject(dec *json.Decoder, depth int) (*Node, error) {
	n := &Node{Kind: Object}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := tok.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected token %v for a member's name", tok)
		}
		if seen[name] {
			return nil, fmt.Errorf("%q is given twice", short(name))
		}
		seen[name] = true
		value, err := parse(dec, depth)
		if err != nil {
			return nil, err
		}
		n.Members = append(n.Members, Member{name, value})
	}
	_, err := dec.Token()
	return n, err
}

func checkNumber(s string) error {
	if len(s) > maxNumberLen {
		return fmt.Errorf("the number %s has too many digits", short(s))
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
			return fmt.Errorf("the number %s is out of range", s)
		}
	}
	return nil
}

func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// Get gives the member of an object by name, nil where there is none.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Set replaces a member of an object, or adds it at the end.
func (n *Node) Set(name string, value *Node) {
	for i, m := range n.Members {
		if m.Name == name {
			n.Members[i].Value = value
			return
		}
	}
	n.Members = append(n.Members, Member{name, value})
}

// Delete removes a member of an object.
func (n *Node) Delete(name string) {
	for i, m := range n.Members {
		if m.Name == name {
			n.Members = append(n.Members[:i:i], n.Members[i+1:]...)
			return
		}
	}
}

// Append writes the value compactly. Unlike encoding/json it leaves <, > and & as they are.
func (n *Node) Append(out []byte) []byte {
	switch n.Kind {
	case Bool, Number:
		return append(out, n.Text...)
	case String:
		return appendString(out, n.Text)
	case Array:
		out = append(out, '[')
		for i, item := range n.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.Append(out)
		}
		return append(out, ']')
	case Object:
		out = append(out, '{')
		for i, m := range n.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, m.Name), ':')
			out = m.Value.Append(out)
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}

// Bytes gives the value as compact JSON.
func (n *Node) Bytes() []byte { return n.Append(nil) }

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func appendString(out []byte, s string) []byte {
	raw, err := Marshal(s)
	if err != nil { // a string always encodes
		return append(out, `""`...)
	}
	return append(out, raw...)
}
