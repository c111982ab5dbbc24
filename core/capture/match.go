package capture

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// The levels of match_confidence.
const (
	matchExact     = "exact"
	matchFuzzy     = "fuzzy"
	matchHeuristic = "heuristic"
)

// match is which launched symbol was meant.
type match struct {
	Symbol     string
	Confidence string
	// Candidates are all launched symbols that were weighed, by total time.
	Candidates []string
}

// wanted says what a run looks for among the launched kernels.
type wanted struct {
	// Symbol is set when a launched symbol was named in full.
	Symbol string
	// Kernel is the worktree's kernel; nil for an invocation of the user's own.
	Kernel *worktree.Kernel
	// Name is the name as asked for.
	Name string
	// Baseline asks for the kernel beside, on purpose.
	Baseline bool
}

// pick finds the launched symbol that was meant. It never guesses silently: what is not defined by the worktree is only
// taken for an invocation or a baseline, by time, and then called heuristic.
//
// Errors: NO_KERNEL_DISCOVERED with everything that was launched, AMBIGUOUS_KERNEL with those that fit.
func pick(launched []rocprof.KernelSummary, w wanted) (match, *envelope.Facts, envelope.Code) {
	if w.Symbol != "" {
		for _, k := range launched {
			if k.Name == w.Symbol {
				return match{Symbol: k.Name, Confidence: matchExact, Candidates: []string{k.Name}}, nil, ""
			}
		}
	}
	if w.Baseline {
		return byTime(launched, func(name string) bool { return !defined(w.Kernel, name) }, w)
	}
	if w.Kernel == nil || len(w.Kernel.Symbols) == 0 {
		return byTime(launched, func(name string) bool { return !worktree.LooksForeign(name) }, w)
	}
	var exact, prefix []rocprof.KernelSummary
	for _, k := range launched {
		switch e, p := worktree.MatchSymbol(w.Kernel, k.Name); {
		case e:
			exact = append(exact, k)
		case p && !worktree.LooksForeign(k.Name):
			prefix = append(prefix, k)
		}
	}
	if len(exact) > 0 {
		return oneOf(exact, w, matchExact)
	}
	if len(prefix) > 0 {
		return oneOf(prefix, w, matchFuzzy)
	}
	facts := nothing(launched, w)
	return match{}, &facts, envelope.NoKernelDiscovered
}

func defined(k *worktree.Kernel, name string) bool {
	if k == nil {
		return false
	}
	exact, prefix := worktree.MatchSymbol(k, name)
	return exact || prefix
}

// oneOf takes the only symbol, or the only one that is called like the kernel itself; otherwise the choice is the user's.
func oneOf(fit []rocprof.KernelSummary, w wanted, confidence string) (match, *envelope.Facts, envelope.Code) {
	names := namesOf(fit)
	if len(fit) == 1 {
		return match{Symbol: names[0], Confidence: confidence, Candidates: names}, nil, ""
	}
	var like []string
	for _, name := range names {
		if stem(name) == w.Name || (w.Kernel != nil && stem(name) == w.Kernel.Name) {
			like = append(like, name)
		}
	}
	if len(like) == 1 {
		return match{Symbol: like[0], Confidence: matchFuzzy, Candidates: names}, nil, ""
	}
	facts := envelope.Facts{
		Message:    fmt.Sprintf("the test launches %d kernels that fit %q equally well: %s", len(fit), w.Name, strings.Join(head(names, 8), ", ")),
		Candidates: candidates(fit, func(string) string { return "the worktree defines it for this test" }),
	}
	return match{}, &facts, envelope.AmbiguousKernel
}

// stems are the endings that a kernel's name gets when it becomes a symbol: `_kernel`, and the number of its emission.
var stems = regexp.MustCompile(`(_kernel)?(_\d+)?$`)

func stem(symbol string) string { return stems.ReplaceAllString(symbol, "") }

// byTime takes the symbol with the greatest total time among those that pass.
func byTime(launched []rocprof.KernelSummary, pass func(string) bool, w wanted) (match, *envelope.Facts, envelope.Code) {
	var fit []rocprof.KernelSummary
	for _, k := range launched {
		if pass(k.Name) {
			fit = append(fit, k)
		}
	}
	if len(fit) == 0 {
		facts := nothing(launched, w)
		return match{}, &facts, envelope.NoKernelDiscovered
	}
	names := namesOf(fit)
	return match{Symbol: names[0], Confidence: matchHeuristic, Candidates: names}, nil, ""
}

func nothing(launched []rocprof.KernelSummary, w wanted) envelope.Facts {
	f := envelope.Facts{Message: fmt.Sprintf("the test launched no kernel at all while looking for %q", w.Name)}
	if len(launched) > 0 {
		f.Message = fmt.Sprintf("the test launched %d kernels and none of them is defined by the worktree for %q", len(launched), w.Name)
	}
	f.Candidates = candidates(launched, func(name string) string {
		if worktree.LooksForeign(name) {
			return "its name has the form of a library's kernel"
		}
		return "the worktree does not define it for this test"
	})
	return f
}

func namesOf(ks []rocprof.KernelSummary) []string {
	out := make([]string, len(ks))
	for i, k := range ks {
		out[i] = k.Name
	}
	return out
}

func candidates(ks []rocprof.KernelSummary, why func(string) string) []envelope.Candidate {
	out := make([]envelope.Candidate, len(ks))
	for i, k := range ks {
		out[i] = envelope.Candidate{Kernel: k.Name, Calls: k.Calls, AvgNS: k.AvgNS, TotalNS: k.TotalNS, Why: why(k.Name)}
	}
	return out
}

func head[T any](list []T, n int) []T { return list[:min(len(list), n)] }
