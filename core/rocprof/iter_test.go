package rocprof

import (
	"strconv"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

func TestParseIterRange(t *testing.T) {
	for _, c := range []struct {
		text, want string
		len, max   int64
	}{
		{"8", "8", 1, 8},
		{"[8]", "8", 1, 8},
		{"[6, [8-8]]", "6,8", 2, 8}, // two launches, not "skip 6, trace 8"
		{"6 8", "6,8", 2, 8},
		{"8,6", "6,8", 2, 8},
		{"1-3,2-5", "1-5", 5, 5},
		{"1-3,4", "1-4", 4, 4},
		{"3,3,3", "3", 1, 3},
		{"[[],,  7]", "7", 1, 7},
		{"007", "7", 1, 7},
		{"1-64", "1-64", 64, 64},
		{"100000000", "100000000", 1, 100000000},
	} {
		t.Run(c.text, func(t *testing.T) {
			s, err := ParseIterRange(c.text)
			if err != nil || s.String() != c.want || s.Len() != c.len || s.Max() != c.max {
				t.Errorf("%q of %d up to %d, error %v; want %q of %d up to %d", s.String(), s.Len(), s.Max(), err, c.want, c.len, c.max)
			}
		})
	}
}

func TestParseIterRangeErrors(t *testing.T) {
	for text, why := range map[string]string{
		"": "no launch", "[]": "no launch", "0": "count from 1", "0,[2-4]": "count from 1", "0-3": "count from 1", "8-6": "reversed", "-5": "neither a number",
		"5-": "neither a number", "1-2-3": "neither a number", "x": "neither a number", "+1": "neither a number", "1.5": "neither a number", "0x8": "neither a number",
		"١": "neither a number", "1;2": "neither a number", "1-65": "65 launches", "1-3,5-100": "99 launches", "100000001": "beyond", "99999999999999999999999": "beyond",
		"\x00": "neither a number", "\xff": "neither a number", strings.Repeat("1,", 3000): "too long",
	} {
		t.Run(why+" "+clip(strconv.Quote(text)), func(t *testing.T) {
			s, err := ParseIterRange(text)
			e := envelope.As(err)
			if err == nil || e.Code != envelope.BadArgs || e.Evidence.Field != "iter_range" || !strings.Contains(e.Message, why) {
				t.Errorf("%q gives %q and error %v, want BAD_ARGS with %q", text, s.String(), err, why)
			}
		})
	}
}

// rocprofLaunches is the reading of rocprofv3 (config.cpp get_kernel_filter_range), done plainly: tokens apart at "[], ", each a
// number or a range of both ends, all into one set.
func rocprofLaunches(text string) map[int64]bool {
	set := map[int64]bool{}
	for _, token := range strings.FieldsFunc(text, func(r rune) bool { return r == '[' || r == ']' || r == ',' || r == ' ' }) {
		ends := strings.Split(token, "-")
		first, _ := strconv.ParseInt(ends[0], 10, 64)
		last, _ := strconv.ParseInt(ends[len(ends)-1], 10, 64)
		for n := first; n <= last; n++ {
			set[n] = true
		}
	}
	return set
}

func checkIterSet(t *testing.T, text string, s IterSet) {
	t.Helper()
	want := rocprofLaunches(text)
	if int64(len(want)) != s.Len() {
		t.Errorf("%q: %d launches, rocprofv3 takes %d", text, s.Len(), len(want))
	}
	at := int64(0)
	for n := int64(0); n <= min(s.Max()+2, 400); n++ {
		if s.Contains(n) != want[n] {
			t.Errorf("%q: launch %d: %v, rocprofv3 says %v", text, n, s.Contains(n), want[n])
		}
		if want[n] {
			if at++; s.At(at) != n {
				t.Errorf("%q: the %d. launch is %d, want %d", text, at, s.At(at), n)
			}
		}
	}
	if s.At(0) != 0 || s.At(s.Len()+1) != 0 {
		t.Errorf("%q: launches outside the set", text)
	}
	again, err := ParseIterRange(s.String())
	if err != nil || again.String() != s.String() || again.Len() != s.Len() {
		t.Errorf("%q: its canonical form %q reads as %q, error %v", text, s.String(), again.String(), err)
	}
}

func TestIterSetReadsAsRocprofv3Does(t *testing.T) {
	for _, text := range []string{"8", "[6, [8-8]]", "1-3,2-5", "9 1 5-7", "64", "1-64", "[3,[4-6],10 12-12]", "300-310"} {
		s, err := ParseIterRange(text)
		if err != nil {
			t.Fatal(err)
		}
		checkIterSet(t, text, s)
	}
}

func TestIterSetCommon(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"1-5", "3-9", "3-5"}, {"1,3,5", "2,4,6", ""}, {"1-10", "2,4-5,9-20", "2,4-5,9-10"}, {"7", "7", "7"}, {"1-3,8", "8", "8"},
	} {
		a, errA := ParseIterRange(c.a)
		b, errB := ParseIterRange(c.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := a.common(b).String(); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.a, c.b, got, c.want)
		}
		if got := b.common(a).String(); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.b, c.a, got, c.want)
		}
	}
	var empty IterSet
	if empty.Len() != 0 || empty.Max() != 0 || empty.At(1) != 0 || empty.Contains(0) || empty.String() != "" {
		t.Error("the zero value is not empty")
	}
}
