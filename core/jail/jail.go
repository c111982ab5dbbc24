// Package jail decides which directories of this host a caller may name.
package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Jail is a set of directories. Paths inside any of them are allowed, after all symbolic links are resolved.
type Jail struct{ roots []string }

// New makes a jail of the directories; empty names are passed over. A directory that is made later counts from then on: links
// in its own path are resolved at each look.
func New(dirs ...string) Jail {
	var j Jail
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if abs, err := filepath.Abs(dir); err == nil {
			j.roots = append(j.roots, abs)
		}
	}
	return j
}

// Resolve gives the real path of an allowed path. PATH_NOT_ALLOWED names the argument and the setting that would allow it;
// a path that does not exist answers the same outside the jail, so that nothing is learnt about other directories.
func (j Jail) Resolve(field, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", j.refuse(field, path, "it holds a NUL byte")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", j.refuse(field, path, "it cannot be made absolute")
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) && j.holds(existing(abs)) {
		return "", envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("%s names %q, which does not exist", field, path),
			Evidence: envelope.Evidence{Field: field, Value: path, Allowed: "an existing path"},
		})
	}
	if err != nil || !j.holds(real) {
		return "", j.refuse(field, path, "it lies outside the allowed directories")
	}
	return real, nil
}

// existing is the real path of the longest part of path that exists.
func existing(path string) string {
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		up := filepath.Dir(path)
		if up == path {
			return path
		}
		path = up
	}
}

func (j Jail) holds(real string) bool {
	for _, root := range j.roots {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(root, real)
		if err == nil && (rel == "." || filepath.IsLocal(rel)) {
			return true
		}
	}
	return false
}

func (j Jail) refuse(field, path, why string) error {
	return envelope.Build(envelope.PathNotAllowed, envelope.Facts{
		Message: fmt.Sprintf("%s names %.300q: %s", field, path, why),
		Evidence: envelope.Evidence{
			Field: field, Value: path, Allowed: "a path inside " + strings.Join(j.roots, " or "), Setting: "--allow-path (FLYPROF_ALLOW_PATH)",
		},
	})
}
