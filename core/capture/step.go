package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// stopped is the cause of a context that ended a run from outside.
type stopped struct {
	// Why is shown to the user; ServerGone says that nobody asked, the server went away.
	Why        string
	ServerGone bool
}

func (s stopped) Error() string { return s.Why }

// timedOut is the cause of a context whose time was up.
type timedOut struct{ Limit time.Duration }

func (t timedOut) Error() string { return fmt.Sprintf("the limit of %v is over", t.Limit) }

// step is one command of a run and what became of it.
type step struct {
	Name string `json:"step"`
	// Argv, Dir and EnvDelta record the call; EnvDelta is against the server's environment.
	Argv     []string `json:"argv"`
	Dir      string   `json:"cwd"`
	EnvDelta []string `json:"env_delta"`
	// Exit is nil while the command runs, and where it could not be started.
	Exit    *launch.Exit `json:"exit,omitempty"`
	Seconds float64      `json:"seconds,omitempty"`
	Stopped string       `json:"stopped,omitempty"`
	log     string
}

// runStep runs one command to its end, or ends it when ctx does: first SIGTERM to the group, on which rocprofv3 writes what
// it has, then after the grace SIGKILL, then a sweep of whatever is left. The error is nil when the command ended by itself,
// whatever its status; otherwise the cause of ctx, or why the command could not be started.
func (d *driver) runStep(ctx context.Context, name string, argv []string, env []string) (step, error) {
	st := step{Name: name, Argv: argv, Dir: d.plan.Invocation.Cwd, EnvDelta: rocprof.EnvDelta(os.Environ(), env, d.plan.Withheld), log: filepath.Join("logs", name+".log")}
	if err := context.Cause(ctx); err != nil {
		return st, err
	}
	if err := d.store.WriteJSON(d.run.ID, filepath.Join("jobs", name+".argv.json"), st); err != nil {
		return st, err
	}
	logPath := filepath.Join(d.store.Path(d.run.ID), st.log)
	begin := time.Now()
	p, err := d.launcher.Start(launch.Command{Argv: argv, Env: env, Dir: st.Dir, Stdout: logPath, Stderr: logPath}, d.run.Token)
	if err != nil {
		return st, startError(argv[0], err)
	}
	d.run.Groups = append(d.run.Groups, p.ID())
	saveErr := d.store.Save(d.run)

	select {
	case <-p.Done():
	case <-ctx.Done():
		err = context.Cause(ctx)
		st.Stopped = err.Error()
		_ = p.Terminate()
		select {
		case <-p.Done():
		case <-time.After(d.plan.Grace()):
			d.warn("STOP_FORCED", fmt.Sprintf("%s did not end within %v of SIGTERM and was killed; its output may be incomplete", name, d.plan.Grace()))
		}
	}
	sweep, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	if sweepErr := p.Sweep(sweep); sweepErr != nil {
		d.warn("PROCESSES_LEFT", fmt.Sprintf("some processes of %s could not be ended: %v", name, sweepErr))
	}
	select {
	case <-p.Done():
		exit := p.Exit()
		st.Exit = &exit
	default:
	}
	st.Seconds = time.Since(begin).Seconds()
	d.run.Groups = slices.DeleteFunc(d.run.Groups, func(id launch.ID) bool { return id == p.ID() })
	return st, errors.Join(err, saveErr, d.store.Save(d.run), d.store.WriteJSON(d.run.ID, filepath.Join("jobs", name+".argv.json"), st))
}

// sweepLimit bounds the ending of leftovers: a process in an uninterruptible driver wait cannot be killed.
const sweepLimit = 10 * time.Second

func startError(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return envelope.Build(envelope.Rocprofv3Missing, envelope.Facts{
			Message:  fmt.Sprintf("%s cannot be started: %v", program, err),
			Evidence: envelope.Evidence{Setting: "--rocprofv3 (FLYPROF_ROCPROFV3)", Value: program},
		}).WithCause(err)
	}
	return fmt.Errorf("%s cannot be started: %w", program, err)
}

// exitText says how a step ended.
func (st step) exitText() string {
	if st.Exit == nil {
		return "did not end"
	}
	return st.Exit.String()
}

// maxLogRead bounds what is read of a log for its classification: the classifier takes head and tail.
const maxLogRead = 64 << 20

// findings classifies the log of a step.
func (d *driver) findings(st step) rocprof.Report {
	f, err := os.Open(filepath.Join(d.store.Path(d.run.ID), st.log))
	if err != nil {
		return rocprof.Report{}
	}
	defer f.Close()
	return rocprof.Classify(io.LimitReader(f, maxLogRead))
}

// logTail gives the last lines of a log file of the run.
func logTail(store *runs.Store, id, name string, lines int) []string {
	f, info, err := store.OpenFile(id, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	const window = 16 << 10
	if info.Size() > window {
		if _, err := f.Seek(-window, io.SeekEnd); err != nil {
			return nil
		}
	}
	b, _ := io.ReadAll(io.LimitReader(f, window))
	text := strings.TrimRight(rocprof.StripANSI(strings.ToValidUTF8(string(b), "\uFFFD")), "\r\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):]
}

func logURI(id, step string) string { return "flyprof://logs/" + id + "/" + step + ".log" }
