package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAnalysis: the analysis of a run, by its id and by its directory, has the sums that the capture reported, and its next actions lead on.
func TestAnalysis(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "softmax", "tag": "both", "shape": "8192,8192", "with_pmc": true})
	if !a.OK {
		t.Fatalf("%s", a.raw)
	}
	for _, args := range []map[string]any{{"run_id": a.Bundle}, {"path": filepath.Join(s.runs, a.Bundle)}, {"run_id": a.Bundle, "tag": "small"}} {
		tag := "big"
		if args["tag"] != nil {
			tag = "small"
		}
		b := s.call("flyprof_bubbles", args)
		for _, name := range []string{"hitcount", "latency", "stall", "idle"} {
			if b.get("totals."+name) != a.get("tags."+tag+"."+name) {
				t.Errorf("%v: %s is %v, the capture had %v", args, name, b.get("totals."+name), a.get("tags."+tag+"."+name))
			}
		}
		hot, _ := b.get("hot").([]any)
		if !b.OK || len(hot) == 0 || !b.warned("SIMULATED") || b.get("trace.waves") != a.get("tags."+tag+".waves") {
			t.Errorf("%v: %.800s", args, b.raw)
			continue
		}
		if b.NextActions[0].Tool != "flyprof_map" {
			t.Fatalf("%+v", b.NextActions)
		}
		m := s.call(b.NextActions[0].Tool, b.NextActions[0].Arguments)
		place, _ := b.NextActions[0].Arguments["source_line"].(string)
		if ins, _ := m.get("instructions").([]any); !m.OK || len(ins) == 0 || !strings.Contains(string(m.raw), filepath.Base(place)) {
			t.Errorf("%.800s", m.raw)
		}
	}
	for _, args := range []map[string]any{{"run_id": a.Bundle}, {"path": filepath.Join(s.runs, a.Bundle, "pmc")}} {
		c := s.call("flyprof_counters", args)
		values, _ := c.get("values").([]any)
		if !c.OK || len(values) < 12 || c.get("kernel") != a.get("kernel") || c.get("bound.kind") == nil && c.get("bound") == nil {
			t.Errorf("%v: %.900s", args, c.raw)
		}
	}
	report := s.call("flyprof_report", map[string]any{"run_id": a.Bundle})
	files, _ := report.get("files").([]any)
	if !report.OK || report.get("bound.kind") == nil || report.get("optimal_basis") == nil || len(files) != 2 {
		t.Fatalf("%.1500s", report.raw)
	}
	page := s.call("flyprof_read", map[string]any{"uri": files[0]})
	if text, _ := page.get("text").(string); !strings.Contains(text, "# Report on `softmax_kernel_0`") || !strings.Contains(text, "SIMULATED") {
		t.Errorf("%.800s", page.raw)
	}
	if of := s.call("flyprof_report", map[string]any{"path": filepath.Join(s.runs, a.Bundle)}); !of.OK || of.get("files") != nil || of.get("bound.kind") != report.get("bound.kind") {
		t.Errorf("%.800s", of.raw)
	}
	same := s.call("flyprof_diff", map[string]any{"before": a.Bundle, "after": filepath.Join(s.runs, a.Bundle)})
	if !same.OK || same.get("alike") != true || same.get("verdict") != "same" || same.get("stall.delta") != 0.0 {
		t.Errorf("%.1500s", same.raw)
	}
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		code string
	}{
		"neither":      {"flyprof_bubbles", map[string]any{}, "BAD_ARGS"},
		"no run":       {"flyprof_map", map[string]any{"run_id": "nothing"}, "RUN_NOT_FOUND"},
		"outside":      {"flyprof_map", map[string]any{"path": "/etc"}, "PATH_NOT_ALLOWED"},
		"no such line": {"flyprof_bubbles", map[string]any{"run_id": a.Bundle, "code_line": 99999}, "BAD_ARGS"},
		"no class":     {"flyprof_map", map[string]any{"run_id": a.Bundle, "class": "vula"}, "BAD_ARGS"},
	} {
		if b := s.call(c.tool, c.args); b.Error == nil || b.Error.Code != c.code || len(b.Error.NextActions) == 0 {
			t.Errorf("%s: %.600s", name, b.raw)
		}
	}
}
