package e2e

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
)

// TestExport: the profile of a run has the sums that its capture reported; a file that is there is not written over.
func TestExport(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "softmax"})
	if !a.OK {
		t.Fatalf("%s", a.raw)
	}
	file := filepath.Join(t.TempDir(), "trace.pb.gz")
	export := func(args ...string) (string, error) {
		cmd := exec.Command(binary, append([]string{"export", a.Bundle, "--runs-dir", s.runs, "--simulate", "-o", file}, args...)...)
		cmd.Env = environ()
		out, err := cmd.Output()
		return string(out), err
	}
	if out, err := export(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, sample := range p.Sample {
		for i, v := range sample.Value {
			sums[p.SampleType[i].Type] += float64(v)
		}
	}
	for _, name := range []string{"stall", "latency", "idle", "hitcount"} {
		if sums[name] != a.get("tags.big."+name) {
			t.Errorf("%s is %v in the profile and %v in the answer", name, sums[name], a.get("tags.big."+name))
		}
	}
	// The same as a resource, in pages.
	var blob []byte
	for offset := 0.0; ; {
		page := s.call("flyprof_read", map[string]any{"uri": "flyprof://exports/" + a.Bundle + "/big/pprof", "offset": offset})
		text, _ := page.get("base64").(string)
		part, err := base64.StdEncoding.DecodeString(text)
		if !page.OK || err != nil || len(part) == 0 {
			t.Fatalf("%v %.500s", err, page.raw)
		}
		blob = append(blob, part...)
		next, more := page.get("next_offset").(float64)
		if !more {
			break
		}
		offset = next
	}
	if p, err := profile.Parse(bytes.NewReader(blob)); err != nil || len(p.Sample) == 0 {
		t.Errorf("the resource: %v", err)
	}
	for uri, code := range map[string]string{"/big/svg": "BAD_ARGS", "/small/csv": "NO_ARTIFACT", "/big/csv/x": "NO_ARTIFACT"} {
		if page := s.call("flyprof_read", map[string]any{"uri": "flyprof://exports/" + a.Bundle + uri}); page.Error == nil || page.Error.Code != code {
			t.Errorf("%s: %.400s", uri, page.raw)
		}
	}
	if out, err := export(); err == nil {
		t.Errorf("written over: %s", out)
	}
	if out, err := export("--force", "--format", "csv"); err != nil {
		t.Errorf("%v %s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".flyprof-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
