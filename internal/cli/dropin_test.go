package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/tools"
)

// TestDropInTables: a row stands for something that is missing here, and what it means exists.
func TestDropInTables(t *testing.T) {
	t.Parallel()
	inventory := tools.All(tools.Deps{})
	for verb := range dropInVerbs {
		if tool, ok := inventory.ByVerb(request.Verb(verb)); ok {
			t.Errorf("%s serves %s: its row says that there is none", tool.Name, verb)
		}
	}
	for _, row := range dropInFlags {
		given := 0
		for _, text := range []string{row.means, row.always, row.instead} {
			if text != "" {
				given++
			}
		}
		if given != 1 {
			t.Errorf("--%s: a row has one of means, always and instead", row.name)
		}
		for _, tool := range inventory {
			if row.verbs != nil && !slices.Contains(row.verbs, tool.Verb) {
				continue
			}
			var schema struct{ Properties map[string]any }
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			if row.means != "" && schema.Properties[row.means] == nil {
				t.Errorf("--%s: %s has no argument %s", row.name, tool.Name, row.means)
			}
		}
	}
}

// TestDropInBundle: the public flyprof's handle of a capture is a run_id here, or a directory.
func TestDropInBundle(t *testing.T) {
	t.Parallel()
	for value, says := range map[string]string{
		"softmax-20260101T000000Z-aaaaaa": `"field":"run_id"`,
		"nowhere/at/all":                  `"field":"path"`,
	} {
		if stdout, _, exit := called(t, dropInProgram, "bubbles", "--bundle", value, "--runs-dir", t.TempDir(), "-f", "line"); exit == 0 || !strings.Contains(stdout, says) {
			t.Errorf("%s: exit %d: %s", value, exit, stdout)
		}
	}
	if stdout, _, exit := called(t, dropInProgram, "bubbles", "--bundle", "a", "--path", "b", "-f", "line"); exit != 78 || !strings.Contains(stdout, "different things") {
		t.Errorf("exit %d: %s", exit, stdout)
	}
}
