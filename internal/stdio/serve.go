// Package stdio serves MCP over standard input and output.
//
// It drives MCPServer.HandleMessage with a read loop of its own, for what the library's stdio server does not hold: a
// cancel that comes right after its call is not lost, nothing is written for a call after it was cancelled, progress
// never comes after the result, calls do not queue behind each other, and the end of input ends everything soon.
package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// Options of Serve; the zero value has the defaults.
type Options struct {
	// Log gets what goes wrong with the transport; nil for slog's default.
	Log *slog.Logger
	// MaxLine is the longest message in bytes; default 8 MiB. A longer one is answered with an error and skipped.
	MaxLine int
	// MaxInFlight bounds the requests that are worked on at once; default 1,000.
	MaxInFlight int
	// MaxInFlightBytes bounds the messages of all requests in flight; default 64 MiB.
	MaxInFlightBytes int64
	// Grace is how long requests in flight may go on after the end of input before their context is cancelled, and again
	// how long they have after that; default 300 ms.
	Grace time.Duration
	// Intercept answers methods that the library does not know; nil for none.
	Intercept wire.Intercept
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 8 << 20
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 1000
	}
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = 64 << 20
	}
	if o.Grace <= 0 {
		o.Grace = 300 * time.Millisecond
	}
	return o
}

// Causes of a request's context (context.Cause) when it ends early.
var (
	// ErrInputClosed: the client closed standard input.
	ErrInputClosed = errors.New("the client closed standard input")
	// ErrOutputClosed: the client does not read standard output any more.
	ErrOutputClosed = errors.New("the client closed standard output")
)

// conn is one session over a pair of streams.
type conn struct {
	Options
	srv     *server.MCPServer
	session *wire.Session
	out     io.Writer
	// end ends the session and cancels all that is in flight.
	end context.CancelCauseFunc

	writeMu sync.Mutex
	// closed is set when Serve returns: nothing is written afterwards.
	closed atomic.Bool

	callsMu sync.Mutex
	calls   map[string]*call

	slots    chan struct{}
	bytes    atomic.Int64
	inFlight sync.WaitGroup
}

// call is one request in flight.
type call struct {
	id     json.RawMessage
	method string
	cancel context.CancelCauseFunc
	// muted: the client cancelled it, and nothing more may be written for it.
	muted atomic.Bool
	// finished: its reply is written or dropped; no progress may follow. Guarded by conn.writeMu.
	finished bool
}

// Serve answers the messages on in until its end, until out cannot be written, or until ctx ends. After the end of input
// requests in flight have Options.Grace to finish, then their context is cancelled, and Serve returns at most another
// Grace later, whatever handlers do. It returns nil when the client or ctx ended the session, and the error when reading
// or writing failed otherwise. When ctx ended, a read of in may still be waiting.
func Serve(ctx context.Context, srv *server.MCPServer, in io.Reader, out io.Writer, opts Options) error {
	opts = opts.withDefaults()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c := &conn{
		Options: opts, srv: srv, session: wire.NewSession("stdio"), out: out, end: end,
		calls: map[string]*call{}, slots: make(chan struct{}, opts.MaxInFlight),
	}
	if err := srv.RegisterSession(ctx, c.session); err != nil {
		return fmt.Errorf("register the session: %w", err)
	}
	defer srv.UnregisterSession(context.WithoutCancel(ctx), c.session.SessionID())
	pumped, stopPump := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(pumped)
		c.session.Pump(stopPump, c.writeNotification)
	}()
	err := c.loop(ctx, in)
	if ctx.Err() == nil {
		c.wait(opts.Grace)
	}
	end(ErrInputClosed)
	c.wait(opts.Grace)
	c.closed.Store(true)
	close(stopPump)
	if err == nil {
		err = outputError(context.Cause(ctx))
	}
	return err
}

// outputError gives a failed write as an error, unless it means that the client is gone.
func outputError(cause error) error {
	var failed *writeError
	if !errors.As(cause, &failed) {
		return nil
	}
	for _, gone := range []error{syscall.EPIPE, io.ErrClosedPipe, os.ErrClosed} {
		if errors.Is(failed.err, gone) {
			return nil
		}
	}
	return fmt.Errorf("write standard output: %w", failed.err)
}

type writeError struct{ err error }

func (e *writeError) Error() string   { return ErrOutputClosed.Error() + ": " + e.err.Error() }
func (e *writeError) Unwrap() []error { return []error{ErrOutputClosed, e.err} }

// wait waits for all requests in flight, at most d.
func (c *conn) wait(d time.Duration) {
	done := make(chan struct{})
	go func() {
		c.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// loop reads messages and starts what they ask for. It does not write and does not wait for handlers, but for a free slot
// when clients flood it, and for initialize, which what follows depends on.
func (c *conn) loop(ctx context.Context, in io.Reader) error {
	lines := make(chan line)
	go readLines(ctx, in, c.MaxLine, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, ok := <-lines:
			switch {
			case !ok:
				return nil
			case l.err != nil:
				return fmt.Errorf("read standard input: %w", l.err)
			case l.tooLong:
				c.refuse(ctx, nil, mcp.INVALID_REQUEST, fmt.Sprintf("a message may have at most %d bytes", c.MaxLine))
			default:
				c.take(ctx, l.text)
			}
		}
	}
}

// take acts on one message.
func (c *conn) take(ctx context.Context, raw []byte) {
	m, fault := wire.Parse(raw)
	switch {
	case fault != nil:
		c.refuse(ctx, m.ID, fault.Code, fault.Message)
	case m.Kind == wire.Reply: // this server asks nothing of clients
	case m.Kind == wire.Notification && m.Method == string(mcp.MethodNotificationCancelled):
		c.cancel(m.Params)
	case m.Kind == wire.Notification:
		c.answerer().Answer(c.srv.WithContext(ctx, c.session), raw, m) // it has no answer
	default:
		c.start(ctx, raw, m)
	}
}

// start registers a request, so that a cancel on the next line finds it, and works on it in a goroutine of its own.
func (c *conn) start(ctx context.Context, raw []byte, m wire.Message) {
	key := string(m.ID)
	c.callsMu.Lock()
	_, taken := c.calls[key]
	c.callsMu.Unlock()
	if taken {
		c.refuse(ctx, m.ID, mcp.INVALID_REQUEST, "a request with this id is in flight")
		return
	}
	size := int64(len(raw))
	if c.bytes.Add(size) > max(c.MaxInFlightBytes, size) || !c.takeSlot() {
		c.bytes.Add(-size)
		c.refuse(ctx, m.ID, mcp.INTERNAL_ERROR, fmt.Sprintf("too much in flight: at most %d requests and %d bytes; wait for answers and send it again", c.MaxInFlight, c.MaxInFlightBytes))
		return
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	k := &call{id: m.ID, method: m.Method, cancel: cancel}
	c.callsMu.Lock()
	c.calls[key] = k
	c.callsMu.Unlock()
	done := make(chan struct{})
	c.inFlight.Go(func() {
		defer close(done)
		defer func() { <-c.slots }()
		defer c.bytes.Add(-size)
		defer cancel(nil)
		c.work(callCtx, k, raw, m)
	})
	if m.Method == string(mcp.MethodInitialize) || m.Method == string(mcp.MethodSetLogLevel) {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

func (c *conn) takeSlot() bool {
	select {
	case c.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// work runs one request to its reply.
func (c *conn) work(ctx context.Context, k *call, raw []byte, m wire.Message) {
	var who server.ClientSession = c.session
	if m.Method == string(mcp.MethodSubscriptionsListen) {
		who = &wire.Listener{Session: c.session, ID: m.ID}
	}
	ctx = c.srv.WithContext(ctx, who)
	if token := wire.ProgressToken(m); token != nil {
		ctx = wire.WithProgress(ctx, wire.Reporter(token, func(frame []byte) { c.writeProgress(k, frame) }))
	}
	response := c.answerer().Answer(ctx, raw, m)
	c.callsMu.Lock()
	delete(c.calls, string(k.id))
	c.callsMu.Unlock()
	c.session.Flush()
	c.write(k, response)
}

// cancel ends the request that the client names by its exact id. A reply that is on its way is not stopped.
func (c *conn) cancel(params json.RawMessage) {
	id, reason, ok := wire.Cancelled(params)
	if !ok {
		return
	}
	c.callsMu.Lock()
	k := c.calls[string(id)]
	c.callsMu.Unlock()
	if k == nil || k.method == string(mcp.MethodInitialize) { // initialize must not be cancelled
		return
	}
	// No request that the client cancelled gets a reply, subscriptions/listen neither: its result says that the server ended it
	// (2026-07-28, basic/patterns/subscriptions).
	k.muted.Store(true)
	k.cancel(&wire.CancelledError{Reason: reason})
}

// refuse answers a message that is not worked on. The answer has a goroutine of its own, since a client that does not
// read must not stop the loop; when slots run out the loop waits, so that a flood is bounded.
func (c *conn) refuse(ctx context.Context, id json.RawMessage, code int, message string) {
	held, done := c.takeSlot(), make(chan struct{})
	c.inFlight.Go(func() {
		defer close(done)
		c.write(nil, wire.Failure(id, code, message))
		if held {
			<-c.slots
		}
	})
	if held {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (c *conn) answerer() wire.Answerer {
	return wire.Answerer{Server: c.srv, Intercept: c.Intercept, Log: c.Log}
}

// writeProgress writes under the lock that the reply is written under, on the handler's goroutine, so that order and end hold by
// themselves.
func (c *conn) writeProgress(k *call, frame []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !k.finished && !k.muted.Load() {
		c.writeLocked(frame)
	}
}

func (c *conn) writeNotification(n mcp.JSONRPCNotification) { c.write(nil, n) }

// write sends one frame. With a call it is the call's reply, and it is dropped where the call was cancelled.
func (c *conn) write(k *call, frame any) {
	raw, err := json.Marshal(frame)
	if err != nil {
		c.Log.Error("a frame cannot be encoded", "err", err)
		if k == nil {
			return
		}
		raw, _ = json.Marshal(wire.Failure(k.id, mcp.INTERNAL_ERROR, "the result cannot be encoded"))
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if k != nil {
		k.finished = true
		if k.muted.Load() {
			return
		}
	}
	c.writeLocked(raw)
}

func (c *conn) writeLocked(raw []byte) {
	if c.closed.Load() {
		return
	}
	if _, err := c.out.Write(append(raw, '\n')); err != nil {
		c.end(&writeError{err})
	}
}
