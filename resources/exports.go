package resources

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/export"
)

// maxExport bounds an export that is read as a resource; the verb export has no such bound.
const maxExport = 64 << 20

// exports keeps the export that was read last: pages of it come one after the other.
type exports struct {
	mu   sync.Mutex
	key  string
	body []byte
}

// chooseFormat lists the formats for completion.
func chooseFormat() []string {
	var out []string
	for _, f := range export.Formats {
		out = append(out, string(f.Format))
	}
	return out
}

func chooseTag(*Source, map[string]string) []string { return []string{"big", "small"} }

func chooseForm(*Source, map[string]string) []string { return chooseFormat() }

// exported makes flyprof://exports/<run>/<tag>/<format>.
func (s *Source) exported(ctx context.Context, uri string, t target) ([]byte, string, error) {
	tag, format, _ := strings.Cut(t.path, "/")
	i := slices.IndexFunc(export.Formats, func(f struct {
		Format       export.Format
		Ending, MIME string
	}) bool {
		return string(f.Format) == format
	})
	if i < 0 || path.Base(format) != format {
		return nil, "", envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("%.300q asks for no format that there is", uri),
			Evidence: envelope.Evidence{Field: "uri", Value: uri, Allowed: "flyprof://exports/<run>/<tag>/<format> with " + strings.Join(chooseFormat(), ", "), ValidNames: chooseFormat()},
		})
	}
	found, err := s.Traces.Find(ctx, t.id, "", tag)
	if err != nil {
		return nil, "", err
	}
	mime := export.Formats[i].MIME
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	key := found.Dir + "\x00" + format
	if s.exports.key == key {
		return s.exports.body, mime, nil
	}
	out := limitedBuffer{}
	if err := export.Write(ctx, &out, found.Dir, export.Format(format), export.About{Kernel: found.Kernel, Run: found.RunID, Arch: found.Arch, Simulated: found.Simulated}); err != nil {
		return nil, "", err
	}
	if s.ended(t.id) {
		s.exports.key, s.exports.body = key, out.Bytes()
	}
	return out.Bytes(), mime, nil
}

// limitedBuffer refuses what is too much to be read as a resource.
type limitedBuffer struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxExport {
		return 0, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the export has more than %d bytes: write it to a file with the verb export", maxExport),
			Evidence: envelope.Evidence{Field: "uri", Allowed: fmt.Sprintf("an export of at most %d bytes", maxExport)},
		})
	}
	return b.Buffer.Write(p)
}
