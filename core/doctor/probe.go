package doctor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// Probe is what the doctor looks at, and how. Tests put their own host in its place.
type Probe struct {
	// Root is where /sys, /proc and /dev are found: "/" but in tests.
	Root   string
	OS     string // of the host, as runtime.GOOS has it
	Getenv func(string) string
	// Run runs a short command; nil when only files may be looked at (--read-only).
	Run Runner
	// Rocprofv3 and Python are argv prefixes, empty where no program was found in the places that were looked at.
	Rocprofv3, Python           []string
	RocprofPlaces, PythonPlaces []string
	Rocminfo, AMDSMI            []string
	ATTLibraryPath              []string
	// Env is the environment of the programs that are probed.
	Env []string
	// Simulated is the architecture of the simulated GPU, empty on real hardware.
	Simulated string
	// Worktree opens the checkout; its error is the check's.
	Worktree func(ctx context.Context) (*worktree.Tree, error)
	RunsDir  string
	// GPU is the index in the inherited mask that is used by default.
	GPU int
	// Free gives the bytes that this user may still write where dir is, and false where the system does not say.
	Free func(dir string) (int64, bool)
}

// Runner runs a short command to its end and gives what it printed. exit is negative for a signal; err says that it could not be
// run, or not within the limit.
type Runner func(ctx context.Context, limit time.Duration, argv, env []string, dir string) (stdout, stderr []byte, exit int, err error)

// Exec is the Runner of this machine: the command gets a group of its own, which is ended with it.
func Exec(ctx context.Context, limit time.Duration, argv, env []string, dir string) (stdout, stderr []byte, exit int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	if dir == "" {
		dir = os.TempDir()
	}
	stdout, stderr, how, err := launch.Output(ctx, launch.Command{Argv: argv, Env: env, Dir: dir}, maxOutput)
	if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
		err = errTooLong
	}
	if how.Signal != "" {
		return stdout, stderr, -signalNumber(how.Signal), err
	}
	return stdout, stderr, how.Code, err
}

var errTooLong = errors.New("it did not end in time and was stopped")
