package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
)

// startGrace is how long a run may stay without a supervisor while the server that created it lives.
const startGrace = 30 * time.Second

// orphanGrace is how long it may when that server has gone: a supervisor that was started needs a moment to take the run.
const orphanGrace = 10 * time.Second

// sweepLimit bounds the ending of a dead supervisor's leftovers: a process in an uninterruptible driver wait cannot be
// killed, and must not keep the caller.
const sweepLimit = 10 * time.Second

// Own takes the run for this process until release is called or the process ends, however it ends (flock is given back by
// the kernel). It fails when another process has it.
func (s *Store) Own(id string) (release func(), err error) {
	l := flock.New(filepath.Join(s.Path(id), "owner.lock"))
	ok, err := l.TryLock()
	if err != nil {
		return nil, unwritable(s.dir, err)
	}
	if !ok {
		return nil, fmt.Errorf("run %s is owned by another process", id)
	}
	return func() { _ = l.Close() }, nil
}

// Salvage makes the answer of a run whose supervisor is dead, from what it left on disk.
type Salvage func(ctx context.Context, r Run) Result

// RecoverAll ends every run of this host that has no living owner. It touches no run of another host.
func (s *Store) RecoverAll(ctx context.Context, salvage Salvage) (recovered []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, ".active"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no run yet
	}
	if err != nil {
		return nil, unwritable(s.dir, err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return recovered, ctx.Err()
		}
		if !ValidID(e.Name()) {
			continue
		}
		if did, _ := s.Recover(ctx, e.Name(), salvage); did {
			recovered = append(recovered, e.Name())
		}
	}
	return recovered, nil
}

// Recover ends one run if its owner on this host is dead: its leftovers are killed by token and identity, what it had
// captured is kept, and its state becomes interrupted. It says whether it did.
func (s *Store) Recover(ctx context.Context, id string, salvage Salvage) (bool, error) {
	r, err := s.Load(id)
	if err != nil {
		s.forgetUnborn(id)
		return false, err
	}
	if r.State.Ended() {
		_ = os.Remove(filepath.Join(s.dir, ".active", id)) // a crash between the two steps of Save
		return false, nil
	}
	if r.Host != s.host || s.alive(r) {
		return false, nil
	}
	release, err := s.Own(id)
	if err != nil {
		return false, nil // its supervisor lives, or another process recovers it
	}
	defer release()
	if r, err = s.Load(id); err != nil || r.State.Ended() {
		return false, err
	}
	if r.BootID == s.bootID {
		sweep, cancel := context.WithTimeout(ctx, sweepLimit)
		err = s.launcher.Sweep(sweep, r.Token, r.Groups)
		cancel()
	}
	res := salvage(ctx, r)
	if err != nil {
		res.Warnings = append(res.Warnings, envelope.Warning{Code: "PROCESSES_LEFT", Message: fmt.Sprintf("some processes of the run could not be ended: %v", err)})
	}
	r.State = Interrupted
	return true, s.Finish(r, res)
}

// alive says that the run has an owner, or may still get one.
func (s *Store) alive(r Run) bool {
	if r.BootID != s.bootID {
		return false
	}
	if r.Supervisor.PID != 0 {
		return launch.Identify(r.Supervisor.PID) == r.Supervisor
	}
	age := s.now().Sub(r.Created)
	return age < orphanGrace || age < startGrace && launch.Identify(r.Server.PID) == r.Server
}

// forgetUnborn removes the marker of a run whose creation was cut short before run.json: nothing was ever started for it.
func (s *Store) forgetUnborn(id string) {
	mark := filepath.Join(s.dir, ".active", id)
	info, err := os.Stat(mark)
	if err != nil || s.now().Sub(info.ModTime()) < startGrace {
		return
	}
	if _, err := os.Stat(filepath.Join(s.Path(id), "run.json")); os.IsNotExist(err) {
		_ = os.Remove(mark)
	}
}
