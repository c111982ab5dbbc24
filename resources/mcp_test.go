//go:build unix

package resources

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/skills"
)

// serve registers a library, with the project's own documents, in a server.
func serve(t *testing.T, l library) *server.MCPServer {
	t.Helper()
	l.Texts = nil
	for _, d := range skills.Documents() {
		l.Texts = append(l.Texts, Text{URI: d.URI, Name: d.Name, Description: d.Description, MIME: d.MIME, Body: d.Body})
	}
	srv := server.NewMCPServer("test", "1", server.WithResourceCapabilities(false, false))
	l.Register(srv, slog.New(slog.DiscardHandler))
	return srv
}

// reply is a JSON-RPC answer to any of the three requests.
type reply struct {
	Result struct {
		Resources []struct{ URI, Name, Description, MIMEType string }
		Templates []struct {
			URI         string `json:"uriTemplate"`
			Name        string
			Description string
		} `json:"resourceTemplates"`
		Contents []struct {
			URI, MIMEType, Text, Blob string
			Meta                      map[string]int64 `json:"_meta"`
		}
	}
	Error *struct {
		Code    int
		Message string
	}
}

func call(t *testing.T, srv *server.MCPServer, method string, params any) reply {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(srv.HandleMessage(t.Context(), raw))
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func TestMCPLists(t *testing.T) {
	l := newLibrary(t)
	srv := serve(t, l)
	list := call(t, srv, "resources/list", map[string]any{})
	if list.Error != nil || len(list.Result.Resources) != 1+len(skills.Documents()) {
		t.Fatalf("%+v", list)
	}
	names := map[string]bool{}
	for _, r := range list.Result.Resources {
		if names[r.Name] || names[r.URI] || r.Name == "" || r.Description == "" || r.MIMEType == "" {
			t.Errorf("%+v", r)
		}
		names[r.Name], names[r.URI] = true, true
		got := call(t, srv, "resources/read", map[string]any{"uri": r.URI})
		if got.Error != nil || len(got.Result.Contents) != 1 || got.Result.Contents[0].Text == "" || got.Result.Contents[0].URI != r.URI || got.Result.Contents[0].MIMEType != r.MIMEType {
			t.Errorf("%s: %+v", r.URI, got)
		}
		if _, more := got.Result.Contents[0].Meta["flyprof/next_offset"]; more {
			t.Errorf("%s does not fit one page", r.URI)
		}
	}
	all := call(t, srv, "resources/templates/list", map[string]any{})
	if len(all.Result.Templates) != len(templates) {
		t.Errorf("%+v", all)
	}
	for _, r := range all.Result.Templates {
		if names[r.Name] || r.Description == "" {
			t.Errorf("%+v", r)
		}
		names[r.Name] = true
	}
}

// TestTemplatesAreDisjoint: the library takes any template that matches, in an order that changes from call to call.
func TestTemplatesAreDisjoint(t *testing.T) {
	l := newLibrary(t)
	srv := serve(t, l)
	var regs []*mcp.URITemplate
	for _, tm := range templates {
		regs = append(regs, mcp.NewResourceTemplate(tm.uri, tm.name).URITemplate)
	}
	matching := func(uri string) (fit []string) {
		for i, r := range regs {
			if r.Regexp().MatchString(uri) {
				fit = append(fit, templates[i].name)
			}
		}
		return fit
	}
	uris := map[string]string{
		"flyprof://runs":                                                   "",
		"flyprof://runs/" + l.id:                                           "run",
		"flyprof://runs/" + l.id + "?offset=3":                             "run",
		"flyprof://runs/" + l.id + "/files":                                "run-files",
		"flyprof://runs/" + l.id + "/files?offset=3&limit=2":               "run-files",
		"flyprof://files/" + l.id + "/att/big/code.json":                   "run-file",
		"flyprof://files/" + l.id + "/files":                               "run-file",
		"flyprof://files/" + l.id + "/att/code.json?limit=3":               "run-file",
		"flyprof://logs/" + l.id + "/a.log":                                "run-log",
		"flyprof://logs/" + l.id + "/a.log?limit=3":                        "run-log",
		"flyprof://logs/" + l.id + "/files":                                "run-log",
		FileURI(l.id, "logs/runs/"+l.id+"/files") + "?offset=1":            "run-file",
		"flyprof://files/flyprof://runs/" + l.id:                           "",
		"skill://flyprof-capture/SKILL.md":                                 "",
		"flyprof://files/" + l.id + "/flyprof://runs/" + l.id + "?limit=3": "run-file",
	}
	for _, name := range oddNames {
		uris[FileURI(l.id, "att/"+name)] = "run-file"
	}
	for uri, want := range uris {
		fit := matching(uri)
		if len(fit) > 1 || (want != "" && !slices.Equal(fit, []string{want})) {
			t.Errorf("%s is %q, want %q", uri, fit, want)
		}
	}
	for _, d := range call(t, srv, "resources/list", map[string]any{}).Result.Resources {
		if fit := matching(d.URI); len(fit) != 0 {
			t.Errorf("the resource %s is a %v, too", d.URI, fit)
		}
	}
	for _, c := range hostile {
		if fit := matching(strings.ReplaceAll(c.uri, "RUN", l.id)); len(fit) > 1 {
			t.Errorf("%s is all of %q", c.uri, fit)
		}
	}
}

// TestMCPReads goes by the next offsets that MCP gives, for each kind of resource that may be longer than a page.
func TestMCPReads(t *testing.T) {
	l := newLibrary(t)
	text := []byte(strings.Repeat("€uro ", (2*MaxPage+100)/7))
	blob := bytes.Repeat([]byte{0, 0xff, 7}, MaxPage/2)
	l.put(t, "logs/big.log", text)
	l.put(t, "att/big.att", blob)
	for i := range 2500 {
		l.put(t, fmt.Sprintf("att/big/se%d_sm0_sl0_wv%d.json", i%32, i), nil)
	}
	for i, name := range oddNames {
		l.put(t, "att/"+name, fmt.Appendf(nil, "%d", i))
	}
	srv := serve(t, l)
	manifest, _ := l.all(t, "flyprof://runs/"+l.id+"/files", MaxPage)
	run := l.read(t, "flyprof://runs/"+l.id)
	cases := []struct {
		uri, mime string
		body      []byte
		pages     int
	}{
		{"flyprof://logs/" + l.id + "/big.log", "text/plain", text, 3},
		{FileURI(l.id, "att/big.att"), "application/octet-stream", blob, 2},
		{"flyprof://runs/" + l.id + "/files", "application/json", manifest, 2},
		{"flyprof://runs/" + l.id, "application/json", []byte(run.Text), 1},
	}
	for _, c := range cases {
		var got []byte
		pages := 0
		for uri := c.uri; uri != "" && pages < 10; pages++ {
			r := call(t, srv, "resources/read", map[string]any{"uri": uri})
			if r.Error != nil || len(r.Result.Contents) != 1 {
				t.Fatalf("%s: %+v", uri, r.Error)
			}
			part := r.Result.Contents[0]
			raw, err := base64.StdEncoding.DecodeString(part.Blob)
			if err != nil || part.URI != uri || part.MIMEType != c.mime || part.Meta["flyprof/offset"] != int64(len(got)) || part.Meta["flyprof/size"] != int64(len(c.body)) {
				t.Errorf("%s: %s %v %v", uri, part.MIMEType, part.Meta, err)
			}
			got = append(append(got, part.Text...), raw...)
			uri = ""
			if next, more := part.Meta["flyprof/next_offset"]; more {
				uri = fmt.Sprintf("%s?offset=%d", c.uri, next)
			}
		}
		if !bytes.Equal(got, c.body) || pages != c.pages {
			t.Errorf("%s: %d bytes of %d in %d pages", c.uri, len(got), len(c.body), pages)
		}
	}
	for i, name := range oddNames {
		r := call(t, srv, "resources/read", map[string]any{"uri": FileURI(l.id, "att/"+name)})
		if r.Error != nil || len(r.Result.Contents) != 1 {
			t.Errorf("%q: %+v", name, r.Error)
			continue
		}
		part := r.Result.Contents[0]
		raw, _ := base64.StdEncoding.DecodeString(part.Blob)
		if part.Text+string(raw) != fmt.Sprint(i) {
			t.Errorf("%q: %+v", name, part)
		}
	}
}

func TestNotFound(t *testing.T) {
	l := trapped(t)
	srv := serve(t, l)
	params := func(uri, version string) json.RawMessage {
		p := map[string]any{"uri": uri}
		if version != "" {
			p["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": version}
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	eras := []struct {
		version string
		code    int
	}{{"", -32002}, {"2024-11-05", -32002}, {"2025-11-25", -32002}, {"2026-07-28", -32602}, {"2027-01-01", -32602}}
	for _, era := range eras {
		for _, c := range hostile {
			if c.uri == "" {
				continue
			}
			code, message, missing := l.NotFound(t.Context(), params(strings.ReplaceAll(c.uri, "RUN", l.id), era.version))
			if !missing || code != era.code || !strings.HasPrefix(message, string(c.code)+": ") || strings.Contains(message, secret) {
				t.Errorf("%s in %q: %d %q %v", c.uri, era.version, code, message, missing)
			}
		}
		// What is no page was found, and asked for wrongly, in every era.
		for _, query := range []string{"?limit=0", "?offset=x", "?offset=999999999"} {
			code, message, missing := l.NotFound(t.Context(), params("flyprof://runs/"+l.id+query, era.version))
			if !missing || code != -32602 || !strings.HasPrefix(message, string(envelope.BadArgs)) {
				t.Errorf("%s in %q: %d %q", query, era.version, code, message)
			}
		}
		for _, uri := range []string{"flyprof://runs", "flyprof://runs/" + l.id, "flyprof://runs/" + l.id + "/files", "flyprof://logs/" + l.id + "/in.log?offset=1", "flyprof://reference/rocprofv3-quirks"} {
			if code, message, missing := l.NotFound(t.Context(), params(uri, era.version)); missing {
				t.Errorf("%s in %q is missing: %d %q", uri, era.version, code, message)
			}
		}
	}
	for _, raw := range []string{"", "null", "[]", "{}", `{"uri":5}`, `{"uri":""}`, `{"uri":"flyprof://x"`} {
		if code, _, missing := l.NotFound(t.Context(), json.RawMessage(raw)); missing {
			t.Errorf("%s: %d; the library answers malformed requests", raw, code)
		}
	}
	// A damaged run is there: that is no wrong request.
	damaged := l.create(t, "damaged")
	if err := os.WriteFile(filepath.Join(l.Store.Path(damaged.ID), "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, missing := l.NotFound(t.Context(), params("flyprof://runs/"+damaged.ID, "")); missing {
		t.Errorf("a damaged run is answered by %d", code)
	}
	if r := call(t, srv, "resources/read", map[string]any{"uri": "flyprof://runs/" + damaged.ID}); r.Error == nil || r.Error.Code != -32603 {
		t.Errorf("%+v", r)
	}
	// Without it the library's own answer still is an error and gives nothing away.
	for _, c := range hostile {
		if r := call(t, srv, "resources/read", map[string]any{"uri": strings.ReplaceAll(c.uri, "RUN", l.id)}); r.Error == nil || strings.Contains(r.Error.Message, secret) {
			t.Errorf("%s: %+v", c.uri, r)
		}
	}
}
