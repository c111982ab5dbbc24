package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

// Bounds on a list of launches that is taken over from another run: older ones may be of another driver, larger ones cost more than
// they save.
const (
	maxDiscoveryAge   = 24 * time.Hour
	maxDiscoveryBytes = 64 << 20
)

// offerDiscovery notes that this run's list of launches may be used by others. Failing is no matter: they make their own.
func (d *driver) offerDiscovery() {
	if d.plan.DiscoverKey == "" {
		return
	}
	if err := d.store.SetKey(d.plan.DiscoverKey, d.run.ID); err != nil {
		d.log.Warn("the list of launches is not offered to later runs", "err", err)
	}
}

// reuseDiscovery copies the list of launches of an earlier run whose outcome depended on the same things, so that this run's record is
// whole by itself. It says false where there is none, or where the caller asked for a new one.
func (d *driver) reuseDiscovery(out string) (bool, error) {
	if d.plan.DiscoverKey == "" || d.run.Request.Rediscover {
		return false, nil
	}
	before, ok := d.store.Latest(d.plan.DiscoverKey)
	if !ok || before.ID == d.run.ID || time.Since(before.Created) > maxDiscoveryAge || before.Host != d.run.Host {
		return false, nil
	}
	files, err := rocprof.FindOutputs(filepath.Join(d.store.Path(before.ID), "discover"))
	if err != nil || len(files.KernelTraces) == 0 {
		return false, nil
	}
	for _, path := range append(files.KernelTraces, files.AgentInfos...) {
		if err := d.copyOf(before.ID, path, out); err != nil {
			d.log.Info("the list of launches of an earlier run is not used", "run", before.ID, "err", err)
			return false, d.emptyDir(out)
		}
	}
	d.data.Discovery = &Discovery{ReusedFrom: before.ID, At: before.Created}
	return true, nil
}

// copyOf copies a file of another run; the store opens it, so that no link leads out.
func (d *driver) copyOf(id, path, out string) error {
	rel, err := filepath.Rel(d.store.Path(id), path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return fmt.Errorf("%s is not of the run", filepath.Base(path))
	}
	from, info, err := d.store.OpenFile(id, filepath.ToSlash(rel))
	if err != nil {
		return err
	}
	defer from.Close()
	if info.Size() > maxDiscoveryBytes {
		return fmt.Errorf("%s has %d bytes", filepath.Base(path), info.Size())
	}
	to, err := os.OpenFile(filepath.Join(out, filepath.Base(path)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, maxDiscoveryBytes))
	return errors.Join(err, to.Close())
}

// emptyDir makes a directory of this run anew.
func (d *driver) emptyDir(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}
