// Package e2e holds tests that drive the built program as clients do: over standard input and output, with processes that
// are killed, and runs directories that are shared.
package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunbook(t *testing.T) {
	s := simulated(t, "")
	if a := s.call("flyprof_doctor", nil); a.get("verdict") != "ready" {
		t.Errorf("doctor: %s", a.raw)
	}
	list := s.call("flyprof_list", nil)
	names := map[string]bool{}
	kernels, _ := list.get("kernels").([]any)
	for _, k := range kernels {
		m := k.(map[string]any)
		names[m["kernel"].(string)] = true
		if src := m["recipe_source"]; src != "registry" && src != "synthesizable" {
			t.Errorf("%v has the recipe source %v", m["kernel"], src)
		}
	}
	if !names["softmax"] {
		t.Fatalf("list: %s", list.raw)
	}
	tile := s.call("flyprof_tile", map[string]any{"kernel": "softmax", "shape": "8192,8192", "dtype": "bf16"})
	if tile.get("recommended.regime") != "memory-bound" || tile.get("grid.tail_verdict") == nil {
		t.Errorf("tile: %s", tile.raw)
	}
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
	if !a.OK {
		t.Fatalf("capture: %s", a.raw)
	}
	for _, c := range a.get("checks").([]any) {
		if check := c.(map[string]any); check["pass"] != true {
			t.Errorf("check %v", check)
		}
	}
	if a.get("provenance.simulated") != true || a.get("match_confidence") != "exact" {
		t.Errorf("capture: %s", a.raw)
	}
	id := a.Bundle
	for _, name := range []string{"run.json", "capture.json", "result.json", "plan.json"} {
		if _, err := os.Stat(filepath.Join(s.runs, id, name)); err != nil {
			t.Error(err)
		}
	}

	// The status of an ended run is the envelope that capture gave, and so is its resource.
	status := s.call("flyprof_capture_status", map[string]any{"run_id": id})
	if string(status.raw) != string(a.raw) {
		t.Errorf("status answers\n%s\nand capture had answered\n%s", status.raw, a.raw)
	}
	if text := s.text("flyprof://runs/" + id); !sameJSON([]byte(text), a.raw) {
		t.Errorf("the resource is\n%s\nand capture had answered\n%s", text, a.raw)
	}

	var manifest struct{ Files []struct{ Path, URI string } }
	if err := json.Unmarshal([]byte(s.text("flyprof://runs/"+id+"/files")), &manifest); err != nil || len(manifest.Files) < 10 {
		t.Fatalf("manifest: %v, %d files", err, len(manifest.Files))
	}
	read := false
	for _, f := range manifest.Files {
		if strings.HasSuffix(f.Path, "/filenames.json") {
			read = true
			onDisk, err := os.ReadFile(filepath.Join(s.runs, id, filepath.FromSlash(f.Path)))
			if err != nil {
				t.Fatal(err)
			}
			page := s.call("flyprof_read", map[string]any{"uri": f.URI, "limit": 200})
			if got, _ := page.get("text").(string); got == "" || !strings.HasPrefix(string(onDisk), got) {
				t.Errorf("flyprof_read of %s gave %q", f.URI, got)
			}
		}
	}
	if !read {
		t.Error("the manifest has no filenames.json")
	}
}

// TestRepeat: the same request joins a run that goes on, and a failure that nothing changed is answered again.
func TestRepeat(t *testing.T) {
	runs := t.TempDir()
	s, other := simulated(t, runs, "--fault", "compile_fail"), simulated(t, runs, "--fault", "compile_fail")
	args := map[string]any{"kernel": "softmax", "shape": "8192,8192", "wait_s": 0}
	first := s.call("flyprof_capture", args)
	second := other.call("flyprof_capture", args)
	if first.get("run_id") == nil || (second.Bundle != first.Bundle) {
		t.Fatalf("two servers that were asked the same started %v and %v", first.Bundle, second.Bundle)
	}
	ended := s.wait(first)
	if ended.Error == nil || ended.Error.Code != "KERNEL_COMPILE_FAIL" {
		t.Fatalf("%s", ended.raw)
	}
	again := other.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
	if again.Bundle != first.Bundle || again.get("repeated") != true {
		t.Errorf("a failure that nothing changed ran again: %s", again.raw)
	}
	forced := other.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192", "force": true})
	if forced.Bundle == first.Bundle || forced.get("repeated") == true {
		t.Errorf("force did not run again: %s", forced.raw)
	}
}

func TestBadInput(t *testing.T) {
	s := simulated(t, "")
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		code string
		says string
	}{
		"unknown kernel":      {"flyprof_capture", map[string]any{"kernel": "softmux"}, "KERNEL_NOT_FOUND", "softmux"},
		"unknown argument":    {"flyprof_capture", map[string]any{"kernel": "softmax", "wait": 3}, "BAD_ARGS", "wait"},
		"bad shape":           {"flyprof_capture", map[string]any{"kernel": "softmax", "shape": "8192,-4"}, "BAD_ARGS", "-4"},
		"launch 0":            {"flyprof_capture", map[string]any{"kernel": "softmax", "iter_range": "0"}, "BAD_ARGS", "iter_range"},
		"worktree outside":    {"flyprof_list", map[string]any{"worktree": "/"}, "PATH_NOT_ALLOWED", "--allow-path"},
		"no such run":         {"flyprof_capture_status", map[string]any{"run_id": "softmax-20260101T000000Z-aaaaaa"}, "RUN_NOT_FOUND", "softmax-20260101T000000Z-aaaaaa"},
		"run id is a path":    {"flyprof_capture_status", map[string]any{"run_id": "../../etc"}, "RUN_NOT_FOUND", ".."},
		"resource outside":    {"flyprof_read", map[string]any{"uri": "flyprof://files/../../etc/passwd"}, "", ".."},
		"GPU far out":         {"flyprof_capture", map[string]any{"kernel": "softmax", "gpu": 256}, "BAD_ARGS", "gpu"},
		"invocation with sh":  {"flyprof_capture", map[string]any{"kernel": "softmax", "invocation": "bash -c 'rm -rf /'"}, "BAD_ARGS", "invocation"},
		"tile without shape":  {"flyprof_tile", map[string]any{"kernel": "softmax"}, "BAD_ARGS", "shape"},
		"tile of other dtype": {"flyprof_tile", map[string]any{"kernel": "softmax", "shape": "8192,8192,f32", "dtype": "bf16"}, "BAD_ARGS", "dtype"},
	} {
		a := s.call(c.tool, c.args)
		if a.Error == nil {
			t.Errorf("%s: succeeded: %s", name, a.raw)
			continue
		}
		if c.code != "" && a.Error.Code != c.code {
			t.Errorf("%s: %s", name, a.raw)
		}
		if !strings.Contains(string(a.raw), c.says) {
			t.Errorf("%s: the answer does not name %q: %s", name, c.says, a.raw)
		}
	}
	if ids, err := filepath.Glob(filepath.Join(s.runs, "*-*-*")); err != nil || len(ids) != 0 {
		t.Errorf("bad input left runs: %v %v", ids, err)
	}
}

// TestDamagedRecord: a record that somebody damaged is named, and is no bug of this program.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "8192,8192"})
	for _, name := range []string{"result.json", "run.json"} {
		path := filepath.Join(s.runs, a.Bundle, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"", "{", "[]", "{}", "\x00", string(good[:len(good)/2])} {
			if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"flyprof_capture_status", "flyprof_triage"} {
				b := s.call(tool, map[string]any{"run_id": a.Bundle})
				if b.Error != nil && (b.Error.Code != "TRACE_CORRUPT" || !strings.Contains(b.Error.Message, name)) || b.Error == nil && tool == "flyprof_capture_status" {
					t.Errorf("%s is %.20q: %s: %s", name, bad, tool, b.raw)
				}
			}
			if index := s.text("flyprof://runs"); !strings.Contains(index, "runs") {
				t.Errorf("the index is %q", index)
			}
		}
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b := s.call("flyprof_capture_status", map[string]any{"run_id": a.Bundle}); string(b.raw) != string(a.raw) {
		t.Errorf("the restored record: %s", b.raw)
	}
}
