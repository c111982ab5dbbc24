package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const pythonVersion = "3.12.3"

// runPython is the interpreter as far as a capture needs it: --version, the import probes (-c), a script, and -m pytest.
// A script is not run: its own description of what it launches is (workload.go).
func runPython(p *process) int {
	for i := 0; i < len(p.args); i++ {
		switch arg := p.args[i]; {
		case arg == "--version" || arg == "-V":
			fmt.Fprintln(p.stdout, "Python "+pythonVersion)
			return 0
		case arg == "-c" && i+1 < len(p.args):
			return p.runCode(p.args[i+1])
		case arg == "-m" && i+1 < len(p.args):
			if p.args[i+1] == "pytest" {
				return p.runPytest(p.args[i+2:])
			}
			p.errf("python: No module named %s", p.args[i+1])
			return 1
		case arg == "-X" || arg == "-W":
			i++
		case strings.HasPrefix(arg, "-"):
		default:
			return p.runScript(arg, p.args[i+1:])
		}
	}
	p.errf("flyprof-mcp: the simulated Python has no prompt: give a script, -m pytest, -c or --version")
	return 2
}

// flydsl is what `import flydsl` finds.
type flydsl struct{ file, version string }

var versionLine = regexp.MustCompile(`(?m)^__version__\s*=\s*["']([^"']+)["']`)

// importFlyDSL looks along PYTHONPATH as the interpreter does. Without a hit there the simulated interpreter has FlyDSL
// installed as a wheel. The error is the exception's last line.
func (p *process) importFlyDSL() (flydsl, error) {
	if p.set.has("not_built", "") {
		return flydsl{}, said("ModuleNotFoundError: No module named 'flydsl'")
	}
	if p.set.has("broken_build", "") {
		return flydsl{}, said("ModuleNotFoundError: No module named 'flydsl._mlir'")
	}
	for _, dir := range filepath.SplitList(p.env.get("PYTHONPATH")) {
		file := filepath.Join(dir, "flydsl", "__init__.py")
		text, err := readBounded(file)
		if err != nil {
			continue
		}
		found := flydsl{file: file, version: "0.0.0"}
		if m := versionLine.FindStringSubmatch(text); m != nil {
			found.version = m[1]
		}
		libs := filepath.Join(dir, "flydsl", "_mlir", "_mlir_libs")
		if _, err := os.Stat(filepath.Join(dir, "flydsl", "_mlir")); err != nil {
			return found, said("ModuleNotFoundError: No module named 'flydsl._mlir'")
		}
		if m, _ := filepath.Glob(filepath.Join(libs, "_mlirDialectsFly*.so")); len(m) == 0 {
			return found, said("ImportError: cannot import name '_mlirDialectsFly' from 'flydsl._mlir._mlir_libs' (unknown location)")
		}
		return found, nil
	}
	version := "0.3.2"
	if text, err := readBounded(filepath.Join("python", "flydsl", "__init__.py")); err == nil {
		if m := versionLine.FindStringSubmatch(text); m != nil {
			version = m[1]
		}
	}
	return flydsl{file: "/simulated/site-packages/flydsl/__init__.py", version: version}, nil
}

// runCode answers the import probes that tools send: what FlyDSL is it, is torch there.
func (p *process) runCode(code string) int {
	noTorch := p.set.has("torch_missing", "")
	switch {
	case strings.Contains(code, "flydsl"):
		found, err := p.importFlyDSL()
		if err == nil && noTorch && strings.Contains(code, "flydsl.compiler") {
			err = said("ModuleNotFoundError: No module named 'torch'")
		}
		if err != nil {
			return p.raise("<string>", err)
		}
		if strings.Contains(code, "json") {
			fmt.Fprintf(p.stdout, "{\"v\": %q, \"f\": %q, \"torch\": %t}\n", found.version, filepath.ToSlash(found.file), !noTorch)
		}
		return 0
	case strings.Contains(code, "torch"):
		if noTorch {
			return p.raise("<string>", said("ModuleNotFoundError: No module named 'torch'"))
		}
		if strings.Contains(code, "print") {
			fmt.Fprintln(p.stdout, "2.8.0+rocm7.2.simulated")
		}
		return 0
	}
	p.errf("flyprof-mcp: the simulated Python cannot run code; it answers probes that import flydsl or torch")
	return 1
}

// raise prints an uncaught exception and gives its exit code.
func (p *process) raise(file string, err error) int {
	p.errf("Traceback (most recent call last):\n  File \"%s\", line 1, in <module>\n%v", file, err)
	return 1
}

// runScript is `python FILE ARGS...`. A file without a __main__ part launches nothing and exits 0, as in Python.
func (p *process) runScript(path string, args []string) int {
	s, err := readScript(path)
	if err != nil {
		p.errf("python: can't open file '%s': [Errno 2] No such file or directory", path)
		return 2
	}
	r := &run{process: p, script: s, title: strings.Join(append([]string{"python", path}, args...), " ")}
	return r.profiled(func() int {
		if err := r.imports(); err != nil {
			return p.raise(s.path, err)
		}
		w, err := s.workload()
		if err != nil {
			return p.raise(s.path, err)
		}
		if !s.hasMain {
			return 0
		}
		if err := r.needs(w); err != nil {
			return p.raise(s.path, err)
		}
		shapes, err := w.shapes(args, p.env, true)
		var usage usageError
		switch {
		case errors.As(err, &usage):
			p.errf("usage: %s [-h] ...\n%s: error: %v", filepath.Base(path), filepath.Base(path), err)
			return 2
		case err != nil:
			return p.raise(s.path, err)
		case p.set.has("skipped", r.phase()):
			fmt.Fprintf(p.stdout, "Skipped: %s: not supported on this GPU (simulated)\n", filepath.Base(path))
			return 0
		}
		return r.launch(w, shapes, "")
	})
}

// pytestValues are the options of pytest that take a separate value.
var pytestValues = []string{"-p", "-m", "-k", "-o", "-c", "--rootdir", "--tb", "--deselect", "--ignore", "--junitxml", "-n"}

// runPytest is `python -m pytest OPTIONS FILE[::node]`, with the exit codes of FlyDSL's conftest (5 becomes 0).
func (p *process) runPytest(args []string) int {
	var path, node, keyword string
	collect := false
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case slices.Contains(pytestValues, arg):
			if i++; arg == "-k" && i < len(args) {
				keyword = args[i]
			}
		case arg == "--collect-only" || arg == "--co":
			collect = true
		case strings.HasPrefix(arg, "-"):
		default:
			path, node, _ = strings.Cut(arg, "::")
		}
	}
	s, err := readScript(path)
	if err != nil {
		p.errf("ERROR: file or directory not found: %s\n", path)
		fmt.Fprintln(p.stdout, "\nno tests ran in 0.00s")
		return 4
	}
	base, _, _ := strings.Cut(node, "[")
	if node != "" && !slices.Contains(s.tests, base) {
		p.errf("ERROR: not found: %s::%s\n(no match in any of [<Module %s>])", s.path, node, filepath.Base(path))
		return 4
	}
	var tests []string
	for _, t := range s.tests {
		if (node == "" || t == base) && (keyword == "" || strings.Contains(t, keyword)) {
			tests = append(tests, t)
		}
	}
	if collect {
		for _, t := range tests {
			fmt.Fprintf(p.stdout, "%s::%s\n", path, t)
		}
		fmt.Fprintf(p.stdout, "\n%d tests collected in 0.01s\n", len(tests))
		return 0
	}
	r := &run{process: p, script: s, title: strings.Join(append([]string{"python", "-m", "pytest"}, args...), " ")}
	return r.profiled(func() int { return r.pytest(path, tests) })
}

// pytest runs the chosen test functions one after another.
func (r *run) pytest(path string, tests []string) int {
	out := r.stdout
	fail := func(err error) int {
		fmt.Fprintf(out, "E   %v\n\n=========================== short test summary info ============================\nFAILED %s - %.60v\n1 failed in 0.20s\n", err, path, err)
		return 1
	}
	if err := r.imports(); err != nil {
		fmt.Fprintf(out, "ERROR collecting %s\nE   %v\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n1 error in 0.05s\n", path, err)
		return 2
	}
	if len(tests) == 0 {
		if len(r.script.tests) > 0 {
			fmt.Fprintf(out, "%d deselected in 0.01s\n", len(r.script.tests))
		} else {
			fmt.Fprintln(out, "no tests ran in 0.01s")
		}
		return 0
	}
	w, err := r.script.workload()
	if err != nil {
		return fail(err)
	}
	skipped := r.set.has("skipped", r.phase())
	if err := r.needs(w); err != nil {
		if !strings.HasPrefix(err.Error(), "Skipped: ") {
			return fail(err)
		}
		skipped = true
	}
	if skipped {
		fmt.Fprintf(out, "%s %s\n%d skipped in 0.02s\n", path, strings.Repeat("s", len(tests)), len(tests))
		return 0
	}
	shapes, err := w.shapes(nil, r.env, false)
	if err != nil {
		return fail(err)
	}
	for _, test := range tests {
		if code := r.launch(w, shapes, test); code != 0 {
			fmt.Fprintf(out, "=========================== short test summary info ============================\nFAILED %s::%s\n1 failed in 0.30s\n", path, test)
			return code
		}
	}
	fmt.Fprintf(out, "%s %s\n%d passed in 0.30s\n", path, strings.Repeat(".", len(tests)), len(tests))
	return 0
}
