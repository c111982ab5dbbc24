//go:build unix

package resources

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestLines compares pages by line with the lines of the text.
func TestLines(t *testing.T) {
	l := newLibrary(t)
	long := strings.Repeat("x", scanChunk)
	bodies := map[string]string{
		"empty.log": "", "one.log": "one", "ended.log": "one\n", "blank.log": "\n\n\n", "three.log": "a\nbb\nccc", "crlf.log": "a\r\nb\r\n",
		"chunks.log": long + "\n" + long + "x\n" + strings.Repeat("line\n", 30_000) + "end", "edge.log": long[1:] + "\nnext\n",
	}
	for name, body := range bodies {
		l.put(t, "logs/"+name, []byte(body))
		lines := strings.SplitAfter(body, "\n")
		if lines[len(lines)-1] == "" && len(lines) > 1 {
			lines = lines[:len(lines)-1]
		}
		uri := "flyprof://logs/" + l.id + "/" + name
		for _, from := range []int{1, 2, 3, len(lines) - 1, len(lines)} {
			for _, n := range []int{1, 2, 7} {
				if from < 1 || from > len(lines) {
					continue
				}
				want := strings.Join(lines[from-1:min(len(lines), from-1+n)], "")
				p, err := l.Read(t.Context(), fmt.Sprintf("%s?line=%d&lines=%d", uri, from, n), 0, 0)
				if err != nil || p.Text != want || p.Line != int64(from) || p.Offset != int64(len(strings.Join(lines[:from-1], ""))) {
					t.Errorf("%s, %d lines from %d: %d bytes at %d, line %d, want %d; %v", name, n, from, len(p.Text), p.Offset, p.Line, len(want), err)
				}
				if more := from-1+n < len(lines); more != (p.NextOffset != 0) || (more && p.NextLine != int64(from+n)) || (!more && p.NextLine != 0) {
					t.Errorf("%s, %d lines from %d: then %d at %d", name, n, from, p.NextLine, p.NextOffset)
				}
			}
		}
		for _, n := range []int{1, 2, len(lines), len(lines) + 5} {
			if n > 40_000 || n < 1 {
				continue
			}
			want := strings.Join(lines[max(0, len(lines)-n):], "")
			p, err := l.Read(t.Context(), fmt.Sprintf("%s?line=-%d", uri, n), 0, 0)
			if err != nil || (p.Text != want && len(want) <= MaxPage) || p.Line != 0 || p.NextLine != 0 || p.Offset != int64(len(body)-len(want)) {
				t.Errorf("%s, the last %d lines: %d bytes at %d, want %d; %v", name, n, len(p.Text), p.Offset, len(want), err)
			}
		}
		if _, err := l.Read(t.Context(), fmt.Sprintf("%s?line=%d", uri, len(lines)+2), 0, 0); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%s beyond its end: %v", name, err)
		}
	}
}

// TestLinesByPage: whoever follows the next line, or the next offset, reads all of it; pages end with a line where one fits.
func TestLinesByPage(t *testing.T) {
	l := newLibrary(t)
	var body bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&body, "%d €%s\n", i, strings.Repeat("z", i%97))
	}
	l.put(t, "logs/x.log", body.Bytes())
	base := "flyprof://logs/" + l.id + "/x.log"
	for name, next := range map[string]func(Page) string{
		"line":   func(p Page) string { return fmt.Sprintf("?line=%d&lines=90&limit=1000", p.NextLine) },
		"offset": func(p Page) string { return fmt.Sprintf("?offset=%d&lines=90&limit=1000", p.NextOffset) },
	} {
		var got []byte
		query := "?lines=90&limit=1000"
		for range 10_000 {
			p, err := l.Read(t.Context(), base+query, 0, 0)
			if err != nil || !strings.HasSuffix(p.Text, "\n") || len(p.Text) > 1000 {
				t.Fatalf("by %s: %q after %d bytes, %v", name, query, len(got), err)
			}
			got = append(got, p.Text...)
			if p.NextOffset == 0 {
				break
			}
			query = next(p)
		}
		if !bytes.Equal(got, body.Bytes()) {
			t.Errorf("by %s: %d bytes of %d", name, len(got), body.Len())
		}
	}
}

// TestLongLine: a line that no page holds is read on by offset.
func TestLongLine(t *testing.T) {
	l := newLibrary(t)
	l.put(t, "att/code.json", []byte(strings.Repeat("y", MaxPage+10)+"\nsecond\n"))
	uri := FileURI(l.id, "att/code.json")
	p, err := l.Read(t.Context(), uri+"?line=1", 0, 0)
	if err != nil || len(p.Text) != MaxPage || p.NextLine != 0 || p.NextOffset != MaxPage {
		t.Errorf("%d bytes, then line %d at %d, %v", len(p.Text), p.NextLine, p.NextOffset, err)
	}
	if p, err = l.Read(t.Context(), uri+"?line=2", 0, 0); err != nil || p.Text != "second\n" {
		t.Errorf("%q, %v", p.Text, err)
	}
	// The call's own offset goes before the line.
	if p, err = l.Read(t.Context(), uri+"?line=1", MaxPage+11, 3); err != nil || p.Text != "sec" {
		t.Errorf("%q, %v", p.Text, err)
	}
}

func TestLinesThatAreNone(t *testing.T) {
	l := newLibrary(t)
	l.put(t, "logs/x.log", []byte("a\nb\n"))
	l.put(t, "att/x.att", []byte("a\nb\n"))
	log := "flyprof://logs/" + l.id + "/x.log"
	for _, uri := range []string{
		log + "?line=0", log + "?line=x", log + "?line=", log + "?lines=0", log + "?lines=-1", log + "?line=1&offset=0", log + "?line=1&line=2",
		log + "?line=9223372036854775807", log + "?line=-9223372036854775808", log + "?lines=100001", log + "?line=4", FileURI(l.id, "att/x.att") + "?line=1",
	} {
		if _, err := l.Read(t.Context(), uri, 0, 0); envelope.CodeOf(err) != envelope.BadArgs || envelope.As(err).Evidence.Allowed == "" {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
