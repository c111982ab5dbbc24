package att

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// dirName is the name that att-tool gives a dispatch directory; people add a suffix when they keep several.
var dirName = regexp.MustCompile(`^ui_output_agent_(\d{1,19})_dispatch_(\d{1,19})((?:_[^/\\\x00\n]{1,200})?)$`)

// ParseDirName takes the name of a dispatch directory apart. agent is the HSA handle, which changes every run; dispatch is the
// process-wide Dispatch_Id.
func ParseDirName(base string) (agent, dispatch int64, suffix string, ok bool) {
	m := dirName.FindStringSubmatch(base)
	if m == nil {
		return 0, 0, "", false
	}
	agent, err1 := strconv.ParseInt(m[1], 10, 64)
	dispatch, err2 := strconv.ParseInt(m[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, "", false
	}
	return agent, dispatch, m[3], true
}

const (
	maxFindDepth   = 8
	maxFindEntries = 200_000
	maxFindDirs    = 4096
)

// FindDispatches lists the dispatch directories below root (or root itself), sorted by dispatch number, then path. Symbolic links are
// not followed; the search is bounded in depth and in number.
func FindDispatches(root string) ([]string, error) {
	if _, _, _, ok := ParseDirName(filepath.Base(root)); ok {
		return []string{root}, nil
	}
	f := finder{}
	if err := f.walk(root, 0); err != nil {
		return nil, err
	}
	number := func(dir string) int64 {
		_, n, _, _ := ParseDirName(filepath.Base(dir))
		return n
	}
	slices.SortFunc(f.dirs, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	return f.dirs, nil
}

type finder struct {
	dirs []string
	seen int
}

func (f *finder) walk(dir string, depth int) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if f.seen++; f.seen > maxFindEntries || len(f.dirs) >= maxFindDirs {
				return fmt.Errorf("%s holds more than %d files or %d dispatch directories", dir, maxFindEntries, maxFindDirs)
			}
			if !e.IsDir() {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if _, _, _, ok := ParseDirName(e.Name()); ok {
				f.dirs = append(f.dirs, path)
				continue
			}
			if depth < maxFindDepth {
				if err := f.walk(path, depth+1); err != nil && !errors.Is(err, fs.ErrPermission) {
					return err
				}
			}
		}
		if err != nil {
			break // io.EOF, or a directory that cannot be read further
		}
	}
	return nil
}
