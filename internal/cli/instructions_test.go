package cli

import (
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/resources"
	"github.com/flyprof/flyprof-mcp/tools"
	"github.com/flyprof/flyprof-mcp/tools/prompts"
)

// TestInstructions: they are short enough to be shown, and name only what is served.
func TestInstructions(t *testing.T) {
	t.Parallel()
	if n := utf8.RuneCountInString(instructions); n >= 2000 {
		t.Errorf("%d characters; clients cut at 2,000", n)
	}
	for _, name := range regexp.MustCompile(`flyprof_[a-z_]+`).FindAllString(instructions, -1) {
		if !slices.ContainsFunc(tools.All(tools.Deps{}), func(tool tools.Tool) bool { return tool.Name == name }) {
			t.Errorf("%s is no tool", name)
		}
	}
	for _, p := range prompts.All() {
		if !regexp.MustCompile(`\b` + p.Name + `\b`).MatchString(instructions) {
			t.Errorf("the prompt %s is not named", p.Name)
		}
	}
	for _, uri := range regexp.MustCompile(`skill://\S+\.md`).FindAllString(instructions, -1) {
		if !slices.ContainsFunc(resources.Texts(), func(text resources.Text) bool { return text.URI == uri }) {
			t.Errorf("%s is not served", uri)
		}
	}
}
