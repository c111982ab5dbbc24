package install

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
)

var entryFields = []field{{"command", "/opt/flyprof-mcp"}, {"args", []string{"--gpu", "1"}}, {"timeout", 5}}

// TestMergeJSON: all bytes of the text that are not ours stay, comments and line ends included.
func TestMergeJSON(t *testing.T) {
	t.Parallel()
	const ours = `"flyprof": {
      "command": "/opt/flyprof-mcp",
      "args": ["--gpu", "1"],
      "timeout": 5
    }`
	tabbed := strings.NewReplacer("      ", "\t\t\t", "    ", "\t\t").Replace(ours)
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "{\n  \"s\": {\n    " + ours + "\n  }\n}\n"},
		"empty object":       {"{ }", "{\n  \"s\": {\n    " + ours + "\n  }\n}"},
		"others":             {"{\n  \"a\": 1.50,\n  \"s\": {\n    \"x\": {\"command\": \"y\"}\n  },\n  \"z\": [1,2 , 3]\n}\n", "{\n  \"a\": 1.50,\n  \"s\": {\n    \"x\": {\"command\": \"y\"},\n    " + ours + "\n  },\n  \"z\": [1,2 , 3]\n}\n"},
		"no servers yet":     {"{\n  \"a\": 1e400\n}", "{\n  \"a\": 1e400,\n  \"s\": {\n    " + ours + "\n  }\n}"},
		"tabs":               {"{\n\t\"s\": {}\n}", "{\n\t\"s\": {\n\t\t" + tabbed + "\n\t}\n}"},
		"comment at the end": {"{\n  \"s\": {}\n} // end", "{\n  \"s\": {\n    " + ours + "\n  }\n} // end"},
		"comments":           {"// a\n{\n  \"s\": {\n    \"x\": {} // b\n    /* c */\n  } // d\n}\n", "// a\n{\n  \"s\": {\n    \"x\": {}, // b\n    /* c */\n    " + ours + "\n  } // d\n}\n"},
		"trailing commas":    {"{\n  \"s\": {\n    \"x\": {}, // b\n  },\n}\n", "{\n  \"s\": {\n    \"x\": {}, // b\n    " + ours + ",\n  },\n}\n"},
		"CRLF":               {"{\r\n  \"s\": {}\r\n}\r\n", strings.ReplaceAll("{\n  \"s\": {\n    "+ours+"\n  }\n}\n", "\n", "\r\n")},
		"byte order mark":    {"\ufeff{\n  \"s\": {}\n}", "\ufeff{\n  \"s\": {\n    " + ours + "\n  }\n}"},
		"more in the entry":  {"{\n  \"s\": {\n    \"flyprof\": {\"disabled\": true, \"timeout\": 9}\n  }\n}", "{\n  \"s\": {\n    \"flyprof\": {\"disabled\": true, \"timeout\": 5,\n      \"command\": \"/opt/flyprof-mcp\",\n      \"args\": [\"--gpu\", \"1\"]\n    }\n  }\n}"},
		"brackets in texts":  {"{\n  \"h\": \"" + strings.Repeat(`[\\\"{`, 2000) + "\"\n}", "{\n  \"h\": \"" + strings.Repeat(`[\\\"{`, 2000) + "\",\n  \"s\": {\n    " + ours + "\n  }\n}"},
		"the same elsewhere": {"{\n  \"flyprof\": {},\n  \"s\": {}\n}", "{\n  \"flyprof\": {},\n  \"s\": {\n    " + ours + "\n  }\n}"},
	} {
		got, changed, differs, err := mergeJSON([]byte(c.text), JSONC, "s", "flyprof", entryFields)
		if err != nil || string(got) != c.want || !changed || differs != (name == "more in the entry") {
			t.Errorf("%s: changed %v, differs %v, %v:\n%s\nwant\n%s", name, changed, differs, err, got, c.want)
			continue
		}
		again, changed, differs, err := mergeJSON(got, JSONC, "s", "flyprof", entryFields)
		if err != nil || changed || differs || !bytes.Equal(again, got) {
			t.Errorf("%s, again: changed %v, differs %v, %v", name, changed, differs, err)
		}
	}
	for text, says := range map[string]string{
		"{": "no JSON", "[]": "no object", `{"s": []}`: `"s" is no object`, `{"s": {"flyprof": 1}}`: `"flyprof" is no object`, `{"s": {}, "s": {}}`: "twice", "null": "no object",
		`{"s": {}} x`: "no JSON", strings.Repeat("[", 1<<20): "nested",
	} {
		if _, _, _, err := mergeJSON([]byte(text), JSONC, "s", "flyprof", entryFields); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for _, text := range []string{"{} // c", `{"a": 1,}`} {
		if _, _, _, err := mergeJSON([]byte(text), JSON, "s", "flyprof", entryFields); err == nil || !strings.Contains(err.Error(), "comments") {
			t.Errorf("%q for a client that reads no comments: %v", text, err)
		}
	}
}

// TestMergeTOML: comments and other tables stay, byte by byte.
func TestMergeTOML(t *testing.T) {
	t.Parallel()
	const ours = "[s.flyprof]\ncommand = \"/opt/flyprof-mcp\"\nargs = [\"--gpu\", \"1\"]\ntimeout = 5\n"
	for name, c := range map[string]struct {
		text, want string
		differs    bool
	}{
		"empty":      {"", ours, false},
		"others":     {"# mine\nmodel = \"x\" # here\n\n[s.other]\ncommand = 'y'\n", "# mine\nmodel = \"x\" # here\n\n[s.other]\ncommand = 'y'\n\n" + ours, false},
		"no newline": {"a = 1", "a = 1\n\n" + ours, false},
		"CRLF":       {"a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(ours, "\n", "\r\n"), false},
		"replaced": {"a = 1\n[s.flyprof] # old\ncommand = \"z\"\n# of its end\n\n# of the next\n[s.other]\nx = 1\n[s.flyprof.env]\nE = \"1\"\n[s.flyprof.tools.\"a.b\"]\non = true\n# end\n",
			"a = 1\n" + ours + "[s.flyprof.env]\nE = \"1\"\n[s.flyprof.tools]\n[s.flyprof.tools.\"a.b\"]\non = true\n# of its end\n\n# of the next\n[s.other]\nx = 1\n# end\n", true},
		"more in it":  {"[s.flyprof]\nenabled = false\nstart = 07:32:00\n", ours + "enabled = false\nstart = 07:32:00\n", true},
		"quoted name": {"[s.\"flyprof\"]\ncommand = \"z\"\n\n[t]\n", ours + "\n[t]\n", true},
	} {
		got, changed, differs, err := mergeTOML([]byte(c.text), "s", "flyprof", entryFields)
		if err != nil || strings.ReplaceAll(string(got), "\n\n[s.flyprof.", "\n[s.flyprof.") != c.want || !changed || differs != c.differs {
			t.Errorf("%s: changed %v, differs %v, %v:\n%s\nwant\n%s", name, changed, differs, err, got, c.want)
			continue
		}
		again, changed, differs, err := mergeTOML(got, "s", "flyprof", entryFields)
		if err != nil || changed || differs || !bytes.Equal(again, got) {
			t.Errorf("%s, again: changed %v, differs %v, %v", name, changed, differs, err)
		}
	}
	for text, says := range map[string]string{
		"s = 1\n": "no table", "[s]\nflyprof = 2\n": "no table", "a = \n": "no TOML", "s = { x = 1 }\n": "by hand", "[s]\nflyprof.command = \"x\"\n": "by hand",
		"s.flyprof = { command = \"x\" }\n": "by hand", "[[s]]\nx = 1\n": "no table", "x" + strings.Repeat(".a", 500) + " = 1\n": "nested",
		"[s.flyprof]\ncommand = \"\"\"\n[a]\n\"\"\"\n": "by hand",
	} {
		if _, _, _, err := mergeTOML([]byte(text), "s", "flyprof", entryFields); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// FuzzMergeJSON: whatever a file holds, it is refused or keeps all that it held, and a second time changes nothing.
func FuzzMergeJSON(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"s":{"flyprof":{"command":1}}}`, "// x\n{\"s\": {\"a\": [1,],},}", "{\"a\":\"\\u0000\"}\r\n", "\ufeff{}", `{"s":{"x":{}},"t":1e9}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, changed, _, err := mergeJSON([]byte(text), JSONC, "s", "flyprof", entryFields)
		if err != nil || !changed {
			return
		}
		again, changed, differs, err := mergeJSON(got, JSONC, "s", "flyprof", entryFields)
		if err != nil || changed || differs || !bytes.Equal(again, got) {
			t.Fatalf("again: changed %v, differs %v, %v: %q", changed, differs, err, got)
		}
		if !reflect.DeepEqual(others(t, []byte(text)), others(t, got)) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// others gives a text without our entry.
func others(t *testing.T, text []byte) map[string]json.RawMessage {
	t.Helper()
	text = bytes.TrimPrefix(text, bom)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(standard, &doc); err != nil {
		t.Skip("a text that only one of the two reads")
	}
	servers := map[string]json.RawMessage{}
	_ = json.Unmarshal(doc["s"], &servers)
	delete(servers, "flyprof")
	delete(doc, "s")
	for name, raw := range servers {
		doc["s."+name] = raw
	}
	return doc
}

// FuzzMergeTOML: the same for TOML, whose comments outside of the table stay too.
func FuzzMergeTOML(f *testing.F) {
	for _, seed := range []string{"", "a = 1\n", "[s.flyprof]\ncommand = 'x'\n[s.b]\n", "[s.flyprof.env]\na = '1'\n# c\n", "x = \"\"\"\n[s.flyprof]\n\"\"\"", "s = {a = 1}", "[[a]]\nb = nan\n", "\ufeffa=1\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, changed, _, err := mergeTOML([]byte(text), "s", "flyprof", entryFields)
		if err != nil || !changed {
			return
		}
		again, changed, differs, err := mergeTOML(got, "s", "flyprof", entryFields)
		if err != nil || changed || differs || !bytes.Equal(again, got) {
			t.Fatalf("again: changed %v, differs %v, %v: %q", changed, differs, err, got)
		}
		var doc map[string]any
		if err := toml.Unmarshal(got, &doc); err != nil {
			t.Fatal(err)
		}
	})
}
