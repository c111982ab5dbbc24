package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// TestPathMatch: fault 23. A suffix ends where a name does.
func TestPathMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, asked, want string }{
		{"/w/kernels/rmsnorm.py", "/w/kernels/rmsnorm.py", MatchExact},
		{"/w/./kernels/rmsnorm.py", "/w/kernels/rmsnorm.py", MatchExact},
		{"/opt/bin/../include/a.h", "/opt/include/a.h", MatchExact},
		{"/w/kernels/rmsnorm.py", "rmsnorm.py", MatchSuffix},
		{"/w/kernels/rmsnorm.py", "kernels/rmsnorm.py", MatchSuffix},
		{"/w/kernels/rmsnorm.py", "./kernels/rmsnorm.py", MatchSuffix},
		{"../main.cpp", "main.cpp", MatchSuffix},
		{"../main.cpp", "../main.cpp", MatchExact},
		{"/w/kernels/rmsnorm.py", "norm.py", ""},
		{"/w/kernels/rmsnorm.py", "/kernels/rmsnorm.py", ""},
		{"/w/kernels/rmsnorm.py", "../kernels/rmsnorm.py", ""},
		{"/w/kernels/rmsnorm.py", ".", ""},
		{"/w/kernels/rmsnorm.py", "rmsnorm.py/", MatchSuffix},
		{"/w/kernels/rmsnorm.py", "kernels", ""},
		{"", "a.py", ""},
	} {
		if got := pathMatch(tt.have, tt.asked); got != tt.want {
			t.Errorf("%s by %s: %q, want %q", tt.have, tt.asked, got, tt.want)
		}
	}
}

func TestParseSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sourceFilter{
		"12":              {"", 12, 12},
		"10-20":           {"", 10, 20},
		"k.py":            {"k.py", 0, 0},
		"k.py:12":         {"k.py", 12, 12},
		" a/k.py:10-20 ":  {"a/k.py", 10, 20},
		`C:\w\k.py`:       {`C:\w\k.py`, 0, 0},
		`C:\w\k.py:3`:     {`C:\w\k.py`, 3, 3},
		"a:b/k.py":        {"a:b/k.py", 0, 0},
		"10-20.py":        {"10-20.py", 0, 0},
		"k.py:000000012":  {"k.py", 12, 12},
		":7":              {"", 7, 7},
		"k.py:1-99999999": {"k.py", 1, 99999999},
	} {
		if got, err := parseSource(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k.py:", "k.py:0", "k.py:x", "20-10", "-5", "5-", "0", "k.py:1234567890", "1-2-3", strings.Repeat("a", 5000), strings.Repeat("a", 5000) + ":1"} {
		if got, err := parseSource(text); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
}

func TestParseFrames(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]Frame{
		"":                      nil,
		"/w/k.py:12":            {{"/w/k.py", 12}},
		"a:1 -> b:2 -> c:3":     {{"a", 1}, {"b", 2}, {"c", 3}},
		"no line":               {{"no line", 0}},
		"a:b:3":                 {{"a:b", 3}},
		"/w/k.py:0":             {{"/w/k.py", 0}},
		"/w/k.py:":              {{"/w/k.py:", 0}},
		" -> a:1":               {{"a", 1}},
		"a:99999999999 -> b:01": {{"a:99999999999", 0}, {"b", 1}},
	} {
		if got := ParseFrames(source); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", source, got, want)
		}
	}
}

// TestMap: each filter, and together, on the fixture.
func TestMap(t *testing.T) {
	t.Parallel()
	tr := opened(t, nil)
	for name, c := range map[string]struct {
		q       MapQuery
		lines   []int64 // of the instructions
		files   []string
		matches string
	}{
		"all":                  {MapQuery{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}, []string{"/w/./kernels/k.py", "/w/flydsl/expr/lds.py", "/w/kernels/krms.py"}, ""},
		"a line of any file":   {MapQuery{SourceLine: "10"}, []int64{1, 4}, []string{"/w/./kernels/k.py", "/w/kernels/krms.py"}, ""},
		"a line is no prefix":  {MapQuery{SourceLine: "1"}, nil, []string{"/w/./kernels/k.py", "/w/flydsl/expr/lds.py", "/w/kernels/krms.py"}, ""},
		"a file and line":      {MapQuery{SourceLine: "k.py:11"}, []int64{2, 7}, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"a whole path":         {MapQuery{SourceLine: "/w/kernels/k.py:10"}, []int64{1}, []string{"/w/./kernels/k.py"}, MatchExact},
		"a file":               {MapQuery{SourceLine: "kernels/k.py"}, []int64{1, 2, 3, 6, 7, 8}, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"a range":              {MapQuery{SourceLine: "k.py:10-11"}, []int64{1, 2, 7}, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"the caller's line":    {MapQuery{SourceLine: "k.py:12"}, []int64{3, 8}, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"the inlined line":     {MapQuery{SourceLine: "lds.py:7"}, []int64{3}, []string{"/w/flydsl/expr/lds.py"}, MatchSuffix},
		"an address":           {MapQuery{Address: "0x1008"}, []int64{2}, []string{"/w/./kernels/k.py"}, ""},
		"a decimal address":    {MapQuery{Address: "4104"}, []int64{2}, []string{"/w/./kernels/k.py"}, ""},
		"a class":              {MapQuery{Class: "mfma"}, []int64{5}, nil, ""},
		"a counter":            {MapQuery{Class: "expcnt"}, []int64{6}, []string{"/w/./kernels/k.py"}, ""},
		"a code line":          {MapQuery{CodeLine: new(int64(9))}, []int64{9}, nil, ""},
		"class and line":       {MapQuery{Class: "wait", SourceLine: "k.py:11"}, []int64{2}, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"no such line":         {MapQuery{SourceLine: "k.py:13"}, nil, []string{"/w/./kernels/k.py"}, MatchSuffix},
		"no such file":         {MapQuery{SourceLine: "ms.py"}, nil, []string{"/w/./kernels/k.py", "/w/flydsl/expr/lds.py", "/w/kernels/krms.py"}, ""},
		"another code object":  {MapQuery{SourceLine: "other.py:1"}, nil, []string{"/w/./kernels/k.py", "/w/flydsl/expr/lds.py", "/w/kernels/krms.py"}, ""},
		"a page":               {MapQuery{Class: "wait", Limit: 1, Offset: 1}, []int64{6}, []string{"/w/./kernels/k.py"}, ""},
		"the header is no row": {MapQuery{CodeLine: new(int64(0))}, nil, []string{"/w/./kernels/k.py", "/w/flydsl/expr/lds.py", "/w/kernels/krms.py"}, ""},
	} {
		m, err := tr.Map(t.Context(), c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var lines []int64
		for _, i := range m.Instructions {
			lines = append(lines, i.CodeLine)
		}
		var files []string
		for _, f := range m.Files {
			files = append(files, f.File)
			if f.Match != c.matches {
				t.Errorf("%s: %s fits as %q, want %q", name, f.File, f.Match, c.matches)
			}
		}
		slices.Sort(files)
		if !slices.Equal(lines, c.lines) || !slices.Equal(files, c.files) || m.FilesTotal != len(files) {
			t.Errorf("%s: lines %v of %d, files %v; want %v, %v", name, lines, m.Total, files, c.lines, c.files)
		}
		sum, ins := int64(0), 0
		for _, l := range m.Lines {
			sum, ins = sum+l.Stall, ins+l.Ins
		}
		if sum != m.Totals.Stall || ins != m.Total {
			t.Errorf("%s: the lines hold %d instructions and stall %d of %d and %d", name, ins, sum, m.Total, m.Totals.Stall)
		}
	}
}

// TestMapSource: the text of the lines, what is near, and what is not known.
func TestMapSource(t *testing.T) {
	t.Parallel()
	tr := opened(t, nil)
	ask := func(source string) Map {
		m, err := tr.Map(t.Context(), MapQuery{SourceLine: source})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := ask("k.py:11")
	if m.Lines[0].Text != "  wait()" || m.Lines[0].TopKind != "vmcnt" || m.Lines[0].Stall != 229 {
		t.Errorf("%+v", m.Lines)
	}
	if s := m.Snippet; s == nil || s.State != TextExact || s.FileLines != 12 || len(s.Lines) != 5 || s.Lines[0].Line != 8 || s.Lines[3].Stall != 229 || s.Lines[3].Text != "  wait()" {
		t.Errorf("%+v", m.Snippet)
	}
	if m := ask("k.py:99"); m.Snippet.State != TextBeyondEnd || m.Snippet.Lines != nil || m.Lines[0].TextState != TextBeyondEnd {
		t.Errorf("%+v", m.Snippet)
	}
	if m := ask("krms.py:10"); m.Snippet.State != TextNoSnapshot || m.Files[0].Snapshot {
		t.Errorf("%+v", m)
	}
	if m := ask("k.py:13"); m.Total != 0 || !slices.Equal(m.Nearest, []int{10, 11, 12, 99}) || !m.Files[0].Snapshot {
		t.Errorf("%+v", m)
	}
	if m := ask("10"); m.Snippet != nil || m.LinesTotal != 2 {
		t.Errorf("%+v", m)
	}
	for field, q := range map[string]MapQuery{
		"source_line": {SourceLine: "k.py:0"}, "address": {Address: "0x"}, "class": {Class: "vgpr"},
	} {
		_, err := tr.Map(t.Context(), q)
		if e := envelope.As(err); e.Code != envelope.BadArgs || e.Evidence.Field != field || e.Evidence.Allowed == "" {
			t.Errorf("%s: %+v", field, err)
		}
	}
	for _, class := range isa.Filters() {
		if _, err := tr.Map(t.Context(), MapQuery{Class: class}); err != nil {
			t.Errorf("%s: %v", class, err)
		}
	}
}

// TestSnapshotJail: fault 23. Whatever snapshots.json names, no file outside the directory is read.
func TestSnapshotJail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../../../../etc/passwd", "/etc/passwd", "..", "code.json/../code.json"} {
		tr := opened(t, map[string]string{"snapshots.json": `{"/":{"w":{".":{"kernels":{"k.py":"` + name + `"}}}}}`})
		m, err := tr.Map(t.Context(), MapQuery{SourceLine: "k.py:11"})
		if err != nil || m.Snippet.State != TextNoSnapshot || m.Lines[0].Text != "" {
			t.Errorf("%s: %+v, %v", name, m.Snippet, err)
		}
	}
}
