package rocprof

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// IterSet is a set of launches, counted from 1. The zero value is empty.
type IterSet struct{ spans []span }

// span is the launches from First to Last, both included.
type span struct{ First, Last int64 }

const (
	maxIterText = 4096
	// maxIterNumber is far above the launches of any test.
	maxIterNumber = 100_000_000
	// maxIterLaunches bounds what is traced: each launch is a dispatch directory of up to tens of MB.
	maxIterLaunches = 64
)

const iterAllowed = "a launch counted from 1 such as 8, or several such as 6,8-10 (at most 64 in all)"

// ParseIterRange reads a kernel_iteration_range as rocprofv3 does (config.cpp get_kernel_filter_range): numbers and A-B
// ranges, both ends included, apart by commas, spaces and brackets, which mean nothing else. So "[6, [8-8]]" is the launches
// 6 and 8. Counting begins at 1, within one kernel id.
//
// Errors: BAD_ARGS (field iter_range) for 0, which rocprofv3 takes and never matches, for a reversed range, for anything that is
// no number, and for more than 64 launches.
func ParseIterRange(text string) (IterSet, error) {
	bad := func(why string) (IterSet, error) {
		shown := cutBytes(strings.ToValidUTF8(text, "\uFFFD"), 200)
		return IterSet{}, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("iter_range %q: %s", shown, why),
			Evidence: envelope.Evidence{Field: "iter_range", Value: shown, Allowed: iterAllowed},
		})
	}
	if len(text) > maxIterText {
		return bad("it is too long")
	}
	var spans []span
	for _, term := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[], ", r) }) {
		first, last, ranged := strings.Cut(term, "-")
		if !ranged {
			last = first
		}
		a, okA := iterNumber(first)
		b, okB := iterNumber(last)
		switch {
		case !okA || !okB:
			return bad(fmt.Sprintf("%q is neither a number nor a range A-B", term))
		case a == 0 || b == 0:
			return bad("launches count from 1; rocprofv3 takes 0 and never matches it")
		case a > maxIterNumber || b > maxIterNumber:
			return bad(fmt.Sprintf("%q is beyond %d", term, maxIterNumber))
		case a > b:
			return bad(fmt.Sprintf("the range %q is reversed", term))
		}
		spans = append(spans, span{a, b})
	}
	set := merge(spans)
	switch n := set.Len(); {
	case n == 0:
		return bad("it names no launch")
	case n > maxIterLaunches:
		return bad(fmt.Sprintf("it names %d launches, and each one traced is a directory of its own", n))
	}
	return set, nil
}

// iterNumber reads digits only. Numbers beyond the limit come back as one just beyond it.
func iterNumber(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	s = strings.TrimLeft(s, "0")
	if s == "" {
		return 0, true
	}
	if len(s) > 18 {
		return maxIterNumber + 1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// merge sorts spans and joins those that touch.
func merge(spans []span) IterSet {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int {
		if a.First != b.First {
			return int(a.First - b.First)
		}
		return int(a.Last - b.Last)
	})
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, s.Last)
			continue
		}
		out = append(out, s)
	}
	return IterSet{out}
}

// String is the canonical form, which rocprofv3 reads to the same set: "8", or "6,8-10" without brackets and spaces.
func (s IterSet) String() string {
	terms := make([]string, len(s.spans))
	for i, x := range s.spans {
		terms[i] = strconv.FormatInt(x.First, 10)
		if x.Last > x.First {
			terms[i] += "-" + strconv.FormatInt(x.Last, 10)
		}
	}
	return strings.Join(terms, ",")
}

// Contains says whether launch n is in the set.
func (s IterSet) Contains(n int64) bool {
	for _, x := range s.spans {
		if n >= x.First && n <= x.Last {
			return true
		}
	}
	return false
}

// Len is the number of launches in the set.
func (s IterSet) Len() int64 {
	var n int64
	for _, x := range s.spans {
		n += x.Last - x.First + 1
	}
	return n
}

// Max is the last launch of the set, 0 for an empty set.
func (s IterSet) Max() int64 {
	if len(s.spans) == 0 {
		return 0
	}
	return s.spans[len(s.spans)-1].Last
}

// At is the i-th launch of the set counted from 1, 0 where there is none.
func (s IterSet) At(i int64) int64 {
	for _, x := range s.spans {
		n := x.Last - x.First + 1
		if i >= 1 && i <= n {
			return x.First + i - 1
		}
		i -= n
	}
	return 0
}

// common is the launches that are in both sets, at most the size of the smaller.
func (s IterSet) common(t IterSet) IterSet {
	var out []span
	for i, j := 0, 0; i < len(s.spans) && j < len(t.spans); {
		a, b := s.spans[i], t.spans[j]
		if first, last := max(a.First, b.First), min(a.Last, b.Last); first <= last {
			out = append(out, span{first, last})
		}
		if a.Last < b.Last {
			i++
		} else {
			j++
		}
	}
	return IterSet{out}
}
