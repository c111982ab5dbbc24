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
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/skills"
)

// serve registers a library, with the project's own documents, in a server.
func serve(t *testing.T, l library) *server.MCPServer {
	t.Helper()
	l.Texts = Texts()
	hooks := &server.Hooks{}
	wire.ReportErrors(hooks)
	l.Hook(hooks)
	srv := server.NewMCPServer("test", "1", server.WithResourceCapabilities(false, false), server.WithHooks(hooks))
	l.Register(srv, slog.New(slog.DiscardHandler))
	return srv
}

// reply is a JSON-RPC answer to any of the three requests.
type reply struct {
	Result struct {
		Resources []struct {
			URI, Name, Title, Description, MIMEType string
			Size                                    *int64
			Annotations                             struct{ LastModified time.Time }
		}
		NextCursor string
		TTL        int64 `json:"ttlMs"`
		CacheScope string
		Templates  []struct {
			URI         string `json:"uriTemplate"`
			Name        string
			Description string
		} `json:"resourceTemplates"`
		Contents []struct {
			URI, MIMEType, Text, Blob string
			Meta                      struct {
				Size       int64  `json:"flyprof/size"`
				Offset     int64  `json:"flyprof/offset"`
				NextOffset int64  `json:"flyprof/next_offset"`
				Line       int64  `json:"flyprof/line"`
				NextLine   int64  `json:"flyprof/next_line"`
				Modified   string `json:"flyprof/modified"`
				Immutable  bool   `json:"flyprof/immutable"`
			} `json:"_meta"`
		}
	}
	Error *struct {
		Code    int
		Message string
		Data    struct{ URI string }
	}
}

// of marks parameters as a request of a protocol version; those before 2026-07-28 say nothing.
func of(version string, params map[string]any) map[string]any {
	if version >= "2026-07-28" {
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	}
	return params
}

func call(t *testing.T, srv *server.MCPServer, method string, params any) reply {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	m, fault := wire.Parse(raw)
	if fault != nil {
		t.Fatal(fault)
	}
	answerer := wire.Answerer{Server: srv, Log: slog.New(slog.DiscardHandler)}
	out, err := json.Marshal(answerer.Answer(t.Context(), raw, m))
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
	if list.Error != nil || len(list.Result.Resources) != 1+len(skills.Documents())+1 {
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
		if c := got.Result.Contents[0]; c.Meta.NextOffset != 0 || (r.Size != nil && *r.Size != int64(len(c.Text))) {
			t.Errorf("%s does not fit one page, or is not of its size: %+v", r.URI, c.Meta)
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
		"flyprof://runs":                                                   "runs-page",
		"flyprof://runs?offset=3":                                          "runs-page",
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
		"skill://flyprof-capture/SKILL.md":                                 "skill-file",
		"flyprof://logs/" + l.id + "/a.log?line=-3&lines=2":                "run-log",
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
		// A skill's file and the index are found as resources before a template is asked.
		if fit := matching(d.URI); len(fit) != 0 && !strings.HasPrefix(d.URI, "skill://") && !strings.HasPrefix(d.URI, "flyprof://runs") {
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
			if err != nil || part.URI != uri || part.MIMEType != c.mime || part.Meta.Offset != int64(len(got)) || part.Meta.Size != int64(len(c.body)) {
				t.Errorf("%s: %s %v %v", uri, part.MIMEType, part.Meta, err)
			}
			got = append(append(got, part.Text...), raw...)
			uri = ""
			if next := part.Meta.NextOffset; next != 0 {
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

// TestNotFound goes by what clients of each era are answered.
func TestNotFound(t *testing.T) {
	l := trapped(t)
	srv := serve(t, l)
	for version, want := range map[string]int{"": -32002, "2026-07-28": -32602} {
		for _, c := range hostile {
			if c.uri == "" {
				continue
			}
			uri := strings.ReplaceAll(c.uri, "RUN", l.id)
			r := call(t, srv, "resources/read", of(version, map[string]any{"uri": uri}))
			if r.Error == nil || r.Error.Code != want || !strings.HasPrefix(r.Error.Message, string(c.code)+": ") || strings.Contains(r.Error.Message, secret) || r.Error.Data.URI != uri {
				t.Errorf("%s in %q: %+v", c.uri, version, r.Error)
			}
		}
		// What is no page was found, and asked for wrongly, in every era.
		for _, query := range []string{"?limit=0", "?offset=x", "?offset=999999999", "?line=0", "?line=9", "?offset=1&line=1"} {
			r := call(t, srv, "resources/read", of(version, map[string]any{"uri": "flyprof://runs/" + l.id + query}))
			if r.Error == nil || r.Error.Code != -32602 {
				t.Errorf("%s in %q: %+v", query, version, r.Error)
			}
		}
		for _, uri := range []string{"flyprof://runs", "flyprof://runs/" + l.id, "flyprof://runs/" + l.id + "/files", "flyprof://logs/" + l.id + "/in.log?offset=1", "flyprof://reference/rocprofv3-quirks", "flyprof://runs?limit=4&offset=1", "flyprof://runs/" + l.id + "?lines=1&limit=9&line=1"} {
			if r := call(t, srv, "resources/read", of(version, map[string]any{"uri": uri})); r.Error != nil {
				t.Errorf("%s in %q: %+v", uri, version, r.Error)
			}
		}
	}
	// A damaged run is there: that is no wrong request.
	damaged := l.create(t, "damaged")
	if err := os.WriteFile(filepath.Join(l.Store.Path(damaged.ID), "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := call(t, srv, "resources/read", map[string]any{"uri": "flyprof://runs/" + damaged.ID}); r.Error == nil || r.Error.Code != -32603 {
		t.Errorf("%+v", r)
	}
}

// TestListPages: the pages hold every resource once, whatever is created between them, and each newest run by its own name.
func TestListPages(t *testing.T) {
	l := newLibrary(t)
	ids := []string{l.id}
	for i := range recentRuns + 20 {
		ids = append(ids, l.create(t, fmt.Sprintf("kernel_%d", i)).ID)
	}
	srv := serve(t, l)
	seen, cursor, pages := map[string]bool{}, "", 0
	for {
		r := call(t, srv, "resources/list", of("2026-07-28", map[string]any{"cursor": cursor}))
		if r.Error != nil || len(r.Result.Resources) == 0 || len(r.Result.Resources) > listPage || r.Result.TTL != ttlList || r.Result.CacheScope != "private" {
			t.Fatalf("%+v", r)
		}
		for _, e := range r.Result.Resources {
			if seen[e.Name] || seen[e.URI] {
				t.Errorf("%s is listed twice", e.Name)
			}
			seen[e.Name], seen[e.URI] = true, true
			if strings.HasPrefix(e.URI, "flyprof://runs/") && (e.Annotations.LastModified.IsZero() || !strings.Contains(e.Title, "queued")) {
				t.Errorf("%+v", e)
			}
		}
		if pages++; r.Result.NextCursor == "" {
			break
		}
		cursor = r.Result.NextCursor
	}
	if want := 2 * (1 + len(skills.Documents()) + recentRuns); len(seen) != want || pages != 2 {
		t.Errorf("%d names and URIs in %d pages, want %d", len(seen), pages, want)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return strings.Compare(b[strings.IndexByte(b, '-'):], a[strings.IndexByte(a, '-'):])
	})
	for _, id := range ids[:recentRuns] {
		if !seen["flyprof://runs/"+id] {
			t.Errorf("%s is one of the newest and not listed", id)
		}
	}
	for _, bad := range []string{"%%%", "not base64!"} {
		if r := call(t, srv, "resources/list", map[string]any{"cursor": bad}); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%q: %+v", bad, r)
		}
	}
	if r := call(t, srv, "resources/list", map[string]any{"cursor": base64.StdEncoding.EncodeToString([]byte("zzz"))}); r.Error != nil || len(r.Result.Resources) != 0 {
		t.Errorf("beyond the end: %+v", r)
	}
}

// TestCacheHints: what an ended run wrote keeps, what runs does not, and clients of before 2026-07-28 hear nothing of it.
func TestCacheHints(t *testing.T) {
	l := newLibrary(t)
	l.put(t, "logs/x.log", []byte("one\n"))
	srv := serve(t, l)
	ttl := func(uri, version string) (int64, bool) {
		t.Helper()
		r := call(t, srv, "resources/read", of(version, map[string]any{"uri": uri}))
		if r.Error != nil || (version != "") != (r.Result.CacheScope == "private") {
			t.Fatalf("%s: %+v", uri, r)
		}
		return r.Result.TTL, r.Result.Contents[0].Meta.Immutable
	}
	mine := []string{"flyprof://runs/" + l.id, "flyprof://runs/" + l.id + "/files", "flyprof://logs/" + l.id + "/x.log"}
	for _, uri := range append(mine, "flyprof://runs") {
		if ms, fixed := ttl(uri, "2026-07-28"); ms != ttlRunning || fixed {
			t.Errorf("%s keeps %d ms, immutable %v", uri, ms, fixed)
		}
	}
	r, err := l.Store.Load(l.id)
	if err != nil {
		t.Fatal(err)
	}
	r.State = runs.Done
	if err := l.Store.Finish(r, runs.Result{Data: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	for _, uri := range append(mine, "skill://flyprof-capture/SKILL.md") {
		// What a document says of itself has no keys but those of the skills extension.
		if ms, fixed := ttl(uri, "2026-07-28"); ms != ttlImmutable || fixed == strings.HasPrefix(uri, "skill://") {
			t.Errorf("%s keeps %d ms, immutable %v", uri, ms, fixed)
		}
		if ms, _ := ttl(uri, ""); ms != 0 {
			t.Errorf("%s keeps %d ms for a client that knows no such thing", uri, ms)
		}
	}
	if ms, fixed := ttl("flyprof://runs", "2026-07-28"); ms != ttlRunning || fixed {
		t.Errorf("the index keeps %d ms, immutable %v", ms, fixed)
	}
}
