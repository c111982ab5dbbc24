package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// maxFile bounds a configuration in bytes; Claude Code keeps its history in the same file.
const maxFile = 32 << 20

// conflict is FILE_CONFLICT about a file that was left as it is.
func conflict(path, why string) error {
	return envelope.Build(envelope.FileConflict, envelope.Facts{
		Message: fmt.Sprintf("%s was left as it is: %s", path, why), Evidence: envelope.Evidence{Path: path, Found: why},
	})
}

// document is a file that is to be changed.
type document struct {
	// path is what was asked for, real what it leads to.
	path, real string
	text       []byte
	mode       fs.FileMode
	exists     bool
}

// backupSuffix names what was there before.
const backupSuffix = ".bak"

// open reads a file, or finds that there is none yet. A link is followed to a file that is there, so that it stays a link.
func open(path string) (document, error) {
	d := document{path: path, real: path, mode: 0o600}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, conflict(path, reason(err))
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if d.real, err = filepath.EvalSymlinks(path); err != nil {
			return d, conflict(path, "it is a symbolic link that leads nowhere")
		}
		if info, err = os.Stat(d.real); err != nil {
			return d, conflict(path, reason(err))
		}
	}
	if !info.Mode().IsRegular() {
		return d, conflict(path, "it is no regular file")
	}
	d.exists, d.mode = true, info.Mode().Perm()
	f, err := os.Open(d.real)
	if err != nil {
		return d, conflict(path, reason(err))
	}
	defer f.Close()
	if d.text, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return d, conflict(path, reason(err))
	}
	if len(d.text) > maxFile {
		return d, conflict(path, fmt.Sprintf("it has more than %d bytes", maxFile))
	}
	return d, nil
}

// write replaces the file in one step and keeps what it was beside it; backup is empty where there was none.
func (d document) write(text []byte) (backup string, err error) {
	if !d.exists {
		if err := os.MkdirAll(filepath.Dir(d.real), 0o755); err != nil {
			return "", conflict(d.path, reason(err))
		}
	}
	now, err := open(d.path)
	if err != nil {
		return "", err
	}
	if now.exists != d.exists || !bytes.Equal(now.text, d.text) {
		return "", conflict(d.path, "somebody else changed it just now; run this again")
	}
	if d.exists {
		backup = d.real + backupSuffix
		if err := maybe.WriteFile(backup, d.text, d.mode); err != nil {
			return "", conflict(d.path, "its backup cannot be written: "+reason(err))
		}
	}
	if err := maybe.WriteFile(d.real, text, d.mode); err != nil {
		return "", conflict(d.path, reason(err))
	}
	return backup, nil
}

// reason leaves out the path that an error of the file system repeats.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}
