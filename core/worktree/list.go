package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

const (
	maxKernels          = 2000
	maxModulesPerKernel = 400
	maxSymbolsPerKernel = 64
)

// List finds the kernels of the worktree. Nothing is run; the work is bounded, and what the bounds cut is said.
func (t *Tree) List(ctx context.Context) (*Listing, error) {
	root, err := os.OpenRoot(t.root)
	if err != nil {
		return nil, invalid(t.asked, "it cannot be read", []string{t.root})
	}
	defer root.Close()
	s := &scan{ctx: ctx, root: root, paths: map[string]bool{}, files: map[string]*pyFile{}, dirs: map[string]bool{}}
	for _, dir := range []string{"tests", "kernels"} {
		if !isDir(root, dir) {
			continue
		}
		if err := s.walk(dir, 0); err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
	}
	l := &Listing{}
	for _, name := range s.tests(t.tests) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(l.Kernels) >= maxKernels {
			s.truncated = fmt.Sprintf("more than %d tests", maxKernels)
			break
		}
		s.test(l, name)
	}
	nameApart(l.Kernels)
	t.applyRecipes(l, s.files)
	sort.SliceStable(l.Kernels, func(i, j int) bool { return l.Kernels[i].Name < l.Kernels[j].Name })
	l.Skipped, l.Truncated, l.FilesRead = s.skipped, s.truncated, s.read
	if s.moreSkips > 0 {
		l.Skipped = append(l.Skipped, Note{Path: "", Why: fmt.Sprintf("%d more files were left out", s.moreSkips)})
	}
	if l.Truncated != "" {
		l.Warnings = append(l.Warnings, envelope.Warning{Code: "LISTING_TRUNCATED", Message: "the listing is not whole: " + l.Truncated})
	}
	return l, nil
}

// tests gives the Python files beside the tests, sorted.
func (s *scan) tests(dir string) []string {
	if dir == "" {
		dir = "tests"
	}
	var out []string
	for p := range s.paths {
		if strings.HasPrefix(p, dir+"/") {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// test takes one file beside the tests into the listing: as a kernel, or as a helper.
func (s *scan) test(l *Listing, name string) {
	base := path.Base(name)
	if base == "__init__.py" || base == "conftest.py" {
		return
	}
	f := s.file(name)
	if f == nil {
		return
	}
	isTest, isBench := strings.HasPrefix(base, "test_"), strings.HasPrefix(base, "bench_")
	if !isTest && !isBench || len(f.tests) == 0 && !f.hasMain {
		l.Helpers = append(l.Helpers, Note{Path: name, Why: "it has neither tests nor a main part"})
		return
	}
	k := Kernel{
		Name: strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(base, ".py"), "test_"), "bench_"), RecipeSource: Synthesized,
		TestFile: name, Bench: isBench, MultiGPU: f.multi, Requires: f.requires, ArchGates: f.gates,
	}
	direct := s.follow(f, &k)
	k.Category = categoryOf(k.Name, direct)
	k.Shape = bind(f, k.Category)
	k.run(f)
	l.Kernels = append(l.Kernels, k)
}

// run decides between a script and pytest: a script takes a shape and times one problem; a file whose main part takes nothing
// is run by one of its tests.
func (k *Kernel) run(f *pyFile) {
	for _, flag := range f.flags {
		if flag.required && !k.Shape.takes(flag) {
			k.NeedsArgs = append(k.NeedsArgs, longest(flag.names))
		}
	}
	if flagOf(f, []string{"--no_aiter_bench"}) != nil {
		k.Extra = append(k.Extra, "--no_aiter_bench")
	}
	k.Runner = RunScript
	switch {
	case !f.hasMain:
		k.Runner = RunPytest
	case f.mainPytest && len(f.flags) > 0:
		k.ScriptWithArgs = true
		k.Runner = RunPytest
	case len(k.NeedsArgs) > 0 && len(f.tests) > 0:
		k.ScriptWithArgs = true
		k.Runner = RunPytest
	case f.mainPytest:
		k.Runner = RunPytest
	case len(f.tests) > 0 && k.Shape.Kind == BindNone && len(f.flags) == 0 && !mainRunsTests(f):
		k.Runner = RunPytest
	}
	if k.Runner == RunPytest {
		k.Node = pickTest(f)
	}
}

// mainRunsTests says that the main part is all there is to a file with one test.
func mainRunsTests(f *pyFile) bool { return len(f.tests) == 1 }

// pickTest takes the first test that one GPU can run, by preference one that speaks of the GPU.
func pickTest(f *pyFile) string {
	first := ""
	for _, t := range f.tests {
		if t.avoid {
			continue
		}
		if t.gpu {
			return t.node
		}
		if first == "" {
			first = t.node
		}
	}
	return first
}

func (b ShapeBinding) takes(flag pyFlag) bool {
	for _, f := range b.Flags {
		if slices.Contains(flag.names, f.Flag) {
			return true
		}
	}
	return b.DType != nil && slices.Contains(flag.names, b.DType.Flag)
}

// nameApart gives kernels of the same name different ones: a bench keeps bench_, a test in a folder is named with it.
func nameApart(kernels []Kernel) {
	count := map[string]int{}
	for _, k := range kernels {
		count[k.Name]++
	}
	taken := map[string]bool{}
	for i := range kernels {
		k := &kernels[i]
		if count[k.Name] > 1 && k.Bench {
			k.Name = "bench_" + k.Name
		}
		dir := path.Dir(k.TestFile)
		for taken[k.Name] && dir != "." && dir != "/" {
			k.Name = path.Base(dir) + "/" + k.Name
			dir = path.Dir(dir)
		}
		taken[k.Name] = true
	}
}
