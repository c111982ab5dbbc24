package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// TestFaultsLook: each fault leaves what the real failure leaves: exit, text, files. "hang" faults stand in signal tests.
func TestFaultsLook(t *testing.T) {
	worktree := demo(t)
	kept := func(t *testing.T, out string) { // a good trace all the same
		dirs := uiDirs(t, out)
		if len(dirs) != 1 {
			t.Fatalf("directories %v", dirs)
		}
		checkTrace(t, dirs[0], "softmax_kernel_0")
	}
	nothing := func(t *testing.T, out string) {
		if dirs := uiDirs(t, out); len(dirs) != 0 {
			t.Errorf("directories %v", dirs)
		}
	}
	nullCode := func(t *testing.T, out string) {
		dirs := uiDirs(t, out)
		if len(dirs) != 1 {
			t.Fatalf("directories %v", dirs)
		}
		var code readCode
		loadJSON(t, filepath.Join(dirs[0], "code.json"), &code)
		if code.Code != nil {
			t.Error("code is not null")
		}
	}
	busyElsewhere := func(t *testing.T, out string) {
		nullCode(t, out)
		rows, _ := occupancy(t, uiDirs(t, out)[0])
		if len(rows) != 4 {
			t.Errorf("%d engines", len(rows))
		}
		for se, list := range rows {
			for _, r := range list {
				if r[1] == 1 {
					t.Fatalf("SE %d: CU 1 had work", se)
				}
			}
		}
	}
	headerOnly := func(t *testing.T, out string) {
		nullCode(t, out)
		att, _ := filepath.Glob(filepath.Join(out, "*.att"))
		for _, f := range att {
			if info, err := os.Stat(f); err != nil || info.Size() != 424 {
				t.Errorf("%s: %v", f, info.Size())
			}
		}
		if len(att) != 4 {
			t.Errorf("%d .att files", len(att))
		}
	}
	rawOnly := func(t *testing.T, out string) {
		nothing(t, out)
		att, _ := filepath.Glob(filepath.Join(out, "*.att"))
		if len(att) != 4 {
			t.Errorf("%d .att files", len(att))
		}
	}
	torn := func(t *testing.T, out string) {
		data, err := os.ReadFile(filepath.Join(uiDirs(t, out)[0], "code.json"))
		if err != nil || json.Valid(data) || len(data) < 1000 {
			t.Errorf("code.json of %d bytes is valid: %v", len(data), err)
		}
	}
	other := func(t *testing.T, out string) { checkTrace(t, uiDirs(t, out)[0], "other_softmax_kernel_0") }
	cut := func(t *testing.T, out string) {
		checkTrace(t, uiDirs(t, out)[0], "softmax_kernel_0")
		rows, _ := occupancy(t, uiDirs(t, out)[0])
		open := 0
		for _, list := range rows {
			for _, r := range list {
				open += int(r[4])*2 - 1
			}
		}
		if open <= 0 {
			t.Errorf("%d waves without an end", open)
		}
	}
	tests := []struct {
		fault  string
		code   int
		signal string
		text   string
		files  func(*testing.T, string)
	}{
		{"empty_att", 0, "", "", busyElsewhere},
		{"iteration_out_of_range", 0, "", "", nothing},
		{"no_kernel", 0, "", "", nothing},
		{"compile_fail", 1, "", "----------------------------------------\nDSLCompileError: ", nothing},
		{"slow=0.1", 0, "", "", kept},
		{"decoder_missing", 1, "", "[rocprofv3] Fatal error: rocprof-trace-decoder library path not found in ['', '/opt/rocm/lib']", nothing},
		{"decoder_unloadable", -1, "aborted", "Error loading decoder: 37", rawOnly},
		{"app_crash", -1, "segmentation fault", "Segmentation fault", nothing},
		{"assert_after_kernel", 1, "", "AssertionError", kept},
		{"skipped", 0, "", "Skipped: ", nothing},
		{"truncated", 0, "", "Thread trace buffer full!", cut},
		{"data_lost", 0, "", "Data Lost: The profiler dropped part of the trace due to bandwidth limitations.", kept},
		{"oom", 1, "", "torch.OutOfMemoryError: HIP out of memory", nothing},
		{"gpu_fault", -1, "aborted", "Memory access fault by GPU node-2", nothing},
		{"gpu_hang", -1, "aborted", "HW Exception by GPU node-2", nothing},
		{"disk_full", -1, "aborted", "No space left on device", nothing},
		{"torn_json", 0, "", "", torn},
		{"wrong_gpu", 0, "", "", headerOnly},
		{"wrong_kernel", 0, "", "", other},
		{"busy", -1, "aborted", "failed to create ATT packet", nothing},
		{"att_packet", -1, "aborted", "failed to create ATT packet", nothing},
		{"unsupported", 1, "", "NotImplementedError", nothing},
		{"old_rocprof", 0, "", "", nothing},
		{"no_gpu", 1, "", "No HIP GPUs are available", nothing},
		{"torch_missing", 1, "", "ModuleNotFoundError: No module named 'torch'", nothing},
		{"not_built", 1, "", "ModuleNotFoundError: No module named 'flydsl'", nothing},
		{"broken_build", 1, "", "ModuleNotFoundError: No module named 'flydsl._mlir'", nothing},
		{"profiler_crash", -1, "segmentation fault", "rocprofiler_iterate_buffer_tracing_record_args", kept},
		{"restless", 0, "", "", func(*testing.T, string) {}},
		{"no_rotation", 0, "", "", kept},
		{"pmc:compile_fail", 0, "", "", kept},
		{"att:oom,discover:app_crash", 1, "", "HIP out of memory", nothing},
	}
	covered := []string{"timeout", "ignore_sigterm"}
	for _, tt := range tests {
		name, _, _ := strings.Cut(tt.fault, "=")
		covered = append(covered, name)
		t.Run(tt.fault, func(t *testing.T) {
			if tt.signal != "" {
				skipWithoutSignals(t)
			}
			out, o := attJob(t, worktree, []string{"FLYPROF_FAULT=" + tt.fault, "ROCDSL_SOFTMAX_SHAPES=2048,8192,bf16"}, "softmax_kernel_0", fourEngines, softmaxTest)
			if o.code != tt.code || !strings.HasPrefix(o.signal, tt.signal) || !strings.Contains(o.text(), tt.text) {
				t.Errorf("code %d signal %q, want %d %q with %q in:\n%s", o.code, o.signal, tt.code, tt.signal, tt.text, o.text())
			}
			tt.files(t, out)
		})
	}
	for _, f := range FaultNames() {
		if !slices.Contains(covered, f.Name) {
			t.Errorf("fault %s has no case", f.Name)
		}
		if _, ok := envelope.Lookup(f.Code); f.Code != "" && !ok {
			t.Errorf("fault %s leads to %s, which the catalogue lacks", f.Name, f.Code)
		}
		if f.Does == "" {
			t.Errorf("fault %s is not described", f.Name)
		}
	}
}

// TestOldProfiler: rocprofv3 of ROCm 6.4 refuses the options, ignores the keys of a job, and names its columns otherwise.
func TestOldProfiler(t *testing.T) {
	worktree := demo(t)
	old := []string{"FLYPROF_FAULT=old_rocprof"}
	for _, option := range []string{"--version", "--att"} {
		if o := start(t, worktree, old, append(Tool(self(t), "rocprofv3"), option)...); o.code != 2 || !strings.Contains(o.stderr, "rocprofv3: error: unrecognized arguments: "+option) {
			t.Errorf("%s: %+v", option, o)
		}
	}
	dir, _ := discover(t, worktree, old, softmaxTest)
	header, rows := readCSV(t, filepath.Join(dir, "discover_kernel_trace.csv"))
	if len(header) != 18 || rows[0]["Agent_Id"] != "2" {
		t.Errorf("%d columns, agent %q", len(header), rows[0]["Agent_Id"])
	}
}

func TestFaultWords(t *testing.T) {
	tests := []struct {
		text string
		want []Fault
		bad  string
	}{
		{"", nil, ""},
		{"oom", []Fault{{Name: "oom"}}, ""},
		{" att:slow=2.5 , busy,", []Fault{{Name: "slow", Value: "2.5", Phase: "att"}, {Name: "busy"}}, ""},
		{"lost", nil, "no fault is named"},
		{"tile:oom", nil, "the phases are"},
	}
	for _, tt := range tests {
		got, err := ParseFaults(tt.text)
		if !slices.Equal(got, tt.want) || (err != nil) != (tt.bad != "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
			t.Errorf("%q: %v, %v", tt.text, got, err)
		}
	}
}

func TestSettingsRoundTrip(t *testing.T) {
	abs, err := filepath.Abs("x")
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Arch: "gfx942", Replay: abs, Seed: 9, Faults: []Fault{{Name: "slow", Value: "1", Phase: "att"}, {Name: "oom"}}}
	got, err := FromEnv(Settings{Arch: "gfx942", Replay: "x", Seed: 9, Faults: want.Faults}.Environ())
	if err != nil || got.Arch != want.Arch || got.Replay != want.Replay || got.Seed != want.Seed || !slices.Equal(got.Faults, want.Faults) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"FLYPROF_SIMULATE=gfx90a", "FLYPROF_SEED=-1", "FLYPROF_FAULT=x"} {
		if _, err := FromEnv([]string{bad}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
		if o := start(t, t.TempDir(), []string{bad}, Tool(self(t), "rocminfo")...); o.code != 2 {
			t.Errorf("%s: %+v", bad, o)
		}
	}
	for _, truth := range []string{"", "1", "true"} {
		if s, err := FromEnv([]string{"FLYPROF_SIMULATE=" + truth}); err != nil || s.Arch != "gfx950" || s.Seed != 1 {
			t.Errorf("%q: %+v, %v", truth, s, err)
		}
	}
}

// TestQuick: a run of the demo's softmax under the profiler takes well under a second.
func TestQuick(t *testing.T) {
	worktree := demo(t)
	begin := time.Now()
	attJob(t, worktree, nil, "softmax_kernel_0", fourEngines, softmaxTest)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
}
