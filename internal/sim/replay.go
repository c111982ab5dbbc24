package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A replayed directory is somebody else's: only regular files are read, within these bounds.
const (
	maxReplayFiles = 200_000
	maxHeadBytes   = 1 << 20
	maxOccupancy   = 256 << 20
)

// headerRow finds the kernel's row in code.json, compact or pretty.
var headerRow = regexp.MustCompile(`\[\s*"; ?((?:[^"\\]|\\.)+)"`)

// replaySymbol names the workload's first own kernel after the recorded one, so that discovery lists what the trace holds.
// The recorded name comes from code.json's header row or else from the kernel with most waves in occupancy.json; where
// neither has one the test's own name stays.
func (r *run) replaySymbol(groups [][]planned) error {
	if info, err := os.Lstat(r.set.Replay); err != nil || !info.IsDir() {
		return fmt.Errorf("flyprof-mcp: %s: %s is no directory", envReplay, r.set.Replay)
	}
	symbol := recordedSymbol(r.set.Replay)
	for _, group := range groups {
		for i, l := range group {
			if l.baseline {
				continue
			}
			if symbol != "" {
				l.object.kernel = symbol
			}
			group[i].calls = max(l.calls, 12)
			return nil
		}
	}
	return errors.New("flyprof-mcp: the test launches no kernel that could stand for the recorded one")
}

func recordedSymbol(dir string) string {
	if head, err := readRegular(filepath.Join(dir, "code.json"), maxHeadBytes, true); err == nil {
		if m := headerRow.FindSubmatch(head); m != nil {
			var name string
			if json.Unmarshal([]byte(`"`+string(m[1])+`"`), &name) == nil {
				return strings.TrimSpace(name)
			}
		}
	}
	data, err := readRegular(filepath.Join(dir, "occupancy.json"), maxOccupancy, false)
	if err != nil {
		return ""
	}
	return busiestKernel(data)
}

// busiestKernel gives the name with most rows in an occupancy.json; names such as "6 / 0x26c00" are no symbols.
func busiestKernel(data []byte) string {
	var file map[string]json.RawMessage
	if json.Unmarshal(data, &file) != nil {
		return ""
	}
	var names map[string]string
	if json.Unmarshal(file["dispatches"], &names) != nil {
		return ""
	}
	const kernelColumn = 5
	counts := map[string]int{}
	for key, raw := range file {
		if _, err := strconv.Atoi(key); err != nil {
			continue
		}
		var rows [][]any
		if json.Unmarshal(raw, &rows) != nil {
			continue
		}
		for _, row := range rows {
			if len(row) > kernelColumn {
				counts[fmt.Sprint(row[kernelColumn])]++
			}
		}
	}
	best, most := "", 0
	for id, n := range counts {
		name := names[id]
		if name == "" || strings.Contains(name, " / 0x") {
			continue
		}
		if n > most || n == most && name < best {
			best, most = name, n
		}
	}
	return best
}

// readRegular reads a regular file that is no symbolic link, at most limit bytes; head takes just the beginning of a
// longer file, which is otherwise an error.
func readRegular(path string, limit int64, head bool) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || (!head && info.Size() > limit) {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", filepath.Base(path), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// replay hands out the recorded directory, byte for byte, under this run's agent and dispatch, with its stats CSV where
// that lies beside it.
func (s *session) replay(d dispatch) {
	from, to := filepath.Clean(s.set.Replay), filepath.Join(s.cfg.dir, s.uiName(d))
	f, err := os.Open(from)
	if err != nil {
		s.log('E', "replay:1", "cannot read the recorded directory: %v", err)
		return
	}
	defer f.Close()
	for se := range s.model.ses() {
		if s.cfg.seMask&(1<<se) != 0 {
			// One engine with some work: the raw trace of a recording is not at hand.
			s.writeRaw(s.gpu, d, []engineTrace{{se: se, rows: make([]waveRow, 1), stepsSum: 1000}})
			break
		}
	}
	copied := 0
	for copied < maxReplayFiles && s.failed == nil {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if e.Type().IsRegular() {
				s.copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
				copied++
			}
		}
		if err != nil {
			break
		}
	}
	stats := filepath.Join(filepath.Dir(from), "stats_"+filepath.Base(from)+".csv")
	if info, err := os.Lstat(stats); err == nil && info.Mode().IsRegular() {
		s.copyFile(stats, filepath.Join(s.cfg.dir, "stats_"+s.uiName(d)+".csv"))
	}
}

func (s *session) copyFile(from, to string) {
	s.write(to, false, func(w io.Writer) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}
