package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestConfigCommand: every setting is there with its source, and the same in the table for people.
func TestConfigCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("\nstop-grace = 5\nallow-path = [\"x\", \"y\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exit := called(t, mcpProgram, "config", "--config", file, "--gpu", "2", "-f", "line")
	var e envelope.Wire[settingsData]
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || exit != 0 || stderr != "" || !e.OK || e.Command != "config" {
		t.Fatalf("exit %d, %v: %s%s", exit, err, stdout, stderr)
	}
	got := map[string]settingData{}
	for _, s := range e.Data.Settings {
		got[s.Name] = s
	}
	for _, s := range config.Settings() {
		if row := got[s.Flag]; row.Env != s.Env || row.Flag != "--"+s.Flag || row.Source == "" {
			t.Errorf("%s: %+v", s.Flag, row)
		}
	}
	for name, want := range map[string][2]string{"gpu": {"2", "flag"}, "config": {file, "flag"}, "stop-grace": {"5", file + ":2"}, "seed": {"1", "default"}} {
		if row := got[name]; row.Value != want[0] || row.Source != want[1] {
			t.Errorf("%s: %+v, want %v", name, row, want)
		}
	}
	if row := got["allow-path"]; len(row.Values) != 2 || row.Values[1] != filepath.Join(filepath.Dir(file), "y") {
		t.Errorf("allow-path: %+v", row)
	}
	table, _, _ := called(t, mcpProgram, "config", "--config", file, "-f", "table")
	if !strings.Contains(table, "SETTING") || !strings.Contains(table, file+":2") || strings.HasPrefix(table, "{") {
		t.Error(table)
	}
}

// TestConfigFileMisuse: what is wrong with the file is an envelope of every verb.
func TestConfigFileMisuse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("gpu = 0\nruns_dirs = \"/x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"config", "list"} {
		stdout, stderr, exit := called(t, mcpProgram, verb, "--config", file, "-f", "line")
		var e bare
		if err := json.Unmarshal([]byte(stdout), &e); err != nil || exit != 78 || e.Error == nil || e.Error.Code != envelope.BadArgs || e.Error.Evidence.Source != file+":2" ||
			!strings.Contains(e.Error.Message, "did you mean runs-dir?") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %v: %s%s", verb, exit, err, stdout, stderr)
		}
	}
}

// TestSecretsAreNotShown: of a token only that there is one.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	c, err := config.Resolve(func(string) string { return "/home/u" })
	if err != nil {
		t.Fatal(err)
	}
	data := inForce(c, func(name string) string { return map[string]string{tokenVar: "opensesame"}[name] })
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "opensesame") || !strings.Contains(string(raw), tokenVar) {
		t.Errorf("%s", raw)
	}
}
