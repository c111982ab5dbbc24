package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the flyprof-mcp of these tests: this test binary, which runs as a stand-in when it is given the hidden verb.
// Starting a binary with the race detector takes half a second, and the tests start hundreds; there it is a plain build.
var (
	program      string
	raceDetector bool
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == ExecVerb {
		os.Exit(Main(os.Args[2], os.Args[3:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	var err error
	if program, err = os.Executable(); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		panic(err)
	}
	if plain := filepath.Join(dir, "standin"+filepath.Ext(program)); raceDetector {
		if out, err := exec.Command("go", "build", "-o", plain, "./testdata/standin").CombinedOutput(); err == nil {
			program = plain
		} else {
			fmt.Fprintf(os.Stderr, "the test binary stands in: %v: %s", err, out)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// outcome is how a stand-in ended.
type outcome struct {
	stdout, stderr string
	code           int    // exit code, -1 when a signal ended it
	signal         string // "segmentation fault", ...
}

func (o outcome) text() string { return o.stdout + o.stderr }

// start runs a stand-in in its own process. env is added to a bare environment.
func start(t *testing.T, dir string, env []string, argv ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SystemRoot=" + os.Getenv("SystemRoot")}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	if o.code < 0 {
		o.signal = strings.TrimPrefix(cmd.ProcessState.String(), "signal: ")
	}
	return o
}

func self(t testing.TB) string {
	t.Helper()
	return program
}

// demo writes the demo checkout for one test.
func demo(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "worktree")
	if err := WriteDemoWorktree(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func pythonPath(worktree string) string {
	return "PYTHONPATH=" + filepath.Join(worktree, "build-fly", "python_packages") + string(filepath.ListSeparator) + worktree
}

// discover runs a discovery of a test of the demo checkout into a new directory.
func discover(t *testing.T, worktree string, env []string, app ...string) (string, outcome) {
	t.Helper()
	dir := t.TempDir()
	argv := append(Tool(self(t), "rocprofv3"), "--kernel-trace", "--stats", "-f", "csv", "-d", dir, "-o", "discover", "--")
	argv = append(append(argv, Tool(self(t), "python")...), app...)
	return dir, start(t, worktree, append([]string{pythonPath(worktree)}, env...), argv...)
}

// attJob runs a job file with one ATT job; fields are the job's further members as JSON.
func attJob(t *testing.T, worktree string, env []string, kernel, fields string, app ...string) (string, outcome) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "att")
	if fields != "" {
		fields = "," + fields
	}
	regex, err := json.Marshal("^" + kernel + "$")
	if err != nil {
		t.Fatal(err)
	}
	job := `{"jobs":[{"advanced_thread_trace":true,"kernel_include_regex":` + string(regex) + `,"output_file":"out","output_directory":"` + filepath.ToSlash(out) +
		`","output_format":["json","csv"]` + fields + `}]}`
	file := filepath.Join(dir, "job.json")
	if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	argv := append(Tool(self(t), "rocprofv3"), "-i", file, "--")
	argv = append(append(argv, Tool(self(t), "python")...), app...)
	return out, start(t, worktree, append([]string{pythonPath(worktree), "FLYDSL_DEBUG_ENABLE_DEBUG_INFO=1"}, env...), argv...)
}

const fourEngines = `"att_target_cu":1,"att_shader_engine_mask":"0xf","att_simd_select":"0xf","att_buffer_size":"0x6000000","att_gpu_index":"0","kernel_iteration_range":"8"`

const softmaxTest = "tests/kernels/test_softmax.py"
