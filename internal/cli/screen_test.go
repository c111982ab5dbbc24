package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestProgressLine: on a terminal the line is written over itself, cut to the width, moves out of the way of a log line and is gone
// at the end; elsewhere each note is a line.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width func() int
		want  string
	}{
		"terminal": {func() int { return 20 }, clearLine + "run: att, 1 s" + clearLine + "a log line\nrun: att, 1 s" + clearLine + "run: a very long ph" + clearLine},
		"plain":    {nil, "run: att, 1 s\na log line\nrun: a very long phase, 2 s\n"},
	} {
		var out bytes.Buffer
		s := &screen{out: &out, width: c.width}
		ticks, done, ended := make(chan time.Time), make(chan struct{}), make(chan struct{})
		texts := []string{"run: att, 1 s", "", "run: a very long phase, 2 s"}
		next := 0
		go func() {
			s.tell(ticks, done, func() string { next++; return texts[next-1] })
			close(ended)
		}()
		for _, text := range texts {
			ticks <- time.Time{} // taken when the text before is shown
			if text == "" {      // which changes nothing
				fmt.Fprintln(s, "a log line")
			}
		}
		close(done)
		<-ended
		if got := out.String(); got != c.want {
			t.Errorf("%s:\n%q\n%q", name, got, c.want)
		}
	}
}

func TestHowFar(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"softmax-1 running: att:big, 14 s of about 40 s": howFar("softmax-1 running", "att:big", 14500*time.Millisecond, 40),
		"doctor, 2 s": howFar("doctor", "", 2*time.Second, 0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := howFar("run", "\x1b[2J\nx", 0, 0); strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("%q", got)
	}
}
