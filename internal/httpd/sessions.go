package httpd

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// session is one client of the era of sessions. Runs do not hang on it: what it holds is gone with it, and no more.
type session struct {
	*wire.Session
	// gone is closed when the session ends, noStreams when its streams are to close.
	gone      context.Context
	end       context.CancelFunc
	noStreams context.Context
	closeGET  context.CancelFunc

	mu        sync.Mutex
	used      time.Time
	busy      int
	streaming bool
	calls     map[string]*call
	early     map[string]earlyCancel
}

// earlyCancel is the cancel of a call that has not come yet: each message has a connection of its own, and the later one may be the
// faster.
type earlyCancel struct {
	reason string
	at     time.Time
}

// An early cancel waits for its call that long, and a session keeps that many. A cancel for a call that was answered waits in vain, and
// must not hit a client that uses its ids again.
const (
	earlyFor = 2 * time.Second
	maxEarly = 256
	// maxEarlyID bounds the ids that are kept, in bytes; clients count or use UUIDs.
	maxEarlyID = 100
)

// call is a request in flight that the client may cancel by its id.
type call struct {
	cancel context.CancelCauseFunc
	mu     sync.Mutex
	muted  bool
}

// stop ends the call at the client's wish: nothing is written for it from now on.
func (c *call) stop(reason string) {
	c.mu.Lock()
	c.muted = true
	c.mu.Unlock()
	c.cancel(&wire.CancelledError{Reason: reason})
}

func (c *call) isMuted() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.muted }

// enter and leave bracket the use of a session, which is not idle meanwhile.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.used = s.busy+1, time.Now()
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.used = s.busy-1, time.Now()
}

func (s *session) idleSince() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.busy == 0
}

// takeStream allows one GET stream at a time.
func (s *session) takeStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streaming {
		return false
	}
	s.streaming = true
	return true
}

func (s *session) releaseStream() { s.mu.Lock(); s.streaming = false; s.mu.Unlock() }

// addCall registers a request by its id; false where one with that id is in flight.
func (s *session) addCall(id json.RawMessage, c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[string(id)]; taken {
		return false
	}
	s.calls[string(id)] = c
	if e, ok := s.early[string(id)]; ok {
		delete(s.early, string(id))
		if time.Since(e.at) < earlyFor {
			c.stop(e.reason)
		}
	}
	return true
}

func (s *session) dropCall(id json.RawMessage) {
	s.mu.Lock()
	delete(s.calls, string(id))
	s.mu.Unlock()
}

// cancelCall ends the request that a notification names; nothing is written for it afterwards.
func (s *session) cancelCall(params json.RawMessage) {
	id, reason, ok := wire.Cancelled(params)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[string(id)]; c != nil {
		c.stop(reason)
		return
	}
	maps.DeleteFunc(s.early, func(_ string, e earlyCancel) bool { return time.Since(e.at) >= earlyFor })
	if len(s.early) < maxEarly && len(id) <= maxEarlyID {
		s.early[string(id)] = earlyCancel{reason, time.Now()}
	}
}

// sessions are the living ones, by id.
type sessions struct {
	srv  *server.MCPServer
	most int
	idle time.Duration

	mu  sync.Mutex
	all map[string]*session
}

func newSessions(srv *server.MCPServer, most int, idle time.Duration) *sessions {
	return &sessions{srv: srv, most: most, idle: idle, all: map[string]*session{}}
}

// create makes a session; nil where there are too many that are in use. Idle ones make room.
func (s *sessions) create() *session {
	s.sweep()
	one := &session{Session: wire.NewSession("http"), used: time.Now(), calls: map[string]*call{}, early: map[string]earlyCancel{}}
	one.gone, one.end = context.WithCancel(context.Background())
	one.noStreams, one.closeGET = context.WithCancel(one.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= s.most {
		return nil
	}
	if err := s.srv.RegisterSession(one.gone, one); err != nil {
		return nil
	}
	s.all[one.SessionID()] = one
	return one
}

func (s *sessions) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// remove ends a session: its calls stop waiting, its stream closes, its id is unknown from now on.
func (s *sessions) remove(id string) {
	s.mu.Lock()
	one := s.all[id]
	delete(s.all, id)
	s.mu.Unlock()
	if one == nil {
		return
	}
	one.end()
	s.srv.UnregisterSession(context.Background(), id)
}

// sweep removes those that were not used for too long.
func (s *sessions) sweep() {
	s.mu.Lock()
	var old []string
	for id, one := range s.all {
		if used, idle := one.idleSince(); idle && time.Since(used) > s.idle {
			old = append(old, id)
		}
	}
	s.mu.Unlock()
	for _, id := range old {
		s.remove(id)
	}
}

// sweepAlways sweeps from time to time, so that what clients that vanished watch is not looked at for ever.
func (s *sessions) sweepAlways() (stop func()) {
	tick, done := time.NewTicker(s.idle/4+time.Millisecond), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				s.sweep()
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done) }
}

func (s *sessions) list() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*session, 0, len(s.all))
	for _, one := range s.all {
		out = append(out, one)
	}
	return out
}

func (s *sessions) closeStreams() {
	for _, one := range s.list() {
		one.closeGET()
	}
}

func (s *sessions) endAll() {
	for _, one := range s.list() {
		s.remove(one.SessionID())
	}
}

// scoped is a session as one request sees it: what the server says while it works on the request goes to the request's own stream.
type scoped struct {
	*wire.Session
	queue chan mcp.JSONRPCNotification
}

// NotificationChannel implements server.ClientSession.
func (s *scoped) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.queue }
