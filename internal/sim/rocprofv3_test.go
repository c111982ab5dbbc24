package sim

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readCSV reads a CSV and gives its rows by header name.
func readCSV(t *testing.T, path string) (header []string, rows []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, c := range cells {
			row[all[0][i]] = c
		}
		rows = append(rows, row)
	}
	return all[0], rows
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listing gives the names below a directory, sorted.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

func uiDirs(t *testing.T, dir string) []string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "ui_output_agent_*"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVersionHasNineLines(t *testing.T) {
	o := start(t, t.TempDir(), nil, append(Tool(self(t), "rocprofv3"), "--version")...)
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	want := []string{"version", "git_revision", "library_arch", "system_name", "system_processor", "system_version", "compiler_id", "compiler_version", "rocm_version"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %q", len(lines), o.stdout)
	}
	for i, line := range lines {
		if key, _, _ := strings.Cut(strings.TrimSpace(line), ":"); key != want[i] {
			t.Errorf("line %d is %q, want %s", i, line, want[i])
		}
	}
	if !strings.Contains(o.stdout, "version: 1.1.0") || !strings.Contains(o.stdout, "rocm_version: 7.2.0") || o.code != 0 {
		t.Errorf("code %d, %s", o.code, o.stdout)
	}
}

func TestHelpNamesTheOptions(t *testing.T) {
	o := start(t, t.TempDir(), nil, append(Tool(self(t), "rocprofv3"), "--help")...)
	for _, want := range []string{"--att ", "--att-library-path", "--att-target-cu", "--att-simd-select", "--att-shader-engine-mask", "--att-buffer-size", "--att-gpu-index", "--att-serialize-all", "--att-consecutive-kernels", "--pmc", "--version"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("--help lacks %s", want)
		}
	}
	old := start(t, t.TempDir(), []string{"FLYPROF_FAULT=old_rocprof"}, append(Tool(self(t), "rocprofv3"), "--help")...)
	if strings.Contains(old.stdout, "--att") {
		t.Error("6.4 had no --att")
	}
}

// TestProfilerComplaints: what the script refuses, with its text and exit code.
func TestProfilerComplaints(t *testing.T) {
	worktree := demo(t)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	app := append([]string{"--"}, append(Tool(self(t), "python"), softmaxTest)...)
	job := func(fields string) []string {
		return append([]string{"-i", write("job.json", `{"jobs":[{"output_directory":"`+filepath.ToSlash(t.TempDir())+`","output_format":["csv"],`+fields+`}]}`)}, app...)
	}
	tests := []struct {
		name   string
		args   []string
		code   int
		signal string
		text   string
	}{
		{"unknown option", append([]string{"--kernel-include", "x"}, app...), 2, "", "rocprofv3: error: unrecognized arguments: --kernel-include"},
		{"no application", []string{"--kernel-trace", "-f", "csv"}, 1, "", "[rocprofv3] Fatal error: No application provided"},
		{"no application after --", []string{"--kernel-trace", "--"}, 1, "", "No application provided"},
		{"application not found", []string{"-f", "csv", "--", "/no/such/program"}, 1, "", "FileNotFoundError"},
		{"yaml without pyyaml", append([]string{"-i", write("job.yaml", "jobs:\n")}, app...), 1, "", "YAML package is not installed"},
		{"no jobs", append([]string{"-i", write("job.json", `{"pmc":["SQ_WAVES"]}`)}, app...), 1, "", "KeyError: 'jobs'"},
		{"broken json", append([]string{"-i", write("job.json", `{"jobs":[`)}, app...), 1, "", "JSONDecodeError"},
		{"missing file", append([]string{"-i", "/no/such/job.json"}, app...), 1, "", "FileNotFoundError"},
		{"format as string", job(`"kernel_trace":true,"output_format":"csv"`), -1, "aborted", "Unsupported output format type: C"},
		{"hex without 0x", job(`"advanced_thread_trace":true,"att_shader_engine_mask":"ff"`), 1, "", "ValueError: invalid literal for int()"},
		{"range of numbers", job(`"kernel_iteration_range":[1,2]`), 1, "", "TypeError: sequence item 0"},
		{"range with letters", job(`"advanced_thread_trace":true,"kernel_iteration_range":"x"`), -1, "aborted", "expected integer for x"},
		{"range half", job(`"advanced_thread_trace":true,"kernel_iteration_range":"2-"`), -1, "aborted", "bad range format for '2-'"},
		{"conflict", append([]string{"--output-file", "b"}, job(`"output_file":"a"`)...), 1, "", "Option 'output_file' has conflicting values"},
		{"CU out of range", job(`"advanced_thread_trace":true,"att_target_cu":16`), -1, "aborted", "failed with error code 19"},
		{"buffer too small", job(`"advanced_thread_trace":true,"att_buffer_size":1000`), -1, "aborted", "failed with error code 19"},
		{"bad gpu index", job(`"advanced_thread_trace":true,"att_gpu_index":"x"`), -1, "aborted", "Invalid GPU Id string"},
		{"unknown gpu index", job(`"advanced_thread_trace":true,"att_gpu_index":"99"`), 0, "", "Invalid GPU Device Index: 99"},
		{"no decoder in the path", job(`"advanced_thread_trace":true,"att_library_path":["` + filepath.ToSlash(t.TempDir()) + `"]`), 1, "", "rocprof-trace-decoder library path not found in ['"},
		{"bad regex", job(`"kernel_include_regex":"("`), -1, "aborted", "std::regex_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.signal != "" {
				skipWithoutSignals(t)
			}
			o := start(t, worktree, []string{pythonPath(worktree)}, append(Tool(self(t), "rocprofv3"), tt.args...)...)
			if o.code != tt.code || !strings.HasPrefix(o.signal, tt.signal) || !strings.Contains(o.text(), tt.text) {
				t.Errorf("code %d signal %q, want %d %q with %q in:\n%s", o.code, o.signal, tt.code, tt.signal, tt.text, o.text())
			}
		})
	}
}

func TestDiscovery(t *testing.T) {
	worktree := demo(t)
	dir, o := discover(t, worktree, nil, "tests/kernels/test_rmsnorm.py")
	if o.code != 0 {
		t.Fatalf("%+v", o)
	}
	header, rows := readCSV(t, filepath.Join(dir, "discover_kernel_trace.csv"))
	if len(header) != 22 {
		t.Errorf("%d columns", len(header))
	}
	ids := map[string]string{} // kernel id -> grid of rmsnorm
	calls := map[string]int{}
	last := 0
	for i, r := range rows {
		if got := number(t, r["Dispatch_Id"]); got != i+1 {
			t.Fatalf("row %d has dispatch %d: ids count all dispatches of the process", i, got)
		}
		if begin := number(t, r["Start_Timestamp"]); begin < last || number(t, r["End_Timestamp"]) <= begin {
			t.Fatalf("row %d: times go back", i)
		}
		last = number(t, r["End_Timestamp"])
		calls[r["Kernel_Name"]]++
		if r["Kernel_Name"] == "rmsnorm_kernel_0" {
			if grid, ok := ids[r["Kernel_Id"]]; ok && grid != r["Grid_Size_X"] {
				t.Errorf("kernel id %s has two grids", r["Kernel_Id"])
			}
			ids[r["Kernel_Id"]] = r["Grid_Size_X"]
		}
	}
	grids := []string{}
	for _, g := range ids {
		grids = append(grids, g)
	}
	slices.Sort(grids)
	// 1024, 4096 and 2048 rows, a workgroup of 256 each, in work-items.
	if want := []string{"1048576", "262144", "524288"}; !slices.Equal(grids, want) {
		t.Errorf("grids by kernel id %v, want %v", grids, want)
	}
	if len(calls) < 4 {
		t.Errorf("torch's kernels are missing: %v", calls)
	}
	_, stats := readCSV(t, filepath.Join(dir, "discover_kernel_stats.csv"))
	total := 0
	for i, r := range stats {
		if number(t, r["Calls"]) != calls[r["Name"]] {
			t.Errorf("%s: %s calls, trace has %d", r["Name"], r["Calls"], calls[r["Name"]])
		}
		total += number(t, r["TotalDurationNs"])
		if i > 0 && number(t, r["TotalDurationNs"]) > number(t, stats[i-1]["TotalDurationNs"]) {
			t.Error("stats are not sorted by total time")
		}
	}
	_, domain := readCSV(t, filepath.Join(dir, "discover_domain_stats.csv"))
	if number(t, domain[0]["TotalDurationNs"]) != total || number(t, domain[0]["Calls"]) != len(rows) {
		t.Errorf("domain %v, want %d calls %d ns", domain[0], len(rows), total)
	}
	agents, info := readCSV(t, filepath.Join(dir, "discover_agent_info.csv"))
	if len(agents) != 53 || len(info) != 10 {
		t.Errorf("%d columns, %d agents", len(agents), len(info))
	}
	if gpu := info[2]; gpu["Name"] != "gfx950" || gpu["Cu_Count"] != "256" || gpu["Num_Xcc"] != "8" || gpu["Cu_Per_Simd_Array"] != "9" || gpu["Gfx_Target_Version"] != "90500" {
		t.Errorf("GPU row %v", gpu)
	}
	if !slices.Contains(listing(t, dir), "SIMULATED") || !strings.Contains(o.stderr, "SIMULATED GPU (gfx950): figures are invented") {
		t.Error("not marked as simulated")
	}
}

// TestOutputNames: no -f gives a database and no CSV; no -o gives <hostname>/<pid>_.
func TestOutputNames(t *testing.T) {
	worktree := demo(t)
	run := func(args ...string) []string {
		dir := t.TempDir()
		argv := append(append(Tool(self(t), "rocprofv3"), "--kernel-trace", "--stats", "-d", dir), args...)
		start(t, worktree, []string{pythonPath(worktree)}, append(append(append(argv, "--"), Tool(self(t), "python")...), softmaxTest)...)
		return listing(t, dir)
	}
	if got := run("-o", "x"); !slices.Equal(got, []string{"SIMULATED", "x_results.db"}) {
		t.Errorf("without -f: %v", got)
	}
	host, _ := os.Hostname()
	got := run("-f", "csv")
	if !slices.ContainsFunc(got, func(s string) bool {
		return strings.HasPrefix(s, host+"/") && strings.HasSuffix(s, "_kernel_trace.csv")
	}) {
		t.Errorf("without -o: %v", got)
	}
	if got := run("-f", "csv", "-o", "p_%pid%"); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "p_") && !strings.Contains(s, "%") }) {
		t.Errorf("%%pid%%: %v", got)
	}
}

func TestShapes(t *testing.T) {
	worktree := demo(t)
	tests := []struct {
		name string
		env  []string
		app  []string
		code int
		text string
		grid string // Grid_Size_X x Y of the test's kernel
	}{
		{"environment", []string{"ROCDSL_SOFTMAX_SHAPES=512,1024,f32"}, []string{softmaxTest}, 0, "M=512 N=1024", "131072x1"},
		{"bad number", []string{"ROCDSL_SOFTMAX_SHAPES=1e3,64,f32"}, []string{softmaxTest}, 1, "ValueError: invalid literal for int()", ""},
		{"too few values", []string{"ROCDSL_SOFTMAX_SHAPES=64"}, []string{softmaxTest}, 1, "ValueError: not enough values", ""},
		{"zero", []string{"ROCDSL_SOFTMAX_SHAPES=0,64,f32"}, []string{softmaxTest}, 1, "invalid grid 0", ""},
		{"flags", nil, []string{"tests/kernels/test_gemm.py", "-M", "1000", "-N=512", "-K", "256"}, 0, "M=1000", "2048x4"},
		{"unknown flag", nil, []string{"tests/kernels/test_gemm.py", "--wrong"}, 2, "error: unrecognized arguments: --wrong", ""},
		{"pytest", nil, []string{"-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/kernels/test_conv3d_implicit.py::test_conv3d_stride"}, 0, "1 passed", "131072x1"},
		{"pytest file", nil, []string{"-m", "pytest", "tests/kernels/test_conv3d_implicit.py"}, 0, "2 passed", "262144x1"},
		{"pytest unknown node", nil, []string{"-m", "pytest", "tests/kernels/test_conv3d_implicit.py::test_no"}, 4, "ERROR: not found", ""},
		{"pytest no file", nil, []string{"-m", "pytest", "tests/kernels/test_no.py"}, 4, "file or directory not found", ""},
		{"pytest none chosen", nil, []string{"-m", "pytest", "-k", "zzz", "tests/kernels/test_conv3d_implicit.py"}, 0, "2 deselected", ""},
		{"pytest-only file as script", nil, []string{"tests/kernels/test_conv3d_implicit.py"}, 0, "", ""},
		{"helper", nil, []string{"tests/kernels/test_ref.py"}, 0, "", ""},
		{"several GPUs needed", []string{"HIP_VISIBLE_DEVICES=3"}, []string{"tests/kernels/test_allreduce.py"}, 1, "Skipped: needs >=2 GPUs", ""},
		{"no GPU in the mask", []string{"HIP_VISIBLE_DEVICES="}, []string{softmaxTest}, 1, "No HIP GPUs are available", ""},
		{"compile only", []string{"COMPILE_ONLY=1"}, []string{softmaxTest}, 0, "", ""},
		{"other architecture", []string{"ARCH=gfx90a"}, []string{softmaxTest}, 1, "hipErrorNoBinaryForGpu", ""},
	}
	symbols := map[string]string{softmaxTest: "softmax_kernel_0", "tests/kernels/test_gemm.py": "kernel_gemm_0"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := discover(t, worktree, tt.env, tt.app...)
			if o.code != tt.code || !strings.Contains(o.text(), tt.text) {
				t.Fatalf("code %d, want %d with %q in:\n%s", o.code, tt.code, tt.text, o.text())
			}
			symbol := symbols[tt.app[0]]
			if symbol == "" {
				symbol = "conv3d_implicit_kernel_0"
			}
			grid := ""
			if path := filepath.Join(dir, "discover_kernel_trace.csv"); fileExists(path) {
				_, rows := readCSV(t, path)
				for _, r := range rows {
					if r["Kernel_Name"] == symbol && grid == "" {
						grid = r["Grid_Size_X"] + "x" + r["Grid_Size_Y"]
					}
				}
			}
			if grid != tt.grid {
				t.Errorf("grid %q, want %q", grid, tt.grid)
			}
		})
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestDemoKernelsLaunch: every entry of the demo checkout launches its symbol, in a file that defines it.
func TestDemoKernelsLaunch(t *testing.T) {
	worktree := demo(t)
	for _, k := range DemoKernels() {
		t.Run(k.Name, func(t *testing.T) {
			app := []string{k.Test}
			if s, err := readScript(filepath.Join(worktree, k.Test)); err != nil || !s.hasMain {
				app = []string{"-m", "pytest", k.Test}
			}
			dir, o := discover(t, worktree, nil, app...)
			if o.code != 0 {
				t.Fatalf("%+v", o)
			}
			_, rows := readCSV(t, filepath.Join(dir, "discover_kernel_stats.csv"))
			if !slices.ContainsFunc(rows, func(r map[string]string) bool { return r["Name"] == k.Symbol }) {
				t.Errorf("%s is not among %v", k.Symbol, rows)
			}
		})
	}
}

// TestGuessedWorkload: a script without a flyprof-sim block launches the kernels of the modules that it imports.
func TestGuessedWorkload(t *testing.T) {
	worktree := demo(t)
	script := filepath.Join(worktree, "tests", "kernels", "test_plain.py")
	text := "from kernels.norm.rmsnorm_kernel import build_rmsnorm_module\nimport flydsl.compiler as flyc\n\n@flyc.kernel(name=f\"quant_n{n}\")\ndef quant(x):\n    pass\n\nif __name__ == \"__main__\":\n    pass\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, o := discover(t, worktree, nil, "tests/kernels/test_plain.py")
	_, rows := readCSV(t, filepath.Join(dir, "discover_kernel_stats.csv"))
	names := map[string]bool{}
	for _, r := range rows {
		names[r["Name"]] = true
	}
	if o.code != 0 || !names["rmsnorm_kernel_0"] || !names["quant_n1"] {
		t.Errorf("code %d, %v", o.code, names)
	}
}

func TestCounters(t *testing.T) {
	worktree := demo(t)
	dir := t.TempDir()
	job := func(fields string) outcome {
		file := filepath.Join(dir, "pmc.json")
		text := `{"jobs":[{"output_directory":"` + filepath.ToSlash(dir) + `","output_file":"out","output_format":["csv"],` + fields + `}]}`
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return start(t, worktree, []string{pythonPath(worktree)}, append(append(append(Tool(self(t), "rocprofv3"), "-i", file, "--"), Tool(self(t), "python")...), softmaxTest)...)
	}
	o := job(`"pmc":["SQ_WAVES","GRBM_GUI_ACTIVE","NO_SUCH"],"kernel_include_regex":"^softmax_kernel_0$","kernel_iteration_range":"3"`)
	if o.code != 0 || !strings.Contains(o.stderr, "Unable to find all counters for agent") || !strings.Contains(o.stderr, "Missing: [NO_SUCH]") {
		t.Errorf("%+v", o)
	}
	header, rows := readCSV(t, filepath.Join(dir, "pass_1", "out_counter_collection.csv"))
	if len(header) != 19 || len(rows) != 2 {
		t.Fatalf("%d columns, %d rows", len(header), len(rows))
	}
	// 4096 workgroups of 256 are 16384 waves of 64.
	if rows[0]["Counter_Name"] != "SQ_WAVES" || rows[0]["Counter_Value"] != "16384.000000" {
		t.Errorf("%v", rows[0])
	}
	if o := job(`"pmc":["NO_SUCH"]`); !strings.Contains(o.stderr, "No counter information found for agent 2") {
		t.Errorf("%+v", o)
	}
	many := `"TCC_HIT_sum","TCC_MISS_sum","TCC_REQ_sum","TCC_READ_sum","TCC_WRITE_sum"`
	if o := job(`"pmc":[` + many + `]`); !strings.Contains(o.stderr, "error code 38: Request exceeds the capabilities of the hardware to collect") || o.code == 0 {
		t.Errorf("%+v", o)
	}
}

// TestSeveralJobs: each runs the application again, into pass_1, pass_2 (PMC) as 7.0 to 7.2 do.
func TestSeveralJobs(t *testing.T) {
	worktree := demo(t)
	dir := filepath.ToSlash(t.TempDir())
	file := filepath.Join(dir, "two.json")
	text := `{"jobs":[{"pmc":["SQ_WAVES"],"output_directory":"` + dir + `","output_file":"a","output_format":["csv"]},{"pmc":["GRBM_COUNT"],"output_directory":"` + dir + `","output_file":"b","output_format":["csv"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o := start(t, worktree, []string{pythonPath(worktree)}, append(append(append(Tool(self(t), "rocprofv3"), "-i", file, "--"), Tool(self(t), "python")...), softmaxTest)...)
	got := listing(t, dir)
	if o.code != 0 || !slices.Contains(got, "pass_1/a_counter_collection.csv") || !slices.Contains(got, "pass_2/b_counter_collection.csv") {
		t.Errorf("code %d, %v", o.code, got)
	}
}
