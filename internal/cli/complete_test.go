package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// offered runs the shell's question and gives the words that are offered and the directive.
func offered(t *testing.T, p Program, args ...string) (words []string, directive string) {
	t.Helper()
	stdout, _, exit := called(t, p, append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if exit != 0 || len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], ":") {
		t.Fatalf("%q: exit %d, %q", args, exit, stdout)
	}
	for _, line := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(line, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1]
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	tree, runsDir := t.TempDir(), t.TempDir()
	if err := sim.WriteDemoWorktree(tree); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"zeta-20260101T000000Z-aaaaaa", "alpha-20260103T000000Z-aaaaaa", "mid-20260102T000000Z-aaaaaa"} {
		if err := os.MkdirAll(filepath.Join(runsDir, id), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	newest := []string{"alpha-20260103T000000Z-aaaaaa", "mid-20260102T000000Z-aaaaaa", "zeta-20260101T000000Z-aaaaaa"}
	real := []string{"--worktree", tree, "--runs-dir", runsDir}
	const noFile, keepOrder, dirs, extension, anyFile = ":4", ":36", ":16", ":8", ":0"
	for name, c := range map[string]struct {
		args      []string
		want      []string
		directive string
	}{
		"kernels":           {append(real, "capture", "so"), []string{"softmax"}, noFile},
		"kernels of tile":   {append(real, "tile", "moe_"), []string{"moe_gemm_2stage", "moe_sorting"}, noFile},
		"simulated kernels": {[]string{"--simulate", "--runs-dir", runsDir, "capture", "rms"}, []string{"rmsnorm"}, noFile},
		"one argument only": {append(real, "capture", "softmax", ""), nil, noFile},
		"runs":              {append(real, "status", ""), newest, keepOrder},
		"runs to retry":     {append(real, "capture", "softmax", "--retry-of", ""), newest, keepOrder},
		"runs to triage":    {append(real, "triage", "--run-id", ""), newest, keepOrder},
		"runs to export":    {append(real, "export", ""), newest, keepOrder},
		"tags":              {[]string{"capture", "softmax", "--tag", ""}, []string{"small", "big", "both"}, noFile},
		"targets":           {[]string{"capture", "softmax", "--target="}, []string{"flydsl", "baseline"}, noFile},
		"formats":           {[]string{"list", "-f", ""}, []string{"json", "line", "table"}, noFile},
		"dtypes":            {[]string{"tile", "gemm", "--dtype", ""}, []string{"bf16", "f16", "f32", "fp8", "int8", "fp6", "fp4", "f64"}, noFile},
		"architectures":     {[]string{"doctor", "--arch", ""}, []string{"gfx942", "gfx950"}, noFile},
		"directories":       {[]string{"list", "--worktree", ""}, nil, dirs},
		"path of triage":    {[]string{"triage", "--path", ""}, nil, dirs},
		"JSON files":        {[]string{"list", "--recipes", ""}, []string{"json"}, extension},
		"any file":          {[]string{"list", "--python", ""}, nil, anyFile},
		"no files":          {[]string{"capture", "softmax", "--shape", ""}, nil, noFile},
		"clients":           {[]string{"install", "--client", ""}, []string{"claude-code", "claude-desktop", "cursor", "vscode", "codex"}, noFile},
		"skills":            {[]string{"skills", "install", "--dir", ""}, nil, dirs},
		"TOML files":        {[]string{"list", "--config", ""}, []string{"toml"}, extension},
		"a bad setting":     {append(real, "--gpu", "x", "capture", ""), nil, noFile},
		"no such worktree":  {[]string{"--worktree", filepath.Join(tree, "nowhere"), "--runs-dir", runsDir, "capture", ""}, nil, noFile},
		"no such runs":      {[]string{"--runs-dir", filepath.Join(tree, "README.md"), "status", ""}, nil, keepOrder},
	} {
		words, directive := offered(t, mcpProgram, c.args...)
		if !slices.Equal(words, c.want) || directive != c.directive {
			t.Errorf("%s: %q %s, want %q %s", name, words, directive, c.want, c.directive)
		}
	}
	uris, _ := offered(t, mcpProgram, append(real, "read", "")...)
	if !slices.Contains(uris, "flyprof://runs/"+newest[0]+"/files") || !slices.Contains(uris, "skill://flyprof-capture/SKILL.md") {
		t.Errorf("to read: %q", uris)
	}
	if left, err := os.ReadDir(runsDir); err != nil || len(left) != len(newest) {
		t.Errorf("completion left %v in the runs directory (%v)", left, err)
	}
	if verbs, _ := offered(t, dropInProgram, ""); slices.Contains(verbs, "serve") || slices.Contains(verbs, superviseVerb) || !slices.Contains(verbs, "capture") {
		t.Errorf("the drop-in offers %q", verbs)
	}
	if flags, _ := offered(t, dropInProgram, "capture", "softmax", "--"); !slices.Contains(flags, "--timeout") || slices.Contains(flags, "--bundle") {
		t.Errorf("the drop-in offers %q", flags)
	}
}

// TestCompletionScripts: each shell gets a script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if stdout, stderr, exit := called(t, dropInProgram, "completion", shell); exit != 0 || !strings.Contains(stdout, "__complete") || stderr != "" {
			t.Errorf("%s: exit %d, %.200q, %q", shell, exit, stdout, stderr)
		}
	}
}

// TestCompletionOfSettings: what is offered for a setting is allowed.
func TestCompletionOfSettings(t *testing.T) {
	t.Parallel()
	for _, s := range config.Settings() {
		if s.Bool {
			continue
		}
		words, directive := offered(t, mcpProgram, "list", "--"+s.Flag+"=")
		if directive != ":4" {
			continue // files
		}
		for _, word := range words {
			source := func(asked config.Setting) (config.Given, bool) {
				return config.Given{Values: []string{word}}, asked.Flag == s.Flag
			}
			if _, err := config.Resolve(func(string) string { return "/home" }, source); err != nil {
				t.Errorf("--%s: %s is offered: %v", s.Flag, word, err)
			}
		}
	}
}
