package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// figures are what a capture says of a trace, worked out by a reader of this test's own.
type figures struct {
	waves, ins, mapped        int
	hit, latency, stall, idle float64
	null                      bool
}

// plainly reads code.json and filenames.json with encoding/json and nothing of the project. The recorded directories hold one
// code object with hits each, so that one is the traced kernel's.
func plainly(t *testing.T, dir string) figures {
	t.Helper()
	var f figures
	var code struct {
		Code   [][]any `json:"code"`
		Header any     `json:"header"`
	}
	read(t, filepath.Join(dir, "code.json"), &code)
	var manifest struct {
		Waves map[string]map[string]map[string]map[string]any `json:"wave_filenames"`
	}
	read(t, filepath.Join(dir, "filenames.json"), &manifest)
	for _, se := range manifest.Waves {
		for _, simd := range se {
			for _, slot := range simd {
				f.waves += len(slot)
			}
		}
	}
	f.null = code.Code == nil
	hits := map[float64]float64{}
	for _, r := range code.Code {
		hits[r[4].(float64)] += r[6].(float64)
	}
	traced, most := 0.0, -1.0
	for object, n := range hits {
		if n > most {
			traced, most = object, n
		}
	}
	for _, r := range code.Code {
		isa, source := r[0].(string), r[3].(string)
		if r[4].(float64) != traced || isa == "" || strings.HasPrefix(isa, ";") || strings.HasPrefix(isa, "label") || strings.HasSuffix(isa, ":") {
			continue
		}
		f.ins++
		if source != "" {
			f.mapped++
		}
		f.hit += r[6].(float64)
		f.latency += r[7].(float64)
		f.stall += r[8].(float64)
		f.idle += r[9].(float64)
	}
	return f
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestReplay hands every recorded real capture out as the result of a run, through the whole program, and compares what the
// envelope says with a plain reading of the files.
func TestReplay(t *testing.T) {
	root := recorded.Traces(t)
	var dirs []string
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "ui_output_agent_") {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d recorded directories, %v", len(dirs), err)
	}
	dirs = append(dirs, filepath.Join(root, "variants", "pc_sampling_13_columns"))
	for _, dir := range dirs {
		name, _ := filepath.Rel(root, dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := plainly(t, dir)
			s := simulated(t, "", "--replay", dir)
			a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
			if a.Error != nil && a.Error.Code == "NO_KERNEL_DISCOVERED" {
				// The worktree's test launches the recorded kernel, which it does not define: naming it is the next action.
				a = s.capture(a.Error.NextActions[0].Arguments)
			}
			if want.null {
				if a.Error == nil || a.Error.Code != "EMPTY_ATT" || a.Error.Class != "empty" {
					t.Errorf("a null trace: %s", a.raw)
				}
				return
			}
			if name == filepath.Join("variants", "pc_sampling_13_columns") {
				if a.Error == nil || a.Error.Code != "TRACE_CORRUPT" || !strings.Contains(a.Error.Message, "PC samples") {
					t.Errorf("PC samples: %s", a.raw)
				}
				return
			}
			if !a.OK {
				t.Fatalf("%s", a.raw)
			}
			got := figures{
				waves: whole(a.get("tags.big.waves")), ins: whole(a.get("tags.big.ins")), mapped: whole(a.get("tags.big.mapped")),
				hit: number(a.get("tags.big.hitcount")), latency: number(a.get("tags.big.latency")), stall: number(a.get("tags.big.stall")), idle: number(a.get("tags.big.idle")),
			}
			if got != want {
				t.Errorf("the envelope says %+v and the files %+v", got, want)
			}
			if strings.Contains(dir, "waves_missing") && !strings.Contains(string(a.raw), "WAVES_MISSING") {
				t.Errorf("the wave files are missing and no warning says so: %s", a.raw)
			}
			pct := number(a.get("tags.big.mapped_pct"))
			if want.ins > 0 && math.Abs(pct-100*float64(want.mapped)/float64(want.ins)) > 0.05 {
				t.Errorf("mapped_pct is %v of %d/%d", pct, want.mapped, want.ins)
			}
			kept, _ := a.get("tags.big.kept_dir").(string)
			same(t, filepath.Join(dir, "code.json"), filepath.Join(s.runs, a.Bundle, filepath.FromSlash(kept), "code.json"))
		})
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil || string(x) != string(y) {
		t.Errorf("%s is not what was recorded: %v", b, err)
	}
}

func number(v any) float64 {
	f, _ := v.(float64)
	return f
}

func whole(v any) int { return int(number(v)) }
