package tools

import (
	"encoding/json"
	"errors"
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
	const model, all = 21_000, 140_000 // bytes; four are about one token
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
	served, err := every().Filter(Selection{})
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
		sel   Selection
		has   string
		lacks string
	}{
		"all":                {Selection{}, "flyprof_capture", ""},
		"read-only":          {Selection{ReadOnly: true}, "flyprof_capture_status", "flyprof_capture_cancel"},
		"analyze":            {Selection{Toolsets: []string{"analyze"}}, "", "flyprof_capture"},
		"some":               {Selection{Only: []string{"flyprof_read", " FLYPROF_TRIAGE"}}, "flyprof_triage", "flyprof_list"},
		"without some":       {Selection{Except: []string{"flyprof_capture"}}, "flyprof_list", "flyprof_capture"},
		"except beats only":  {Selection{Only: []string{"flyprof_read", "flyprof_tile"}, Except: []string{"flyprof_read"}}, "flyprof_tile", "flyprof_read"},
		"only and read-only": {Selection{Only: []string{"flyprof_capture", "flyprof_list"}, ReadOnly: true}, "flyprof_list", "flyprof_capture"},
		"only and toolsets":  {Selection{Only: []string{"flyprof_capture"}, Toolsets: []string{"analyze"}}, "", "flyprof_capture"},
	} {
		served, err := every().Filter(c.sel)
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(served.Tools, func(t Tool) bool { return t.Name == name })
		}
		if c.has != "" && !has(c.has) || c.lacks != "" && has(c.lacks) {
			t.Errorf("%s serves %v", name, served.Tools)
		}
		if len(served.Tools)+len(served.LeftOut) != len(every()) {
			t.Errorf("%s: %d served and %d left out of %d", name, len(served.Tools), len(served.LeftOut), len(every()))
		}
	}
}

// TestFilterNames: a name that is not there is named with those that are.
func TestFilterNames(t *testing.T) {
	for field, c := range map[string]struct {
		sel   Selection
		value string
		says  string
	}{
		"--toolsets":      {Selection{Toolsets: []string{"everything"}}, "everything", "capture"},
		"--tools":         {Selection{Only: []string{"flyprof_list", "flyprof_captures"}}, "flyprof_captures", "did you mean flyprof_capture?"},
		"--exclude-tools": {Selection{Except: []string{"status"}}, "status", "did you mean flyprof_capture_status?"},
	} {
		_, err := every().Filter(c.sel)
		var e *envelope.Error
		if !errors.As(err, &e) || e.Code != envelope.BadArgs || e.Evidence.Field != field || e.Evidence.Value != c.value || len(e.Evidence.ValidNames) == 0 ||
			!strings.Contains(e.Message+e.Evidence.Allowed, c.says) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestActionsOfServedToolsOnly: whichever tool is not served, no error of any code tells to call it, and none is left without an action.
func TestActionsOfServedToolsOnly(t *testing.T) {
	for _, out := range every() {
		served, err := every().Filter(Selection{Except: []string{out.Name}})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range envelope.Catalogue() {
			wire := envelope.NewWire("capture", envelope.Reply[struct{}]{}, envelope.Build(row.Code, completeFacts()), served.Renderer())
			if len(wire.Error.NextActions) == 0 {
				t.Errorf("%s without %s: no next action", row.Code, out.Name)
			}
			for _, a := range wire.Error.NextActions {
				if a.Tool == out.Name || a.Action == envelope.CallTool && a.Tool == "" {
					t.Errorf("%s without %s: %+v", row.Code, out.Name, a)
				}
				if asks := strings.HasPrefix(a.Reason, out.Name+" is not served"); asks && (a.Action != envelope.AskUser || !strings.Contains(a.Reason, "--exclude-tools")) {
					t.Errorf("%s without %s: %+v", row.Code, out.Name, a)
				}
			}
		}
	}
}
