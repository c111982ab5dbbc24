package schemas

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// Coerce rewrites arguments as models send them into what the schema asks for, where the meaning is certain: numbers and
// booleans in quotes, "0x60" for an integer, numbers for text, an array or object written as text, one token for an
// array, the case of an enum's value, null or "" for what may be left out. Anything else stays as it is, for Validate to
// judge. Absent arguments become an empty object.
func (v *Validator) Coerce(raw []byte) (json.RawMessage, error) {
	c, err := v.compile()
	if err != nil {
		return nil, envelope.Build(envelope.Internal, envelope.Facts{Message: "the schema does not compile: " + err.Error()}).WithCause(err)
	}
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	tree, err := jsontree.Parse(raw, jsontree.Limits{Bytes: MaxArgs, Depth: maxDepth})
	if err != nil {
		return nil, notJSON(raw, err)
	}
	if tree.Kind == jsontree.Null {
		return json.RawMessage("{}"), nil
	}
	return coerce(c.spec, tree).Bytes(), nil
}

// coerce gives the node to stand in the place of n; it may be n itself, changed.
func coerce(s *jsonschema.Schema, n *jsontree.Node) *jsontree.Node {
	if s == nil {
		return n
	}
	switch s.Type {
	case "object":
		return coerceObject(s, parseText(n, jsontree.Object))
	case "array":
		return coerceArray(s, parseText(n, jsontree.Array))
	case "integer":
		return coerceInteger(n)
	case "number":
		return coerceNumber(n)
	case "boolean":
		return coerceBool(n)
	case "string":
		return coerceString(s, n)
	}
	return n
}

// parseText reads text that holds JSON of the wanted kind.
func parseText(n *jsontree.Node, want jsontree.Kind) *jsontree.Node {
	if n.Kind != jsontree.String {
		return n
	}
	parsed, err := jsontree.Parse([]byte(n.Text), jsontree.Limits{Bytes: MaxArgs, Depth: maxDepth})
	if err != nil || parsed.Kind != want {
		return n
	}
	return parsed
}

func coerceObject(s *jsonschema.Schema, n *jsontree.Node) *jsontree.Node {
	if n.Kind != jsontree.Object {
		return n
	}
	kept := n.Members[:0]
	for _, m := range n.Members {
		p := property(s, m.Name)
		if p != nil && saysNothing(m.Value) && !slices.Contains(s.Required, m.Name) {
			continue
		}
		kept = append(kept, jsontree.Member{Name: m.Name, Value: coerce(p, m.Value)})
	}
	n.Members = kept
	return n
}

// saysNothing is true of what models send for an argument that they mean to leave out.
func saysNothing(n *jsontree.Node) bool {
	return n.Kind == jsontree.Null || n.Kind == jsontree.String && n.Text == ""
}

func coerceArray(s *jsonschema.Schema, n *jsontree.Node) *jsontree.Node {
	if n.Kind == jsontree.String && (n.Text == "" || strings.ContainsAny(n.Text, " \t\r\n")) {
		return n // one item or several? Only the caller knows.
	}
	if n.Kind == jsontree.String || n.Kind == jsontree.Number || n.Kind == jsontree.Bool {
		n = &jsontree.Node{Kind: jsontree.Array, Items: []*jsontree.Node{n}}
	}
	for i, item := range n.Items {
		n.Items[i] = coerce(s.Items, item)
	}
	return n
}

// coerceInteger also writes 8.0 and 1e3 as 8 and 1000: both are integers to JSON Schema, and not to Go.
func coerceInteger(n *jsontree.Node) *jsontree.Node {
	text := n.Text
	switch n.Kind {
	case jsontree.String:
		text = strings.TrimSpace(text)
		if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
			if value, err := strconv.ParseUint(hex, 16, 63); err == nil {
				return &jsontree.Node{Kind: jsontree.Number, Text: strconv.FormatUint(value, 10)}
			}
			return n
		}
	case jsontree.Number:
	default:
		return n
	}
	number, ok := numberNode(text)
	if !ok {
		return n
	}
	if value, ok := new(big.Rat).SetString(number.Text); ok && value.IsInt() && value.Num().IsInt64() {
		return &jsontree.Node{Kind: jsontree.Number, Text: value.Num().String()}
	}
	return number
}

func coerceNumber(n *jsontree.Node) *jsontree.Node {
	if n.Kind != jsontree.String {
		return n
	}
	if number, ok := numberNode(strings.TrimSpace(n.Text)); ok {
		return number
	}
	return n
}

// numberNode reads text that is a JSON number to the letter.
func numberNode(text string) (*jsontree.Node, bool) {
	n, err := jsontree.Parse([]byte(text), jsontree.Limits{Bytes: 64, Depth: 1})
	return n, err == nil && n.Kind == jsontree.Number
}

func coerceBool(n *jsontree.Node) *jsontree.Node {
	if n.Kind != jsontree.String {
		return n
	}
	switch text := strings.ToLower(strings.TrimSpace(n.Text)); text {
	case "true", "false":
		return &jsontree.Node{Kind: jsontree.Bool, Text: text}
	}
	return n
}

func coerceString(s *jsonschema.Schema, n *jsontree.Node) *jsontree.Node {
	if n.Kind == jsontree.Number {
		n = &jsontree.Node{Kind: jsontree.String, Text: n.Text}
	}
	if n.Kind != jsontree.String {
		return n
	}
	for _, allowed := range s.Enum {
		if text, ok := allowed.(string); ok && strings.EqualFold(text, strings.TrimSpace(n.Text)) {
			return &jsontree.Node{Kind: jsontree.String, Text: text}
		}
	}
	return n
}
