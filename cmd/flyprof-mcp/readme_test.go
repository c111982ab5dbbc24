package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/tools"
	"github.com/flyprof/flyprof-mcp/tools/prompts"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the README")

// TestReadmeGolden holds the generated tables of the README current.
func TestReadmeGolden(t *testing.T) {
	path := filepath.Join("..", "..", "README.md")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	after := string(before)
	for name, table := range map[string]string{"tools": toolTable(tools.All(tools.Deps{})), "prompts": promptTable(), "settings": settingTable()} {
		if after, err = replacePart(after, name, table); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if after != string(before) {
		t.Error("the README is not current: go test ./cmd/flyprof-mcp -update")
	}
}

// replacePart puts text between the markers of a generated part.
func replacePart(doc, name, text string) (string, error) {
	start := strings.Index(doc, "<!-- "+name+": begin")
	end := strings.Index(doc, "<!-- "+name+": end")
	if start < 0 || end < start {
		return "", fmt.Errorf("the README has no part %q", name)
	}
	line := start + strings.IndexByte(doc[start:], '\n') + 1
	return doc[:line] + text + doc[end:], nil
}

// toolTable has one row for each tool: its name, the first sentence of its description, whether it starts or stops anything.
func toolTable(inv tools.Inventory) string {
	var b strings.Builder
	b.WriteString("| tool | does | toolset | read-only |\n|---|---|---|---|\n")
	for _, tool := range inv {
		readOnly := "no"
		if tool.ReadOnly {
			readOnly = "yes"
		}
		first, _, _ := strings.Cut(tool.Description, "\n")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tool.Name, first, tool.Toolset, readOnly)
	}
	return b.String()
}

// promptTable has one row for each prompt: its name with its arguments, and its description.
func promptTable() string {
	var b strings.Builder
	b.WriteString("| prompt | does |\n|---|---|\n")
	for _, p := range prompts.All() {
		var args []string
		for _, a := range p.Arguments {
			if !a.Required {
				a.Name += "?"
			}
			args = append(args, a.Name)
		}
		fmt.Fprintf(&b, "| `%s(%s)` | %s |\n", p.Name, strings.Join(args, ", "), p.Description)
	}
	return b.String()
}

// settingTable has one row for each setting.
func settingTable() string {
	var b strings.Builder
	b.WriteString("| flag | environment | default | what |\n|---|---|---|---|\n")
	for _, s := range config.Settings() {
		value := s.Default
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", s.Flag, s.Env, value, strings.ReplaceAll(s.Help, "|", "\\|"))
	}
	return b.String()
}
