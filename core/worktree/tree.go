// Package worktree answers which kernels a FlyDSL checkout has and how each is run: its tests and benches, the names its
// kernels are launched under, how a shape reaches a test, and which compiled FlyDSL belongs to it.
//
// Everything is read off files; no process is started. What must be run to know (the import probe of the build, git's
// dirty flag) is described as data: the command line, and how to judge what it prints.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Bounds of one listing. A real checkout has about 320 Python files, the largest of 190 kB.
const (
	maxFileBytes  = 1 << 20   // a larger Python file is skipped with a note
	maxTotalBytes = 256 << 20 // of all files read
	maxEntries    = 100_000   // directory entries looked at
	maxPyFiles    = 20_000    // Python files kept
	maxDepth      = 16        // directories below the root
	maxNotes      = 100
)

// Tree is a FlyDSL checkout that was found to be one. It holds no open file.
type Tree struct {
	root    string // absolute, symbolic links resolved
	asked   string
	recipes []Recipe
	any     bool   // commands are not confined
	tests   string // "tests/kernels", or "" where the checkout has none
}

// Root is the checkout's directory: absolute, with symbolic links resolved.
func (t *Tree) Root() string { return t.root }

// Open looks at a directory and takes it for a worktree when it has kernels/ or tests/kernels/. WORKTREE_INVALID otherwise,
// naming what was looked at. Symbolic links in root itself are resolved once, here.
func Open(ctx context.Context, root string) (*Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if root == "" {
		return nil, invalid(root, "no worktree is set", nil)
	}
	if len(root) > 4096 || strings.ContainsRune(root, 0) {
		return nil, invalid(root, "the path is not one", nil)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, invalid(root, "the path cannot be made absolute", nil)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, invalid(root, "the directory is not there or cannot be reached", []string{root})
	}
	// PYTHONPATH cannot hold such a directory: it would be cut in two.
	if strings.ContainsRune(abs, os.PathListSeparator) {
		return nil, invalid(root, fmt.Sprintf("its path holds %q, which separates the entries of PYTHONPATH", os.PathListSeparator), nil)
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return nil, invalid(root, "it is no directory", []string{abs})
	}
	t := &Tree{root: abs, asked: root}
	looked := []string{filepath.Join(abs, "kernels"), filepath.Join(abs, "tests", "kernels")}
	r, err := os.OpenRoot(abs)
	if err != nil {
		return nil, invalid(root, "it cannot be read", looked)
	}
	defer r.Close()
	if isDir(r, "tests/kernels") {
		t.tests = "tests/kernels"
	}
	if t.tests == "" && !isDir(r, "kernels") {
		return nil, invalid(root, "it has neither kernels/ nor tests/kernels/", looked)
	}
	return t, nil
}

// WithRecipes gives the tree with the recipes of a registry.
func (t *Tree) WithRecipes(recipes []Recipe) *Tree {
	c := *t
	c.recipes = recipes
	return &c
}

// WithAnyInvocation gives the tree with commands that may be anything where any is true: any program, any argument of pytest, and all
// variables but those that this tool sets.
func (t *Tree) WithAnyInvocation(any bool) *Tree {
	c := *t
	c.any = any
	return &c
}

func isDir(r *os.Root, name string) bool {
	info, err := r.Stat(name)
	return err == nil && info.IsDir()
}

func invalid(root, why string, looked []string) error {
	return envelope.Build(envelope.WorktreeInvalid, envelope.Facts{
		Message: fmt.Sprintf("%.300q is not a FlyDSL checkout: %s", root, why),
		Evidence: envelope.Evidence{
			Field: "worktree", Value: root, Allowed: "a directory that has kernels/ or tests/kernels/",
			Setting: "--worktree (FLYPROF_WORKTREE)", LookedAt: looked,
		},
	})
}

// Note is a file that was looked at and left out, with the reason.
type Note struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// scan is the bounded look at a tree's Python files.
type scan struct {
	ctx       context.Context
	root      *os.Root
	entries   int
	bytes     int64
	paths     map[string]bool    // Python files found, relative with forward slashes
	files     map[string]*pyFile // those read
	dirs      map[string]bool
	read      int
	skipped   []Note
	moreSkips int
	truncated string // why the listing is not whole
}

func (s *scan) skip(path, why string) {
	if len(s.skipped) >= maxNotes {
		s.moreSkips++
		return
	}
	s.skipped = append(s.skipped, Note{Path: path, Why: why})
}

var errEnough = errors.New("enough")

// walk finds the Python files below dir. Directories are read in pieces, so that one with millions of entries costs what
// the bound says. Symbolic links are not followed: they may leave the tree or form loops.
func (s *scan) walk(dir string, depth int) error {
	if depth > maxDepth {
		s.skip(dir, fmt.Sprintf("more than %d directories deep", maxDepth))
		return nil
	}
	f, err := s.root.Open(dir)
	if err != nil {
		s.skip(dir, "cannot be read")
		return nil
	}
	defer f.Close()
	s.dirs[dir] = true
	var below []string
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		batch, err := f.ReadDir(512)
		for _, e := range batch {
			if s.entries++; s.entries > maxEntries {
				s.truncated = fmt.Sprintf("more than %d directory entries; %s was not read to its end", maxEntries, dir)
				return errEnough
			}
			if name := path.Join(dir, e.Name()); s.entry(name, e) {
				below = append(below, name)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			s.skip(dir, "cannot be read to its end")
			break
		}
	}
	f.Close()
	for _, name := range below {
		if err := s.walk(name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entry takes one directory entry, and tells whether it is a directory to go into.
func (s *scan) entry(name string, e fs.DirEntry) bool {
	base := e.Name()
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		if strings.HasSuffix(base, ".py") || !strings.Contains(base, ".") {
			s.skip(name, "a symbolic link; not followed")
		}
	case e.IsDir():
		return base != "__pycache__" && !strings.HasPrefix(base, ".") && base != "node_modules"
	case strings.HasSuffix(base, ".py") && e.Type().IsRegular():
		if len(s.paths) >= maxPyFiles {
			s.truncated = fmt.Sprintf("more than %d Python files", maxPyFiles)
			return false
		}
		s.paths[name] = true
	}
	return false
}

// file reads and parses one Python file, once. Nil when it cannot be had; the reason is noted.
func (s *scan) file(name string) *pyFile {
	if f, ok := s.files[name]; ok {
		return f
	}
	s.files[name] = nil
	raw, why := readBounded(s.root, name, maxFileBytes)
	switch {
	case why != "":
		s.skip(name, why)
		return nil
	case s.bytes+int64(len(raw)) > maxTotalBytes:
		s.truncated = fmt.Sprintf("more than %d MB of Python", maxTotalBytes>>20)
		return nil
	}
	s.bytes += int64(len(raw))
	s.read++
	f := parsePython(name, string(raw))
	s.files[name] = f
	return f
}

// readBounded reads a regular file inside the root, whole. why says what stood in the way.
func readBounded(root *os.Root, name string, limit int64) (raw []byte, why string) {
	// Looked at before it is opened: opening a FIFO would wait for its writer.
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "not there"
	case err != nil:
		return nil, "leads out of the worktree, or cannot be looked at"
	case !info.Mode().IsRegular():
		return nil, "no regular file"
	case info.Size() > limit:
		return nil, fmt.Sprintf("%d bytes, more than the %d that are read", info.Size(), limit)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, "cannot be opened"
	}
	defer f.Close()
	raw, err = io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, "cannot be read"
	case int64(len(raw)) > limit:
		return nil, fmt.Sprintf("more than the %d bytes that are read", limit)
	}
	return raw, ""
}
