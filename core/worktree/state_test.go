package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stateFiles is a checkout whose softmax test reaches five files of the tree by its imports, one of them through two.
var stateFiles = map[string]string{
	"kernels/__init__.py":            "",
	"kernels/norm/__init__.py":       "# norm\n",
	"kernels/norm/softmax_kernel.py": "from ..common import tiles\nimport math\n",
	"kernels/common/__init__.py":     "",
	"kernels/common/tiles.py":        "WIDTH = 8\n",
	"kernels/gemm/big.py":            "X = 1\n",
	"tests/kernels/test_softmax.py":  "import torch\nfrom kernels.norm.softmax_kernel import build\nfrom helper import check\n",
	"tests/kernels/helper.py":        "def check(): pass\n",
	"tests/kernels/test_gemm.py":     "from kernels.gemm import big\n",
}

func stateTree(t *testing.T) *Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range stateFiles {
		putFile(t, dir, name, text)
	}
	return openTree(t, dir)
}

func openTree(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func putFile(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var softmaxFiles = []string{"kernels/__init__.py", "kernels/common/__init__.py", "kernels/common/tiles.py", "kernels/norm/__init__.py",
	"kernels/norm/softmax_kernel.py", "tests/kernels/helper.py", "tests/kernels/test_softmax.py"}

// hashOf is the documented hash over the named files, in their order.
func hashOf(names []string) string {
	var all bytes.Buffer
	for _, name := range names {
		all.WriteString(fmt.Sprint(len(name)) + " " + fmt.Sprint(len(stateFiles[name])) + "\n" + name + stateFiles[name])
	}
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])
}

func TestSourceHashFollowsImports(t *testing.T) {
	tree := stateTree(t)
	softmax := &Kernel{Name: "softmax", TestFile: "tests/kernels/test_softmax.py"}
	got := tree.State(t.Context(), softmax)
	if got.SourceHash != hashOf(softmaxFiles) || got.Sources != len(softmaxFiles) || len(got.Notes) != 0 {
		t.Errorf("hash %s over %d files, notes %q", got.SourceHash, got.Sources, got.Notes)
	}
	if got.Commit != "" || got.Dirty != nil {
		t.Errorf("no repository, yet %+v", got)
	}
	// The kernel's own list of modules counts too.
	more := *softmax
	more.Modules = []string{"kernels.gemm.big"}
	with := slices.Clone(softmaxFiles)
	with = slices.Insert(with, 3, "kernels/gemm/big.py")
	if got := tree.State(t.Context(), &more); got.SourceHash != hashOf(with) {
		t.Errorf("with a module: %d files", got.Sources)
	}
	changes := []struct {
		name, text string
		changes    bool
	}{
		{"kernels/gemm/big.py", "X = 2\n", false},
		{"kernels/common/tiles.py", "WIDTH = 16\n", true},
		{"tests/kernels/helper.py", "def check(): return 1\n", true},
		{"kernels/common/__init__.py", "import os\n", true},
	}
	for _, c := range changes {
		before := tree.State(t.Context(), softmax).SourceHash
		putFile(t, tree.Root(), c.name, c.text)
		if after := tree.State(t.Context(), softmax).SourceHash; (after != before) != c.changes {
			t.Errorf("%s: hash changed %v, want %v", c.name, after != before, c.changes)
		}
	}
}

func TestSourceHashWithoutKernel(t *testing.T) {
	tree := stateTree(t)
	var names []string
	for name := range stateFiles {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := tree.State(t.Context(), nil); got.SourceHash != hashOf(names) || got.Sources != len(names) {
		t.Errorf("%d files of %d", got.Sources, len(names))
	}
}

func TestStateOfHostileTrees(t *testing.T) {
	tree := stateTree(t)
	k := &Kernel{TestFile: "../outside.py", Modules: []string{"..", "/etc/passwd", "..outside"}}
	putFile(t, filepath.Dir(tree.Root()), "outside.py", "secret\n")
	if got := tree.State(t.Context(), k); got.SourceHash != "" {
		t.Errorf("a file outside was hashed: %+v", got)
	}
	// An import beyond the root leads nowhere; one that names itself ends.
	putFile(t, tree.Root(), "kernels/loop.py", "from ....outside import x\nfrom . import loop\nimport kernels.loop\n")
	if got := tree.State(t.Context(), &Kernel{TestFile: "kernels/loop.py"}); got.Sources != 2 {
		t.Errorf("%+v", got)
	}
	// A file too large to read changes the hash by its size, and is noted.
	big := filepath.Join(tree.Root(), "kernels", "big.py")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	hashAt := func(size int64) State {
		if err := os.Truncate(big, size); err != nil {
			t.Fatal(err)
		}
		return tree.State(t.Context(), &Kernel{TestFile: "kernels/big.py"})
	}
	a, b := hashAt(1<<30), hashAt(1<<30+1)
	if a.SourceHash == b.SourceHash || len(a.Notes) != 1 {
		t.Errorf("%+v\n%+v", a, b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := tree.State(ctx, nil); got.Sources != 0 {
		t.Errorf("went on after its context ended: %+v", got)
	}
}

const someHash = "0123456789abcdef0123456789abcdef01234567"

func TestHeadWithoutGit(t *testing.T) {
	other := strings.Repeat("f", 40)
	cases := []struct {
		name           string
		files          map[string]string
		commit, branch string
	}{
		{"loose", map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": someHash + "\n", ".git/packed-refs": other + " refs/heads/main\n"}, someHash, "main"},
		{"packed", map[string]string{".git/HEAD": "ref: refs/heads/a/b\n", ".git/packed-refs": "# pack-refs with: peeled\n" + other + " refs/heads/a\n" + someHash + " refs/heads/a/b\n^" + other + "\n"}, someHash, "a/b"},
		{"detached", map[string]string{".git/HEAD": someHash + "\n"}, someHash, ""},
		{"SHA-256", map[string]string{".git/HEAD": strings.Repeat("ab", 32) + "\n"}, strings.Repeat("ab", 32), ""},
		{"no commit yet", map[string]string{".git/HEAD": "ref: refs/heads/main\n"}, "", "main"},
		{"symbolic reference to another", map[string]string{".git/HEAD": "ref: refs/heads/x\n", ".git/refs/heads/x": "ref: refs/heads/y\n", ".git/refs/heads/y": someHash}, someHash, "y"},
		{"a loop", map[string]string{".git/HEAD": "ref: refs/heads/x\n", ".git/refs/heads/x": "ref: refs/heads/x\n"}, "", "x"},
		{"reftable", map[string]string{".git/HEAD": "ref: refs/heads/.invalid\n"}, "", ""},
		{"out of the repository", map[string]string{".git/HEAD": "ref: refs/../../secret\n", "secret": someHash}, "", ""},
		{"no reference at all", map[string]string{".git/HEAD": "ref: HEAD\n"}, "", ""},
		{"linked worktree", map[string]string{".git": "gitdir: main/.git/worktrees/w\n", "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
			"main/.git/worktrees/w/commondir": "../..\n", "main/.git/packed-refs": someHash + " refs/heads/w\n"}, someHash, "w"},
		{"a .git of another kind", map[string]string{".git": "hello\n"}, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			putFile(t, dir, "kernels/__init__.py", "")
			for name, text := range c.files {
				putFile(t, dir, name, text)
			}
			got := openTree(t, dir).State(t.Context(), nil)
			if got.Commit != c.commit || got.Branch != c.branch || got.Dirty != nil {
				t.Errorf("commit %q branch %q dirty %v", got.Commit, got.Branch, got.Dirty)
			}
		})
	}
}

// git runs the real program; its answers are what the reader here is held to.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestStateAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, c := range []struct {
		name    string
		init    []string
		version string
	}{
		{"index 2", nil, "2"}, {"index 4", nil, "4"}, {"SHA-256", []string{"--object-format=sha256"}, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := stateTree(t)
			dir := tree.Root()
			git(t, dir, append([]string{"init", "-q"}, c.init...)...)
			putFile(t, dir, "README.md", "readme\n")
			git(t, dir, "add", ".")
			git(t, dir, "update-index", "--index-version", c.version)
			git(t, dir, "commit", "-q", "-m", "one")
			state := func() State { return tree.State(t.Context(), nil) }
			if got, want := state(), git(t, dir, "rev-parse", "HEAD"); got.Commit != want || got.Branch != "main" || got.Dirty != nil {
				t.Fatalf("%+v, want %s", got, want)
			}
			git(t, dir, "pack-refs", "--all")
			if got, want := state(), git(t, dir, "rev-parse", "HEAD"); got.Commit != want {
				t.Fatalf("packed: %q, want %s", got.Commit, want)
			}
			// Another time alone is no change, another README is none of a kernel.
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(dir, "kernels", "gemm", "big.py"), later, later); err != nil {
				t.Fatal(err)
			}
			putFile(t, dir, "README.md", "changed\n")
			if got := state(); got.Dirty != nil {
				t.Fatalf("nothing changed, yet %q", got.Changed)
			}
			// The same size, written at once: only its content tells.
			putFile(t, dir, "kernels/gemm/big.py", "X = 7\n")
			if err := os.Remove(filepath.Join(dir, "tests", "kernels", "helper.py")); err != nil {
				t.Fatal(err)
			}
			want := []string{"kernels/gemm/big.py", "tests/kernels/helper.py"}
			if got := state(); got.Dirty == nil || !*got.Dirty || !slices.Equal(got.Changed, want) {
				t.Errorf("changed %q, want %q", got.Changed, want)
			}
			git(t, dir, "update-index", "--assume-unchanged", "kernels/gemm/big.py")
			if got := state(); !slices.Equal(got.Changed, want[1:]) {
				t.Errorf("assume-unchanged: %q", got.Changed)
			}
			linked := filepath.Join(t.TempDir(), "linked")
			git(t, dir, "worktree", "add", "-q", "-b", "other", linked)
			if got, want := openTree(t, linked).State(t.Context(), nil), git(t, linked, "rev-parse", "HEAD"); got.Commit != want || got.Branch != "other" || got.Dirty != nil {
				t.Errorf("linked worktree: %+v, want %s", got, want)
			}
		})
	}
}

// index builds a version 2 index of one entry by the format's description.
func index(name, oid string, size uint32) []byte {
	b := []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01")
	words := make([]byte, 40)
	binary.BigEndian.PutUint32(words[24:], 0o100644)
	binary.BigEndian.PutUint32(words[36:], size)
	raw, _ := hex.DecodeString(oid)
	b = append(append(append(b, words...), raw...), 0, byte(len(name)))
	b = append(b, name...)
	for range 8 - (62+len(name))%8 {
		b = append(b, 0)
	}
	return b
}

func FuzzParseIndex(f *testing.F) {
	f.Add(index("kernels/a.py", someHash, 3), false)
	f.Add(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"), make([]byte, 80)...), true)
	f.Fuzz(func(t *testing.T, raw []byte, long bool) {
		n := 20
		if long {
			n = 32
		}
		entries, _ := parseIndex(raw, n)
		if len(entries)*(n+44) > len(raw) {
			t.Errorf("%d entries out of %d bytes", len(entries), len(raw))
		}
	})
}

func TestParseIndex(t *testing.T) {
	got, err := parseIndex(index("kernels/a.py", someHash, 3), 20)
	if err != nil || len(got) != 1 || got[0].path != "kernels/a.py" || got[0].oid != someHash || got[0].size != 3 || got[0].mode != 0o100644 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := parseIndex(index("kernels/a.py", someHash, 3)[:60], 20); err == nil {
		t.Error("a cut index was taken")
	}
}
