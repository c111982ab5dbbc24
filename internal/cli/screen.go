package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// screen is standard error: lines, and below them on a terminal one line that is written anew in its place.
type screen struct {
	out io.Writer
	// width gives the columns of the terminal; nil where it is none.
	width func() int

	mu   sync.Mutex
	line string
}

func newScreen(f *os.File) *screen {
	s := &screen{out: f}
	if isTerminal(f) {
		s.width = func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	return s
}

// clearLine goes to the start of the line and erases it (ECMA-48 EL).
const clearLine = "\r\x1b[K"

// Write writes above the line.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.out.Write(p)
	}
	if _, err := io.WriteString(s.out, clearLine); err != nil {
		return 0, err
	}
	n, err := s.out.Write(p)
	if err == nil {
		_, err = io.WriteString(s.out, s.line)
	}
	return n, err
}

// show replaces the line, cut to the width of the terminal so that it stays one; empty removes it.
func (s *screen) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runes := []rune(text); len(runes) >= s.width() {
		text = string(runes[:max(0, s.width()-1)])
	}
	if text == s.line {
		return
	}
	s.line = text
	_, _ = io.WriteString(s.out, clearLine+text)
}

// How often the progress of a call is told: on a terminal in one line, elsewhere in lines of their own.
const (
	paintEvery = time.Second
	plainEvery = 10 * time.Second
)

// progress tells on the screen how a long call goes, until stop is called. look gives the text, empty for nothing to tell.
func (s *screen) progress(look func() string) (stop func()) {
	every := plainEvery
	if s.width != nil {
		every = paintEvery
	}
	tick := time.NewTicker(every)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.tell(tick.C, done, look)
	}()
	return func() {
		tick.Stop()
		close(done)
		<-ended
	}
}

func (s *screen) tell(ticks <-chan time.Time, done <-chan struct{}, look func() string) {
	for {
		select {
		case <-done:
			if s.width != nil {
				s.show("")
			}
			return
		case <-ticks:
		}
		switch text := look(); {
		case text == "":
		case s.width != nil:
			s.show(text)
		default:
			fmt.Fprintln(s, text)
		}
	}
}

// howFar is the text of the progress line.
func howFar(what, phase string, elapsed time.Duration, estimateS int) string {
	var b strings.Builder
	b.WriteString(plain(what))
	if phase != "" {
		b.WriteString(": " + plain(phase))
	}
	fmt.Fprintf(&b, ", %d s", int(elapsed.Seconds()))
	if estimateS > 0 {
		fmt.Fprintf(&b, " of about %d s", estimateS)
	}
	return b.String()
}
