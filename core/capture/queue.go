package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gofrs/flock"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// holder is written beside the lock for whoever waits. It decides nothing: the lock is the kernel's, and is gone with its
// process.
type holder struct {
	RunID string    `json:"run_id"`
	PID   int       `json:"pid"`
	User  string    `json:"user,omitempty"`
	Since time.Time `json:"since"`
}

func (h holder) String() string {
	if h.PID == 0 {
		return "another run"
	}
	text := fmt.Sprintf("run %s (process %d", h.RunID, h.PID)
	if h.User != "" {
		text += ", user " + h.User
	}
	return text + ", since " + h.Since.Format(time.RFC3339) + ")"
}

// queueEvery is how often a queued run looks whether the GPU is free.
const queueEvery = 200 * time.Millisecond

// errQueueOver is the cause when a run waited for the GPU as long as it may.
var errQueueOver = errors.New("the GPU was not free in time")

// takeGPU waits until no other run of this host uses the GPU. Thread traces of two processes on one GPU spoil each other.
//
// Errors: GPU_BUSY naming the holder after limit; the cause of ctx when that ends first.
func (d *driver) takeGPU(ctx context.Context, limit time.Duration) (release func(), err error) {
	var lock *flock.Flock
	var path string
	for _, dir := range d.plan.LockDirs {
		if path, err = lockFile(dir, lockKey(d.plan.GPU)); err == nil {
			lock, err = openLock(path)
		}
		if err == nil {
			break
		}
	}
	if lock == nil {
		d.warn("GPU_NOT_LOCKED", fmt.Sprintf("the GPU cannot be locked, so other runs are not kept away: %v", err))
		return func() {}, nil
	}
	waiting, stop := context.WithTimeoutCause(ctx, limit, errQueueOver)
	defer stop()
	ok, err := lock.TryLockContext(waiting, queueEvery)
	switch {
	case ok:
		d.writeHolder(path)
		return func() { _ = lock.Close() }, nil
	case errors.Is(context.Cause(waiting), errQueueOver):
		_ = lock.Close()
		who := readHolder(path)
		return nil, d.fail(envelope.GPUBusy, envelope.Facts{
			Message:  fmt.Sprintf("the GPU was in use for %.0f s by %s", limit.Seconds(), who),
			Evidence: envelope.Evidence{Holder: who.String(), Path: path, LimitS: limit.Seconds(), Phase: d.run.Phase},
		})
	case context.Cause(waiting) != nil:
		_ = lock.Close()
		return nil, context.Cause(waiting)
	}
	_ = lock.Close()
	return nil, fmt.Errorf("the lock of the GPU: %w", err)
}

var unsafeKey = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// lockKey names the GPU in a way that all users of the host share: its address, which no mask renumbers.
func lockKey(g GPU) string {
	if g.BDF != "" {
		return unsafeKey.ReplaceAllString(g.BDF, "_")
	}
	return fmt.Sprintf("kfd%d", g.KFD)
}

// lockFile makes the lock file where it is missing. It is never removed: a lock on a removed file keeps nobody away. The
// directory is shared like /tmp.
func lockFile(dir, key string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	_ = os.Chmod(dir, os.ModeSticky|0o777) // of whoever made it; others find it so
	path := filepath.Join(dir, "gpu-"+key+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is no regular file", path)
		}
		return path, err
	}
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Chmod(0o666), f.Close())
}

// openLock opens without O_CREATE: in a sticky directory the kernel refuses that for another user's file
// (fs.protected_regular). A file that may only be read can be locked too.
func openLock(path string) (*flock.Flock, error) {
	for _, flag := range []int{os.O_RDWR, os.O_RDONLY} {
		f, err := os.OpenFile(path, flag, 0)
		if err == nil {
			return flock.New(path, flock.SetFlag(flag)), f.Close()
		}
		if flag == os.O_RDONLY {
			return nil, err
		}
	}
	return nil, fs.ErrPermission
}

// writeHolder says who holds the GPU. Failing is no matter.
func (d *driver) writeHolder(path string) {
	h := holder{RunID: d.run.ID, PID: os.Getpid(), User: os.Getenv("USER"), Since: time.Now().UTC().Truncate(time.Second)}
	b, err := json.Marshal(h)
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	_, _ = f.Write(append(b, '\n'))
	_ = f.Close()
}

// readHolder reads who holds the GPU; the text is another user's and is bounded.
func readHolder(path string) holder {
	var h holder
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	b := make([]byte, 1024)
	n, _ := f.Read(b)
	if json.Unmarshal(b[:n], &h) != nil || len(h.RunID) > 120 || len(h.User) > 64 {
		return holder{}
	}
	return h
}

// LockDirs are where the locks of this host's GPUs are, in a directory that all users share: the setting alone when it is given,
// else /run/lock, and where that is root's own, the directory for temporary files.
func LockDirs(setting string) []string {
	if setting != "" {
		return []string{setting}
	}
	return []string{"/run/lock/flyprof", filepath.Join(os.TempDir(), "flyprof-locks")}
}
