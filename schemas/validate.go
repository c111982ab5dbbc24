package schemas

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// The limits of arguments.
const (
	// MaxArgs is the most bytes of arguments that are read: 1 MiB.
	MaxArgs = 1 << 20
	// maxDepth is far over what any tool's arguments need.
	maxDepth = 64
	// maxShown is how much of an offending value an error repeats, in bytes.
	maxShown = 200
)

// Validator checks JSON against one schema. It compiles the schema at the first use, and is safe for concurrent use.
type Validator struct {
	schema  json.RawMessage
	compile func() (*compiled, error)
}

type compiled struct {
	rules *v5.Schema
	// spec is the same schema as a tree, for coercion and for saying what is allowed.
	spec *jsonschema.Schema
}

// NewValidator makes a validator of a schema.
func NewValidator(schema json.RawMessage) *Validator {
	return &Validator{schema: schema, compile: sync.OnceValues(func() (*compiled, error) { return compileSchema(schema) })}
}

func compileSchema(schema json.RawMessage) (*compiled, error) {
	const name = "schema.json"
	compiler := v5.NewCompiler()
	compiler.Draft = v5.Draft2020
	compiler.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("schemas stand alone; nothing is loaded") }
	if err := compiler.AddResource(name, strings.NewReader(string(schema))); err != nil {
		return nil, err
	}
	rules, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	spec := new(jsonschema.Schema)
	return &compiled{rules, spec}, json.Unmarshal(schema, spec)
}

// Check coerces arguments and validates them. It gives the arguments to decode, or a BAD_ARGS error whose evidence names
// the field, its value, what is allowed, and for an unknown name the valid ones.
func (v *Validator) Check(raw []byte) (json.RawMessage, error) {
	raw, err := v.Coerce(raw)
	if err != nil {
		return nil, err
	}
	return raw, v.Validate(raw)
}

// Validate checks JSON as it stands. The error is BAD_ARGS as Check gives it, or INTERNAL where the schema itself is broken.
func (v *Validator) Validate(raw []byte) error {
	c, err := v.compile()
	if err != nil {
		return envelope.Build(envelope.Internal, envelope.Facts{Message: "the schema does not compile: " + err.Error()}).WithCause(err)
	}
	tree, err := jsontree.Parse(raw, jsontree.Limits{Bytes: MaxArgs, Depth: maxDepth})
	if err != nil {
		return notJSON(raw, err)
	}
	err = c.rules.Validate(plain(tree))
	var invalid *v5.ValidationError
	if errors.As(err, &invalid) {
		return explain(c.spec, tree, invalid)
	}
	if err != nil {
		return envelope.Build(envelope.Internal, envelope.Facts{Message: "the arguments cannot be checked: " + err.Error()}).WithCause(err)
	}
	return nil
}

func notJSON(raw []byte, err error) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  "The arguments cannot be read: " + err.Error() + ".",
		Evidence: envelope.Evidence{Field: "arguments", Value: shorten(string(raw)), Allowed: fmt.Sprintf("a JSON object of at most %d bytes", MaxArgs)},
	})
}

// plain gives a tree in the form that the validating library takes.
func plain(n *jsontree.Node) any {
	switch n.Kind {
	case jsontree.Bool:
		return n.Text == "true"
	case jsontree.Number:
		return json.Number(n.Text)
	case jsontree.String:
		return n.Text
	case jsontree.Array:
		items := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			items = append(items, plain(item))
		}
		return items
	case jsontree.Object:
		members := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			members[m.Name] = plain(m.Value)
		}
		return members
	}
	return nil
}

// fault is one thing that is wrong.
type fault struct {
	keyword string
	path    []string
}

// explain picks the fault to report - an unknown name before a missing one before a wrong value, since the first often
// explains the second - and says it in words.
func explain(spec *jsonschema.Schema, args *jsontree.Node, invalid *v5.ValidationError) error {
	faults := leaves(invalid, nil)
	if len(faults) == 0 {
		return notJSON(args.Bytes(), errors.New(invalid.Message))
	}
	rank := func(f fault) int {
		if i := slices.Index([]string{"additionalProperties", "required"}, f.keyword); i >= 0 {
			return i
		}
		return 2
	}
	worst := slices.MinFunc(faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), slices.Compare(a.path, b.path), cmp.Compare(a.keyword, b.keyword))
	})
	s, value := locate(spec, args, worst.path)
	switch worst.keyword {
	case "additionalProperties":
		return unknownName(s, value, worst.path)
	case "required":
		return missing(s, value, worst.path)
	}
	return wrongValue(s, value, worst.path)
}

func leaves(e *v5.ValidationError, out []fault) []fault {
	if len(e.Causes) == 0 {
		keyword := e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]
		return append(out, fault{keyword, pointer(e.InstanceLocation)})
	}
	for _, cause := range e.Causes {
		out = leaves(cause, out)
	}
	return out
}

// pointer splits a JSON pointer (RFC 6901) as the library writes it: URL-escaped in addition.
func pointer(p string) []string {
	var path []string
	for part := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if part == "" {
			continue
		}
		path = append(path, unescape(part))
	}
	return path
}

func locate(s *jsonschema.Schema, value *jsontree.Node, path []string) (*jsonschema.Schema, *jsontree.Node) {
	for _, part := range path {
		if s == nil || value == nil {
			return s, value
		}
		if value.Kind == jsontree.Array {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(value.Items) {
				return s, value
			}
			s, value = s.Items, value.Items[i]
			continue
		}
		s, value = property(s, part), value.Get(part)
	}
	return s, value
}

// property gives the schema of a member, nil where the schema does not name it.
func property(s *jsonschema.Schema, name string) *jsonschema.Schema {
	if s == nil || s.Properties == nil {
		return nil
	}
	p, _ := s.Properties.Get(name)
	return p
}

// names gives the members that a schema names, in its order.
func names(s *jsonschema.Schema) []string {
	var out []string
	if s != nil && s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			out = append(out, pair.Key)
		}
	}
	return out
}

func unknownName(s *jsonschema.Schema, object *jsontree.Node, path []string) error {
	valid := names(s)
	var field string
	var value *jsontree.Node
	for _, m := range object.Members {
		if !slices.Contains(valid, m.Name) {
			field, value = m.Name, m.Value
			break
		}
	}
	message := fmt.Sprintf("There is no argument %q", shorten(field))
	if near := near.Nearest(field, valid); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else {
		message += "."
	}
	ev := envelope.Evidence{Field: fieldPath(append(path, field)), Allowed: "one of the valid names", ValidNames: valid}
	if value != nil {
		ev.Value = shorten(string(value.Bytes()))
	}
	return envelope.Build(envelope.BadArgs, envelope.Facts{Message: message, Evidence: ev})
}

func missing(s *jsonschema.Schema, object *jsontree.Node, path []string) error {
	field := ""
	for _, name := range s.Required {
		if object.Get(name) == nil {
			field = name
			break
		}
	}
	allowed := Words(property(s, field))
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("The argument %q is missing; it must be %s.", fieldPath(append(path, field)), allowed),
		Evidence: envelope.Evidence{Field: fieldPath(append(path, field)), Allowed: allowed, ValidNames: names(s)},
	})
}

func wrongValue(s *jsonschema.Schema, value *jsontree.Node, path []string) error {
	field := fieldPath(path)
	shown, allowed := shorten(string(value.Bytes())), Words(s)
	message := fmt.Sprintf("The argument %q is %s; it must be %s.", field, shown, allowed)
	if len(path) == 0 {
		field, message = "arguments", fmt.Sprintf("The arguments are %s; they must be a JSON object.", shown)
	}
	return envelope.Build(envelope.BadArgs, envelope.Facts{Message: message, Evidence: envelope.Evidence{Field: field, Value: shown, Allowed: allowed}})
}

// fieldPath writes a path as people do: args[2], not /args/2.
func fieldPath(path []string) string {
	var b strings.Builder
	for i, part := range path {
		part = shorten(part)
		switch _, err := strconv.Atoi(part); {
		case err == nil && i > 0:
			b.WriteString("[" + part + "]")
		case i > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}

func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func unescape(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}
