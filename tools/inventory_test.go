package tools

import (
	"encoding/json"
	"flag"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas"
)

var update = flag.Bool("update", false, "rewrite the committed schemas")

// every gives the whole inventory; the tools are not called.
func every() Inventory { return All(Deps{}) }

func TestEveryTool(t *testing.T) {
	name := regexp.MustCompile(`^flyprof_[a-z_]{1,24}$`)
	seen := map[string]bool{}
	for _, tool := range every() {
		if !name.MatchString(tool.Name) || seen[tool.Name] {
			t.Errorf("the name %q", tool.Name)
		}
		seen[tool.Name] = true
		if tool.Title == "" || len(tool.Description) < 100 || len(tool.Description) > 2000 {
			t.Errorf("%s: title %q, a description of %d bytes", tool.Name, tool.Title, len(tool.Description))
		}
		if tool.Toolset != ToolsetCapture && tool.Toolset != ToolsetAnalyze {
			t.Errorf("%s is in the toolset %q", tool.Name, tool.Toolset)
		}
		if tool.ReadOnly && tool.Destructive {
			t.Errorf("%s is read-only and destructive", tool.Name)
		}
		m := tool.MCP()
		for hint, value := range map[string]*bool{"readOnly": m.Annotations.ReadOnlyHint, "destructive": m.Annotations.DestructiveHint, "idempotent": m.Annotations.IdempotentHint, "openWorld": m.Annotations.OpenWorldHint} {
			if value == nil {
				t.Errorf("%s: the hint %s is absent, and clients take it for the worst case", tool.Name, hint)
			}
		}
		for kind, schema := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
			if err := schemas.CheckPortable(schema); err != nil {
				t.Errorf("%s %s: %v", tool.Name, kind, err)
			}
		}
		if !strings.Contains(string(tool.InputSchema), `"additionalProperties":false`) {
			t.Errorf("%s takes unknown arguments", tool.Name)
		}
	}
	if len(seen) > 13 {
		t.Errorf("%d tools; 13 are the most", len(seen))
	}
}

// TestSchemasGolden holds the committed schemas to the types.
func TestSchemasGolden(t *testing.T) {
	files, err := every().SchemaFiles()
	if err != nil {
		t.Fatal(err)
	}
	drift, err := schemas.Sync(filepath.Join("..", "schemas"), files, *update)
	if err != nil {
		t.Fatal(err)
	}
	if len(drift) > 0 {
		t.Errorf("%s\ngo test ./tools -update", strings.Join(drift, "\n"))
	}
}

// TestListBudget holds what tools/list costs: a model reads names, descriptions and input schemas of all tools at once; the
// output schemas are for clients.
func TestListBudget(t *testing.T) {
	const model, all = 18_000, 80_000 // bytes; four are about one token
	read, total := 0, 0
	for _, tool := range every() {
		raw, err := json.Marshal(tool.MCP())
		if err != nil {
			t.Fatal(err)
		}
		total += len(raw)
		read += len(raw) - len(tool.OutputSchema)
	}
	t.Logf("tools/list takes %d bytes, %d of them without output schemas", total, read)
	if read > model || total > all {
		t.Errorf("tools/list takes %d bytes (at most %d), %d without output schemas (at most %d)", total, all, read, model)
	}
}

// completeFacts are facts with something in every field that an action may be made of.
func completeFacts() envelope.Facts {
	gpu, cu := 1, 3
	return envelope.Facts{
		Message: "something went wrong", RunID: "softmax-20260101T000000Z-abcdef", Test: "softmax",
		Request: &request.Capture{
			Kernel: "softmax", Shape: "64,8192,bf16", Args: []string{"--iters", "3"}, Tag: "both", WithPMC: true, GPU: &gpu, IterRange: "3", Group: "7:64x1x1",
			TimeoutS: 600, Target: "flydsl", ATTTargetCU: &cu, ATTShaderEngineMask: "0xf", ATTBufferSize: 1 << 24,
		},
		Evidence:   envelope.Evidence{Field: "shape", Value: "64", Allowed: "M,N", Log: "flyprof://logs/softmax-20260101T000000Z-abcdef/att_big.log", LimitS: 600},
		Available:  []envelope.Available{{IterRange: "5", Group: "7:64x1x1"}, {IterRange: "6"}},
		Candidates: []envelope.Candidate{{Kernel: "softmax_kernel_0"}, {Kernel: "rmsnorm_kernel_0"}},
	}
}

// TestEveryCode builds an error of each code, with much and with nothing known, renders its actions, and validates every call
// against the input schema of its tool.
func TestEveryCode(t *testing.T) {
	served, err := every().Filter(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	validators := map[string]*schemas.Validator{}
	for _, tool := range served.Tools {
		validators[tool.Name] = schemas.NewValidator(tool.InputSchema)
	}
	calls := 0
	for _, row := range envelope.Catalogue() {
		spent := completeFacts()
		spent.Retry = &envelope.Retry{Used: 1, Budget: 1}
		for facts, f := range map[string]envelope.Facts{"complete": completeFacts(), "spent": spent, "empty": {}} {
			e := envelope.Build(row.Code, f)
			if e.Code != row.Code || e.Message == "" || e.Help == "" {
				t.Errorf("%s (%s): %+v", row.Code, facts, e)
			}
			wire := envelope.NewWire("capture", envelope.Reply[struct{}]{}, e, served.Renderer())
			if len(wire.Error.NextActions) == 0 {
				t.Errorf("%s (%s) has no next action", row.Code, facts)
			}
			for i, a := range wire.Error.NextActions {
				if !slices.Contains(row.Kinds, a.Action) && a.Action != envelope.Stop {
					t.Errorf("%s (%s): the kind %s is not in its row", row.Code, facts, a.Action)
				}
				if a.Reason == "" {
					t.Errorf("%s (%s): action %d has no reason", row.Code, facts, i)
				}
				if a.Action != envelope.CallTool {
					continue
				}
				calls++
				v := validators[a.Tool]
				if v == nil {
					t.Errorf("%s (%s) calls %q", row.Code, facts, a.Tool)
					continue
				}
				if _, err := v.Check(json.RawMessage(a.Arguments)); err != nil {
					t.Errorf("%s (%s): %s %s: %v", row.Code, facts, a.Tool, a.Arguments, err)
				}
				if len(a.Argv) < 2 || a.Argv[0] != "flyprof-mcp" {
					t.Errorf("%s (%s): argv %q", row.Code, facts, a.Argv)
				}
				if facts == "spent" && a.Tool == "flyprof_capture" {
					t.Errorf("%s: the budget is spent and an action captures again", row.Code)
				}
			}
		}
	}
	if calls < 20 {
		t.Errorf("only %d calls were checked", calls)
	}
}

func TestFilter(t *testing.T) {
	for name, c := range map[string]struct {
		sets     []string
		readOnly bool
		has      string
		lacks    string
	}{
		"all":       {nil, false, "flyprof_capture", ""},
		"read-only": {nil, true, "flyprof_capture_status", "flyprof_capture_cancel"},
		"analyze":   {[]string{"analyze"}, false, "", "flyprof_capture"},
	} {
		served, err := every().Filter(c.sets, c.readOnly)
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(served.Tools, func(t Tool) bool { return t.Name == name })
		}
		if c.has != "" && !has(c.has) || c.lacks != "" && has(c.lacks) {
			t.Errorf("%s serves %v", name, served.Tools)
		}
	}
	if _, err := every().Filter([]string{"everything"}, false); envelope.CodeOf(err) != envelope.BadArgs {
		t.Errorf("an unknown toolset: %v", err)
	}
}
