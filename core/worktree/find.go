package worktree

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
)

// Find gives the kernel of a name: its own, its test file's, or that of a symbol which its test launches.
//
// Errors: KERNEL_NOT_FOUND with similar names, AMBIGUOUS_KERNEL where several tests launch the symbol.
func (l *Listing) Find(name string) (*Kernel, error) {
	name = strings.TrimSpace(name)
	for i, k := range l.Kernels {
		base := path.Base(k.TestFile)
		if name == k.Name || name == k.TestFile || name == base || name+".py" == base {
			return &l.Kernels[i], nil
		}
	}
	var fit []*Kernel
	for i := range l.Kernels {
		if exact, _ := MatchSymbol(&l.Kernels[i], name); exact {
			fit = append(fit, &l.Kernels[i])
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return nil, l.notFound(name)
	}
	var candidates []envelope.Candidate
	var names []string
	for _, k := range fit {
		names = append(names, k.Name)
		candidates = append(candidates, envelope.Candidate{Kernel: k.Name, Why: "its test " + k.TestFile + " launches " + name})
	}
	return nil, envelope.Build(envelope.AmbiguousKernel, envelope.Facts{
		Message:    fmt.Sprintf("%d tests launch a kernel called %s: %s", len(fit), shorten(name, 200), strings.Join(names[:min(len(names), 8)], ", ")),
		Candidates: candidates, Evidence: envelope.Evidence{Field: "kernel", Value: name, Allowed: "one of the tests' names"},
	})
}

func (l *Listing) notFound(name string) error {
	var candidates []envelope.Candidate
	for _, k := range l.similar(name) {
		candidates = append(candidates, envelope.Candidate{Kernel: k.Name, Why: k.TestFile})
	}
	return envelope.Build(envelope.KernelNotFound, envelope.Facts{
		Message:    fmt.Sprintf("the worktree has no kernel %q among %d", shorten(name, 200), len(l.Kernels)),
		Candidates: candidates,
		Evidence:   envelope.Evidence{Field: "kernel", Value: name, Allowed: "a name that flyprof_list gives, a test file, or a launched symbol", ValidNames: l.names(40)},
	})
}

func (l *Listing) names(most int) []string {
	var out []string
	for _, k := range l.Kernels {
		if len(out) < most {
			out = append(out, k.Name)
		}
	}
	return out
}

// similar gives up to five kernels whose names are near: one holds the other, or few letters differ.
func (l *Listing) similar(name string) []Kernel {
	type candidate struct {
		k    Kernel
		cost int
	}
	var list []candidate
	asked := strings.ToLower(name)
	if len(asked) > 200 {
		return nil
	}
	for _, k := range l.Kernels {
		have := strings.ToLower(k.Name)
		cost := near.Distance(asked, have)
		if strings.Contains(have, asked) || strings.Contains(asked, have) {
			cost = min(cost, 1)
		}
		if cost <= max(2, len(asked)/3) {
			list = append(list, candidate{k, cost})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].cost < list[j].cost })
	var out []Kernel
	for _, n := range list[:min(len(list), 5)] {
		out = append(out, n.k)
	}
	return out
}

// Filter gives the kernels whose name, test file or symbols contain the text.
func (l *Listing) Filter(text string) []Kernel {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return l.Kernels
	}
	var out []Kernel
	for _, k := range l.Kernels {
		fits := strings.Contains(strings.ToLower(k.Name), text) || strings.Contains(strings.ToLower(k.TestFile), text) ||
			slices.ContainsFunc(k.Symbols, func(s SymbolPattern) bool { return strings.Contains(strings.ToLower(s.Prefix), text) })
		if fits {
			out = append(out, k)
		}
	}
	return out
}
