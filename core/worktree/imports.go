package worktree

import (
	"path"
	"slices"
	"strings"
)

// maxSteps bounds the imports that are followed for one test.
const maxSteps = 4 * maxModulesPerKernel

// reached is a file that an import leads to.
type reached struct {
	name string
	// names are what is taken out of a package; nil where all of it is meant.
	names []string
	// far: it is imported, but nothing says that the test launches what it defines.
	far bool
}

func (r reached) key() string { return r.name + "\x00" + strings.Join(r.names, ",") }

// follow collects modules and symbols over the imports: first those that the test launches for all that can be told, then
// those that merely come along. It gives the files that the test imports itself.
func (s *scan) follow(f *pyFile, k *Kernel) (direct []string) {
	took := map[string]bool{f.path: true}
	k.addSymbols(f, true)
	queue := s.imported(f, reached{name: f.path})
	for _, r := range queue {
		direct = append(direct, r.name)
	}
	seen := map[string]bool{}
	var later []reached
	for steps := 0; len(queue)+len(later) > 0 && steps < maxSteps && len(k.Modules) < maxModulesPerKernel; steps++ {
		if len(queue) == 0 {
			queue, later = later, nil
		}
		r := queue[0]
		queue = queue[1:]
		if r.far && took[r.name] || seen[r.key()] {
			continue
		}
		seen[r.key()] = true
		m := s.file(r.name)
		if m == nil {
			continue
		}
		if !took[r.name] && (path.Base(r.name) != "__init__.py" || len(m.symbols) > 0) {
			k.Modules = append(k.Modules, r.name)
			k.addSymbols(m, !r.far)
		}
		took[r.name] = true
		for _, next := range s.imported(m, r) {
			if next.far && !r.far {
				later = append(later, next)
			} else {
				queue = append(queue, next)
			}
		}
	}
	return direct
}

func (k *Kernel) addSymbols(f *pyFile, near bool) {
	for _, sym := range f.symbols {
		if len(k.Symbols) < maxSymbolsPerKernel {
			sym.Direct = near
			k.Symbols = append(k.Symbols, sym)
		}
	}
}

// imported gives the files of the worktree that a file imports. Far are: what a far file imports; what a package imports
// beyond the names that are taken out of it; what a package does that merely holds the module; and what a helper beside the
// tests imports within a function, since such a helper serves many tests.
func (s *scan) imported(f *pyFile, from reached) []reached {
	var out []reached
	helper := strings.HasPrefix(f.path, "tests/") && from.name != "" && !isTestFile(f.path)
	for i, targets := range s.targets(f) {
		imp := f.imports[i]
		far := from.far || helper && imp.local || !imp.gives(from.names)
		for _, name := range targets {
			r := reached{name: name, far: far}
			if dir, ok := strings.CutSuffix(name, "/__init__.py"); ok {
				switch {
				case slices.Contains(imp.names, path.Base(dir)): // a package is what is taken
				case imp.of(dir):
					r.names = imp.names
				default:
					r.far = true
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// targets gives the files that each import of a file leads to.
func (s *scan) targets(f *pyFile) [][]string {
	if f.targets != nil {
		return f.targets
	}
	f.targets = make([][]string, len(f.imports))
	for i, imp := range f.imports {
		for _, name := range importedFiles(f.path, imp) {
			if s.paths[name] {
				f.targets[i] = append(f.targets[i], name)
			}
		}
	}
	return f.targets
}

func isTestFile(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "test_") || strings.HasPrefix(base, "bench_")
}

// gives tells whether one of the names is known in the importing file by this import. Nil stands for all names.
func (i pyImport) gives(names []string) bool {
	if names == nil || slices.Contains(names, "*") || slices.Contains(i.known, "*") {
		return true
	}
	return slices.ContainsFunc(i.known, func(k string) bool { return slices.Contains(names, k) })
}

// of tells whether the import's module is the package in this directory.
func (i pyImport) of(dir string) bool {
	rest := strings.ReplaceAll(strings.TrimLeft(i.module, "."), ".", "/")
	return rest != "" && strings.HasSuffix("/"+dir, "/"+rest)
}
