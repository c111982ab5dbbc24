package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestPytestIsConfined: a test run cannot be made to load code from elsewhere, or to write or remove files, by its arguments.
func TestPytestIsConfined(t *testing.T) {
	tree := checkout(t, flyFiles)
	away := t.TempDir()
	outside := filepath.Join(away, "test_evil.py")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tree.Root(), "tests", "linked")
	if err := os.Symlink(away, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	up, err := filepath.Rel(tree.Root(), outside)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tree.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conv, err := l.Find("conv3d_implicit")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		ok   bool
	}{
		{"", true},
		{"-q", true},
		{"-qxvs", true},
		{"-k forward and not huge", true},
		{"-kforward", true},
		{"-xk|a or b", true},
		{"-m|not large_shape", true},
		{"-rA", true},
		{"-p|no:randomly", true},
		{"-pno:randomly", true},
		{"--maxfail=1", true},
		{"--tb=short", true},
		{"--size=8|--layout|nt", true},
		{"tests/kernels/test_softmax.py::test_all", true},
		{"tests/kernels", true},
		{"absent.py", true},
		{"--", true},
		{"-|x", true},
		{outside, false},
		{outside + "::test_x", false},
		{up, false},
		{"tests/linked/test_evil.py", false},
		{"tests/linked", false},
		{"..", false},
		{"/", false},
		{"-q|--|" + outside, false},
		{"-k|a|" + outside, false},
		{"-p|evil", false},
		{"-pevil", false},
		{"-qp|evil", false},
		{"-p", false},
		{"-c|/x.ini", false},
		{"-c/x.ini", false},
		{"-o|python_files=*", false},
		{"-W|error::evil.Class", false},
		{"-n|4", false},
		{"@/tmp/args", false},
		{"--basetemp=/x", false},
		{"--basetemp|/x", false},
		{"--base=/x", false},
		{"--rootdir=/x", false},
		{"--pyargs|os", false},
		{"--override-ini=x=y", false},
		{"--junitxml=/x", false},
		{"--cov-config=/x", false},
		{"--pdbcls=evil:X", false},
		{"--log-file=/x", false},
	} {
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		inv, err := tree.Invocation(conv, InvocationRequest{Args: args})
		if c.ok != (err == nil) || !c.ok && envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%q: %v", args, err)
		}
		if err == nil && !strings.HasSuffix(strings.Join(inv.Argv, "|"), strings.Join(append([]string{"test_conv3d_implicit.py::test_forward"}, args...), "|")) {
			t.Errorf("%q became %q", args, inv.Argv)
		}
		if _, err := tree.CustomInvocation("pytest tests/kernels/test_softmax.py", tree.Root(), args); c.ok != (err == nil) {
			t.Errorf("an own command with %q: %v", args, err)
		}
	}
	// A script's arguments are the script's business.
	if _, err := tree.CustomInvocation("python tests/kernels/test_softmax.py -c /x.ini", tree.Root(), []string{outside}); err != nil {
		t.Error(err)
	}
}

// FuzzConfined: whatever is given, no word that leads to the file outside goes through, and nothing panics.
func FuzzConfined(f *testing.F) {
	for _, seed := range []string{"-q\n-k\nx", "-xpno:y", "--tb=short", "a/b.py::c", "-\n@x", "-p"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := append(strings.Split(text, "\n"), "/outside.py")
		judged := false
		why := confined(words, func(name string) string {
			if name == "/outside.py" {
				judged = true
				return "outside"
			}
			return ""
		})
		// The last word is refused, unless the one before it is an option that takes it as its value.
		before := words[max(0, len(words)-2)]
		takes := len(before) > 1 && before[0] == '-' && before[1] != '-' && strings.ContainsAny(before[len(before)-1:], pytestValues)
		if why == "" && !judged && !takes {
			t.Fatalf("%q goes through", words)
		}
	})
}
