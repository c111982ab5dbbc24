package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// recording writes a small dispatch directory of our own making.
func recording(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ui_output_agent_777_dispatch_3")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRecordedSymbol(t *testing.T) {
	occupied := `{"0":[[1,0,0,0,1,2],[2,0,0,0,0,2],[3,0,0,0,true,1]],"dispatches":{"0":"0 / 0x0","1":"less","2":"more"},"version":"3.0.0"}`
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"header row", map[string]string{"code.json": `{"code":[["; my_kernel_0",0,0,"",1,0,0,0,0,0]]}`}, "my_kernel_0"},
		{"pretty printed", map[string]string{"code.json": "{\n  \"code\": [\n    [\n      \"; k<int>\",\n      0\n"}, "k<int>"},
		{"escapes", map[string]string{"code.json": `{"code":[["; a\"b",0]]}`}, `a"b`},
		{"null code", map[string]string{"code.json": `{"code":null}`, "occupancy.json": occupied}, "more"},
		{"address only", map[string]string{"occupancy.json": `{"0":[[1,0,0,0,1,1]],"dispatches":{"1":"6 / 0x26c00"}}`}, ""},
		{"broken", map[string]string{"code.json": `{`, "occupancy.json": `[`}, ""},
		{"hostile rows", map[string]string{"occupancy.json": `{"0":[[],[1],"x"],"1":{},"dispatches":{"1":"k"}}`}, ""},
		{"nothing", nil, ""},
	}
	for _, tt := range tests {
		if got := recordedSymbol(recording(t, tt.files)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// replayed runs discovery and an ATT job on a recording and compares every file.
func replayed(t *testing.T, recorded, wantSymbol string) {
	t.Helper()
	worktree := demo(t)
	env := []string{"FLYPROF_REPLAY=" + recorded}
	dir, o := discover(t, worktree, env, softmaxTest)
	_, rows := readCSV(t, filepath.Join(dir, "discover_kernel_stats.csv"))
	calls := 0
	for _, r := range rows {
		if r["Name"] == wantSymbol {
			calls = number(t, r["Calls"])
		}
	}
	if calls < 12 {
		t.Fatalf("%s is launched %d times\n%s", wantSymbol, calls, o.text())
	}
	out, o := attJob(t, worktree, env, regexp.QuoteMeta(wantSymbol), `"att_gpu_index":"0","att_shader_engine_mask":"0xf","kernel_iteration_range":"4"`, softmaxTest)
	dirs := uiDirs(t, out)
	if len(dirs) != 1 || o.code != 0 {
		t.Fatalf("code %d, %v\n%s", o.code, dirs, o.text())
	}
	if !regexp.MustCompile(`/ui_output_agent_\d+_dispatch_\d+$`).MatchString(filepath.ToSlash(dirs[0])) || filepath.Base(dirs[0]) == filepath.Base(recorded) {
		t.Errorf("name %s", filepath.Base(dirs[0]))
	}
	entries, err := os.ReadDir(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		want = append(want, e.Name())
		a, errA := os.ReadFile(filepath.Join(recorded, e.Name()))
		b, errB := os.ReadFile(filepath.Join(dirs[0], e.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", e.Name(), errA, errB)
		}
	}
	if got := listing(t, dirs[0]); !slices.Equal(got, want) {
		t.Errorf("%d files, recorded %d", len(got), len(want))
	}
}

func TestReplayOfOwnRecording(t *testing.T) {
	recorded := recording(t, map[string]string{"code.json": `{"code":[["; other_kernel(int)",0,0,"",1,0,0,0,0,0]]}`, "filenames.json": "{}", "x y.bin": "\x00\xff"})
	stats := filepath.Join(filepath.Dir(recorded), "stats_"+filepath.Base(recorded)+".csv")
	if err := os.WriteFile(stats, []byte("CodeObj\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(recorded, "link.json")); err != nil {
		t.Skipf("symbolic links: %v", err)
	}
	if err := os.Mkdir(filepath.Join(recorded, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	replayed(t, recorded, "other_kernel(int)")
}

func TestReplayRefusesWhatIsNoDirectory(t *testing.T) {
	worktree := demo(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, o := discover(t, worktree, []string{"FLYPROF_REPLAY=" + file}, softmaxTest)
	if o.code != 1 || !bytes.Contains([]byte(o.stderr), []byte("is no directory")) {
		t.Errorf("%+v", o)
	}
}

func TestReplayOfRealRecordings(t *testing.T) {
	root := recorded.Traces(t)
	tests := []struct{ dir, symbol string }{
		{"dispatches/rmsnorm/big/ui_output_agent_19276_dispatch_18", "rmsnorm_kernel_0"},
		{"dispatches/hgemm_splitk/big/ui_output_agent_4716_dispatch_319", "hgemm_bf16_32x64x256_W1x2x2_S2_BT_BLDS1_AS1_SPK14_0"},
		{"dispatches/tk_gemm_gfx942_waves_missing/ui_output_agent_10045_dispatch_48", "_Z8micro_tk13micro_globals"},
		{"variants/solo_v3.1.0_prettyprinted/ui_output_agent_1_dispatch_1", "synthetic_kernel"},
	}
	for _, tt := range tests {
		t.Run(tt.symbol, func(t *testing.T) {
			dir := filepath.Join(root, filepath.FromSlash(tt.dir))
			if !fileExists(dir) {
				t.Skipf("%s is not there", tt.dir)
			}
			replayed(t, dir, tt.symbol)
		})
	}
}

// TestPlacementAgreesWithRecordings: in recorded gfx950 runs the CUs of an engine are among those that the model calls
// active, and neighbours on the ring of active CUs, as round robin from some first CU gives.
func TestPlacementAgreesWithRecordings(t *testing.T) {
	root := recorded.Traces(t)
	model := gpus["gfx950"]
	dirs, err := filepath.Glob(filepath.Join(root, "dispatches", "*", "*", "ui_output_agent_*"))
	if err != nil || len(dirs) == 0 {
		t.Skip("no recorded dispatches")
	}
	engines := 0
	for _, dir := range dirs {
		rows, _ := occupancy(t, dir)
		for se, list := range rows {
			active := model.activePerSE[se%4]
			used := make([]bool, len(active))
			for _, r := range list {
				at := slices.Index(active, int(r[1]))
				if at < 0 {
					t.Errorf("%s: SE %d used CU %d, the model has %v", filepath.Base(dir), se, r[1], active)
					continue
				}
				used[at] = true
			}
			gaps := 0
			for i := range used {
				if used[i] && !used[(i+1)%len(used)] {
					gaps++
				}
			}
			if gaps > 1 {
				t.Errorf("%s: SE %d: CUs %v are no arc of the ring", filepath.Base(dir), se, used)
			}
			engines++
		}
	}
	t.Logf("%d dispatches, %d engines", len(dirs), engines)
}
