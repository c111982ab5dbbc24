package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	vars := map[string]float64{"M": 1000, "k": 2, "bytes": 2}
	tests := []struct {
		text figure
		want float64
		bad  bool
	}{
		{"", 7, false},
		{"12", 12, false},
		{"M", 1000, false},
		{"ceil(M/256)*k", 8, false},
		{"1 + 2*3 - 4/2", 5, false},
		{"(1+2)*3", 9, false},
		{"min(M, 10) + max(1,k)", 12, false},
		{"floor(7/2) % 2", 1, false},
		{"M == 1000", 1, false},
		{"M < 5", 0, false},
		{"k >= 2", 1, false},
		{"M/0", 0, true},
		{"M%0", 0, true},
		{"N", 0, true},
		{"1 +", 0, true},
		{"(1", 0, true},
		{"ceil(1", 0, true},
		{"1 2", 0, true},
		{"M*M*M*M*M*M", 0, true},
		{figure(strings.Repeat("(", 100)), 0, true},
		{figure(strings.Repeat("1+", 600) + "1"), 0, true},
	}
	for _, tt := range tests {
		got, err := tt.text.eval(vars, 7)
		if (err != nil) != tt.bad || !tt.bad && got != tt.want {
			t.Errorf("%.40q: %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestIterationSets(t *testing.T) {
	tests := []struct {
		text string
		in   []int64
		out  []int64
		bad  bool
	}{
		{"8", []int64{8}, []int64{7, 9}, false},
		{"[6, [8-8]]", []int64{6, 8}, []int64{7}, false},
		{"[0, [2-4]]", []int64{2, 3, 4}, []int64{1, 5}, false},
		{"4-2", nil, []int64{2, 3, 4}, false},
		{"a", nil, nil, true},
		{"-1", nil, nil, true},
		{"99999999999999999999", nil, nil, true},
	}
	for _, tt := range tests {
		ranges, err := parseRanges(tt.text)
		if (err != nil) != tt.bad {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		s := &session{cfg: config{ranges: ranges}}
		for _, n := range tt.in {
			if !s.inRange(n) {
				t.Errorf("%q lacks %d", tt.text, n)
			}
		}
		for _, n := range tt.out {
			if !tt.bad && s.inRange(n) {
				t.Errorf("%q has %d", tt.text, n)
			}
		}
	}
}

func TestFormattedNames(t *testing.T) {
	s := &session{cfg: config{truncate: true}}
	for name, want := range map[string]string{
		"softmax_kernel_0": "softmax_kernel_0",
		"void at::native::vectorized_elementwise_kernel<4, X<int> >(int, char*)": "vectorized_elementwise_kernel",
		"void (anonymous namespace)::softmax_warp<float>(int)":                   "softmax_warp",
		"_ZN5aiter3fmhaE": "_ZN5aiter3fmhaE",
	} {
		if got := s.formatted(name); got != want {
			t.Errorf("%q gives %q", name, got)
		}
	}
}

func FuzzFigure(f *testing.F) {
	for _, s := range []string{"M", "ceil(M/256)", "1+", "((((", "min(1,2)", "1e9", "M==M<M"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := figure(text).eval(map[string]float64{"M": 3}, 1)
		if err == nil && (v != v || v > maxFigure || v < -maxFigure) {
			t.Errorf("%q gives %v", text, v)
		}
	})
}

// FuzzWorkload reads a hostile script: it must be refused or planned within bounds, never crash.
func FuzzWorkload(f *testing.F) {
	f.Add(`# flyprof-sim: {"launches":[{"kernel":"k_0","grid":["M"],"calls":3}]}`, "1,2,bf16")
	f.Add("# flyprof-sim: {\"shapes\":{\"env\":\"S\",\"axes\":[\"M\"]},\n#  \"launches\":[{\"kernel\":\"k{M}\",\"grid\":[\"M*1e99\"]}]}", "7;8")
	f.Add("@flyc.kernel(name=\"x{n}\")\ndef f(a):\n  pass\n", "")
	f.Add(`# flyprof-sim: {"flags":[{"names":[],"axis":"a","required":true}]}`, "")
	f.Fuzz(func(t *testing.T, text, shapes string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "test_x.py")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := readScript(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.workload()
		if err != nil {
			return
		}
		env := newEnvironment([]string{"S=" + shapes})
		p := &process{env: env, set: Settings{Arch: "gfx950", Seed: 1}}
		r := &run{process: p, script: s, made: map[string]*kernelObject{}}
		list, err := w.shapes(strings.Fields(shapes), env, len(shapes)%2 == 0)
		if err != nil {
			return
		}
		groups, err := r.plan(w, list, "")
		for _, g := range groups {
			for _, l := range g {
				if err == nil && (l.object == nil || l.calls > maxCalls || l.object.workgroups() < 1 || l.object.workgroups() > maxWorkgroups) {
					t.Errorf("planned %+v", l)
				}
			}
		}
	})
}

func FuzzRanges(f *testing.F) {
	for _, s := range []string{"8", "[6, [8-8]]", "1-", "--", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := parseRanges(text)
		for _, r := range ranges {
			if err == nil && (r.from < 0 || r.to < 0) {
				t.Errorf("%q gives %v", text, ranges)
			}
		}
	})
}

func FuzzJobValue(f *testing.F) {
	for _, s := range []string{"1", `"x"`, "true", "null", "[1,\"a\"]", "{}", "1e400"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, set, err := jobValue(raw)
		if err == nil && set {
			for _, o := range options {
				_, _ = o.render(v)
			}
		}
	})
}

func FuzzOccupancy(f *testing.F) {
	f.Add([]byte(`{"0":[[1,0,0,0,1,1]],"dispatches":{"1":"k"}}`))
	f.Add([]byte(`{"0":[[]],"dispatches":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) { _ = busiestKernel(data) })
}
