package sim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The types below are the tests' own reading of a dispatch directory; they share nothing with the code that writes it.
type (
	readCode struct {
		Code   [][]any
		Header string
	}
	readNames struct {
		WaveFilenames map[string]map[string]map[string]map[string][]any `json:"wave_filenames"`
	}
	readWave struct {
		Duration    int64
		Name        string
		NumInsts    int `json:"num_insts"`
		NumStitched int `json:"num_stitched"`
		Wave        struct {
			Begin, End, CU, ID, SIMD, Slot int64
			Instructions                   [][5]int64
			Timeline                       [][2]int64
			Waitcnt                        [][]json.RawMessage
		}
	}
)

func loadJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
}

// oneTrace runs an ATT job and gives its only dispatch directory.
func oneTrace(t *testing.T, worktree string, env []string, kernel, fields string, app ...string) string {
	t.Helper()
	dir, o := attJob(t, worktree, env, kernel, fields, app...)
	dirs := uiDirs(t, dir)
	if o.code != 0 || len(dirs) != 1 {
		t.Fatalf("code %d, directories %v\n%s", o.code, dirs, o.text())
	}
	return dirs[0]
}

// TestTraceInvariants checks what holds in every real dispatch directory of format 3.0.0.
func TestTraceInvariants(t *testing.T) {
	worktree := demo(t)
	tests := []struct {
		name, kernel, fields string
		env, app             []string
	}{
		{"softmax", "softmax_kernel_0", fourEngines, nil, []string{softmaxTest}},
		{"softmax, odd mask and CU", "softmax_kernel_0", `"att_target_cu":"0x3","att_shader_engine_mask":"0x80000104","kernel_iteration_range":"2"`, nil, []string{softmaxTest}},
		{"one SIMD", "softmax_kernel_0", `"att_simd_select":"0x4","att_shader_engine_mask":"0xf","kernel_iteration_range":"2"`, nil, []string{softmaxTest}},
		{"gemm with a loop", "kernel_gemm_0", fourEngines, nil, []string{"tests/kernels/test_gemm.py", "-K", "512"}},
		{"rmsnorm on gfx942", "rmsnorm_kernel_0", fourEngines, []string{"FLYPROF_SIMULATE=gfx942", "ROCDSL_RMSNORM_SHAPES=4096,4096,bf16"}, []string{"tests/kernels/test_rmsnorm.py"}},
		{"sorting", "moe_sorting_oneshot_kernel_0", fourEngines, nil, []string{"tests/kernels/test_moe_sorting.py"}},
		{"cut waves", "kernel_gemm_0", fourEngines, []string{"FLYPROF_FAULT=truncated"}, []string{"tests/kernels/test_gemm.py", "-K", "512"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkTrace(t, oneTrace(t, worktree, tt.env, tt.kernel, tt.fields, tt.app...), tt.kernel)
		})
	}
}

func checkTrace(t *testing.T, dir, kernel string) {
	t.Helper()
	var code readCode
	loadJSON(t, filepath.Join(dir, "code.json"), &code)
	if code.Header != "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle" || len(code.Code) < 10 {
		t.Fatalf("header %q, %d rows", code.Header, len(code.Code))
	}
	if code.Code[0][0] != "; "+kernel {
		t.Errorf("first row %v", code.Code[0])
	}
	type sums struct{ hit, latency, stall, idle int64 }
	want := make([]sums, len(code.Code))
	vaddr := 0.0
	for i, row := range code.Code {
		if len(row) != 10 || row[2].(float64) != float64(i) || row[5].(float64) < vaddr {
			t.Fatalf("row %d: %v", i, row)
		}
		vaddr = row[5].(float64)
		want[i] = sums{int64(row[6].(float64)), int64(row[7].(float64)), int64(row[8].(float64)), int64(row[9].(float64))}
		if want[i].stall > want[i].latency || (want[i].hit == 0) != (want[i].latency == 0) {
			t.Errorf("row %d: %+v", i, want[i])
		}
	}
	var names readNames
	loadJSON(t, filepath.Join(dir, "filenames.json"), &names)
	got := make([]sums, len(code.Code))
	files := 0
	for se, simds := range names.WaveFilenames {
		for simd, slots := range simds {
			for slot, waves := range slots {
				for id, entry := range waves {
					name := fmt.Sprintf("se%s_sm%s_sl%s_wv%s.json", se, simd, slot, id)
					if entry[0] != name {
						t.Errorf("%v is not %s", entry[0], name)
					}
					w := checkWave(t, filepath.Join(dir, name), len(code.Code))
					if w.Name != "SE"+se || fmt.Sprint(w.Wave.SIMD, w.Wave.Slot, w.Wave.ID) != fmt.Sprint(simd, " ", slot, " ", id) {
						t.Errorf("%s says %s %d %d %d", name, w.Name, w.Wave.SIMD, w.Wave.Slot, w.Wave.ID)
					}
					if float64(w.Wave.Begin) != entry[1].(float64) || float64(w.Wave.End) != entry[2].(float64) {
						t.Errorf("%s: begin and end differ from filenames.json", name)
					}
					before := w.Wave.Begin
					for _, in := range w.Wave.Instructions {
						s := &got[in[4]]
						s.hit, s.latency, s.stall = s.hit+1, s.latency+in[3], s.stall+in[2]
						s.idle += max(0, in[0]-before)
						before = in[0] + in[3]
					}
					files++
				}
			}
		}
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d: waves sum to %+v, code.json has %+v", i, got[i], want[i])
		}
	}
	on, err := filepath.Glob(filepath.Join(dir, "se*_sm*.json"))
	if err != nil || len(on) != files || files == 0 {
		t.Errorf("%d wave files on disk, %d listed", len(on), files)
	}
	checkStats(t, dir, code)
	checkStates(t, dir)
}

func checkWave(t *testing.T, path string, rows int) readWave {
	t.Helper()
	var w readWave
	loadJSON(t, path, &w)
	name := filepath.Base(path)
	if w.Duration != w.Wave.End-w.Wave.Begin || w.NumInsts != len(w.Wave.Instructions) || w.NumStitched != w.NumInsts || w.NumInsts == 0 {
		t.Errorf("%s: duration %d, num_insts %d", name, w.Duration, w.NumInsts)
	}
	executed := map[int64]int{}
	last := w.Wave.Begin
	for _, in := range w.Wave.Instructions {
		if in[0] < last || in[2] > in[3] || in[3] <= 0 || in[4] < 1 || in[4] >= int64(rows) || in[0]+in[3] > w.Wave.End {
			t.Fatalf("%s: instruction %v", name, in)
		}
		last = in[0]
		executed[in[4]]++
	}
	total := int64(0)
	for _, s := range w.Wave.Timeline {
		if s[0] < 1 || s[0] > 4 || s[1] <= 0 {
			t.Errorf("%s: timeline %v", name, s)
		}
		total += s[1]
	}
	if total != w.Duration {
		t.Errorf("%s: timeline sums to %d of %d", name, total, w.Duration)
	}
	waits := map[int64]int{}
	for _, entry := range w.Wave.Waitcnt {
		var line int64
		var edges [][2]int64
		if json.Unmarshal(entry[0], &line) != nil || json.Unmarshal(entry[1], &edges) != nil {
			t.Fatalf("%s: waitcnt %s", name, entry)
		}
		waits[line]++
		if len(edges) == 0 || len(edges) > 29 {
			t.Errorf("%s: %d edges", name, len(edges))
		}
		for _, e := range edges {
			if executed[e[0]] == 0 || e[1] != 0 {
				t.Errorf("%s: edge %v was not executed", name, e)
			}
		}
	}
	for line, n := range waits {
		if executed[line] < n {
			t.Errorf("%s: wait at %d listed %d times, executed %d", name, line, n, executed[line])
		}
	}
	return w
}

// checkStats: the stats CSV beside the directory has the rows of code.json.
func checkStats(t *testing.T, dir string, code readCode) {
	t.Helper()
	header, rows := readCSV(t, filepath.Join(filepath.Dir(dir), "stats_"+filepath.Base(dir)+".csv"))
	if strings.Join(header, ",") != "CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source" || len(rows) != len(code.Code) {
		t.Fatalf("%v, %d rows of %d", header, len(rows), len(code.Code))
	}
	for i, r := range rows {
		c := code.Code[i]
		want := fmt.Sprint(c[0], c[3], c[4], c[5], c[6], c[7], c[8], c[9])
		n := func(s string) float64 { return float64(number(t, s)) }
		if got := fmt.Sprint(any(r["Instruction"]), any(r["Source"]), n(r["CodeObj"]), n(r["Vaddr"]), n(r["Hitcount"]), n(r["Latency"]), n(r["Stall"]), n(r["Idle"])); got != want {
			t.Errorf("stats row %d is %s, want %s", i, got, want)
		}
	}
}

func checkStates(t *testing.T, dir string) {
	t.Helper()
	for k := 1; k <= 4; k++ {
		path := filepath.Join(dir, fmt.Sprintf("wstates%d.json", k))
		if !fileExists(path) {
			continue
		}
		var s struct {
			Name        string
			State, Time []int64
		}
		loadJSON(t, path, &s)
		if len(s.State) != len(s.Time) || len(s.State) == 0 || !slices.IsSorted(s.Time) || slices.Min(s.State) < 0 || s.State[len(s.State)-1] != 0 {
			t.Errorf("%s: %d states, %d times", s.Name, len(s.State), len(s.Time))
		}
	}
}

// occupancy reads rows by shader engine.
func occupancy(t *testing.T, dir string) (rows map[int][][6]int64, dispatches map[string]string) {
	t.Helper()
	var file map[string]json.RawMessage
	loadJSON(t, filepath.Join(dir, "occupancy.json"), &file)
	rows = map[int][][6]int64{}
	for key, raw := range file {
		if se, err := strconv.Atoi(key); err == nil {
			var list [][6]int64
			if err := json.Unmarshal(raw, &list); err != nil {
				t.Fatal(err)
			}
			rows[se] = list
		}
	}
	if err := json.Unmarshal(file["dispatches"], &dispatches); err != nil {
		t.Fatal(err)
	}
	return rows, dispatches
}

// TestOccupancyCoversAllCUs: 4096 workgroups of 4 waves are 512 an XCC, 128 an engine, on 8 CUs that are not harvested.
func TestOccupancyCoversAllCUs(t *testing.T) {
	dir := oneTrace(t, demo(t), nil, "softmax_kernel_0", fourEngines, softmaxTest)
	rows, names := occupancy(t, dir)
	if names["0"] != "0 / 0x0" || names["1"] != "softmax_kernel_0" {
		t.Errorf("dispatches %v", names)
	}
	want := [][]int64{{0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8}}
	for se, cus := range want {
		starts, ends, last := 0, 0, int64(0)
		seen := map[int64]bool{}
		for _, r := range rows[se] {
			seen[r[1]] = true
			if r[0] < last {
				t.Fatalf("SE %d: times go back", se)
			}
			last = r[0]
			if r[4] == 1 {
				starts++
			} else {
				ends++
			}
		}
		if starts != 512 || ends != 512 || !slices.Equal(slices.Sorted(maps.Keys(seen)), cus) {
			t.Errorf("SE %d: %d starts, %d ends, CUs %v, want %v", se, starts, ends, seen, cus)
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d engines", len(rows))
	}
}

// TestHardwareDecidesWhatIsTraced: the cases in which the real tool leaves an empty trace, or none, without a word.
func TestHardwareDecidesWhatIsTraced(t *testing.T) {
	worktree := demo(t)
	one := []string{"ROCDSL_SOFTMAX_SHAPES=1,8192,bf16"}
	tests := []struct {
		name, kernel, fields string
		env                  []string
		dirs                 int
		empty                bool // null code
		engines              int  // engines with occupancy
		att                  int  // .att files
	}{
		{"one workgroup is on XCC 0, SE 0", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0xf","att_target_cu":15,"kernel_iteration_range":"2"`, one, 1, true, 1, 4},
		{"harvested CU: SE 1 has no CU 0", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x2","att_target_cu":0,"kernel_iteration_range":"2"`, nil, 1, true, 1, 1},
		{"the first XCC's SE 0 has it", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1","att_target_cu":0,"kernel_iteration_range":"2"`, nil, 1, false, 1, 1},
		{"mask 0 is dropped: default 0x1", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":0,"kernel_iteration_range":"2"`, nil, 1, false, 1, 1},
		{"SE 0 of each XCC", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x11111111","kernel_iteration_range":"2"`, nil, 1, false, 8, 8},
		{"all XCCs but one workgroup", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0xfffffff0","kernel_iteration_range":"2"`, one, 1, true, 0, 28},
		{"a set fires twice", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1","kernel_iteration_range":"[6, [8-8]]"`, nil, 2, false, 1, 2},
		{"default is the first launch", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1"`, nil, 1, false, 1, 1},
		{"0 never matches", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1","kernel_iteration_range":"0"`, nil, 0, false, 0, 0},
		{"beyond the last launch", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1","kernel_iteration_range":"113"`, nil, 0, false, 0, 0},
		{"the last launch", "softmax_kernel_0", `"att_gpu_index":"0","att_shader_engine_mask":"0x1","kernel_iteration_range":"112"`, nil, 1, false, 1, 1},
		{"no such kernel", "softmax_kernel", `"att_gpu_index":"0","att_shader_engine_mask":"0x1"`, nil, 0, false, 0, 0},
		{"GPU 0 only, the test runs on GPU 3", "softmax_kernel_0", `"att_gpu_index":"0"`, []string{"HIP_VISIBLE_DEVICES=3"}, 0, false, 0, 0},
		{"the test's GPU by KFD index", "softmax_kernel_0", `"att_gpu_index":"3"`, []string{"HIP_VISIBLE_DEVICES=3"}, 1, false, 1, 1},
		{"index 0 as a number is ignored: all GPUs are armed", "softmax_kernel_0", `"att_gpu_index":0,"kernel_iteration_range":"2"`, nil, 1, false, 1, 8},
		{"consecutive kernels is device mode", "softmax_kernel_0", `"att_consecutive_kernels":1`, nil, 0, false, 0, 0},
		{"unknown keys are ignored", "softmax_kernel_0", `"att_gpu_index":"0","att_target_cuu":99,"kernel_iteration_range":"2"`, nil, 1, false, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, o := attJob(t, worktree, tt.env, tt.kernel, tt.fields, softmaxTest)
			dirs := uiDirs(t, out)
			att, _ := filepath.Glob(filepath.Join(out, "*.att"))
			if o.code != 0 || len(dirs) != tt.dirs || len(att) != tt.att {
				t.Fatalf("code %d, %d directories, %d .att, want %d and %d\n%s", o.code, len(dirs), len(att), tt.dirs, tt.att, o.text())
			}
			for _, dir := range dirs {
				var code readCode
				var names readNames
				loadJSON(t, filepath.Join(dir, "code.json"), &code)
				loadJSON(t, filepath.Join(dir, "filenames.json"), &names)
				if (code.Code == nil) != tt.empty || (names.WaveFilenames == nil) != tt.empty {
					t.Errorf("null code %v, null wave_filenames %v, want %v", code.Code == nil, names.WaveFilenames == nil, tt.empty)
				}
				if rows, _ := occupancy(t, dir); len(rows) != tt.engines {
					t.Errorf("occupancy of %d engines, want %d", len(rows), tt.engines)
				}
			}
		})
	}
}

// TestSiblingsFireToo: the counter is per kernel id, so one number traces each shape of a name; and an unanchored regex
// traces siblings.
func TestSiblingsFireToo(t *testing.T) {
	worktree := demo(t)
	out, _ := attJob(t, worktree, nil, "rmsnorm_kernel_0", `"kernel_iteration_range":"5"`, "tests/kernels/test_rmsnorm.py")
	if n := len(uiDirs(t, out)); n != 3 {
		t.Errorf("%d directories, want one for each of the three shapes", n)
	}
	out, _ = attJob(t, worktree, nil, "moe_gemm1_0$|gemm2_0", `"kernel_iteration_range":"2"`, "tests/kernels/test_moe_gemm_2stage.py", "--hidden", "128")
	if n := len(uiDirs(t, out)); n != 2 {
		t.Errorf("%d directories for two kernels", n)
	}
}

// TestAgentNumbers: the directory's agent is a handle of this process (results.json), its dispatch that of a kernel trace.
func TestAgentNumbers(t *testing.T) {
	worktree := demo(t)
	dir := oneTrace(t, worktree, nil, "softmax_kernel_0", fourEngines, softmaxTest)
	m := regexp.MustCompile(`agent_(\d+)_dispatch_(\d+)$`).FindStringSubmatch(dir)
	var results struct {
		Tool []struct {
			Agents []struct {
				ID struct{ Handle int }
			}
		} `json:"rocprofiler-sdk-tool"`
	}
	loadJSON(t, filepath.Join(filepath.Dir(dir), "out_results.json"), &results)
	if got := results.Tool[0].Agents[0].ID.Handle; strconv.Itoa(got) != m[1] {
		t.Errorf("agent %s, handle %d", m[1], got)
	}
	other := oneTrace(t, worktree, nil, "softmax_kernel_0", `"att_target_cu":2,"att_shader_engine_mask":"0xf","kernel_iteration_range":"8"`, softmaxTest)
	if strings.Contains(other, "agent_"+m[1]+"_") {
		t.Error("the agent number does not change from run to run")
	}
}

// TestRegisters: the kernel descriptor holds what the ISA names; on gfx950 the CSV shows half of what is allocated.
func TestRegisters(t *testing.T) {
	worktree := demo(t)
	dir := oneTrace(t, worktree, nil, "kernel_gemm_0", fourEngines, "tests/kernels/test_gemm.py", "-K", "128")
	var code readCode
	loadJSON(t, filepath.Join(dir, "code.json"), &code)
	highest := map[string]int{}
	for _, row := range code.Code[1:] {
		for _, m := range regexp.MustCompile(`\b([va])\[?(\d+)(?::(\d+))?`).FindAllStringSubmatch(row[0].(string), -1) {
			last := m[2]
			if m[3] != "" {
				last = m[3]
			}
			highest[m[1]] = max(highest[m[1]], number(t, last)+1)
		}
	}
	if highest["v"] != 128 || highest["a"] != 32 {
		t.Fatalf("the code names %v", highest)
	}
	found := false
	objects, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "out_gfx950_code_object_id_*.out"))
	for _, path := range objects {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			if s.Name != "kernel_gemm_0.kd" {
				continue
			}
			found = true
			section := f.Sections[s.Section]
			kd := make([]byte, 64)
			if _, err := section.ReadAt(kd, int64(s.Value-section.Addr)); err != nil || s.Size != 64 {
				t.Fatal(err, s.Size)
			}
			accumOffset := (int(binary.LittleEndian.Uint32(kd[44:])&0x3f) + 1) * 4
			total := (int(binary.LittleEndian.Uint32(kd[48:])&0x3f) + 1) * 8
			// 128 + 32 registers are 160, a multiple of 8.
			if accumOffset != 128 || total != 160 || binary.LittleEndian.Uint32(kd) != 65536 {
				t.Errorf("accum offset %d, total %d, LDS %d", accumOffset, total, binary.LittleEndian.Uint32(kd))
			}
		}
		if f.Machine != 224 || f.Type != elf.ET_DYN {
			t.Errorf("%s: machine %v type %v", filepath.Base(path), f.Machine, f.Type)
		}
		f.Close()
	}
	if !found {
		t.Error("no code object has kernel_gemm_0.kd")
	}
	for arch, want := range map[string][2]string{"gfx950": {"80", "0"}, "gfx942": {"128", "32"}} {
		trace, _ := discover(t, worktree, []string{"FLYPROF_SIMULATE=" + arch}, "tests/kernels/test_gemm.py", "-K", "128")
		_, rows := readCSV(t, filepath.Join(trace, "discover_kernel_trace.csv"))
		for _, r := range rows {
			if got := [2]string{r["VGPR_Count"], r["Accum_VGPR_Count"]}; r["Kernel_Name"] == "kernel_gemm_0" && got != want {
				t.Fatalf("%s: CSV registers %v, want %v", arch, got, want)
			}
		}
	}
}

// TestSources: Source names lines of the worktree's files, copies lie in the directory; without debug info there are none.
func TestSources(t *testing.T) {
	worktree := demo(t)
	dir := oneTrace(t, worktree, nil, "kernel_gemm_0", fourEngines, "tests/kernels/test_gemm.py", "-K", "128")
	var code readCode
	loadJSON(t, filepath.Join(dir, "code.json"), &code)
	library, chains := 0, 0
	for _, row := range code.Code[1:] {
		chain := strings.Split(row[3].(string), " -> ")
		if len(chain) > 1 {
			chains++
		}
		for _, source := range chain {
			i := strings.LastIndex(source, ":")
			if i < 0 {
				t.Fatalf("source %q of %v", source, row[0])
			}
			text, err := os.ReadFile(source[:i])
			if err != nil {
				t.Fatal(err)
			}
			if n := number(t, source[i+1:]); n < 1 || n > bytes.Count(text, []byte("\n")) {
				t.Errorf("%s is beyond the file", source)
			}
			if strings.Contains(source, "/flydsl/") {
				library++
			}
		}
		if strings.HasPrefix(row[0].(string), "v_mfma") {
			i := strings.LastIndex(row[3].(string), ":")
			text, _ := os.ReadFile(row[3].(string)[:i])
			if line := strings.Split(string(text), "\n")[number(t, row[3].(string)[i+1:])-1]; !strings.Contains(line, "mma(") {
				t.Errorf("an MFMA comes from %q", line)
			}
		}
	}
	if library == 0 || chains == 0 {
		t.Errorf("%d rows in the library, %d inline chains", library, chains)
	}
	var tree any
	loadJSON(t, filepath.Join(dir, "snapshots.json"), &tree)
	leaves := 0
	var walk func(path string, node any)
	walk = func(path string, node any) {
		if name, ok := node.(string); ok {
			leaves++
			a, errA := os.ReadFile(filepath.Join(dir, name))
			b, errB := os.ReadFile(path)
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s is no copy of %s", name, path)
			}
			return
		}
		for key, child := range node.(map[string]any) {
			walk(filepath.Join(path, key), child)
		}
	}
	walk("", tree)
	if leaves != 2 {
		t.Errorf("%d snapshots", leaves)
	}
	bare := oneTrace(t, worktree, []string{"FLYDSL_DEBUG_ENABLE_DEBUG_INFO=0"}, "kernel_gemm_0", fourEngines, "tests/kernels/test_gemm.py", "-K", "128")
	loadJSON(t, filepath.Join(bare, "code.json"), &code)
	for _, row := range code.Code {
		if row[3] != "" {
			t.Fatalf("source %v without debug info", row[3])
		}
	}
	if fileExists(filepath.Join(bare, "snapshots.json")) {
		t.Error("snapshots without debug info")
	}
}

// TestSameSeedSameBytes compares whole output directories.
func TestSameSeedSameBytes(t *testing.T) {
	worktree := demo(t)
	tree := func(seed, cu string) map[string]string {
		out, o := attJob(t, worktree, []string{"FLYPROF_SEED=" + seed}, "softmax_kernel_0", `"att_shader_engine_mask":"0x3","kernel_iteration_range":"4","att_target_cu":`+cu, softmaxTest)
		files := map[string]string{"stderr": strings.ReplaceAll(o.stderr, out, "")}
		for _, name := range listing(t, out) {
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(data)
		}
		return files
	}
	a, b, other := tree("7", "2"), tree("7", "2"), tree("8", "2")
	if !maps.Equal(a, b) || len(a) < 20 {
		t.Errorf("the same seed gives %d and %d files that differ", len(a), len(b))
	}
	if maps.Equal(a, other) {
		t.Error("another seed gives the same run")
	}
}

// TestBufferIsShared: a small buffer cuts the trace and says so; a larger one does not.
func TestBufferIsShared(t *testing.T) {
	worktree := demo(t)
	run := func(buffer string) (int, bool) {
		out, o := attJob(t, worktree, nil, "kernel_gemm_0", `"att_gpu_index":"0","att_shader_engine_mask":"0xff","kernel_iteration_range":"2","att_buffer_size":"`+buffer+`"`, "tests/kernels/test_gemm.py")
		waves, _ := filepath.Glob(filepath.Join(out, "ui*", "se*_sm*.json"))
		return len(waves), strings.Contains(o.stderr, "Thread trace buffer full!")
	}
	small, cut := run("0x100000")
	large, whole := run("0x6000000")
	// 1024 workgroups are 128 an XCC, 32 an engine, 4 a CU: 16 waves in each of eight engines.
	if large != 128 || whole || !cut || small > large {
		t.Errorf("1 MiB: %d waves, full %v; 96 MiB: %d waves, full %v", small, cut, large, whole)
	}
}
