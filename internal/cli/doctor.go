package cli

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/doctor"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/core/worktree"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// doctor makes the function that checks this host by the settings in force, with the programs that a capture would use.
func (a *app) doctor(p capture.Preparer, store *runs.Store) func(ctx context.Context, in request.Doctor) (envelope.Reply[doctor.Data], error) {
	return func(ctx context.Context, in request.Doctor) (envelope.Reply[doctor.Data], error) {
		root, _ := p.Root(in.Worktree) // its error is the worktree check's
		found := p.Programs.Tools(root)
		probe := doctor.Probe{
			Root: p.SysRoot, OS: runtime.GOOS, Getenv: os.Getenv, Run: doctor.Exec, Free: doctor.FreeSpace,
			Rocprofv3: found.Rocprofv3, RocprofPlaces: p.Programs.RocprofPlaces(), Python: found.Python, PythonPlaces: p.Programs.PythonPlaces(root),
			Rocminfo: program("rocminfo"), AMDSMI: program("amd-smi"), ATTLibraryPath: p.Programs.ATTLibraryPath,
			Env: rocprof.Environment(p.Environ, append(rocprof.Passed(p.Environ, p.PassEnv), found.Env...), nil), Simulated: found.Simulated, RunsDir: store.Dir(), GPU: p.GPU,
			Worktree: func(ctx context.Context) (*worktree.Tree, error) {
				root, err := p.Root(in.Worktree)
				if err != nil {
					return nil, err
				}
				return worktree.Open(ctx, root)
			},
		}
		if found.Simulated != "" {
			self := found.Rocprofv3[0]
			probe.Rocminfo, probe.AMDSMI = sim.Tool(self, "rocminfo"), nil
		}
		if a.config.ReadOnly {
			probe.Run = nil
		}
		return doctor.Run(ctx, probe, in)
	}
}

// program gives the argv of a program on PATH or in ROCm's own directory, nil where it is in neither.
func program(name string) []string {
	for _, path := range []string{name, "/opt/rocm/bin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return []string{found}
		}
	}
	return nil
}
