package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// host is a machine of a kind, with a home directory.
func host(system, home string, more ...string) Host {
	kv := map[string]string{}
	if system == "windows" {
		kv["USERPROFILE"], kv["APPDATA"] = home, filepath.Join(home, "AppData", "Roaming")
	} else {
		kv["HOME"] = home
	}
	for i := 0; i < len(more); i += 2 {
		kv[more[i]] = more[i+1]
	}
	return Host{OS: system, Getenv: func(name string) string { return kv[name] }, Dir: "/project"}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ client, system, scope, want string }{
		{"claude-code", "linux", "user", "/u/.claude.json"},
		{"claude-code", "windows", "user", "/u/.claude.json"},
		{"claude-code", "linux", "project", "/project/.mcp.json"},
		{"claude-desktop", "linux", "user", "/u/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "darwin", "user", "/u/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "windows", "user", "/u/AppData/Roaming/Claude/claude_desktop_config.json"},
		{"cursor", "darwin", "user", "/u/.cursor/mcp.json"},
		{"cursor", "linux", "project", "/project/.cursor/mcp.json"},
		{"vscode", "linux", "user", "/u/.config/Code/User/mcp.json"},
		{"vscode", "darwin", "user", "/u/Library/Application Support/Code/User/mcp.json"},
		{"vscode", "windows", "user", "/u/AppData/Roaming/Code/User/mcp.json"},
		{"vscode", "linux", "project", "/project/.vscode/mcp.json"},
		{"codex", "linux", "user", "/u/.codex/config.toml"},
		{"codex", "windows", "user", "/u/.codex/config.toml"},
	} {
		client, err := Find(c.client)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.File(host(c.system, "/u"), c.scope)
		if err != nil || filepath.ToSlash(got) != c.want {
			t.Errorf("%s on %s, %s: %s, %v, want %s", c.client, c.system, c.scope, got, err, c.want)
		}
	}
	abs := t.TempDir()
	codex, _ := Find("codex")
	if got, err := codex.File(host("linux", "/u", "CODEX_HOME", abs), "user"); err != nil || got != filepath.Join(abs, "config.toml") {
		t.Errorf("CODEX_HOME: %s, %v", got, err)
	}
	vscode, _ := Find("vscode")
	if got, err := vscode.File(host("linux", "/u", "XDG_CONFIG_HOME", abs), "user"); err != nil || got != filepath.Join(abs, "Code", "User", "mcp.json") {
		t.Errorf("XDG_CONFIG_HOME: %s, %v", got, err)
	}
	for field, call := range map[string]func() (string, error){
		"--scope": func() (string, error) { return codex.File(host("linux", "/u"), "project") },
		"scope":   func() (string, error) { return vscode.File(host("linux", "/u"), "world") },
		"home":    func() (string, error) { return vscode.File(host("linux", ""), "user") },
	} {
		if got, err := call(); envelope.CodeOf(err) != envelope.BadArgs || envelope.As(err).Evidence.Field != "--scope" || envelope.As(err).Evidence.Allowed == "" {
			t.Errorf("%s: %s, %v", field, got, err)
		}
	}
	for name, says := range map[string]string{"": "missing", "claude": "no client", "curser": "did you mean cursor?"} {
		if _, err := Find(name); envelope.CodeOf(err) != envelope.BadArgs || !strings.Contains(err.Error(), says) || !slices.Equal(envelope.As(err).Evidence.ValidNames, Names()) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestSnippets: what is printed is a file that the client reads, with the settings and the client's own time limits.
func TestSnippets(t *testing.T) {
	t.Parallel()
	e := Entry{Command: "/opt/fly & prof/flyprof-mcp", Args: []string{"--worktree", `C:\a "b"`, ",", "--simulate=gfx950"}}
	for _, c := range clients {
		text, err := c.Snippet(e)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]map[string]struct {
			Type     string
			Command  string
			Args     []string
			Timeout  int
			Startup  int `toml:"startup_timeout_sec"`
			ToolCall int `toml:"tool_timeout_sec"`
		}
		if c.Format == TOML {
			err = toml.Unmarshal([]byte(text), &doc)
		} else {
			err = json.Unmarshal([]byte(text), &doc)
		}
		got := doc[c.Key][ServerName]
		if err != nil || len(doc) != 1 || got.Command != e.Command || !slices.Equal(got.Args, e.Args) {
			t.Errorf("%s: %v %+v\n%s", c.Name, err, got, text)
		}
		if strings.Contains(text, `\u0026`) {
			t.Errorf("%s: people are to read it: %s", c.Name, text)
		}
		switch c.Name {
		case "claude-code":
			if got.Timeout != 1_800_000 || got.Type != "stdio" {
				t.Errorf("%s: %+v", c.Name, got)
			}
		case "codex":
			if got.Startup != 20 || got.ToolCall != 1800 {
				t.Errorf("%s: %+v", c.Name, got)
			}
		}
	}
	claude, _ := Find("claude-code")
	if got := claude.Command(e, ScopeUser); !slices.Equal(got[len(got)-len(e.Args)-1:], append([]string{e.Command}, e.Args...)) || got[0] != "claude" || claude.Command(e, ScopeProject) != nil {
		t.Errorf("%q", got)
	}
}

func TestProgramsOfGoRun(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0f", 32)
	for path, ok := range map[string]bool{
		"/tmp/go-build3176969639/b001/exe/flyprof-mcp":                         false,
		`C:\Users\u\AppData\Local\Temp\go-build31769\b001\exe\flyprof-mcp.exe`: false,
		"/root/.cache/go-build/0f/" + sum + "-d/flyprof-mcp":                   false,
		"/else/0f/" + sum + "-d/flyprof-mcp":                                   false,
		"/usr/local/bin/flyprof-mcp":                                           true,
		"/tmp/flyprof-mcp":                                                     true,
		"/home/u/go-build/flyprof-mcp":                                         true,
	} {
		err := Program(path)
		if (err == nil) != ok || err != nil && (envelope.CodeOf(err) != envelope.MissingPrereq || !strings.Contains(envelope.As(err).Help, "go build")) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWrite: the entry is merged into what is there, once, with a backup; a second time nothing is written.
func TestWrite(t *testing.T) {
	t.Parallel()
	e := Entry{Command: "/opt/flyprof-mcp", Args: []string{"--simulate=gfx950"}}
	for _, c := range clients {
		path := filepath.Join(t.TempDir(), "deep", "file")
		done, err := c.Write(path, e, false)
		if err != nil || !done.Changed || done.Backup != "" {
			t.Fatalf("%s: %+v, %v", c.Name, done, err)
		}
		first, err := os.ReadFile(path)
		if want, _ := c.Snippet(e); err != nil || string(first) != want {
			t.Errorf("%s: a new file is not the snippet: %v\n%s", c.Name, err, first)
		}
		if done, err = c.Write(path, e, false); err != nil || done.Changed || done.Backup != "" {
			t.Errorf("%s, again: %+v, %v", c.Name, done, err)
		}
		other := Entry{Command: "/opt/flyprof-mcp", Args: []string{"--gpu", "1"}}
		if done, err = c.Write(path, other, false); envelope.CodeOf(err) != envelope.FileConflict || done.Changed || envelope.As(err).Evidence.Path != path {
			t.Errorf("%s, another entry: %+v, %v", c.Name, done, err)
		}
		if now, _ := os.ReadFile(path); string(now) != string(first) {
			t.Errorf("%s: a refused write changed the file: %s", c.Name, now)
		}
		if done, err = c.Write(path, other, true); err != nil || !done.Changed || done.Backup != path+".bak" {
			t.Errorf("%s, by force: %+v, %v", c.Name, done, err)
		}
		if before, _ := os.ReadFile(path + ".bak"); string(before) != string(first) {
			t.Errorf("%s: the backup is %s", c.Name, before)
		}
		if now, _ := os.ReadFile(path); !strings.Contains(string(now), `"--gpu", "1"`) || strings.Contains(string(now), "simulate") {
			t.Errorf("%s, by force: %s", c.Name, now)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 2 {
			t.Errorf("%s: left %v", c.Name, left)
		}
	}
}

// TestFilesThatAreLeft: links that lead nowhere, directories, files without a right to read them.
func TestFilesThatAreLeft(t *testing.T) {
	t.Parallel()
	cursor, _ := Find("cursor")
	e := Entry{Command: "/opt/flyprof-mcp"}
	dir := t.TempDir()
	dangling, linked, real := filepath.Join(dir, "dangling"), filepath.Join(dir, "linked"), filepath.Join(dir, "real.json")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink("real.json", linked); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, []byte(`{"mcpServers": {"x": {}}}`), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dangling, dir, filepath.Join(dir, "dangling", "below"), filepath.Join(real, "below")} {
		if _, err := cursor.Write(path, e, true); envelope.CodeOf(err) != envelope.FileConflict {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a link that led nowhere was followed")
	}
	done, err := cursor.Write(linked, e, false)
	if err != nil || !done.Changed {
		t.Fatalf("%+v, %v", done, err)
	}
	info, err := os.Lstat(linked)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	text, _ := os.ReadFile(real)
	info, err = os.Stat(real)
	if err != nil || !strings.Contains(string(text), ServerName) || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v: %s", info.Mode(), err, text)
	}
}
