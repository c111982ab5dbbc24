package worktree

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pyFile is what a Python file of the worktree says about itself, found without running it.
type pyFile struct {
	// path is relative to the worktree, with forward slashes.
	path string
	// imports are dotted modules; those that stand inside a function are marked.
	imports []pyImport
	// targets are the files of the worktree that each of them leads to, found once.
	targets [][]string
	symbols []SymbolPattern
	tests   []pyTest
	hasMain bool
	// mainPytest: the main part hands over to pytest.main.
	mainPytest bool
	flags      []pyFlag
	// shapeVars are environment variables ROCDSL_*_SHAPE(S), in order of appearance.
	shapeVars []string
	// requires are packages without which the file cannot run at all.
	requires []string
	// multi says why the file needs several GPUs; empty where it does not.
	multi string
	// gates are the reasons for which the file skips itself, as far as they name an architecture.
	gates []string
}

type pyImport struct {
	module string
	// names are what `from module import names` takes; nil for a plain import.
	names []string
	// known are the names under which they are known in this file.
	known []string
	// local: inside a function or a branch.
	local bool
}

type pyTest struct {
	node string // as pytest names it behind "::", such as TestX::test_y
	// avoid: marked large_shape, multi_gpu or skip.
	avoid, multi bool
	// gpu: its body, or its parameters, speak of the GPU.
	gpu bool
}

// pyFlag is one add_argument call.
type pyFlag struct {
	names    []string // as written, with dashes
	required bool
	isSwitch bool // takes no value
	tuple    bool // takes several numbers in one value
	choices  []string
	// def is the default as written; empty where there is none. None is kept as "None".
	def string
	// many: nargs takes a list.
	many bool
}

var (
	reImport  = regexp.MustCompile(`^import\s+(.+)$`)
	reFrom    = regexp.MustCompile(`^from\s+(\.*[\w.]*)\s+import\s+(.+)$`)
	reDef     = regexp.MustCompile(`^(?:async\s+)?def\s+(\w+)`)
	reClass   = regexp.MustCompile(`^class\s+(\w+)`)
	reDeco    = regexp.MustCompile(`^@\s*([\w.]+)\s*(\(?)`)
	reMain    = regexp.MustCompile(`^if\s+\(?\s*__name__\s*==\s*["']__main__["']`)
	reEnvVar  = regexp.MustCompile(`["'](ROCDSL_[A-Z0-9_]*SHAPES?)["']`)
	reSkip    = regexp.MustCompile(`importorskip\(\s*["']([\w.]+)["']`)
	reRename  = regexp.MustCompile(`^(\w+)(?:\.\w+)*\.__name__\s*=\s*([^=].*)$`)
	reDynamic = regexp.MustCompile(`import_module\(\s*["'](kernels[\w.]*)["']`)
	reString  = regexp.MustCompile(`[fFrR]{0,2}"(?:[^"\\]|\\.)*"|[fFrR]{0,2}'(?:[^'\\]|\\.)*'`)
	reGfx     = regexp.MustCompile(`(?i)gfx[0-9][0-9a-f]*[x*]?|\bCDNA\s?\d?|\bRDNA\s?\d?`)
	reIdent   = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// Texts that a file must hold for its lines to be looked at more closely: most files hold none of them.
const (
	signEnvVar  = "ROCDSL_"
	signDynamic = "import_module("
	signOrSkip  = "importorskip("
	signRename  = ".__name__"
	signFlag    = ".add_argument("
)

var signsOfGate = []string{"pytest.skip(", "skipif(", "reason="}

// multiSigns are texts of code that only a test of several processes has.
var multiSigns = []struct{ text, why string }{
	{"mp.spawn(", "it spawns one process per GPU (mp.spawn)"},
	{"multiprocessing.spawn(", "it spawns one process per GPU (torch.multiprocessing.spawn)"},
	{"init_process_group(", "it joins a process group (torch.distributed)"},
	{`"torchrun"`, "it starts itself under torchrun"},
	{`'torchrun'`, "it starts itself under torchrun"},
	{`torch.distributed.run"`, "it starts itself under torch.distributed.run"},
}

// parser walks the logical lines of one file.
type parser struct {
	f *pyFile
	// aliases are names under which flydsl.compiler is known in this file.
	aliases map[string]bool
	// bare are names under which the decorator itself was imported.
	bare     map[string]bool
	assigned map[string]string // last value given to a name, as written
	kernels  map[string]int    // function name -> index of its symbol
	decos    []line            // decorators that wait for their function
	inTest   int               // index into tests while inside one, else -1
	testIn   int               // indent of that test
	class    string            // test class at the left margin
	inMain   bool
	multiIn  []string // signs found outside of tests marked multi_gpu
	// What the file holds anywhere: its lines need not be searched for the rest.
	has   map[string]bool
	gates []string
	multi []int // indices into multiSigns
}

// survey finds out which signs a file has at all. Of a module, only its kernels and imports are of interest.
func (p *parser) survey(src string) {
	p.has = map[string]bool{signDynamic: strings.Contains(src, signDynamic), signRename: strings.Contains(src, signRename)}
	if !isTestFile(p.f.path) {
		return
	}
	for _, sign := range []string{signEnvVar, signOrSkip, signFlag} {
		p.has[sign] = strings.Contains(src, sign)
	}
	for _, sign := range signsOfGate {
		if strings.Contains(src, sign) {
			p.gates = append(p.gates, sign)
		}
	}
	for i, sign := range multiSigns {
		if strings.Contains(src, sign.text) {
			p.multi = append(p.multi, i)
		}
	}
}

// holds tells whether a line has a sign.
func (p *parser) holds(t, sign string) bool { return p.has[sign] && strings.Contains(t, sign) }

// parsePython reads one file. path is relative to the worktree. It never fails: what it does not understand is not there.
func parsePython(path, src string) *pyFile {
	p := &parser{
		f: &pyFile{path: path}, aliases: map[string]bool{"flyc": true, "flydsl.compiler": true}, bare: map[string]bool{},
		assigned: map[string]string{}, kernels: map[string]int{}, inTest: -1,
	}
	p.survey(src)
	for _, l := range logicalLines(src) {
		p.line(l)
	}
	if len(p.multiIn) > 0 {
		p.f.multi = p.multiIn[0]
	}
	return p.f
}

func (p *parser) line(l line) {
	t := l.text
	if p.inTest >= 0 && l.indent <= p.testIn {
		p.inTest = -1
	}
	if l.indent == 0 {
		p.inMain = strings.HasPrefix(t, "if") && reMain.MatchString(t)
		if p.inMain {
			p.f.hasMain = true
		}
	}
	// Regular expressions see only what can fit: most lines hold nothing of interest, and a listing reads 60,000.
	var def []string
	if strings.HasPrefix(t, "def") || strings.HasPrefix(t, "async") {
		def = reDef.FindStringSubmatch(t)
	}
	switch {
	case t[0] == '@':
		p.decos = append(p.decos, l)
		return
	case def != nil:
		p.def(l, def[1])
	case strings.HasPrefix(t, "class "):
		p.classLine(l)
	case strings.HasPrefix(t, "import ") || strings.HasPrefix(t, "from "):
		p.imports(l)
	default:
		p.statement(l)
	}
	p.decos = p.decos[:0]
	p.signs(l)
}

func (p *parser) classLine(l line) {
	if l.indent > 0 {
		return
	}
	p.class = ""
	if m := reClass.FindStringSubmatch(l.text); m != nil && strings.HasPrefix(m[1], "Test") {
		p.class = m[1]
	}
}

// def looks at a function: a kernel, a test, or neither.
func (p *parser) def(l line, name string) {
	for _, d := range p.decos {
		if args, ok := p.kernelDecorator(d.text); ok {
			p.kernel(d, name, args)
		}
	}
	if l.indent == 0 {
		p.class = ""
	}
	top := l.indent == 0 || p.class != ""
	if !top || !strings.HasPrefix(name, "test") || (l.indent > 0 && p.inTest >= 0) {
		return
	}
	test := pyTest{node: name}
	if !strings.HasPrefix(name, "test_") && l.indent == 0 {
		return
	}
	if l.indent > 0 {
		test.node = p.class + "::" + name
	}
	for _, d := range p.decos {
		test.multi = test.multi || strings.Contains(d.text, "multi_gpu")
		test.avoid = test.avoid || strings.Contains(d.text, "large_shape") || regexpSkipMark(d.text)
	}
	test.avoid = test.avoid || test.multi
	p.f.tests = append(p.f.tests, test)
	p.inTest, p.testIn = len(p.f.tests)-1, l.indent
}

func regexpSkipMark(deco string) bool {
	return strings.HasPrefix(deco, "@pytest.mark.skip(") || deco == "@pytest.mark.skip" || strings.HasPrefix(deco, "@unittest.skip(")
}

// kernelDecorator tells whether a decorator is FlyDSL's @kernel, and gives its arguments
// (flydsl/compiler/kernel_function.py: kernel(func=None, *, name=None, known_block_size=None)).
func (p *parser) kernelDecorator(t string) ([]string, bool) {
	m := reDeco.FindStringSubmatchIndex(t)
	if m == nil {
		return nil, false
	}
	dotted := t[m[2]:m[3]]
	module, attr := "", dotted
	if i := strings.LastIndexByte(dotted, '.'); i >= 0 {
		module, attr = dotted[:i], dotted[i+1:]
	}
	if (module == "" && !p.bare[attr]) || (module != "" && (attr != "kernel" || !p.aliases[module])) {
		return nil, false
	}
	if m[4] == m[5] {
		return nil, true
	}
	return callArgs(t, m[4]), true
}

func (p *parser) kernel(d line, fn string, args []string) {
	s := defPattern(fn)
	for _, a := range args {
		key, value, found := strings.Cut(a, "=")
		if found && strings.TrimSpace(key) == "name" {
			s = p.namePattern(fn, strings.TrimSpace(value))
		}
	}
	s.Source = fmt.Sprintf("%s:%d", p.f.path, d.no)
	p.kernels[fn] = len(p.f.symbols)
	p.addSymbol(s)
}

const maxSymbolsPerFile = 400

func (p *parser) addSymbol(s SymbolPattern) {
	if len(p.f.symbols) < maxSymbolsPerFile {
		p.f.symbols = append(p.f.symbols, s)
	}
}

// namePattern gives the pattern of a kernel whose name is an expression: a literal, an f-string, or a variable that was
// given one of these above.
func (p *parser) namePattern(fn, expr string) SymbolPattern {
	if value, ok := p.assigned[expr]; ok && reIdent.MatchString(expr) {
		expr = value
	}
	if expr == "None" {
		return defPattern(fn)
	}
	lit, ok := parseString(expr)
	if !ok {
		return SymbolPattern{Kind: KindVariable, Func: fn}
	}
	return literalPattern(fn, lit)
}

func (p *parser) imports(l line) {
	local := l.indent > 0
	if m := reImport.FindStringSubmatch(l.text); m != nil {
		for _, part := range strings.Split(m[1], ",") {
			fields := strings.Fields(part)
			if len(fields) == 0 {
				continue
			}
			if len(fields) == 3 && fields[0] == "flydsl.compiler" {
				p.aliases[fields[2]] = true
			}
			p.addImport(pyImport{module: fields[0], local: local})
		}
		return
	}
	m := reFrom.FindStringSubmatch(l.text)
	if m == nil {
		return
	}
	imp := pyImport{module: m[1], local: local, names: []string{}}
	for _, part := range strings.Split(strings.Trim(m[2], "() "), ",") {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			continue
		}
		known := fields[len(fields)-1]
		imp.names, imp.known = append(imp.names, fields[0]), append(imp.known, known)
		switch {
		case m[1] == "flydsl" && fields[0] == "compiler":
			p.aliases[known] = true
		case m[1] == "flydsl.compiler" && fields[0] == "kernel":
			p.bare[known] = true
		}
	}
	p.addImport(imp)
}

const maxImportsPerFile = 2000

func (p *parser) addImport(imp pyImport) {
	if len(p.f.imports) < maxImportsPerFile {
		p.f.imports = append(p.f.imports, imp)
	}
	if root, _, _ := strings.Cut(imp.module, "."); root == "mori" {
		p.foundMulti("it needs mori, which talks between GPUs")
		p.require("mori")
	}
}

func (p *parser) statement(l line) {
	t := l.text
	if name, value, ok := assigned(t); ok && len(value) < 2000 {
		p.assigned[name] = value
	}
	if p.holds(t, signRename) {
		if m := reRename.FindStringSubmatch(t); m != nil {
			p.rename(l, m[1], m[2])
		}
	}
	if p.holds(t, signFlag) && len(p.f.flags) < 200 {
		if f, ok := parseFlag(callArgs(t, strings.Index(t, signFlag)+len(signFlag)-1)); ok {
			p.f.flags = append(p.f.flags, f)
		}
	}
	if p.inMain && strings.Contains(t, "pytest.main(") {
		p.f.mainPytest = true
	}
}

// assigned reads `name = value` and `name: type = value`.
func assigned(t string) (name, value string, ok bool) {
	n := 0
	for n < len(t) && strings.IndexByte(identChars, t[n]) >= 0 {
		n++
	}
	rest := strings.TrimLeft(t[n:], " \t")
	if strings.HasPrefix(rest, ":") {
		rest = rest[max(0, strings.IndexByte(rest, '=')):]
	}
	value, ok = strings.CutPrefix(rest, "=")
	value = strings.TrimLeft(value, " \t")
	return t[:n], value, ok && n > 0 && value != "" && value[0] != '='
}

// rename handles `func._func.__name__ = expr`: the symbol is made from that name when the kernel is emitted.
func (p *parser) rename(l line, fn, expr string) {
	s := p.namePattern(fn, strings.TrimSpace(expr))
	if s.Kind == KindName || s.Kind == KindFString {
		s = numbered(s)
	}
	s.Source = fmt.Sprintf("%s:%d", p.f.path, l.no)
	p.addSymbol(s)
}

// signs looks for what any kind of line may hold.
func (p *parser) signs(l line) {
	t := l.text
	if p.inTest >= 0 && !p.f.tests[p.inTest].gpu && (strings.Contains(t, "cuda") || strings.Contains(t, "run_") || strings.Contains(t, "bench")) {
		p.f.tests[p.inTest].gpu = true
	}
	if p.holds(t, signEnvVar) {
		for _, m := range reEnvVar.FindAllStringSubmatch(t, 4) {
			p.f.shapeVars = appendNew(p.f.shapeVars, m[1], 16)
		}
	}
	if p.holds(t, signDynamic) {
		for _, m := range reDynamic.FindAllStringSubmatch(t, 4) {
			p.addImport(pyImport{module: m[1], local: l.indent > 0})
		}
	}
	if l.indent == 0 && p.holds(t, signOrSkip) {
		p.importOrSkip(t)
	}
	if slices.ContainsFunc(p.gates, func(sign string) bool { return strings.Contains(t, sign) }) {
		p.gate(l)
	}
	for _, i := range p.multi {
		if strings.Contains(t, multiSigns[i].text) {
			p.foundMulti(multiSigns[i].why)
		}
	}
}

func (p *parser) importOrSkip(t string) {
	m := reSkip.FindStringSubmatch(t)
	if m == nil {
		return
	}
	root, _, _ := strings.Cut(m[1], ".")
	p.require(root)
	if root == "mori" {
		p.foundMulti("it needs mori, which talks between GPUs")
	}
}

// gate keeps the reason of a skip that names an architecture, or a package that is missing.
func (p *parser) gate(l line) {
	for _, quoted := range reString.FindAllString(l.text, 8) {
		lit, ok := parseString(quoted)
		if !ok {
			continue
		}
		reason := strings.TrimSpace(strings.Join(lit.parts, "…"))
		if strings.Contains(l.text, "allow_module_level") && strings.HasPrefix(reason, "aiter ") {
			p.require("aiter")
		}
		if reGfx.MatchString(reason) && strings.Contains(reason, " ") {
			reason, _, _ = strings.Cut(reason, ", got")
			p.f.gates = appendNew(p.f.gates, shorten(reason, 120), 4)
		}
	}
}

func (p *parser) require(pkg string) { p.f.requires = appendNew(p.f.requires, pkg, 8) }

// foundMulti notes a sign of several GPUs, except inside a test that says so of itself alone.
func (p *parser) foundMulti(why string) {
	if p.inTest >= 0 && p.f.tests[p.inTest].multi {
		return
	}
	p.multiIn = appendNew(p.multiIn, why, 4)
}

func parseFlag(args []string) (pyFlag, bool) {
	var f pyFlag
	for _, a := range args {
		if name, ok := plain(a); ok {
			if !strings.HasPrefix(name, "-") {
				return f, false // a positional of the script: never a shape flag
			}
			f.names = append(f.names, name)
			continue
		}
		key, value, _ := strings.Cut(a, "=")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "required":
			f.required = value == "True"
		case "action":
			action, _ := plain(value)
			f.isSwitch = strings.HasPrefix(action, "store_") && action != "store_value" || strings.Contains(value, "Boolean")
		case "type":
			f.tuple = f.tuple || strings.Contains(value, "tuple") || strings.Contains(value, "dim")
		case "default":
			f.def = shorten(value, 120)
			f.tuple = f.tuple || strings.HasPrefix(value, "(")
		case "nargs":
			f.many = strings.ContainsAny(value, "*+")
		case "choices":
			for _, m := range reString.FindAllString(value, 32) {
				if c, ok := plain(m); ok {
					f.choices = append(f.choices, c)
				}
			}
		}
	}
	return f, len(f.names) > 0
}

func appendNew(list []string, s string, limit int) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	if len(list) >= limit {
		return list
	}
	return append(list, s)
}

func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
