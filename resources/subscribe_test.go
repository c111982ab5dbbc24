//go:build unix

package resources

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/watch"
	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// finish ends the library's run.
func (l library) finish(t *testing.T) {
	t.Helper()
	r, err := l.Store.Load(l.id)
	if err != nil {
		t.Fatal(err)
	}
	r.State = runs.Done
	if err := l.Store.Finish(r, runs.Result{Data: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
}

func TestLook(t *testing.T) {
	l := newLibrary(t)
	look := func(uri string) watch.State {
		t.Helper()
		s, err := l.Look(uri)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	run, log := "flyprof://runs/"+l.id, "flyprof://logs/"+l.id+"/att-big.log"
	for _, uri := range []string{run, run + "/files", run + "?offset=0", log, "flyprof://files/" + l.id + "/run.json", "flyprof://runs"} {
		if a, b := look(uri), look(uri); a != b || a.Final {
			t.Errorf("%s: %+v, then %+v", uri, a, b)
		}
	}
	before := look(log)
	l.put(t, "logs/att-big.log", []byte("begun\n"))
	begun := look(log)
	l.put(t, "logs/att-big.log", []byte("begun\nmore\n"))
	if more := look(log); before == begun || begun == more {
		t.Errorf("a log that grows looks as before: %+v %+v %+v", before, begun, more)
	}
	running, index := look(run), look("flyprof://runs")
	r, err := l.Store.Load(l.id)
	if err != nil {
		t.Fatal(err)
	}
	r.Phase = "discover"
	if err := l.Store.Save(r); err != nil {
		t.Fatal(err)
	}
	discover := look(run)
	if err := l.Store.WriteJSON(l.id, "progress.json", map[string]int{"calls": 3}); err != nil {
		t.Fatal(err)
	}
	progress := look(run)
	l.finish(t)
	ended := look(run)
	if running == discover || discover == progress || progress == ended || !ended.Final || !look(log).Final || look("flyprof://runs") == index {
		t.Errorf("%+v %+v %+v %+v", running, discover, progress, ended)
	}
	if _, err := l.Look("flyprof://logs/" + l.id + "/never.log"); envelope.CodeOf(err) != envelope.NoArtifact {
		t.Errorf("a log that will never be: %v", err)
	}
	if s := look("skill://flyprof-capture/SKILL.md"); !s.Final {
		t.Errorf("%+v", s)
	}
}

// TestLookIsJailed: what cannot be read cannot be watched either, but for what may still be written.
func TestLookIsJailed(t *testing.T) {
	l := trapped(t)
	for _, c := range hostile {
		uri := strings.ReplaceAll(c.uri, "RUN", l.id)
		_, err := l.Look(uri)
		if c.code == envelope.NoArtifact && strings.Contains(uri, l.id+"/") {
			continue
		}
		if code := envelope.CodeOf(err); code != c.code {
			t.Errorf("%s: %v, want %s", uri, err, c.code)
		}
	}
}

// TestLookAsksForTheSupervisor: a run that is quiet for long may have lost it, and nobody else may ask.
func TestLookAsksForTheSupervisor(t *testing.T) {
	l := newLibrary(t)
	asked := make(chan string, 10)
	l.Recover = func(id string) { asked <- id }
	if _, err := l.Look("flyprof://runs/" + l.id); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(l.dir, "run.json"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Look("flyprof://runs/" + l.id); err != nil {
		t.Fatal(err)
	}
	if id := <-asked; id != l.id || len(asked) != 0 {
		t.Errorf("%s was looked after, and %d more", id, len(asked))
	}
}

// subscriber is a session of a server whose notifications the test reads.
type subscriber struct {
	*wire.Session
	t     *testing.T
	srv   *server.MCPServer
	notes chan mcp.JSONRPCNotification
}

func newSubscriber(t *testing.T, l library) subscriber {
	t.Helper()
	hooks := &server.Hooks{}
	wire.ReportErrors(hooks)
	var srv *server.MCPServer
	l.Subscriptions(hooks, watch.Options{Every: 2 * time.Millisecond, PerSession: 4}, func(uri string) bool { return srv.ListResources()[uri] != nil })
	srv = server.NewMCPServer("test", "1", server.WithResourceCapabilities(true, false), server.WithHooks(hooks))
	srv.AddResource(mcp.NewResource("test://fixture", "fixture"), nil)
	s := subscriber{wire.NewSession("test"), t, srv, make(chan mcp.JSONRPCNotification, 100)}
	if err := srv.RegisterSession(t.Context(), s.Session); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go s.Pump(stop, func(n mcp.JSONRPCNotification) { s.notes <- n })
	t.Cleanup(func() {
		srv.UnregisterSession(t.Context(), s.SessionID())
		close(stop)
	})
	s.Initialize()
	return s
}

func (s subscriber) ask(method, params string) wire.Frame {
	s.t.Helper()
	raw := []byte(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`)
	m, fault := wire.Parse(raw)
	if fault != nil {
		s.t.Fatal(fault)
	}
	return wire.Answerer{Server: s.srv, Log: slog.New(slog.DiscardHandler)}.Answer(s.srv.WithContext(s.t.Context(), s.Session), raw, m)
}

func TestLegacySubscription(t *testing.T) {
	l := newLibrary(t)
	s := newSubscriber(t, l)
	run := "flyprof://runs/" + l.id
	for range 2 {
		if f := s.ask("resources/subscribe", `"uri":"`+run+`"`); f.Error != nil {
			t.Fatalf("%+v", f.Error)
		}
	}
	l.finish(t)
	n := <-s.notes
	if n.Method != "notifications/resources/updated" || n.Params.AdditionalFields["uri"] != run || n.Params.Meta != nil {
		t.Errorf("%+v", n)
	}
	if f := s.ask("resources/unsubscribe", `"uri":"`+run+`"`); f.Error != nil || s.IsSubscribedToResource(run) {
		t.Errorf("%+v", f.Error)
	}
	for _, c := range []struct {
		uri  string
		want int
	}{
		{"flyprof://runs/none-20260101T000000Z-aaaaaa", -32002}, {"flyprof://runs/../x", -32002}, {"file:///etc/passwd", -32002}, {"", -32602},
		{"flyprof://runs?line=0", -32602}, {"skill://flyprof-capture/SKILL.md", 0}, {"test://fixture", 0}, {"flyprof://runs", 0}, {run, 0},
	} {
		f := s.ask("resources/subscribe", `"uri":"`+c.uri+`"`)
		if (c.want == 0) != (f.Error == nil) || (c.want != 0 && f.Error.Code != c.want) {
			t.Errorf("%q: %+v, want %d", c.uri, f.Error, c.want)
		}
	}
	if f := s.ask("resources/subscribe", `"uri":"flyprof://reference/quirks"`); f.Error == nil || f.Error.Code != -32602 || !strings.Contains(f.Error.Message, "at most 4") {
		t.Errorf("the fifth of four: %+v", f.Error)
	}
}

func TestModernSubscription(t *testing.T) {
	l := newLibrary(t)
	s := newSubscriber(t, l)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	listen := func(id string, uris ...string) (end chan wire.Frame, cancel func()) {
		list, _ := json.Marshal(uris)
		raw := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + meta + `"notifications":{"resourceSubscriptions":` + string(list) + `}}}`)
		m, fault := wire.Parse(raw)
		if fault != nil {
			t.Fatal(fault)
		}
		ctx, stop := context.WithCancel(t.Context())
		ctx = s.srv.WithContext(ctx, &wire.Listener{Session: s.Session, ID: m.ID})
		end = make(chan wire.Frame, 1)
		go func() { end <- wire.Answerer{Server: s.srv, Log: slog.New(slog.DiscardHandler)}.Answer(ctx, raw, m) }()
		return end, stop
	}
	run, log := "flyprof://runs/"+l.id, "flyprof://logs/"+l.id+"/att-big.log"
	end, cancel := listen("1", run, log)
	if n := <-s.notes; n.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%+v", n)
	}
	l.put(t, "logs/att-big.log", []byte("begun\n"))
	if n := <-s.notes; n.Params.AdditionalFields["uri"] != log || string(n.Params.Meta[mcp.MetaKeySubscriptionID].(json.RawMessage)) != "1" {
		t.Errorf("%+v", n)
	}
	cancel()
	if f := <-end; f.Error != nil {
		t.Errorf("%+v", f.Error)
	}
	// A listener that asks for what is not there is refused as a whole, and leaves nothing watched.
	end, cancel = listen("2", run, "flyprof://runs/none-20260101T000000Z-aaaaaa")
	defer cancel()
	if f := <-end; f.Error == nil || f.Error.Code != -32602 || !strings.Contains(f.Error.Message, "RUN_NOT_FOUND") {
		t.Errorf("%+v", f)
	}
	if uris := s.SubscribedResources(); len(uris) != 0 {
		t.Errorf("left: %v", uris)
	}
}
