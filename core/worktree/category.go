package worktree

import "strings"

// categoryRule tells an operator's category by a word in a kernel's name.
type categoryRule struct {
	category string
	// words are found anywhere; tokens only between underscores.
	words, tokens []string
}

// categoryRules is the table; the first rule that fits counts. moe_reduce is MoE, topk_gating_softmax too: their problems are
// given by tokens and experts.
var categoryRules = []categoryRule{
	{CategoryComm, []string{"allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "shmem", "dispatch_combine"}, []string{"comm"}},
	{CategoryMoE, []string{"moe", "topk_gating", "expert"}, nil},
	{CategoryAttention, []string{"attn", "attention", "paged"}, []string{"mla", "swa", "pa", "fa", "mha", "gqa", "mqa"}},
	{CategoryConv, []string{"conv1d", "conv2d", "conv3d", "im2col"}, []string{"conv"}},
	{CategoryGEMM, []string{"gemm", "matmul", "wmma"}, []string{"mm", "bmm"}},
	{CategoryReduction, []string{"softmax", "norm", "reduce", "reduction"}, []string{"sum", "scan", "cumsum", "argmax", "topk"}},
	{CategoryElementwise, []string{"elementwise", "quant", "rope", "transpose", "gelu", "silu", "relu", "vec_add"}, []string{"add", "mul", "cast", "copy", "fill", "exp"}},
}

// domains are the folders of kernels/ whose kernels are of one category.
var domains = map[string]string{
	"attention": CategoryAttention, "comm": CategoryComm, "conv": CategoryConv, "gemm": CategoryGEMM, "mega_moe": CategoryMoE,
	"moe": CategoryMoE, "norm": CategoryReduction,
}

// CategoryOf tells an operator's category by its name alone; CategoryOther where no word says it.
func CategoryOf(name string) string {
	name = strings.ToLower(name)
	tokens := strings.FieldsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for _, rule := range categoryRules {
		for _, w := range rule.words {
			if strings.Contains(name, w) {
				return rule.category
			}
		}
		for _, want := range rule.tokens {
			for _, have := range tokens {
				if have == want {
					return rule.category
				}
			}
		}
	}
	return CategoryOther
}

// categoryOf goes by the test's name, and where that says nothing by the folders of the kernels that it imports itself.
func categoryOf(name string, direct []string) string {
	if c := CategoryOf(name); c != CategoryOther {
		return c
	}
	for _, file := range direct {
		parts := strings.Split(file, "/")
		if len(parts) > 2 && parts[0] == "kernels" {
			if c, ok := domains[parts[1]]; ok {
				return c
			}
		}
	}
	for _, file := range direct {
		if c := CategoryOf(strings.TrimSuffix(file, ".py")); c != CategoryOther {
			return c
		}
	}
	return CategoryOther
}
