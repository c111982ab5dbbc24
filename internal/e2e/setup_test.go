package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestInstallIntoAClient: what is written is an entry by which the server starts, with the settings that were given.
func TestInstallIntoAClient(t *testing.T) {
	t.Parallel()
	home, runs := t.TempDir(), t.TempDir()
	env := []string{"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + filepath.Join(home, "AppData"), "FLYPROF_LOG_LEVEL=error"}
	settings := []string{"--runs-dir", runs, "--simulate"}
	a, exit := cli(t, env, append([]string{"install", "--client", "cursor", "--write", "-f", "json"}, settings...)...)
	file := filepath.Join(home, ".cursor", "mcp.json")
	if exit != 0 || a.Data["state"] != "written" || a.Data["file"] != file || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0].Message, "FLYPROF_LOG_LEVEL") {
		t.Fatalf("exit %d: %s", exit, a.raw)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var written struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &written); err != nil || !filepath.IsAbs(written.Servers["flyprof"].Command) {
		t.Fatalf("%v: %s", err, raw)
	}
	if a.Data["snippet"] != string(raw) {
		t.Errorf("a new file is not what is printed:\n%s\n%v", raw, a.Data["snippet"])
	}
	server := exec.Command(written.Servers["flyprof"].Command, written.Servers["flyprof"].Args...)
	server.Env = environ()
	server.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
	out, err := server.Output()
	if err != nil || !strings.Contains(string(out), "flyprof_capture") {
		t.Errorf("the server of the entry: %v: %s", err, out)
	}
	if a, exit := cli(t, env, append([]string{"install", "--client", "cursor", "--write", "-f", "json"}, settings...)...); exit != 0 || a.Data["state"] != "unchanged" {
		t.Errorf("again: exit %d: %s", exit, a.raw)
	}
	a, exit = cli(t, env, "install", "--client", "cursor", "--write", "-f", "json", "--gpu", "1")
	if exit != 78 || a.Error == nil || a.Error.Code != "FILE_CONFLICT" || a.Data["snippet"] == nil {
		t.Errorf("another entry: exit %d: %s", exit, a.raw)
	}
	text, err := exec.Command(binary, "install", "--client", "codex").Output()
	if err != nil || !strings.Contains(string(text), "\n[mcp_servers.flyprof]\ncommand = ") || !strings.Contains(string(text), "config.toml") {
		t.Errorf("%v: %s", err, text)
	}
	for name, args := range map[string][]string{
		"no client": {"install"}, "no such client": {"install", "--client", "emacs"}, "no such scope": {"install", "--client", "codex", "--scope", "project"}, "both": {"install", "--client", "codex", "--print", "--write"},
		"over HTTP": {"install", "--client", "codex", "--http", "8080"}, "a bad setting": {"install", "--client", "codex", "--gpu", "x"},
	} {
		if a, exit := cli(t, env, append(args, "-f", "json")...); exit != 78 || a.Error == nil || a.Error.Code != "BAD_ARGS" || a.Error.Evidence["allowed"] == "" {
			t.Errorf("%s: exit %d: %s", name, exit, a.raw)
		}
	}
}

// TestInstallByGoRun: a program that `go run` made is gone when the client starts it.
func TestInstallByGoRun(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "run", "github.com/flyprof/flyprof-mcp/cmd/flyprof-mcp", "install", "--client", "cursor", "-f", "line")
	cmd.Env = environ()
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), `"MISSING_PREREQ"`) || !strings.Contains(string(out), "go build") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSkillsCommands: listed, installed for the project, for the user and elsewhere, and not over what somebody changed.
func TestSkillsCommands(t *testing.T) {
	t.Parallel()
	home, project, other := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "deep", "skills")
	list, exit := cli(t, nil, "skills", "list")
	found, _ := list.Data["skills"].([]any)
	if exit != 0 || len(found) < 3 {
		t.Fatalf("exit %d: %s", exit, list.raw)
	}
	var names []string
	for _, s := range found {
		m := s.(map[string]any)
		if m["description"] == "" {
			t.Errorf("%v has no description", m["name"])
		}
		names = append(names, m["name"].(string))
	}
	if !slices.Contains(names, "flyprof-capture") || !slices.Contains(names, "flyprof-triage") {
		t.Errorf("the skills are %v", names)
	}
	for dir, args := range map[string][]string{filepath.Join(project, ".claude", "skills"): nil, filepath.Join(home, ".claude", "skills"): {"--user"}, other: {"--dir", other}} {
		cmd := exec.Command(binary, append([]string{"skills", "install", "-f", "table"}, args...)...)
		cmd.Dir, cmd.Env = project, environ("HOME="+home, "USERPROFILE="+home)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), "new") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(dir, name, "SKILL.md")); err != nil || !strings.Contains(string(text), "name: "+name) {
				t.Errorf("%v: %s: %v", args, name, err)
			}
		}
	}
	changed := filepath.Join(other, "flyprof-triage", "SKILL.md")
	if err := os.WriteFile(changed, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, exit := cli(t, nil, "skills", "install", "--dir", other)
	if exit != 78 || a.Error == nil || a.Error.Code != "FILE_CONFLICT" || !strings.Contains(a.Error.Message, "flyprof-triage/SKILL.md") || a.Data["files"] == nil {
		t.Errorf("exit %d: %s", exit, a.raw)
	}
	if text, _ := os.ReadFile(changed); string(text) != "mine" {
		t.Errorf("it was replaced by %s", text)
	}
	if a, exit := cli(t, nil, "skills", "install", "--dir", other, "--force"); exit != 0 {
		t.Errorf("by force: exit %d: %s", exit, a.raw)
	}
	if a, exit := cli(t, nil, "skills", "instal", "--dir", other); exit != 78 || a.Error == nil || a.Error.Code != "BAD_ARGS" {
		t.Errorf("exit %d: %s", exit, a.raw)
	}
	if a, exit := cli(t, nil, "skills", "install", "--dir", other, "--user"); exit != 78 || a.Error == nil {
		t.Errorf("exit %d: %s", exit, a.raw)
	}
	if runtime.GOOS != "windows" && os.Getuid() > 0 {
		if a, exit := cli(t, nil, "skills", "install", "--dir", "/proc/none"); exit != 78 || a.Error == nil {
			t.Errorf("exit %d: %s", exit, a.raw)
		}
	}
}
