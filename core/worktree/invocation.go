package worktree

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// InvocationRequest is what a caller wants of a test.
type InvocationRequest struct {
	// Shape in the kernel's form; empty for the test's own.
	Shape string
	// Args are further arguments, passed on as they are.
	Args []string
}

// Invocation is how a workload is run. Argv follows the interpreter.
type Invocation struct {
	Argv []string `json:"argv"`
	// Env are settings NAME=value; Unset are names that must not be inherited.
	Env   []string `json:"env"`
	Unset []string `json:"unset"`
	Cwd   string   `json:"cwd"`
	// ShapeBound says that Shape reached the test; Shape is canonical then.
	ShapeBound bool   `json:"shape_bound"`
	Shape      string `json:"shape,omitempty"`
	// Recipe says where it comes from: registry, synthesizable or invocation.
	Recipe string `json:"recipe"`
}

// always are set for every workload (flydsl/utils/env.py, tests/test_common.py): line tables for the source mapping, a compile
// cache, no autotuning and no comparison runs, which would multiply launches, and timing by events, since run_perftest would
// otherwise open torch's profiler inside rocprofv3.
var always = []string{
	"FLYDSL_AUTOTUNE=0", "FLYDSL_DEBUG_ENABLE_DEBUG_INFO=1", "FLYDSL_PERFTEST_USE_EVENTS=1", "FLYDSL_RUNTIME_ENABLE_CACHE=1", "FLYDSL_RUN_QUANT=1",
	"ROCDSL_COMPARE_AITER=0", "ROCDSL_COMPARE_TORCH=0",
}

// never are not inherited: they compile without launching, or for another GPU.
var never = []string{"ARCH", "COMPILE_ONLY", "FLYDSL_DUMP_IR", "FLYDSL_RUNTIME_RUN_ONLY"}

// pytestArgs run one test: quiet, no capture of output, no second process, none that is marked as large.
var pytestArgs = []string{"-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not large_shape"}

// Invocation gives the command that runs a kernel's test, with the shape bound to it.
//
// Errors: BAD_ARGS for a shape that cannot be read, SHAPE_NOT_BOUND for one that the test does not take, NEEDS_MULTI_GPU,
// RECIPE_STALE, and BAD_ARGS for flags that the script demands.
func (t *Tree) Invocation(k *Kernel, in InvocationRequest) (*Invocation, error) {
	switch {
	case k.Stale != "":
		return nil, envelope.Build(envelope.RecipeStale, envelope.Facts{
			Message:  fmt.Sprintf("the recipe of %s cannot be used: %s", k.Name, k.Stale),
			Evidence: envelope.Evidence{Field: "kernel", Value: k.Name, Path: k.TestFile, Setting: "--recipes (FLYPROF_RECIPES)"},
		})
	case k.MultiGPU != "":
		return nil, envelope.Build(envelope.NeedsMultiGPU, envelope.Facts{
			Message:  fmt.Sprintf("%s cannot be captured on one GPU: %s", k.TestFile, k.MultiGPU),
			Evidence: envelope.Evidence{Field: "kernel", Value: k.Name, Path: k.TestFile, Found: k.MultiGPU},
		})
	}
	out := &Invocation{Cwd: t.root, Recipe: k.RecipeSource, Unset: slices.Clone(never), Env: append(slices.Clone(always), k.RecipeEnv...)}
	args := append(slices.Clone(k.Extra), k.RecipeArgs...)
	if in.Shape != "" {
		b, shape, err := k.bindShape(in.Shape)
		if err != nil {
			return nil, err
		}
		out.ShapeBound, out.Shape = true, shape.String()
		out.Env = append(out.Env, b.env...)
		args = append(args, b.args...)
	}
	args = append(args, in.Args...)
	if err := k.satisfied(args); err != nil {
		return nil, err
	}
	out.Argv = k.argv(args)
	return out, nil
}

// argv is the script with its arguments, or the test by pytest.
func (k *Kernel) argv(args []string) []string {
	plain := len(args) == len(k.Extra) // nothing but what every run gets
	if k.Runner == RunScript || k.ScriptWithArgs && !plain {
		return append([]string{k.TestFile}, args...)
	}
	target := k.TestFile
	if k.Node != "" {
		target += "::" + k.Node
	}
	own := args
	if len(k.Extra) <= len(args) { // flags of the script are none of pytest's
		own = args[len(k.Extra):]
	}
	return append(append(slices.Clone(pytestArgs), target), own...)
}

func (k *Kernel) bindShape(text string) (bound, Shape, error) {
	notBound := func(why string) error {
		return envelope.Build(envelope.ShapeNotBound, envelope.Facts{
			Message:  fmt.Sprintf("the shape %s cannot be given to %s: %s", shorten(text, 100), k.TestFile, why),
			Evidence: envelope.Evidence{Field: "shape", Value: text, Allowed: k.Shape.Form},
		})
	}
	if k.Shape.Kind == BindNone {
		return bound{}, Shape{}, notBound("it takes " + k.Shape.Form)
	}
	shape, err := k.ParseShape(text)
	if err != nil {
		return bound{}, shape, err
	}
	b, err := k.Shape.to(shape)
	if err != nil {
		return b, shape, notBound(err.Error())
	}
	return b, shape, nil
}

// satisfied says whether every flag that the script demands is among the arguments.
func (k *Kernel) satisfied(args []string) error {
	if k.Runner == RunPytest {
		return nil
	}
	var lacks []string
	for _, flag := range k.NeedsArgs {
		given := slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
		if !given {
			lacks = append(lacks, flag)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s demands %s: give them with args", k.TestFile, strings.Join(lacks, ", ")),
		Evidence: envelope.Evidence{Field: "args", Value: strings.Join(args, " "), Allowed: "arguments that hold " + strings.Join(lacks, ", ")},
	})
}

const (
	maxInvocation = 4000
	maxWords      = 200
)

var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// reserved variables are the tool's own: they decide which GPU is used and what is injected.
func reserved(name string) bool {
	for _, prefix := range []string{"ROCPROF", "LD_PRELOAD", "LD_AUDIT", "HSA_TOOLS", "FLYPROF_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_VISIBLE_DEVICES") || name == "GPU_DEVICE_ORDINAL"
}

// CustomInvocation reads a command of the caller's own: Python or pytest on a script of the worktree or of cwd. It is cut at
// spaces and quotes and never seen by a shell.
//
// Errors: BAD_ARGS (field invocation) for anything else.
func (t *Tree) CustomInvocation(text, cwd string, args []string) (*Invocation, error) {
	bad := func(why string) error {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message: "the invocation cannot be run: " + why,
			Evidence: envelope.Evidence{Field: "invocation", Value: text,
				Allowed: "[NAME=value ...] python SCRIPT [ARGS] or pytest SCRIPT[::TEST] [ARGS], the script inside the worktree or cwd"},
		})
	}
	words, err := splitWords(text)
	if err != nil {
		return nil, bad(err.Error())
	}
	out := &Invocation{Cwd: cwd, Recipe: FromCaller, Unset: slices.Clone(never), Env: slices.Clone(always)}
	for len(words) > 0 {
		m := assignment.FindStringSubmatch(words[0])
		if m == nil {
			break
		}
		if reserved(m[1]) {
			return nil, bad(m[1] + " is set by this tool; choose the GPU with the argument gpu")
		}
		out.Env = append(out.Env, words[0])
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, bad("it names no program")
	}
	argv, script, why := program(words)
	if why != "" {
		return nil, bad(why)
	}
	if why := t.allowedScript(script, cwd); why != "" {
		return nil, bad(why)
	}
	out.Argv = append(argv, args...)
	return out, nil
}

var pythonName = regexp.MustCompile(`^python(3(\.\d+)?)?$`)

// program gives the words behind the interpreter, and which of them is the script.
func program(words []string) (argv []string, script, why string) {
	base := filepath.Base(words[0])
	switch {
	case pythonName.MatchString(base):
		words = words[1:]
	case base == "pytest" || base == "py.test":
		words = append([]string{"-m", "pytest"}, words[1:]...)
	case !strings.HasSuffix(words[0], ".py"):
		return nil, "", fmt.Sprintf("its program is %q", shorten(words[0], 100))
	}
	for len(words) > 0 && (words[0] == "-u" || words[0] == "-B") {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, "", "it names no script"
	}
	if words[0] != "-m" {
		if strings.HasPrefix(words[0], "-") {
			return nil, "", fmt.Sprintf("the interpreter's option %q is not allowed", shorten(words[0], 100))
		}
		return words, words[0], ""
	}
	if len(words) < 2 || words[1] != "pytest" {
		return nil, "", "of modules only pytest can be run"
	}
	for _, w := range words[2:] {
		file, _, _ := strings.Cut(w, "::")
		if strings.HasSuffix(file, ".py") {
			return words, file, ""
		}
	}
	return nil, "", "pytest is given no test file"
}

// allowedScript says why a script may not be run; empty where it may.
func (t *Tree) allowedScript(script, cwd string) string {
	name := script
	if !filepath.IsAbs(name) {
		name = filepath.Join(cwd, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Sprintf("there is no script %q", shorten(script, 200))
	}
	base, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "the working directory is not there"
	}
	if !inside(t.root, real) && !inside(base, real) {
		return fmt.Sprintf("the script %q lies outside the worktree and cwd", shorten(script, 200))
	}
	if !isRegular(real) {
		return fmt.Sprintf("%q is no regular file", shorten(script, 200))
	}
	return ""
}

// splitWords cuts a command at spaces; quotes and backslashes keep what they hold together, as in a shell, and nothing of a
// shell besides: a word such as $(x), | or > stays a word.
func splitWords(text string) ([]string, error) {
	if len(text) > maxInvocation || strings.ContainsAny(text, "\x00\n\r") {
		return nil, fmt.Errorf("it is longer than %d bytes, or holds a line break or NUL", maxInvocation)
	}
	var words []string
	var cur strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if open {
				words = append(words, cur.String())
				cur.Reset()
			}
			open = false
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			cur.WriteByte(text[i])
			open = true
		default:
			cur.WriteByte(c)
			open = true
		}
		if len(words) > maxWords {
			return nil, fmt.Errorf("it has more than %d words", maxWords)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %q is not closed", quote)
	}
	if open {
		words = append(words, cur.String())
	}
	return words, nil
}
