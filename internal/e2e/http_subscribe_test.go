//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// events opens a stream of server-sent events and gives what comes, until the test ends.
func events(t *testing.T, method, url, token, body string, headers map[string]string) <-chan message {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token}}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s %v is no stream", res.Status, headers)
	}
	out := make(chan message, 64)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			var m message
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &m) == nil {
				out <- m
			}
		}
	}()
	return out
}

// next waits for a notification of a method about a URI.
func next(t *testing.T, from <-chan message, what, method, uri string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case m, ok := <-from:
			if !ok {
				t.Fatalf("%s: the stream ended", what)
			}
			if m.Method == method && strings.Contains(string(m.Params), uri) {
				return
			}
		case <-limit:
			t.Fatalf("%s was not told", what)
		}
	}
}

// TestSubscriptionsOverHTTP: clients of both eras hear of the end of a run on their streams.
func TestSubscriptionsOverHTTP(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	_, post, stderr := overHTTP(t, runs, "--simulate", "--fault", "timeout")
	url := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(stderr.String())[1]
	raw, err := os.ReadFile(filepath.Join(runs, ".http-token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(raw))
	_, header, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := header.Get("Mcp-Session-Id")
	_, _, frames := post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"flyprof_capture","arguments":{"kernel":"softmax","wait_s":0}}}`, "Mcp-Session-Id", session)
	found := regexp.MustCompile(`"bundle":"([^"]+)"`).FindStringSubmatch(frames[len(frames)-1])
	if found == nil {
		t.Fatalf("%v", frames)
	}
	id := found[1]
	run := "flyprof://runs/" + id
	stream := events(t, "GET", url, token, "", map[string]string{"Mcp-Session-Id": session})
	if status, _, frames := post(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"`+run+`"}}`, "Mcp-Session-Id", session); status != 200 || strings.Contains(frames[0], "error") {
		t.Fatalf("%d %v", status, frames)
	}
	listen, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": modern(map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{run}}})})
	if err != nil {
		t.Fatal(err)
	}
	listener := events(t, "POST", url, token, string(listen), map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"})
	next(t, listener, "the subscription", "notifications/subscriptions/acknowledged", run)
	if status, _, frames := post(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"flyprof_capture_cancel","arguments":{"run_id":"`+id+`"}}}`, "Mcp-Session-Id", session); status != 200 || !strings.Contains(frames[len(frames)-1], "cancelled") {
		t.Fatalf("%d %v", status, frames)
	}
	next(t, stream, "the end, on the session's stream,", updated, run)
	next(t, listener, "the end, on the listener's stream,", updated, run)
}
