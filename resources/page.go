package resources

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// file reads a page of a file of a run without reading the rest. Whether the run has ended is asked first, so that what is called
// final is.
func (s *Source) file(uri, id, name string, p page) (Page, error) {
	fixed := s.ended(id)
	f, info, err := s.Store.OpenFile(id, name)
	if err != nil {
		return Page{}, err
	}
	defer f.Close()
	out, err := readPage(Page{URI: uri, MIME: mimeOf(name), Size: info.Size(), Modified: info.ModTime(), Immutable: fixed}, f, p)
	if err != nil && envelope.CodeOf(err) == "" {
		return Page{}, fmt.Errorf("%s of run %s: %w", name, id, err)
	}
	return out, err
}

// readPage fills a page of which Size, MIME and URI are set.
func readPage(out Page, r io.ReaderAt, p page) (Page, error) {
	if p.line != 0 || p.lines != 0 {
		if !isText(out.MIME) {
			return Page{}, badPage(out.URI, "line", strconv.FormatInt(p.line, 10), "an offset in bytes: it is no text")
		}
	}
	if p.line != 0 {
		at, err := lineOffset(r, out, p.line)
		if err != nil {
			return Page{}, err
		}
		p.offset, out.Line = at, max(p.line, 0)
	}
	if p.offset > out.Size {
		return Page{}, beyond(out.URI, p.offset, fmt.Sprintf("0 to %d, the size", out.Size))
	}
	out.Offset = p.offset
	b := make([]byte, min(int64(p.limit), out.Size-p.offset))
	n, err := r.ReadAt(b, p.offset)
	if err != nil && err != io.EOF {
		return Page{}, err
	}
	b = b[:n]
	if p.line != 0 || p.lines != 0 {
		var lines int64
		b, lines = wholeLines(b, p.lines, p.offset+int64(n) >= out.Size)
		if end := p.offset + int64(len(b)); out.Line > 0 && lines > 0 && end < out.Size {
			out.NextLine = out.Line + lines
		}
	}
	return fill(out, b), nil
}

func beyond(uri string, offset int64, allowed string) error {
	return badPage(uri, "offset", strconv.FormatInt(offset, 10), allowed)
}

func badPage(uri, field, value, allowed string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s %s of %.300q is not in the resource: it may be %s", field, value, uri, allowed),
		Evidence: envelope.Evidence{Field: field, Value: value, Allowed: allowed},
	})
}

// fill puts bytes into a page: as text cut at a character, or as a blob where they are no text.
func fill(out Page, b []byte) Page {
	text := isText(out.MIME)
	if text {
		// Also where other bytes keep this page from being text, the next one begins with a character.
		b = wholeRunes(b, out.Offset+int64(len(b)) >= out.Size)
		text = utf8.Valid(b)
	}
	if next := out.Offset + int64(len(b)); next < out.Size {
		out.NextOffset = next
	}
	if text {
		out.Text = string(b)
		return out
	}
	out.Blob = b
	if isText(out.MIME) {
		out.MIME = "application/octet-stream"
	}
	return out
}

// wholeRunes drops an incomplete character at the end of a page that others follow.
func wholeRunes(b []byte, last bool) []byte {
	if last {
		return b
	}
	for cut := 0; cut < utf8.UTFMax && cut < len(b); cut++ {
		// U+FFFD itself is a character of three bytes: only a size of one tells a broken one.
		if r, size := utf8.DecodeLastRune(b[:len(b)-cut]); r != utf8.RuneError || size > 1 {
			return b[:len(b)-cut]
		}
	}
	return b
}

var mimes = map[string]string{
	".json": "application/json", ".csv": "text/csv", ".log": "text/plain", ".txt": "text/plain", ".md": "text/markdown", ".py": "text/x-python", ".yaml": "application/yaml",
}

func mimeOf(name string) string {
	if m, ok := mimes[strings.ToLower(path.Ext(name))]; ok {
		return m
	}
	return "application/octet-stream"
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == "application/yaml"
}
