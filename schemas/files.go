package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

//go:embed *.json
var committed embed.FS

// Committed gives a committed schema, compact; nil where there is none of that name. A test holds the files to the types.
func Committed(name string) json.RawMessage {
	text, err := committed.ReadFile(name)
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil
	}
	return out.Bytes()
}

// Pretty writes a schema as it is committed: indented, with a newline at its end.
func Pretty(schema json.RawMessage) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, schema, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Sync compares the schema files in dir with what the types give, and says how they differ: one line for each file that
// is missing, stale or left over. With update it makes them equal, and then nothing differs.
func Sync(dir string, files map[string][]byte, update bool) ([]string, error) {
	present, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var drift []string
	for _, path := range present {
		if _, wanted := files[filepath.Base(path)]; wanted {
			continue
		}
		if !update {
			drift = append(drift, filepath.Base(path)+": no tool has this schema")
		} else if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		have, err := os.ReadFile(path)
		have = bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n")) // a checkout on Windows
		if err == nil && bytes.Equal(have, files[name]) {
			continue
		}
		if !update {
			drift = append(drift, fmt.Sprintf("%s: differs from the types", name))
		} else if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return nil, err
		}
	}
	return drift, nil
}

// FillNulls gives JSON in which no member is null: Go writes nil slices and maps so, and clients that validate against
// the schema reject it. A null where the schema has an array or object becomes an empty one; another is left out.
func (v *Validator) FillNulls(raw json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte("null")) {
		return raw, nil
	}
	c, err := v.compile()
	if err != nil {
		return nil, envelope.Build(envelope.Internal, envelope.Facts{Message: "the schema does not compile: " + err.Error()}).WithCause(err)
	}
	tree, err := jsontree.Parse(raw, jsontree.Limits{Bytes: len(raw), Depth: 1000})
	if err != nil {
		return nil, err
	}
	fillNulls(c.spec, tree)
	return tree.Bytes(), nil
}

func fillNulls(s *jsonschema.Schema, n *jsontree.Node) {
	for _, item := range n.Items {
		var items *jsonschema.Schema
		if s != nil {
			items = s.Items
		}
		fillNulls(items, item)
	}
	kept := n.Members[:0]
	for _, m := range n.Members {
		p := property(s, m.Name)
		if p == nil && s != nil && isSchema(s.AdditionalProperties) {
			p = s.AdditionalProperties
		}
		if m.Value.Kind == jsontree.Null && p != nil {
			switch p.Type {
			case "array":
				m.Value.Kind = jsontree.Array
			case "object":
				m.Value.Kind = jsontree.Object
			default:
				continue
			}
		}
		fillNulls(p, m.Value)
		kept = append(kept, m)
	}
	n.Members = kept
}
