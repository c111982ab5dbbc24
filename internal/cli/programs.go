package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// findPrograms gives where programs are looked for, and the worktree in force. With a simulated GPU the programs are
// stand-ins, and the worktree is the demo's where none was set.
func findPrograms(c config.Config, log *slog.Logger) (capture.Finder, string, error) {
	finder := capture.Finder{Rocprofv3: c.Rocprofv3, Python: c.Python, ATTLibraryPath: c.ATTLibraryPath, Getenv: os.Getenv}
	worktree := c.Worktree
	if worktree != "" {
		abs, err := filepath.Abs(worktree)
		if err != nil {
			return finder, "", invalidSetting("worktree", "FLYPROF_WORKTREE", worktree, "a directory", err)
		}
		worktree = abs
	}
	if c.Simulate == "" {
		return finder, worktree, nil
	}
	settings, err := simulation(c)
	if err != nil {
		return finder, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return finder, "", fmt.Errorf("the path of this program: %w", err)
	}
	finder.SimulatedGPUs = sim.GPUs
	finder.Simulated = &capture.Tools{
		Rocprofv3: sim.Tool(self, "rocprofv3"), Python: sim.Tool(self, "python3"), Env: settings.Environ(), Simulated: settings.Arch,
	}
	if worktree == "" {
		if worktree, err = demoWorktree(c.RunsDir); err != nil {
			return finder, "", err
		}
		log.Debug("the demo worktree is used", "dir", worktree)
	}
	return finder, worktree, nil
}

// simulation reads the switches of the simulated GPU.
func simulation(c config.Config) (sim.Settings, error) {
	s := sim.Settings{Arch: c.Simulate, Seed: c.Seed}
	var err error
	if s.Faults, err = sim.ParseFaults(c.Fault); err != nil {
		return s, invalidSetting("fault", "FLYPROF_FAULT", c.Fault, "names of faults, separated by commas", err)
	}
	if c.Replay == "" {
		return s, nil
	}
	if s.Replay, err = filepath.Abs(c.Replay); err != nil {
		return s, invalidSetting("replay", "FLYPROF_REPLAY", c.Replay, "a ui_output directory", err)
	}
	if _, err := os.Stat(filepath.Join(s.Replay, "code.json")); err != nil {
		return s, invalidSetting("replay", "FLYPROF_REPLAY", c.Replay, "a ui_output directory, which has a code.json", err)
	}
	return s, nil
}

// demoWorktree gives the demo checkout beside the runs, and writes it where it is missing. Its name is made of its content:
// servers of several versions may share a runs directory, and none sees another's half-written files.
func demoWorktree(runsDir string) (string, error) {
	base := filepath.Join(runsDir, ".demo")
	dir := filepath.Join(base, "worktree-"+sim.DemoSum())
	if recorded, err := os.ReadFile(dir + ".sum"); err == nil {
		if sum, err := treeSum(dir); err == nil && sum == string(recorded) {
			return dir, nil
		}
	}
	unwritable := func(err error) error {
		return invalidSetting("runs-dir", "FLYPROF_RUNS_DIR", runsDir, "a directory that can be written, for the demo worktree", err)
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", unwritable(err)
	}
	fresh, err := os.MkdirTemp(base, ".new-")
	if err != nil {
		return "", unwritable(err)
	}
	defer os.RemoveAll(fresh)
	if err := sim.WriteDemoWorktree(fresh); err != nil {
		return "", unwritable(err)
	}
	sum, err := treeSum(fresh)
	if err != nil {
		return "", unwritable(err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if have, sumErr := treeSum(dir); sumErr != nil || have != sum {
			return "", fmt.Errorf("the demo worktree %s was changed and is in the way: remove it (%w)", dir, err)
		}
	}
	return dir, os.WriteFile(dir+".sum", []byte(sum), 0o644)
}

// treeSum hashes names and contents of a small tree.
func treeSum(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), len(text))
		h.Write(text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}
