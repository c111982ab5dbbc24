package worktree

import (
	"regexp"
	"strings"
)

// The kinds of SymbolPattern.
const (
	KindDef      = "def"      // the function's name and the number of its emission: f_0
	KindName     = "name"     // name="x": x, or x_1 when the name is taken within one launcher
	KindFString  = "fstring"  // name=f"x_{n}": known texts with gaps
	KindVariable = "variable" // a name that only the running program knows; matches nothing
)

// SymbolPattern says which launched symbols one @flyc.kernel can give. FlyDSL's symbols are plain C names
// (flydsl/compiler/kernel_function.py: "<function>_<kernel id>", or the name that was given).
type SymbolPattern struct {
	// Pattern is an anchored RE2 text; empty for KindVariable.
	Pattern string `json:"pattern,omitempty"`
	// Exact: only the number at the end is open.
	Exact bool `json:"exact,omitempty"`
	// Prefix is the text that every such symbol begins with; it may be empty.
	Prefix string `json:"prefix,omitempty"`
	// Source is the decorator's place, as file:line.
	Source string `json:"source"`
	Kind   string `json:"kind" jsonschema:"enum=def,enum=name,enum=fstring,enum=variable"`
	// Func is the decorated function.
	Func string `json:"func"`
	// Direct: defined in the test file or in a module that it is made of; not in one that merely comes along, such as the rest
	// of a package or what a helper of many tests imports.
	Direct bool `json:"direct,omitempty"`
}

func defPattern(fn string) SymbolPattern {
	return SymbolPattern{Pattern: "^" + regexp.QuoteMeta(fn) + `_\d+$`, Exact: true, Prefix: fn + "_", Kind: KindDef, Func: fn}
}

// maxName bounds a symbol's text in bytes.
const maxName = 1000

func literalPattern(fn string, lit literal) SymbolPattern {
	var quoted []string
	total := 0
	for _, part := range lit.parts {
		if strings.Trim(part, identChars) != "" {
			return SymbolPattern{Kind: KindVariable, Func: fn}
		}
		total += len(part)
		quoted = append(quoted, part)
	}
	switch {
	case total == 0 || total > maxName || len(quoted) > 64:
		return SymbolPattern{Kind: KindVariable, Func: fn}
	case len(quoted) == 1:
		return SymbolPattern{Pattern: "^" + quoted[0] + `(_\d+)?$`, Exact: true, Prefix: quoted[0], Kind: KindName, Func: fn}
	}
	return SymbolPattern{Pattern: "^" + strings.Join(quoted, `\w*`) + `(_\d+)?$`, Prefix: quoted[0], Kind: KindFString, Func: fn}
}

const identChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// numbered is the pattern of a renamed function: the emission number follows its name.
func numbered(s SymbolPattern) SymbolPattern {
	if s.Kind == KindName {
		n := defPattern(s.Prefix)
		n.Func = s.Func
		return n
	}
	s.Pattern = strings.TrimSuffix(s.Pattern, `(_\d+)?$`) + `_\d+$`
	return s
}

// Match tells whether a launched symbol fits, and whether it is pinned down by it (Exact).
func (s SymbolPattern) Match(symbol string) bool {
	if s.Pattern == "" || len(symbol) > maxName || !strings.HasPrefix(symbol, s.Prefix) {
		return false
	}
	re, err := regexp.Compile(s.Pattern)
	return err == nil && re.MatchString(symbol)
}

// hinted: the symbol is the hint, or the hint and something behind a boundary. "pa" fits pa_decode_kernel_0 and never
// spatial_pad_kernel.
func hinted(hint, symbol string) bool {
	rest, ok := strings.CutPrefix(symbol, hint)
	return ok && (rest == "" || rest[0] == '_' || hint[len(hint)-1] == '_')
}

// LooksForeign tells by the shape of a name alone that FlyDSL did not make it: C++ names, mangled or not, and the name
// schemes of Tensile, the ROCm runtime and Triton. It never goes by words: moe_sorting and reduce kernels are FlyDSL's too.
func LooksForeign(symbol string) bool {
	if symbol == "" || symbol == "Memcpy" || symbol == "Memset" {
		return true
	}
	if strings.Contains(symbol, "::") || strings.ContainsAny(symbol, "<( ") {
		return true
	}
	for _, p := range []string{"_Z", "Cijk_", "__amd_", "triton_"} {
		if strings.HasPrefix(symbol, p) {
			return true
		}
	}
	return false
}
