package rocprof

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "jobs", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (go test -run %s -update):\n%s", path, t.Name(), diff)
	}
}

// abs is an absolute directory of this system, and sys what JSON makes of it.
func abs(path string) string {
	if runtime.GOOS == "windows" {
		return `C:` + filepath.FromSlash(path)
	}
	return path
}

func attJob() ATTJob {
	return ATTJob{
		Kernel: "softmax_kernel_0", Iter: "8", OutputDir: abs("/runs/r1/att/big"), OutputFile: "out_%pid%", TargetCU: 1, SEMask: 0x11111111,
		SIMDSelect: 0xf, BufferBytes: 96 << 20, GPUIndex: 0, KernelTrace: true,
	}
}

func TestATTJobGolden(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the golden files have Unix paths")
	}
	full := attJob()
	full.Kernel, full.Iter, full.GPUIndex, full.TargetCU, full.SEMask = `void k<int, (E)1>(int*, char const [2], std::pair<"a\b", &c>)`, "[6, [8-9]]", 3, 0, 0xffffffff
	full.LibraryPath, full.KernelTrace = []string{"/opt/rocm/lib", "/opt/my decoder"}, false
	for name, job := range map[string]ATTJob{"att.json": attJob(), "att_full.json": full} {
		text, err := job.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, text)
	}
}

func TestPMCJobGolden(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the golden files have Unix paths")
	}
	job := PMCJob{Kernel: "softmax_kernel_0", Iter: "8", Counters: []string{"SQ_WAVES", "TCC_HIT[3]"}, OutputDir: "/runs/r1/pmc/1", OutputFile: "out"}
	every := job
	every.Iter = ""
	for name, j := range map[string]PMCJob{"pmc.json": job, "pmc_every_launch.json": every} {
		text, err := j.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, text)
	}
}

// TestJobKeys holds a job against what rocprofv3.py does with one: keys that it does not know are ignored without a word, an
// integer 0 counts as unset, a format that is no list is taken apart into letters, and several jobs lose the traces.
func TestJobKeys(t *testing.T) {
	known := []string{
		"advanced_thread_trace", "att_target_cu", "att_shader_engine_mask", "att_simd_select", "att_buffer_size", "att_gpu_index", "att_library_path",
		"kernel_include_regex", "kernel_iteration_range", "output_file", "output_directory", "output_format", "truncate_kernels", "kernel_trace", "pmc",
	}
	att, err := attJob().JSON()
	if err != nil {
		t.Fatal(err)
	}
	pmc, err := PMCJob{Kernel: "k", Iter: "1", Counters: []string{"SQ_WAVES"}, OutputDir: abs("/o"), OutputFile: "out"}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"att": att, "pmc": pmc} {
		var file map[string][]map[string]any
		if err := json.Unmarshal(text, &file); err != nil || len(file) != 1 || len(file["jobs"]) != 1 {
			t.Fatalf("%s: error %v, %d top-level keys, %d jobs", name, err, len(file), len(file["jobs"]))
		}
		job := file["jobs"][0]
		for key, value := range job {
			if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+key+" ") {
				t.Errorf("%s: rocprofv3 has no key %s", name, key)
			}
			if _, number := value.(float64); number {
				t.Errorf("%s: %s is a number; 0 would count as unset", name, key)
			}
			if text, ok := value.(string); ok && strings.HasPrefix(key, "att_") && key != "att_gpu_index" && !strings.HasPrefix(text, "0x") {
				t.Errorf("%s: %s is %q, not 0x...", name, key, text)
			}
		}
		if _, list := job["output_format"].([]any); !list {
			t.Errorf("%s: output_format is %v, no list", name, job["output_format"])
		}
		if job["truncate_kernels"] != false {
			t.Errorf("%s: truncate_kernels is %v; the regex would meet a name without its parameters", name, job["truncate_kernels"])
		}
		if _, both := job["pmc"]; both && job["advanced_thread_trace"] != nil {
			t.Errorf("%s: counters and thread trace in one job", name)
		}
	}
}

func TestATTJobErrors(t *testing.T) {
	for _, c := range []struct {
		name, field string
		change      func(*ATTJob)
	}{
		{"no kernel", "kernel", func(j *ATTJob) { j.Kernel = "" }},
		{"no launch", "iter_range", func(j *ATTJob) { j.Iter = "" }},
		{"launch 0", "iter_range", func(j *ATTJob) { j.Iter = "0" }},
		{"relative directory", "output directory", func(j *ATTJob) { j.OutputDir = "runs/r1" }},
		{"no directory", "output directory", func(j *ATTJob) { j.OutputDir = "" }},
		{"key in the directory", "output directory", func(j *ATTJob) { j.OutputDir = abs("/runs/%pid%") }},
		{"braces in the directory", "output directory", func(j *ATTJob) { j.OutputDir = abs("/runs/{x}") }},
		{"dollar in the directory", "output directory", func(j *ATTJob) { j.OutputDir = abs("/runs/$HOME") }},
		{"newline in the directory", "output directory", func(j *ATTJob) { j.OutputDir = abs("/runs/a\nb") }},
		{"long directory", "output directory", func(j *ATTJob) { j.OutputDir = abs("/" + strings.Repeat("x", 5000)) }},
		{"folder in the name", "output file", func(j *ATTJob) { j.OutputFile = "a/b" }},
		{"other key in the name", "output file", func(j *ATTJob) { j.OutputFile = "out_%env{HOME}%" }},
		{"hidden name", "output file", func(j *ATTJob) { j.OutputFile = "..out" }},
		{"no name", "output file", func(j *ATTJob) { j.OutputFile = "" }},
		{"CU 16", "att_target_cu", func(j *ATTJob) { j.TargetCU = 16 }},
		{"CU -1", "att_target_cu", func(j *ATTJob) { j.TargetCU = -1 }},
		{"no engine", "att_shader_engine_mask", func(j *ATTJob) { j.SEMask = 0 }},
		{"SIMD 16", "att_simd_select", func(j *ATTJob) { j.SIMDSelect = 16 }},
		{"small buffer", "att_buffer_size", func(j *ATTJob) { j.BufferBytes = 1<<20 - 1 }},
		{"large buffer", "att_buffer_size", func(j *ATTJob) { j.BufferBytes = 1<<30 + 1 }},
		{"GPU -1", "gpu", func(j *ATTJob) { j.GPUIndex = -1 }},
		{"relative library path", "att_library_path", func(j *ATTJob) { j.LibraryPath = []string{"lib"} }},
		{"many library paths", "att_library_path", func(j *ATTJob) { j.LibraryPath = make([]string, 33) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := attJob()
			c.change(&job)
			text, err := job.JSON()
			if e := envelope.As(err); err == nil || e.Code != envelope.BadArgs || e.Evidence.Field != c.field || e.Evidence.Allowed == "" {
				t.Errorf("error %v, want BAD_ARGS for %s; job %s", err, c.field, text)
			}
		})
	}
}

func TestPMCJobErrors(t *testing.T) {
	good := PMCJob{Kernel: "k", Counters: []string{"SQ_WAVES"}, OutputDir: abs("/o"), OutputFile: "out"}
	for _, c := range []struct {
		name   string
		change func(*PMCJob)
	}{
		{"no counters", func(j *PMCJob) { j.Counters = nil }},
		{"many counters", func(j *PMCJob) { j.Counters = make([]string, 65) }},
		{"a counter with a space", func(j *PMCJob) { j.Counters = []string{"SQ WAVES"} }},
		{"a counter that is an option", func(j *PMCJob) { j.Counters = []string{"--att"} }},
		{"five counters of TCC", func(j *PMCJob) {
			j.Counters = []string{"TCC_HIT_sum", "TCC_MISS_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_WRREQ_sum", "TCC_REQ_sum"}
		}},
		{"launch 0", func(j *PMCJob) { j.Iter = "0" }},
		{"relative directory", func(j *PMCJob) { j.OutputDir = "o" }},
		{"control character in the kernel", func(j *PMCJob) { j.Kernel = "a\tb" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := good
			c.change(&job)
			if text, err := job.JSON(); envelope.CodeOf(err) != envelope.BadArgs {
				t.Errorf("error %v, want BAD_ARGS; job %s", err, text)
			}
		})
	}
	if _, err := good.JSON(); err != nil {
		t.Errorf("the job that the others come from: %v", err)
	}
}

// kernelNames are hard names for a regex: each must match itself and none of the others.
var kernelNames = []string{
	"softmax_kernel_0", "topk_gating_softmax_kernel_0", "softmax_kernel_01", "a-b", "gemm_kernel(int)", "gemm_kernel", "x*", "xx", `a"b`, `a\b`, "k<int>", "k<int, 4>(float*)", "^k$", "k|l",
	"void at::native::(anonymous namespace)::f<4, std::array<char*, 2ul> >(int, {lambda(float)#1})", "noyau_é_核", "a.b", "a+b?", "[k]", "{k}", "k/l", "k'l", "operator&&",
}

func TestKernelRegex(t *testing.T) {
	for _, name := range kernelNames {
		pattern, err := KernelRegex(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, other := range kernelNames {
			if got := re.MatchString(other); got != (other == name) {
				t.Errorf("the pattern of %q on %q: %v", name, other, got)
			}
		}
		checkECMAScript(t, name, pattern)
	}
}

// checkECMAScript holds a pattern to std::regex's grammar: anchored, only a syntax character may follow a backslash (an identity
// escape of any other is an error there), and without the backslashes it is the name.
func checkECMAScript(t *testing.T, name, pattern string) {
	t.Helper()
	const syntax = `^$\.*+?()[]{}|`
	body, ok := strings.CutPrefix(pattern, "^")
	body, tail := strings.CutSuffix(body, "$")
	if !ok || !tail {
		t.Errorf("%q: %q is not anchored", name, pattern)
	}
	var plain strings.Builder
	escaped := false
	for _, r := range body {
		special := strings.ContainsRune(syntax, r)
		switch {
		case escaped && !special:
			t.Errorf("%q: \\%c is no escape of ECMAScript", name, r)
		case !escaped && r == '\\':
			escaped = true
			continue
		case !escaped && special:
			t.Errorf("%q: %c stands bare in %q", name, r, pattern)
		}
		escaped = false
		plain.WriteRune(r)
	}
	if escaped || plain.String() != name {
		t.Errorf("%q: the pattern %q is of %q", name, pattern, plain.String())
	}
}

func TestKernelRegexRefuses(t *testing.T) {
	for _, name := range []string{"", "a\x00b", "a\nb", "\x1b[31m", "a\u0085b", "a\xffb", strings.Repeat("x", maxKernelName+1)} {
		if got, err := KernelRegex(name); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%q: %q, error %v", clip(name), clip(got), err)
		}
	}
	if _, err := KernelRegex(strings.Repeat("x", maxKernelName)); err != nil {
		t.Error(err)
	}
}

func TestDiscoverArgs(t *testing.T) {
	dir := abs("/runs/a b/discover")
	got, err := DiscoverArgs(dir, "discover_%pid%")
	if diff := cmp.Diff([]string{"--kernel-trace", "--stats", "-f", "csv", "-d", dir, "-o", "discover_%pid%"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, bad := range [][2]string{{"relative", "d"}, {abs("/r/%h"), "d"}, {abs("/r/{pid}"), "d"}, {abs("/r/$ENV{X}"), "d"}, {dir, ""}, {dir, "a/b"}, {dir, `a\b`}, {dir, "%argv%"}, {dir, "%"}, {dir, "a\x07"}, {dir, strings.Repeat("n", 201)}} {
		if got, err := DiscoverArgs(bad[0], bad[1]); envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%q: %q, error %v", bad, got, err)
		}
	}
}
