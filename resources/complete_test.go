//go:build unix

package resources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

func (l library) complete(t testing.TB, uri, variable, typed string, given map[string]string) *mcp.Completion {
	t.Helper()
	c, err := l.CompleteResourceArgument(t.Context(), uri, mcp.CompleteArgument{Name: variable, Value: typed}, mcp.CompleteContext{Arguments: given})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompleteTemplates(t *testing.T) {
	l := trapped(t)
	l.put(t, "att/big/ui_output_agent_1_dispatch_2/code.json", nil)
	l.put(t, "logs/att-big.log", nil)
	l.put(t, "logs/deep/x.log", nil)
	newest := l.create(t, "vec_add").ID
	run := map[string]string{"run": l.id}
	const file, log = "flyprof://files/{run}/{+path}{?offset,limit,line,lines}", "flyprof://logs/{run}/{name}{?offset,limit,line,lines}"
	if got := l.complete(t, "flyprof://runs/{run}{?offset,limit,line,lines}", "run", "", nil); !slices.Equal(got.Values, l.Runs()) || !slices.Contains(got.Values, newest) || slices.Contains(got.Values, linkedRun) || got.Total != 2 {
		t.Errorf("%+v, want the runs, the newest first", got)
	}
	for _, c := range []struct {
		uri, variable, typed string
		given                map[string]string
		want                 []string
	}{
		{file, "path", "ATT/", run, []string{"att/big/ui_output_agent_1_dispatch_2/code.json"}},
		{file, "path", "code", run, []string{"att/big/ui_output_agent_1_dispatch_2/code.json"}},
		{file, "path", "secret", run, []string{}},
		{file, "path", "fifo", run, []string{}},
		{file, "path", "", nil, []string{}},
		{file, "path", "", map[string]string{"run": "../.."}, []string{}},
		{file, "path", "", map[string]string{"run": linkedRun}, []string{}},
		{log, "name", "", run, []string{"att-big.log", "in.log"}},
		{log, "name", "in", run, []string{"in.log"}},
		{log, "run", newest, nil, []string{newest}},
		{log, "line", "", run, []string{}},
		{"skill://{skill}/{+file}", "skill", "flyprof-t", nil, []string{"flyprof-triage"}},
		{"skill://{skill}/{+file}", "file", "SK", map[string]string{"skill": "flyprof-usage"}, []string{"SKILL.md"}},
		{"skill://{skill}/{+file}", "file", "", map[string]string{"skill": "nothing"}, []string{}},
		{"test://else/{x}", "x", "", nil, []string{}},
	} {
		if got := l.complete(t, c.uri, c.variable, c.typed, c.given); !slices.Equal(got.Values, c.want) || got.Total != len(c.want) || got.HasMore {
			t.Errorf("%s %s %q: %+v, want %q", c.uri, c.variable, c.typed, got, c.want)
		}
	}
	if all := l.complete(t, file, "path", "", run); all.Values[0] != ".reserve" && !strings.Contains(strings.Join(all.Values[:4], " "), "run.json") {
		t.Errorf("the files near the root come first: %q", all.Values)
	}
	for _, c := range []struct{ uri, variable string }{{file, "name"}, {log, "path"}, {"flyprof://nothing/{run}", "run"}, {"flyprof://runs", "run"}, {"skill://{name}", "name"}} {
		_, err := l.CompleteResourceArgument(t.Context(), c.uri, mcp.CompleteArgument{Name: c.variable}, mcp.CompleteContext{})
		var coded *wire.Error
		if !errors.As(err, &coded) || coded.Code != mcp.INVALID_PARAMS {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCompleteIsBounded: of thousands a hundred are given, and how many there are.
func TestCompleteIsBounded(t *testing.T) {
	var values []string
	for i := range 3000 {
		values = append(values, fmt.Sprintf("wave %04d", i))
	}
	got := Complete(values, "WAVE 1")
	if len(got.Values) != 100 || got.Total != 1000 || !got.HasMore || got.Values[0] != "wave 1000" {
		t.Errorf("%d of %d, %v, from %s", len(got.Values), got.Total, got.HasMore, got.Values[0])
	}
	// What begins with it comes before what holds it.
	if got := Complete([]string{"xab", "ab", "cab", "abc"}, "ab"); !slices.Equal(got.Values, []string{"ab", "abc", "xab", "cab"}) {
		t.Errorf("%q", got.Values)
	}
	if got := Complete(values, strings.Repeat("w", 5000)); len(got.Values) != 0 || got.Values == nil {
		t.Errorf("%+v", got)
	}
}

// FuzzCompleteTemplates: whatever is typed, the values are bounded and nothing outside is named.
func FuzzCompleteTemplates(f *testing.F) {
	l := trapped(f)
	for _, tm := range templates {
		for variable := range tm.complete {
			f.Add(tm.uri, variable, "", "run", "RUN")
		}
	}
	f.Add("flyprof://files/{run}/{+path}{?offset,limit,line,lines}", "path", "../", "run", "..")
	f.Add("", "\xff", "\x00", "", "")
	f.Fuzz(func(t *testing.T, uri, variable, typed, other, value string) {
		c, err := l.CompleteResourceArgument(t.Context(), uri, mcp.CompleteArgument{Name: variable, Value: typed}, mcp.CompleteContext{Arguments: map[string]string{other: strings.ReplaceAll(value, "RUN", l.id)}})
		if err == nil && (len(c.Values) > maxValues || c.Values == nil || c.Total < len(c.Values) || strings.Contains(strings.Join(c.Values, " "), "secret")) {
			t.Errorf("%+v", c)
		}
	})
}
