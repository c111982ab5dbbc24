// Package sim is a stand-in for rocprofv3, rocminfo, amd-smi, the Python interpreter and the workload, so that a capture
// can be tried and tested on a machine that has none of them.
//
// The flyprof-mcp binary re-executes itself (`flyprof-mcp sim-exec NAME ARGS...`). The rocprofv3 stand-in takes the real
// command line and job file, sets the environment that the real script sets and becomes the application. The Python
// stand-in reads what the test script would launch (workload.go) and, when that environment is there, writes what the
// profiler's library would write. Every figure it writes is invented and every output says so.
//
// Not imitated: LD_PRELOAD (the libraries do not exist), sys/HIP/HSA tracing, attach mode, PC sampling and RDNA.
package sim

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// ExecVerb is the hidden verb of the flyprof-mcp binary that runs a stand-in.
const ExecVerb = "sim-exec"

// process is what a stand-in sees of the outside: arguments, streams and environment.
type process struct {
	args   []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    environment
	set    Settings
}

// standIns maps a program's name to its stand-in.
var standIns = map[string]func(*process) int{
	"rocprofv3": runProfiler,
	"rocminfo":  runRocminfo,
	"amd-smi":   runAMDSMI,
	"python":    runPython,
	"python3":   runPython,
}

// Tool gives the argv prefix that runs a stand-in through the program self.
func Tool(self, name string) []string { return []string{self, ExecVerb, name} }

// Names says whether a program's base name (argv[0], with or without .exe) is one of the stand-ins.
func Names(base string) (string, bool) {
	name := strings.TrimSuffix(filepath.Base(base), ".exe")
	_, ok := standIns[name]
	return name, ok
}

// Main runs one stand-in and returns its exit code. name is "rocprofv3", "rocminfo", "amd-smi", "python" or "python3"; args
// exclude the program. On Unix it may not return: rocprofv3 becomes the application (exec), and a crash is a real signal.
func Main(name string, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	run, ok := standIns[name]
	if !ok {
		fmt.Fprintf(stderr, "flyprof-mcp: no stand-in named %q (rocprofv3, rocminfo, amd-smi, python)\n", name)
		return 2
	}
	set, err := FromEnv(environ)
	if err != nil {
		fmt.Fprintf(stderr, "flyprof-mcp: %v\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "flyprof-mcp: SIMULATED GPU (%s): figures are invented\n", set.Arch)
	return run(&process{args: args, stdin: stdin, stdout: stdout, stderr: stderr, env: newEnvironment(environ), set: set})
}

func (p *process) errf(format string, a ...any) { fmt.Fprintf(p.stderr, format+"\n", a...) }

// said is a message in the words of the program that is stood in for; they are not ours to change.
type said string

func (s said) Error() string { return string(s) }

func saidf(format string, a ...any) error { return said(fmt.Sprintf(format, a...)) }
