package worktree

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// axisFlags are the flags under which FlyDSL's tests take an axis, the likelier first.
var axisFlags = map[string]map[string][]string{
	CategoryGEMM:        {"M": {"-M", "-m", "--M", "--m"}, "N": {"-N", "-n", "--N", "--n"}, "K": {"-K", "-k", "--K", "--k"}},
	CategoryReduction:   {"M": {"-M", "-m", "--M", "--m", "--rows"}, "N": {"-N", "-n", "--N", "--n", "--cols", "--hidden"}},
	CategoryElementwise: {"M": {"-M", "-m", "--M", "--m", "--rows"}, "N": {"-N", "-n", "--N", "--n", "--cols", "--hidden"}},
	CategoryAttention: {
		"B": {"--batch", "--batch_size", "-b"}, "H": {"--num_heads", "--heads", "--nheads"}, "S": {"--seq_len", "--seqlen", "--ctx_len", "-s", "-c"},
		"D": {"--head_dim", "--headdim", "-d"}, "Hkv": {"--num_kv_heads", "--kv_heads"},
	},
	CategoryMoE: {
		"T": {"--tokenNum", "--tokens", "--num_tokens", "-t", "-T"}, "E": {"--expert", "--experts", "--num_experts", "-e", "-E"},
		"k": {"--topk", "-k"}, "D": {"--hidden", "--model_dim", "-d"}, "I": {"--inter_dim"},
	},
}

// pairFlags take two extents in one value.
var pairFlags = map[string]struct{ axes, flags []string }{
	CategoryMoE:       {[]string{"D", "I"}, []string{"-dim", "--dim"}},
	CategoryAttention: {[]string{"H", "Hkv"}, []string{"--num_heads", "--heads"}},
}

var dtypeFlags = []string{"--in_dtype", "--dtype", "--data_type"}

// bind finds how a shape reaches a test: by its own variable, else by the flags of its script.
func bind(f *pyFile, category string) ShapeBinding {
	axes, known := axesOf[category]
	stem := strings.TrimSuffix(path.Base(f.path), ".py")
	stem = strings.TrimPrefix(strings.TrimPrefix(stem, "test_"), "bench_")
	if v := shapeVar(f, stem); known && v != "" {
		b := ShapeBinding{Kind: BindEnv, EnvVar: v}
		for _, a := range axes {
			if !a.optional {
				b.Axes = append(b.Axes, a.name)
			}
		}
		b.Form = strings.Join(b.Axes, ",") + " and a dtype after it (default bf16), by " + v
		return b
	}
	if known && f.hasMain {
		if b, ok := bindFlags(f, category, axes); ok {
			return b
		}
	}
	return ShapeBinding{Kind: BindNone, Form: noForm(f)}
}

// shapeVar is the variable that is named after the test, or, where the file reads just one, after the beginning of its name:
// test_topk_gating_softmax reads ROCDSL_TOPK_GATING_SHAPES. test_rmsnorm reads several, of which one is its own.
func shapeVar(f *pyFile, stem string) string {
	stem = strings.ToUpper(stem)
	for _, v := range f.shapeVars {
		if v == "ROCDSL_"+stem+"_SHAPES" {
			return v
		}
	}
	if len(f.shapeVars) == 1 {
		v := f.shapeVars[0]
		name, ok := strings.CutSuffix(strings.TrimPrefix(v, "ROCDSL_"), "_SHAPES")
		if ok && strings.HasPrefix(stem, name+"_") {
			return v
		}
	}
	return ""
}

// noForm says what a test takes that no shape can be bound to.
func noForm(f *pyFile) string {
	var names []string
	for _, flag := range f.flags {
		names = append(names, flag.names[len(flag.names)-1])
	}
	switch {
	case len(names) > 0:
		return "nothing by shape; its flags are " + strings.Join(names[:min(len(names), 16)], " ") + " (give them with args)"
	case len(f.shapeVars) > 0:
		return "nothing by shape; it reads " + strings.Join(f.shapeVars, ", ")
	}
	return "nothing: its shapes stand in the file"
}

func bindFlags(f *pyFile, category string, axes []axis) (ShapeBinding, bool) {
	b := ShapeBinding{Kind: BindFlags}
	have := map[string]bool{}
	if pair, ok := pairFlags[category]; ok {
		if flag := flagOf(f, pair.flags); flag != nil && flag.tuple {
			b.Flags = append(b.Flags, ShapeFlag{Flag: flag.names[0], Axes: pair.axes})
			for _, a := range pair.axes {
				have[a] = true
			}
		}
	}
	for _, a := range axes {
		if have[a.name] {
			continue
		}
		if flag := flagOf(f, axisFlags[category][a.name]); flag != nil && !flag.isSwitch && !flag.many && !flag.tuple {
			b.Flags = append(b.Flags, ShapeFlag{Flag: longest(flag.names), Axes: []string{a.name}})
			have[a.name] = true
		}
	}
	for _, a := range axes {
		if have[a.name] {
			b.Axes = append(b.Axes, a.name)
		}
	}
	// One axis alone is no problem size: -k may be anything.
	if len(b.Axes) < 2 || !have[axes[0].name] {
		return b, false
	}
	form := strings.Join(b.Axes, ",")
	if flag := flagOf(f, dtypeFlags); flag != nil {
		b.DType = &ShapeFlag{Flag: longest(flag.names), Choices: flag.choices, Default: strings.Trim(flag.def, `"'`)}
		form += " and a dtype after it"
		if len(flag.choices) > 0 {
			form += " (" + strings.Join(flag.choices, ", ") + ")"
		}
	}
	if flag := flagOf(f, []string{"--causal"}); flag != nil && category == CategoryAttention {
		b.Causal = "--causal"
		if flag.def == "True" || flagOf(f, []string{"--no-causal"}) != nil {
			b.NotCausal = "--no-causal"
		}
		form += ", causal"
	}
	b.Form = form + ", by " + flagNames(b.Flags)
	return b, true
}

func flagNames(flags []ShapeFlag) string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Flag)
	}
	return strings.Join(names, " ")
}

func flagOf(f *pyFile, names []string) *pyFlag {
	for _, want := range names {
		for i := range f.flags {
			if slices.Contains(f.flags[i].names, want) {
				return &f.flags[i]
			}
		}
	}
	return nil
}

func longest(names []string) string {
	best := names[0]
	for _, n := range names {
		if len(n) > len(best) {
			best = n
		}
	}
	return best
}

// bound is a shape as the test gets it.
type bound struct {
	env, args []string
}

// to writes the shape in the test's form. The error says which part of the shape the test does not take.
func (b ShapeBinding) to(s Shape) (bound, error) {
	switch b.Kind {
	case BindEnv:
		var cells []string
		for _, a := range b.Axes {
			v, _ := s.Value(a)
			cells = append(cells, fmt.Sprint(v))
		}
		for _, d := range s.Dims {
			if !slices.Contains(b.Axes, d.Name) {
				return bound{}, fmt.Errorf("the test takes no %s", d.Name)
			}
		}
		if s.Causal != nil {
			return bound{}, fmt.Errorf("the test takes neither causal nor noncausal")
		}
		dtype := s.DType
		if dtype == "" {
			dtype = "bf16"
		}
		return bound{env: []string{b.EnvVar + "=" + strings.Join(append(cells, dtype), ",")}}, nil
	case BindFlags:
		return b.flags(s)
	}
	return bound{}, fmt.Errorf("the test takes %s", b.Form)
}

func (b ShapeBinding) flags(s Shape) (bound, error) {
	var out bound
	taken := map[string]bool{}
	for _, f := range b.Flags {
		var cells []string
		for _, a := range f.Axes {
			if v, ok := s.Value(a); ok {
				cells = append(cells, fmt.Sprint(v))
			}
			taken[a] = true
		}
		switch len(cells) {
		case 0: // the test's own default
		case len(f.Axes):
			out.args = append(out.args, f.Flag, strings.Join(cells, ","))
		default:
			return out, fmt.Errorf("%s takes %s together", f.Flag, strings.Join(f.Axes, " and "))
		}
	}
	for _, d := range s.Dims {
		if !taken[d.Name] {
			return out, fmt.Errorf("the test takes no %s", d.Name)
		}
	}
	if s.DType != "" {
		value, err := b.dtype(s.DType)
		if err != nil {
			return out, err
		}
		out.args = append(out.args, b.DType.Flag, value)
	}
	if s.Causal != nil {
		switch {
		case *s.Causal && b.Causal != "":
			out.args = append(out.args, b.Causal)
		case !*s.Causal && b.NotCausal != "":
			out.args = append(out.args, b.NotCausal)
		case b.Causal == "": // its default is not known, so that neither can be promised
			return out, fmt.Errorf("the test takes neither causal nor noncausal")
		}
	}
	return out, nil
}

// dtype is the test's own spelling of a dtype.
func (b ShapeBinding) dtype(canonical string) (string, error) {
	if b.DType == nil {
		return "", fmt.Errorf("the test takes no dtype")
	}
	for _, c := range b.DType.Choices {
		if name, ok := ParseDType(c); ok && name == canonical {
			return c, nil
		}
	}
	if len(b.DType.Choices) > 0 {
		return "", fmt.Errorf("the test's %s takes %s", b.DType.Flag, strings.Join(b.DType.Choices, ", "))
	}
	// FlyDSL's flags say fp16 and fp32 unless their default shows that they say f16 and f32.
	if (canonical == "f16" || canonical == "f32") && b.DType.Default != "f16" && b.DType.Default != "f32" {
		return "fp" + canonical[1:], nil
	}
	return canonical, nil
}
