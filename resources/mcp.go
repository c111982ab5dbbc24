package resources

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// template is a family of resources.
type template struct {
	uri, name, description, mime string
	// complete gives what each variable may be; nil for numbers.
	complete map[string]chooser
}

// templates are the families. Their prefixes are disjoint: the library takes any template that matches.
var templates = []template{
	{"flyprof://runs" + pageQuery, "runs-page", "A page of the index of runs", "application/json", paged(nil)},
	{"flyprof://runs/{run}" + pageQuery, "run", "Envelope of a run: what flyprof_capture answered or would answer now", "application/json", paged(map[string]chooser{"run": chooseRun})},
	{"flyprof://runs/{run}/files" + pageQuery, "run-files", "Manifest of a run: every file with its size and URI", "application/json", paged(map[string]chooser{"run": chooseRun})},
	{"flyprof://files/{run}/{+path}" + pageQuery, "run-file", "A file of a run: traces, job files, CSVs; at most 256 KiB a read", "", paged(map[string]chooser{"run": chooseRun, "path": chooseFile})},
	{"flyprof://logs/{run}/{name}" + pageQuery, "run-log", "Log of one step of a run; ?line=-50 gives its last 50 lines", "text/plain", paged(map[string]chooser{"run": chooseRun, "name": chooseLog})},
	{"flyprof://exports/{run}/{tag}/{format}" + pageQuery, "run-export", "A trace in another form: pprof profile, Perfetto timeline or CSV", "", paged(map[string]chooser{"run": chooseRun, "tag": chooseTag, "format": chooseForm})},
	{"skill://{skill}/{+file}", "skill-file", "A file of an Agent Skill", "", map[string]chooser{"skill": chooseSkill, "file": chooseSkillFile}},
}

// pageQuery says which part of a resource is wanted.
const pageQuery = "{?offset,limit,line,lines}"

// paged adds the variables of pageQuery, which are numbers.
func paged(complete map[string]chooser) map[string]chooser {
	out := map[string]chooser{"offset": nil, "limit": nil, "line": nil, "lines": nil}
	maps.Copy(out, complete)
	return out
}

// Register adds the resources and templates to an MCP server. Runs come and go: the newest are added to each list as it is asked for
// (Hook), and the index flyprof://runs names them all.
func (s *Source) Register(srv *server.MCPServer, log *slog.Logger) {
	read := func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return s.contents(ctx, req.Params.URI, log)
	}
	srv.AddResource(mcp.NewResource("flyprof://runs", "runs", mcp.WithResourceDescription("Index of all runs, the newest first"), mcp.WithMIMEType("application/json")), read)
	for _, t := range s.Texts {
		if !t.Unlisted {
			srv.AddResource(mcp.NewResource(t.URI, t.Name, mcp.WithResourceDescription(t.Description), mcp.WithMIMEType(t.MIME), mcp.WithResourceSize(int64(len(t.Body)))), read)
		}
	}
	for _, t := range templates {
		options := []mcp.ResourceTemplateOption{mcp.WithTemplateDescription(t.description)}
		if t.mime != "" {
			options = append(options, mcp.WithTemplateMIMEType(t.mime))
		}
		srv.AddResourceTemplate(mcp.NewResourceTemplate(t.uri, t.name, options...), read)
	}
}

// The keys of _meta that say which part of a resource was read, and what comes after it: the result has no fields for it.
const (
	metaSize      = "flyprof/size"
	metaOffset    = "flyprof/offset"
	metaNext      = "flyprof/next_offset"
	metaLine      = "flyprof/line"
	metaNextLine  = "flyprof/next_line"
	metaModified  = "flyprof/modified"
	metaImmutable = "flyprof/immutable"
)

// contents reads a page for MCP.
func (s *Source) contents(ctx context.Context, uri string, log *slog.Logger) ([]mcp.ResourceContents, error) {
	page, err := s.Read(ctx, uri, 0, 0)
	if err != nil {
		log.DebugContext(ctx, "a resource cannot be read", "uri", uri, "err", err)
		return nil, Refusal(ctx, uri, err)
	}
	if _, builtIn := s.text(uri); builtIn && page.NextOffset == 0 {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: page.MIME, Text: page.Text}}, nil
	}
	meta := map[string]any{metaSize: page.Size, metaOffset: page.Offset}
	for key, n := range map[string]int64{metaNext: page.NextOffset, metaLine: page.Line, metaNextLine: page.NextLine} {
		if n != 0 {
			meta[key] = n
		}
	}
	if !page.Modified.IsZero() {
		meta[metaModified] = page.Modified.UTC().Format(time.RFC3339)
	}
	if page.Immutable {
		meta[metaImmutable] = true
	}
	if page.Blob != nil {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: uri, MIMEType: page.MIME, Blob: base64.StdEncoding.EncodeToString(page.Blob), Meta: meta}}, nil
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: page.MIME, Text: page.Text, Meta: meta}}, nil
}

// Refusal gives the JSON-RPC error for a resource that is not there, not allowed or no page: -32002 for what is missing until
// 2025-11-25, invalid params from 2026-07-28 on and for what was asked wrongly. What is there and cannot be read stays an internal error.
func Refusal(ctx context.Context, uri string, err error) error {
	e := envelope.As(err)
	if e.Code == envelope.Internal || e.Code == envelope.TraceCorrupt {
		return err
	}
	code := mcp.RESOURCE_NOT_FOUND
	if e.Code == envelope.BadArgs || mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) {
		code = mcp.INVALID_PARAMS
	}
	return &wire.Error{Code: code, Message: fmt.Sprintf("%s: %s", e.Code, e.Message), Data: map[string]string{"uri": wire.Shorten(uri, 1000)}}
}

// How long a client may keep what it read, in ms: what does not change any more (but for another version of this server), what runs
// now, and lists of runs.
const (
	ttlImmutable = 3600 * 1000
	ttlRunning   = 1000
	ttlList      = 5000
)

const (
	// recentRuns are listed as resources of their own.
	recentRuns = 50
	// listPage is the most entries of one page of resources/list.
	listPage = 50
)

// Hook has the server list the newest runs page by page, say how long answers keep, and say why a URI that fits no family is none.
func (s *Source) Hook(h *server.Hooks) {
	h.AddAfterListResources(func(ctx context.Context, _ any, req *mcp.ListResourcesRequest, res *mcp.ListResourcesResult) {
		after, _ := base64.StdEncoding.DecodeString(string(req.Params.Cursor)) // the library refused what is none
		res.Resources, res.NextCursor = s.pageOfList(res.Resources, string(after))
		cacheFor(ctx, &res.CacheableResult, ttlList)
	})
	h.AddAfterReadResource(func(ctx context.Context, _ any, req *mcp.ReadResourceRequest, res *mcp.ReadResourceResult) {
		ttl := int64(ttlRunning)
		if _, builtIn := s.text(req.Params.URI); builtIn || len(res.Contents) == 1 && metaOf(res.Contents[0])[metaImmutable] == true {
			ttl = ttlImmutable
		}
		cacheFor(ctx, &res.CacheableResult, ttl)
	})
	h.AddOnError(func(ctx context.Context, _ any, _ mcp.MCPMethod, message any, err error) {
		req, ok := message.(*mcp.ReadResourceRequest)
		if !ok || !errors.Is(err, server.ErrResourceNotFound) {
			return
		}
		_, err = s.Read(ctx, req.Params.URI, 0, 1)
		var coded *wire.Error
		if err != nil && errors.As(Refusal(ctx, req.Params.URI, err), &coded) {
			wire.AnswerWith(ctx, coded)
		}
	})
}

func metaOf(c mcp.ResourceContents) map[string]any {
	switch c := c.(type) {
	case mcp.TextResourceContents:
		return c.Meta
	case mcp.BlobResourceContents:
		return c.Meta
	}
	return nil
}

// cacheFor says how long an answer keeps. Before 2026-07-28 there is no field for it.
func cacheFor(ctx context.Context, res *mcp.CacheableResult, ttlMs int64) {
	if server.IsModernRequest(ctx) {
		res.SetCacheHints(ttlMs, mcp.CacheScopePrivate)
	}
}

// pageOfList adds the newest runs to the resources after a name, and cuts a page. Names are unique, so that the last one of a page is
// where the next one begins, whatever came or went meanwhile.
func (s *Source) pageOfList(fixed []mcp.Resource, after string) ([]mcp.Resource, mcp.Cursor) {
	all := slices.Clone(fixed)
	for _, r := range s.recent() {
		if r.Name > after {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b mcp.Resource) int { return cmp.Compare(a.Name, b.Name) })
	if len(all) <= listPage {
		return all, ""
	}
	all = all[:listPage]
	return all, mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(all[listPage-1].Name)))
}

// recent gives the newest runs as resources. A damaged run is left out; its own URI says what is wrong.
func (s *Source) recent() []mcp.Resource {
	ids, err := s.Store.IDs()
	if err != nil {
		return nil
	}
	var out []mcp.Resource
	for _, id := range ids[:min(len(ids), recentRuns)] {
		r, err := s.Store.Load(id)
		if err != nil {
			continue
		}
		changed := r.Created
		for _, t := range []time.Time{r.Started, r.PhaseStarted, r.Ended} {
			if t.After(changed) {
				changed = t
			}
		}
		out = append(out, mcp.NewResource("flyprof://runs/"+id, "run "+id,
			mcp.WithResourceTitle(fmt.Sprintf("%s: %s", wire.Shorten(r.Request.Kernel, 80), stateOf(r))),
			mcp.WithResourceDescription("Envelope of the run; its files: flyprof://runs/"+id+"/files"),
			mcp.WithMIMEType("application/json"), mcp.WithLastModified(changed.UTC().Format(time.RFC3339))))
	}
	return out
}

// stateOf gives a run's state, and how it failed.
func stateOf(r runs.Run) string {
	if r.Code != "" {
		return fmt.Sprintf("%s (%s)", r.State, r.Code)
	}
	return string(r.State)
}
