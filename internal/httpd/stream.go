package httpd

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// stream is the response to one request. It begins as a stream of server-sent events when there is something to say before the reply,
// and is plain JSON else. Its methods may be called from several goroutines.
type stream struct {
	h     *Handler
	w     http.ResponseWriter
	rc    *http.ResponseController
	may   bool // the client takes a stream
	muted func() bool

	mu       sync.Mutex
	began    bool
	finished bool
	quiet    *time.Ticker
	done     chan struct{}
}

func (h *Handler) newStream(w http.ResponseWriter, may bool, muted func() bool) *stream {
	s := &stream{h: h, w: w, rc: http.NewResponseController(w), may: may, muted: muted, quiet: time.NewTicker(h.KeepAlive), done: make(chan struct{})}
	go func() {
		for {
			select {
			case <-s.quiet.C:
				s.comment()
			case <-s.done:
				return
			}
		}
	}()
	return s
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.quiet.Stop()
	close(s.done)
}

// open begins the stream before there is an event.
func (s *stream) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(nil)
}

func (s *stream) begin() {
	if s.began {
		return
	}
	s.began = true
	header := s.w.Header()
	header.Set("Content-Type", typeStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// event sends one frame. What comes after the reply, or after the client cancelled, is dropped; so is all where the client takes no
// stream.
func (s *stream) event(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished || !s.may || s.muted() {
		return
	}
	s.send(frame)
}

func (s *stream) send(frame []byte) {
	s.write(append(append([]byte("event: message\ndata: "), frame...), "\n\n"...))
}

// write gives the client some time to take it. When that is over the connection is broken, which ends the request's context.
func (s *stream) write(text []byte) {
	s.begin()
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.h.WriteTimeout))
	_, _ = s.w.Write(text)
	_ = s.rc.Flush()
	_ = s.rc.SetWriteDeadline(time.Time{})
}

// comment keeps a stream alive on which nothing is said, and begins one for a call that takes long.
func (s *stream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished || !s.may {
		return
	}
	s.write([]byte(": still at work\n\n"))
}

// notify sends the copies of a notification that the session's readers expect.
func (s *stream) notify(of *wire.Session, n mcp.JSONRPCNotification) {
	for _, copied := range of.Address(n) {
		if raw, err := json.Marshal(copied); err == nil {
			s.event(raw)
		}
	}
}

// pump sends what comes in the queue of a request, and in that of its session where own says that the session has no other stream. The
// function that it gives returns when all that was queued is sent.
func (s *stream) pump(queue <-chan mcp.JSONRPCNotification, of *wire.Session, own bool) (stop func()) {
	var ofSession <-chan mcp.JSONRPCNotification
	if own {
		ofSession = of.Notifications()
	}
	ask, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case n := <-queue:
				s.notify(of, n)
			case n := <-ofSession:
				s.notify(of, n)
			case <-ask:
				for {
					select {
					case n := <-queue:
						s.notify(of, n)
					case n := <-ofSession:
						s.notify(of, n)
					default:
						return
					}
				}
			}
		}
	}()
	return func() {
		close(ask)
		<-stopped
	}
}

// reply ends the response with its one reply.
func (s *stream) reply(status int, frame wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	if !s.began {
		s.h.writeFrame(s.w, status, frame)
		return
	}
	raw, err := json.Marshal(frame)
	if err != nil {
		raw, _ = json.Marshal(wire.Failure(frame.ID, mcp.INTERNAL_ERROR, "the result cannot be encoded"))
	}
	s.send(raw)
}

// end ends the response of a call that the client cancelled, which gets no reply.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	if s.may {
		s.begin()
		return
	}
	s.w.WriteHeader(http.StatusAccepted)
}

// writeFrame answers with one JSON-RPC frame.
func (h *Handler) writeFrame(w http.ResponseWriter, status int, frame wire.Frame) {
	raw, err := json.Marshal(frame)
	if err != nil {
		raw, _ = json.Marshal(wire.Failure(frame.ID, mcp.INTERNAL_ERROR, "the result cannot be encoded"))
	}
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}
