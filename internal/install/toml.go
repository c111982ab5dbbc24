package install

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/flyprof/flyprof-mcp/core/config"
)

// mergeTOML puts the fields of an entry into the table [key.name] of a text, as mergeJSON does. What stands outside of the table keeps
// its bytes; a table that is there is written anew, with the fields that it has besides.
func mergeTOML(text []byte, key, name string, fields []field) (merged []byte, changed, differs bool, err error) {
	before, md, err := decodeTOML(text)
	if err != nil {
		return nil, false, false, err
	}
	lines := slices.Collect(bytes.Lines(text))
	servers, ok := before[key].(map[string]any)
	if _, there := before[key]; there && !ok {
		return nil, false, false, errFormat(fmt.Sprintf("its %q is no table", key))
	}
	had, there := servers[name]
	entry, ok := had.(map[string]any)
	if there && !ok {
		return nil, false, false, errFormat(fmt.Sprintf("its %q is no table", key+"."+name))
	}
	want := maps.Clone(entry)
	if want == nil {
		want = map[string]any{}
	}
	for _, f := range fields {
		if have, ok := want[f.name]; !ok || !sameTOML(have, f.value) {
			changed, differs = true, there
			want[f.name] = f.value
		}
	}
	if !changed {
		return text, false, false, nil
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	// Nothing may be added to a table that is written in braces (https://toml.io/en/v1.0.0#inline-table).
	if md.Type(key) == "Hash" && !slices.ContainsFunc(lines, func(line []byte) bool { return slices.Equal(header(line), toml.Key{key}) }) {
		return nil, false, false, errByHand
	}
	block, err := tableText(key, name, want, fields, newline)
	if err != nil {
		return nil, false, false, err
	}
	var out []byte
	if !there {
		out = slices.Clone(text)
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, newline...)
		}
		if len(bytes.TrimSpace(out)) > 0 {
			out = append(out, newline...)
		}
		out = append(out, block...)
	} else {
		out = replaceTable(lines, key, name, block)
	}
	if err := onlyChanged(before, out, key, name, want); err != nil {
		return nil, false, false, err
	}
	return out, true, differs, nil
}

// maxTOML bounds a configuration in bytes.
const maxTOML = 1 << 20

func decodeTOML(text []byte) (map[string]any, toml.MetaData, error) {
	if len(text) > maxTOML || !config.Shallow(string(text)) {
		return nil, toml.MetaData{}, errFormat("it is too large or nested too deep")
	}
	out := map[string]any{}
	md, err := toml.Decode(string(text), &out)
	if err != nil {
		return nil, md, errFormat("it is no TOML: " + strings.TrimPrefix(err.Error(), "toml: "))
	}
	return out, md, nil
}

const errByHand = errFormat("its entry is written in a way that cannot be changed without touching others; change it by hand")

// tableText writes the table: our fields first, in their order, then what it has besides.
func tableText(key, name string, entry map[string]any, fields []field, newline string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "[%s.%s]\n", key, name)
	rest := maps.Clone(entry)
	for _, f := range fields {
		if err := encode(&b, map[string]any{f.name: entry[f.name]}); err != nil {
			return nil, err
		}
		delete(rest, f.name)
	}
	plain, tables := map[string]any{}, map[string]any{}
	for k, v := range rest {
		if _, isTable := v.(map[string]any); isTable {
			tables[k] = v
			continue
		}
		plain[k] = v
	}
	if err := encode(&b, plain); err != nil {
		return nil, err
	}
	if len(tables) > 0 {
		var nested bytes.Buffer
		if err := encode(&nested, map[string]any{key: map[string]any{name: tables}}); err != nil {
			return nil, err
		}
		// The headers of the tables around them are there already.
		for line := range strings.Lines(nested.String()) {
			if line := strings.TrimSpace(line); line != "["+key+"]" && line != "["+key+"."+name+"]" {
				fmt.Fprintln(&b, line)
			}
		}
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(newline)), nil
}

func encode(b *bytes.Buffer, v map[string]any) error {
	enc := toml.NewEncoder(b)
	enc.Indent = ""
	if err := enc.Encode(v); err != nil {
		return errFormat("its table cannot be written anew: " + err.Error())
	}
	return nil
}

// replaceTable puts block in the place of a table and of those inside it. Comments at the end of one may be those of the next, and stay.
func replaceTable(lines [][]byte, key, name string, block []byte) []byte {
	var out []byte
	placed := false
	for i := 0; i < len(lines); {
		if !heads(lines[i], key, name) {
			out = append(out, lines[i]...)
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && header(lines[end]) == nil {
			end++
		}
		for end > i+1 && isBlank(lines[end-1]) {
			end--
		}
		if !placed {
			out = append(out, block...)
		}
		placed, i = true, end
	}
	return out
}

func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

func heads(line []byte, key, name string) bool {
	h := header(line)
	return len(h) >= 2 && h[0] == key && h[1] == name
}

// header gives the name of the table that a line begins, nil for any other line.
func header(line []byte) toml.Key {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '[' {
		return nil
	}
	var any map[string]any
	md, err := toml.Decode(string(line), &any)
	if err != nil || len(md.Keys()) == 0 {
		return nil
	}
	keys := md.Keys()
	return keys[len(keys)-1]
}

// onlyChanged holds a new text to the old one: the entry is as it should be and all else as it was.
func onlyChanged(before map[string]any, text []byte, key, name string, entry map[string]any) error {
	after, _, err := decodeTOML(text)
	if err != nil {
		return errByHand
	}
	servers, ok := after[key].(map[string]any)
	if !ok {
		return errByHand
	}
	got, ok := servers[name].(map[string]any)
	if !ok || len(got) != len(entry) {
		return errByHand
	}
	for k, v := range entry {
		if !sameTOML(got[k], v) {
			return errByHand
		}
	}
	was := maps.Clone(before)
	others, _ := was[key].(map[string]any)
	others, servers = maps.Clone(others), maps.Clone(servers)
	delete(others, name)
	delete(servers, name)
	delete(was, key)
	delete(after, key)
	if len(others) != len(servers) || len(servers) > 0 && !reflect.DeepEqual(others, servers) || !reflect.DeepEqual(was, after) {
		return errByHand
	}
	return nil
}

// sameTOML compares a value of a file with one of ours.
func sameTOML(have, want any) bool {
	switch want := want.(type) {
	case int:
		return have == int64(want)
	case []string:
		list, ok := have.([]any)
		return ok && slices.EqualFunc(list, want, func(a any, b string) bool { return a == b })
	}
	return reflect.DeepEqual(have, want)
}
