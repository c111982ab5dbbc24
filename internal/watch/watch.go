// Package watch tells sessions when resources change, by looking at them from time to time. It knows neither transports nor what a
// resource is: a function says how one stands, another one takes what has changed.
//
// Looking was taken over notifications of the file system: those do not come over network file systems, where runs directories often
// are, and a look is one or two calls of stat.
package watch

import (
	"fmt"
	"sync"
	"time"
)

// State is how a resource stands.
type State struct {
	// Stamp is any text that differs after each change.
	Stamp string
	// Final says that it will not change any more.
	Final bool
}

// Look says how the resource of a URI stands, without waiting for anything. An error means that there is none that could be watched.
type Look func(uri string) (State, error)

// Options of New; what is zero has the default.
type Options struct {
	// Every is the time between two looks at a resource, and so the least time between two notes about it; default 1 s.
	Every time.Duration
	// PerSession and Total bound what is watched, for one session and for all of them; defaults 100 and 2,000.
	PerSession, Total int
}

// Watcher watches for any number of sessions.
type Watcher struct {
	look Look
	Options

	mu    sync.Mutex
	total int
}

// New makes a watcher.
func New(look Look, o Options) *Watcher {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.PerSession <= 0 {
		o.PerSession = 100
	}
	if o.Total <= 0 {
		o.Total = 2000
	}
	return &Watcher{look: look, Options: o}
}

// TooManyError says that a bound of the watcher is reached.
type TooManyError struct{ Most int }

// Error names the bound.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("at most %d resources are watched: unsubscribe from one", e.Most)
}

// take takes n more of what all sessions together may watch, or gives back where n is negative.
func (w *Watcher) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.total+n > w.Total {
		return false
	}
	w.total += n
	return true
}

// Session is what one session watches. One goroutine looks, as long as there is something that may still change.
type Session struct {
	w      *Watcher
	notify func(uri string) bool

	mu      sync.Mutex
	entries map[string]*entry
	looking bool
	closed  bool
	stop    chan struct{}
}

// entry is one watched resource.
type entry struct {
	uses int
	last State
	// added is when it was looked at first.
	added time.Time
}

// Session makes the watch of one session. notify is told of each change, by one goroutine; it must not wait, and says false for what it
// could not take, which it is told again at the next look.
func (w *Watcher) Session(notify func(uri string) bool) *Session {
	return &Session{w: w, notify: notify, entries: map[string]*entry{}, stop: make(chan struct{})}
}

// Add watches a URI once more, and tells of the changes from now on. It gives the error of the look, or a *TooManyError.
func (s *Session) Add(uri string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[uri]; e != nil {
		e.uses++
		return nil
	}
	switch {
	case s.closed:
		return fmt.Errorf("the session has ended")
	case len(s.entries) >= s.w.PerSession:
		return &TooManyError{s.w.PerSession}
	}
	state, err := s.w.look(uri)
	if err != nil {
		return err
	}
	if !s.w.take(1) {
		return &TooManyError{s.w.Total}
	}
	s.entries[uri] = &entry{uses: 1, last: state, added: time.Now()}
	if !state.Final && !s.looking {
		s.looking = true
		go s.run()
	}
	return nil
}

// Remove takes one Add back.
func (s *Session) Remove(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[uri]
	if e == nil {
		return
	}
	if e.uses--; e.uses == 0 {
		delete(s.entries, uri)
		s.w.take(-1)
	}
}

// Close ends the watch. It does not wait for a look that is under way; nothing is told after it, but for what that look found.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.stop)
	s.w.take(-len(s.entries))
	clear(s.entries)
}

// run looks until nothing is left that may change.
func (s *Session) run() {
	tick := time.NewTicker(s.w.Every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for uri, last := range s.due() {
			s.check(uri, last)
		}
		if s.idle() {
			return
		}
	}
}

// due gives what may still change. The first look after Add is as far off as any other, so that the client knows of its subscription
// before it hears of a change.
func (s *Session) due() map[string]State {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := map[string]State{}
	for uri, e := range s.entries {
		if !e.last.Final && time.Since(e.added) >= s.w.Every {
			due[uri] = e.last
		}
	}
	return due
}

// check looks at one resource. One that is gone is told of once more: its reader learns it from reading.
func (s *Session) check(uri string, last State) {
	now, err := s.w.look(uri)
	if err != nil {
		now = State{Stamp: "gone", Final: true}
	}
	if now.Stamp != last.Stamp && !s.notify(uri) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[uri]; e != nil {
		e.last = now
	}
}

// idle says, once and for all, that this goroutine is not needed.
func (s *Session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if !e.last.Final {
			return false
		}
	}
	s.looking = false
	return true
}
