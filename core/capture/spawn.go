package capture

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Spawner starts supervisors: this program again, detached, one for each run.
type Spawner struct {
	// Argv is the program and the words that make it a supervisor; runs directory and run id follow.
	Argv []string
	// Env is the supervisor's environment.
	Env []string
	Log *slog.Logger

	mu   sync.Mutex
	held map[string]io.Closer
}

// Start starts the supervisor of a run and holds the pipe that tells it this server lives. ended is called once it is gone.
func (s *Spawner) Start(store *runs.Store, id string, ended func()) error {
	logFile, err := os.OpenFile(filepath.Join(store.Path(id), "logs", "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := exec.Command(s.Argv[0], append(append([]string(nil), s.Argv[1:]...), store.Dir(), id)...)
	cmd.Env, cmd.Dir = s.Env, store.Dir()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	launch.Detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the supervisor cannot be started: %w", err)
	}
	s.mu.Lock()
	if s.held == nil {
		s.held = map[string]io.Closer{}
	}
	s.held[id] = pipe
	s.mu.Unlock()
	go func() {
		err := cmd.Wait()
		s.mu.Lock()
		delete(s.held, id)
		s.mu.Unlock()
		if err != nil {
			s.Log.Warn("a supervisor ended badly", "run", id, "error", err)
		}
		ended()
	}()
	return nil
}

// Live is the number of runs whose supervisors this server holds.
func (s *Spawner) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// Release lets go of all supervisors, as the end of this process would: each follows its run's policy.
func (s *Spawner) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pipe := range s.held {
		_ = pipe.Close()
	}
}

// Salvage is what Store.RecoverAll needs.
func (s *Service) Salvage(ctx context.Context, r runs.Run) runs.Result {
	return Salvage(ctx, s.Store, r)
}
