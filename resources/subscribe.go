package resources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/watch"
	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// Subscriptions lets every session of a server subscribe to resources: to runs, their files and logs, which are looked at while they
// run, and to what never changes. known says that a URI of another scheme is one of the server's resources.
func (s *Source) Subscriptions(h *server.Hooks, o watch.Options, known func(uri string) bool) {
	watcher := watch.New(func(uri string) (watch.State, error) {
		state, err := s.Look(uri)
		if err != nil && known(uri) {
			return watch.State{Final: true}, nil
		}
		return state, err
	}, o)
	type session interface {
		SetWatch(wire.Watch)
		Updated(uri string) bool
	}
	h.AddOnRegisterSession(func(_ context.Context, who server.ClientSession) {
		if who, ok := who.(session); ok {
			who.SetWatch(subscriptions{watcher.Session(who.Updated)})
		}
	})
	h.AddOnUnregisterSession(func(_ context.Context, who server.ClientSession) {
		if who, ok := who.(session); ok {
			who.SetWatch(nil)
		}
	})
}

// subscriptions gives refusals the codes that clients know. What is not there has one in each era, which the library knows.
type subscriptions struct{ *watch.Session }

// Add implements wire.Watch.
func (s subscriptions) Add(uri string) error {
	err := s.Session.Add(uri)
	var many *watch.TooManyError
	if errors.As(err, &many) || envelope.CodeOf(err) == envelope.BadArgs {
		return &wire.Error{Code: mcp.INVALID_PARAMS, Message: err.Error(), Data: map[string]string{"uri": wire.Shorten(uri, 1000)}}
	}
	return err
}

// quietS is after how many seconds without a change it is asked whether the run still has its supervisor.
const quietS = 30

// Look says how a resource stands, by stat alone. A log or file that is not there yet may be watched while its run goes on.
//
// Errors: as Read.
func (s *Source) Look(uri string) (watch.State, error) {
	t, err := s.parse(uri)
	if err != nil {
		return watch.State{}, err
	}
	switch t.kind {
	case "text":
		return watch.State{Final: true}, nil
	case "runs": // a run's marker comes and goes with its beginning and its end
		return watch.State{Stamp: stampOf(s.Store.Dir()) + stampOf(filepath.Join(s.Store.Dir(), ".active"))}, nil
	}
	// Asked before the files are looked at: what ends meanwhile is looked at once more.
	state := watch.State{Final: !s.Store.Active(t.id)}
	about, changed, err := s.stamp(t.id, "run.json")
	if err != nil {
		return watch.State{}, err
	}
	if !state.Final && time.Since(changed) > quietS*time.Second {
		s.recover(t.id)
	}
	name := map[string]string{"log": "logs/" + t.path, "file": t.path}[t.kind]
	if name == "" {
		progress, _, err := s.stamp(t.id, "progress.json")
		if err != nil && envelope.CodeOf(err) != envelope.NoArtifact {
			return watch.State{}, err
		}
		state.Stamp = fmt.Sprint(about, progress, state.Final) // the end is told even where two writes look alike
		return state, nil
	}
	state.Stamp, _, err = s.stamp(t.id, name)
	if envelope.CodeOf(err) == envelope.NoArtifact && !state.Final {
		return watch.State{Stamp: "not yet"}, nil
	}
	return state, err
}

// stamp tells one state of a file of a run from another.
func (s *Source) stamp(id, name string) (string, time.Time, error) {
	f, info, err := s.Store.OpenFile(id, name)
	if err != nil {
		return "", time.Time{}, err
	}
	_ = f.Close()
	return stampText(info), info.ModTime(), nil
}

func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none;"
	}
	return stampText(info)
}

func stampText(info fs.FileInfo) string {
	return fmt.Sprintf("%d,%d;", info.ModTime().UnixNano(), info.Size())
}

// recover looks for the supervisor of a run, one at a time for each run, without waiting for it.
func (s *Source) recover(id string) {
	if s.Recover == nil {
		return
	}
	if _, looking := s.recovering.LoadOrStore(id, true); looking {
		return
	}
	go func() {
		defer s.recovering.Delete(id)
		s.Recover(id)
	}()
}
