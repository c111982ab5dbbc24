package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// maxDepth bounds the nesting of a file: the parser is recursive.
const maxDepth = 1000

// nested counts how deep brackets stand in each other at most, without those in texts; a text ends with its line at the latest. Those in
// comments count.
func nested(text []byte) int {
	depth, most, inText := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\n' || b == '"':
			inText = b == '"' && !inText
		case inText && b == '\\':
			i++
		case inText:
		case b == '{' || b == '[':
			depth++
			most = max(most, depth)
		case b == '}' || b == ']':
			depth = max(0, depth-1)
		}
	}
	return most
}

// jsonFile is a JSON text that is changed in place: what is not touched keeps its bytes.
type jsonFile struct {
	root hujson.Value
	// newline ends lines and unit indents them, as in the text.
	newline, unit string
	// added: the parser wants a comment's line to end, and the text has no end of its last line.
	added bool
}

// text gives the whole text.
func (f *jsonFile) text() []byte {
	if f.added {
		return bytes.TrimSuffix(f.root.Pack(), []byte("\n"))
	}
	return f.root.Pack()
}

var bom = []byte("\xef\xbb\xbf")

// errFormat says in words why a text cannot be changed.
type errFormat string

func (e errFormat) Error() string { return string(e) }

func parseJSON(text []byte, format Format) (*jsonFile, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if n := nested(text); n > maxDepth {
		return nil, errFormat(fmt.Sprintf("it is nested %d deep", n))
	}
	added := !bytes.HasSuffix(text, []byte("\n"))
	if added {
		text = append(slices.Clone(text), '\n')
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errFormat("it is no JSON: " + strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if format == JSON && !root.IsStandard() {
		return nil, errFormat("it has comments or trailing commas, which its client does not read")
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, errFormat("it is no object")
	}
	f := &jsonFile{root: root, newline: "\n", unit: "  ", added: added}
	if bytes.Contains(text, []byte("\r\n")) {
		f.newline = "\r\n"
	}
	for line := range bytes.Lines(text) {
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; len(indent) > 0 && len(bytes.TrimSpace(line)) > 0 {
			f.unit = string(indent)
			break
		}
	}
	return f, nil
}

// mergeJSON puts the fields of an entry under key.name of a text. Fields that the entry has not stay. changed is false where all of them
// are there as they should be, and differs true where one is there with another value.
func mergeJSON(text []byte, format Format, key, name string, fields []field) (merged []byte, changed, differs bool, err error) {
	body, marked := bytes.CutPrefix(text, bom)
	f, err := parseJSON(body, format)
	if err != nil {
		return nil, false, false, err
	}
	servers, err := f.object(&f.root, key, 1)
	if err != nil {
		return nil, false, false, err
	}
	had := member(servers.Value.(*hujson.Object), name) != nil
	entry, err := f.object(servers, name, 2)
	if err != nil {
		return nil, false, false, err
	}
	obj := entry.Value.(*hujson.Object)
	for _, want := range fields {
		have := member(obj, want.name)
		switch {
		case have != nil && sameJSON(*have, want.value):
			continue
		case have != nil:
			differs = true
			have.Value = literal(want.value).Value
		default:
			differs = differs || had
			f.add(obj, want.name, literal(want.value), 3)
		}
		changed = true
	}
	merged = f.text()
	if marked {
		merged = append(slices.Clone(bom), merged...)
	}
	return merged, changed, differs, nil
}

// object gives the object under a name, which is made where there is none.
func (f *jsonFile) object(in *hujson.Value, name string, depth int) (*hujson.Value, error) {
	obj := in.Value.(*hujson.Object)
	at := -1
	for i, m := range obj.Members {
		if m.Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if at >= 0 {
			return nil, errFormat(fmt.Sprintf("it has %q twice", name))
		}
		at = i
	}
	if at < 0 {
		f.add(obj, name, hujson.Value{Value: &hujson.Object{}}, depth)
		at = len(obj.Members) - 1
	}
	value := &obj.Members[at].Value
	if _, ok := value.Value.(*hujson.Object); !ok {
		return nil, errFormat(fmt.Sprintf("its %q is no object", name))
	}
	return value, nil
}

func member(obj *hujson.Object, name string) *hujson.Value {
	for i := range obj.Members {
		if obj.Members[i].Name.Value.(hujson.Literal).String() == name {
			return &obj.Members[i].Value
		}
	}
	return nil
}

// field is one field of an entry: a text, a number or a list of texts.
type field struct {
	name  string
	value any
}

// add appends a member on a line of its own. What stands behind the last member, a comment perhaps, stays with it.
func (f *jsonFile) add(obj *hujson.Object, name string, value hujson.Value, depth int) {
	line := f.newline + strings.Repeat(f.unit, depth)
	behind := strings.TrimRight(string(obj.AfterExtra), " \t\r\n")
	obj.AfterExtra = hujson.Extra(f.newline + strings.Repeat(f.unit, depth-1))
	fresh := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name), BeforeExtra: hujson.Extra(behind + line)}, Value: value}
	fresh.Value.BeforeExtra = hujson.Extra(" ")
	if n := len(obj.Members); n > 0 && obj.Members[n-1].Value.AfterExtra != nil {
		fresh.Value.AfterExtra = hujson.Extra{} // a trailing comma, which stays one
	}
	obj.Members = append(obj.Members, fresh)
}

// literal makes a value of a text, a number or a list of texts.
func literal(v any) hujson.Value {
	switch v := v.(type) {
	case string:
		return hujson.Value{Value: hujson.String(v)}
	case int:
		return hujson.Value{Value: hujson.Int(int64(v))}
	}
	list := &hujson.Array{}
	for i, text := range v.([]string) {
		item := literal(text)
		if i > 0 {
			item.BeforeExtra = hujson.Extra(" ")
		}
		list.Elements = append(list.Elements, item)
	}
	return hujson.Value{Value: list}
}

// sameJSON compares a value of a file with one of ours.
func sameJSON(have hujson.Value, want any) bool {
	have = have.Clone()
	have.Standardize()
	var a, b any
	raw, err := json.Marshal(want)
	if err != nil || json.Unmarshal(have.Pack(), &a) != nil || json.Unmarshal(raw, &b) != nil {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
