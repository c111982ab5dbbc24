package watch

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is a set of resources that a test changes.
type world struct {
	mu     sync.Mutex
	states map[string]State
	looks  int
	full   bool
	told   []string
}

func newWorld(uris ...string) *world {
	w := &world{states: map[string]State{}}
	for _, u := range uris {
		w.states[u] = State{Stamp: "0"}
	}
	return w
}

func (w *world) look(uri string) (State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	s, ok := w.states[uri]
	if !ok {
		return State{}, errors.New("no such thing")
	}
	return s, nil
}

func (w *world) set(uri, stamp string, final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[uri] = State{stamp, final}
}

func (w *world) notify(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return false
	}
	w.told = append(w.told, uri)
	return true
}

func (w *world) refuse(is bool) { w.mu.Lock(); w.full = is; w.mu.Unlock() }

func (w *world) looked() int { w.mu.Lock(); defer w.mu.Unlock(); return w.looks }

// heard gives what was told since the last call, in order.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

// pass lets time pass, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a", "b", "c")
		s := New(w.look, Options{}).Session(w.notify)
		for _, uri := range []string{"a", "b"} {
			if err := s.Add(uri); err != nil {
				t.Fatal(err)
			}
		}
		pass(5 * time.Second)
		if got := w.heard(); got != nil {
			t.Errorf("nothing changed, and %v was told", got)
		}
		w.set("a", "1", false)
		w.set("c", "1", false)
		pass(2 * time.Second)
		if got := w.heard(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%v", got)
		}
		// However often it changes, it is told once for each look.
		for i := range 50 {
			w.set("a", fmt.Sprint("x", i), false)
			pass(100 * time.Millisecond)
		}
		if got := w.heard(); len(got) < 4 || len(got) > 6 {
			t.Errorf("%d notes in 5 s", len(got))
		}
		// What could not be taken is told again.
		w.refuse(true)
		w.set("b", "1", false)
		pass(3 * time.Second)
		w.refuse(false)
		pass(2 * time.Second)
		if got := w.heard(); !slices.Contains(got, "b") || len(got) > 2 {
			t.Errorf("%v", got)
		}
		s.Remove("b")
		w.set("b", "2", false)
		pass(3 * time.Second)
		if got := w.heard(); got != nil {
			t.Errorf("%v was told after it was removed", got)
		}
		s.Close()
	})
}

// TestFinalEndsLooking: after a last note nothing looks any more; the goroutine is gone, or the bubble would not end.
func TestFinalEndsLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("run", "gone")
		s := New(w.look, Options{}).Session(w.notify)
		for _, uri := range []string{"run", "gone"} {
			if err := s.Add(uri); err != nil {
				t.Fatal(err)
			}
		}
		w.set("run", "end", true)
		w.mu.Lock()
		delete(w.states, "gone")
		w.mu.Unlock()
		pass(2 * time.Second)
		if got := w.heard(); len(got) != 2 || !slices.Contains(got, "run") || !slices.Contains(got, "gone") {
			t.Errorf("%v", got)
		}
		before := w.looked()
		w.set("run", "later", false)
		pass(time.Minute)
		if w.looked() != before || w.heard() != nil {
			t.Errorf("%d looks after the end", w.looked()-before)
		}
		// What is added then is watched.
		w.set("new", "0", false)
		if err := s.Add("new"); err != nil {
			t.Fatal(err)
		}
		w.set("new", "1", true)
		pass(2 * time.Second)
		if got := w.heard(); !slices.Equal(got, []string{"new"}) {
			t.Errorf("%v", got)
		}
	})
}

func TestFinalFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.set("text", "0", true)
		s := New(w.look, Options{}).Session(w.notify)
		if err := s.Add("text"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if w.looked() != 1 {
			t.Errorf("%d looks at what never changes", w.looked())
		}
	})
}

// TestFirstLookIsOff: a resource that changes at once is told of no sooner than any other, also when others are looked at.
func TestFirstLookIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a", "b")
		s := New(w.look, Options{}).Session(w.notify)
		_ = s.Add("a")
		pass(900 * time.Millisecond)
		_ = s.Add("b")
		w.set("b", "1", false)
		pass(200 * time.Millisecond)
		if got := w.heard(); got != nil {
			t.Errorf("%v", got)
		}
		pass(time.Second)
		if got := w.heard(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("%v", got)
		}
		s.Close()
	})
}

func TestUsesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a")
		s := New(w.look, Options{}).Session(w.notify)
		_, _, _ = s.Add("a"), s.Add("a"), s.Add("a")
		s.Remove("a")
		s.Remove("a")
		s.Remove("never added")
		w.set("a", "1", false)
		pass(2 * time.Second)
		if got := w.heard(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%v; one of three uses is left", got)
		}
		s.Remove("a")
		w.set("a", "2", false)
		pass(2 * time.Second)
		if got := w.heard(); got != nil {
			t.Errorf("%v", got)
		}
	})
}

func TestBounds(t *testing.T) {
	w := newWorld("a", "b", "c", "d")
	watcher := New(w.look, Options{PerSession: 2, Total: 3})
	one, two := watcher.Session(w.notify), watcher.Session(w.notify)
	defer one.Close()
	var many *TooManyError
	for i, c := range []struct {
		s    *Session
		uri  string
		most int
	}{{one, "a", 0}, {one, "b", 0}, {one, "c", 2}, {one, "a", 0}, {two, "a", 0}, {two, "b", 3}} {
		err := c.s.Add(c.uri)
		if (c.most != 0) != errors.As(err, &many) || (c.most != 0 && many.Most != c.most) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := two.Add("nothing"); err == nil || errors.As(err, &many) {
		t.Errorf("%v", err)
	}
	// What one session gives back another one may take.
	two.Close()
	if err := watcher.Session(w.notify).Add("a"); err != nil {
		t.Error(err)
	}
	if err := two.Add("a"); err == nil {
		t.Error("a session that has ended watches")
	}
	if err := watcher.Session(w.notify).Add("a"); err == nil {
		t.Error("the total is not held")
	}
	two.Close()
}
