package artifact

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

const code = `{"code":[["; k",0,0,"",1,0,0,0,0,0],["s_endpgm",0,1,"a.py:3",1,4,2,8,4,0]],"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0"}`

// put writes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const both = `{"kernel":"k","tags":{"big":{"state":"done","shape":"8,8","kept_dir":"att/big/ui_output_agent_1_dispatch_9","grid":{"workgroups":64,"workgroup_size":256}},"small":{"state":"done","kept_dir":"att/small/ui_output_agent_1_dispatch_13"}},"pmc":[{"csv":["pmc/a.csv","../../../x.csv"]}],"provenance":{"arch":"gfx950","simulated":true}}`

// run makes an ended run with that data.
func run(t *testing.T, store *runs.Store, data string) string {
	t.Helper()
	unlock, err := store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r, err := store.Create(runs.Run{Request: request.Capture{Kernel: "k"}, RequestKey: "r", SameKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store.Path(r.ID), map[string]string{
		"att/big/ui_output_agent_1_dispatch_9/code.json": code, "att/big/ui_output_agent_1_dispatch_13/code.json": code, "att/small/ui_output_agent_1_dispatch_13/code.json": code, "pmc/a.csv": "x",
	})
	if data == "" {
		return r.ID
	}
	r.State = runs.Done
	if err := store.Finish(r, runs.Result{Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// TestFind: the kept directory of the tag that was asked for, as the run's record names it, and never another.
func TestFind(t *testing.T) {
	t.Parallel()
	store, err := runs.Open(t.TempDir(), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := Finder{Store: store, Resolve: func(_, path string) (string, error) { return path, nil }}
	two, one := run(t, store, both), run(t, store, strings.Replace(both, `"kept_dir":"att/small/ui_output_agent_1_dispatch_13"`, `"state":"skipped"`, 1))
	out, gone := run(t, store, strings.Replace(both, "att/big/ui", "../../../etc/ui", 1)), run(t, store, strings.Replace(both, "dispatch_9", "dispatch_7", 1))
	running := run(t, store, "")
	put(t, dir, map[string]string{
		"plain/ui_output_agent_1_dispatch_9/code.json": code, "several/ui_output_agent_1_dispatch_9/code.json": code, "several/ui_output_agent_1_dispatch_13/code.json": code,
		"several/ui_output_agent_1_dispatch_20/code.json": `{"code":null}`, "bundle/capture.json": both, "bundle/att/big/ui_output_agent_1_dispatch_9/code.json": code,
		"torn/capture.json": `{"kernel":`, "empty/readme": "",
	})
	for name, c := range map[string]struct {
		run, path, tag string
		dir, kernel    string
		code           envelope.Code
	}{
		"big by default":       {two, "", "", "att/big/ui_output_agent_1_dispatch_9", "k", ""},
		"small":                {two, "", "small", "att/small/ui_output_agent_1_dispatch_13", "k", ""},
		"no small":             {one, "", "small", "", "", envelope.NoArtifact},
		"outside":              {out, "", "", "", "", envelope.NoArtifact},
		"gone":                 {gone, "", "", "", "", envelope.NoArtifact},
		"it goes on":           {running, "", "", "", "", envelope.RunNotFinished},
		"no run":               {"none", "", "", "", "", envelope.RunNotFound},
		"none":                 {"", "", "", "", "", envelope.BadArgs},
		"both":                 {two, dir, "", "", "", envelope.BadArgs},
		"another tag":          {two, "", "medium", "", "", envelope.BadArgs},
		"a dispatch directory": {"", filepath.Join(dir, "plain", "ui_output_agent_1_dispatch_9"), "", "plain/ui_output_agent_1_dispatch_9", "", ""},
		"a folder with one":    {"", filepath.Join(dir, "plain"), "", "plain/ui_output_agent_1_dispatch_9", "", ""},
		"a bundle":             {"", filepath.Join(dir, "bundle"), "", "bundle/att/big/ui_output_agent_1_dispatch_9", "k", ""},
		"a bundle, small":      {"", filepath.Join(dir, "bundle"), "small", "", "", envelope.NoArtifact},
		"a torn record":        {"", filepath.Join(dir, "torn"), "", "", "", envelope.TraceCorrupt},
		"nothing":              {"", filepath.Join(dir, "empty"), "", "", "", envelope.NoArtifact},
		"no directory":         {"", filepath.Join(dir, "empty", "readme"), "", "", "", envelope.NoArtifact},
	} {
		got, err := f.Find(t.Context(), c.run, c.path, c.tag)
		root := dir
		if c.run != "" {
			root = store.Path(c.run)
		}
		if envelope.CodeOf(err) != c.code || c.code == "" && (relative(real(t, root), real(t, got.Dir)) != c.dir || got.Kernel != c.kernel) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	if got, err := f.Find(t.Context(), two, "", ""); err != nil || got.Workgroups != 64 || got.Arch != "gfx950" || !got.Simulated || len(got.Counters) != 1 || got.Shape != "8,8" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := f.Find(t.Context(), "", filepath.Join(dir, "several"), ""); err != nil || len(got.Others) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	outside := t.TempDir()
	put(t, outside, map[string]string{"code.json": code})
	link := filepath.Join(dir, "bundle", "att", "big", "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"bundle/capture.json": strings.Replace(both, "ui_output_agent_1_dispatch_9", "link", 1)})
	if got, err := f.Find(t.Context(), "", filepath.Join(dir, "bundle"), ""); envelope.CodeOf(err) != envelope.NoArtifact {
		t.Errorf("a link out was followed: %+v %v", got, err)
	}
}

func real(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
