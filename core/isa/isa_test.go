package isa

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// fixture gives the mnemonics of testdata/mnemonics.txt with their kinds.
func fixture(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/mnemonics.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 2 || out[f[1]] != "" {
			t.Fatalf("the line %q", line)
		}
		out[f[1]] = f[0]
	}
	return out
}

// TestMnemonics: each mnemonic of the fixture has its kind, none is unknown, and each class has one.
func TestMnemonics(t *testing.T) {
	t.Parallel()
	seen := map[Class]bool{}
	for mnemonic, want := range fixture(t) {
		i := Parse(mnemonic)
		seen[i.Class] = true
		if i.Kind() != want || i.Class == Other || i.Mnemonic != mnemonic {
			t.Errorf("%s is %s, want %s", mnemonic, i.Kind(), want)
		}
	}
	for _, c := range classes {
		if !seen[c] && c != Other {
			t.Errorf("no mnemonic is of class %s", c)
		}
	}
}

// TestParse: operands, and what is no instruction.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"s_waitcnt vmcnt(0)", "vmcnt"},
		{"s_waitcnt lgkmcnt(12)", "lgkmcnt"},
		{"s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt+lgkmcnt"},
		{"s_waitcnt lgkmcnt(0) & vmcnt(0)", "vmcnt+lgkmcnt"},
		{"s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", "vmcnt+lgkmcnt+expcnt"},
		{"s_waitcnt 0", "vmcnt+lgkmcnt+expcnt"},
		{"s_waitcnt 0xf70", "wait"},
		{"s_waitcnt", "wait"},
		{"s_waitcnt_vscnt null, 0x0", "vscnt"},
		{"s_waitcnt_lgkmcnt null, 0x0", "lgkmcnt"},
		{"s_waitcnt_depctr 0xfffe", "depctr"},
		{"s_wait_loadcnt_dscnt 0x0", "loadcnt+dscnt"},
		{"s_wait_storecnt_dscnt 0x0", "storecnt+dscnt"},
		{"s_wait_alu 0xfffe", "alu"},
		{"s_wait_moonlight 0", "wait"},
		{"s_wait_" + strings.Repeat("loadcnt_", 1000), "other"},
		{"  s_nop 7", "nop"},
		{"buffer_load_dwordx4 v4, s[0:3], 0 offen lds", "vmem_load"},
		{"s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "message"},
		{"v_dual_mov_b32 v0, 0 :: v_dual_mov_b32 v1, 0", "valu"},
		{"; _ZN12_GLOBAL__N_1", "other"},
		{"label_1f:", "other"},
		{"s_label:", "other"},
		{"", "other"},
		{"_", "other"},
		{"expcnt(0)", "other"},
		{"valuable v0", "other"},
		{"\x00\xff", "other"},
	} {
		if got := Parse(tt.text).Kind(); got != tt.want {
			t.Errorf("%.60q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestUses: what a wait of each generation can wait for.
func TestUses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, wait, counters string }{
		{"buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", "s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt"},
		{"buffer_store_dwordx4 v[0:3], v4, s[0:3], 0 offen", "s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt"},
		{"ds_read_b128 v[0:3], v4", "s_waitcnt vmcnt(0) lgkmcnt(0)", "lgkmcnt"},
		{"s_load_dwordx2 s[0:1], s[2:3], 0x0", "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", "lgkmcnt"},
		{"flat_load_dword v0, v[0:1]", "s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt+lgkmcnt"},
		{"scratch_load_dword v0, off, s32", "s_waitcnt vmcnt(0) lgkmcnt(0)", "vmcnt"},
		{"global_store_b32 v[0:1], v2, off", "s_waitcnt_vscnt null, 0x0", "vscnt"},
		{"ds_store_b32 v0, v1", "s_wait_loadcnt_dscnt 0x0", "dscnt"},
		{"global_load_b128 v[0:3], v[4:5], off", "s_wait_loadcnt_dscnt 0x0", "loadcnt"},
		{"flat_load_b32 v0, v[0:1]", "s_wait_loadcnt_dscnt 0x0", "loadcnt+dscnt"},
		{"s_load_b64 s[0:1], s[2:3], 0x0", "s_wait_kmcnt 0x0", "kmcnt"},
		{"s_buffer_load_b64 s[0:1], s[4:7], 0x0", "s_wait_kmcnt 0x0", "kmcnt"},
		{"v_mov_b32_e32 v0, v1", "s_waitcnt vmcnt(0) lgkmcnt(0)", ""},
	} {
		if got := Parse(tt.text).Uses & Parse(tt.wait).Waits; got.String() != tt.counters {
			t.Errorf("%s is waited for by %s with %q, want %q", tt.text, tt.wait, got, tt.counters)
		}
	}
}

// TestTable: no word stands twice, each finds itself, and each class is listed.
func TestTable(t *testing.T) {
	t.Parallel()
	if len(byWord) != len(table) {
		t.Errorf("%d words in %d rows", len(byWord), len(table))
	}
	for _, r := range table {
		if got := Parse(r.word); got.Class != r.class || !slices.Contains(classes, r.class) || got.Uses != r.uses {
			t.Errorf("%s is %+v, want %+v", r.word, got, r)
		}
	}
	if len(counterNames) != (counterEnd - 1).Len() {
		t.Errorf("%d names for %d counters", len(counterNames), (counterEnd - 1).Len())
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		filter, text string
		want         bool
	}{
		{"wait", "s_waitcnt vmcnt(0) lgkmcnt(0)", true},
		{"vmcnt", "s_waitcnt vmcnt(0) lgkmcnt(0)", true},
		{"lgkmcnt", "s_waitcnt vmcnt(0) lgkmcnt(0)", true},
		{"expcnt", "s_waitcnt vmcnt(0) lgkmcnt(0)", false},
		{"vmem", "global_load_dword v0, v[0:1], off", true},
		{"vmem", "scratch_load_dword v0, off", false},
		{"memory", "scratch_load_dword v0, off", true},
		{"matrix", "v_wmma_f16_16x16x16_f16 v[0:3], v[4:7], v[8:11], v[0:3]", true},
		{"valu", "v_mov_b32 v0, v1", true},
		{"other", "", true},
		{"", "v_mov_b32 v0, v1", false},
	} {
		if got := Parse(tt.text).Is(tt.filter); got != tt.want {
			t.Errorf("%s is %s: %v", tt.text, tt.filter, got)
		}
		if tt.filter != "" && !slices.Contains(Filters(), tt.filter) {
			t.Errorf("%s is not listed", tt.filter)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"s_waitcnt vmcnt(0)", "s_wait_loadcnt_dscnt 0", "v_mfma_f32", "; kernel", "", "label:", "s_waitcnt 0", "_", "s__", "ds_"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i := Parse(text)
		if !slices.Contains(classes, i.Class) || i.Waits != 0 && i.Class != Wait || (i.Waits|i.Uses) >= counterEnd {
			t.Fatalf("%q: %+v", text, i)
		}
		var again Counters
		for n, one := range i.Waits.Split() {
			back, ok := CounterNamed(i.Waits.Names()[n])
			if !ok || back != one || one.Len() != 1 {
				t.Fatalf("%q: %v", text, one)
			}
			again |= one
		}
		if again != i.Waits || i.Waits != 0 && i.Kind() != i.Waits.String() || i.Waits == 0 && i.Kind() != string(i.Class) {
			t.Fatalf("%q: %+v is %q", text, i, i.Kind())
		}
		if !i.Is(string(i.Class)) || strings.Contains(i.Mnemonic, " ") {
			t.Fatalf("%q: %+v", text, i)
		}
	})
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen": 16, "global_load_b96 v[0:2], v[4:5], off": 12, "global_store_dwordx2 v[0:1], v[2:3], off": 8, "scratch_load_dword v0, off": 4,
		"buffer_load_ubyte_d16_hi v0, v1, s[0:3], 0": 1, "global_load_d16_hi_b16 v0, v[1:2], off": 2, "flat_load_u8 v0, v[1:2]": 1, "buffer_load_lds_dwordx4": 16, "global_load_lds_dwordx4": 16,
		"buffer_load_format_xy v0, v1, s[0:3], 0": 0, "ds_read_b128 v[0:3], v4": 0, "s_load_dwordx2 s[0:1], s[2:3], 0x0": 0, "global_atomic_add v[0:1], v2, off": 0, "v_mov_b32 v0, v1": 0,
	} {
		if got := Parse(text).Bytes(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
