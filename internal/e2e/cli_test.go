package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// cli runs a command line and reads its envelope. The exit code is the error's, and 0 without one.
func cli(t *testing.T, env []string, args ...string) (answer, int) {
	t.Helper()
	out, said, code := program(t, binary, env, args...)
	return envelopeOf(t, args, out, said, code), code
}

// program runs one of the programs to its end.
func program(t *testing.T, path string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = environ(env...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// envelopeOf reads what a command line printed.
func envelopeOf(t *testing.T, args []string, stdout, stderr string, code int) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatalf("%v: standard output is no envelope: %v\n%s\n%s", args, err, stdout, stderr)
	}
	a.raw = []byte(stdout)
	switch {
	case a.OK != (a.Error == nil), a.OK != (code == 0):
		t.Errorf("%v: exit %d: %s", args, code, stdout)
	case a.Error != nil && (a.Error.ExitCode != code || len(a.Error.NextActions) == 0):
		t.Errorf("%v: exit %d and %d next actions: %s", args, code, len(a.Error.NextActions), stdout)
	}
	return a
}

// TestCommandLine: the same envelopes, exit codes of sysexits.h, and an argv of a next action that runs as it stands.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	env := []string{"FLYPROF_SIMULATE=gfx942", "FLYPROF_RUNS_DIR=" + t.TempDir(), "FLYPROF_LOG_LEVEL=error"}
	empty, code := cli(t, env, "capture", "softmax", "--shape", "8,8192", "--att-target-cu", "1", "--att-shader-engine-mask", "0x1")
	if code != 66 || empty.Error == nil || empty.Error.Code != "EMPTY_ATT" {
		t.Fatalf("exit %d: %s", code, empty.raw)
	}
	argv := empty.Error.NextActions[0].Argv
	if len(argv) < 3 || argv[0] != "flyprof-mcp" || empty.Error.NextActions[0].Tool != "" {
		t.Fatalf("%+v", empty.Error.NextActions[0])
	}
	good, code := cli(t, env, argv[1:]...)
	if code != 0 || !good.OK {
		t.Fatalf("%v: exit %d: %s", argv, code, good.raw)
	}
	status, code := cli(t, env, "status", good.Bundle)
	if code != 0 || !sameJSON(status.raw, good.raw) {
		t.Errorf("exit %d: status answers\n%s\nand capture had answered\n%s", code, status.raw, good.raw)
	}
	for name, c := range map[string]struct {
		args []string
		exit int
		code string
	}{
		"list":           {[]string{"list", "--filter", "gemm"}, 0, ""},
		"tile":           {[]string{"tile", "gemm", "--shape", "4096,4096,4096", "--dtype", "fp8"}, 0, ""},
		"doctor":         {[]string{"doctor"}, 0, ""},
		"read":           {[]string{"read", "flyprof://runs", "--limit", "50", "-f", "line"}, 0, ""},
		"triage":         {[]string{"triage", "--code", "NO_GPU"}, 0, ""},
		"no such kernel": {[]string{"capture", "nonsense"}, 66, "KERNEL_NOT_FOUND"},
		"out of range":   {[]string{"capture", "softmax", "--att-target-cu", "16"}, 78, "BAD_ARGS"},
		"no such run":    {[]string{"cancel", "softmax-20260101T000000Z-aaaaaa"}, 66, "RUN_NOT_FOUND"},
	} {
		a, exit := cli(t, env, c.args...)
		if exit != c.exit || a.OK != (c.code == "") || (a.Error != nil && a.Error.Code != c.code) {
			t.Errorf("%s: exit %d: %s", name, exit, a.raw)
		}
	}
	started, code := cli(t, env, "capture", "rmsnorm", "--no-wait")
	if code != 0 || started.Data["run_id"] == nil {
		t.Fatalf("exit %d: %s", code, started.raw)
	}
	if ended, code := cli(t, env, "status", started.Bundle, "--wait-s", "60"); code != 0 || ended.Data["state"] != "done" {
		t.Errorf("a run that was left running: exit %d: %s", code, ended.raw)
	}
}

// TestServingIsSilent: where standard output would carry JSON-RPC, what is wrong with the command line stands on standard error only.
func TestServingIsSilent(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nonsense"}, {"serve", "--nonsense"}, {"serve", "now"}, {"--gpu", "x"}, {"serve", "--gpu", "x"}, {"--log-file", "/nowhere/at/all"}, {"--fault", "nonsense"}} {
		stdout, stderr, code := program(t, binary, []string{"FLYPROF_RUNS_DIR=" + t.TempDir()}, args...)
		if stdout != "" || code != 78 || !strings.HasPrefix(stderr, "flyprof-mcp: BAD_ARGS: ") {
			t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// TestTables: each verb answers people too, with the same exit code.
func TestTables(t *testing.T) {
	t.Parallel()
	env := []string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + t.TempDir(), "FLYPROF_LOG_LEVEL=error"}
	var id string
	for _, c := range []struct {
		args []string
		exit int
		says []string
	}{
		{[]string{"doctor"}, 0, []string{"doctor: ready", "ok  rocprofv3", "flyprof-mcp list"}},
		{[]string{"list", "--filter", "softmax"}, 0, []string{"KERNEL", "softmax  reduction"}},
		{[]string{"tile", "softmax", "--shape", "8192,8192"}, 0, []string{"regime     memory-bound", "flyprof-mcp capture softmax --shape"}},
		{[]string{"capture", "softmax", "--shape", "8192,8192"}, 0, []string{"softmax_kernel_0", "ok  mapped_pct", "att/big/ui_output_agent_", "SIMULATED"}},
		{[]string{"status", "RUN"}, 0, []string{": done", "ok  mapped_pct"}},
		{[]string{"triage", "--run-id", "RUN"}, 0, []string{"triage of the run"}},
		{[]string{"read", "flyprof://runs/RUN/files", "--limit", "500"}, 0, []string{"att/big", "reads on"}},
		{[]string{"cancel", "RUN"}, 0, []string{"ALREADY_ENDED"}},
		{[]string{"capture", "softmax", "--shape", "8,8192", "--att-target-cu", "1", "--att-shader-engine-mask", "0x1"}, 66, []string{"error capture: EMPTY_ATT: ", "FAIL  kept_dir", "flyprof-mcp capture softmax --shape 512,8192"}},
		{[]string{"capture", "softmux"}, 66, []string{"KERNEL_NOT_FOUND", "CANDIDATE", "flyprof-mcp capture softmax"}},
		{[]string{"captur", "softmax"}, 78, []string{"error flyprof-mcp: BAD_ARGS: ", "flyprof-mcp capture softmax -f table"}},
	} {
		for i := range c.args {
			c.args[i] = strings.ReplaceAll(c.args[i], "RUN", id)
		}
		stdout, stderr, code := program(t, binary, env, append(c.args, "-f", "table")...)
		if code != c.exit || strings.ContainsAny(stdout, "\x1b\t") {
			t.Errorf("%v: exit %d: %q %s", c.args, code, stdout, stderr)
		}
		for _, text := range c.says {
			if !strings.Contains(stdout, text) {
				t.Errorf("%v: no %q in\n%s", c.args, text, stdout)
			}
		}
		if _, rest, ok := strings.Cut(stdout, "run softmax-"); ok && id == "" {
			id = "softmax-" + rest[:strings.IndexByte(rest, ':')]
		}
	}
}

// TestWaitsAsAsked: a capture that may wait only so long answers that it goes on, and the run does.
func TestWaitsAsAsked(t *testing.T) {
	t.Parallel()
	env := []string{"FLYPROF_SIMULATE=gfx950", "FLYPROF_RUNS_DIR=" + t.TempDir(), "FLYPROF_LOG_LEVEL=error", "FLYPROF_FAULT=slow=2"}
	started, code := cli(t, env, "capture", "softmax", "--wait-s", "0")
	if code != 0 || started.Data["state"] == "done" || started.Bundle == "" {
		t.Fatalf("exit %d: %s", code, started.raw)
	}
	if ended, code := cli(t, env, "status", started.Bundle, "--wait-s", "60"); code != 0 || ended.Data["state"] != "done" {
		t.Errorf("exit %d: %s", code, ended.raw)
	}
}
