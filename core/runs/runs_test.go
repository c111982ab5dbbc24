package runs

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "deep", "runs"), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *Store, kernel string) Run {
	t.Helper()
	unlock, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r, err := s.Create(Run{Request: request.Capture{Kernel: kernel}, RequestKey: "rk-" + kernel, SameKey: "sk-" + kernel})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLife(t *testing.T) {
	s := open(t)
	if ids, err := s.IDs(); err != nil || len(ids) != 0 {
		t.Errorf("a store without runs: %v %v", ids, err)
	}
	r := create(t, s, "Softmax::kernel<4>")
	if !ValidID(r.ID) || !strings.HasPrefix(r.ID, "softmax__kernel_4-") || r.State != Queued || r.Lineage != r.ID {
		t.Errorf("%+v", r)
	}
	r.State, r.Phase = Running, "discover"
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	if last, ok := s.Latest("sk-Softmax::kernel<4>"); !ok || last.ID != r.ID || last.State != Running {
		t.Errorf("the latest of its key is %+v", last)
	}
	r.State = Done
	if err := s.Finish(r, Result{Data: json.RawMessage(`{"x":1}`)}); err != nil {
		t.Fatal(err)
	}
	back, err := s.Load(r.ID)
	if err != nil || back.State != Done || back.Ended.IsZero() {
		t.Errorf("%+v %v", back, err)
	}
	res, err := s.Result(r.ID)
	var data struct{ X int }
	if err != nil || json.Unmarshal(res.Data, &data) != nil || data.X != 1 || res.Warnings == nil {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), ".active", r.ID)); !os.IsNotExist(err) {
		t.Errorf("an ended run is still marked: %v", err)
	}
}

func TestOrderAndKeys(t *testing.T) {
	s := open(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { now = now.Add(time.Second); return now }
	first, second := create(t, s, "zeta"), create(t, s, "alpha")
	ids, err := s.IDs()
	if err != nil || len(ids) != 2 || ids[0] != second.ID || ids[1] != first.ID {
		t.Errorf("%v %v: not the newest first", ids, err)
	}
	if last, ok := s.Latest("sk-zeta"); !ok || last.ID != first.ID {
		t.Errorf("%v %v", last.ID, ok)
	}
	if _, ok := s.Latest("../" + first.ID); ok {
		t.Error("a key leads out of its folder")
	}
}

// TestManyCreate: servers that share a directory give each run an id of its own.
func TestManyCreate(t *testing.T) {
	s := open(t)
	other, err := Open(s.Dir(), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 20 {
		store := []*Store{s, other}[i%2]
		wait.Go(func() { create(t, store, "softmax") })
	}
	wait.Wait()
	if ids, err := s.IDs(); err != nil || len(ids) != 20 {
		t.Errorf("%d runs, %v", len(ids), err)
	}
}

func TestNotFound(t *testing.T) {
	s := open(t)
	for _, id := range []string{"", "..", "../../etc", "softmax-20260101T000000Z-aaaaaa", "a\x00b", strings.Repeat("a", 5000)} {
		if _, err := s.Load(id); envelope.CodeOf(err) != envelope.RunNotFound {
			t.Errorf("%.40q: %v", id, err)
		}
	}
}

// TestJail: files are read inside the run's directory and nowhere else.
func TestJail(t *testing.T) {
	s := open(t)
	r := create(t, s, "softmax")
	dir := s.Path(r.ID)
	if err := os.WriteFile(filepath.Join(dir, "att.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", "../x", "/etc/passwd", "a/../../b", "", "logs", "absent", "a\x00b", `..\x`, "./att.json/../../x"} {
		if f, _, err := s.OpenFile(r.ID, name); err == nil {
			f.Close()
			t.Errorf("%q was opened", name)
		} else if code := envelope.CodeOf(err); code != envelope.NoArtifact && code != envelope.PathNotAllowed {
			t.Errorf("%q: %v", name, err)
		}
	}
	f, info, err := s.OpenFile(r.ID, "att.json")
	if err != nil || info.Size() != 2 {
		t.Fatalf("%v", err)
	}
	f.Close()
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "leak")); err != nil {
		t.Fatal(err)
	}
	if f, _, err := s.OpenFile(r.ID, "leak"); err == nil {
		f.Close()
		t.Error("a link out of the run was followed")
	}
	files, err := s.Files(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == "leak" {
			t.Error("a link out of the run is in the manifest")
		}
	}
}

func TestTornRunFile(t *testing.T) {
	s := open(t)
	r := create(t, s, "softmax")
	if err := os.WriteFile(filepath.Join(s.Path(r.ID), "run.json"), []byte(`{"run_id": "soft`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(r.ID); err == nil {
		t.Error("a torn run.json was read")
	}
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(file, "runs"), launch.Local{})
	if err != nil {
		t.Fatalf("a server must start also where the runs directory cannot be made: %v", err)
	}
	if _, err := s.Lock(t.Context()); envelope.CodeOf(err) != envelope.StoreUnwritable {
		t.Errorf("%v", err)
	}
}

func TestCancelRequest(t *testing.T) {
	s := open(t)
	r := create(t, s, "softmax")
	if _, asked := s.CancelRequested(r.ID); asked {
		t.Error("nobody asked")
	}
	if err := s.RequestCancel(r.ID, "because"); err != nil {
		t.Fatal(err)
	}
	if c, asked := s.CancelRequested(r.ID); !asked || c.Reason != "because" {
		t.Errorf("%+v %v", c, asked)
	}
}

// TestRecover ends a run whose supervisor is dead, with the process that it left, and leaves others alone.
func TestRecover(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("leftovers are found by /proc")
	}
	s := open(t)
	dead := create(t, s, "dead")
	child, err := launch.Local{}.Start(launch.Command{Argv: []string{"sleep", "600"}, Env: os.Environ(), Dir: t.TempDir()}, dead.Token)
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead.State, dead.Groups = Running, []launch.ID{child.ID()}
	dead.Supervisor = launch.ID{PID: gone.Process.Pid, Start: 1}
	if err := s.Save(dead); err != nil {
		t.Fatal(err)
	}
	living := create(t, s, "living")
	living.State, living.Supervisor = Running, launch.Identify(os.Getpid())
	if err := s.Save(living); err != nil {
		t.Fatal(err)
	}
	foreign := create(t, s, "foreign")
	foreign.State, foreign.Host, foreign.Supervisor = Running, "another-host", dead.Supervisor
	if err := s.Save(foreign); err != nil {
		t.Fatal(err)
	}
	salvage := func(_ context.Context, r Run) Result {
		return Result{Error: envelope.Build(envelope.RunInterrupted, envelope.Facts{Message: "killed", RunID: r.ID})}
	}
	recovered, err := s.RecoverAll(t.Context(), salvage)
	if err != nil || len(recovered) != 1 || recovered[0] != dead.ID {
		t.Fatalf("%v %v", recovered, err)
	}
	if r, err := s.Load(dead.ID); err != nil || r.State != Interrupted || r.Code != envelope.RunInterrupted {
		t.Errorf("%+v %v", r, err)
	}
	select {
	case <-child.Done():
	case <-time.After(20 * time.Second):
		t.Error("the leftover lives")
	}
	for _, other := range []Run{living, foreign} {
		if r, err := s.Load(other.ID); err != nil || r.State != Running {
			t.Errorf("a run that was none of ours to end: %+v %v", r, err)
		}
	}
}

// TestUnborn: a run whose server went away before a supervisor took it is left alone at first, since that may be on its way, and
// ended later.
func TestUnborn(t *testing.T) {
	s := open(t)
	now := time.Now()
	s.now = func() time.Time { return now }
	r := create(t, s, "softmax")
	r.Server = launch.ID{PID: 1 << 22, Start: 1}
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	salvage := func(context.Context, Run) Result { return Result{} }
	if did, err := s.Recover(t.Context(), r.ID, salvage); did || err != nil {
		t.Errorf("recovered at once: %v %v", did, err)
	}
	now = now.Add(orphanGrace + time.Second)
	if did, err := s.Recover(t.Context(), r.ID, salvage); !did || err != nil {
		t.Errorf("not recovered later: %v %v", did, err)
	}
}

// TestOwn: a run is driven by one process at a time.
func TestOwn(t *testing.T) {
	s := open(t)
	r := create(t, s, "softmax")
	release, err := s.Own(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Own(r.ID); err == nil {
		t.Error("a run has two owners")
	}
	release()
	again, err := s.Own(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"run_id":"x","state":"done"}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Open(t.TempDir(), launch.Local{})
		if err != nil {
			t.Fatal(err)
		}
		const id = "softmax-20260101T000000Z-aaaaaa"
		if err := os.MkdirAll(s.Path(id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Path(id), "run.json"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Load(id); err == nil && r.ID != id {
			t.Errorf("a run.json of another run was taken: %q", r.ID)
		}
	})
}
