package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// bench is a server with tools that misbehave on request.
type bench struct {
	srv *server.MCPServer
	// release lets stubborn calls end; causes gets why waiting calls ended.
	release chan struct{}
	causes  chan error
	// waiting counts calls of wait and stubborn that have started.
	waiting atomic.Int64
}

func newBench(opts ...server.ServerOption) *bench {
	b := &bench{release: make(chan struct{}), causes: make(chan error, 2000)}
	b.srv = server.NewMCPServer("bench", "1", append(opts, server.WithToolCapabilities(true))...)
	text := func(s string) *mcp.CallToolResult { return mcp.NewToolResultText(s) }
	b.tool("echo", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(req.GetString("text", "")), nil
	})
	b.tool("steps", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		report, n := wire.Progress(ctx), req.GetInt("n", 1)
		for i := range n {
			report(float64(i+1), float64(n), "step")
		}
		return text("done"), nil
	})
	b.tool("late", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		report := wire.Progress(ctx)
		go func() {
			for i := range 200 {
				report(float64(i+1), 0, "from another goroutine")
			}
		}()
		return text("done"), nil
	})
	b.tool("wait", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.waiting.Add(1)
		select {
		case <-ctx.Done():
			b.causes <- context.Cause(ctx)
			return text("cancelled"), nil
		case <-b.release:
			return text("released"), nil
		}
	})
	b.tool("stubborn", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.waiting.Add(1)
		<-b.release
		return text("released"), nil
	})
	b.tool("panic", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("on purpose") })
	b.tool("who", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		return text(s.GetClientInfo().Name), nil
	})
	return b
}

func (b *bench) tool(name string, h server.ToolHandlerFunc) {
	b.srv.AddTool(mcp.NewToolWithRawSchema(name, name, json.RawMessage(`{"type":"object"}`)), h)
}

// frame is any line that a server may write.
type frame struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// client is the other end.
type client struct {
	t      *testing.T
	in     *io.PipeWriter
	frames chan frame
	served chan error
	stop   context.CancelFunc
}

func connect(t *testing.T, b *bench, opts Options) *client {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	c := &client{t: t, in: inW, frames: make(chan frame, 20_000), served: make(chan error, 1), stop: stop}
	go func() {
		c.served <- Serve(ctx, b.srv, inR, outW, opts)
		outW.Close()
	}()
	go func() {
		defer close(c.frames)
		for r := bufio.NewReader(outR); ; {
			text, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var f frame
			if err := json.Unmarshal(text, &f); err != nil || f.JSONRPC != "2.0" {
				t.Errorf("stdout has a line that is not JSON-RPC: %q (%v)", text, err)
			}
			c.frames <- f
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		stop()
	})
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() frame {
	c.t.Helper()
	select {
	case f, ok := <-c.frames:
		if !ok {
			c.t.Fatal("the server closed its output")
		}
		return f
	case <-time.After(5 * time.Second):
		c.t.Fatal("no answer within 5 s")
	}
	panic("unreachable")
}

// rest closes the input and gives all that is still written.
func (c *client) rest() []frame {
	c.t.Helper()
	c.in.Close()
	var out []frame
	for {
		select {
		case f, ok := <-c.frames:
			if !ok {
				return out
			}
			out = append(out, f)
		case <-time.After(5 * time.Second):
			c.t.Fatal("the server does not end at the end of input")
		}
	}
}

func rpcCall(id any, tool, args string) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%s}}}`, raw, tool, args, raw)
}

func cancelLine(id any, reason string) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":%q}}`, raw, reason)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func progressID(f frame) string {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(f.Params, &p)
	return string(p.Token)
}

func TestProgressNeverComesAfterTheResult(t *testing.T) {
	for _, tool := range []string{"steps", "late"} {
		t.Run(tool, func(t *testing.T) {
			c := connect(t, newBench(), Options{})
			const calls = 300
			for i := range calls {
				c.send(rpcCall(i, tool, "{}"))
			}
			answered, reported, late := map[string]bool{}, map[string]int{}, 0
			for len(answered) < calls {
				f := c.next()
				if f.Method == "notifications/progress" {
					reported[progressID(f)]++
					if answered[progressID(f)] {
						late++
					}
					continue
				}
				answered[string(f.ID)] = true
			}
			for _, f := range c.rest() {
				if f.Method == "notifications/progress" {
					late++
				}
			}
			if late > 0 {
				t.Errorf("%d progress lines came after their result", late)
			}
			if tool == "steps" && len(reported) != calls {
				t.Errorf("%d of %d calls had their progress reported", len(reported), calls)
			}
		})
	}
}

func TestProgressIsCompleteAndInOrder(t *testing.T) {
	c := connect(t, newBench(), Options{})
	c.send(rpcCall("p", "steps", `{"n":5000}`))
	for want := 1; want <= 5000; want++ {
		var p struct {
			Token           json.RawMessage `json:"progressToken"`
			Progress, Total float64
		}
		if err := json.Unmarshal(c.next().Params, &p); err != nil || p.Progress != float64(want) || p.Total != 5000 || string(p.Token) != `"p"` {
			t.Fatalf("progress %d is %+v (%v)", want, p, err)
		}
	}
	if f := c.next(); string(f.ID) != `"p"` || f.Result == nil {
		t.Fatalf("after the progress comes %+v", f)
	}
}

func TestProgressThatDoesNotGrowIsDropped(t *testing.T) {
	b := newBench()
	b.tool("odd", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var zero float64
		for _, p := range []float64{1, 1, 0.5, zero / zero, 1 / zero, 2} {
			wire.Progress(ctx)(p, 0, "")
		}
		return mcp.NewToolResultText(""), nil
	})
	c := connect(t, b, Options{})
	c.send(rpcCall(1, "odd", "{}"))
	var got []string
	for f := c.next(); f.Method != ""; f = c.next() {
		got = append(got, string(f.Params))
	}
	want := []string{`{"progressToken":1,"progress":1}`, `{"progressToken":1,"progress":2}`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Without a token nothing is reported, and the function may be called all the same.
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"odd"}}`)
	if f := c.next(); string(f.ID) != "2" {
		t.Errorf("got %+v for a call without a token", f)
	}
}

func TestNoCancelIsLostAndNothingIsWrittenAfterIt(t *testing.T) {
	b := newBench()
	c := connect(t, b, Options{})
	const calls = 200
	for i := range calls {
		c.send(rpcCall(i, "wait", "{}"), cancelLine(i, "too slow"))
	}
	started := int64(0)
	eventually(t, "all calls are out of the way", func() bool {
		started = int64(len(b.causes))
		return started == calls
	})
	for range calls {
		cause := <-b.causes
		var cancelled *wire.CancelledError
		if !errors.As(cause, &cancelled) || cancelled.Reason != "too slow" {
			t.Fatalf("cause is %v", cause)
		}
	}
	c.send(rpcCall("after", "echo", `{"text":"x"}`))
	for _, f := range append([]frame{c.next()}, c.rest()...) {
		if string(f.ID) != `"after"` {
			t.Errorf("written for a cancelled call: %s %+v", f.ID, f)
		}
	}
}

func TestCancelGoesByTheExactID(t *testing.T) {
	b := newBench()
	c := connect(t, b, Options{})
	c.send(rpcCall(1, "wait", "{}"), rpcCall("1", "wait", "{}"), rpcCall("ä", "wait", "{}"))
	eventually(t, "three calls wait", func() bool { return b.waiting.Load() == 3 })
	c.send(cancelLine(2, ""), cancelLine("1", ""), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u00e4"}}`)
	eventually(t, "two calls are cancelled", func() bool { return len(b.causes) == 2 })
	close(b.release)
	if f := c.next(); string(f.ID) != "1" || f.Result == nil {
		t.Errorf("the call with id 1 got %+v", f)
	}
	if rest := c.rest(); len(rest) > 0 {
		t.Errorf("also written: %+v", rest)
	}
}

func TestInitializeCannotBeCancelled(t *testing.T) {
	c := connect(t, newBench(), Options{})
	c.send(initialize(7, "2025-11-25"), cancelLine(7, ""))
	if f := c.next(); string(f.ID) != "7" || f.Result == nil {
		t.Errorf("got %+v", f)
	}
}

func TestFiveHundredCallsAtOnce(t *testing.T) {
	b := newBench()
	c := connect(t, b, Options{})
	const calls = 500
	for i := range calls {
		c.send(rpcCall(i, "wait", "{}"))
	}
	eventually(t, "all calls run at once", func() bool { return b.waiting.Load() == calls })
	c.send(rpcCall("quick", "echo", `{"text":"x"}`))
	if f := c.next(); string(f.ID) != `"quick"` {
		t.Fatalf("a quick call waits behind %s", f.ID)
	}
	close(b.release)
	seen := map[string]bool{}
	for range calls {
		seen[string(c.next().ID)] = true
	}
	if len(seen) != calls {
		t.Errorf("%d of %d calls were answered", len(seen), calls)
	}
}

func TestIDsComeBackAsTheyWere(t *testing.T) {
	c := connect(t, newBench(), Options{})
	for _, id := range []string{"0", "-3", "9007199254740993", "1.5", `""`, `"a b"`} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if f := c.next(); string(f.ID) != id || f.Error != nil {
			t.Errorf("id %s came back as %s (%+v)", id, f.ID, f.Error)
		}
	}
}

func TestMessages(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tc := range []struct {
		name, line string
		id         string // of the answer; "" for no answer
		code       int    // of its error; 0 for a result
	}{
		{"request", ping, "1", 0},
		{"byte order mark", "\xef\xbb\xbf" + ping, "1", 0},
		{"carriage return", ping + "\r", "1", 0},
		{"spaces around", "  \t" + ping + "  ", "1", 0},
		{"blank", "", "", 0},
		{"blank with carriage return", "\r", "", 0},
		{"not JSON", "{", "null", mcp.PARSE_ERROR},
		{"text", "hello", "null", mcp.PARSE_ERROR},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", "null", mcp.PARSE_ERROR},
		{"two values", ping + ping, "null", mcp.PARSE_ERROR},
		{"batch", "[" + ping + "]", "null", mcp.INVALID_REQUEST},
		{"number", "5", "null", mcp.INVALID_REQUEST},
		{"null", "null", "null", mcp.INVALID_REQUEST},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", mcp.INVALID_REQUEST},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", mcp.INVALID_REQUEST},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, "null", mcp.INVALID_REQUEST},
		{"no method", `{"jsonrpc":"2.0","id":1}`, "1", mcp.INVALID_REQUEST},
		{"method is no text", `{"jsonrpc":"2.0","id":1,"method":5}`, "1", mcp.INVALID_REQUEST},
		{"old version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "1", mcp.INVALID_REQUEST},
		{"no version", `{"id":1,"method":"ping"}`, "1", mcp.INVALID_REQUEST},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, "1", mcp.METHOD_NOT_FOUND},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`, "1", mcp.INVALID_PARAMS},
		{"request that looks like a reply", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, "1", mcp.INVALID_REQUEST},
		{"reply nobody asked for", `{"jsonrpc":"2.0","id":1,"result":{}}`, "", 0},
		{"error reply nobody asked for", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, "", 0},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", 0},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/none"}`, "", 0},
		{"cancel of nothing", cancelLine(99, ""), "", 0},
		{"cancel without params", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "", 0},
		{"panic", rpcCall(1, "panic", "{}"), "1", mcp.INTERNAL_ERROR},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := connect(t, newBench(), Options{})
			c.send(tc.line)
			got := c.rest()
			if tc.id == "" {
				if len(got) > 0 {
					t.Errorf("answered with %+v", got)
				}
				return
			}
			if len(got) != 1 || string(got[0].ID) != tc.id {
				t.Fatalf("got %+v, want one answer with id %s", got, tc.id)
			}
			code := 0
			if got[0].Error != nil {
				code = got[0].Error.Code
			}
			if code != tc.code {
				t.Errorf("got error %d, want %d", code, tc.code)
			}
		})
	}
}

func TestLastLineNeedsNoNewline(t *testing.T) {
	var out bytes.Buffer
	err := Serve(t.Context(), newBench().srv, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), &out, Options{})
	if err != nil || !strings.Contains(out.String(), `"id":1`) {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestLinesThatAreTooLongAreSkipped(t *testing.T) {
	c := connect(t, newBench(), Options{MaxLine: 1000})
	exact := `{"jsonrpc":"2.0","id":1,"method":"ping","x":"`
	exact += strings.Repeat("a", 1000-len(exact)-2) + `"}`
	c.send(exact)
	if f := c.next(); string(f.ID) != "1" || f.Error != nil {
		t.Errorf("a line of exactly the limit got %+v", f)
	}
	for _, size := range []int{1, 70_000, 20 << 20} {
		c.send(exact + strings.Repeat(" ", 4) + strings.Repeat("b", size))
		if f := c.next(); string(f.ID) != "null" || f.Error == nil || f.Error.Code != mcp.INVALID_REQUEST || !strings.Contains(f.Error.Message, "1000 bytes") {
			t.Errorf("%d bytes too many got %+v", size, f)
		}
		c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if f := c.next(); string(f.ID) != "2" {
			t.Errorf("the next line got %+v", f)
		}
	}
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Run("by number", func(t *testing.T) {
		b := newBench()
		c := connect(t, b, Options{MaxInFlight: 10})
		for i := range 10 {
			c.send(rpcCall(i, "wait", "{}"))
		}
		eventually(t, "ten calls wait", func() bool { return b.waiting.Load() == 10 })
		c.send(rpcCall("more", "echo", "{}"))
		if f := c.next(); string(f.ID) != `"more"` || f.Error == nil || f.Error.Code != mcp.INTERNAL_ERROR {
			t.Errorf("the eleventh got %+v", f)
		}
		c.send(cancelLine(3, ""))
		eventually(t, "one is cancelled", func() bool { return len(b.causes) == 1 })
		eventually(t, "there is room again", func() bool {
			c.send(rpcCall("again", "echo", "{}"))
			return c.next().Error == nil
		})
	})
	t.Run("by bytes", func(t *testing.T) {
		b := newBench()
		c := connect(t, b, Options{MaxInFlightBytes: 5000})
		big := `{"text":"` + strings.Repeat("a", 6000) + `"}`
		c.send(rpcCall(1, "wait", big)) // alone it may be larger
		eventually(t, "it waits", func() bool { return b.waiting.Load() == 1 })
		c.send(rpcCall(2, "echo", "{}"))
		if f := c.next(); string(f.ID) != "2" || f.Error == nil || f.Error.Code != mcp.INTERNAL_ERROR {
			t.Errorf("the second got %+v", f)
		}
	})
	t.Run("same id", func(t *testing.T) {
		b := newBench()
		c := connect(t, b, Options{})
		c.send(rpcCall(1, "wait", "{}"), rpcCall(1, "echo", "{}"))
		if f := c.next(); string(f.ID) != "1" || f.Error == nil || f.Error.Code != mcp.INVALID_REQUEST {
			t.Errorf("got %+v", f)
		}
	})
}

func TestEndOfInput(t *testing.T) {
	t.Run("answers what is quick", func(t *testing.T) {
		c := connect(t, newBench(), Options{})
		c.send(rpcCall(1, "echo", "{}"), rpcCall(2, "echo", "{}"))
		if rest := c.rest(); len(rest) != 2 {
			t.Errorf("got %d answers, want 2", len(rest))
		}
	})
	t.Run("cancels what waits", func(t *testing.T) {
		b := newBench()
		c := connect(t, b, Options{})
		c.send(rpcCall(1, "wait", "{}"))
		eventually(t, "it waits", func() bool { return b.waiting.Load() == 1 })
		rest := c.rest()
		if cause := <-b.causes; !errors.Is(cause, ErrInputClosed) {
			t.Errorf("cause is %v", cause)
		}
		if len(rest) != 1 {
			t.Errorf("got %d answers, want the one of the cancelled call", len(rest))
		}
	})
	t.Run("does not wait for the stubborn", func(t *testing.T) {
		b := newBench()
		c := connect(t, b, Options{})
		for i := range 20 {
			c.send(rpcCall(i, "stubborn", "{}"))
		}
		eventually(t, "they run", func() bool { return b.waiting.Load() == 20 })
		start := time.Now()
		c.in.Close()
		if err := <-c.served; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		close(b.release) // they end now, and must write nothing
		if rest := c.rest(); len(rest) > 0 {
			t.Errorf("written after the end: %+v", rest)
		}
	})
}

func TestContextEndsServing(t *testing.T) {
	b := newBench()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	in, inW := io.Pipe() // nobody closes it: a read that never returns
	defer inW.Close()
	go func() { served <- Serve(ctx, b.srv, in, neverRead{}, Options{}) }()
	io.WriteString(inW, rpcCall(1, "echo", "{}")+"\n"+rpcCall(2, "wait", "{}")+"\n")
	eventually(t, "a call waits", func() bool { return b.waiting.Load() == 1 })
	start := time.Now()
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Serve does not return")
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}

// neverRead is a pipe that nobody reads.
type neverRead struct{}

func (neverRead) Write([]byte) (int, error) { select {} }

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Read([]byte) (int, error)  { return 0, f.err }

func TestBrokenStreams(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	t.Run("client gone", func(t *testing.T) {
		in, inW := io.Pipe()
		go io.WriteString(inW, ping) // and no end of input
		if err := Serve(t.Context(), newBench().srv, in, failing{syscall.EPIPE}, Options{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("disk full", func(t *testing.T) {
		err := Serve(t.Context(), newBench().srv, strings.NewReader(ping), failing{syscall.ENOSPC}, Options{})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		err := Serve(t.Context(), newBench().srv, failing{syscall.EIO}, io.Discard, Options{})
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
	})
}

func initialize(id int, version string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}`, id, version)
}

func modern(id, method, params string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"2"}}`
	if params != "" {
		meta += "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, meta)
}

func TestBothErasInOneSession(t *testing.T) {
	c := connect(t, newBench(), Options{})
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		c.send(initialize(1, version))
		if f := c.next(); !strings.Contains(string(f.Result), `"protocolVersion":"`+version+`"`) {
			t.Errorf("initialize %s: %s", version, f.Result)
		}
	}
	c.send(initialize(1, "2026-07-28"))
	if f := c.next(); !strings.Contains(string(f.Result), `"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize of the era without initialize: %s", f.Result)
	}
	c.send(rpcCall(2, "echo", `{"text":"old"}`))
	if f := c.next(); strings.Contains(string(f.Result), "resultType") {
		t.Errorf("a call of the old era got %s", f.Result)
	}
	c.send(modern(`"d"`, "server/discover", ""))
	if f := c.next(); f.Error != nil || !strings.Contains(string(f.Result), "2026-07-28") {
		t.Errorf("discover: %s %+v", f.Result, f.Error)
	}
	c.send(modern("3", "tools/call", `"name":"echo","arguments":{"text":"new"}`))
	if f := c.next(); !strings.Contains(string(f.Result), `"resultType":"complete"`) {
		t.Errorf("a call of the new era got %s %+v", f.Result, f.Error)
	}
	c.send(modern("4", "ping", ""))
	if f := c.next(); f.Error == nil || f.Error.Code != mcp.METHOD_NOT_FOUND {
		t.Errorf("ping in the era without ping: %+v", f)
	}
}

func TestWhatFollowsInitializeSeesIt(t *testing.T) {
	for range 50 {
		c := connect(t, newBench(), Options{})
		c.send(initialize(1, "2025-11-25"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, rpcCall(2, "who", "{}"))
		if f := c.next(); string(f.ID) != "1" {
			t.Fatalf("the first answer is of %s", f.ID)
		}
		if f := c.next(); !strings.Contains(string(f.Result), "probe") {
			t.Fatalf("the call does not see the client's name: %s", f.Result)
		}
		c.in.Close()
	}
}

func TestLogNotificationsComeBeforeTheReply(t *testing.T) {
	b := newBench(server.WithLogging())
	b.tool("log", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 3 {
			if err := b.srv.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "test", "x")); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText(""), nil
	})
	c := connect(t, b, Options{})
	c.send(initialize(0, "2025-11-25"), `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
	c.next()
	c.next()
	for range 100 {
		c.send(rpcCall(2, "log", "{}"))
		for i := range 4 {
			f := c.next()
			if reply := f.Method == ""; reply != (i == 3) {
				t.Fatalf("frame %d of a call that logs three times is %+v", i, f)
			}
		}
	}
}

func subscriptionOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return string(p.Meta[mcp.MetaKeySubscriptionID])
}

func TestSubscriptions(t *testing.T) {
	b := newBench(server.WithResourceCapabilities(true, true))
	c := connect(t, b, Options{})
	c.send(modern(`"a"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	if f := c.next(); f.Method != "notifications/subscriptions/acknowledged" || subscriptionOf(t, f.Params) != `"a"` {
		t.Fatalf("acknowledgement: %+v", f)
	}
	c.send(modern("7", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["flyprof://runs"]}`))
	if f := c.next(); subscriptionOf(t, f.Params) != "7" {
		t.Fatalf("second acknowledgement: %+v", f)
	}
	var who server.ClientSession
	b.tool("grab", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		who = server.ClientSessionFromContext(ctx)
		return mcp.NewToolResultText(""), nil
	})
	if f := c.next(); f.Method != "notifications/tools/list_changed" || subscriptionOf(t, f.Params) != `"a"` {
		t.Fatalf("a new tool tells %+v", f)
	}
	c.send(rpcCall(1, "grab", "{}"))
	c.next()
	if subs := who.(server.SessionWithResourceSubscriptions); !subs.IsSubscribedToResource("flyprof://runs") || subs.IsSubscribedToResource("flyprof://x") {
		t.Errorf("subscribed to %v", subs.SubscribedResources())
	}
	for _, uri := range []string{"flyprof://x", "flyprof://runs"} {
		if err := b.srv.SendNotificationToSpecificClient(who.SessionID(), "notifications/resources/updated", map[string]any{"uri": uri}); err != nil {
			t.Fatal(err)
		}
	}
	if f := c.next(); f.Method != "notifications/resources/updated" || subscriptionOf(t, f.Params) != "7" || !strings.Contains(string(f.Params), "flyprof://runs") {
		t.Fatalf("an update tells %+v", f)
	}
	// A subscription that the client cancels ends alone and without a word, as any request; one that ends with the session gets its result.
	c.send(cancelLine("a", ""))
	for filter := (mcp.SubscriptionFilter{ToolsListChanged: true}); filter.ToolsListChanged; {
		time.Sleep(time.Millisecond)
		filter, _ = who.(server.SessionWithSubscriptionFilter).SubscriptionFilter()
	}
	b.tool("more", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	c.send(rpcCall(2, "grab", "{}"))
	if f := c.next(); string(f.ID) != "2" {
		t.Fatalf("after its end a subscription still hears: %+v", f)
	}
	c.in.Close()
	if f := c.next(); string(f.ID) != "7" || subscriptionOf(t, f.Result) != "7" {
		t.Fatalf("the end of a subscription with its session: %+v", f)
	}
}

func TestLegacySubscriptions(t *testing.T) {
	b := newBench(server.WithResourceCapabilities(true, true))
	c := connect(t, b, Options{})
	c.send(initialize(0, "2025-11-25"))
	c.next()
	subscribe := func(method string) {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/` + method + `","params":{"uri":"flyprof://runs"}}`)
		if f := c.next(); f.Error != nil {
			t.Fatalf("%s: %+v", method, f.Error)
		}
	}
	subscribe("subscribe")
	b.tool("grab", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(server.ClientSessionFromContext(ctx).(server.SessionWithResourceSubscriptions).SubscribedResources())), nil
	})
	if f := c.next(); f.Method != "notifications/tools/list_changed" {
		t.Fatalf("got %+v", f)
	}
	c.send(rpcCall(2, "grab", "{}"))
	if f := c.next(); !strings.Contains(string(f.Result), "[flyprof://runs]") {
		t.Errorf("got %s", f.Result)
	}
	subscribe("unsubscribe")
	c.send(rpcCall(3, "grab", "{}"))
	if f := c.next(); !strings.Contains(string(f.Result), `"[]"`) {
		t.Errorf("got %s", f.Result)
	}
}

func TestIntercept(t *testing.T) {
	intercept := func(_ context.Context, method string, params json.RawMessage) (any, bool, error) {
		switch method {
		case "skills/list":
			return map[string]string{"params": string(params)}, true, nil
		case "skills/get":
			return nil, true, &wire.Error{Code: mcp.INVALID_PARAMS, Message: "no such skill"}
		case "skills/fail":
			return nil, true, errors.New("broken")
		}
		return nil, false, nil
	}
	c := connect(t, newBench(), Options{Intercept: intercept})
	for _, tc := range []struct {
		method string
		want   string
		code   int
	}{
		{"skills/list", `{"params":"{\"a\":1}"}`, 0},
		{"skills/get", "", mcp.INVALID_PARAMS},
		{"skills/fail", "", mcp.INTERNAL_ERROR},
		{"ping", `{}`, 0},
	} {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"` + tc.method + `","params":{"a":1}}`)
		f := c.next()
		if tc.code != 0 && (f.Error == nil || f.Error.Code != tc.code) || tc.code == 0 && string(f.Result) != tc.want {
			t.Errorf("%s: %s %+v", tc.method, f.Result, f.Error)
		}
	}
}

func TestSeveralSessionsOfOneServer(t *testing.T) {
	b := newBench()
	var all sync.WaitGroup
	for range 4 {
		c := connect(t, b, Options{})
		all.Go(func() {
			for i := range 50 {
				c.send(rpcCall(i, "steps", "{}"))
			}
			if rest := c.rest(); len(rest) != 100 {
				t.Errorf("got %d frames, want 50 answers and 50 progress lines", len(rest))
			}
		})
	}
	all.Wait()
}
