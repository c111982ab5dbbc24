package httpd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

const testToken = "a-token-of-the-test"

// bench is a server with tools of the test's own.
type bench struct {
	*httptest.Server
	t *testing.T
	// started and ended tell of calls of the tool wait: when they begin, and the cause of their end.
	started chan string
	ended   chan error
	handler *Handler
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	srv := server.NewMCPServer("bench", "1", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, false), server.WithLogging())
	b := &bench{t: t, started: make(chan string, 1000), ended: make(chan error, 1000)}
	srv.AddTool(mcp.NewTool("echo"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	srv.AddTool(mcp.NewTool("steps"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		n := r.GetInt("n", 3)
		for i := range n {
			wire.Progress(ctx)(float64(i+1), float64(n), "")
		}
		return mcp.NewToolResultText("done"), nil
	})
	srv.AddTool(mcp.NewTool("log"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/message", map[string]any{"level": "error", "data": "said meanwhile"})
		return mcp.NewToolResultText(fmt.Sprint(err)), nil
	})
	srv.AddTool(mcp.NewTool("wait"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.started <- "wait"
		<-ctx.Done()
		b.ended <- context.Cause(ctx)
		return mcp.NewToolResultText("late"), nil
	})
	if o.Token == "" {
		o.Token = testToken
	}
	b.handler = New(srv, o)
	b.Server = httptest.NewServer(b.handler)
	t.Cleanup(b.Close)
	return b
}

// request makes a request that passes every check; change undoes one.
func (b *bench) request(method, path, body string, headers ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequest(method, b.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// send gives status, headers and body.
func (b *bench) send(r *http.Request) (int, http.Header, string) {
	b.t.Helper()
	res, err := b.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(raw)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// session initializes and gives the session's id.
func (b *bench) session() string {
	b.t.Helper()
	status, header, body := b.send(b.request("POST", Endpoint, hello))
	id := header.Get(headerSession)
	if status != 200 || id == "" || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		b.t.Fatalf("initialize: %d %s", status, body)
	}
	if status, _, body := b.send(b.request("POST", Endpoint, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headerSession, id)); status != 202 || body != "" {
		b.t.Fatalf("initialized: %d %s", status, body)
	}
	return id
}

func callOf(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p%d"}}}`, id, tool, args, id)
}

// events are the data of the server-sent events of a body.
func events(body string) []string {
	var out []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, strings.TrimSpace(data))
		}
	}
	return out
}

// TestChecks: what a request must bring before anything of it is looked at, and what then.
func TestChecks(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Hosts: []string{"gpu1.example"}, Origins: []string{"https://tools.example"}, MaxBody: 1000})
	id := b.session()
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		says               string
	}{
		"good":                        {"POST", Endpoint, list, []string{headerSession, id}, 200, `"echo"`},
		"a foreign Host":              {"POST", Endpoint, list, []string{headerSession, id, "Host", "evil.example"}, 403, "Host"},
		"a foreign Host, healthz":     {"GET", Health, "", []string{"Host", "evil.example:80"}, 403, "Host"},
		"an allowed Host":             {"POST", Endpoint, list, []string{headerSession, id, "Host", "gpu1.example:8080"}, 200, `"echo"`},
		"IPv6 loopback":               {"POST", Endpoint, list, []string{headerSession, id, "Host", "[::1]:8080"}, 200, `"echo"`},
		"a foreign Origin":            {"POST", Endpoint, list, []string{headerSession, id, "Origin", "http://evil.example"}, 403, "Origin"},
		"Origin null":                 {"POST", Endpoint, list, []string{headerSession, id, "Origin", "null"}, 403, "Origin"},
		"an Origin that looks local":  {"POST", Endpoint, list, []string{headerSession, id, "Origin", "http://localhost.evil.example"}, 403, "Origin"},
		"an Origin with a local user": {"POST", Endpoint, list, []string{headerSession, id, "Origin", "http://localhost@evil.example"}, 403, "Origin"},
		"a local Origin":              {"POST", Endpoint, list, []string{headerSession, id, "Origin", "http://localhost:6274"}, 200, `"echo"`},
		"an allowed Origin":           {"POST", Endpoint, list, []string{headerSession, id, "Origin", "https://tools.example"}, 200, `"echo"`},
		"no token":                    {"POST", Endpoint, list, []string{headerSession, id, "Authorization", ""}, 401, "token"},
		"a wrong token":               {"POST", Endpoint, list, []string{headerSession, id, "Authorization", "Bearer " + testToken + "x"}, 401, "token"},
		"another scheme":              {"POST", Endpoint, list, []string{headerSession, id, "Authorization", "Basic " + testToken}, 401, "token"},
		"metrics without a token":     {"GET", Metrics, "", []string{"Authorization", ""}, 404, ""},
		"healthz without a token":     {"GET", Health, "", []string{"Authorization", ""}, 200, "ok"},
		"another path":                {"POST", "/other", list, nil, 404, ""},
		"another verb":                {"PUT", Endpoint, list, []string{headerSession, id}, 405, ""},
		"no session":                  {"POST", Endpoint, list, nil, 400, headerSession},
		"an unknown session":          {"POST", Endpoint, list, []string{headerSession, "http-x"}, 404, "initialize"},
		"another content type":        {"POST", Endpoint, list, []string{headerSession, id, "Content-Type", "text/plain"}, 415, "application/json"},
		"takes neither form":          {"POST", Endpoint, list, []string{headerSession, id, "Accept", "text/html"}, 406, "text/event-stream"},
		"an unknown version":          {"POST", Endpoint, list, []string{headerSession, id, headerVersion, "1999-01-01"}, 400, "version"},
		"too long":                    {"POST", Endpoint, callOf(3, "echo", `{"text":"`+strings.Repeat("x", 2000)+`"}`), []string{headerSession, id}, 413, "too long"},
		"no JSON":                     {"POST", Endpoint, "{", []string{headerSession, id}, 400, "-32700"},
		"a batch":                     {"POST", Endpoint, "[" + list + "]", []string{headerSession, id}, 400, "batches"},
		"GET without a stream":        {"GET", Endpoint, "", []string{headerSession, id, "Accept", "application/json"}, 406, "text/event-stream"},
		"GET in the modern era":       {"GET", Endpoint, "", []string{headerVersion, "2026-07-28"}, 405, "subscriptions/listen"},
	} {
		status, header, body := b.send(b.request(c.method, c.path, c.body, c.headers...))
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if status == 401 && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: no challenge", name)
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: pages of other origins may read this", name)
		}
	}
}

// TestSessionEnds: DELETE ends a session; what waits in it stops, and its id is not found any more.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	id := b.session()
	answered := make(chan int, 1)
	go func() {
		status, _, _ := b.send(b.request("POST", Endpoint, callOf(5, "wait", "{}"), headerSession, id))
		answered <- status
	}()
	<-b.started
	if status, _, body := b.send(b.request("DELETE", Endpoint, "", headerSession, id)); status != 204 {
		t.Errorf("DELETE: %d %s", status, body)
	}
	if cause := <-b.ended; cause == nil || !strings.Contains(cause.Error(), "session") {
		t.Errorf("the call ended by %v", cause)
	}
	<-answered
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if status, _, _ := b.send(b.request(method, Endpoint, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, headerSession, id)); status != 404 {
			t.Errorf("%s after the end: %d", method, status)
		}
	}
}

// TestProgress: all of it is delivered, in order, before the result; without a stream the result alone comes.
func TestProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	id := b.session()
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			_, header, body := b.send(b.request("POST", Endpoint, callOf(i+10, "steps", `{"n":40}`), headerSession, id))
			got := events(body)
			if header.Get("Content-Type") != typeStream || len(got) != 41 || !strings.Contains(got[40], `"result"`) {
				t.Errorf("%d events: %.300s", len(got), body)
				return
			}
			for n, e := range got[:40] {
				if !strings.Contains(e, fmt.Sprintf(`"progress":%d,`, n+1)) || !strings.Contains(e, fmt.Sprintf(`"progressToken":"p%d"`, i+10)) {
					t.Errorf("event %d: %s", n, e)
				}
			}
		})
	}
	group.Wait()
	status, header, body := b.send(b.request("POST", Endpoint, callOf(9, "steps", "{}"), headerSession, id, "Accept", "application/json"))
	if status != 200 || header.Get("Content-Type") != typeJSON || !strings.Contains(body, "done") || strings.Contains(body, "progress") {
		t.Errorf("%d %s", status, body)
	}
	if got := events(second(b.send(b.request("POST", Endpoint, callOf(8, "log", "{}"), headerSession, id)))); len(got) != 2 || !strings.Contains(got[0], "said meanwhile") {
		t.Errorf("a message of the log: %v", got)
	}
}

func second(_ int, _ http.Header, body string) string { return body }

// TestCancel: a cancelled call ends and gets no reply; a client that vanishes ends its call too.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	id := b.session()
	body := make(chan string, 1)
	go func() {
		body <- second(b.send(b.request("POST", Endpoint, callOf(7, "wait", "{}"), headerSession, id)))
	}()
	<-b.started
	if status, _, text := b.send(b.request("POST", Endpoint, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`, headerSession, id)); status != 202 {
		t.Errorf("%d %s", status, text)
	}
	if cause := <-b.ended; cause == nil || !strings.Contains(cause.Error(), "enough") {
		t.Errorf("the call ended by %v", cause)
	}
	if text := <-body; len(events(text)) != 0 || strings.Contains(text, "late") {
		t.Errorf("a reply after the cancel: %s", text)
	}

	// Each message has a connection of its own: the cancel may come first. It is for one call.
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"at once"}}`
	if status, _, text := b.send(b.request("POST", Endpoint, cancel, headerSession, id)); status != 202 {
		t.Errorf("%d %s", status, text)
	}
	if _, _, text := b.send(b.request("POST", Endpoint, callOf(9, "wait", "{}"), headerSession, id)); len(events(text)) != 0 || strings.Contains(text, "late") {
		t.Errorf("a reply after a cancel that came first: %s", text)
	}
	<-b.started
	if cause := <-b.ended; cause == nil || !strings.Contains(cause.Error(), "at once") {
		t.Errorf("the call ended by %v", cause)
	}
	if _, _, text := b.send(b.request("POST", Endpoint, callOf(9, "echo", `{"text":"again"}`), headerSession, id)); !strings.Contains(text, "again") {
		t.Errorf("an id that is used again: %s", text)
	}

	ctx, vanish := context.WithCancel(t.Context())
	go func() {
		res, err := b.Client().Do(b.request("POST", Endpoint, callOf(8, "wait", "{}"), headerSession, id).WithContext(ctx))
		if err == nil {
			res.Body.Close()
		}
	}()
	<-b.started
	vanish()
	<-b.ended
}

// TestParallel: 200 calls at once, each with its own answer.
func TestParallel(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	id := b.session()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			if body := second(b.send(b.request("POST", Endpoint, callOf(i, "echo", fmt.Sprintf(`{"text":"t%d."}`, i)), headerSession, id))); !strings.Contains(body, fmt.Sprintf(`"t%d."`, i)) || !strings.Contains(body, fmt.Sprintf(`"id":%d,`, i)) {
				t.Errorf("%d: %s", i, body)
			}
		})
	}
	group.Wait()
}

// TestBounds: sessions and requests in flight have a number; an idle session makes room.
func TestBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{MaxSessions: 2, MaxInFlight: 1, IdleSession: 50 * time.Millisecond})
	first := b.session()
	go func() { _, _, _ = b.send(b.request("POST", Endpoint, callOf(1, "wait", "{}"), headerSession, first)) }()
	<-b.started
	if status, header, _ := b.send(b.request("POST", Endpoint, hello)); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("one more request: %d", status)
	}
	b.send(b.request("DELETE", Endpoint, "", headerSession, first))
	<-b.ended

	b = newBench(t, Options{MaxSessions: 2})
	b.session()
	b.session()
	if status, _, body := b.send(b.request("POST", Endpoint, hello)); status != 503 || !strings.Contains(body, "sessions") {
		t.Errorf("a third session: %d %s", status, body)
	}
	b.handler.sessions.idle = 0
	if status, _, _ := b.send(b.request("POST", Endpoint, hello)); status != 200 {
		t.Errorf("an idle session makes no room: %d", status)
	}
}

// modern is a request of 2026-07-28 with its headers.
func (b *bench) modern(id int, method, params string, headers ...string) *http.Request {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		meta += "," + params
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, meta)
	return b.request("POST", Endpoint, body, append([]string{headerVersion, "2026-07-28", "Mcp-Method", method}, headers...)...)
}

// TestModern: requests of 2026-07-28 need no session, and headers that agree with the message.
func TestModern(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		says    string
	}{
		"discover":         {b.modern(1, "server/discover", ""), 200, "supportedVersions"},
		"a call":           {b.modern(2, "tools/call", `"name":"echo","arguments":{"text":"hi"}`, "Mcp-Name", "echo"), 200, `"hi"`},
		"no name":          {b.modern(3, "tools/call", `"name":"echo","arguments":{}`), 400, "-32020"},
		"another name":     {b.modern(4, "tools/call", `"name":"echo","arguments":{}`, "Mcp-Name", "steps"), 400, "-32020"},
		"another method":   {b.modern(5, "tools/list", "", "Mcp-Method", "tools/call"), 400, "-32020"},
		"another version":  {b.modern(6, "tools/list", "", headerVersion, "2026-09-01"), 400, "-32020"},
		"no version":       {b.modern(7, "tools/list", "", headerVersion, ""), 400, "-32020"},
		"resuming":         {b.modern(8, "tools/list", "", "Last-Event-ID", "3"), 400, "-32020"},
		"an unknown one":   {b.modern(9, "no/such", ""), 404, "-32601"},
		"no version in it": {b.request("POST", Endpoint, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headerVersion, "2026-07-28", "Mcp-Method", "tools/list"), 400, "-32602"},
	} {
		status, header, body := b.send(c.request)
		if status != c.status || !strings.Contains(body, c.says) || header.Get(headerSession) != "" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestStreams: a session's stream carries what the server says by itself, one stream at a time; a subscription of the modern era is a
// stream of its own.
func TestStreams(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{KeepAlive: 20 * time.Millisecond})
	id := b.session()
	open := func(r *http.Request) (*bufio.Scanner, func()) {
		t.Helper()
		res, err := b.Client().Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %+v", err, res)
		}
		return bufio.NewScanner(res.Body), func() { res.Body.Close() }
	}
	next := func(s *bufio.Scanner, want string) {
		t.Helper()
		for s.Scan() {
			if strings.Contains(s.Text(), want) {
				return
			}
		}
		t.Errorf("the stream ended without %q: %v", want, s.Err())
	}
	legacy, closeLegacy := open(b.request("GET", Endpoint, "", headerSession, id))
	next(legacy, ": still at work")
	if status, _, _ := b.send(b.request("GET", Endpoint, "", headerSession, id)); status != 409 {
		t.Errorf("a second stream: %d", status)
	}
	listen, closeListen := open(b.modern(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	next(listen, "subscriptions/acknowledged")
	b.handler.srv.AddTool(mcp.NewTool("more"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	next(legacy, "notifications/tools/list_changed")
	next(listen, "notifications/tools/list_changed")
	closeListen()
	closeLegacy()
}

// TestShortSubscription: a subscription of which nothing can be served ends at once, and is acknowledged all the same, before its result.
func TestShortSubscription(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	for i := range 200 {
		_, _, body := b.send(b.modern(i, "subscriptions/listen", `"notifications":{"promptsListChanged":true}`))
		got := events(body)
		if len(got) != 2 || !strings.Contains(got[0], "subscriptions/acknowledged") || !strings.Contains(got[1], `"result"`) {
			t.Fatalf("%d: %s", i, body)
		}
	}
}

// TestServe: a client that does not finish its headers is let go, and the end of the service ends what is open.
func TestServe(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{HeaderTimeout: 100 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.handler.Serve(ctx, l, "", "") }()
	b.URL = "http://" + l.Addr().String()
	slow, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(slow); err != nil || strings.Contains(string(rest), "200") { // it returns when the server closes
		t.Errorf("slow headers: %q %v", rest, err)
	}
	id := b.session()
	go func() {
		res, err := http.DefaultClient.Do(b.request("POST", Endpoint, callOf(7, "wait", "{}"), headerSession, id))
		if err == nil {
			res.Body.Close()
		}
	}()
	<-b.started
	end()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the service does not end")
	}
	<-b.ended
}

func FuzzMessage(f *testing.F) {
	f.Add(hello, "", "")
	f.Add(callOf(1, "echo", "{}"), "2026-07-28", "tools/call")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, "2026-07-28", "subscriptions/listen")
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`, "x", "é")
	srv := server.NewMCPServer("fuzz", "1", server.WithToolCapabilities(true))
	srv.AddTool(mcp.NewTool("echo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("x"), nil
	})
	h := New(srv, Options{Token: testToken})
	gone, leave := context.WithCancel(context.Background())
	leave() // a client that has gone, so that subscriptions end
	f.Fuzz(func(t *testing.T, body, version, method string) {
		r := httptest.NewRequest("POST", "http://localhost"+Endpoint, strings.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer " + testToken}, "Content-Type": {"application/json"}, headerVersion: {version}, "Mcp-Method": {method}, headerSession: {method}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(gone))
		if w.Body.Len() == 0 || !strings.HasPrefix(w.Header().Get("Content-Type"), typeJSON) {
			return
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
