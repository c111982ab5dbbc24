package analyze

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// named finds a change by its name.
func named(list []NamedChange, name string) NamedChange {
	for _, c := range list {
		if c.Name == name {
			return c
		}
	}
	return NamedChange{}
}

// slower is the fixture with waits that take four times as long and arithmetic that takes ten times as long.
func slower() map[string]string {
	code := strings.NewReplacer(
		`11",1,4104,2,201,199,0]`, `11",1,4104,2,798,796,0]`,
		`a[0:3]",0,5,"",1,4124,2,40,30,0]`, `a[0:3]",0,5,"",1,4124,2,3010,3000,0]`,
	).Replace(fixtureCode)
	return map[string]string{
		"code.json":      code,
		"filenames.json": strings.NewReplacer("320", "2108", "300", "1985").Replace(fixtureFiles),
		"w0.json": strings.NewReplacer(`"duration":220`, `"duration":2008`, `"end":320`, `"end":2108`, "[104,9,99,101,2]", "[104,9,396,398,2]",
			"225,6,15,20,5", "225,6,1500,1505,5").Replace(fixtureW0),
		"w1.json": strings.NewReplacer(`"duration":180`, `"duration":1865`, `"end":300`, `"end":1985`, "[124,9,100,100,2]", "[124,9,400,400,2]",
			"240,6,15,20,5", "240,6,1500,1505,5").Replace(fixtureW1),
	}
}

// TestDiffCycles: fault 28. The wait's cycles quadruple while its share falls from half to a fifth: it grew.
func TestDiffCycles(t *testing.T) {
	t.Parallel()
	before, after := opened(t, nil), opened(t, slower())
	d := Compare(Side{Trace: before}, Side{Trace: after})
	vm := named(d.Stalls, "vmcnt")
	if vm.Became != "grew" || vm.Before != 169 || vm.Delta != vm.After-169 || vm.Delta <= 0 || *vm.SharePctAfter >= *vm.SharePctBefore {
		t.Errorf("%+v, %v to %v %%", vm, *vm.SharePctBefore, *vm.SharePctAfter)
	}
	if d.Stalls[0].Name != "mfma" || d.Stalls[0].Delta != 2970 || d.Stall.Delta != 597+2970 || d.Stall.PerWave.Delta != 3567.0/2 {
		t.Errorf("%+v, %+v", d.Stalls, d.Stall)
	}
	if d.Verdict != VerdictSlower || d.Duration.Before != 180 || d.Duration.After != 1865 || !strings.Contains(d.Basis, "180") {
		t.Errorf("%s: %s", d.Verdict, d.Basis)
	}
	back := Compare(Side{Trace: after}, Side{Trace: before})
	if back.Verdict != VerdictFaster || named(back.Stalls, "vmcnt").Became != "shrank" || back.Stall.Delta != -d.Stall.Delta {
		t.Errorf("%+v", back)
	}
	if l := named(d.Lines, "/w/./kernels/k.py:11"); l.Became != "grew" || l.Delta != 597 {
		t.Errorf("%+v", d.Lines)
	}
	if d.Bounds[0] != BoundMemory || d.Bounds[1] != BoundMatrix {
		t.Errorf("%v", d.Bounds)
	}
	same := Compare(Side{Trace: before}, Side{Trace: before})
	if same.Verdict != VerdictSame || len(same.Stalls)+len(same.Lines)+len(same.Classes) != 0 || !same.Alike || same.Stall.Delta != 0 {
		t.Errorf("%+v", same)
	}
}

// TestDiffAlike: what is compared with what.
func TestDiffAlike(t *testing.T) {
	t.Parallel()
	tr, slow := opened(t, nil), opened(t, slower())
	one := opened(t, map[string]string{"w1.json": "", "filenames.json": strings.Replace(fixtureFiles, `,"1":{"0":["w1.json",120,300]}`, "", 1)})
	none := opened(t, map[string]string{"w0.json": "", "w1.json": ""})
	other, err := Open(t.Context(), fixture(t, nil), Options{Kernel: "other_1", Arch: "gfx942"})
	if err != nil {
		t.Fatal(err)
	}
	gfx950, err := Open(t.Context(), fixture(t, nil), Options{Kernel: "k_0", Arch: "gfx950"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before, after Side
		verdict       string
		alike         bool
		differs       string // the first difference
		unchecked     string
	}{
		"the same":             {Side{Trace: tr, Shape: "8,8", Grid: 4}, Side{Trace: slow, Shape: "8,8", Grid: 4}, VerdictSlower, true, "", ""},
		"nothing known":        {Side{Trace: tr}, Side{Trace: slow}, VerdictSlower, true, "", "shape grid in workgroups"},
		"another shape":        {Side{Trace: tr, Shape: "8,8"}, Side{Trace: slow, Shape: "9,8"}, VerdictUnknown, false, "shape", "grid in workgroups"},
		"another kernel":       {Side{Trace: tr}, Side{Trace: other}, VerdictUnknown, false, "kernel", "shape grid in workgroups"},
		"another symbol":       {Side{Trace: tr, RecipeKernel: "k"}, Side{Trace: other, RecipeKernel: "k"}, VerdictSame, true, "kernel", "shape grid in workgroups"},
		"another architecture": {Side{Trace: tr}, Side{Trace: gfx950}, VerdictUnknown, false, "arch", "shape grid in workgroups"},
		"simulated":            {Side{Trace: tr, Simulated: true}, Side{Trace: tr}, VerdictUnknown, false, "simulated", "shape grid in workgroups"},
		"another grid":         {Side{Trace: tr, Grid: 4}, Side{Trace: slow, Grid: 8}, VerdictUnknown, false, "grid in workgroups", "shape"},
		"another grid, timed":  {Side{Trace: tr, Grid: 4, AvgNS: 500}, Side{Trace: slow, Grid: 8, AvgNS: 250}, VerdictFaster, false, "grid in workgroups", "shape"},
		"fewer waves":          {Side{Trace: tr}, Side{Trace: one}, VerdictSlower, true, "traced waves", "shape grid in workgroups"},
		"no waves":             {Side{Trace: tr}, Side{Trace: none}, VerdictUnknown, true, "wave files that were not read", "shape grid in workgroups"},
		"no waves, timed":      {Side{Trace: tr, AvgNS: 100}, Side{Trace: none, AvgNS: 101}, VerdictSame, true, "wave files that were not read", "shape grid in workgroups"},
	} {
		d := Compare(c.before, c.after)
		first := ""
		if len(d.Differences) > 0 {
			first = d.Differences[0].What
		}
		if d.Verdict != c.verdict || d.Alike != c.alike || first != c.differs || strings.Join(d.Unchecked, " ") != c.unchecked || d.Basis == "" {
			t.Errorf("%s: %s (%s), alike %v, %+v, unchecked %v", name, d.Verdict, d.Basis, d.Alike, d.Differences, d.Unchecked)
		}
	}
}

// TestDiffRecorded: flash attention before and after a fix of its source locations: the same code, twice as many traced waves.
func TestDiffRecorded(t *testing.T) {
	t.Parallel()
	dirs, _ := filepath.Glob(filepath.Join(recorded.Traces(t), "dispatches/flash_attn_func/small/ui_output_*"))
	if len(dirs) != 2 {
		t.Fatalf("%v", dirs)
	}
	var side []Side
	for _, dir := range dirs {
		tr, err := Open(t.Context(), dir, Options{Arch: "gfx950"})
		if err != nil {
			t.Fatal(err)
		}
		side = append(side, Side{Trace: tr})
	}
	d := Compare(side[0], side[1])
	if !d.Alike || d.Waves.Before != 4 || d.Waves.After != 8 || d.Latency.Delta != 342176-208060 || d.Latency.PerWave.Before != 52015 || d.Latency.PerWave.After != 42772 {
		t.Errorf("%+v", d)
	}
	if d.Latency.PerWave.Delta >= 0 || d.Latency.Delta <= 0 || d.Differences[0].What != "traced waves" {
		t.Errorf("sums grow with the waves, a wave became shorter: %+v", d.Latency)
	}
	for _, c := range d.Classes {
		if (c.Became == "grew") != (c.PerWave.Delta > 0) {
			t.Errorf("%+v", c)
		}
	}
	if d.Verdict != VerdictFaster && d.Verdict != VerdictSame {
		t.Errorf("%s: %s", d.Verdict, d.Basis)
	}
}
