package att

import (
	"context"
	"io"
	"strings"
)

// Snapshot is a source file that att-tool saved with the trace.
type Snapshot struct {
	// Path is the file's path as code.json's Source has it.
	Path string
	// File is the copy's name in the dispatch directory; it is a plain name of a regular file that is there.
	File string
}

const (
	maxSnapshots    = 1 << 16
	maxSnapshotPath = 4096 // PATH_MAX of Linux
)

// readSnapshots reads snapshots.json. No verdict needs it: what is wrong with it is a warning.
func (d *Dispatch) readSnapshots(ctx context.Context, f *folder) error {
	var listed []Snapshot
	err := f.read(ctx, snapshotsFile, func(r io.Reader) (err error) {
		listed, err = readSnapshotTree(r)
		return err
	})
	if missing(err) {
		return nil // as it is where no source was known
	}
	if err != nil {
		d.warn(WarnSnapshots, "snapshots.json cannot be read: %v", err)
		return nil
	}
	var why error
	for _, s := range listed {
		if ctx.Err() != nil {
			return nil
		}
		file, err := f.open(s.File)
		if err != nil {
			why = err
			continue
		}
		file.Close()
		d.Snapshots = append(d.Snapshots, s)
	}
	if lost := len(listed) - len(d.Snapshots); lost > 0 {
		d.warn(WarnSnapshotsMissing, "%d of %d files that snapshots.json names cannot be opened, one of them: %v", lost, len(listed), why)
	}
	return nil
}

// readSnapshotTree reads the tree of directories {"/": {"w": {"k.py": "source_0_k.py"}}}: a key is a part of the path, a text
// the name of the copy.
func readSnapshotTree(r io.Reader) ([]Snapshot, error) {
	s := newScanner(r)
	var out []Snapshot
	var walk func(parent string, key []byte) error
	walk = func(parent string, key []byte) error {
		at, ok := joinSource(parent, string(key))
		if !ok {
			return s.fail("a path of more than %d bytes", maxSnapshotPath)
		}
		switch s.peek() {
		case '{':
			return s.object(func(key []byte) error { return walk(at, key) })
		case '"':
			if len(out) >= maxSnapshots {
				return s.fail("more than %d files", maxSnapshots)
			}
			file, err := s.str()
			out = append(out, Snapshot{Path: at, File: file})
			return err
		}
		return s.unexpected("a directory or a file name")
	}
	err := s.document(func(key []byte) error { return walk("", key) })
	return out, err
}

// joinSource joins by "/" alone: Source holds the compiler's own spelling, with "." and ".." in it, and cleaning would lose it.
func joinSource(parent, part string) (string, bool) {
	part = strings.ToValidUTF8(part, "\uFFFD")
	if parent != "" && !strings.HasSuffix(parent, "/") {
		part = "/" + part
	}
	return parent + part, len(parent)+len(part) <= maxSnapshotPath
}
