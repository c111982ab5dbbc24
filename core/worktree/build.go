package worktree

import (
	"bytes"

	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// BuildKind says where a compiled FlyDSL comes from.
type BuildKind string

// The kinds, in the order in which they are tried.
const (
	BuildDirEnv    BuildKind = "FLY_BUILD_DIR" // $FLY_BUILD_DIR/python_packages
	BuildFly       BuildKind = "build-fly"     // build-fly/python_packages, the default of scripts/build.sh
	BuildFLIR      BuildKind = "flir"          // .flir/build or build of the checkouts before March 2026
	BuildEditable  BuildKind = "editable"      // python/flydsl, whose _mlir is a link to the compiled part
	BuildInstalled BuildKind = "installed"     // FlyDSL comes with the interpreter: a wheel
)

// BuildCandidate is one place that a compiled FlyDSL may be imported from, judged by its files alone.
type BuildCandidate struct {
	Kind BuildKind `json:"kind"`
	// Path is the directory that holds the package; empty where only the interpreter can tell.
	Path string `json:"path,omitempty"`
	// PythonPath are the entries that PYTHONPATH must begin with, LibraryPath the one of LD_LIBRARY_PATH (empty for none).
	PythonPath  []string `json:"pythonpath"`
	LibraryPath string   `json:"library_path,omitempty"`
	// Exists: something is there. Compiled: its compiled part is there too.
	Exists   bool `json:"exists"`
	Compiled bool `json:"compiled"`
	// Lacks says what a build leaves and is not there.
	Lacks string `json:"lacks,omitempty"`
	// Outside is the real directory of a build that is not inside the worktree, such as one shared through a link.
	Outside string `json:"outside,omitempty"`
	// Version is __version__ of the package; SourceVersion that of the worktree's python/flydsl. Empty where unknown.
	Version       string `json:"version,omitempty"`
	SourceVersion string `json:"source_version,omitempty"`
	// Differs are Python files of python/flydsl whose copy in the build is another, at most a few; DiffersN counts all.
	Differs  []string `json:"differs,omitempty"`
	DiffersN int      `json:"differs_count,omitempty"`
	// Changed is when the compiled part was last written; zero where there is none.
	Changed time.Time `json:"changed,omitzero"`
}

// Stale says why the build does not belong to the worktree's sources; empty where no file says so. That compiled code is
// older than C++ sources cannot be seen here.
func (c BuildCandidate) Stale() string {
	switch {
	case c.Version != "" && c.SourceVersion != "" && c.Version != c.SourceVersion:
		return fmt.Sprintf("the build is %s and the sources are %s", c.Version, c.SourceVersion)
	case c.DiffersN > 0:
		return fmt.Sprintf("%d Python files differ from the build's copy, such as %s", c.DiffersN, c.Differs[0])
	}
	return ""
}

// Build is the compiled FlyDSL that a capture uses.
type Build struct {
	BuildCandidate
	env []string
}

// Env are the variables for the target interpreter as K=V: PYTHONPATH with the build and the worktree in front of what was
// inherited, and LD_LIBRARY_PATH where the build has libraries of its own.
func (b Build) Env() []string { return slices.Clone(b.env) }

// Stamp changes when the build does: place, version and time of its compiled part.
func (b Build) Stamp() string {
	stamp := fmt.Sprintf("%s %s %s", b.Kind, b.Path, b.Version)
	if !b.Changed.IsZero() {
		stamp += " " + b.Changed.UTC().Format(time.RFC3339Nano)
	}
	return stamp
}

// place is where a kind of build leaves its parts, relative to its package root.
type place struct {
	pkg  string // the flydsl package, "" where the sources stay in the worktree
	libs string // the compiled part
	must string // pattern of the extension without which nothing works
	jit  string // the library that the compiler loads at its first kernel
}

var (
	flyPlace  = place{pkg: "flydsl", libs: "flydsl/_mlir/_mlir_libs", must: "_mlirDialectsFly*.so", jit: "libfly_jit_runtime.so"}
	flirPlace = place{libs: "_mlir/_mlir_libs", must: "_flirPasses*.so", jit: "libflir_jit_runtime.so"}
)

// BuildCandidates judges every place in the order in which they are tried: $FLY_BUILD_DIR, build-fly, the older layouts, an
// editable installation, and what comes with the interpreter (always there, as its files are not known). A relative
// FLY_BUILD_DIR is taken from the worktree, as its scripts do.
func (t *Tree) BuildCandidates(getenv func(string) string) []BuildCandidate {
	var out []BuildCandidate
	if dir := getenv("FLY_BUILD_DIR"); usableDir(dir) {
		out = append(out, t.candidate(BuildDirEnv, joinPath(joinPath(t.root, dir), "python_packages"), flyPlace))
	}
	out = append(out, t.candidate(BuildFly, joinPath(t.root, "build-fly/python_packages"), flyPlace))
	for _, dir := range []string{".flir/build", "build"} {
		out = append(out, t.candidate(BuildFLIR, joinPath(t.root, dir+"/python_packages/flydsl"), flirPlace))
	}
	editable := t.candidate(BuildEditable, joinPath(t.root, "python"), flyPlace)
	editable.Exists = editable.Exists && there(joinPath(t.root, "python/flydsl/_mlir"))
	out = append(out, editable)
	return append(out, t.installed(getenv))
}

// usableDir tells a directory that PYTHONPATH can hold.
func usableDir(dir string) bool {
	return dir != "" && len(dir) <= 4096 && !strings.ContainsRune(dir, 0) && !strings.ContainsRune(dir, os.PathListSeparator)
}

// there is true of anything with that name, a dangling link included.
func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func (t *Tree) candidate(kind BuildKind, dir string, p place) BuildCandidate {
	c := BuildCandidate{Kind: kind, Path: dir, PythonPath: []string{dir, t.root}}
	if p == flirPlace {
		c.PythonPath = slices.Insert(c.PythonPath, 1, joinPath(t.root, "flydsl/src"))
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		c.Exists = t.leftBehind(dir)
		c.Lacks = "the directory"
		if c.Exists {
			c.Lacks = "what its link points to"
		}
		return c
	}
	c.Exists = true
	if !inside(t.root, real) {
		c.Outside = real
	}
	libs := joinPath(dir, p.libs)
	c.Lacks = p.lacks(dir, libs)
	c.Compiled = c.Lacks == ""
	if c.Compiled {
		c.LibraryPath = libs
		c.Changed = newest(libs)
		// python/flydsl/_mlir and build-fly may be links to a build that several checkouts share.
		if real, err := filepath.EvalSymlinks(libs); err == nil && !inside(t.root, real) {
			c.Outside = real
		}
	}
	if p.pkg == "" {
		return c
	}
	source := joinPath(t.root, "python/flydsl")
	c.Version, c.SourceVersion = packageVersion(joinPath(dir, p.pkg)), packageVersion(source)
	if c.Compiled && kind != BuildEditable {
		c.Differs, c.DiffersN = differing(source, joinPath(dir, p.pkg))
	}
	return c
}

// leftBehind tells a link on the way to dir that leads nowhere.
func (t *Tree) leftBehind(dir string) bool {
	for ; len(dir) > len(t.root); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil {
			return info.Mode()&fs.ModeSymlink != 0
		}
	}
	return false
}

func inside(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// lacks names the first part that a finished build has and this one has not.
func (p place) lacks(dir, libs string) string {
	if p.pkg != "" && !isRegular(joinPath(dir, p.pkg+"/__init__.py")) {
		return p.pkg + "/__init__.py"
	}
	if _, err := os.Stat(libs); err != nil {
		return p.libs
	}
	if names, _ := filepath.Glob(joinPath(quoteMeta(libs), p.must)); len(names) == 0 {
		return p.libs + "/" + p.must
	}
	if !isRegular(joinPath(libs, p.jit)) {
		return p.libs + "/" + p.jit
	}
	return ""
}

// quoteMeta keeps a directory's own characters from being taken for a pattern. Windows knows no escape; its names rarely
// hold any.
func quoteMeta(dir string) string {
	if filepath.Separator == '\\' {
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func isRegular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// maxLibs bounds the files of _mlir_libs that are looked at; a build has about 60.
const maxLibs = 4096

// newest is the time of the youngest library.
func newest(dir string) time.Time {
	var last time.Time
	f, err := os.Open(dir)
	if err != nil {
		return last
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxLibs)
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".so") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

var reVersion = regexp.MustCompile(`(?m)^__version__\s*(?::\s*\w+\s*)?=\s*["']([\w.+!-]{1,64})["']`)

func packageVersion(dir string) string {
	raw, _ := readRegular(joinPath(dir, "__init__.py"), maxFileBytes)
	if m := reVersion.FindSubmatch(raw); m != nil {
		return string(m[1])
	}
	return ""
}

const (
	maxCompared = 5000 // files; python/flydsl has about 130
	maxDiffers  = 5
)

// differing compares the Python sources with the build's copies by content: times say little, as checkouts set them anew.
func differing(source, built string) (names []string, count int) {
	seen, bytesLeft := 0, int64(maxSourceBytes)
	_ = filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxCompared || bytesLeft < 0 {
			return fs.SkipAll
		}
		switch {
		case err != nil || d.Type()&fs.ModeSymlink != 0:
			return nil
		case d.IsDir() && (d.Name() == "_mlir" || d.Name() == "__pycache__"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(d.Name(), ".py"):
			return nil
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return nil
		}
		raw, ok := readRegular(name, maxFileBytes)
		if !ok {
			return nil
		}
		bytesLeft -= int64(len(raw))
		if copied, ok := readRegular(filepath.Join(built, rel), maxFileBytes); !ok || !bytes.Equal(raw, copied) {
			if count++; len(names) < maxDiffers {
				names = append(names, "python/flydsl/"+filepath.ToSlash(rel))
			}
		}
		return nil
	})
	return names, count
}

// installed is what comes with the interpreter. A package that stands where virtual environments and Debian keep theirs is
// a sign; that there is none proves nothing.
func (t *Tree) installed(getenv func(string) string) BuildCandidate {
	c := BuildCandidate{Kind: BuildInstalled, PythonPath: []string{t.root}, SourceVersion: packageVersion(joinPath(t.root, "python/flydsl"))}
	var patterns []string
	for _, venv := range []string{getenv("VIRTUAL_ENV"), joinPath(t.root, ".venv"), getenv("CONDA_PREFIX"), "/opt/venv"} {
		if usableDir(venv) && filepath.IsAbs(venv) {
			patterns = append(patterns, joinPath(quoteMeta(venv), "lib/python3*/site-packages"))
		}
	}
	patterns = append(patterns, "/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages")
	for _, pattern := range patterns {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			if flyPlace.lacks(dir, joinPath(dir, flyPlace.libs)) == "" {
				c.Path, c.Outside, c.Exists, c.Compiled = dir, dir, true, true
				c.Version, c.Changed = packageVersion(joinPath(dir, "flydsl")), newest(joinPath(dir, flyPlace.libs))
				return c
			}
		}
	}
	c.Lacks = "a sign in the usual places"
	return c
}

// Build chooses the first candidate whose compiled part is there. Where none is, FlyDSL is assumed to come with the
// interpreter, as only the interpreter can tell (Probe), and a warning says so.
//
// Errors: BUILD_TREE_MISSING and BUILD_TREE_BROKEN where FLY_BUILD_DIR names a build that is not there or not finished.
func (t *Tree) Build(getenv func(string) string) (Build, []envelope.Warning, error) {
	all := t.BuildCandidates(getenv)
	if first := all[0]; first.Kind == BuildDirEnv && !first.Compiled {
		return Build{}, nil, demanded(first, getenv("FLY_BUILD_DIR"))
	}
	chosen := all[len(all)-1]
	if at := slices.IndexFunc(all, func(c BuildCandidate) bool { return c.Compiled }); at >= 0 {
		chosen = all[at]
	}
	b := Build{BuildCandidate: chosen}
	path := slices.Clone(chosen.PythonPath)
	// FlyDSL's tests/conftest.py puts build-fly before everything else unless it is on the path already. Behind the chosen
	// build it is on the path and does no harm.
	fly := joinPath(t.root, "build-fly/python_packages")
	if _, err := os.Stat(fly); err == nil && chosen.Kind != BuildFly && chosen.Kind != BuildInstalled {
		path = append(path, fly)
	}
	b.env = []string{"PYTHONPATH=" + pathList(path, getenv("PYTHONPATH"))}
	if chosen.LibraryPath != "" {
		b.env = append(b.env, "LD_LIBRARY_PATH="+pathList([]string{chosen.LibraryPath}, getenv("LD_LIBRARY_PATH")))
	}
	return b, buildWarnings(all, chosen), nil
}

// demanded is the error of a FLY_BUILD_DIR that cannot serve.
func demanded(c BuildCandidate, value string) error {
	facts := envelope.Facts{
		Evidence: envelope.Evidence{Field: "FLY_BUILD_DIR", Value: value, Path: c.Path, LookedAt: []string{c.Path},
			Setting: "FLY_BUILD_DIR in the server's environment", Needed: flyPlace.libs + "/" + flyPlace.must + " and " + flyPlace.jit},
	}
	if !c.Exists {
		facts.Message = fmt.Sprintf("FLY_BUILD_DIR names a build that is not there: %s", c.Path)
		facts.Help = "Build FlyDSL into that directory with scripts/build.sh, or unset FLY_BUILD_DIR to use build-fly or an installed FlyDSL."
		return envelope.Build(envelope.BuildTreeMissing, facts)
	}
	facts.Message = fmt.Sprintf("the build that FLY_BUILD_DIR names is not finished: %s lacks %s", c.Path, c.Lacks)
	facts.Help = "Rebuild FlyDSL into that directory with scripts/build.sh, or unset FLY_BUILD_DIR."
	return envelope.Build(envelope.BuildTreeBroken, facts)
}

// buildWarnings says what is odd about the choice.
func buildWarnings(all []BuildCandidate, chosen BuildCandidate) []envelope.Warning {
	var out []envelope.Warning
	warn := func(code, format string, a ...any) {
		out = append(out, envelope.Warning{Code: code, Message: fmt.Sprintf(format, a...)})
	}
	for _, c := range all {
		if c.Exists && !c.Compiled && c.Kind != BuildFLIR {
			warn("BUILD_TREE_INCOMPLETE", "%s was passed over: it lacks %s (an interrupted build leaves such a tree)", c.Path, c.Lacks)
		}
		if c.Kind == chosen.Kind && c.Path == chosen.Path {
			break
		}
	}
	if why := chosen.Stale(); why != "" {
		warn("BUILD_TREE_STALE", "%s: %s", chosen.Path, why)
	}
	switch {
	case chosen.Kind == BuildInstalled && !chosen.Compiled:
		warn("BUILD_NOT_SEEN", "no compiled FlyDSL was found in the worktree; the interpreter's own is assumed")
	case chosen.Outside != "":
		warn("BUILD_OUTSIDE_WORKTREE", "the compiled FlyDSL is %s, outside the worktree: it may have been built from other sources than these", chosen.Outside)
	}
	return out
}

// pathList joins directories in front of an inherited list, each once. Empty entries would mean the working directory.
func pathList(dirs []string, inherited string) string {
	for _, dir := range filepath.SplitList(inherited) {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	var out []string
	for _, dir := range dirs {
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, string(os.PathListSeparator))
}
