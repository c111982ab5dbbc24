package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// marker opens the comment block of a test script that says what the script would launch:
//
//	# flyprof-sim: {"shapes": {"env": "ROCDSL_SOFTMAX_SHAPES", "axes": ["M","N","dtype"], "default": ["4096,8192,bf16"]},
//	#   "launches": [{"kernel": "softmax_kernel_0", "source": "kernels/norm/softmax_kernel.py", "grid": ["M"], ...}]}
//
// The block is one JSON object; it goes on over the following comment lines.
const marker = "# flyprof-sim:"

// maxScriptBytes bounds a script or kernel source.
const maxScriptBytes = 1 << 20

// workload is what a test script launches.
type workload struct {
	Shapes   shapeSpec  `json:"shapes"`
	Flags    []flagSpec `json:"flags"`
	GPUs     int        `json:"gpus"`     // GPUs the test needs; 0 is 1
	Requires []string   `json:"requires"` // modules that the simulated interpreter does not have
	Launches []launch   `json:"launches"`
}

// shapeSpec says how the test takes its shapes: "v,v,v;v,v,v" in an environment variable, one value an axis, or by flags.
type shapeSpec struct {
	Env     string   `json:"env"`
	Axes    []string `json:"axes"`
	Default []string `json:"default"`
}

// flagSpec is one option of the test's argparse.
type flagSpec struct {
	Names    []string `json:"names"`
	Axis     string   `json:"axis"`
	Default  string   `json:"default"`
	Switch   bool     `json:"switch"`
	Required bool     `json:"required"`
}

// launch is one kernel that the test launches for each shape. Figures are formulas over the shape's axes; `bytes` is
// the size of the dtype.
type launch struct {
	Kernel   string   `json:"kernel"`
	Source   string   `json:"source"`   // file relative to the worktree
	Function string   `json:"function"` // def in that file; default the kernel's name without _0
	Template string   `json:"template"` // code template, see isa.go
	Calls    figure   `json:"calls"`    // launches a shape; default 12
	Grid     []figure `json:"grid"`     // workgroups an axis
	Block    []figure `json:"block"`    // work-items an axis; default 256
	NS       figure   `json:"ns"`       // duration; default by size
	Trips    figure   `json:"trips"`    // iterations of the template's loop
	VGPR     figure   `json:"vgpr"`
	AccVGPR  figure   `json:"accum_vgpr"`
	LDS      figure   `json:"lds"`      // bytes a workgroup
	When     figure   `json:"when"`     // launched only where this is not 0
	Tests    []string `json:"tests"`    // pytest functions that launch it; empty is all
	Baseline bool     `json:"baseline"` // no FlyDSL kernel: one code object for all shapes, no JIT cache entry
}

// shape is one problem: the axes' values and its text.
type shape struct {
	vars  map[string]float64
	text  string
	dtype string
}

var dtypeBytes = map[string]float64{"f64": 8, "f32": 4, "fp32": 4, "f16": 2, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "i8": 1, "fp6": 0.75, "fp4": 0.5}

// script is a test file as the interpreter finds it.
type script struct {
	path, root string
	text       string
	hasMain    bool
	tests      []string // def test_* in order
}

var (
	mainGuard = regexp.MustCompile(`(?m)^if __name__ == ["']__main__["']\s*:`)
	testDef   = regexp.MustCompile(`(?m)^(?:async )?def (test_\w+)`)
	fromKern  = regexp.MustCompile(`(?m)^\s*(?:from|import)\s+(kernels(?:\.\w+)+)`)
	kernelDef = regexp.MustCompile(`(?s)@flyc\.kernel(?:\(([^)]*)\))?\s*(?:@[^\n]*\s*)*def\s+(\w+)`)
	nameArg   = regexp.MustCompile(`name\s*=\s*f?["']([^"']+)["']`)
)

// readScript reads a test file; the worktree is the nearest directory above it (or the working directory) with kernels/.
func readScript(path string) (*script, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	text, err := readBounded(abs)
	if err != nil {
		return nil, err
	}
	s := &script{path: abs, text: text, hasMain: mainGuard.MatchString(text)}
	for _, m := range testDef.FindAllStringSubmatch(text, -1) {
		s.tests = append(s.tests, m[1])
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "kernels")); err == nil && info.IsDir() && filepath.Base(dir) != "tests" {
			s.root = dir
			return s, nil
		}
		if dir == filepath.Dir(dir) {
			s.root = filepath.Dir(abs)
			return s, nil
		}
	}
}

func readBounded(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScriptBytes))
	return string(data), err
}

// workload gives the script's own description, or one guessed from the kernels that it imports.
func (s *script) workload() (*workload, error) {
	_, rest, ok := strings.Cut(s.text, marker)
	if !ok {
		return s.guess(), nil
	}
	var block strings.Builder
	for i, line := range strings.Split(rest, "\n") {
		if i > 0 {
			body, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
			if !isComment {
				break
			}
			line = body
		}
		block.WriteString(line + "\n")
	}
	var w workload
	if err := json.NewDecoder(strings.NewReader(block.String())).Decode(&w); err != nil {
		return nil, fmt.Errorf("%s: the flyprof-sim block: %w", filepath.Base(s.path), err)
	}
	return &w, nil
}

// guess describes a script of a real checkout: every kernel defined by the modules that it imports, on a default grid.
func (s *script) guess() *workload {
	w := &workload{}
	files := []string{s.path}
	for _, m := range fromKern.FindAllStringSubmatch(s.text, 200) {
		file := filepath.Join(s.root, filepath.FromSlash(strings.ReplaceAll(m[1], ".", "/"))+".py")
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	for _, file := range files {
		text, err := readBounded(file)
		if err != nil {
			continue
		}
		source, err := filepath.Rel(s.root, file)
		if err != nil {
			continue
		}
		for _, m := range kernelDef.FindAllStringSubmatch(text, 50) {
			kernel := m[2] + "_0"
			if name := nameArg.FindStringSubmatch(m[1]); name != nil {
				kernel = braces.ReplaceAllString(name[1], "1")
			}
			template := "reduction"
			if strings.Contains(kernel, "gemm") || strings.Contains(kernel, "attn") {
				template = "gemm"
			}
			w.Launches = append(w.Launches, launch{Kernel: kernel, Function: m[2], Source: filepath.ToSlash(source), Template: template, Grid: []figure{"1024"}})
		}
	}
	return w
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

// usageError is an argparse complaint (exit 2).
type usageError string

func (e usageError) Error() string { return string(e) }

// shapes binds the problem sizes from flags and environment; script is false under pytest, where flags do not exist.
func (w *workload) shapes(args []string, env environment, isScript bool) ([]shape, error) {
	texts := map[string]string{}
	for _, f := range w.Flags {
		texts[f.Axis] = f.Default
	}
	if isScript {
		if err := w.parseFlags(args, texts); err != nil {
			return nil, err
		}
	}
	rows := w.Shapes.Default
	if text := env.get(w.Shapes.Env); w.Shapes.Env != "" && text != "" {
		rows = strings.Split(strings.Trim(text, "; "), ";")
	}
	if len(rows) == 0 {
		rows = []string{""}
	}
	if len(rows) > 64 {
		return nil, fmt.Errorf("ValueError: %d shapes", len(rows))
	}
	var out []shape
	for _, row := range rows {
		s := shape{vars: map[string]float64{"bytes": 2}, dtype: "bf16"}
		words := map[string]string{}
		for k, v := range texts {
			words[k] = v
		}
		if len(w.Shapes.Axes) > 0 {
			parts := strings.Split(row, ",")
			if len(parts) != len(w.Shapes.Axes) {
				return nil, fmt.Errorf("ValueError: not enough values to unpack (expected %d, got %d)", len(w.Shapes.Axes), len(parts))
			}
			for i, axis := range w.Shapes.Axes {
				words[axis] = strings.TrimSpace(parts[i])
			}
		}
		if err := s.set(words); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// set reads the axes' texts: dtype words set `bytes`, true and false are 1 and 0, everything else is a number.
func (s *shape) set(words map[string]string) error {
	names := make([]string, 0, len(words))
	for k := range words {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, axis := range names {
		text := words[axis]
		switch size, isDtype := dtypeBytes[text]; {
		case axis == "":
			continue
		case isDtype:
			s.vars["bytes"], s.dtype = size, text
		case text == "true" || text == "false":
			s.vars[axis] = map[string]float64{"true": 1, "false": 0}[text]
		default:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > 1<<31 {
				return fmt.Errorf("ValueError: invalid literal for int() with base 10: '%.60s'", text)
			}
			s.vars[axis] = float64(n)
		}
		s.text += fmt.Sprintf(" %s=%s", axis, text)
	}
	s.text = strings.TrimSpace(s.text)
	return nil
}

// parseFlags is the test's argparse, with its messages.
func (w *workload) parseFlags(args []string, texts map[string]string) error {
	given := map[string]bool{}
	for i := 0; i < len(args); i++ {
		name, inline, hasInline := strings.Cut(args[i], "=")
		at := slices.IndexFunc(w.Flags, func(f flagSpec) bool { return slices.Contains(f.Names, name) })
		if at < 0 {
			return usageError("unrecognized arguments: " + args[i])
		}
		f := w.Flags[at]
		given[f.Names[0]] = true
		switch {
		case f.Switch:
			texts[f.Axis] = "true"
			if strings.HasPrefix(name, "--no-") {
				texts[f.Axis] = "false"
			}
		case hasInline:
			texts[f.Axis] = inline
		case i+1 < len(args):
			i++
			texts[f.Axis] = args[i]
		default:
			return usageError("argument " + name + ": expected one argument")
		}
	}
	var missing []string
	for _, f := range w.Flags {
		if f.Required && len(f.Names) > 0 && !given[f.Names[0]] {
			missing = append(missing, f.Names[0])
		}
	}
	if len(missing) > 0 {
		return usageError("the following arguments are required: " + strings.Join(missing, ", "))
	}
	return nil
}
