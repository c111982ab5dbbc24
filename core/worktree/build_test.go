package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

const listSep = string(os.PathListSeparator)

func getenvOf(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

// built are the files of a finished build below prefix, made of the given version's sources.
func built(prefix, version string) map[string]string {
	return map[string]string{
		prefix + "/flydsl/__init__.py":     "__version__ = \"" + version + "\"\n",
		prefix + "/flydsl/compiler/jit.py": "JIT = 1\n",
		prefix + "/flydsl/_mlir/ir.py":     "",
		prefix + "/flydsl/_mlir/_mlir_libs/_mlirDialectsFly.cpython-312-x86_64-linux-gnu.so": "x",
		prefix + "/flydsl/_mlir/_mlir_libs/libfly_jit_runtime.so":                            "x",
	}
}

// with joins file sets; a file whose text is "-" is left out.
func with(sets ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, s := range sets {
		maps.Copy(out, s)
	}
	maps.DeleteFunc(out, func(_, text string) bool { return text == "-" })
	return out
}

var sources032 = map[string]string{"kernels/__init__.py": "", "python/flydsl/__init__.py": "__version__ = \"0.3.2\"\n", "python/flydsl/compiler/jit.py": "JIT = 1\n"}

const (
	fly     = "build-fly/python_packages"
	libsDir = "/flydsl/_mlir/_mlir_libs"
)

func TestBuild(t *testing.T) {
	jit := libsDir + "/libfly_jit_runtime.so"
	ext := libsDir + "/_mlirDialectsFly.cpython-312-x86_64-linux-gnu.so"
	cases := []struct {
		name  string
		files map[string]string
		env   []string // ROOT stands for the worktree
		links map[string]string
		kind  BuildKind
		// path and libs are PYTHONPATH and LD_LIBRARY_PATH, entries below the worktree; "." is the worktree itself.
		path, libs []string
		warns      []string
		code       envelope.Code
		says       string
	}{
		{name: "build-fly", files: with(sources032, built(fly, "0.3.2")), kind: BuildFly, path: []string{fly, "."}, libs: []string{fly + libsDir}},
		{name: "inherited paths stay behind, each once", files: with(sources032, built(fly, "0.3.2")), kind: BuildFly,
			env:  []string{"PYTHONPATH", "ROOT/other" + listSep + listSep + "ROOT", "LD_LIBRARY_PATH", listSep + "ROOT/lib"},
			path: []string{fly, ".", "other"}, libs: []string{fly + libsDir, "lib"}},
		{name: "FLY_BUILD_DIR beats build-fly, which stays behind for conftest", files: with(sources032, built(fly, "0.3.2"), built("mine/python_packages", "0.3.2")),
			env: []string{"FLY_BUILD_DIR", "mine"}, kind: BuildDirEnv, path: []string{"mine/python_packages", ".", fly}, libs: []string{"mine/python_packages" + libsDir}},
		{name: "absolute FLY_BUILD_DIR", files: with(sources032, built("mine/python_packages", "0.3.2")), env: []string{"FLY_BUILD_DIR", "ROOT/mine"},
			kind: BuildDirEnv, path: []string{"mine/python_packages", "."}, libs: []string{"mine/python_packages" + libsDir}},
		{name: "FLY_BUILD_DIR is not there", files: with(sources032, built(fly, "0.3.2")), env: []string{"FLY_BUILD_DIR", "gone"},
			code: envelope.BuildTreeMissing, says: "gone"},
		{name: "FLY_BUILD_DIR is not finished", files: with(sources032, built("mine/python_packages", "0.3.2"), map[string]string{"mine/python_packages" + jit: "-"}),
			env: []string{"FLY_BUILD_DIR", "mine"}, code: envelope.BuildTreeBroken, says: "lacks flydsl/_mlir/_mlir_libs/libfly_jit_runtime.so"},
		{name: "sources only", files: sources032, kind: BuildInstalled, path: []string{"."}, warns: []string{"BUILD_NOT_SEEN"}},
		{name: "interrupted build", files: with(sources032, built(fly, "0.3.2"), map[string]string{fly + ext: "-"}), kind: BuildInstalled, path: []string{"."},
			warns: []string{"BUILD_TREE_INCOMPLETE", "BUILD_NOT_SEEN"}, says: "_mlirDialectsFly*.so"},
		{name: "empty python_packages", files: with(sources032, map[string]string{fly + "/x": ""}), kind: BuildInstalled, path: []string{"."},
			warns: []string{"BUILD_TREE_INCOMPLETE", "BUILD_NOT_SEEN"}, says: "flydsl/__init__.py"},
		{name: "wheel in a virtual environment", files: with(sources032, built(".venv/lib/python3.12/site-packages", "0.3.2")), kind: BuildInstalled, path: []string{"."},
			warns: []string{"BUILD_OUTSIDE_WORKTREE"}, says: "site-packages"},
		{name: "wheel beside an interrupted build", files: with(sources032, map[string]string{fly + "/flydsl/__init__.py": ""}, built("v/lib/python3.11/site-packages", "0.3.1")),
			env: []string{"VIRTUAL_ENV", "ROOT/v"}, kind: BuildInstalled, path: []string{"."}, warns: []string{"BUILD_TREE_INCOMPLETE", "BUILD_TREE_STALE", "BUILD_OUTSIDE_WORKTREE"}},
		{name: "older version", files: with(sources032, built(fly, "0.3.1")), kind: BuildFly, path: []string{fly, "."}, libs: []string{fly + libsDir},
			warns: []string{"BUILD_TREE_STALE"}, says: "the build is 0.3.1 and the sources are 0.3.2"},
		{name: "edited after the build", files: with(sources032, built(fly, "0.3.2"), map[string]string{"python/flydsl/compiler/jit.py": "JIT = 2\n", "python/flydsl/new.py": ""}),
			kind: BuildFly, path: []string{fly, "."}, libs: []string{fly + libsDir}, warns: []string{"BUILD_TREE_STALE"}, says: "2 Python files differ from the build's copy, such as python/flydsl/compiler/jit.py"},
		{name: "FLIR", files: map[string]string{"kernels/a.py": "", "flydsl/src/flydsl/__init__.py": "", ".flir/build/python_packages/flydsl/_mlir/_mlir_libs/_flirPasses.so": "",
			".flir/build/python_packages/flydsl/_mlir/_mlir_libs/libflir_jit_runtime.so": ""}, kind: BuildFLIR,
			path: []string{".flir/build/python_packages/flydsl", "flydsl/src", "."}, libs: []string{".flir/build/python_packages/flydsl/_mlir/_mlir_libs"}},
		{name: "editable", files: with(sources032, map[string]string{"elsewhere/x": ""}, built("elsewhere", "0.3.2")), links: map[string]string{"python/flydsl/_mlir": "../../elsewhere/flydsl/_mlir"},
			kind: BuildEditable, path: []string{"python", "."}, libs: []string{"python" + libsDir}},
		{name: "editable whose link dangles", files: sources032, links: map[string]string{"python/flydsl/_mlir": "../../build-fly/python_packages/flydsl/_mlir"},
			kind: BuildInstalled, path: []string{"."}, warns: []string{"BUILD_TREE_INCOMPLETE", "BUILD_NOT_SEEN"}},
		{name: "build-fly is a link to nowhere", files: sources032, links: map[string]string{"build-fly": "../gone"}, kind: BuildInstalled, path: []string{"."},
			warns: []string{"BUILD_TREE_INCOMPLETE", "BUILD_NOT_SEEN"}, says: "what its link points to"},
		{name: "build-fly shared by a link", files: sources032, links: map[string]string{"build-fly": "../shared"}, kind: BuildFly, path: []string{fly, "."}, libs: []string{fly + libsDir},
			warns: []string{"BUILD_OUTSIDE_WORKTREE"}, says: "shared"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.links != nil && runtime.GOOS == "windows" {
				t.Skip("links take rights on Windows")
			}
			base := t.TempDir()
			root := filepath.Join(base, "wt")
			if slices.Contains(c.warns, "BUILD_NOT_SEEN") && (&Tree{root: root}).installed(getenvOf()).Compiled {
				t.Skip("FlyDSL is installed on this host")
			}
			for name, text := range c.files {
				putFile(t, root, name, text)
			}
			for name, text := range built("shared/python_packages", "0.3.2") {
				putFile(t, base, name, text)
			}
			for name, to := range c.links {
				if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
			tree := openTree(t, root)
			var env []string
			for _, e := range c.env {
				env = append(env, strings.ReplaceAll(e, "ROOT", tree.Root()))
			}
			b, warnings, err := tree.Build(getenvOf(env...))
			if c.code != "" {
				e := envelope.As(err)
				if err == nil || e.Code != c.code || !strings.Contains(e.Message, c.says) || e.Evidence.Field != "FLY_BUILD_DIR" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"PYTHONPATH=" + under(tree.Root(), c.path)}
			if c.libs != nil {
				want = append(want, "LD_LIBRARY_PATH="+under(tree.Root(), c.libs))
			}
			if b.Kind != c.kind || !slices.Equal(b.Env(), want) {
				t.Errorf("kind %s\n env %q\nwant %q", b.Kind, b.Env(), want)
			}
			var codes, texts []string
			for _, w := range warnings {
				codes, texts = append(codes, w.Code), append(texts, w.Message)
			}
			if !slices.Equal(codes, c.warns) || !strings.Contains(strings.Join(texts, "\n"), c.says) {
				t.Errorf("warnings %q %q, want %q saying %q", codes, texts, c.warns, c.says)
			}
		})
	}
}

func under(root string, names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, filepath.Join(root, filepath.FromSlash(name)))
	}
	return strings.Join(out, listSep)
}

func TestDemoCheckoutIsBuilt(t *testing.T) {
	dir := t.TempDir()
	if err := sim.WriteDemoWorktree(dir); err != nil {
		t.Fatal(err)
	}
	b, warnings, err := openTree(t, dir).Build(getenvOf())
	if err != nil || len(warnings) != 0 || b.Kind != BuildFly || b.Version == "" || b.Version != b.SourceVersion {
		t.Errorf("%+v %v %v", b, warnings, err)
	}
}

// A rebuild changes the stamp, so that what failed before it is tried again.
func TestBuildStamp(t *testing.T) {
	root := t.TempDir()
	for name, text := range with(sources032, built(fly, "0.3.2")) {
		putFile(t, root, name, text)
	}
	tree := openTree(t, root)
	stamp := func() string {
		b, _, err := tree.Build(getenvOf())
		if err != nil {
			t.Fatal(err)
		}
		return b.Stamp()
	}
	before := stamp()
	if again := stamp(); again != before {
		t.Errorf("%q became %q", before, again)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(root, fly+libsDir, "libfly_jit_runtime.so"), later, later); err != nil {
		t.Fatal(err)
	}
	if stamp() == before {
		t.Error("a rebuild left the stamp as it was")
	}
}

func TestJudgeProbe(t *testing.T) {
	root := t.TempDir()
	for name, text := range with(sources032, built(fly, "0.3.2")) {
		putFile(t, root, name, text)
	}
	tree := openTree(t, root)
	b, _, err := tree.Build(getenvOf())
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.ToSlash(filepath.Join(tree.Root(), fly, "flydsl", "__init__.py"))
	away := filepath.ToSlash(filepath.Join(t.TempDir(), "flydsl", "__init__.py"))
	trace := "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
	cases := []struct {
		name, stdout, stderr string
		exit                 int
		code                 envelope.Code
		module               string
		warns                []string
	}{
		{"works", `{"v": "0.3.2", "f": "` + own + `", "torch": true}`, "", 0, "", "", nil},
		{"noise around", "loading\n{\"v\": \"0.3.2\", \"f\": \"" + own + "\", \"torch\": true}\n{bye\n", "a warning", 0, "", "", nil},
		{"another checkout's", `{"v": "0.3.2", "f": "` + away + `", "torch": true}`, "", 0, "", "", []string{"BUILD_OUTSIDE_WORKTREE"}},
		{"another version", `{"v": "0.3.1", "f": "` + own + `", "torch": true}`, "", 0, "", "", []string{"BUILD_TREE_STALE"}},
		{"no torch", `{"v": "0.3.2", "f": "` + own + `", "torch": false}`, "", 0, envelope.DependencyMissing, "torch", nil},
		{"no answer", "hello\n", "", 0, envelope.BuildTreeBroken, "", nil},
		{"no FlyDSL", "", trace + "ModuleNotFoundError: No module named 'flydsl'\n", 1, envelope.BuildTreeMissing, "", nil},
		{"not compiled", "", trace + "ModuleNotFoundError: No module named 'flydsl._mlir'\n", 1, envelope.BuildTreeBroken, "", nil},
		{"library missing", "", trace + "ImportError: libFlyPythonCAPI.so.23.0git: cannot open shared object file: No such file or directory\n", 1, envelope.BuildTreeBroken, "", nil},
		{"runtime missing", "", trace + "FileNotFoundError: Required JIT runtime library not found: /x/libfly_jit_runtime.so\nPlease rebuild the project.\n", 1, envelope.BuildTreeBroken, "", nil},
		{"API drift", "", trace + "ImportError: cannot import name 'get_warp_size' from 'flydsl.runtime.device' (/x/device.py)\n", 1, envelope.BuildTreeBroken, "", nil},
		{"another package", "", trace + "ModuleNotFoundError: No module named 'numpy'\n", 1, envelope.DependencyMissing, "numpy", nil},
		{"what was raised last decides", "", trace + "ModuleNotFoundError: No module named 'flydsl'\n\nDuring handling of the above exception, another exception occurred:\n\n" + trace +
			"ModuleNotFoundError: No module named 'numpy'\n", 1, envelope.DependencyMissing, "numpy", nil},
		{"crash", "", "", -11, envelope.BuildTreeBroken, "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := tree.JudgeProbe(b, []byte(c.stdout), []byte(c.stderr), c.exit)
			var warns []string
			for _, w := range got.Warnings {
				warns = append(warns, w.Code)
			}
			if got.Code != c.code || got.Module != c.module || !slices.Equal(warns, c.warns) || (c.code != "" && got.Message == "") {
				t.Errorf("%+v", got)
			}
		})
	}
	argv := b.ProbeArgv([]string{"env", "python3"})
	if len(argv) != 4 || argv[1] != "python3" || argv[2] != "-c" || !strings.Contains(argv[3], "from flydsl._mlir import ir") {
		t.Errorf("%q", argv)
	}
}

func FuzzJudgeProbe(f *testing.F) {
	f.Add([]byte(`{"v": "0.3.2", "f": "/x/flydsl/__init__.py", "torch": true}`), []byte("ModuleNotFoundError: No module named 'flydsl'"), 0)
	f.Add([]byte("{\"v\": 3}"), []byte("ImportError: x\n\xff"), -9)
	tree := &Tree{root: f.TempDir()}
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, exit int) {
		got := tree.JudgeProbe(Build{}, stdout, stderr, exit)
		if got.Code != "" {
			if _, ok := envelope.Lookup(got.Code); !ok || got.Message == "" {
				t.Errorf("%+v", got)
			}
		} else if !got.Torch || exit != 0 {
			t.Errorf("taken for good: %+v", got)
		}
	})
}
