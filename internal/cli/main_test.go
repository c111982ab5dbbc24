package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestStandIn(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		want string
		args []string
	}{
		"verb":         {[]string{"/opt/flyprof-mcp", "sim-exec", "rocprofv3", "--version"}, "rocprofv3", []string{"--version"}},
		"program name": {[]string{"/opt/bin/rocminfo"}, "rocminfo", []string{}},
		"server":       {[]string{"/opt/flyprof-mcp", "--simulate"}, "", nil},
		"verb alone":   {[]string{"/opt/flyprof-mcp", "sim-exec"}, "", nil},
		"nothing":      {nil, "", nil},
	} {
		got, args, ok := standIn(c.argv)
		if got != c.want || ok != (c.want != "") || !slices.Equal(args, c.args) {
			t.Errorf("%s: %q %q %v", name, got, args, ok)
		}
	}
}

// TestDemoWorktree: the demo checkout is written once and found again; a changed one is not silently used.
func TestDemoWorktree(t *testing.T) {
	runs := t.TempDir()
	first, err := demoWorktree(runs)
	if err != nil {
		t.Fatal(err)
	}
	second, err := demoWorktree(runs)
	if err != nil || second != first {
		t.Fatalf("%s, then %s, %v", first, second, err)
	}
	if left, _ := filepath.Glob(filepath.Join(runs, ".demo", ".new-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := os.WriteFile(filepath.Join(first, "tests", "kernels", "test_softmax.py"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if dir, err := demoWorktree(runs); err == nil {
		t.Errorf("a changed demo worktree is used: %s", dir)
	}
}

func TestSettingsFromFlagsAndEnvironment(t *testing.T) {
	t.Setenv("FLYPROF_GPU", "3")
	t.Setenv("FLYPROF_RUNS_DIR", "/somewhere")
	c := newCaller(Program{Name: "flyprof-mcp"}, os.Stdout, os.Stderr)
	if err := c.command().ParseFlags([]string{"--gpu", "5", "--allow-path", "/a", "--allow-path", "/b", "--simulate"}); err != nil {
		t.Fatal(err)
	}
	got, err := c.flags.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got.GPU != 5 || got.RunsDir != "/somewhere" || !slices.Equal(got.AllowPath, []string{"/a", "/b"}) || got.Simulate != "gfx950" {
		t.Errorf("%+v", got)
	}
}

// TestMain keeps the configuration file of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	if err := os.Setenv("FLYPROF_CONFIG", os.DevNull); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
