package jail

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

func TestResolve(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	base := t.TempDir()
	for _, dir := range []string{"in/sub", "out/secret", "inside-not"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"in/leak": "../out", "in/loop": "loop", "in/ok": "sub"} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	j := New(filepath.Join(base, "in"), "", filepath.Join(base, "absent"))
	later := New(filepath.Join(base, "later"))
	if err := os.Mkdir(filepath.Join(base, "later"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := later.Resolve("path", filepath.Join(base, "later")); err != nil {
		t.Errorf("a directory that was made after the jail: %v", err)
	}
	for path, want := range map[string]envelope.Code{
		"in": "", "in/sub": "", "in/ok": "", "in/sub/../sub": "",
		"in/absent": envelope.BadArgs, "out": envelope.PathNotAllowed, "in/../out/secret": envelope.PathNotAllowed,
		"in/leak": envelope.PathNotAllowed, "in/leak/secret": envelope.PathNotAllowed, "in/leak/absent": envelope.PathNotAllowed,
		"in/loop": envelope.PathNotAllowed, "inside-not": envelope.PathNotAllowed, "in/a\x00b": envelope.PathNotAllowed, "absent": envelope.PathNotAllowed,
	} {
		_, err := j.Resolve("worktree", base+"/"+path)
		if got := envelope.CodeOf(err); got != want {
			t.Errorf("%s: code %q, want %q (%v)", path, got, want, err)
		}
	}
}
