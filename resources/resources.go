// Package resources answers what there is to read - runs, their files and logs, the reference texts, the skills - and gives
// it in pages. It is the same for MCP resources and for the tool flyprof_read.
package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// MaxPage is the most bytes that one read gives.
const MaxPage = 256 << 10

// Source is all that can be read.
type Source struct {
	Store *runs.Store
	// Envelope gives the envelope of a run as it stands, as JSON.
	Envelope func(ctx context.Context, id string) ([]byte, error)
	// Texts are the embedded documents: URI to text.
	Texts []Text
}

// Text is one embedded document.
type Text struct {
	URI, Name, Description, MIME, Body string
}

// Page is a part of a resource.
type Page struct {
	URI  string
	MIME string
	// Text holds the bytes of text; Blob those of anything else.
	Text string
	Blob []byte
	// Offset and Size are in bytes of the whole resource; NextOffset is 0 at its end.
	Offset, Size, NextOffset int64
	// Immutable says that the resource will never change: the run has ended, or the text is built in.
	Immutable bool
	Modified  time.Time
}

// Entry is one thing to read.
type Entry struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mime_type"`
	Size        int64  `json:"size,omitempty"`
}

// target is a parsed URI.
type target struct {
	kind string // runs, run, files, file, log, text
	id   string
	path string
	page page
}

type page struct {
	offset int64
	limit  int
}

// Read gives one page of a resource. offset and limit of the URI's own query count where those of the call are zero.
//
// Errors: BAD_ARGS for an offset or limit that is none, NO_ARTIFACT for a URI that names nothing, RUN_NOT_FOUND,
// PATH_NOT_ALLOWED.
func (s *Source) Read(ctx context.Context, uri string, offset int64, limit int) (Page, error) {
	t, err := s.parse(uri)
	if err != nil {
		return Page{}, err
	}
	if offset < 0 {
		return Page{}, beyond(uri, offset, "a number of bytes from the beginning")
	}
	if offset != 0 {
		t.page.offset = offset
	}
	if limit != 0 {
		t.page.limit = limit
	}
	if t.page.limit <= 0 || t.page.limit > MaxPage {
		t.page.limit = MaxPage
	}
	switch t.kind {
	case "file":
		return s.file(uri, t.id, t.path, t.page)
	case "log":
		return s.file(uri, t.id, "logs/"+t.path, t.page)
	}
	body, mime, fixed, err := s.whole(ctx, uri, t)
	if err != nil {
		return Page{}, err
	}
	return slice(Page{URI: uri, MIME: mime, Immutable: fixed}, []byte(body), t.page)
}

// whole makes the resources that are not files.
func (s *Source) whole(ctx context.Context, uri string, t target) (body, mime string, fixed bool, err error) {
	const jsonType = "application/json"
	switch t.kind {
	case "runs":
		body, err = s.index()
		return body, jsonType, false, err
	case "run":
		b, err := s.Envelope(ctx, t.id)
		return string(b), jsonType, s.ended(t.id), err
	case "files":
		body, err = s.manifest(t.id)
		return body, jsonType, s.ended(t.id), err
	}
	for _, text := range s.Texts {
		if text.URI == uri {
			return text.Body, text.MIME, true, nil
		}
	}
	return "", "", false, s.unknown(uri, "there is no such document")
}

func (s *Source) ended(id string) bool {
	r, err := s.Store.Load(id)
	return err == nil && r.State.Ended()
}

func (s *Source) parse(uri string) (target, error) {
	if len(uri) > 8192 || strings.ContainsRune(uri, 0) {
		return target{}, s.unknown(uri, "it is too long, or holds a NUL byte")
	}
	for _, text := range s.Texts {
		if text.URI == uri {
			return target{kind: "text"}, nil
		}
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "flyprof" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return target{}, s.unknown(uri, "it is no flyprof:// URI")
	}
	t := target{}
	if t.page, err = query(u); err != nil {
		return target{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the resource %.300q cannot be read: %v", uri, err),
			Evidence: envelope.Evidence{Field: "uri", Value: uri, Allowed: fmt.Sprintf("?offset=<bytes>&limit=<1 to %d>", MaxPage)},
		})
	}
	rest := strings.TrimPrefix(u.Path, "/")
	id, sub, _ := strings.Cut(rest, "/")
	switch {
	case u.Host == "runs" && rest == "":
		t.kind = "runs"
	case u.Host == "runs" && sub == "":
		t.kind, t.id = "run", id
	case u.Host == "runs" && sub == "files":
		t.kind, t.id = "files", id
	case u.Host == "files" && sub != "":
		t.kind, t.id, t.path = "file", id, sub
	case u.Host == "logs" && sub != "" && !strings.Contains(sub, "/"):
		t.kind, t.id, t.path = "log", id, sub
	default:
		return target{}, s.unknown(uri, "there is no such document")
	}
	return t, nil
}

func query(u *url.URL) (page, error) {
	var p page
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return p, fmt.Errorf("its query cannot be read")
	}
	for name, v := range values {
		if len(v) != 1 || (name != "offset" && name != "limit") {
			return p, fmt.Errorf("its query may hold offset and limit once each")
		}
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < 0 || (name == "limit" && (n == 0 || n > MaxPage)) {
			return p, fmt.Errorf("%s is %.40q; offset is a number of bytes, limit one from 1 to %d", name, v[0], MaxPage)
		}
		if name == "offset" {
			p.offset = n
		} else {
			p.limit = int(n)
		}
	}
	return p, nil
}

func (s *Source) unknown(uri, why string) error {
	return envelope.Build(envelope.NoArtifact, envelope.Facts{
		Message: fmt.Sprintf("the resource %.300q cannot be read: %s", uri, why),
		Evidence: envelope.Evidence{
			Field: "uri", Value: uri,
			Allowed: "flyprof://runs, flyprof://runs/<run>, flyprof://runs/<run>/files, flyprof://files/<run>/<path>, flyprof://logs/<run>/<name>, flyprof://reference/<name>, skill://<name>/SKILL.md",
		},
	})
}

// file reads a page of a file of a run without reading the rest.
func (s *Source) file(uri, id, name string, p page) (Page, error) {
	f, info, err := s.Store.OpenFile(id, name)
	if err != nil {
		return Page{}, err
	}
	defer f.Close()
	out := Page{URI: uri, MIME: mimeOf(name), Offset: p.offset, Size: info.Size(), Modified: info.ModTime(), Immutable: s.ended(id)}
	if p.offset > info.Size() {
		return Page{}, beyond(uri, p.offset, fmt.Sprintf("0 to %d, the size", info.Size()))
	}
	b := make([]byte, min(int64(p.limit), info.Size()-p.offset))
	n, err := f.ReadAt(b, p.offset)
	if err != nil && err != io.EOF {
		return Page{}, fmt.Errorf("%s of run %s: %w", name, id, err)
	}
	return fill(out, b[:n]), nil
}

func slice(out Page, body []byte, p page) (Page, error) {
	out.Size, out.Offset = int64(len(body)), p.offset
	if p.offset > out.Size {
		return Page{}, beyond(out.URI, p.offset, fmt.Sprintf("0 to %d, the size", out.Size))
	}
	return fill(out, body[p.offset:min(out.Size, p.offset+int64(p.limit))]), nil
}

func beyond(uri string, offset int64, allowed string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("offset %d of %.300q is not in the resource: it is %s", offset, uri, allowed),
		Evidence: envelope.Evidence{Field: "offset", Value: strconv.FormatInt(offset, 10), Allowed: allowed},
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

type indexEntry struct {
	RunID   string        `json:"run_id"`
	URI     string        `json:"uri"`
	Kernel  string        `json:"kernel"`
	State   runs.State    `json:"state"`
	Code    envelope.Code `json:"code,omitempty"`
	Created time.Time     `json:"created"`
}

// indexLimit is how many runs the index names; older ones stay readable by their id.
const indexLimit = 500

func (s *Source) index() (string, error) {
	ids, err := s.Store.IDs()
	if err != nil {
		return "", err
	}
	out := struct {
		Total int          `json:"total"`
		Runs  []indexEntry `json:"runs"`
	}{Total: len(ids), Runs: []indexEntry{}}
	for _, id := range ids[:min(len(ids), indexLimit)] {
		r, err := s.Store.Load(id)
		if err != nil {
			continue // being created, or damaged: its own URI says what is wrong
		}
		out.Runs = append(out.Runs, indexEntry{RunID: id, URI: "flyprof://runs/" + id, Kernel: r.Request.Kernel, State: r.State, Code: r.Code, Created: r.Created})
	}
	b, err := json.MarshalIndent(out, "", " ")
	return string(b), err
}

type manifestEntry struct {
	Path string `json:"path"`
	URI  string `json:"uri"`
	Size int64  `json:"size"`
	MIME string `json:"mime_type"`
}

func (s *Source) manifest(id string) (string, error) {
	files, err := s.Store.Files(id)
	if err != nil {
		return "", err
	}
	out := struct {
		RunID string `json:"run_id"`
		Total int    `json:"total"`
		// Unreadable counts files whose names are not taken from a URI: bytes that are no UTF-8, backslashes.
		Unreadable int             `json:"unreadable,omitempty"`
		Files      []manifestEntry `json:"files"`
	}{RunID: id, Total: len(files), Files: []manifestEntry{}}
	for _, f := range files {
		if !fs.ValidPath(f.Path) || strings.Contains(f.Path, `\`) {
			out.Unreadable++
			continue
		}
		out.Files = append(out.Files, manifestEntry{Path: f.Path, URI: FileURI(id, f.Path), Size: f.Size, MIME: mimeOf(f.Path)})
	}
	b, err := json.MarshalIndent(out, "", " ")
	return string(b), err
}

// FileURI is the URI of a file of a run; awkward characters of its path are escaped.
func FileURI(id, name string) string {
	return (&url.URL{Scheme: "flyprof", Host: "files", Path: "/" + id + "/" + name}).String()
}

// List names what there is to read: the index, the built-in texts, then the runs, the newest first. total counts all.
func (s *Source) List(offset, limit int) (entries []Entry, total int, err error) {
	all := []Entry{{URI: "flyprof://runs", Name: "runs", Description: "index of all runs", MIME: "application/json"}}
	for _, t := range s.Texts {
		all = append(all, Entry{URI: t.URI, Name: t.Name, Description: t.Description, MIME: t.MIME, Size: int64(len(t.Body))})
	}
	ids, err := s.Store.IDs()
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		all = append(all, Entry{URI: "flyprof://runs/" + id, Name: "run " + id, Description: "envelope of the run; its files: flyprof://runs/" + id + "/files", MIME: "application/json"})
	}
	total = len(all)
	offset = min(max(offset, 0), total)
	return all[offset : offset+min(max(limit, 0), total-offset)], total, nil
}
