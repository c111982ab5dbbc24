package worktree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// The categories of operators.
const (
	CategoryGEMM        = "gemm"
	CategoryReduction   = "reduction"
	CategoryElementwise = "elementwise"
	CategoryAttention   = "attention"
	CategoryMoE         = "moe"
	CategoryConv        = "conv"
	CategoryComm        = "comm"
	CategoryOther       = "other"
)

// Dim is one axis of a problem and its extent in elements.
type Dim struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Shape is a problem that was understood token by token. Dims stand in the order of the category's axes, with those that
// are only ever named (Hkv, I) behind.
type Shape struct {
	Category string `json:"category"`
	Dims     []Dim  `json:"dims"`
	// DType is the canonical name: bf16, f16, f32, f64, fp8, bf8, int8, int4, fp6, fp4, or a mix such as a8w4; empty where
	// none was given.
	DType string `json:"dtype,omitempty"`
	// Causal is nil where nothing was said.
	Causal *bool `json:"causal,omitempty"`
}

// axis is one axis of a category.
type axis struct {
	name    string
	aliases []string // lower case, as keys of named dims
	named   bool     // never positional
	// optional: a shape without it is whole.
	optional bool
}

// axesOf is the convention of each category. Positional order is the order here.
var axesOf = map[string][]axis{
	CategoryGEMM:        {{name: "M"}, {name: "N"}, {name: "K"}},
	CategoryReduction:   {{name: "M", aliases: []string{"rows", "tokens"}}, {name: "N", aliases: []string{"cols", "hidden"}}},
	CategoryElementwise: {{name: "M", aliases: []string{"rows", "tokens"}}, {name: "N", aliases: []string{"cols", "hidden"}}},
	CategoryAttention: {
		{name: "B", aliases: []string{"batch"}}, {name: "H", aliases: []string{"heads", "num_heads"}},
		{name: "S", aliases: []string{"seq_len", "seqlen"}}, {name: "D", aliases: []string{"head_dim"}},
		{name: "Hkv", aliases: []string{"kv_heads", "num_kv_heads"}, named: true, optional: true},
	},
	CategoryMoE: {
		{name: "T", aliases: []string{"tokens"}}, {name: "E", aliases: []string{"experts"}}, {name: "k", aliases: []string{"topk"}},
		{name: "D", aliases: []string{"model_dim", "hidden"}, optional: true},
		{name: "I", aliases: []string{"inter_dim"}, named: true, optional: true},
	},
}

// formOf is how each category's shape is written, for messages.
var formOf = map[string]string{
	CategoryGEMM:        "M,N,K (named: M=8192,N=8192,K=8192) and a dtype after it",
	CategoryReduction:   "M,N (named: M=8192,N=4096) and a dtype after it",
	CategoryElementwise: "M,N (named: M=8192,N=4096) and a dtype after it",
	CategoryAttention:   "B,H,S,D (named: B=1,H=32,S=4096,D=128), also Hkv=8 and causal, and a dtype after it",
	CategoryMoE:         "T,E,k,D (named: T=4096,E=8,k=2,D=7168), also I=2048, and a dtype after it",
}

// dtypeNames maps every spelling to the canonical one.
var dtypeNames = map[string]string{
	"bf16": "bf16", "bfloat16": "bf16",
	"f16": "f16", "fp16": "f16", "half": "f16", "float16": "f16",
	"f32": "f32", "fp32": "f32", "float32": "f32", "float": "f32",
	"f64": "f64", "fp64": "f64", "float64": "f64", "double": "f64",
	"fp8": "fp8", "f8": "fp8", "e4m3": "fp8", "fp8e4m3": "fp8", "fp8_e4m3": "fp8",
	"bf8": "bf8", "e5m2": "bf8", "fp8e5m2": "bf8", "fp8_e5m2": "bf8",
	"int8": "int8", "i8": "int8", "int8smooth": "int8smooth",
	"int4": "int4", "i4": "int4", "int4_bf16": "int4_bf16",
	"fp6": "fp6", "f6": "fp6", "mxfp6": "fp6", "fp4": "fp4", "f4": "fp4", "mxfp4": "fp4", "e2m1": "fp4",
	"a8w4": "a8w4", "a16w4": "a16w4", "a4w4": "a4w4", "a8w8": "a8w8", "a16w16": "a16w16",
}

const dtypeHelp = "bf16, f16, f32, f64, fp8, bf8, int8, int4, fp6, fp4 or a mix such as a8w4"

// maxDim is the largest extent: kernels index with 32 bits.
const maxDim = 1<<31 - 1

// ParseDType gives the canonical name of a dtype; false for one that is not known.
func ParseDType(text string) (string, bool) {
	d, ok := dtypeNames[strings.ToLower(strings.TrimSpace(text))]
	return d, ok
}

// ParseShape reads a shape by its category: positional or named, separated by commas, x, *, semicolons or spaces, a dtype
// behind. Every token must be understood; BAD_ARGS names the one that was not, and what is allowed.
func ParseShape(category, text string) (Shape, error) {
	axes, ok := axesOf[category]
	if !ok {
		return Shape{}, badShape(text, fmt.Sprintf("a kernel of the category %q has no convention for shapes", category), "leave shape out and pass what the test takes with args")
	}
	return parseAxes(category, axes, text)
}

// parseAxes reads a shape whose positional order is that of axes.
func parseAxes(category string, axes []axis, text string) (Shape, error) {
	form := formOf[category]
	tokens, err := shapeTokens(text, form)
	if err != nil {
		return Shape{}, err
	}
	p := shapeParser{s: Shape{Category: category}, axes: axes, text: text, form: form, values: map[string]int64{}}
	for _, tok := range tokens {
		if err := p.token(tok); err != nil {
			return Shape{}, err
		}
	}
	var missing []string
	for _, a := range axes {
		v, ok := p.values[a.name]
		if ok {
			p.s.Dims = append(p.s.Dims, Dim{a.name, v})
		} else if !a.optional {
			missing = append(missing, a.name)
		}
	}
	if len(missing) > 0 {
		return Shape{}, badShape(text, "it gives no "+strings.Join(missing, ", no "), form)
	}
	return p.s, nil
}

const (
	maxShapeText   = 400
	maxShapeTokens = 24
)

// shapeTokens cuts a shape into tokens. "x" separates only behind a digit, so that mxfp4 stays whole.
func shapeTokens(text, form string) ([]string, error) {
	if len(text) > maxShapeText {
		return nil, badShape(text[:maxShapeText], fmt.Sprintf("it is longer than %d bytes", maxShapeText), form)
	}
	s := strings.NewReplacer("×", ",", "*", ",", ";", ",").Replace(text)
	b := []byte(s)
	for i := 1; i < len(b); i++ {
		if (b[i] == 'x' || b[i] == 'X') && (isDigit(b[i-1]) || b[i-1] == ' ') && i+1 < len(b) {
			b[i] = ','
		}
	}
	var tokens []string
	for _, part := range strings.Split(string(b), ",") {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			return nil, badShape(text, "there is an empty place between two separators, or nothing at all", form)
		}
		tokens = append(tokens, fields...)
	}
	if len(tokens) > maxShapeTokens {
		return nil, badShape(text, fmt.Sprintf("it has more than %d tokens", maxShapeTokens), form)
	}
	return tokens, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

type shapeParser struct {
	s      Shape
	axes   []axis
	text   string
	form   string
	values map[string]int64
	place  int // positional dims read
	named  bool
}

func (p *shapeParser) token(tok string) error {
	if key, value, ok := strings.Cut(tok, "="); ok {
		return p.keyed(tok, key, value)
	}
	low := strings.ToLower(tok)
	if d, ok := dtypeNames[low]; ok {
		return p.dtype(tok, d)
	}
	if causal, ok := causalWords[low]; ok {
		return p.causal(tok, causal)
	}
	if !isDigit(tok[0]) {
		return p.bad(tok, "it is no number, no dtype and no name of an axis")
	}
	if p.s.DType != "" || p.named {
		return p.bad(tok, "a bare number cannot follow a named axis or the dtype")
	}
	n := 0
	for _, a := range p.axes {
		if a.named {
			continue
		}
		if n == p.place {
			p.place++
			return p.set(tok, a.name, tok)
		}
		n++
	}
	return p.bad(tok, fmt.Sprintf("there are only %d axes", n))
}

var causalWords = map[string]bool{"causal": true, "noncausal": false, "non-causal": false, "no-causal": false}

func (p *shapeParser) keyed(tok, key, value string) error {
	low := strings.ToLower(key)
	switch {
	case low == "dtype":
		d, ok := ParseDType(value)
		if !ok {
			return p.bad(tok, "dtypes are "+dtypeHelp)
		}
		return p.dtype(tok, d)
	case low == "causal":
		switch strings.ToLower(value) {
		case "1", "true", "yes":
			return p.causal(tok, true)
		case "0", "false", "no":
			return p.causal(tok, false)
		}
		return p.bad(tok, "causal is true or false")
	}
	for _, a := range p.axes {
		if strings.ToLower(a.name) == low || slices.Contains(a.aliases, low) {
			p.named = true
			return p.set(tok, a.name, value)
		}
	}
	var names []string
	for _, a := range p.axes {
		names = append(names, a.name)
	}
	return p.bad(tok, "axes are "+strings.Join(names, ", "))
}

func (p *shapeParser) set(tok, name, digits string) error {
	if _, ok := p.values[name]; ok {
		return p.bad(tok, name+" is given twice")
	}
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return p.bad(tok, "extents are whole numbers in plain digits")
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 1 || v > maxDim {
		return p.bad(tok, fmt.Sprintf("extents are from 1 to %d", maxDim))
	}
	p.values[name] = v
	return nil
}

func (p *shapeParser) dtype(tok, d string) error {
	if p.s.DType != "" {
		return p.bad(tok, "the dtype is given twice")
	}
	p.s.DType = d
	return nil
}

func (p *shapeParser) causal(tok string, causal bool) error {
	if p.s.Category != CategoryAttention {
		return p.bad(tok, "only attention is causal or not")
	}
	if p.s.Causal != nil {
		return p.bad(tok, "causal is given twice")
	}
	p.s.Causal = &causal
	return nil
}

func (p *shapeParser) bad(tok, why string) error {
	return badShape(p.text, fmt.Sprintf("the token %q is not understood: %s", tok, why), p.form)
}

func badShape(text, why, allowed string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("shape %q: %s", shorten(text, 200), why),
		Evidence: envelope.Evidence{Field: "shape", Value: text, Allowed: allowed},
	})
}

// Value gives the extent of an axis; false where the shape does not say.
func (s Shape) Value(axis string) (int64, bool) {
	for _, d := range s.Dims {
		if d.Name == axis {
			return d.Value, true
		}
	}
	return 0, false
}

// String is the canonical text, which ParseShape reads back: "8192,8192,8192,bf16", "1,32,4096,128,Hkv=8,causal,bf16".
// An axis whose forerunner in the category's order is absent is named.
func (s Shape) String() string {
	var out []string
	axes, place, positional := axesOf[s.Category], 0, true
	for _, d := range s.Dims {
		if positional && place < len(axes) && axes[place].name == d.Name && !axes[place].named {
			out = append(out, strconv.FormatInt(d.Value, 10))
			place++
			continue
		}
		positional = false
		out = append(out, d.Name+"="+strconv.FormatInt(d.Value, 10))
	}
	if s.Causal != nil {
		word := "causal"
		if !*s.Causal {
			word = "noncausal"
		}
		out = append(out, word)
	}
	if s.DType != "" {
		out = append(out, s.DType)
	}
	return strings.Join(out, ",")
}

// LeadingAxis is the axis that decides how many workgroups there are before any other: the one to shrink for a smaller
// problem of the same kind, and to grow for a larger one. Empty for a shape without axes.
func (s Shape) LeadingAxis() string {
	want := "M"
	switch s.Category {
	case CategoryAttention:
		want = "S"
	case CategoryMoE:
		want = "T"
	}
	if _, ok := s.Value(want); ok {
		return want
	}
	if len(s.Dims) > 0 {
		return s.Dims[0].Name
	}
	return ""
}

// With gives the shape with one axis set; an axis that the shape does not have changes nothing.
func (s Shape) With(axis string, value int64) Shape {
	s.Dims = slices.Clone(s.Dims)
	for i := range s.Dims {
		if s.Dims[i].Name == axis {
			s.Dims[i].Value = min(max(value, 1), maxDim)
		}
	}
	return s
}

// Scaled gives the shape with one axis multiplied by num/den, rounded down, at least 1.
func (s Shape) Scaled(axis string, num, den int64) Shape {
	v, ok := s.Value(axis)
	if !ok || num < 1 || den < 1 {
		return s.With("", 0)
	}
	if v > maxDim/num {
		return s.With(axis, maxDim)
	}
	return s.With(axis, v*num/den)
}
