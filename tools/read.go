package tools

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/resources"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

const readText = `Read a flyprof:// or skill:// resource a page at a time: a run's envelope (flyprof://runs/<run>), its manifest (.../files), trace files (flyprof://files/<run>/<path>), logs (flyprof://logs/<run>/<name>), the rocprofv3 quirks and the error codes.

Without uri it lists what there is to read. Go on with data.next_offset as offset. Pages are at most 20,000 characters; binary comes as base64. Text can be read by line: ?line=-50 at the end of a log's URI gives its last 50 lines, ?line=101&lines=20 twenty from line 101 on.`

// pageChars is a page of text in characters; a page of binary is smaller, since base64 makes four characters of three bytes.
const (
	pageChars   = 20_000
	blobBytes   = 12_000
	listEntries = 100
	// readChars bounds the envelope around a page: quotes and control characters grow when they become JSON.
	readChars = 48_000
)

// ReadData is a page of a resource, or a list of resources.
type ReadData struct {
	URI      string `json:"uri,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
	Text     string `json:"text,omitempty"`
	Base64   []byte `json:"base64,omitempty" jsonschema_description:"The page in base64 where it is no text."`
	// Offset, NextOffset and Size are in bytes of the resource; for a list in entries.
	Offset     int64 `json:"offset"`
	NextOffset int64 `json:"next_offset,omitempty" jsonschema_description:"Where to read on; absent at the end."`
	Size       int64 `json:"size" jsonschema_description:"Whole resource in bytes; for a list the number of entries."`
	Line       int64 `json:"line,omitempty" jsonschema_description:"Number of the first line where the page was asked for by line."`
	NextLine   int64 `json:"next_line,omitempty" jsonschema_description:"Number of the line after the page."`
	Immutable  bool  `json:"immutable,omitempty" jsonschema_description:"Will never change."`

	Entries []resources.Entry `json:"entries,omitempty" jsonschema_description:"What there is to read, when no uri was given."`
}

func readTool(d Deps) Tool {
	return New(Def{
		Title: "Read trace files, logs and references", Description: readText, Toolset: ToolsetCapture,
		ReadOnly: true, Idempotent: true, MaxChars: readChars,
	}, func(ctx context.Context, in request.Read) (envelope.Reply[ReadData], error) {
		if in.URI == "" {
			return listResources(d, in)
		}
		return readPage(ctx, d, in)
	})
}

func listResources(d Deps, in request.Read) (envelope.Reply[ReadData], error) {
	limit := in.Limit
	if limit == 0 || limit > listEntries {
		limit = listEntries
	}
	entries, total, err := d.Resources.List(int(min(in.Offset, 1<<30)), limit)
	if err != nil {
		return envelope.Reply[ReadData]{}, err
	}
	data := ReadData{Offset: in.Offset, Size: int64(total), Entries: entries}
	if next := in.Offset + int64(len(entries)); len(entries) > 0 && next < int64(total) {
		data.NextOffset = next
	}
	reply := envelope.Reply[ReadData]{Data: &data}
	if data.NextOffset != 0 {
		reply.Actions = []envelope.Action{{Kind: envelope.CallTool, Args: request.Read{Offset: data.NextOffset, Limit: in.Limit}, Reason: "lists the next entries"}}
	}
	return reply, nil
}

func readPage(ctx context.Context, d Deps, in request.Read) (envelope.Reply[ReadData], error) {
	limit := in.Limit
	if limit == 0 || limit > pageChars {
		limit = pageChars
	}
	page, err := d.Resources.Read(ctx, in.URI, in.Offset, limit)
	if err != nil {
		return envelope.Reply[ReadData]{}, err
	}
	for fits := limit; !pageFits(page); {
		fits = fits * 2 / 3
		if page, err = d.Resources.Read(ctx, in.URI, in.Offset, fits); err != nil {
			return envelope.Reply[ReadData]{}, err
		}
	}
	data := ReadData{
		URI: in.URI, MIMEType: page.MIME, Text: page.Text, Base64: page.Blob,
		Offset: page.Offset, NextOffset: page.NextOffset, Size: page.Size, Line: page.Line, NextLine: page.NextLine, Immutable: page.Immutable,
	}
	reply := envelope.Reply[ReadData]{Data: &data}
	if page.NextOffset != 0 {
		next := in
		next.Offset = page.NextOffset
		reply.Actions = []envelope.Action{{Kind: envelope.CallTool, Args: next, Reason: fmt.Sprintf("reads on; %d of %d bytes are left", page.Size-page.NextOffset, page.Size)}}
	}
	return reply, nil
}

// pageFits says whether a page becomes an answer of bounded size.
func pageFits(p resources.Page) bool {
	if len(p.Blob) > blobBytes {
		return false
	}
	raw, err := jsontree.Marshal(p.Text)
	return err != nil || utf8.RuneCount(raw) <= readChars-2_000
}
