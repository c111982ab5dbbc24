package worktree

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Recipe is one entry of a recipes.json: a curated way to run a test.
type Recipe struct {
	// Test is the path behind tests/kernels/, such as test_softmax.py: recipes name paths of the machine they were made on.
	Test string
	// Env and Args are what the invocation sets and passes.
	Env, Args []string
	// Pytest: the invocation runs pytest, not the file as a script. Node is the test that it names, if any.
	Pytest bool
	Node   string
	// Hints are beginnings of the symbols that it launches.
	Hints []string
	// MultiGPU: the recipe says that one GPU is not enough.
	MultiGPU bool
}

const (
	maxRecipesBytes = 4 << 20
	maxRecipes      = 1000
)

// LoadRecipes reads a recipes.json. Entries that say nothing of use are passed over: the files in use hold prose where a
// program expects values.
//
// Errors: BAD_ARGS (--recipes) where the file cannot be read at all.
func LoadRecipes(name string) ([]Recipe, error) {
	bad := func(why string) error {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the recipes %s cannot be read: %s", name, why),
			Evidence: envelope.Evidence{Field: "--recipes", Value: name, Allowed: "a JSON file that is a list of objects with test_file and invocation", Setting: "--recipes (FLYPROF_RECIPES)"},
		})
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, bad("it is not there or cannot be reached")
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecipesBytes {
		return nil, bad(fmt.Sprintf("it is no regular file of at most %d bytes", maxRecipesBytes))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, bad("it cannot be opened")
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecipesBytes+1))
	if err != nil {
		return nil, bad("it cannot be read")
	}
	recipes, err := parseRecipes(raw)
	if err != nil {
		return nil, bad(err.Error())
	}
	return recipes, nil
}

// entry is what is used of a recipe. Members of any other type than expected are passed over.
type entry struct {
	TestFile   json.RawMessage `json:"test_file"`
	Invocation json.RawMessage `json:"invocation"`
	Kernels    json.RawMessage `json:"kernels"`
	Hint       json.RawMessage `json:"kernel_name_hint"`
	MultiGPU   json.RawMessage `json:"needs_multi_gpu"`
}

func parseRecipes(raw []byte) ([]Recipe, error) {
	var entries []entry
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("it is no list of objects: %w", err)
	}
	if len(entries) > maxRecipes {
		return nil, fmt.Errorf("it has %d recipes, more than %d", len(entries), maxRecipes)
	}
	var out []Recipe
	for _, e := range entries {
		if r, ok := e.recipe(); ok {
			out = append(out, r)
		}
	}
	return out, nil
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // another type gives ""
	return s
}

func (e entry) recipe() (Recipe, bool) {
	r := Recipe{Test: testPath(text(e.TestFile))}
	if r.Test == "" {
		return r, false
	}
	_ = json.Unmarshal(e.MultiGPU, &r.MultiGPU)
	words, err := splitWords(strings.ReplaceAll(strings.TrimSpace(text(e.Invocation)), "\n", " "))
	if err != nil {
		return r, false
	}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		r.Env = append(r.Env, words[0])
		words = words[1:]
	}
	for i, w := range words {
		if file, node, _ := strings.Cut(w, "::"); strings.HasSuffix(file, ".py") {
			r.Args, r.Node = words[i+1:], node
			break
		}
		r.Pytest = r.Pytest || w == "pytest"
	}
	var names []string
	_ = json.Unmarshal(e.Kernels, &names)
	for _, n := range append(names, text(e.Hint)) {
		if h := hint(n); h != "" {
			r.Hints = appendNew(r.Hints, h, 16)
		}
	}
	return r, true
}

// testPath takes what follows tests/kernels/ in a path, else its base name.
func testPath(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	if !strings.HasSuffix(p, ".py") || len(p) > 4096 {
		return ""
	}
	if _, rest, ok := strings.Cut(p, "tests/kernels/"); ok {
		return path.Clean(rest)
	}
	return path.Base(p)
}

var hintName = regexp.MustCompile(`^[A-Za-z_]\w{2,199}$`)

// hint takes the name out of a hint, which prose may follow and a module may precede. A name of fewer than three letters fits
// too much.
func hint(s string) string {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return ""
	}
	name := fields[0][strings.LastIndexByte(fields[0], '.')+1:]
	if !hintName.MatchString(name) {
		return ""
	}
	return name
}

// applyRecipes marks the kernels that the registry has, and adds those whose test is gone, so that asking for one says why.
func (t *Tree) applyRecipes(l *Listing, files map[string]*pyFile) {
	var stale, refused []string
	for _, r := range t.recipes {
		var left []string
		if r.Env, left = t.recipeEnv(r.Env); len(left) > 0 {
			refused = append(refused, fmt.Sprintf("%s (%s)", strings.Join(left, ", "), r.Test))
		}
		i := slices.IndexFunc(l.Kernels, func(k Kernel) bool { return strings.HasSuffix(k.TestFile, "/"+r.Test) })
		if i >= 0 {
			if l.Kernels[i].RecipeSource != FromRegistry { // the first recipe of a test counts
				l.Kernels[i].adopt(r, files[l.Kernels[i].TestFile])
			}
			continue
		}
		k := Kernel{
			Name: strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(path.Base(r.Test), ".py"), "test_"), "bench_"), RecipeSource: FromRegistry,
			TestFile: "tests/kernels/" + r.Test, Runner: RunScript, Stale: "this worktree has no tests/kernels/" + r.Test,
			Shape: ShapeBinding{Kind: BindNone, Form: "nothing"}, Hints: r.Hints,
		}
		k.Category = CategoryOf(k.Name)
		if !slices.ContainsFunc(l.Kernels, func(have Kernel) bool { return have.Name == k.Name }) {
			l.Kernels = append(l.Kernels, k)
		}
		stale = append(stale, r.Test)
	}
	if len(refused) > 0 {
		l.Warnings = append(l.Warnings, envelope.Warning{Code: "RECIPES_VARIABLES", Message: fmt.Sprintf(
			"variables that recipes set are left out: %s; %s lets them pass", strings.Join(refused[:min(len(refused), 8)], ", "), anySetting)})
	}
	if len(stale) > 0 {
		l.Warnings = append(l.Warnings, envelope.Warning{Code: "RECIPES_STALE", Message: fmt.Sprintf(
			"%d recipes name tests that this worktree does not have: %s", len(stale), strings.Join(stale[:min(len(stale), 8)], ", "))})
	}
}

// recipeEnv gives what a recipe may set, by the rules of a command of the caller's own, and the names that those leave out. The GPU and
// the comparison runs are the caller's to decide: recipes in use set both, and nothing is said about it.
func (t *Tree) recipeEnv(env []string) (kept, refused []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		why, _ := refuseVariable(name, value, t.any)
		switch {
		case named(masks, name) || name == "ROCDSL_COMPARE_AITER" || name == "ROCDSL_COMPARE_TORCH":
		case why == "":
			kept = append(kept, kv)
		default:
			refused = append(refused, name)
		}
	}
	return kept, refused
}

// adopt takes a recipe's way to run the test, where the file has it: one without a main part launches nothing as a script.
// Arguments are for that way only.
func (k *Kernel) adopt(r Recipe, f *pyFile) {
	k.RecipeSource, k.RecipeEnv, k.Hints = FromRegistry, r.Env, r.Hints
	switch {
	case r.Pytest && len(f.tests) > 0:
		k.Runner, k.ScriptWithArgs, k.RecipeArgs = RunPytest, false, r.Args
		if k.Node = r.Node; k.Node == "" {
			k.Node = pickTest(f)
		}
	case !r.Pytest && f.hasMain && !f.mainPytest:
		k.Runner, k.ScriptWithArgs, k.Node, k.RecipeArgs = RunScript, false, "", r.Args
	case !r.Pytest && k.ScriptWithArgs:
		k.RecipeArgs = r.Args
	}
	if r.MultiGPU && k.MultiGPU == "" {
		k.MultiGPU = "the recipe says that it needs several GPUs"
	}
}
