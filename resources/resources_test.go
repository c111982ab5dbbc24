//go:build unix

package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// library is a source with one run in it.
type library struct {
	*Source
	id  string
	dir string // of the run
}

func newLibrary(t testing.TB) library {
	t.Helper()
	store, err := runs.Open(filepath.Join(t.TempDir(), "runs"), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	l := library{Source: &Source{Store: store, Texts: []Text{
		{URI: "flyprof://reference/quirks", Name: "quirks", Description: "what surprises", MIME: "text/markdown", Body: "# Quirks\nµs ≠ ms\n"},
		{URI: "skill://flyprof-capture/SKILL.md", Name: "flyprof-capture", Description: "how to", MIME: "text/markdown", Body: "---\nname: x\n---\n"},
	}}}
	l.Envelope = func(_ context.Context, id string) ([]byte, error) {
		r, err := store.Load(id)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"run": r.ID, "state": string(r.State)})
	}
	r := l.create(t, "softmax_kernel_0")
	l.id, l.dir = r.ID, store.Path(r.ID)
	return l
}

func (l library) create(t testing.TB, kernel string) runs.Run {
	t.Helper()
	unlock, err := l.Store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r, err := l.Store.Create(runs.Run{Request: request.Capture{Kernel: kernel}, RequestKey: "r", SameKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l library) put(t testing.TB, name string, body []byte) {
	t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (l library) read(t testing.TB, uri string) Page {
	t.Helper()
	p, err := l.Read(t.Context(), uri, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// all reads a resource page by page, and how many pages that took.
func (l library) all(t *testing.T, uri string, limit int) (body []byte, pages []Page) {
	t.Helper()
	for at := int64(0); ; {
		p, err := l.Read(t.Context(), uri, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		b := append([]byte(p.Text), p.Blob...)
		if p.Offset != at || len(b) > limit || (p.Text != "" && p.Blob != nil) || !utf8.ValidString(p.Text) {
			t.Fatalf("page at %d: %d bytes, %+v", at, len(b), p.Offset)
		}
		body, pages = append(body, b...), append(pages, p)
		if p.NextOffset == 0 {
			return body, pages
		}
		if p.NextOffset != at+int64(len(b)) || p.NextOffset <= at || p.NextOffset >= p.Size {
			t.Fatalf("at %d: %d bytes of %d and then %d", at, len(b), p.Size, p.NextOffset)
		}
		at = p.NextOffset
	}
}

func TestEveryKind(t *testing.T) {
	l := newLibrary(t)
	l.put(t, "logs/att-big.log", []byte("line\n"))
	l.put(t, "att/big/code.json", []byte(`{"code":[]}`))
	l.put(t, "att/big/x.att", []byte{0, 255, 1})
	l.put(t, "att/big/text-with.att", []byte("abc"))
	l.put(t, "pmc/empty.csv", nil)
	l.put(t, "pmc/empty.bin", nil)
	files := "flyprof://files/" + l.id + "/"
	cases := []struct {
		uri, mime, text string
		blob            []byte
		fixed           bool
	}{
		{uri: "flyprof://reference/quirks", mime: "text/markdown", text: "# Quirks\nµs ≠ ms\n", fixed: true},
		{uri: "skill://flyprof-capture/SKILL.md", mime: "text/markdown", text: "---\nname: x\n---\n", fixed: true},
		{uri: "flyprof://runs/" + l.id, mime: "application/json", text: `{"run":"` + l.id + `","state":"queued"}`},
		{uri: "flyprof://logs/" + l.id + "/att-big.log", mime: "text/plain", text: "line\n"},
		{uri: files + "logs/att-big.log", mime: "text/plain", text: "line\n"},
		{uri: files + "att/big/code.json", mime: "application/json", text: `{"code":[]}`},
		{uri: files + "att/big/x.att", mime: "application/octet-stream", blob: []byte{0, 255, 1}},
		{uri: files + "att/big/text-with.att", mime: "application/octet-stream", blob: []byte("abc")},
		{uri: files + "pmc/empty.csv", mime: "text/csv"},
		{uri: files + "pmc/empty.bin", mime: "application/octet-stream", blob: []byte{}},
	}
	for _, c := range cases {
		t.Run(c.uri, func(t *testing.T) {
			p := l.read(t, c.uri)
			size := int64(len(c.text) + len(c.blob))
			if p.URI != c.uri || p.MIME != c.mime || p.Text != c.text || !bytes.Equal(p.Blob, c.blob) || (c.blob == nil) != (p.Blob == nil) || p.Size != size || p.NextOffset != 0 || p.Offset != 0 || p.Immutable != c.fixed {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestImmutable: what belongs to a run stays changeable until the run has ended.
func TestImmutable(t *testing.T) {
	l := newLibrary(t)
	l.put(t, "logs/a.log", []byte("x"))
	uris := []string{"flyprof://runs/" + l.id, "flyprof://runs/" + l.id + "/files", "flyprof://logs/" + l.id + "/a.log", "flyprof://files/" + l.id + "/logs/a.log"}
	want := func(ended bool) {
		t.Helper()
		for _, uri := range uris {
			if p := l.read(t, uri); p.Immutable != ended {
				t.Errorf("%s: immutable is %v", uri, p.Immutable)
			}
		}
		if l.read(t, "flyprof://runs").Immutable {
			t.Error("the index is taken for immutable")
		}
	}
	want(false)
	r, err := l.Store.Load(l.id)
	if err != nil {
		t.Fatal(err)
	}
	r.State = runs.Failed
	if err := l.Store.Finish(r, runs.Result{}); err != nil {
		t.Fatal(err)
	}
	want(true)
	if p := l.read(t, uris[2]); p.Modified.IsZero() || time.Since(p.Modified) > time.Hour {
		t.Errorf("%v", p.Modified)
	}
}

func TestIndex(t *testing.T) {
	l := newLibrary(t)
	second := l.create(t, "gemm")
	if err := os.MkdirAll(l.Store.Path("broken-20200101T000000Z-abcdef"), 0o755); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Total int
		Runs  []struct {
			ID     string `json:"run_id"`
			URI    string
			Kernel string
			State  string
		}
	}
	p := l.read(t, "flyprof://runs")
	if err := json.Unmarshal([]byte(p.Text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Total != 3 || len(got.Runs) != 2 {
		t.Fatalf("%s", p.Text)
	}
	for _, r := range got.Runs {
		kernel := map[string]string{l.id: "softmax_kernel_0", second.ID: "gemm"}[r.ID]
		if r.Kernel != kernel || r.State != "queued" || r.URI != "flyprof://runs/"+r.ID {
			t.Errorf("%+v", r)
		}
		l.read(t, r.URI)
	}
	empty, err := runs.Open(filepath.Join(t.TempDir(), "none"), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := (&Source{Store: empty}).Read(t.Context(), "flyprof://runs", 0, 0)
	if err != nil || strings.Contains(q.Text, "null") || !strings.Contains(q.Text, `"runs": []`) {
		t.Errorf("%s %v", q.Text, err)
	}
}

// oddNames are file names that are awkward in a URI. The kernel's own name is a part of rocprofv3's.
var oddNames = []string{
	"a b.csv", "100%.log", "100%25.log", "q?offset=3.log", "hash#frag.json", "a&b=c;d.txt", "ünï/cødé.csv", "日本語.log", "plus+sign.md", "colon:colon.json", "tilde~.att",
	"<kernel<4, float>>(int*).json", "[brackets]{braces}.csv", "'quotes\".txt", "tab\there.txt", "new\nline.log", "..hidden.log", "...", ".dot/file.txt", "-dash",
	strings.Repeat("n", 250) + ".csv", "@host.txt", "user:pw@host", "flyprof:/x.txt", "%2e%2e.log", "%00.log", " lead.txt", "trail .", "$var,x!.py",
}

func TestFileURIRoundTrip(t *testing.T) {
	l := newLibrary(t)
	for i, name := range oddNames {
		l.put(t, "att/"+name, fmt.Appendf(nil, "%d", i))
	}
	for i, name := range oddNames {
		uri := FileURI(l.id, "att/"+name)
		p, err := l.Read(t.Context(), uri, 0, 0)
		if err != nil {
			t.Errorf("%q as %s: %v", name, uri, err)
			continue
		}
		if got := p.Text + string(p.Blob); got != fmt.Sprint(i) {
			t.Errorf("%q as %s holds %q", name, uri, got)
		}
		if strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is no URI", uri)
		}
	}
	for _, name := range []string{"bad\xffutf8.log", `back\slash.log`} {
		l.put(t, "att/"+name, nil)
	}
	// Every URI of the manifest can be read, and names the file that it stands beside.
	var manifest struct {
		Total, Unreadable int
		Files             []struct {
			Path, URI string
			Size      int64
			MIME      string `json:"mime_type"`
		}
	}
	if err := json.Unmarshal([]byte(l.read(t, "flyprof://runs/"+l.id+"/files").Text), &manifest); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := filepath.WalkDir(l.dir, func(_ string, d os.DirEntry, _ error) error {
		if d.Type().IsRegular() {
			found++
		}
		return nil
	})
	if err != nil || manifest.Total != found || manifest.Unreadable != 2 || len(manifest.Files) != found-2 || found < len(oddNames) {
		t.Errorf("%d of %d files, %v", manifest.Total, found, err)
	}
	for _, f := range manifest.Files {
		p, err := l.Read(t.Context(), f.URI, 0, 0)
		if err != nil || p.Size != f.Size {
			t.Errorf("%+v: %d bytes, %v", f, p.Size, err)
		}
	}
}

func TestPaging(t *testing.T) {
	l := newLibrary(t)
	r := rand.New(rand.NewPCG(1, 2))
	binary := make([]byte, 600)
	for i := range binary {
		binary[i] = byte(r.Uint32())
	}
	var mixed strings.Builder
	for mixed.Len() < 600 {
		mixed.WriteString([]string{"a", "é", "€", "𝄞", "\uFFFD", "\n"}[r.IntN(6)])
	}
	files := map[string]struct {
		body []byte
		text bool
	}{
		"ascii.log":    {[]byte(strings.Repeat("0123456789\n", 55)), true},
		"mixed.log":    {[]byte(mixed.String()), true},
		"four.json":    {[]byte(strings.Repeat("𝄞", 150)), true},
		"replaced.txt": {[]byte(strings.Repeat("\uFFFD", 200)), true},
		"binary.att":   {binary, false},
		"binary.log":   {binary, false},
		"one.csv":      {[]byte("€"), true},
	}
	for name, f := range files {
		l.put(t, name, f.body)
		for _, limit := range []int{4, 5, 6, 7, 100, 599, 600, 601, MaxPage} {
			t.Run(fmt.Sprintf("%s by %d", name, limit), func(t *testing.T) {
				body, pages := l.all(t, FileURI(l.id, name), limit)
				if !bytes.Equal(body, f.body) {
					t.Errorf("%d bytes in %d pages are not the file's %d", len(body), len(pages), len(f.body))
				}
				for _, p := range pages {
					if f.text && p.Blob != nil || p.Size != int64(len(f.body)) {
						t.Errorf("at %d: %q of %s, size %d", p.Offset, p.Blob, p.MIME, p.Size)
					}
				}
				// A page that is cut at a character lacks at most three bytes of its limit.
				if most := len(f.body)/max(1, limit-3) + 1; len(pages) > most {
					t.Errorf("%d pages, at most %d are needed", len(pages), most)
				}
			})
		}
		for limit := 1; limit < 4; limit++ {
			if body, _ := l.all(t, FileURI(l.id, name), limit); !bytes.Equal(body, f.body) {
				t.Errorf("%s by %d: %d bytes of %d", name, limit, len(body), len(f.body))
			}
		}
	}
}

// TestOneBadByte: what follows a page that is no text is text again.
func TestOneBadByte(t *testing.T) {
	l := newLibrary(t)
	body := append(bytes.Repeat([]byte("€"), 50), 0xff)
	body = append(body, bytes.Repeat([]byte("€"), 200)...)
	l.put(t, "logs/x.log", body)
	got, pages := l.all(t, "flyprof://logs/"+l.id+"/x.log", 101) // so that the bad page is cut within a character
	if !bytes.Equal(got, body) {
		t.Fatal("the pages are not the file")
	}
	blobs := 0
	for _, p := range pages {
		if p.Blob != nil {
			blobs++
			if p.MIME != "application/octet-stream" {
				t.Errorf("bytes that are no text are called %s", p.MIME)
			}
		} else if p.MIME != "text/plain" {
			t.Errorf("text is called %s", p.MIME)
		}
	}
	if blobs != 1 {
		t.Errorf("%d of %d pages are no text; one byte is bad", blobs, len(pages))
	}
}

func TestLimits(t *testing.T) {
	l := newLibrary(t)
	const size = MaxPage + 1000
	l.put(t, "logs/big.log", bytes.Repeat([]byte("x"), size))
	uri := "flyprof://logs/" + l.id + "/big.log"
	cases := []struct {
		name    string
		query   string
		offset  int64
		limit   int
		at, n   int64
		refused bool
	}{
		{name: "nothing said", n: MaxPage},
		{name: "more than a page", limit: math.MaxInt, n: MaxPage},
		{name: "less than nothing", limit: -1, n: MaxPage},
		{name: "limit", limit: 10, n: 10},
		{name: "offset", offset: size - 5, at: size - 5, n: 5},
		{name: "at the end", offset: size, at: size},
		{name: "beyond", offset: size + 1, refused: true},
		{name: "far beyond", offset: math.MaxInt64, refused: true},
		{name: "before", offset: -1, refused: true},
		{name: "far before", offset: math.MinInt64, refused: true},
		{name: "query", query: "?offset=3&limit=4", at: 3, n: 4},
		{name: "query in the other order", query: "?limit=4&offset=3", at: 3, n: 4},
		{name: "the call beats the query", query: "?offset=3&limit=4", offset: 7, limit: 2, at: 7, n: 2},
		{name: "the largest limit", query: fmt.Sprintf("?limit=%d", MaxPage), n: MaxPage},
		{name: "escaped query", query: "?offset=%33", at: 3, n: MaxPage},
		{name: "empty query", query: "?", n: MaxPage},
		{name: "query limit too large", query: fmt.Sprintf("?limit=%d", MaxPage+1), refused: true},
		{name: "query limit 0", query: "?limit=0", refused: true},
		{name: "negative", query: "?offset=-1", refused: true},
		{name: "no number", query: "?offset=ten", refused: true},
		{name: "empty number", query: "?offset=", refused: true},
		{name: "hexadecimal", query: "?offset=0x10", refused: true},
		{name: "overflow", query: "?offset=9223372036854775808", refused: true},
		{name: "largest", query: "?offset=9223372036854775807", refused: true},
		{name: "twice", query: "?offset=1&offset=2", refused: true},
		{name: "unknown", query: "?length=1", refused: true},
		{name: "semicolon", query: "?offset=1;limit=2", refused: true},
		{name: "bad escape", query: "?offset=%zz", refused: true},
		{name: "other digits", query: "?offset=٣", refused: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := l.Read(t.Context(), uri+c.query, c.offset, c.limit)
			if c.refused {
				if e := envelope.As(err); err == nil || e.Code != envelope.BadArgs || e.Evidence.Field == "" || e.Evidence.Allowed == "" {
					t.Errorf("%v %+v", p.Offset, err)
				}
				return
			}
			if err != nil || p.Offset != c.at || int64(len(p.Text)) != c.n || p.Size != size {
				t.Errorf("%d bytes at %d of %d, %v", len(p.Text), p.Offset, p.Size, err)
			}
		})
	}
	for _, uri := range []string{"flyprof://runs", "flyprof://runs/" + l.id, "flyprof://runs/" + l.id + "/files", "flyprof://reference/quirks"} {
		whole := l.read(t, uri)
		p, err := l.Read(t.Context(), uri, 2, 3)
		if err != nil || p.Text != whole.Text[2:5] || p.NextOffset != 5 || p.Size != whole.Size {
			t.Errorf("%s: %q %d %v", uri, p.Text, p.NextOffset, err)
		}
		if _, err := l.Read(t.Context(), uri, -1, 0); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%s before its beginning: %v", uri, err)
		}
		if _, err := l.Read(t.Context(), uri, whole.Size+1, 0); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%s beyond its end: %v", uri, err)
		}
	}
}

// secret is what no read may give.
const secret = "THE SECRET OUTSIDE"

// linkedRun has the form of a run, and is a link that leads out of the runs directory.
const linkedRun = "linked-20260101T000000Z-aaaaaa"

// hostile are URIs that name nothing which may be read. RUN stands for a run.
var hostile = []struct {
	uri  string
	code envelope.Code
}{
	{"", envelope.NoArtifact},
	{"flyprof:", envelope.NoArtifact},
	{"flyprof://", envelope.NoArtifact},
	{"flyprof:runs", envelope.NoArtifact},
	{"flyprof:///runs", envelope.NoArtifact},
	{"flyprof://nothing", envelope.NoArtifact},
	{"flyprof://RUNS", envelope.NoArtifact},
	{"flyprof://runs:80/RUN", envelope.NoArtifact},
	{"flyprof://me@runs/RUN", envelope.NoArtifact},
	{"flyprof://me:pw@files/RUN/run.json", envelope.NoArtifact},
	{"flyprof://runs/RUN#x", envelope.NoArtifact},
	{"flyprof://files/RUN/run.json#x", envelope.NoArtifact},
	{"flyprof://runs/RUN/other", envelope.NoArtifact},
	{"flyprof://runs/RUN/files/run.json", envelope.NoArtifact},
	{"flyprof://files/RUN", envelope.NoArtifact},
	{"flyprof://files/RUN/", envelope.NoArtifact},
	{"flyprof://logs/RUN", envelope.NoArtifact},
	{"flyprof://logs/RUN/a/b", envelope.NoArtifact},
	{"flyprof://logs/RUN/a%2fb", envelope.NoArtifact},
	{"flyprof://reference/unknown", envelope.NoArtifact},
	{"skill://flyprof-capture/other.md", envelope.NoArtifact},
	{"skill://flyprof-capture/../flyprof-capture/SKILL.md", envelope.NoArtifact},
	{"file:///etc/passwd", envelope.NoArtifact},
	{"http://127.0.0.1/", envelope.NoArtifact},
	{"data:text/plain,x", envelope.NoArtifact},
	{"/etc/passwd", envelope.NoArtifact},
	{"flyprof://files/%", envelope.NoArtifact},
	{"flyprof://[::1/x", envelope.NoArtifact},
	{"flyprof://files/RUN/\x00", envelope.NoArtifact},
	{"flyprof://files/RUN/\x01", envelope.NoArtifact},
	{" flyprof://runs", envelope.NoArtifact},
	{"flyprof://files/RUN/missing.json", envelope.NoArtifact},
	{"flyprof://files/RUN/logs", envelope.NoArtifact},
	{"flyprof://logs/RUN/missing.log", envelope.NoArtifact},

	{"flyprof://runs/none-20260101T000000Z-aaaaaa", envelope.RunNotFound},
	{"flyprof://runs/none-20260101T000000Z-aaaaaa/files", envelope.RunNotFound},
	{"flyprof://files/none-20260101T000000Z-aaaaaa/run.json", envelope.RunNotFound},
	{"flyprof://runs/..", envelope.RunNotFound},
	{"flyprof://runs/%2e%2e", envelope.RunNotFound},
	{"flyprof://runs/../files", envelope.RunNotFound},
	{"flyprof://runs/.active", envelope.RunNotFound},
	{"flyprof://runs//files", envelope.RunNotFound},
	{"flyprof://runs/%00", envelope.RunNotFound},
	{"flyprof://files/../secret.txt", envelope.RunNotFound},
	{"flyprof://files/%2e%2e/secret.txt", envelope.RunNotFound},
	{"flyprof://files/.active/RUN", envelope.RunNotFound},
	{"flyprof://files//etc/passwd", envelope.RunNotFound},

	{"flyprof://files/RUN/../../secret.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/%2e%2e/%2e%2e/secret.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/%2E%2E%2F%2E%2E%2Fsecret.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/logs/../run.json", envelope.PathNotAllowed},
	{"flyprof://files/RUN/./run.json", envelope.PathNotAllowed},
	{"flyprof://files/RUN//run.json", envelope.PathNotAllowed},
	{"flyprof://files/RUN//etc/passwd", envelope.PathNotAllowed},
	{"flyprof://files/RUN/%2fetc/passwd", envelope.PathNotAllowed},
	{"flyprof://files/RUN/run.json/", envelope.PathNotAllowed},
	{"flyprof://files/RUN/a%00b", envelope.PathNotAllowed},
	{`flyprof://files/RUN/..%5c..%5csecret.txt`, envelope.PathNotAllowed},
	{"flyprof://logs/RUN/..", envelope.PathNotAllowed},
	{"flyprof://logs/RUN/%2e%2e", envelope.PathNotAllowed},
	{"flyprof://logs/RUN/a%00", envelope.PathNotAllowed},
	{"flyprof://files/RUN/out.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/up/secret.txt", envelope.PathNotAllowed},
	{"flyprof://logs/RUN/out.log", envelope.PathNotAllowed},
	{"flyprof://files/RUN/fifo", envelope.PathNotAllowed},
	{"flyprof://files/RUN/null", envelope.PathNotAllowed},
	{"flyprof://files/RUN/socket", envelope.PathNotAllowed},
	{"flyprof://files/RUN/device", envelope.PathNotAllowed},
	{"flyprof://files/RUN/proc/self/environ", envelope.PathNotAllowed},
	{"flyprof://files/RUN/absolute/secret.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/%252e%252e/%252e%252e/secret.txt", envelope.NoArtifact},
	{"flyprof://files/RUN/..;/secret.txt", envelope.NoArtifact},
	{"flyprof://files/RUN/%c0%ae%c0%ae/secret.txt", envelope.PathNotAllowed},
	{"flyprof://files/RUN/\uff0e\uff0e/secret.txt", envelope.NoArtifact},
	{"flyprof://files/RUN/logs%00/in.log", envelope.PathNotAllowed},
	{"flyprof://files/" + linkedRun + "/secret.txt", envelope.RunNotFound},
	{"flyprof://runs/" + linkedRun, envelope.RunNotFound},
	{"flyprof://runs/" + linkedRun + "/files", envelope.RunNotFound},
	{"flyprof://logs/" + linkedRun + "/secret.txt", envelope.RunNotFound},
	{"flyprof://files/RUN/dangling", envelope.NoArtifact},
	{"flyprof://files/RUN/loop", envelope.PathNotAllowed},
	{"flyprof://files/RUN/run.json/x", envelope.PathNotAllowed},
}

// trapped lays out what leads out of a run.
func trapped(t testing.TB) library {
	t.Helper()
	l := newLibrary(t)
	outside := filepath.Join(filepath.Dir(l.Store.Dir()), "secret.txt")
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(l.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{outside, filepath.Join(l.Store.Dir(), "secret.txt")} {
		if err := os.WriteFile(path, []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "out.txt")
	link("../../../secret.txt", "logs/out.log")
	link("..", "up")
	link("gone", "dangling")
	link("loop", "loop")
	link("run.json", "inside.json")
	l.put(t, "logs/in.log", []byte("in"))
	if err := unix.Mkfifo(filepath.Join(l.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	link("/dev/null", "null")
	link("/proc", "proc")
	link(filepath.Dir(outside), "absolute")
	// A device of its own needs rights that a test seldom has; a link to one is as good.
	if err := unix.Mknod(filepath.Join(l.dir, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		link("/dev/zero", "device")
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(l.Store.Dir(), linkedRun)); err != nil {
		t.Fatal(err)
	}
	// A socket's name may have about a hundred bytes.
	t.Chdir(l.dir)
	s, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return l
}

func TestHostile(t *testing.T) {
	l := trapped(t)
	for _, c := range hostile {
		t.Run(c.uri, func(t *testing.T) {
			began := time.Now()
			p, err := l.Read(t.Context(), strings.ReplaceAll(c.uri, "RUN", l.id), 0, 0)
			e := envelope.As(err)
			if err == nil || e.Code != c.code || strings.Contains(e.Message, secret) || p.Size != 0 || p.Text != "" {
				t.Errorf("%v, want %s; %+v", err, c.code, p)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("huge", func(t *testing.T) {
		for _, uri := range []string{strings.Repeat("a", 1<<20), "flyprof://files/" + l.id + "/" + strings.Repeat("a/", 1<<19) + "b", "flyprof://files/" + l.id + "/" + strings.Repeat("a", 8000)} {
			_, err := l.Read(t.Context(), uri, 0, 0)
			e := envelope.As(err)
			if raw, jsonErr := json.Marshal(e); err == nil || e.Code == envelope.Internal || jsonErr != nil || len(raw) > 10_000 {
				t.Errorf("%.100q: %s, an answer of %d bytes", uri, e.Code, len(raw))
			}
		}
	})
	t.Run("a link within the run", func(t *testing.T) {
		if p := l.read(t, "flyprof://files/"+l.id+"/inside.json"); !strings.Contains(p.Text, l.id) {
			t.Errorf("%q", p.Text)
		}
	})
}

func TestList(t *testing.T) {
	l := newLibrary(t)
	for range 4 {
		l.create(t, "gemm")
	}
	all, total, err := l.List(0, 100)
	if err != nil || total != 8 || len(all) != 8 || all[0].URI != "flyprof://runs" {
		t.Fatalf("%d of %d, %v: %+v", len(all), total, err, all)
	}
	seen := map[string]bool{}
	for _, e := range all {
		p := l.read(t, e.URI)
		if seen[e.URI] || e.Name == "" || e.Description == "" || e.MIME != p.MIME || (e.Size != 0 && e.Size != p.Size) {
			t.Errorf("%+v and the page's %s of %d bytes", e, p.MIME, p.Size)
		}
		seen[e.URI] = true
	}
	for limit := 1; limit < 10; limit++ {
		var got []Entry
		for len(got) < total {
			page, n, err := l.List(len(got), limit)
			if err != nil || n != total || len(page) == 0 || len(page) > limit {
				t.Fatalf("%d entries of %d, %v", len(page), n, err)
			}
			got = append(got, page...)
		}
		if !slices.Equal(got, all) {
			t.Errorf("the pages of %d entries are not the list", limit)
		}
	}
	for _, c := range []struct{ offset, limit, want int }{{-1, 2, 2}, {8, 5, 0}, {9, 5, 0}, {math.MaxInt, math.MaxInt, 0}, {0, math.MaxInt, 8}, {3, math.MaxInt, 5}, {2, 0, 0}, {2, -1, 0}, {math.MinInt, math.MinInt, 0}} {
		if page, n, err := l.List(c.offset, c.limit); err != nil || n != 8 || len(page) != c.want {
			t.Errorf("%+v: %d of %d, %v", c, len(page), n, err)
		}
	}
}

// FuzzRead: no URI gives what lies outside, panics, or fails in a way that the catalogue does not know.
func FuzzRead(f *testing.F) {
	l := trapped(f)
	for _, c := range hostile {
		f.Add(strings.ReplaceAll(c.uri, "RUN", l.id), int64(0), 0)
	}
	f.Add("flyprof://runs/"+l.id+"/files?offset=1&limit=7", int64(3), 2)
	f.Add("flyprof://logs/"+l.id+"/in.log", int64(-1), -1)
	f.Add("flyprof://runs", int64(math.MaxInt64), math.MaxInt)
	f.Fuzz(func(t *testing.T, uri string, offset int64, limit int) {
		// The id of this process's run stands in for whatever the corpus calls RUN.
		uri = strings.ReplaceAll(uri, "RUN", l.id)
		p, err := l.Read(t.Context(), uri, offset, limit)
		if err != nil {
			if code := envelope.CodeOf(err); code == envelope.Internal {
				t.Errorf("%q: %v", uri, err)
			}
			return
		}
		n := int64(len(p.Text) + len(p.Blob))
		if strings.Contains(p.Text+string(p.Blob), secret) || n > MaxPage || p.Offset < 0 || p.Offset+n > p.Size || (p.NextOffset != 0 && p.NextOffset != p.Offset+n) {
			t.Errorf("%q %d %d: %+v", uri, offset, limit, p)
		}
	})
}
