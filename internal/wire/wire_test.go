package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// TestErrorsKeepTheirCodes: what a handler returns is answered with its code and data, and only for its own request.
func TestErrorsKeepTheirCodes(t *testing.T) {
	t.Parallel()
	hooks := &server.Hooks{}
	ReportErrors(hooks)
	srv := server.NewMCPServer("test", "1", server.WithHooks(hooks))
	srv.AddPrompt(mcp.NewPrompt("coded"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, fmt.Errorf("wrapped: %w", &Error{Code: -32602, Message: "no such thing", Data: map[string]int{"n": 7}})
	})
	srv.AddPrompt(mcp.NewPrompt("plain"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, fmt.Errorf("broken")
	})
	srv.AddPrompt(mcp.NewPrompt("good"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", nil), nil
	})
	for name, want := range map[string]string{
		"coded": `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"no such thing","data":{"n":7}}}`,
		"plain": `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"broken"}}`,
		"good":  `{"jsonrpc":"2.0","id":"x","result":{"messages":[]}}`,
	} {
		raw := []byte(`{"jsonrpc":"2.0","id":"x","method":"prompts/get","params":{"name":"` + name + `"}}`)
		m, fault := Parse(raw)
		if fault != nil {
			t.Fatal(fault)
		}
		got, err := json.Marshal(Answerer{Server: srv, Log: slog.New(slog.DiscardHandler)}.Answer(t.Context(), raw, m))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestModern(t *testing.T) {
	t.Parallel()
	const version, caps = `"io.modelcontextprotocol/protocolVersion":`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for params, want := range map[string]struct {
		modern bool
		code   int
	}{
		``: {}, `null`: {}, `[]`: {}, `{}`: {}, `{"_meta":7}`: {}, `{"_meta":{}}`: {}, `{"_meta":{` + version + `"2025-11-25"}}`: {}, `{"_meta":{` + version + `7}}`: {},
		`{"_meta":{` + version + `"2026-07-28",` + caps + `}}`: {modern: true},
		`{"_meta":{` + version + `"2026-07-28"}}`:              {true, -32602},
		`{"_meta":{` + version + `"2999-01-01",` + caps + `}}`: {true, mcp.UNSUPPORTED_PROTOCOL_VERSION},
	} {
		modern, fault := Modern(json.RawMessage(params))
		if modern != want.modern || (fault == nil) != (want.code == 0) || (fault != nil && fault.Code != want.code) {
			t.Errorf("%s: %v %+v", params, modern, fault)
		}
	}
}

// counted is a watch that counts what it is asked.
type counted struct {
	watched map[string]int
	closed  bool
}

func (c *counted) Add(uri string) error {
	if uri == "bad" {
		return fmt.Errorf("no such thing")
	}
	c.watched[uri]++
	return nil
}
func (c *counted) Remove(uri string) { c.watched[uri]-- }
func (c *counted) Close()            { c.closed = true }

// TestSessionWatches: each subscription of either kind is one Add, and one Remove where it ends.
func TestSessionWatches(t *testing.T) {
	t.Parallel()
	c := &counted{watched: map[string]int{}}
	s := NewSession("test")
	s.SetWatch(c)
	l := &Listener{Session: s, ID: json.RawMessage("1")}
	for range 3 {
		if err := s.SubscribeToResourceErr("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SubscribeToResourceErr("bad"); err == nil || s.IsSubscribedToResource("bad") {
		t.Errorf("%v", err)
	}
	if err := l.SubscribeToResourceErr("a"); err != nil {
		t.Fatal(err)
	}
	if err := l.SubscribeToResourceErr("bad"); err == nil {
		t.Error("a listener watches what is not there")
	}
	if c.watched["a"] != 2 {
		t.Errorf("%v", c.watched)
	}
	s.UnsubscribeFromResource("a")
	s.UnsubscribeFromResource("a")
	s.UnsubscribeFromResource("never")
	l.UnsubscribeFromResource("a")
	if c.watched["a"] != 0 || c.watched["never"] != 0 || c.closed {
		t.Errorf("%+v", c)
	}
	s.SetWatch(nil)
	s.UnsubscribeFromResource("a")
	if !c.closed || s.SubscribeToResourceErr("bad") != nil {
		t.Error("the watch is not closed, or still asked")
	}
}

// TestUpdatesWaitOnce: however often a resource changes while nobody reads, one note waits; one that nobody wants any more is not written.
func TestUpdatesWaitOnce(t *testing.T) {
	t.Parallel()
	s := NewSession("test")
	for _, uri := range []string{"a", "b", "c"} {
		s.SubscribeToResource(uri)
	}
	for range 1000 {
		if !s.Updated("a") || !s.Updated("b") || !s.Updated("c") {
			t.Fatal("the queue is full")
		}
	}
	s.UnsubscribeFromResource("b")
	written := make(chan string, 10)
	stop := make(chan struct{})
	go s.Pump(stop, func(n mcp.JSONRPCNotification) { written <- n.Params.AdditionalFields["uri"].(string) })
	s.Flush()
	if !s.Updated("a") {
		t.Error("a change after the note was written is not told")
	}
	s.Flush()
	close(stop)
	<-s.stopped
	close(written)
	var got []string
	for uri := range written {
		got = append(got, uri)
	}
	if !slices.Equal(got, []string{"a", "c", "a"}) {
		t.Errorf("%q", got)
	}
	// A queue that is full says so, and what did not fit can be told later.
	many := NewSession("test")
	told := 0
	for i := range 1000 {
		if many.Updated(fmt.Sprint(i)) {
			told++
		}
	}
	if told == 0 || told == 1000 || many.Updated("999") {
		t.Errorf("%d notes are queued", told)
	}
}
