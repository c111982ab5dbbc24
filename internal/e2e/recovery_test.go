package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// attempts gives data.attempts.
func attempts(a answer) []map[string]any {
	list, _ := a.get("attempts").([]any)
	out := make([]map[string]any, len(list))
	for i, one := range list {
		out[i], _ = one.(map[string]any)
	}
	return out
}

// TestFullBuffer: a trace whose buffer was full is taken once more with twice of it, and the caller's own size is left alone.
func TestFullBuffer(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "truncated=150000000")
	a := s.capture(map[string]any{"kernel": "softmax"})
	tried := attempts(a)
	if !a.OK || len(tried) != 2 || tried[0]["att_buffer_size"] != 100663296.0 || tried[1]["att_buffer_size"] != 201326592.0 || tried[1]["result"] != "kept" {
		t.Fatalf("%s", a.raw)
	}
	if a.warned("BUFFER_FULL") || a.warned("WAVES_UNFINISHED") {
		t.Errorf("what the replaced trace lacked is still said: %v", a.Warnings)
	}
	if a.get("tags.big.plan.att_buffer_size") != 201326592.0 || a.get("cost.workload_runs") != 3.0 {
		t.Errorf("plan %v, cost %v", a.get("tags.big.plan"), a.get("cost"))
	}

	a = s.capture(map[string]any{"kernel": "softmax", "att_buffer_size": 67108864})
	if !a.OK || len(attempts(a)) != 1 || !a.warned("BUFFER_FULL") || !a.warned("WAVES_UNFINISHED") {
		t.Errorf("a size of the caller's own: %s", a.raw)
	}

	s = simulated(t, "", "--fault", "truncated")
	a = s.capture(map[string]any{"kernel": "softmax"})
	if tried := attempts(a); !a.OK || len(tried) != 2 || tried[1]["result"] != "cut" || !a.warned("BUFFER_FULL") || a.get("tags.big.plan.att_buffer_size") != 100663296.0 {
		t.Errorf("no buffer is enough: %s", a.raw)
	}
}

// TestLaunchNeverCame: a traced run that launches the kernel fewer times than the discovery did gets a launch that it has; a launch
// that the caller asked for is not replaced.
func TestLaunchNeverCame(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "iteration_out_of_range")
	a := s.capture(map[string]any{"kernel": "softmax"})
	tried := attempts(a)
	if !a.OK || len(tried) != 2 || tried[0]["result"] != "empty" || tried[1]["iter_range"] != "1" || a.get("iter_range") != "1" {
		t.Fatalf("%s", a.raw)
	}
	a = s.capture(map[string]any{"kernel": "softmax", "iter_range": "5"})
	if a.Error == nil || a.Error.Code != "DISPATCH_OUT_OF_RANGE" || len(a.Error.Available) == 0 || a.Error.NextActions[0].Arguments["iter_range"] != "1" {
		t.Fatalf("%s", a.raw)
	}
	if b := s.capture(a.Error.NextActions[0].Arguments); !b.OK {
		t.Errorf("the next action ended with %s", b.raw)
	}
}

// TestDiscoveryReused: another capture of an unchanged test takes the list of launches of the one before; a change of the source, of the
// environment, or rediscover makes a new one; a run whose record is gone or damaged does too.
func TestDiscoveryReused(t *testing.T) {
	t.Parallel()
	tree := demoTree(t)
	s := simulated(t, "", "--worktree", tree)
	capture := func(args map[string]any) answer {
		t.Helper()
		args["kernel"], args["shape"] = "softmax", "8192,8192"
		a := s.capture(args)
		if !a.OK {
			t.Fatalf("%v: %s", args, a.raw)
		}
		return a
	}
	reused := func(a answer) bool { return a.get("discovery.reused_from") != nil }
	first := capture(map[string]any{})
	if reused(first) || first.get("cost.workload_runs") != 2.0 {
		t.Fatalf("%s", first.raw)
	}
	second := capture(map[string]any{"att_target_cu": 2})
	if second.get("discovery.reused_from") != first.Bundle || second.get("cost.workload_runs") != 1.0 || second.get("calls") != first.get("calls") {
		t.Errorf("%s", second.raw)
	}
	if a := capture(map[string]any{"att_target_cu": 3, "rediscover": true}); reused(a) || a.get("cost.workload_runs") != 2.0 {
		t.Errorf("rediscover: %s", a.raw)
	}
	test := filepath.Join(tree, "tests", "kernels", "test_softmax.py")
	source, err := os.ReadFile(test)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(test, append(source, "# edited\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	third := capture(map[string]any{"att_target_cu": 4})
	if reused(third) {
		t.Errorf("the test was edited: %s", third.raw)
	}
	traces, err := filepath.Glob(filepath.Join(s.runs, third.Bundle, "discover", "*kernel_trace.csv"))
	if err != nil || len(traces) == 0 {
		t.Fatalf("%v %v", traces, err)
	}
	if err := os.WriteFile(traces[0], []byte("\"torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if a := capture(map[string]any{"att_target_cu": 5}); reused(a) {
		t.Errorf("the list was torn: %s", a.raw)
	}
}

// TestSameDiagnosis: triage of an empty run, by its id and by its directory, names the reason that the capture named.
func TestSameDiagnosis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		args  map[string]any
		kind  string
	}{
		"elsewhere":    {"", map[string]any{"shape": "8,8192", "att_target_cu": 1, "att_shader_engine_mask": "0x1"}, "elsewhere"},
		"idle engines": {"wrong_gpu", map[string]any{}, "idle_engines"},
		"other kernel": {"wrong_kernel", map[string]any{}, "other_kernel"},
	} {
		s := simulated(t, "", "--fault", c.fault)
		c.args["kernel"] = "softmax"
		a := s.capture(c.args)
		if a.Error == nil || a.Error.Code != "EMPTY_ATT" || a.Error.Evidence["diagnosis"] != c.kind {
			t.Errorf("%s: %s", name, a.raw)
			continue
		}
		kernel, _ := a.get("kernel").(string)
		for _, args := range []map[string]any{{"run_id": a.Bundle}, {"path": filepath.Join(s.runs, a.Bundle), "kernel": kernel}} {
			b := s.call("flyprof_triage", args)
			if cause, _ := b.get("directory.cause").(map[string]any); !b.OK || cause == nil || cause["kind"] != c.kind {
				t.Errorf("%s: %v: %s", name, args, b.raw)
			}
		}
	}
}

// TestRounds: for one lineage triage proposes three times, then it says stop; an edit of the test opens a new lineage.
func TestRounds(t *testing.T) {
	t.Parallel()
	tree := demoTree(t)
	s := simulated(t, "", "--worktree", tree, "--fault", "compile_fail")
	args := map[string]any{"kernel": "softmax", "force": true}
	for round := 1; round <= 4; round++ {
		a := s.capture(args)
		if a.Error == nil || a.Error.Code != "KERNEL_COMPILE_FAIL" {
			t.Fatalf("%s", a.raw)
		}
		b := s.call("flyprof_triage", map[string]any{"run_id": a.Bundle})
		last := b.NextActions[len(b.NextActions)-1].Action
		if b.get("round") != float64(round) || (round > 3) != (last == "stop" && b.get("round").(float64) > b.get("rounds").(float64)) {
			t.Errorf("round %d: %s", round, b.raw)
		}
		args["retry_of"] = a.Bundle
	}
	test := filepath.Join(tree, "tests", "kernels", "test_softmax.py")
	source, err := os.ReadFile(test)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(test, append(source, "# mended\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	a := s.capture(args)
	if b := s.call("flyprof_triage", map[string]any{"run_id": a.Bundle}); b.get("round") != 1.0 {
		t.Errorf("after an edit: %s", b.raw)
	}
}

// TestTimeoutKeepsTheOtherTag: a limit that ends the small trace leaves the big one in the answer and on disk.
func TestTimeoutKeepsTheOtherTag(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "att:slow=10")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192", "tag": "both", "timeout_s": 18})
	if a.Error == nil || a.Error.Code != "CAPTURE_TIMEOUT" || a.get("tags.big.state") != "done" {
		t.Fatalf("%s", a.raw)
	}
	kept, _ := a.get("tags.big.kept_dir").(string)
	if _, err := os.Stat(filepath.Join(s.runs, a.Bundle, filepath.FromSlash(kept), "code.json")); kept == "" || err != nil {
		t.Errorf("%q: %v", kept, err)
	}
}

// TestGroupAndBaseline: of several launch groups the one that is asked for is traced, and the result is of that grid; the baseline
// beside a kernel is traced on purpose only.
func TestGroupAndBaseline(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "rmsnorm"})
	groups, _ := a.get("groups").([]any)
	if !a.OK || len(groups) < 2 {
		t.Fatalf("%s", a.raw)
	}
	for _, g := range groups {
		group := g.(map[string]any)
		b := s.capture(map[string]any{"kernel": "rmsnorm", "group": group["id"]})
		if !b.OK || b.get("group") != group["id"] || b.get("tags.big.grid.workgroups") != group["workgroups"] {
			t.Errorf("%v: %s", group, b.raw)
		}
	}
	if b := s.capture(map[string]any{"kernel": "rmsnorm", "group": "99:1x1x1"}); b.Error == nil || b.Error.Code != "DISPATCH_OUT_OF_RANGE" || len(b.Error.Available) != len(groups) {
		t.Errorf("%s", b.raw)
	}
	own := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
	twin := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192", "target": "baseline"})
	if twin.get("kernel") == nil || twin.get("kernel") == own.get("kernel") || twin.OK && (twin.get("match_confidence") != "heuristic" || !twin.warned("MATCH_HEURISTIC")) {
		t.Errorf("%s", twin.raw)
	}
}

func (a answer) warned(code string) bool {
	for _, w := range a.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// TestCountersInTurn: both tags with counters take the workload a discovery, two traces and one run for all counter groups; where
// rocprofv3 cannot rotate, each group has a run of its own and the same counters come out.
func TestCountersInTurn(t *testing.T) {
	t.Parallel()
	for fault, runs := range map[string]float64{"": 4, "no_rotation": 7} {
		s := simulated(t, "", "--fault", fault)
		a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192", "tag": "both", "with_pmc": true})
		passes, _ := a.get("pmc").([]any)
		if !a.OK || len(passes) != 3 || a.get("cost.workload_runs") != runs {
			t.Fatalf("%q: %v workload runs: %s", fault, a.get("cost.workload_runs"), a.raw)
		}
		for _, p := range passes {
			pass := p.(map[string]any)
			if pass["error"] != nil || len(pass["values"].([]any)) != len(pass["counters"].([]any)) {
				t.Errorf("%q: %v", fault, pass)
			}
		}
	}
}
