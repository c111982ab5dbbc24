package analyze

import (
	"os"
	"path/filepath"
	"testing"
)

// The fixture is a loop of two waves on one CU, made up for these tests. Lines 2 and 6 wait for several counters.
const (
	fixtureCode = `{"code":[
["; k_0",0,0,"",1,4096,0,0,0,0],
["global_load_dword v1, v[2:3], off",0,1,"/w/./kernels/k.py:10",1,4096,2,8,0,0],
["s_waitcnt vmcnt(0) lgkmcnt(0)",0,2,"/w/./kernels/k.py:11",1,4104,2,201,199,0],
["ds_read_b32 v4, v5",0,3,"/w/flydsl/expr/lds.py:7 -> /w/./kernels/k.py:12",1,4108,4,24,8,4],
["flat_load_dword v6, v[2:3]",0,4,"/w/kernels/krms.py:10",1,4116,2,8,0,0],
["v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]",0,5,"",1,4124,2,40,30,0],
["s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)",0,6,"/w/./kernels/k.py:99",1,4132,2,60,50,0],
["s_cbranch_scc1 65000",0,7,"/w/./kernels/k.py:11",1,4136,2,30,30,0],
["v_unused_e32 v0, v1",0,8,"/w/./kernels/k.py:12",1,4140,0,0,0,0],
["s_endpgm",0,9,"",1,4148,2,8,0,0],
["; other_1",0,20,"",2,4096,0,0,0,0],
["s_nop 0",0,21,"/w/other.py:1",2,4096,3,12,3,1],
["",0,30,"",0,0,1,5,5,0]],
"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0"}`
	fixtureFiles = `{"wave_filenames":{"0":{"0":{"0":{"0":["w0.json",100,320]},"1":{"0":["w1.json",120,300]}}}},"gfxip":9,"gfxv":"vega","version":"3.0.0"}`
	// w0 waits at line 2 for the load and for LDS, one entry of each counter; at line 6 only flat memory is outstanding, which may be either.
	fixtureW0 = `{"duration":220,"num_insts":9,"wave":{"begin":100,"cu":1,"end":320,"id":0,"simd":0,"slot":0,"instructions":[[100,4,0,4,1],[104,9,99,101,2],[205,5,4,6,3],[215,5,0,6,3],[221,4,0,4,4],[225,6,15,20,5],[245,9,25,30,6],[275,7,15,15,7],[290,11,0,4,9]],
"timeline":[[2,60],[3,131],[4,29]],"waitcnt":[[2,[[3,0]]],[2,[[1,0]]],[6,[[4,0]]]]}}`
	// w1 waits at line 2 for the load alone; the file says nothing of its line 6.
	fixtureW1 = `{"duration":180,"num_insts":9,"wave":{"begin":120,"cu":1,"end":300,"id":0,"simd":0,"slot":1,"instructions":[[120,4,0,4,1],[124,9,100,100,2],[224,5,4,6,3],[230,5,0,6,3],[236,4,0,4,4],[240,6,15,20,5],[260,9,25,30,6],[290,7,15,15,7],[296,11,0,4,9]],
"timeline":[[1,10],[2,50],[3,100],[4,20]],"waitcnt":[[2,[[1,0],[1,0]]]]}}`
	fixtureOccupancy = `{"0":[[100,1,0,0,1,1],[110,5,0,0,1,2],[120,1,0,1,1,1],[130,2,0,0,1,1],[150,2,0,0,0,1],[150,2,0,0,1,1],[300,1,0,1,0,1],[320,1,0,0,0,1],[330,2,0,0,0,1]],"dispatches":{"0":"0 / 0x0","1":"k_0","2":"other_1"},"version":"3.0.0"}`
	fixtureSnapshots = `{"/":{"w":{".":{"kernels":{"k.py":"source_0_k.py"}}}}}`
	fixtureSource    = "l1\nl2\nl3\nl4\nl5\nl6\nl7\nl8\nl9\nload()\n  wait()   \nread()\n"
)

// fixture writes the dispatch directory; a file that is changed to "" is left out.
func fixture(t testing.TB, change map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ui_output_agent_7_dispatch_12")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"code.json": fixtureCode, "filenames.json": fixtureFiles, "w0.json": fixtureW0, "w1.json": fixtureW1,
		"occupancy.json": fixtureOccupancy, "snapshots.json": fixtureSnapshots, "source_0_k.py": fixtureSource}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// opened analyses the fixture as kernel k_0.
func opened(t testing.TB, change map[string]string) *Trace {
	t.Helper()
	tr, err := Open(t.Context(), fixture(t, change), Options{Kernel: "k_0", Arch: "gfx942"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func bubbles(t testing.TB, tr *Trace, q BubblesQuery) Bubbles {
	t.Helper()
	b, err := tr.Bubbles(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func warned(tr *Trace, code string) string {
	for _, w := range tr.Warnings() {
		if w.Code == code {
			return w.Message
		}
	}
	return ""
}
