package e2e

import (
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
