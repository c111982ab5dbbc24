package worktree

import "github.com/flyprof/flyprof-mcp/core/envelope"

// Where a recipe comes from.
const (
	FromRegistry = "registry"      // recipes.json
	Synthesized  = "synthesizable" // made from the test file
	FromCaller   = "invocation"    // the caller's own command
)

// How a test is run.
const (
	RunScript = "script" // python FILE
	RunPytest = "pytest" // python -m pytest FILE::node
)

// Kernel is one runnable entry of a worktree: a test or bench file and what it launches.
type Kernel struct {
	// Name is the file's stem without test_ or bench_, with its folder where two have the same.
	Name         string `json:"kernel"`
	RecipeSource string `json:"recipe_source"`
	// TestFile is relative to the worktree, with forward slashes.
	TestFile string `json:"test_file"`
	Runner   string `json:"runner"`
	// Node is the test that pytest runs, such as TestX::test_y; empty for the whole file, or for a script.
	Node     string `json:"node,omitempty"`
	Category string `json:"category"`
	Bench    bool   `json:"bench,omitempty"`
	// MultiGPU says why one GPU is not enough; empty where it is.
	MultiGPU string `json:"multi_gpu,omitempty"`
	// Modules are the worktree's files that the test is made of besides itself, by import, transitively.
	Modules []string        `json:"modules,omitempty"`
	Symbols []SymbolPattern `json:"symbols,omitempty"`
	// Hints are beginnings of symbols that a recipe names.
	Hints []string     `json:"hints,omitempty"`
	Shape ShapeBinding `json:"shape"`
	// Requires are Python packages without which the test cannot run.
	Requires []string `json:"requires,omitempty"`
	// ArchGates are the reasons, as the file words them, for which it skips itself on some architectures.
	ArchGates []string `json:"arch_gates,omitempty"`
	// Stale says what is wrong with the registry's recipe; such an entry cannot be run.
	Stale string `json:"stale,omitempty"`
	// NeedsArgs names flags that the script demands and no shape gives.
	NeedsArgs []string `json:"needs_args,omitempty"`
	// RecipeEnv and RecipeArgs are the registry's; Extra are flags that every run of the script gets.
	RecipeEnv  []string `json:"recipe_env,omitempty"`
	RecipeArgs []string `json:"recipe_args,omitempty"`
	Extra      []string `json:"extra_args,omitempty"`
	// ScriptWithArgs: without arguments the script runs all its tests, with arguments one problem.
	ScriptWithArgs bool `json:"script_with_args,omitempty"`
}

// How a shape reaches a test.
const (
	BindEnv   = "env"
	BindFlags = "flags"
	BindNone  = "none"
)

// ShapeBinding is how a shape reaches a test.
type ShapeBinding struct {
	Kind string `json:"kind"`
	// EnvVar takes "M,N,dtype".
	EnvVar string `json:"env_var,omitempty"`
	// Flags are those of the script, one for each axis, or one for several.
	Flags []ShapeFlag `json:"flags,omitempty"`
	DType *ShapeFlag  `json:"dtype_flag,omitempty"`
	// Causal and NotCausal are switches.
	Causal    string `json:"causal_flag,omitempty"`
	NotCausal string `json:"not_causal_flag,omitempty"`
	// Axes are what the test takes, in positional order.
	Axes []string `json:"axes,omitempty"`
	// Form says in words what can be given.
	Form string `json:"form"`
}

// ShapeFlag is a flag of a script.
type ShapeFlag struct {
	Flag string `json:"flag"`
	// Axes are those whose extents it takes, joined by commas where there are several.
	Axes []string `json:"axes,omitempty"`
	// Choices are the values it allows; empty for any.
	Choices []string `json:"choices,omitempty"`
	Default string   `json:"default,omitempty"`
}

// ParseShape reads a shape as this kernel's test takes it: by the axes that it has, in the order of its category.
func (k *Kernel) ParseShape(text string) (Shape, error) {
	axes, ok := axesOf[k.Category]
	if !ok {
		return ParseShape(k.Category, text) // says that there is no convention
	}
	if len(k.Shape.Axes) == 0 {
		return parseAxes(k.Category, axes, text)
	}
	var own []axis
	for _, a := range axes {
		for _, name := range k.Shape.Axes {
			if a.name == name {
				own = append(own, a)
			}
		}
	}
	return parseAxes(k.Category, own, text)
}

// Listing is what a worktree has.
type Listing struct {
	Kernels []Kernel
	// Helpers are files beside the tests that run nothing; Skipped those that were left out, with the reason.
	Helpers []Note
	Skipped []Note
	// Truncated says why the listing is not whole; empty where it is.
	Truncated string
	// FilesRead counts the Python files that were read.
	FilesRead int
	Warnings  []envelope.Warning
}

// MatchSymbol tells how a launched symbol fits the kernels that the worktree defines for this test: exact where a kernel that
// the test is made of can only be called that, prefix where a name with gaps fits, one that merely comes along, or a recipe's
// hint.
func MatchSymbol(k *Kernel, symbol string) (exact, prefix bool) {
	if k == nil || LooksForeign(symbol) {
		return false, false
	}
	for _, s := range k.Symbols {
		if s.Match(symbol) {
			exact = exact || s.Exact && s.Direct
			prefix = prefix || !s.Exact || !s.Direct
		}
	}
	for _, hint := range k.Hints {
		prefix = prefix || hinted(hint, symbol)
	}
	return exact, prefix
}
