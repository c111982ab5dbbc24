package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// written writes a configuration file and gives its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// home is an environment in which paths have defaults and nothing is found.
func home(t *testing.T, more ...string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	kv := map[string]string{"HOME": dir, "USERPROFILE": dir, "APPDATA": filepath.Join(dir, "AppData"), "LOCALAPPDATA": filepath.Join(dir, "Local")}
	for i := 0; i < len(more); i += 2 {
		kv[more[i]] = more[i+1]
	}
	return env(kv)
}

func TestFileIsBetweenEnvironmentAndDefaults(t *testing.T) {
	t.Parallel()
	path := written(t, "# where and on what\nruns-dir = \"runs\"\ngpu = 2\nstop_grace = 7\nlog-level = \"debug\"\nallow_path = [\n  \"a\",\n  \"/abs\",\n]\ntoolsets = [\"capture\", \"analyze\"]\nread-only = true\nsimulate = true\nhttp = 8080\npython = \"python3.12\"\nrecipes = \"~/recipes.json\"\n")
	dir := filepath.Dir(path)
	getenv := home(t, "FLYPROF_STOP_GRACE", "9", "FLYPROF_GPU", "4")
	c, err := Load(getenv, flags(map[string]string{"config": path, "gpu": "5"}))
	if err != nil {
		t.Fatal(err)
	}
	abs := "/abs"
	if runtime.GOOS == "windows" {
		abs = filepath.Join(dir, abs) // no drive
	}
	if c.Config != path || c.RunsDir != filepath.Join(dir, "runs") || c.GPU != 5 || c.StopGraceS != 9 || c.LogLevel != "debug" || c.LockDir != "" || c.Seed != 1 ||
		!slices.Equal(c.AllowPath, []string{filepath.Join(dir, "a"), abs}) || !slices.Equal(c.Toolsets, []string{"capture", "analyze"}) || !c.ReadOnly ||
		c.Simulate != "gfx950" || c.HTTP != "8080" || c.Python != "python3.12" || c.Recipes != filepath.Join(getenv("HOME"), "recipes.json") {
		t.Errorf("%+v", c)
	}
	from := map[string]string{}
	for _, s := range c.InForce() {
		from[s.Flag] = s.From + "=" + strings.Join(s.Values, "|")
	}
	for flag, want := range map[string]string{
		"config": "flag=" + path, "gpu": "flag=5", "stop-grace": "environment=9", "runs-dir": path + ":2=" + c.RunsDir, "log-level": path + ":5=debug",
		"allow-path": path + ":6=" + strings.Join(c.AllowPath, "|"), "toolsets": path + ":10=capture,analyze", "read-only": path + ":11=true",
		"simulate": path + ":12=gfx950", "keep-runs": "default=false", "seed": "default=1", "worktree": "default=",
	} {
		if from[flag] != want {
			t.Errorf("%s: %s, want %s", flag, from[flag], want)
		}
	}
}

// TestDefaultFile: the file is found where the environment says, and none is no error.
func TestDefaultFile(t *testing.T) {
	t.Parallel()
	for name, variable := range map[string]string{"home": "HOME", "XDG": "XDG_CONFIG_HOME"} {
		getenv := home(t)
		if variable != "HOME" {
			getenv = home(t, variable, t.TempDir())
		}
		path := DefaultPath(getenv)
		if c, err := Load(getenv, flags(nil)); err != nil || c.Config != "" || c.GPU != 0 {
			t.Fatalf("%s: without a file: %+v, %v", name, c, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("gpu = 3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Load(getenv, flags(nil)); err != nil || c.Config != path || c.GPU != 3 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		for _, none := range []string{"", os.DevNull} {
			if c, err := Load(getenv, flags(map[string]string{"config": none})); err != nil || c.GPU != 0 {
				t.Errorf("%s, with --config=%s: %+v, %v", name, none, c, err)
			}
		}
	}
	if path := DefaultPath(env(nil)); path != "" {
		t.Errorf("without a home the file is %q", path)
	}
	if c, err := Load(env(map[string]string{"HOME": os.DevNull, "XDG_DATA_HOME": t.TempDir()}), flags(nil)); err != nil || c.Config != "" {
		t.Errorf("a home that is no directory: %+v, %v", c, err)
	}
}

// TestBadFilesAreNamed: the error names file, line, key, value and what is allowed.
func TestBadFilesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		line       int
		key, value string
		says       string
	}{
		"gpu = 1\n\nworktre = \"/x\"\n":                   {3, "worktre", "", "did you mean worktree?"},
		"gpu = 1\n[targets.far]\nhost = \"x\"\n":          {2, "targets", "", "no table"},
		"[targets]\nhost = \"x\"\n":                       {1, "targets", "", "no table"},
		"[[targets]]\nhost = \"x\"\n":                     {1, "targets", "", "no table"},
		"runs-dir = \"/a\"\nruns_dir = \"/b\"\n":          {2, "runs_dir", "", "the same setting"},
		"config = \"/x\"\n":                               {1, "config", "", "no setting"},
		"gpu = \"1\"\n":                                   {1, "gpu", "1", "a whole number"},
		"gpu = 1.5\n":                                     {1, "gpu", "1.5", "a whole number"},
		"# c\nread-only = \"yes\"\n":                      {2, "read-only", "yes", "true or false"},
		"allow-path = \"/a:/b\"\n":                        {1, "allow-path", "/a:/b", "an array of texts"},
		"allow-path = [1]\n":                              {1, "allow-path", "[1]", "an array of texts"},
		"worktree = 1979-05-27\n":                         {1, "worktree", "", "a text"},
		"worktree = [\"/a\"]\n":                           {1, "worktree", "[/a]", "a text"},
		"worktree = \"a\\u0000b\"\n":                      {1, "worktree", "", "a text"},
		"worktree = {a = 1}\n":                            {1, "worktree", "map[a:1]", "a text"},
		"worktree.a = 1\n":                                {1, "worktree", "map[a:1]", "a text"},
		"gpu = 1\ngpu = 2\n":                              {2, "", "", "already been defined"},
		"gpu = \n":                                        {1, "", "", "no TOML"},
		"gpu = 0\nlog-level = \"lo\xff\"\n":               {2, "", "", "no TOML"},
		"x" + strings.Repeat(".a", 500) + " = 1\n":        {0, "", "", "nested"},
		"x = " + strings.Repeat("{a=", 500) + "1\n":       {0, "", "", "nested"},
		"gpu = 999\n":                                     {1, "--gpu", "999", "from 0 to 255"},
		"gpu = 1\nlog-level = \"loud\"\n":                 {2, "--log-level", "loud", "debug, info"},
		"toolsets = [\"capture\", \"captures\"]\n":        {1, "--toolsets", "captures", "analyze"},
		"toolsets = []\n":                                 {1, "--toolsets", "", "analyze"},
		"gpu = 1\nsimulate = \"gfx90a\" # not this one\n": {2, "--simulate", "gfx90a", "gfx942"},
	} {
		path := written(t, text)
		_, err := Load(home(t), flags(map[string]string{"config": path}))
		var e *envelope.Error
		if !errors.As(err, &e) || e.Code != envelope.BadArgs {
			t.Errorf("%.60q: %v", text, err)
			continue
		}
		at := path
		if want.line > 0 {
			at = fmt.Sprintf("%s:%d", path, want.line)
		}
		if !strings.HasPrefix(e.Message, at+": ") || e.Evidence.Source != at || e.Evidence.Field != want.key || !strings.Contains(e.Message+e.Evidence.Allowed, want.says) ||
			want.value != "" && e.Evidence.Value != want.value {
			t.Errorf("%.60q: %s\n%+v", text, e.Message, e.Evidence)
		}
		if strings.Contains(want.says, "no setting") && !slices.Contains(e.Evidence.ValidNames, "worktree") {
			t.Errorf("%.60q: the names that there are: %v", text, e.Evidence.ValidNames)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := written(t, strings.Repeat("# nothing\n", maxFile/10+1))
	secret := written(t, "gpu = 1\n")
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{filepath.Join(dir, "absent.toml"): "", dir: "regular", large: "large"}
	if os.Getuid() > 0 {
		cases[secret] = "denied"
	}
	for path, says := range cases {
		_, err := Load(home(t), flags(map[string]string{"config": path}))
		var e *envelope.Error
		if !errors.As(err, &e) || e.Code != envelope.BadArgs || e.Evidence.Path != path || e.Evidence.Field != "--config" || !strings.Contains(e.Message, says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// FuzzFile: whatever stands in a file, reading it ends soon, and what it says is a setting or an error that names the file.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"gpu = 1\nallow-path = [\"a\"]\n", "[targets.x]\nhost = 'h'\n", "a.b.c = 1\n", "x = {a = {b = [1, {c = 2}]}}\n", "[[a]]\n[a.b]\n", "\ufeffgpu = 1", "gpu = 0x1F\r\n",
		"worktree = \"\"\"\n~/x\"\"\"", "seed = -1", "simulate = false", strings.Repeat("a.", 300) + "a=1",
	} {
		f.Add(seed)
	}
	getenv := env(map[string]string{"HOME": "/home/u"})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxFile {
			return
		}
		begin := time.Now()
		p := parser{path: "config.toml", dir: "/etc/flyprof", getenv: getenv}
		values, err := p.parse(text)
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(text), took)
		}
		if err != nil {
			if envelope.CodeOf(err) != envelope.BadArgs || !strings.Contains(err.Error(), "config.toml") {
				t.Fatal(err)
			}
			return
		}
		for flag, g := range values {
			if s := setting(flag); !s.Multi && len(g.Values) != 1 {
				t.Fatalf("%s is %q", flag, g.Values)
			}
		}
	})
}
