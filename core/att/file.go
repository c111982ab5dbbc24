package att

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// folder opens files of one directory, and nothing outside it.
type folder struct {
	root *os.Root
	dir  string
	max  int64
}

func openFolder(dir string, maxBytes int64) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &folder{root: root, dir: dir, max: maxBytes}, nil
}

// errNotRegular: the name is a directory, a link, a device or a pipe.
var errNotRegular = errors.New("is no regular file")

// open opens a regular file by its plain name. Names come from the files themselves and are hostile.
func (f *folder) open(name string) (*os.File, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") || len(name) > 255 {
		return nil, fmt.Errorf("%.100q is no plain file name", name)
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %w", name, errNotRegular)
	}
	if info.Size() > f.max {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", name, info.Size(), f.max)
	}
	return f.root.Open(name)
}

// read runs a reader over a file; it ends soon after the context does.
func (f *folder) read(ctx context.Context, name string, read func(r io.Reader) error) error {
	file, err := f.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return read(&cancelReader{ctx, io.LimitReader(file, f.max+1)})
}

// cancelReader fails once the context has ended: one file can take longer than a cancelled run may linger.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// missing says that a file is not there, as opposed to being unreadable.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// corrupt is TRACE_CORRUPT about one file of a dispatch directory.
func corrupt(dir, name string, err error) *envelope.Error {
	return envelope.Build(envelope.TraceCorrupt, envelope.Facts{
		Message:  fmt.Sprintf("%s of %s cannot be read: %v", name, filepath.Base(dir), err),
		Evidence: envelope.Evidence{Path: filepath.Join(filepath.Base(dir), name), Found: err.Error(), Needed: "a file as att-tool writes it (JSON 3.0.0 or 3.1.0)"},
	}).WithCause(err)
}
