// Package resources answers what there is to read - runs, their files and logs, the reference texts, the skills - and gives
// it in pages. It is the same for MCP resources and for the tool flyprof_read.
package resources

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyprof/flyprof-mcp/core/artifact"
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
	// Recover ends a run whose supervisor has gone, where it has; nil for nothing. It may take seconds.
	Recover func(id string)

	// Traces finds the trace of a run, for exports.
	Traces artifact.Finder

	exports exports
	// recovering are the runs that Recover looks at.
	recovering sync.Map
}

// Text is one embedded document.
type Text struct {
	URI, Name, Description, MIME, Body string
	// Unlisted: it can be read, and another one that is listed leads to it.
	Unlisted bool
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
	// Line is the number of the page's first line, from 1, and NextLine that of the line after it; 0 where they are not known, which is
	// so unless the page was asked for by line from the beginning.
	Line, NextLine int64
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

// Read gives one page of a resource. offset and limit of the call go before what the URI's own query says; of two limits the
// smaller one counts.
//
// Errors: BAD_ARGS for a page that is none, NO_ARTIFACT for a URI that names nothing, RUN_NOT_FOUND, PATH_NOT_ALLOWED.
func (s *Source) Read(ctx context.Context, uri string, offset int64, limit int) (Page, error) {
	t, err := s.parse(uri)
	if err != nil {
		return Page{}, err
	}
	if offset < 0 {
		return Page{}, beyond(uri, offset, "a number of bytes from the beginning")
	}
	if offset != 0 {
		t.page.offset, t.page.line = offset, 0
	}
	for _, most := range []int{limit, MaxPage} {
		if most > 0 && (t.page.limit == 0 || most < t.page.limit) {
			t.page.limit = most
		}
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
	return readPage(Page{URI: uri, MIME: mime, Size: int64(len(body)), Immutable: fixed}, strings.NewReader(body), t.page)
}

// whole makes the resources that are not files. Whether they are final is asked first: what ends meanwhile only looks unfinished.
func (s *Source) whole(ctx context.Context, uri string, t target) (body, mime string, fixed bool, err error) {
	const jsonType = "application/json"
	switch t.kind {
	case "runs":
		body, err = s.index()
		return body, jsonType, false, err
	case "run":
		fixed = s.ended(t.id)
		b, err := s.Envelope(ctx, t.id)
		return string(b), jsonType, fixed, err
	case "files":
		fixed = s.ended(t.id)
		body, err = s.manifest(t.id)
		return body, jsonType, fixed, err
	case "export":
		fixed = s.ended(t.id)
		raw, mime, err := s.exported(ctx, uri, t)
		return string(raw), mime, fixed, err
	}
	if text, ok := s.text(uri); ok {
		return text.Body, text.MIME, true, nil
	}
	return "", "", false, s.unknown(uri, "there is no such document")
}

func (s *Source) text(uri string) (Text, bool) {
	i := slices.IndexFunc(s.Texts, func(t Text) bool { return t.URI == uri })
	if i < 0 {
		return Text{}, false
	}
	return s.Texts[i], true
}

func (s *Source) ended(id string) bool {
	r, err := s.Store.Load(id)
	return err == nil && r.State.Ended()
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
		if !readable(f.Path) {
			out.Unreadable++
			continue
		}
		out.Files = append(out.Files, manifestEntry{Path: f.Path, URI: FileURI(id, f.Path), Size: f.Size, MIME: mimeOf(f.Path)})
	}
	b, err := json.MarshalIndent(out, "", " ")
	return string(b), err
}

// readable says that a URI can have the name.
func readable(name string) bool { return fs.ValidPath(name) && !strings.Contains(name, `\`) }

// List names what there is to read: the index, the built-in texts, then the runs, the newest first. total counts all.
func (s *Source) List(offset, limit int) (entries []Entry, total int, err error) {
	all := []Entry{{URI: "flyprof://runs", Name: "runs", Description: "index of all runs", MIME: "application/json"}}
	for _, t := range s.Texts {
		if t.Unlisted {
			continue
		}
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
