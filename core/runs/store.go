package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
)

// maxStateFile bounds run.json, result.json and the small files beside them.
const maxStateFile = 8 << 20

// Store is a runs directory. It keeps nothing in memory: several processes may use one directory at the same time.
type Store struct {
	dir      string
	host     string
	bootID   string
	now      func() time.Time
	launcher launch.Launcher
}

// Open names a runs directory. Nothing is written before the first run, so that a server starts, and says what is wrong,
// also where the directory cannot be written.
func Open(dir string, launcher launch.Launcher) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, unwritable(dir, err)
	}
	host, _ := os.Hostname()
	return &Store{dir: abs, host: host, bootID: launch.BootID(), now: time.Now, launcher: launcher}, nil
}

// makeDirs makes the runs directory where it is missing. STORE_UNWRITABLE or DISK_FULL when it cannot be written.
func (s *Store) makeDirs() error {
	for _, sub := range []string{".active", ".keys"} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o755); err != nil {
			return unwritable(s.dir, err)
		}
	}
	return nil
}

// Dir is the runs directory, absolute.
func (s *Store) Dir() string { return s.dir }

// Path is a run's own directory.
func (s *Store) Path(id string) string { return filepath.Join(s.dir, id) }

func unwritable(dir string, err error) error {
	code, what := envelope.StoreUnwritable, "cannot be written"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		code, what = envelope.DiskFull, "has no room left"
	}
	return envelope.Build(code, envelope.Facts{
		Message:  fmt.Sprintf("the runs directory %s %s: %v", dir, what, err),
		Evidence: envelope.Evidence{Path: dir, Setting: "--runs-dir (FLYPROF_RUNS_DIR)"},
	}).WithCause(err)
}

// idPattern is the form of every run id: a slug, the time in UTC, six random characters.
var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,47}-\d{8}T\d{6}Z-[a-z0-9]{6}$`)

// ValidID says that a text has the form of a run id; it then is a plain directory name.
func ValidID(id string) bool { return idPattern.MatchString(id) }

func (s *Store) newID(kernel string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '_'
		}
	}, kernel)
	slug = strings.Trim(slug, "_")
	if len(slug) > 48 {
		slug = slug[:48]
	}
	if slug == "" {
		slug = "kernel"
	}
	return fmt.Sprintf("%s-%s-%s", slug, s.now().UTC().Format("20060102T150405Z"), strings.ToLower(rand.Text()[:6]))
}

// Lock takes the store's own lock, which makes looking for a run and creating one a single step across processes.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(s.dir, ".lock"))
	ok, err := l.TryLockContext(ctx, 10*time.Millisecond)
	if err != nil || !ok {
		return nil, unwritable(s.dir, fmt.Errorf("its lock cannot be taken: %w", err))
	}
	return func() { _ = l.Close() }, nil
}

// Create makes the directory of a new run, state queued, owned by this process until a supervisor takes it. The caller
// fills every field but those of identity and time. Call it under Lock.
func (s *Store) Create(r Run) (Run, error) {
	r.Schema, r.State, r.Created = 1, Queued, s.now().UTC()
	r.Host, r.BootID, r.Server, r.Token = s.host, s.bootID, launch.Identify(os.Getpid()), launch.NewToken()
	for {
		r.ID = s.newID(r.Request.Kernel)
		err := os.Mkdir(s.Path(r.ID), 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return r, unwritable(s.dir, err)
		}
		break
	}
	if r.Lineage == "" {
		r.Lineage = r.ID
	}
	for _, sub := range []string{"logs", "jobs"} {
		if err := os.Mkdir(filepath.Join(s.Path(r.ID), sub), 0o755); err != nil {
			return r, unwritable(s.dir, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Path(r.ID), reserveFile), make([]byte, reserveBytes), 0o600); err != nil {
		_ = os.RemoveAll(s.Path(r.ID)) // nothing was started for it
		return r, unwritable(s.dir, err)
	}
	// The marker comes first: a run without one would never be recovered.
	if err := os.WriteFile(filepath.Join(s.dir, ".active", r.ID), nil, 0o644); err != nil {
		return r, unwritable(s.dir, err)
	}
	if err := s.Save(r); err != nil {
		return r, err
	}
	for _, key := range []string{r.RequestKey, r.SameKey} {
		if err := s.SetKey(key, r.ID); err != nil {
			return r, err
		}
	}
	return r, nil
}

// SetKey makes a run the latest of a key; see Latest.
func (s *Store) SetKey(key, id string) error {
	return s.writeFile(filepath.Join(s.dir, ".keys", filepath.Base(key)), []byte(id))
}

// The reserve is room that a run keeps for its own end: a trace that fills the disk must not keep the answer from being written.
const (
	reserveFile  = ".reserve"
	reserveBytes = 256 << 10
)

// Save writes run.json. When the run has ended, its marker goes afterwards, so that a crash in between is recovered.
func (s *Store) Save(r Run) error {
	if err := s.WriteJSON(r.ID, "run.json", r); err != nil {
		return err
	}
	if r.State.Ended() {
		_ = os.Remove(filepath.Join(s.dir, ".active", r.ID))
	}
	return nil
}

// WriteJSON writes a small file into a run's directory, atomically.
func (s *Store) WriteJSON(id, name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("%s of run %s: %w", name, id, err)
	}
	return s.writeFile(filepath.Join(s.Path(id), name), append(b, '\n'))
}

// WriteText writes a small text into a run's directory, atomically.
func (s *Store) WriteText(id, name, text string) error {
	return s.writeFile(filepath.Join(s.Path(id), name), []byte(text))
}

func (s *Store) writeFile(path string, b []byte) error {
	if err := maybe.WriteFile(path, b, 0o644); err != nil {
		return unwritable(s.dir, err)
	}
	return nil
}

// ReadJSON reads a small file of a run's directory.
func (s *Store) ReadJSON(id, name string, v any) error {
	f, _, err := s.OpenFile(id, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.NewDecoder(limited(f)).Decode(v); err != nil {
		return s.Damaged(id, name, err.Error())
	}
	return nil
}

// Damaged is TRACE_CORRUPT about a file of a run's own record: somebody else wrote it, or the disk lost it.
func (s *Store) Damaged(id, name, why string) error {
	return envelope.Build(envelope.TraceCorrupt, envelope.Facts{
		Message:  fmt.Sprintf("%s of run %s is damaged: %s", name, id, why),
		Help:     "The run's record cannot be trusted any more; its other files may still be read. Capture again.",
		Evidence: envelope.Evidence{Path: filepath.Join(id, name), Found: why},
	})
}

// Load reads a run. RUN_NOT_FOUND when there is none of that id.
func (s *Store) Load(id string) (Run, error) {
	var r Run
	if !ValidID(id) {
		return r, s.notFound(id, "it does not have the form of a run id")
	}
	if _, err := os.Stat(s.Path(id)); err != nil {
		return r, s.notFound(id, "the runs directory has no such run")
	}
	if err := s.ReadJSON(id, "run.json", &r); err != nil {
		if _, markErr := os.Stat(filepath.Join(s.dir, ".active", id)); markErr == nil && envelope.CodeOf(err) == envelope.NoArtifact {
			return r, s.notFound(id, "it is just being created, or its creation was interrupted")
		}
		return r, err
	}
	if r.ID != id {
		return r, s.Damaged(id, "run.json", fmt.Sprintf("it names the run %.80q", r.ID))
	}
	return r, nil
}

func (s *Store) notFound(id, why string) error {
	return envelope.Build(envelope.RunNotFound, envelope.Facts{
		Message:  fmt.Sprintf("there is no run %q: %s", id, why),
		Evidence: envelope.Evidence{Field: "run_id", Value: id, Path: s.dir},
	})
}

// Active says that a run has not ended, by its marker alone: the marker goes after the end was written.
func (s *Store) Active(id string) bool {
	if !ValidID(id) {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, ".active", id))
	return err == nil
}

// Result reads the answer of an ended run.
func (s *Store) Result(id string) (Result, error) {
	var res Result
	err := s.ReadJSON(id, "result.json", &res)
	return res, err
}

// Finish writes the answer and then the terminal state, so that an ended run always has its answer.
func (s *Store) Finish(r Run, res Result) error {
	if res.Warnings == nil {
		res.Warnings = []envelope.Warning{}
	}
	if res.Error != nil {
		r.Code = res.Error.Code
	}
	r.Ended, r.Groups = s.now().UTC(), nil
	_ = os.Remove(filepath.Join(s.Path(r.ID), reserveFile))
	if err := s.WriteJSON(r.ID, "result.json", res); err != nil {
		return err
	}
	return s.Save(r)
}

// Latest gives the latest run of a key (request key, same key, or what SetKey was given), and false where there is none.
func (s *Store) Latest(key string) (Run, bool) {
	b, err := os.ReadFile(filepath.Join(s.dir, ".keys", filepath.Base(key)))
	if err != nil {
		return Run{}, false
	}
	r, err := s.Load(string(b))
	return r, err == nil
}

// IDs lists all runs, the newest first.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no run yet
	}
	if err != nil {
		return nil, unwritable(s.dir, err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && ValidID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	// The time stands after the slug: sort by what follows the first dash.
	when := func(id string) string { return id[strings.IndexByte(id, '-'):] }
	sort.Slice(ids, func(i, j int) bool { return when(ids[i]) > when(ids[j]) })
	return ids, nil
}

// RequestCancel asks a run's supervisor to stop it.
func (s *Store) RequestCancel(id, reason string) error {
	return s.WriteJSON(id, "cancel.json", CancelRequest{At: s.now().UTC(), Reason: reason})
}

// CancelRequested tells whether, and why, somebody asked for the run to stop.
func (s *Store) CancelRequested(id string) (CancelRequest, bool) {
	var c CancelRequest
	if _, err := os.Stat(filepath.Join(s.Path(id), "cancel.json")); err != nil {
		return c, false
	}
	if err := s.ReadJSON(id, "cancel.json", &c); err != nil {
		c.Reason = "cancel.json is there and cannot be read"
	}
	return c, true
}
