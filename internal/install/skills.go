package install

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/skills"
)

// What became of a file of a skill.
const (
	StateNew       = "new"
	StateUpdated   = "updated"
	StateUnchanged = "unchanged"
	StateRemoved   = "removed" // this version has it no more
	StateChanged   = "changed" // by somebody else, and left as it is
)

// SkillFile is one file of a skill, by its path below the folder of the skills, with slashes.
type SkillFile struct {
	Path  string `json:"path"`
	State string `json:"state"`
	// Why says what is in the way of a file that was left as it is.
	Why string `json:"why,omitempty"`
}

// manifestName is the record of what was installed: without it, nobody could tell our files of an earlier version from those that
// somebody changed.
const manifestName = ".flyprof-skills.json"

// manifest has the hash of each file as it was installed.
type manifest struct {
	Files map[string]string `json:"files"`
}

// maxSkillFile bounds in bytes what is read of a file that is there.
const maxSkillFile = 4 << 20

// skillFolder is where the skills are put. Nothing outside of root is touched, whatever links there are.
type skillFolder struct {
	root *os.Root
	// dir is the folder relative to root; shown is how it is named to people.
	dir, shown string
}

// SkillsDir is the folder below a project or a home directory where Claude Code looks for skills.
const SkillsDir = ".claude/skills"

// Skills copies skills into base/dir, which is made where it is missing; no link leads out of base. Files that are as they were
// installed are brought up to date. FILE_CONFLICT names those that somebody changed and those that cannot be written, beside what was
// done with the others; force replaces changed ones.
func Skills(base, dir string, list []skills.Skill, force bool) ([]SkillFile, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, conflict(base, reason(err))
	}
	defer root.Close()
	f := skillFolder{root: root, dir: dir, shown: filepath.Join(base, dir)}
	if err := root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
		return nil, conflict(f.shown, reason(err))
	}
	old, err := f.manifest(force)
	if err != nil {
		return nil, err
	}
	kept := manifest{Files: map[string]string{}}
	var done []SkillFile
	for _, s := range list {
		for _, file := range s.Files {
			name := path.Join(s.Name, file.Path)
			got := f.put(name, []byte(file.Body), old.Files[name], force)
			if kept.Files[name] = hash([]byte(file.Body)); got.State == StateChanged {
				kept.Files[name] = old.Files[name]
			}
			if kept.Files[name] == "" {
				delete(kept.Files, name)
			}
			done = append(done, got)
		}
	}
	done = append(done, f.removeOld(old, kept)...)
	slices.SortFunc(done, func(a, b SkillFile) int { return strings.Compare(a.Path, b.Path) })
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return done, err
	}
	if err := f.write(manifestName, append(text, '\n')); err != nil {
		return done, conflict(filepath.Join(f.shown, manifestName), reason(err))
	}
	return done, f.conflicts(done)
}

// conflicts is FILE_CONFLICT about the files that were left as they are, nil where there is none.
func (f skillFolder) conflicts(done []SkillFile) error {
	var left, whys []string
	for _, file := range done {
		if file.State == StateChanged {
			left = append(left, file.Path)
			whys = append(whys, file.Path+" ("+file.Why+")")
		}
	}
	if len(left) == 0 {
		return nil
	}
	return envelope.Build(envelope.FileConflict, envelope.Facts{
		Message:  fmt.Sprintf("%d files below %s were left as they are: %s", len(left), f.shown, strings.Join(whys, ", ")),
		Help:     "Look at the files, then replace them with --force, or move them away.",
		Evidence: envelope.Evidence{Path: f.shown, LookedAt: left, Setting: "--force"},
	})
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (f skillFolder) at(name string) string { return filepath.FromSlash(path.Join(f.dir, name)) }

// manifest reads the record of an earlier install; none is an empty one. A record that cannot be read is in the way, without force.
func (f skillFolder) manifest(force bool) (manifest, error) {
	text, err := f.read(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{}, nil
	}
	var m manifest
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil && !force {
		return m, conflict(filepath.Join(f.shown, manifestName), reason(err))
	}
	return m, nil
}

// put brings one file up to date; installed is its hash as it was installed, empty where it was not.
func (f skillFolder) put(name string, text []byte, installed string, force bool) SkillFile {
	left := func(why string) SkillFile { return SkillFile{Path: name, State: StateChanged, Why: why} }
	have, err := f.read(name)
	state := StateUpdated
	switch {
	case errors.Is(err, fs.ErrNotExist):
		state = StateNew
	case err != nil && (!force || !errors.Is(err, errNotOurs)):
		return left(reason(err))
	case err == nil && bytes.Equal(have, text):
		return SkillFile{Path: name, State: StateUnchanged}
	case err == nil && hash(have) != installed && !force:
		return left("it is not as it was installed")
	}
	if err := f.root.MkdirAll(f.at(path.Dir(name)), 0o755); err != nil {
		return left(reason(err))
	}
	if err := f.write(name, text); err != nil {
		return left(reason(err))
	}
	return SkillFile{Path: name, State: state}
}

// removeOld removes files of an earlier version that are as they were installed. One that somebody changed is his.
func (f skillFolder) removeOld(old, kept manifest) []SkillFile {
	var done []SkillFile
	for name, installed := range old.Files {
		if _, ok := kept.Files[name]; ok || !strings.HasPrefix(name, "flyprof-") || !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		if have, err := f.read(name); err != nil || hash(have) != installed || f.root.Remove(f.at(name)) != nil {
			continue
		}
		done = append(done, SkillFile{Path: name, State: StateRemoved})
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if f.root.Remove(f.at(dir)) != nil {
				break // it has other files
			}
		}
	}
	return done
}

// errNotOurs is about something at the place of a file that is none, and that a file may replace.
var errNotOurs = errors.New("it is a symbolic link")

// read reads a file; a link is none of ours.
func (f skillFolder) read(name string) ([]byte, error) {
	info, err := f.root.Lstat(f.at(name))
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errNotOurs
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > maxSkillFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxSkillFile)
	}
	file, err := f.root.Open(f.at(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxSkillFile))
}

// write replaces a file in one step.
func (f skillFolder) write(name string, text []byte) (err error) {
	fresh := f.at(path.Join(path.Dir(name), ".new-"+rand.Text()))
	file, err := f.root.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.root.Remove(fresh)
		}
	}()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return f.root.Rename(fresh, f.at(name))
}
