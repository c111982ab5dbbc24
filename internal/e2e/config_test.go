package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestConfigurationFile: a server whose only setting is its file captures by it, and the supervisor goes by the same settings.
func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, []byte("runs-dir = \"runs\"\nsimulate = \"gfx942\"\nstop_grace = 3\nlog-level = \"error\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, code := cli(t, []string{"FLYPROF_CONFIG=" + file}, "capture", "softmax", "--shape", "8192,8192")
	if code != 0 || !done.OK {
		t.Fatalf("exit %d: %s", code, done.raw)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "runs", done.Bundle, "plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		StopGraceS int `json:"stop_grace_s"`
	}
	if err := json.Unmarshal(raw, &plan); err != nil || plan.StopGraceS != 3 {
		t.Errorf("%v: the supervisor's grace is %d s", err, plan.StopGraceS)
	}
	if p, _ := done.Data["provenance"].(map[string]any); p["arch"] != "gfx942" {
		t.Errorf("the provenance is %v", p)
	}
	overruled, code := cli(t, []string{"FLYPROF_CONFIG=" + file, "FLYPROF_SIMULATE=gfx950"}, "capture", "softmax", "--shape", "8192,8192")
	if p, _ := overruled.Data["provenance"].(map[string]any); code != 0 || p["arch"] != "gfx950" {
		t.Errorf("exit %d, with the environment against the file: %s", code, overruled.raw)
	}
}
