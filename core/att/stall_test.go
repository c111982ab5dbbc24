package att

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

func TestStallType(t *testing.T) {
	tests := []struct{ isa, want string }{
		{"s_waitcnt vmcnt(0)", "vmcnt"},
		{"s_waitcnt lgkmcnt(12)", "lgkmcnt"},
		{"s_waitcnt expcnt(0)", "expcnt"},
		{"s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt+lgkmcnt"},
		{"s_waitcnt lgkmcnt(0) & vmcnt(0)", "vmcnt+lgkmcnt"},
		{"s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", "vmcnt+lgkmcnt+expcnt"},
		{"s_waitcnt 0", "vmcnt+lgkmcnt+expcnt"},
		{"s_waitcnt 0xf70", "wait"},
		{"s_waitcnt", "wait"},
		{"s_waitcnt_vscnt null, 0x0", "vscnt"},
		{"s_waitcnt_lgkmcnt null, 0x0", "lgkmcnt"},
		{"s_waitcnt_depctr 0xfffe", "depctr"},
		{"s_wait_loadcnt 0x0", "loadcnt"},
		{"s_wait_loadcnt_dscnt 0x0", "loadcnt+dscnt"},
		{"s_wait_storecnt_dscnt 0x0", "storecnt+dscnt"},
		{"s_wait_kmcnt 0x0", "kmcnt"},
		{"s_wait_alu 0xfffe", "alu"},
		{"s_wait_idle", "idle"},
		{"s_wait_" + strings.Repeat("loadcnt_", 1000), "loadcnt"},
		{"s_wait_moonlight 0", "wait"},

		{"s_barrier", "barrier"},
		{"s_barrier_signal -1", "barrier"},
		{"s_barrier_wait -1", "barrier"},
		{"s_nop 7", "nop"},
		{"v_nop", "nop"},
		{"s_sleep 1", "nop"},
		{"s_setprio 3", "nop"},
		{"s_delay_alu instid0(VALU_DEP_1)", "nop"},
		{"s_endpgm", "message"},
		{"s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "message"},
		{"s_branch label_0x1f", "branch"},
		{"s_cbranch_scc1 65500", "branch"},
		{"s_swappc_b64 s[30:31], s[4:5]", "branch"},
		{"s_getpc_b64 s[4:5]", "salu"},
		{"s_load_dwordx2 s[0:1], s[2:3], 0x0", "smem"},
		{"s_buffer_load_dword s0, s[4:7], 0x0", "smem"},
		{"s_memtime s[0:1]", "smem"},
		{"s_add_u32 s0, s1, s2", "salu"},
		{"s_setreg_imm32_b32 hwreg(HW_REG_MODE), 1", "salu"},

		{"v_mfma_f32_32x32x16_bf16 a[0:15], v[2:5], v[6:9], a[0:15]", "mfma"},
		{"v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21", "mfma"},
		{"v_smfmac_f32_16x16x64_bf16 v[0:3], v[4:7], v[8:15], v16", "mfma"},
		{"v_wmma_f16_16x16x16_f16 v[0:3], v[4:7], v[8:11], v[0:3]", "mfma"},
		{"v_dot2_f32_f16 v0, v1, v2, v3", "valu"},
		{"v_accvgpr_read_b32 v0, a1", "valu"},
		{"v_exp_f32_e32 v0, v1", "valu"},
		{"ds_read_b64_tr_b16 v[0:1], v2", "lds"},
		{"ds_bpermute_b32 v0, v1, v2", "lds"},
		{"buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", "vmem"},
		{"global_load_dwordx4 v[250:253], v[0:1], off", "vmem"},
		{"global_atomic_pk_add_bf16 v0, v1, s[0:1]", "vmem"},
		{"scratch_load_dword v0, off, s32", "vmem"},
		{"image_load v0, v[0:1], s[0:7] dmask:0x1", "vmem"},
		{"flat_load_dword v0, v[0:1]", "flat"},
		{"exp pos0 v0, v1, v2, v3 done", "export"},

		{"; _ZN12_GLOBAL__N_1", "other"},
		{"label_1f:", "other"},
		{"s_label:", "other"},
		{"", "other"},
		{"expcnt(0)", "other"},
		{"valuable v0", "other"},
		{"\x00\xff", "other"},
	}
	for _, tt := range tests {
		if got := StallType(tt.isa); got != tt.want {
			t.Errorf("%.60q: %q, want %q", tt.isa, got, tt.want)
		}
	}
}

// TestStallRulesReached: no row of the table is hidden by one before it.
func TestStallRulesReached(t *testing.T) {
	for i, r := range stallRules {
		for _, before := range stallRules[:i] {
			if r.word == before.word || strings.HasPrefix(r.word, before.word+"_") {
				t.Errorf("%s is hidden by %s", r.word, before.word)
			}
		}
		if got := StallType(r.word); got != r.class && !strings.HasPrefix(r.word, "s_wait") {
			t.Errorf("%s is %s, want %s", r.word, got, r.class)
		}
	}
}

// recordedDirs are the folders that hold a code.json.
func recordedDirs(t testing.TB) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(recorded.Traces(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "code.json" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d folders with a code.json: %v", len(dirs), err)
	}
	return dirs
}

// recordedRows reads a code.json the simple way: line to ISA.
func recordedRows(t testing.TB, dir string) map[int64]string {
	t.Helper()
	var file struct{ Code [][]any }
	decode(t, filepath.Join(dir, "code.json"), &file)
	rows := map[int64]string{}
	for _, row := range file.Code {
		rows[int64(row[2].(float64))] = row[0].(string)
	}
	return rows
}

func decode(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestStallTypeOfRecorded: every mnemonic of the recorded captures has a class; only headers and the unresolved row have none.
func TestStallTypeOfRecorded(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range recordedDirs(t) {
		for _, isa := range recordedRows(t, dir) {
			name, _, _ := strings.Cut(isa, " ")
			seen[name] = true
			if got := StallType(isa); got == "wait" || got == "other" && name != ";" && name != "" {
				t.Errorf("%s: %q is %q", dir, isa, got)
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d mnemonics were seen", len(seen))
	}
	t.Logf("%d mnemonics", len(seen))
}

// categories are the trace decoder's own (rocprof-trace-decoder, trace_decoder_instrument: instruction categories), with the
// classes that one may hold.
var categories = map[int][]string{
	1: {"smem"}, 2: {"salu"}, 3: {"vmem"}, 4: {"flat", "vmem"}, 5: {"lds"}, 6: {"valu", "mfma"}, 7: {"branch"}, 8: {"branch"},
	9: {"nop", "barrier", "wait"}, 11: {"message", "barrier"},
}

// TestStallTypeAgreesWithDecoder: the class of each executed instruction is one that the decoder's category allows.
func TestStallTypeAgreesWithDecoder(t *testing.T) {
	checked := 0
	for _, dir := range recordedDirs(t) {
		rows := recordedRows(t, dir)
		files, _ := filepath.Glob(filepath.Join(dir, "se*_wv*.json"))
		for _, file := range files[:min(4, len(files))] {
			var wave struct {
				Wave struct{ Instructions [][5]int64 }
			}
			decode(t, file, &wave)
			for _, i := range wave.Wave.Instructions {
				isa, ok := rows[i[4]]
				allowed, known := categories[int(i[1])]
				if !ok || !known || isa == "" {
					continue
				}
				got := StallType(isa)
				if strings.HasPrefix(isa, "s_wait") {
					got = "wait"
				}
				if checked++; !slices.Contains(allowed, got) {
					t.Errorf("%s: %s is %s, and category %d", file, isa, got, i[1])
				}
			}
		}
	}
	if checked < 10000 {
		t.Errorf("only %d instructions were checked", checked)
	}
	t.Logf("%d instructions", checked)
}

func FuzzStallType(f *testing.F) {
	for _, isa := range []string{"s_waitcnt vmcnt(0)", "s_wait_loadcnt_dscnt 0", "v_mfma_f32", "; kernel", "", "label:"} {
		f.Add(isa)
	}
	classes := []string{"other", "wait"}
	for _, r := range stallRules {
		classes = append(classes, r.class)
	}
	f.Fuzz(func(t *testing.T, isa string) {
		got := StallType(isa)
		if slices.Contains(classes, got) {
			return
		}
		last := -1
		for _, part := range strings.Split(got, "+") {
			at := slices.Index(waitCounters, part)
			if at <= last {
				t.Fatalf("%q: %q", isa, got)
			}
			last = at
		}
	})
}
