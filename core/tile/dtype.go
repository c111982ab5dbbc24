package tile

import (
	"slices"
	"strings"
)

// element is one kind of input: what lies in memory and what the arithmetic runs in.
type element struct {
	name string
	// aBits and wBits are the widths in memory of activations and weights (A and B of a GEMM, queries and keys), without
	// block scales.
	aBits, wBits int
	// compute is the type that the matrix cores see: narrower weights are widened to the activations' type.
	compute string
	// out is the output's type where nothing else is said.
	out string
	// also are other spellings.
	also []string
}

var elements = []element{
	{"bf16", 16, 16, "bf16", "bf16", []string{"bfloat16", "a16w16"}},
	{"f16", 16, 16, "f16", "f16", []string{"fp16", "half", "float16"}},
	{"f32", 32, 32, "f32", "f32", []string{"fp32", "float", "float32"}},
	{"tf32", 32, 32, "tf32", "f32", []string{"xf32"}},
	{"f64", 64, 64, "f64", "f64", []string{"fp64", "double", "float64"}},
	{"fp8", 8, 8, "fp8", "bf16", []string{"f8", "e4m3", "fp8_e4m3", "a8w8"}},
	{"bf8", 8, 8, "bf8", "bf16", []string{"e5m2", "fp8_e5m2"}},
	{"int8", 8, 8, "int8", "bf16", []string{"i8", "int8smooth"}},
	{"int4", 8, 4, "int8", "bf16", []string{"i4"}}, // int8 activations, packed int4 weights
	{"int4_bf16", 16, 4, "bf16", "bf16", nil},
	{"fp6", 6, 6, "fp6", "bf16", []string{"f6", "mxfp6"}},
	{"fp4", 4, 4, "fp4", "bf16", []string{"f4", "mxfp4", "a4w4", "e2m1"}},
	{"a8w4", 8, 4, "fp8", "bf16", nil}, // a mixed f8f6f4 instruction runs at the wider type's rate
	{"a16w4", 16, 4, "bf16", "bf16", nil},
}

func findElement(name string) (element, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, e := range elements {
		if e.name == name || slices.Contains(e.also, name) {
			return e, true
		}
	}
	return element{}, false
}

func elementNames() string {
	var names []string
	for _, e := range elements {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// readElements settles input and output type.
func readElements(in Input) (element, element, error) {
	name := in.Problem.DType
	if name == "" {
		name = "bf16"
	}
	e, ok := findElement(name)
	if !ok {
		return e, e, badArg("dtype", name, "not a known element type", elementNames())
	}
	name = in.OutDType
	if name == "" {
		name = e.out
	}
	o, ok := findElement(name)
	if !ok || o.aBits != o.wBits {
		return e, o, badArg("out_dtype", name, "not an element type that a kernel writes", "bf16, f16, f32, f64, fp8, bf8, int8, fp6, fp4")
	}
	return e, o, nil
}
