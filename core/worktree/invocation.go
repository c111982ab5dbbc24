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
	// Program runs in the interpreter's place; empty for the interpreter.
	Program string   `json:"program,omitempty"`
	Argv    []string `json:"argv"`
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
	if k.asScript(args) {
		if err := k.satisfied(args); err != nil {
			return nil, err
		}
		out.Argv = append([]string{k.TestFile}, args...)
		return out, nil
	}
	// Flags of the script are none of pytest's, and what is added stays within the worktree.
	own := slices.Concat(k.RecipeArgs, in.Args)
	why := ""
	if !t.any {
		why = confined(own, func(name string) string { return t.allowedPath(name, t.root) })
	}
	if why != "" {
		return nil, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message: fmt.Sprintf("%s is run by pytest: %s; %s lifts this", k.TestFile, why, anySetting),
			Evidence: envelope.Evidence{Field: "args", Value: strings.Join(own, " "), Setting: anySetting,
				Allowed: "options of pytest that select tests or say how to report, such as -k EXPR, and files of the worktree"},
		})
	}
	out.Argv = append(append(slices.Clone(pytestArgs), k.target()), own...)
	return out, nil
}

// asScript tells a script from a test of pytest. Some files run one problem as a script with arguments, and all their tests
// without: what every run gets does not count.
func (k *Kernel) asScript(args []string) bool {
	return k.Runner == RunScript || k.ScriptWithArgs && len(args) > len(k.Extra)
}

func (k *Kernel) target() string {
	if k.Node == "" {
		return k.TestFile
	}
	return k.TestFile + "::" + k.Node
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

// CustomInvocation reads a command of the caller's own: Python or pytest on a script of the worktree or of cwd, or any program where
// that is allowed (WithAnyInvocation). It is cut at spaces and quotes and never seen by a shell. A program other than these is named
// as the caller did: finding it is for who runs it.
//
// Errors: BAD_ARGS (field invocation), and PATH_NOT_ALLOWED for a script elsewhere.
func (t *Tree) CustomInvocation(text, cwd string, args []string) (*Invocation, error) {
	refuse := func(code envelope.Code, why string, lifted bool) error {
		f := envelope.Facts{
			Message:  "the invocation cannot be run: " + why,
			Evidence: envelope.Evidence{Field: "invocation", Value: text, Allowed: "[NAME=value ...] python SCRIPT [ARGS] or pytest SCRIPT[::TEST] [ARGS], the script inside the worktree or cwd"},
		}
		if lifted {
			f.Message += "; " + anySetting + " lifts this"
			f.Evidence.Setting = anySetting
			f.Help = "Correct the argument that the evidence names, or let the server run any command with " + anySetting + "."
		}
		return envelope.Build(code, f)
	}
	words, err := splitWords(text)
	if err != nil {
		return nil, refuse(envelope.BadArgs, err.Error(), false)
	}
	out := &Invocation{Cwd: cwd, Recipe: FromCaller, Unset: slices.Clone(never), Env: slices.Clone(always)}
	for len(words) > 0 {
		m := assignment.FindStringSubmatch(words[0])
		if m == nil {
			break
		}
		if why, lifted := refuseVariable(m[1], m[2], t.any); why != "" {
			return nil, refuse(envelope.BadArgs, why, lifted)
		}
		out.Env = append(out.Env, words[0])
		out.Unset = slices.DeleteFunc(out.Unset, func(name string) bool { return name == m[1] })
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, refuse(envelope.BadArgs, "it names no program", false)
	}
	if t.any {
		out.Program, out.Argv = anyProgram(words)
		out.Argv = append(out.Argv, args...)
		return out, nil
	}
	argv, script, why := program(words)
	if why != "" {
		return nil, refuse(envelope.BadArgs, why, true)
	}
	if code, why := t.allowedScript(script, cwd); why != "" {
		return nil, refuse(code, why, code == envelope.PathNotAllowed)
	}
	out.Argv = append(argv, args...)
	if argv[0] == "-m" {
		if why := confined(out.Argv[2:], func(name string) string { return t.allowedPath(name, cwd) }); why != "" {
			return nil, refuse(envelope.BadArgs, why, true)
		}
	}
	return out, nil
}

// anyProgram gives the program and its arguments; the program is empty where the words leave it to the interpreter in force.
func anyProgram(words []string) (string, []string) {
	switch first := words[0]; {
	case pythonName.MatchString(first):
		return "", slices.Clone(words[1:])
	case first == "pytest" || first == "py.test":
		return "", append([]string{"-m", "pytest"}, words[1:]...)
	case strings.HasSuffix(first, ".py"):
		return "", slices.Clone(words)
	}
	return words[0], slices.Clone(words[1:])
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
func (t *Tree) allowedScript(script, cwd string) (envelope.Code, string) {
	real, why := t.resolve(script, cwd)
	switch {
	case why != "":
		return envelope.PathNotAllowed, why + " (the directories of --allow-path can be given as cwd)"
	case real == "":
		return envelope.BadArgs, fmt.Sprintf("there is no script %q", shorten(script, 200))
	case !isRegular(real):
		return envelope.BadArgs, fmt.Sprintf("%q is no regular file", shorten(script, 200))
	}
	return "", ""
}

// allowedPath says why a file or directory may not be named. What is not there may be: it is no path, or pytest says so.
func (t *Tree) allowedPath(name, cwd string) string {
	_, why := t.resolve(name, cwd)
	return why
}

// resolve follows a path to what it leads to, "" where there is nothing. why says that it leads out of the worktree and cwd.
func (t *Tree) resolve(name, cwd string) (real, why string) {
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(cwd, at)
	}
	at = filepath.Clean(at) // pytest takes .. out by the text alone
	base, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", "the working directory is not there"
	}
	real, err = filepath.EvalSymlinks(at)
	if err != nil {
		if filepath.IsAbs(name) && !inside(t.root, at) && !inside(base, at) {
			return "", fmt.Sprintf("%q lies outside the worktree and cwd", shorten(name, 200))
		}
		return "", ""
	}
	if !inside(t.root, real) && !inside(base, real) {
		return "", fmt.Sprintf("%q lies outside the worktree and cwd", shorten(name, 200))
	}
	return real, ""
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
