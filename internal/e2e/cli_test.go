package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// cli runs a command line and reads its envelope.
func cli(t *testing.T, env []string, args ...string) (answer, int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = environ(env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v: standard output is no envelope: %v\n%s\n%s", args, err, out, said.String())
	}
	a.raw = out
	return a, code
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
