package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTriage explains each kind of source with no GPU, no ROCm and no worktree.
func TestTriage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const header = `"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0"}`
	write("elsewhere/ui_output_agent_7_dispatch_3/code.json", `{"code":null,`+header)
	write("elsewhere/ui_output_agent_7_dispatch_3/filenames.json", `{"wave_filenames":null,"gfxip":9,"version":"3.0.0"}`)
	write("elsewhere/ui_output_agent_7_dispatch_3/occupancy.json", `{"0":[[10,5,0,0,1,1],[90,5,0,0,0,1]],"dispatches":{"1":"softmax_kernel_0"},"version":"3.0.0"}`)
	write("idle/1_7_shader_engine_0_3.att", strings.Repeat("h", 424))
	write("undecoded/1_7_shader_engine_0_3.att", strings.Repeat("h", 4240))
	write("torn/ui_output_agent_7_dispatch_3/code.json", `{"code":[["s_endpgm",0,1,"",1`)
	write("good/ui_output_agent_7_dispatch_3/code.json", `{"code":[["; k",0,0,"",1,0,0,0,0,0],["s_endpgm",0,1,"a.py:3",1,4,2,8,4,0]],`+header)
	write("logs/run.log", "[rocprofv3] Fatal error: rocprof-trace-decoder library path not found in ['', '/opt/rocm/lib']\n")
	write("nothing/readme", "x")

	s := start(t, "", "--allow-path", dir)
	for name, c := range map[string]struct {
		args map[string]any
		code string
		says string
	}{
		"a code":              {map[string]any{"code": "empty_att"}, "EMPTY_ATT", "occupancy.json"},
		"a code and its case": {map[string]any{"code": "EMPTY_ATT", "kernel": "softmax", "shape": "8,8192"}, "EMPTY_ATT", "flyprof_tile"},
		"busy elsewhere":      {map[string]any{"path": filepath.Join(dir, "elsewhere"), "kernel": "softmax", "shape": "8,8192"}, "EMPTY_ATT", `"att_target_cu":5`},
		"one directory":       {map[string]any{"path": filepath.Join(dir, "elsewhere", "ui_output_agent_7_dispatch_3")}, "EMPTY_ATT", "other CUs"},
		"idle engines":        {map[string]any{"path": filepath.Join(dir, "idle")}, "EMPTY_ATT", "1 of them of header size"},
		"not decoded":         {map[string]any{"path": filepath.Join(dir, "undecoded")}, "DECODER_MISSING", "not decoded"},
		"torn":                {map[string]any{"path": filepath.Join(dir, "torn")}, "TRACE_CORRUPT", "byte"},
		"a folder of logs":    {map[string]any{"path": filepath.Join(dir, "logs")}, "DECODER_MISSING", "library path not found"},
		"a log":               {map[string]any{"log_text": "x\nMemory access fault by GPU node-2 on address 0x7f. Reason: Unknown.\n"}, "GPU_FAULT", "Memory access fault"},
		"an envelope":         {map[string]any{"envelope": `{"ok":false,"error":{"code":"CAPTURE_TIMEOUT","message":"too long"}}`}, "CAPTURE_TIMEOUT", "too long"},
	} {
		a := s.call("flyprof_triage", c.args)
		if !a.OK || a.get("code") != c.code || !strings.Contains(string(a.raw), c.says) {
			t.Errorf("%s: want %s that says %s: %s", name, c.code, c.says, a.raw)
		}
		if causes, _ := a.get("causes").([]any); len(causes) == 0 {
			t.Errorf("%s: no cause: %s", name, a.raw)
		}
	}
	if a := s.call("flyprof_triage", map[string]any{"path": filepath.Join(dir, "good")}); !a.OK || a.get("code") != nil {
		t.Errorf("a good trace: %s", a.raw)
	}
	if a := s.call("flyprof_triage", map[string]any{"log_text": "all is well\n"}); !a.OK || a.get("code") != nil || len(a.NextActions) == 0 {
		t.Errorf("a log without a failure: %s", a.raw)
	}
	for name, c := range map[string]struct {
		args map[string]any
		code string
	}{
		"none":            {map[string]any{}, "BAD_ARGS"},
		"two":             {map[string]any{"code": "NO_GPU", "log_text": "x"}, "BAD_ARGS"},
		"unknown code":    {map[string]any{"code": "NO_SUCH"}, "BAD_ARGS"},
		"no envelope":     {map[string]any{"envelope": "{"}, "BAD_ARGS"},
		"outside":         {map[string]any{"path": "/etc"}, "PATH_NOT_ALLOWED"},
		"nothing in it":   {map[string]any{"path": filepath.Join(dir, "nothing")}, "NO_ARTIFACT"},
		"no such run":     {map[string]any{"run_id": "softmax-20260101T000000Z-aaaaaa"}, "RUN_NOT_FOUND"},
		"a file, no path": {map[string]any{"path": filepath.Join(dir, "logs", "run.log")}, "BAD_ARGS"},
	} {
		if a := s.call("flyprof_triage", c.args); a.Error == nil || a.Error.Code != c.code {
			t.Errorf("%s: want %s: %s", name, c.code, a.raw)
		}
	}
}

// TestTriageRun explains a run of this server.
func TestTriageRun(t *testing.T) {
	s := simulated(t, "", "--fault", "compile_fail")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
	b := s.call("flyprof_triage", map[string]any{"run_id": a.Bundle})
	if !b.OK || b.get("code") != "KERNEL_COMPILE_FAIL" || b.Bundle != a.Bundle || len(b.NextActions) != len(a.Error.NextActions) {
		t.Errorf("%s", b.raw)
	}
}
