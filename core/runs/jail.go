package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// OpenFile opens a regular file inside a run's directory. Nothing outside can be reached: no "..", no absolute path, no
// symbolic link that leads out, no device or FIFO (os.Root resolves within the directory). RUN_NOT_FOUND, NO_ARTIFACT or
// PATH_NOT_ALLOWED otherwise.
func (s *Store) OpenFile(id, name string) (*os.File, fs.FileInfo, error) {
	if !ValidID(id) {
		return nil, nil, s.notFound(id, "it does not have the form of a run id")
	}
	if err := plainPath(name); err != nil {
		return nil, nil, s.notAllowed(id, name, err.Error())
	}
	root, err := s.openRun(id)
	if err != nil {
		return nil, nil, s.notFound(id, "the runs directory has no such run")
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, s.noArtifact(id, name, "there is no such file")
	case err != nil:
		return nil, nil, s.notAllowed(id, name, "it leads out of the run's directory, or cannot be looked at")
	case info.IsDir():
		return nil, nil, s.noArtifact(id, name, "it is a directory")
	case !info.Mode().IsRegular():
		return nil, nil, s.notAllowed(id, name, "it is no regular file")
	}
	// O_NONBLOCK: a FIFO put there in between cannot make the open wait.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, s.noArtifact(id, name, "it cannot be opened")
	}
	// Whoever swapped the file in between gains nothing: the open file is judged again.
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, nil, s.notAllowed(id, name, "it is no regular file")
	}
	return f, info, nil
}

// openRun opens a run's directory. One that is a link out of the runs directory is none: others may write into a shared one.
func (s *Store) openRun(id string) (*os.Root, error) {
	all, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return all.OpenRoot(id)
}

func plainPath(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) > 4096:
		return errors.New("it is longer than 4,096 bytes")
	case strings.ContainsRune(name, 0):
		return errors.New("it holds a NUL byte")
	case strings.Contains(name, `\`):
		return errors.New("it holds a backslash")
	case path.IsAbs(name), filepath.IsAbs(name):
		return errors.New("it is absolute")
	case !fs.ValidPath(name):
		return errors.New(`it holds "..", "." or an empty part`)
	}
	return nil
}

func (s *Store) notAllowed(id, name, why string) error {
	return envelope.Build(envelope.PathNotAllowed, envelope.Facts{
		Message:  fmt.Sprintf("the file %.200q of run %s cannot be read: %s", name, id, why),
		Help:     "Use a path that the run's file list gives.",
		RunID:    id,
		Evidence: envelope.Evidence{Field: "path", Value: name, Allowed: "a relative path of a regular file inside the run"},
		Suggestions: []envelope.Action{
			{Kind: envelope.ReadResource, URI: "flyprof://runs/" + id + "/files", Reason: "lists the files of the run"},
		},
	})
}

func (s *Store) noArtifact(id, name, why string) error {
	return envelope.Build(envelope.NoArtifact, envelope.Facts{
		Message:  fmt.Sprintf("run %s has no file %.200q: %s", id, name, why),
		RunID:    id,
		Evidence: envelope.Evidence{Field: "path", Value: name},
		Suggestions: []envelope.Action{
			{Kind: envelope.ReadResource, URI: "flyprof://runs/" + id + "/files", Reason: "lists the files of the run"},
		},
	})
}

// File is one file of a run.
type File struct {
	// Path is relative to the run's directory, with forward slashes.
	Path string
	// Size is in bytes.
	Size int64
	// ModUnix is the time of the last change in seconds since the epoch.
	ModUnix int64
}

// maxFiles bounds a manifest: a real dispatch has up to about 4,100 wave files.
const maxFiles = 200_000

// Files lists the regular files of a run in path order. Symbolic links are not followed.
func (s *Store) Files(id string) ([]File, error) {
	if !ValidID(id) {
		return nil, s.notFound(id, "it does not have the form of a run id")
	}
	root, err := s.openRun(id)
	if err != nil {
		return nil, s.notFound(id, "the runs directory has no such run")
	}
	defer root.Close()
	var files []File
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if len(files) == maxFiles {
			return fs.SkipAll
		}
		files = append(files, File{Path: p, Size: info.Size(), ModUnix: info.ModTime().Unix()})
		return nil
	})
	return files, err
}

func limited(r io.Reader) io.Reader { return io.LimitReader(r, maxStateFile) }
