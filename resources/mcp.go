package resources

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// templates are the families of resources. Their prefixes are disjoint: the library takes any template that matches.
var templates = []struct{ uri, name, description, mime string }{
	{"flyprof://runs/{run}{?offset,limit}", "run", "Envelope of a run: what flyprof_capture answered or would answer now", "application/json"},
	{"flyprof://runs/{run}/files{?offset,limit}", "run-files", "Manifest of a run: every file with its size and URI", "application/json"},
	{"flyprof://files/{run}/{+path}{?offset,limit}", "run-file", "A file of a run: traces, job files, CSVs; at most 256 KiB a read", ""},
	{"flyprof://logs/{run}/{name}{?offset,limit}", "run-log", "Log of one step of a run", "text/plain"},
}

// Register adds the resources and templates to an MCP server. Runs come and go without being listed one by one: the index
// flyprof://runs names them.
func (s *Source) Register(srv *server.MCPServer, log *slog.Logger) {
	add := func(e Entry) {
		r := mcp.NewResource(e.URI, e.Name, mcp.WithResourceDescription(e.Description), mcp.WithMIMEType(e.MIME))
		srv.AddResource(r, func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return s.contents(ctx, req.Params.URI, log)
		})
	}
	add(Entry{URI: "flyprof://runs", Name: "runs", Description: "Index of all runs, the newest first", MIME: "application/json"})
	for _, t := range s.Texts {
		add(Entry{URI: t.URI, Name: t.Name, Description: t.Description, MIME: t.MIME})
	}
	for _, t := range templates {
		options := []mcp.ResourceTemplateOption{mcp.WithTemplateDescription(t.description)}
		if t.mime != "" {
			options = append(options, mcp.WithTemplateMIMEType(t.mime))
		}
		srv.AddResourceTemplate(mcp.NewResourceTemplate(t.uri, t.name, options...),
			func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return s.contents(ctx, req.Params.URI, log)
			})
	}
}

// contents reads a page for MCP. What comes after the page is said in _meta, since the result has no field for it.
func (s *Source) contents(ctx context.Context, uri string, log *slog.Logger) ([]mcp.ResourceContents, error) {
	page, err := s.Read(ctx, uri, 0, 0)
	if err != nil {
		log.DebugContext(ctx, "a resource cannot be read", "uri", uri, "err", err)
		return nil, err
	}
	meta := map[string]any{"flyprof/size": page.Size, "flyprof/offset": page.Offset}
	if page.NextOffset != 0 {
		meta["flyprof/next_offset"] = page.NextOffset
	}
	if page.Blob != nil {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: uri, MIMEType: page.MIME, Blob: base64.StdEncoding.EncodeToString(page.Blob), Meta: meta}}, nil
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: page.MIME, Text: page.Text, Meta: meta}}, nil
}

// JSON-RPC codes of a resource that is not there: its own code until 2025-11-25, invalid params from 2026-07-28 on.
const (
	codeNotFoundLegacy = -32002
	codeInvalidParams  = -32602
	modernProtocol     = "2026-07-28"
)

// NotFound tells the JSON-RPC error of a resources/read that names what is not there, not allowed or no page, and false where the
// read should go on. The library would answer it as an internal error.
func (s *Source) NotFound(ctx context.Context, params json.RawMessage) (code int, message string, missing bool) {
	var p struct {
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.URI == "" {
		return 0, "", false
	}
	_, err := s.Read(ctx, p.URI, 0, 1)
	if err == nil {
		return 0, "", false
	}
	e := envelope.As(err)
	if e.Code == envelope.Internal || e.Code == envelope.TraceCorrupt { // it is there, and cannot be read
		return 0, "", false
	}
	code = codeNotFoundLegacy
	if p.Meta.Version >= modernProtocol || e.Code == envelope.BadArgs {
		code = codeInvalidParams
	}
	return code, fmt.Sprintf("%s: %s", e.Code, e.Message), true
}
