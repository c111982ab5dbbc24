package soc

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

func TestSEMaskFor(t *testing.T) {
	mi350, _ := ByProduct("MI350X")
	mi300a, _ := ByProduct("MI300A")
	mi300x, _ := ByProduct("MI300X")
	for _, c := range []struct {
		name       string
		s          SoC
		workgroups int64
		want       uint64
	}{
		{"fills the GPU 4 times", mi350, 1024, 0xf},
		{"exactly twice", mi350, 512, 0xf},
		{"once", mi350, 256, 0x11111111},
		// A SE holds 128/32 = 4 of 8 CUs busy; 8 SEs miss with 0.5^8.
		{"half", mi350, 128, 0x11111111},
		{"16", mi350, 16, 0xffffffff},
		{"1", mi350, 1, 0xffffffff},
		{"not known", mi350, 0, 0x11111111},
		{"negative", mi350, -5, 0x11111111},
		{"304 on MI300X", mi300x, 304, 0x11111111},
		{"608 on MI300X", mi300x, 608, 0xf},
		{"six XCDs", mi300a, 228, 0x111111},
		{"six XCDs, small", mi300a, 8, 0xffffff},
		{"one partition", mi300x.WithTopology(38, 1, 4), 8, 0xf},
		{"no topology", SoC{}, 8, 0xf},
	} {
		t.Run(c.name, func(t *testing.T) {
			mask, why := SEMaskFor(c.workgroups, c.s)
			if mask != c.want || why == "" {
				t.Errorf("0x%x (%s), want 0x%x", mask, why, c.want)
			}
		})
	}
}

// Chances worked out by hand on the MI350X: 8 XCDs of 4 SEs of 8 active CUs.
func TestEstimatePlacement(t *testing.T) {
	mi350, _ := ByProduct("MI350X")
	for _, c := range []struct {
		name       string
		workgroups int64
		cu         int
		mask       uint64
		verdict    string
		chance     float64
	}{
		{"one for each CU", 256, 1, 0xf, VerdictLikely, 1},
		// 128/8 = 16 on XCD 0, 4 an SE, of 8 CUs: 1 - 0.5^4.
		{"half of the CUs", 128, 1, 0xf, VerdictLikely, 0.9375},
		// 4 on XCD 0, 1 an SE: 1 - (7/8)^4.
		{"one an SE", 32, 1, 0xf, VerdictUnlikely, 1 - math.Pow(0.875, 4)},
		{"one an SE, all traced", 32, 1, 0xffffffff, VerdictLikely, 1 - math.Pow(0.875, 32)},
		// The one workgroup is on one of 4 SEs of XCD 0: each 1/32.
		{"one workgroup", 1, 1, 0xf, VerdictUnlikely, 1 - math.Pow(31.0/32, 4)},
		{"XCD 7 gets none of 7", 7, 1, 0xf0000000, VerdictNone, 0},
		{"XCD 7 gets one of 8", 8, 1, 0xf0000000, VerdictUnlikely, 1 - math.Pow(31.0/32, 4)},
		{"CU 0 is fused off in half", 256, 0, 0x1, VerdictUnlikely, 0.5},
		{"CU 8 too, four SEs", 256, 8, 0xf, VerdictLikely, 0.9375},
		{"no such CU", 4096, 9, 0xf, VerdictNone, 0},
		{"negative CU", 4096, -1, 0xf, VerdictNone, 0},
		{"no SE", 4096, 1, 0, VerdictNone, 0},
		{"bits beyond the SEs", 4096, 1, 0xff << 32, VerdictNone, 0},
		{"no workgroups", 0, 1, 0xf, VerdictNone, 0},
		{"more than can be counted", math.MaxInt64, 1, 0xf, VerdictLikely, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := EstimatePlacement(c.workgroups, mi350, c.cu, c.mask)
			if p.Verdict != c.verdict || math.Abs(p.Chance-c.chance) > 1e-9 || p.Basis == "" {
				t.Errorf("%+v, want %s %g", p, c.verdict, c.chance)
			}
		})
	}
	if p := EstimatePlacement(256, SoC{}, 1, 0xf); p.Verdict != "" || p.Basis == "" {
		t.Errorf("without figures: %+v", p)
	}
}

func TestMinWorkgroupsLikely(t *testing.T) {
	for _, name := range []string{"MI300X", "MI300A", "MI325X", "MI350X", "MI355X"} {
		s, _ := ByProduct(name)
		least := MinWorkgroupsLikely(s, DefaultTargetCU)
		if least < 2 || least > int64(s.CUs) {
			t.Fatalf("%s: %d", name, least)
		}
		for n := int64(1); n < 4*int64(s.CUs); n++ {
			mask, _ := SEMaskFor(n, s)
			likely := EstimatePlacement(n, s, DefaultTargetCU, mask).Verdict == VerdictLikely
			if likely != (n >= least) {
				t.Fatalf("%s: %d workgroups with mask 0x%x likely %v, the least is %d", name, n, mask, likely, least)
			}
		}
		if got := MinWorkgroupsLikely(s, s.PhysicalCUsPerSE); got != 0 {
			t.Errorf("%s: %d workgroups reach a CU that is not there", name, got)
		}
	}
	if got := MinWorkgroupsLikely(SoC{}, 1); got != 0 {
		t.Errorf("without a topology: %d", got)
	}
}

// observed is what one occupancy.json says of one kernel: wave starts by SE and CU, the most waves that a CU held at a
// time, and the SEs whose waves were traced on the target CU.
type observed struct {
	starts map[int]map[int]int
	peak   int
	traced []int
}

// The recorded dispatches (all with mask 0xf, target CU 1) against the model: an XCD gets its eighth of the grid, its SEs get
// equal shares, workgroups that find idle CUs do not share one, and a grid with a workgroup for each CU reaches all.
func TestPlacementAgreesWithRecordedOccupancy(t *testing.T) {
	root := recorded.Traces(t)
	mi350, _ := ByProduct("MI350X")
	for _, c := range []struct {
		dir, kernel     string
		wavesPerGroup   int
		workgroups      int64 // of the whole grid; 0 where it was not recorded
		cusBusy         int   // CUs with waves, as the files say; checked so that a wrong reader cannot pass
		registers, size int
		lds             int
	}{
		{"rmsnorm/big/ui_output_agent_19276_dispatch_18", "rmsnorm_kernel_0", 4, 1024, 32, 60, 256, 512},
		{"vec_add/big/ui_output_agent_14705_dispatch_25", "vecAddKernel_0", 4, 10000, 32, 9, 256, 0},
		{"flash_attn_func/small/ui_output_agent_32235_dispatch_44", "flash_attn_func_kernel_0", 4, 0, 16, 242, 256, 49152},
		{"flash_attn_func/small/ui_output_agent_58550_dispatch_44_after_loc_fix", "flash_attn_func_kernel_0", 4, 0, 16, 242, 256, 49152},
		{"hgemm_splitk/big/ui_output_agent_4716_dispatch_319", "hgemm_bf16_32x64x256_W1x2x2_S2_BT_BLDS1_AS1_SPK14_0", 4, 0, 11, 0, 256, 0},
		{"pa_mqa_logits_fp4/small/ui_output_agent_32435_dispatch_197", "pa_mqa_logits_fp4_kernel_0", 4, 0, 9, 0, 256, 0},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			r := readRecorded(t, filepath.Join(root, "dispatches", c.dir), c.kernel)
			var onXCD, busy int
			perSE := map[int]int{}
			for se, cus := range r.starts {
				for cu, waves := range cus {
					if waves%c.wavesPerGroup != 0 {
						t.Errorf("SE %d CU %d: %d waves are no whole workgroups", se, cu, waves)
					}
					perSE[se] += waves / c.wavesPerGroup
					busy++
				}
				onXCD += perSE[se]
			}
			if busy != c.cusBusy {
				t.Fatalf("%d CUs had waves, want %d", busy, c.cusBusy)
			}
			if c.workgroups > 0 && float64(onXCD) != workgroupsOnXCD(c.workgroups, 0, 8) {
				t.Errorf("XCD 0 ran %d of %d workgroups, the model says %g", onXCD, c.workgroups, workgroupsOnXCD(c.workgroups, 0, 8))
			}
			shares := slices.Sorted(maps.Values(perSE))
			if len(shares) != 4 || float64(shares[3]-shares[0]) > max(1, 0.02*float64(shares[3])) {
				t.Errorf("the SEs' shares are not even: %v", perSE)
			}
			if onXCD <= 32 && busy != onXCD {
				t.Errorf("%d workgroups shared %d CUs though others were idle", onXCD, busy)
			}
			if onXCD >= 32 && busy != 32 {
				t.Errorf("%d workgroups left CUs idle", onXCD)
			}
			grid := c.workgroups
			if grid == 0 {
				grid = int64(onXCD) * 8
			}
			p := EstimatePlacement(grid, mi350, DefaultTargetCU, 0xf)
			if p.Verdict != VerdictLikely || len(r.traced) == 0 {
				t.Errorf("verdict %+v, traced SEs %v", p, r.traced)
			}
			// The SEs that were traced against the model's expectation, within two standard deviations.
			each := min(1, float64(onXCD)/32)
			mean, dev := 4*each, math.Sqrt(4*each*(1-each))
			if d := math.Abs(float64(len(r.traced)) - mean); d > 2*dev+1e-9 {
				t.Errorf("%d of 4 SEs were traced, the model expects %.1f +- %.1f", len(r.traced), mean, dev)
			}
			if c.registers > 0 {
				if o := OccupancyOf(mi350, c.registers, 0, c.lds, c.size); r.peak > o.WavesPerCU {
					t.Errorf("a CU held %d waves, the rule allows %+v", r.peak, o)
				}
			}
		})
	}
	// vec_add fills the slots: the rule's figure is reached exactly.
	if r := readRecorded(t, filepath.Join(root, "dispatches/vec_add/big/ui_output_agent_14705_dispatch_25"), "vecAddKernel_0"); r.peak != 32 {
		t.Errorf("vec_add held %d waves a CU at most, want 32", r.peak)
	}
}

func readRecorded(t *testing.T, dir, kernel string) observed {
	t.Helper()
	var doc map[string]json.RawMessage
	decode(t, filepath.Join(dir, "occupancy.json"), &doc)
	var names map[string]string
	if err := json.Unmarshal(doc["dispatches"], &names); err != nil {
		t.Fatal(err)
	}
	r := observed{starts: map[int]map[int]int{}}
	for key, raw := range doc {
		se, err := strconv.Atoi(key)
		if err != nil {
			continue
		}
		var rows [][6]int64 // time, cu, simd, slot, start, kernel id
		if err := json.Unmarshal(raw, &rows); err != nil {
			t.Fatal(err)
		}
		live := map[int]int{}
		for _, row := range rows {
			if names[strconv.FormatInt(row[5], 10)] != kernel {
				continue
			}
			cu := int(row[1])
			if row[4] == 0 {
				live[cu]--
				continue
			}
			live[cu]++
			r.peak = max(r.peak, live[cu])
			if r.starts[se] == nil {
				r.starts[se] = map[int]int{}
			}
			r.starts[se][cu]++
		}
		if r.starts[se][DefaultTargetCU] > 0 {
			r.traced = append(r.traced, se)
		}
	}
	return r
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(path, err)
	}
}
