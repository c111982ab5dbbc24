package tile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// axis is one axis of a category.
type axis struct {
	name     string
	optional bool
}

// axesOf are the axes of each category in their canonical order.
var axesOf = map[string][]axis{
	GEMM:        {{name: "M"}, {name: "N"}, {name: "K"}},
	Reduction:   {{name: "M"}, {name: "N"}},
	Elementwise: {{name: "M"}, {name: "N"}},
	Attention:   {{name: "B"}, {name: "H"}, {name: "S"}, {name: "D"}, {name: "Hkv", optional: true}, {name: "Sq", optional: true}},
	MoE:         {{name: "T"}, {name: "E"}, {name: "k"}, {name: "D", optional: true}, {name: "I", optional: true}},
}

// problem is a shape that was checked: every axis known, in range and given once.
type problem struct {
	category string
	words    []string // of the kernel's name, lower case
	dims     []Dim
	in, out  element
	causal   *bool
}

func readProblem(in Input) (problem, error) {
	axes, ok := axesOf[in.Category]
	if !ok {
		return problem{}, envelope.Build(envelope.NoRecommendation, envelope.Facts{
			Message:  fmt.Sprintf("there is no tile model for kernels of the category %q", short(in.Category)),
			Evidence: envelope.Evidence{Field: "kernel", Value: short(in.Kernel), Allowed: "kernels of the categories gemm, reduction, elementwise, attention, moe"},
		})
	}
	p := problem{category: in.Category, words: words(in.Kernel), causal: in.Problem.Causal}
	if p.causal != nil && in.Category != Attention {
		return p, badArg("shape", "causal", "only attention is causal or not", "no causal")
	}
	var err error
	if p.in, p.out, err = readElements(in); err != nil {
		return p, err
	}
	if p.dims, err = readDims(axes, in.Problem.Dims); err != nil {
		return p, err
	}
	return p, p.checkRelations()
}

// readDims puts the given axes into canonical order.
func readDims(axes []axis, given []Dim) ([]Dim, error) {
	var names, missing []string
	for _, a := range axes {
		names = append(names, a.name)
	}
	form := "the axes " + strings.Join(names, ", ")
	found := map[string]int64{}
	for _, d := range given {
		i := slices.IndexFunc(axes, func(a axis) bool { return strings.EqualFold(a.name, d.Name) })
		text := short(d.Name) + "=" + strconv.FormatInt(d.Value, 10)
		if i < 0 {
			return nil, badArg("shape", text, "no such axis", form)
		}
		if _, twice := found[axes[i].name]; twice {
			return nil, badArg("shape", text, "the axis is given twice", form)
		}
		if d.Value < 1 || d.Value > maxExtent {
			return nil, badArg("shape", text, "out of range", fmt.Sprintf("an extent from 1 to %d", int64(maxExtent)))
		}
		found[axes[i].name] = d.Value
	}
	var dims []Dim
	for _, a := range axes {
		v, ok := found[a.name]
		switch {
		case ok:
			dims = append(dims, Dim{a.name, v})
		case !a.optional:
			missing = append(missing, a.name)
		}
	}
	if len(missing) > 0 {
		return nil, badArg("shape", "", "it does not give "+strings.Join(missing, ", "), form)
	}
	return dims, nil
}

// checkRelations refuses extents that contradict each other.
func (p problem) checkRelations() error {
	switch p.category {
	case Attention:
		h, hkv := p.dim("H"), p.dimOr("Hkv", p.dim("H"))
		if h%hkv != 0 {
			return badArg("shape", fmt.Sprintf("Hkv=%d", hkv), fmt.Sprintf("the %d query heads do not divide among so many key heads", h), fmt.Sprintf("a divisor of %d", h))
		}
		if sq := p.dimOr("Sq", 1); sq > p.dim("S") {
			return badArg("shape", fmt.Sprintf("Sq=%d", sq), "there are more queries than keys", fmt.Sprintf("at most S=%d", p.dim("S")))
		}
	case MoE:
		if k := p.dim("k"); k > p.dim("E") {
			return badArg("shape", fmt.Sprintf("k=%d", k), "a token goes to more experts than there are", fmt.Sprintf("at most E=%d", p.dim("E")))
		}
		if _, ok := p.lookup("D"); !ok {
			if i, ok := p.lookup("I"); ok {
				return badArg("shape", fmt.Sprintf("I=%d", i), "an intermediate size without the model's", "D beside I")
			}
		}
	}
	return nil
}

func (p problem) lookup(name string) (int64, bool) {
	for _, d := range p.dims {
		if d.Name == name {
			return d.Value, true
		}
	}
	return 0, false
}

func (p problem) dim(name string) int64 { v, _ := p.lookup(name); return v }

func (p problem) dimOr(name string, otherwise int64) int64 {
	if v, ok := p.lookup(name); ok {
		return v
	}
	return otherwise
}

// has tells whether the kernel's name has one of the words.
func (p problem) has(list ...string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return slices.Contains(p.words, w) })
}

func (p problem) canonical() string {
	var out []string
	for _, d := range p.dims {
		out = append(out, d.Name+"="+strconv.FormatInt(d.Value, 10))
	}
	if p.causal != nil {
		out = append(out, map[bool]string{true: "causal", false: "noncausal"}[*p.causal])
	}
	return strings.Join(append(out, p.in.name), ",")
}

func (p problem) reading() ProblemReading {
	r := ProblemReading{Shape: p.canonical(), Dims: p.dims, DType: p.in.name, OutDType: p.out.name, Causal: p.causal}
	p.operator().describe(&r)
	return r
}

// operator picks the model of the category.
func (p problem) operator() operator {
	switch p.category {
	case GEMM:
		return gemm{float64(p.dim("M")), float64(p.dim("N")), float64(p.dim("K")), p.in, p.out}
	case Attention:
		return newAttention(p)
	case MoE:
		if _, ok := p.lookup("D"); ok {
			return newExperts(p)
		}
		return newRouting(p)
	case Elementwise:
		return newFlat(p)
	}
	return newRows(p)
}

// words cuts a kernel's name at everything that is no letter or digit. A word is there whole, without the digits behind
// it, and cut where a capital follows a small letter: "vecAddKernel_gemm1" gives vecaddkernel, vec, add, kernel, gemm1, gemm.
func words(name string) []string {
	var out []string
	add := func(w string) {
		w = strings.ToLower(w)
		out = append(out, w)
		if letters := strings.TrimRightFunc(w, unicode.IsDigit); letters != w && letters != "" {
			out = append(out, letters)
		}
	}
	for _, w := range strings.FieldsFunc(short(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		add(w)
		if parts := camel(w); len(parts) > 1 {
			for _, part := range parts {
				add(part)
			}
		}
	}
	return out
}

// camel cuts a word in front of each capital that follows a small letter.
func camel(w string) []string {
	var parts []string
	start, small := 0, false
	for i, r := range w {
		if small && unicode.IsUpper(r) {
			parts, start = append(parts, w[start:i]), i
		}
		small = unicode.IsLower(r)
	}
	return append(parts, w[start:])
}

// bytesOf is the memory that so many elements of a width take.
func bytesOf(elements float64, bits int) float64 { return elements * float64(bits) / 8 }

func ceilDiv(n, d float64) float64 { return math.Ceil(n / d) }
