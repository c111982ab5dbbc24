package rocprof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write makes files of a size below dir; a name that ends in / is a directory.
func write(t *testing.T, dir string, files map[string]int) {
	t.Helper()
	for name, size := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if name[len(name)-1] == '/' {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func relative(t *testing.T, dir string, paths []string) []string {
	t.Helper()
	var out []string
	for _, p := range paths {
		rel, err := filepath.Rel(dir, p)
		if err != nil || !filepath.IsAbs(p) {
			t.Fatalf("%s: not an absolute path below %s", p, dir)
		}
		out = append(out, filepath.ToSlash(rel))
	}
	return out
}

func TestFindOutputs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]int{
		"out_501_kernel_trace.csv": 1, "pass_1/out_kernel_trace.csv": 1, "gpuhost/77_kernel_trace.csv": 1, "kernel_trace.csv": 1,
		"out_kernel_stats.csv": 1, "out_domain_stats.csv": 1, "out_agent_info.csv": 1, "pass_1/out_counter_collection.csv": 0,
		"out_results.json": 1, "out_results.db": 1,
		"out_501_14219_shader_engine_10_44.att": 90000, "out_501_14219_shader_engine_2_44.att": 424, "14219_shader_engine_0_9.att": 425,
		"ui_output_agent_14219_dispatch_13/code.json": 5, "ui_output_agent_14219_dispatch_9/kernel_trace.csv": 5, "ui_output_agent_200_dispatch_13/": 0,
		"stats_ui_output_agent_14219_dispatch_13.csv": 1,
		"out_501_gfx950_code_object_id_12.out":        3, "out_501_gfx950_code_object_id_2.out": 3,
		// None of these is an output.
		"ui_output_agent_x_dispatch_1/code.json": 1, "notkernel_trace.csv": 1, "out_kernel_trace.csv.tmp": 1, "x.att": 1, "out_code_object_id_.out": 1, "workload.log": 1,
		"out_hip_api_trace.csv": 1, "out_kernel_trace.csv/": 0,
	})
	got, err := FindOutputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"kernel traces": {"gpuhost/77_kernel_trace.csv", "kernel_trace.csv", "out_501_kernel_trace.csv", "pass_1/out_kernel_trace.csv"},
		"kernel stats":  {"out_kernel_stats.csv"}, "domain stats": {"out_domain_stats.csv"}, "agents": {"out_agent_info.csv"}, "counters": {"pass_1/out_counter_collection.csv"},
		"json": {"out_results.json"}, "db": {"out_results.db"},
		"ui":        {"ui_output_agent_14219_dispatch_9", "ui_output_agent_200_dispatch_13", "ui_output_agent_14219_dispatch_13"},
		"att stats": {"stats_ui_output_agent_14219_dispatch_13.csv"},
		"objects":   {"out_501_gfx950_code_object_id_2.out", "out_501_gfx950_code_object_id_12.out"},
	}
	have := map[string][]string{
		"kernel traces": relative(t, dir, got.KernelTraces), "kernel stats": relative(t, dir, got.KernelStats), "domain stats": relative(t, dir, got.DomainStats),
		"agents": relative(t, dir, got.AgentInfos), "counters": relative(t, dir, got.Counters), "json": relative(t, dir, got.ResultsJSON), "db": relative(t, dir, got.Databases),
		"ui": relative(t, dir, got.UIDirs), "att stats": relative(t, dir, got.ATTStats), "objects": relative(t, dir, got.CodeObjects),
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	att := []ATTFile{
		{Path: filepath.Join(dir, "14219_shader_engine_0_9.att"), Bytes: 425, Agent: 14219, ShaderEngine: 0, Dispatch: 9},
		{Path: filepath.Join(dir, "out_501_14219_shader_engine_2_44.att"), Bytes: 424, Agent: 14219, ShaderEngine: 2, Dispatch: 44},
		{Path: filepath.Join(dir, "out_501_14219_shader_engine_10_44.att"), Bytes: 90000, Agent: 14219, ShaderEngine: 10, Dispatch: 44},
	}
	if diff := cmp.Diff(att, got.ATTFiles); diff != "" {
		t.Error(diff)
	}
	if got.Truncated || !got.ATTFiles[1].HeaderOnly() || got.ATTFiles[0].HeaderOnly() {
		t.Errorf("truncated %v, 424 bytes %v, 425 bytes %v", got.Truncated, got.ATTFiles[1].HeaderOnly(), got.ATTFiles[0].HeaderOnly())
	}
}

func TestFindOutputsFollowsNoLink(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]int{"a_kernel_trace.csv": 1, "ui_output_agent_1_dispatch_1/code.json": 1})
	for name, target := range map[string]string{
		"folder": outside, "b_kernel_trace.csv": filepath.Join(outside, "a_kernel_trace.csv"), "loop": dir,
		"ui_output_agent_1_dispatch_2": filepath.Join(outside, "ui_output_agent_1_dispatch_1"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	got, err := FindOutputs(dir)
	if err != nil || cmp.Diff(Outputs{}, got) != "" {
		t.Errorf("%+v, error %v, want nothing", got, err)
	}
}

func TestFindOutputsIsBounded(t *testing.T) {
	dir := t.TempDir()
	deep := dir
	for range maxOutputDepth {
		deep = filepath.Join(deep, "d")
	}
	write(t, deep, map[string]int{"in_kernel_trace.csv": 1, "d/out_kernel_trace.csv": 1})
	got, err := FindOutputs(dir)
	if err != nil || len(got.KernelTraces) != 1 || filepath.Base(got.KernelTraces[0]) != "in_kernel_trace.csv" || !got.Truncated {
		t.Errorf("%q, truncated %v, error %v", got.KernelTraces, got.Truncated, err)
	}

	many := t.TempDir()
	files := map[string]int{}
	for i := range 20 {
		files[fmt.Sprintf("%02d_kernel_trace.csv", i)] = 1
	}
	write(t, many, files)
	root, err := os.OpenRoot(many)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := finder{root: root, base: many, left: 12}
	if err := f.walk(".", 0); err != nil || len(f.out.KernelTraces) != 12 || !f.out.Truncated {
		t.Errorf("%d of 12, truncated %v, error %v", len(f.out.KernelTraces), f.out.Truncated, err)
	}
}

func TestFindOutputsMissing(t *testing.T) {
	if _, err := FindOutputs(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that it does not exist", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := FindOutputs(file); err == nil {
		t.Error("a file is no directory, and no error came")
	}
}

func TestFindOutputsOfARecordedRun(t *testing.T) {
	f := capture(t, "dispatches", "flash_attn_func")
	got, err := FindOutputs(f.Name())
	if err != nil || len(got.UIDirs) < 1 || filepath.Base(got.UIDirs[0]) != "ui_output_agent_32235_dispatch_44" {
		t.Errorf("%q, error %v", got.UIDirs, err)
	}
}
