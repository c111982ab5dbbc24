package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// publicCalls are the command lines of the public flyprof-capture skill with its placeholders, and what its runbook reads of the
// answers.
var publicCalls = []struct {
	line  string
	holds func(answer) bool
}{
	{"flyprof doctor -f json", func(a answer) bool {
		blockers, ok := a.get("blockers").([]any)
		return a.get("verdict") == "ready" && ok && len(blockers) == 0
	}},
	{"flyprof list -f json", func(a answer) bool {
		kernels, _ := a.get("kernels").([]any)
		return slices.ContainsFunc(kernels, func(k any) bool {
			entry, _ := k.(map[string]any)
			return entry["kernel"] == "softmax" && entry["recipe_source"] == "synthesizable"
		})
	}},
	{"flyprof tile <k> --shape M,N[,K] --dtype D -f json", func(a answer) bool {
		verdict, _ := a.get("grid.tail_verdict").(string)
		return a.get("recommended.regime") == "memory-bound" && verdict != ""
	}},
	{"flyprof capture <k> --tag both --with-pmc --gpu 0 -f json", captured},
}

// captured are the confirmations of the skill's last step.
func captured(a answer) bool {
	kept, _ := a.get("tags.big.kept_dir").(string)
	mapped, _ := a.get("tags.big.mapped_pct").(float64)
	candidates, _ := a.get("candidates").([]any)
	match := a.get("match_confidence")
	return kept != "" && mapped > 90 && (match == "exact" || match == "fuzzy") && len(candidates) > 0
}

// flyprof runs the drop-in on the simulated GPU.
func flyprof(t *testing.T, runs string, args ...string) (answer, int) {
	t.Helper()
	out, said, code := program(t, dropIn, []string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + runs}, args...)
	return envelopeOf(t, args, out, said, code), code
}

// TestPublicSkill runs every command line of the public skill as it stands.
func TestPublicSkill(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	fill := strings.NewReplacer("<k>", "softmax", "M,N[,K]", "8192,8192", " D ", " bf16 ")
	for _, c := range publicCalls {
		a, code := flyprof(t, runs, strings.Fields(fill.Replace(c.line))[1:]...)
		if code != 0 || !c.holds(a) {
			t.Errorf("%s: exit %d: %s", c.line, code, a.raw)
		}
	}
}

// TestPublicSkillIsCovered: the skill as it was published has no other command line.
func TestPublicSkillIsCovered(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "seed", "flyprof-capture.txt"))
	if err != nil {
		t.Skipf("the public skill is not here: %v", err)
	}
	found := regexp.MustCompile(`(?m)^\W*(flyprof [a-z]+ [^→\n]*-f json)`).FindAllStringSubmatch(string(text), -1)
	if len(found) != len(publicCalls) {
		t.Errorf("%d command lines: %q", len(found), found)
	}
	for i, m := range found {
		if i < len(publicCalls) && m[1] != publicCalls[i].line {
			t.Errorf("%q is tested as %q", m[1], publicCalls[i].line)
		}
	}
}

// TestPublicFlags: other calls that the public flyprof takes.
func TestPublicFlags(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	for name, c := range map[string]struct {
		args  []string
		holds func(answer) bool
	}{
		"shape with a dtype": {[]string{"capture", "softmax", "--shape", "8192,8192,bf16", "--timeout", "600", "--tag", "both", "--format", "json"}, func(a answer) bool {
			return captured(a) && a.get("tags.small.kept_dir") != nil && a.get("tags.big.shape") == "8192,8192,bf16"
		}},
		"equals signs": {[]string{"capture", "--gpu=1", "--shape=8192,8192", "--tag=big", "softmax", "-f=json", "--quiet"}, func(a answer) bool { return captured(a) && a.get("provenance.gpu.index") == 1.0 }},
		"launch":       {[]string{"capture", "softmax", "--iter-range", "3"}, func(a answer) bool { return captured(a) && a.get("iter_range") == "3" }},
		"own command":  {[]string{"capture", "softmax", "--invocation", "python tests/kernels/test_softmax.py"}, captured},
		"list anew":    {[]string{"list", "--refresh"}, func(a answer) bool { return a.get("total") == 9.0 }},
		"architecture": {[]string{"tile", "gemm", "--shape", "4096,4096,4096", "--dtype", "fp8", "--out-dtype", "bf16", "--arch", "gfx942"}, func(a answer) bool {
			return a.get("arch") == "gfx942" && a.get("recommended.regime") == "compute-bound"
		}},
		"tile of one's own":   {[]string{"tile", "gemm", "--shape", "4096,4096,4096", "--bm", "128", "--bn", "128", "--bk", "64", "--buffers", "2"}, func(a answer) bool { return a.get("evaluated.source") == "given" }},
		"doctor of one's own": {[]string{"doctor", "--gpu", "1", "--arch", "gfx950", "-f", "json"}, func(a answer) bool { return a.get("verdict") == "ready" }},
	} {
		if a, code := flyprof(t, runs, c.args...); code != 0 || !c.holds(a) {
			t.Errorf("%s: exit %d: %s", name, code, a.raw)
		}
	}
}

// TestPublicDowngrades: the skill's table of failures, by the codes, exit codes and members that it names; what an error says to do
// next is a command line of this program that runs as it stands.
func TestPublicDowngrades(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	for code, c := range map[string]struct {
		args []string
		exit int
		has  func(answer) bool
	}{
		"NO_KERNEL_DISCOVERED":  {[]string{"capture", "softmax", "--fault", "no_kernel"}, 66, func(a answer) bool { return len(a.Error.Candidates) > 0 }},
		"EMPTY_ATT":             {[]string{"capture", "softmax", "--shape", "8,8192", "--att-target-cu", "1", "--att-shader-engine-mask", "0x1", "--seed", "1"}, 66, nil},
		"DISPATCH_OUT_OF_RANGE": {[]string{"capture", "softmax", "--iter-range", "9999"}, 66, func(a answer) bool { return len(a.Error.Available) > 0 }},
		"CAPTURE_TIMEOUT":       {[]string{"capture", "softmax", "--fault", "timeout", "--timeout", "10", "--stop-grace", "2"}, 75, func(a answer) bool { return a.Error.Retry.Allowed }},
		"BUILD_TREE_MISSING":    {[]string{"capture", "softmax", "--fault", "not_built"}, 78, nil},
		"KERNEL_COMPILE_FAIL":   {[]string{"capture", "softmax", "--fault", "compile_fail"}, 65, func(a answer) bool { return a.Error.NextActions[0].Action == "report_finding" }},
	} {
		a, exit := flyprof(t, runs, c.args...)
		if exit != c.exit || a.Error == nil || a.Error.Code != code || c.has != nil && !c.has(a) {
			t.Errorf("%s: exit %d: %s", code, exit, a.raw)
			continue
		}
		for _, next := range a.Error.NextActions {
			if next.Argv != nil && next.Argv[0] != "flyprof" {
				t.Errorf("%s: the next command line is %q", code, next.Argv)
			}
		}
		if code == "EMPTY_ATT" || code == "DISPATCH_OUT_OF_RANGE" {
			argv := a.Error.NextActions[0].Argv
			if b, exit := flyprof(t, runs, argv[1:]...); exit != 0 || !captured(b) {
				t.Errorf("%s: %q: exit %d: %s", code, argv, exit, b.raw)
			}
		}
	}
}

// TestPublicAnalyses: the analyses that the public flyprof makes of a bundle, of which the envelope's bundle is the handle.
func TestPublicAnalyses(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	captured, _ := flyprof(t, runs, "capture", "softmax", "--with-pmc")
	for name, c := range map[string]struct {
		args []string
		has  []string
	}{
		"bubbles":          {[]string{"bubbles", "--bundle", captured.Bundle, "--tag", "big", "-f", "json"}, []string{"stalls", "hot"}},
		"one instruction":  {[]string{"bubbles", "--bundle", captured.Bundle, "--detail", "5"}, []string{"hot"}},
		"map":              {[]string{"map", "--bundle", filepath.Join(runs, captured.Bundle), "-f", "json"}, []string{"instructions"}},
		"map of one":       {[]string{"map", "--bundle", captured.Bundle, "--code-line", "5"}, []string{"instructions"}},
		"map of a source":  {[]string{"map", "--bundle", captured.Bundle, "--source-line", "softmax_kernel.py:17"}, []string{"instructions"}},
		"counters":         {[]string{"counters", "--bundle", captured.Bundle, "-f", "json"}, []string{"values", "bound"}},
		"before and after": {[]string{"diff", "--before", captured.Bundle, "--after", captured.Bundle}, []string{"verdict"}},
	} {
		a, code := flyprof(t, runs, c.args...)
		if code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, a.raw)
		}
		for _, member := range c.has {
			if a.get(member) == nil {
				t.Errorf("%s: no data.%s: %s", name, member, a.raw)
			}
		}
	}
}
