package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// State is what a result was made from, as far as files tell without starting git.
type State struct {
	// Commit is what HEAD names, in hex; empty where the worktree is no git checkout or keeps its references in a form that
	// is not read here (reftable).
	Commit string `json:"commit,omitempty"`
	// Branch is the branch of HEAD such as "main"; empty where HEAD is detached.
	Branch string `json:"branch,omitempty"`
	// Dirty is true where a tracked Python file below kernels/, tests/ or python/ is not what was last added to git's index.
	// Nil means not known to be dirty: whether the index differs from the commit takes git itself.
	Dirty *bool `json:"dirty,omitempty"`
	// Changed are the files that made Dirty true, at most a few.
	Changed []string `json:"changed,omitempty"`
	// SourceHash is the SHA-256 in hex over path and content of Sources files: the test, and whatever of kernels/ and tests/
	// it imports, through any number of imports. Without a kernel it covers all Python files of kernels/ and tests/kernels/.
	SourceHash string `json:"source_hash,omitempty"`
	Sources    int    `json:"sources"`
	// Notes say what could not be read, so that the hash does not cover it.
	Notes []string `json:"notes,omitempty"`
}

const (
	maxSources     = 4000     // files under one hash; a whole checkout has about 320
	maxSourceBytes = 64 << 20 // of all of them
	maxStateNotes  = 8
	maxChanged     = 8
)

// State reads the commit, and hashes what the kernel is made of; k is nil for an invocation of the user's own. It never
// fails: what cannot be known is left out.
func (t *Tree) State(ctx context.Context, k *Kernel) State {
	var s State
	root, err := os.OpenRoot(t.root)
	if err != nil {
		s.note("the worktree cannot be read")
		return s
	}
	defer root.Close()
	src := sources{ctx: ctx, root: root, found: map[string][]byte{}, asked: map[string]bool{}, state: &s}
	if k != nil {
		src.follow(append([]string{k.TestFile}, modulePaths(k.Modules)...))
	} else {
		src.all(t.tests)
	}
	s.SourceHash, s.Sources = src.hash(), len(src.found)
	if g, ok := openGit(t.root); ok {
		s.Commit, s.Branch = g.head()
		s.Changed = g.changed(ctx, root, len(s.Commit))
		if len(s.Changed) > 0 {
			yes := true
			s.Dirty = &yes
		}
	}
	return s
}

func (s *State) note(text string) {
	if len(s.Notes) < maxStateNotes {
		s.Notes = append(s.Notes, text)
	}
}

// sources collects the Python files that one kernel is made of.
type sources struct {
	ctx   context.Context
	root  *os.Root
	found map[string][]byte
	asked map[string]bool
	bytes int64
	state *State
}

// modulePaths turns dotted modules into the files that they may be; what is a file's path already stays.
func modulePaths(modules []string) []string {
	var out []string
	for _, m := range modules {
		if strings.HasSuffix(m, ".py") {
			out = append(out, m)
			continue
		}
		out = append(out, moduleFiles(strings.ReplaceAll(m, ".", "/"))...)
	}
	return out
}

// moduleFiles are the files that importing a module at this path runs: itself, and the packages that hold it.
func moduleFiles(at string) []string {
	out := []string{at + ".py"}
	for ; at != "." && at != "/" && at != ""; at = path.Dir(at) {
		out = append(out, at+"/__init__.py")
	}
	return out
}

// follow takes the files and everything of the worktree that they import.
func (s *sources) follow(queue []string) {
	for len(queue) > 0 && s.ctx.Err() == nil {
		name := path.Clean(strings.ReplaceAll(queue[0], `\`, "/"))
		queue = queue[1:]
		raw, ok := s.take(name)
		if !ok {
			continue
		}
		for _, imp := range parsePython(name, string(raw)).imports {
			queue = append(queue, importedFiles(name, imp)...)
		}
	}
}

// importedFiles are the places where an import of a file may lead within the worktree: from the root, which is on
// PYTHONPATH, and from the script's own directory, which Python puts first.
func importedFiles(from string, imp pyImport) []string {
	module := imp.module
	up := len(module) - len(strings.TrimLeft(module, "."))
	rest := strings.ReplaceAll(module[up:], ".", "/")
	bases := []string{"", path.Dir(from)}
	if up > 0 {
		dir := path.Dir(from)
		for range up - 1 {
			dir = path.Dir(dir)
		}
		bases = []string{dir}
	}
	var out []string
	for _, base := range bases {
		at := path.Join(base, rest)
		if at == "" || at == "." {
			continue
		}
		if rest != "" {
			out = append(out, moduleFiles(at)...)
		}
		for _, name := range imp.names {
			out = append(out, at+"/"+name+".py", at+"/"+name+"/__init__.py")
		}
	}
	return out
}

// take reads one file, once, and false where it is not there or was taken before.
func (s *sources) take(name string) ([]byte, bool) {
	if s.asked[name] || len(s.asked) > 16*maxSources || !strings.HasSuffix(name, ".py") || len(name) > 1024 {
		return nil, false
	}
	s.asked[name] = true
	info, err := s.root.Stat(name)
	if err != nil || info.IsDir() {
		return nil, false
	}
	if len(s.found) >= maxSources {
		s.state.note(fmt.Sprintf("more than %d source files", maxSources))
		return nil, false
	}
	raw, why := readBounded(s.root, name, maxFileBytes)
	if why == "" && s.bytes+int64(len(raw)) > maxSourceBytes {
		why = fmt.Sprintf("more than %d MB of sources", maxSourceBytes>>20)
	}
	if why != "" {
		// What is known of the file stands for it: another size is another hash.
		s.state.note(name + ": " + why)
		s.found[name] = fmt.Appendf(nil, "unread %d %d", info.Size(), info.ModTime().UnixNano())
		return nil, false
	}
	s.bytes += int64(len(raw))
	s.found[name] = raw
	return raw, true
}

// all takes every Python file of the kernels and their tests.
func (s *sources) all(tests string) {
	sc := &scan{ctx: s.ctx, root: s.root, paths: map[string]bool{}, files: map[string]*pyFile{}, dirs: map[string]bool{}}
	for _, dir := range []string{"kernels", tests} {
		if dir != "" && isDir(s.root, dir) {
			if err := sc.walk(dir, 0); err != nil {
				break
			}
		}
	}
	if sc.truncated != "" {
		s.state.note(sc.truncated)
	}
	names := make([]string, 0, len(sc.paths))
	for name := range sc.paths {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if s.ctx.Err() != nil {
			return
		}
		s.take(name)
	}
}

// hash is empty where nothing was found.
func (s *sources) hash() string {
	if len(s.found) == 0 {
		return ""
	}
	names := make([]string, 0, len(s.found))
	for name := range s.found {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		// Lengths keep one file's end from being taken for another's beginning.
		fmt.Fprintf(h, "%d %d\n%s", len(name), len(s.found[name]), name)
		h.Write(s.found[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// gitDir is a repository's directory. A linked worktree has its own HEAD and index in dir and shares the rest in common.
type gitDir struct{ dir, common string }

// openGit finds the repository of a checkout: .git itself, or the directory that the file .git names (gitrepository-layout).
func openGit(root string) (gitDir, bool) {
	dir := joinPath(root, ".git")
	if raw, ok := readRegular(dir, 4096); ok {
		to, ok := strings.CutPrefix(firstLine(raw), "gitdir: ")
		if !ok {
			return gitDir{}, false
		}
		dir = joinPath(root, to)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return gitDir{}, false
	}
	g := gitDir{dir: dir, common: dir}
	if raw, ok := readRegular(joinPath(dir, "commondir"), 4096); ok {
		g.common = joinPath(dir, firstLine(raw))
	}
	return g, true
}

// maxRefHops is how many symbolic references may follow each other; git allows five.
const maxRefHops = 5

// head gives the commit and branch that HEAD names.
func (g gitDir) head() (commit, branch string) {
	name := "HEAD"
	for range maxRefHops {
		text := g.reference(name)
		if isHash(text) {
			return text, branch
		}
		to, ok := strings.CutPrefix(text, "ref: ")
		to = strings.TrimSpace(to)
		if !ok || !safeRef(to) {
			return "", branch
		}
		if b, ok := strings.CutPrefix(to, "refs/heads/"); ok && b != ".invalid" {
			branch = b
		}
		name = to
	}
	return "", branch
}

// reference reads a loose reference, or its packed form.
func (g gitDir) reference(name string) string {
	for _, dir := range []string{g.dir, g.common} {
		if raw, ok := readRegular(joinPath(dir, name), 4096); ok {
			return firstLine(raw)
		}
	}
	packed, _ := readRegular(joinPath(g.common, "packed-refs"), 32<<20)
	for line := range bytes.Lines(packed) {
		hash, ref, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if ok && ref == name {
			return hash
		}
	}
	return ""
}

// safeRef keeps a reference's name inside the repository.
func safeRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && len(name) < 1024 && path.Clean(name) == name && !strings.ContainsAny(name, "\\:\x00")
}

// isHash tells SHA-1 and SHA-256 in hex.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func firstLine(raw []byte) string {
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimSpace(line)
}

// readRegular reads a regular file whole, and false where it is not one or is larger.
func readRegular(name string, limit int64) ([]byte, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, false
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	return raw, err == nil && int64(len(raw)) <= limit
}
