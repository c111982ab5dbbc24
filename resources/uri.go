package resources

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// target is a parsed URI.
type target struct {
	kind string // runs, run, files, file, log, export, text
	id   string
	path string
	page page
}

// page is which part of a resource is wanted. Offset and limit are in bytes.
type page struct {
	offset int64
	limit  int
	// line is the first line, from 1, or counted from the end where it is negative (-1 is the last); 0 where the page begins at offset.
	line int64
	// lines is the most lines; 0 for as many as fit.
	lines int
}

func (s *Source) parse(uri string) (target, error) {
	if len(uri) > 8192 || strings.ContainsRune(uri, 0) {
		return target{}, s.unknown(uri, "it is too long, or holds a NUL byte")
	}
	if _, ok := s.text(uri); ok {
		return target{kind: "text"}, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "flyprof" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return target{}, s.unknown(uri, "it is no flyprof:// URI")
	}
	t := target{}
	if t.page, err = query(u); err != nil {
		return target{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the resource %.300q cannot be read: %v", uri, err),
			Evidence: envelope.Evidence{Field: "uri", Value: uri, Allowed: fmt.Sprintf("?offset=<bytes>&limit=<1 to %d>, or ?line=<from 1, or from the end as -1>&lines=<number>", MaxPage)},
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
	case u.Host == "exports" && strings.Count(sub, "/") == 1:
		t.kind, t.id, t.path = "export", id, sub
	default:
		return target{}, s.unknown(uri, "there is no such document")
	}
	return t, nil
}

// Bounds of a page by lines.
const (
	maxLine  = 1_000_000_000
	maxLines = 100_000
)

// query reads the page that a URI's query asks for.
func query(u *url.URL) (page, error) {
	var p page
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return p, fmt.Errorf("its query cannot be read")
	}
	// "-0" and the like are left to ParseInt; a bound of both signs is for lines from the end.
	bounds := map[string]struct{ low, high int64 }{
		"offset": {0, math.MaxInt64}, "limit": {1, MaxPage}, "line": {-maxLine, maxLine}, "lines": {1, maxLines},
	}
	for name, v := range values {
		bound, known := bounds[name]
		if len(v) != 1 || !known {
			return p, fmt.Errorf("its query may hold offset, limit, line and lines once each")
		}
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < bound.low || n > bound.high || (name == "line" && n == 0) {
			return p, fmt.Errorf("%s is %.40q, and may be %d to %d (line not 0)", name, v[0], bound.low, bound.high)
		}
		switch name {
		case "offset":
			p.offset = n
		case "limit":
			p.limit = int(n)
		case "line":
			p.line = n
		case "lines":
			p.lines = int(n)
		}
	}
	if p.line != 0 && values.Has("offset") {
		return p, fmt.Errorf("it names an offset and a line, and only one of them can begin the page")
	}
	if p.lines != 0 && !values.Has("offset") && p.line == 0 {
		p.line = 1
	}
	return p, nil
}

func (s *Source) unknown(uri, why string) error {
	return envelope.Build(envelope.NoArtifact, envelope.Facts{
		Message: fmt.Sprintf("the resource %.300q cannot be read: %s", uri, why),
		Evidence: envelope.Evidence{
			Field: "uri", Value: uri,
			Allowed: "flyprof://runs, flyprof://runs/<run>, flyprof://runs/<run>/files, flyprof://files/<run>/<path>, flyprof://logs/<run>/<name>, flyprof://exports/<run>/<tag>/<format>, flyprof://reference/<name>, skill://<name>/SKILL.md",
		},
	})
}

// FileURI is the URI of a file of a run; awkward characters of its path are escaped.
func FileURI(id, name string) string {
	return (&url.URL{Scheme: "flyprof", Host: "files", Path: "/" + id + "/" + name}).String()
}
