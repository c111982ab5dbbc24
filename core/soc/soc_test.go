package soc

import (
	"math"
	"testing"
)

// The peaks as the data sheets print them, in TFLOP/s (TOP/s for int8).
func TestPeaksAreThoseOfTheDataSheets(t *testing.T) {
	for _, c := range []struct {
		product, dtype string
		vector         bool
		want           float64
	}{
		{"MI300X", "bf16", false, 1307.4}, {"MI300X", "fp8", false, 2614.9}, {"MI300X", "int8", false, 2614.9},
		{"MI300X", "tf32", false, 653.7}, {"MI300X", "f32", false, 163.4}, {"MI300X", "f64", false, 163.4},
		{"MI300X", "f32", true, 163.4}, {"MI300X", "f64", true, 81.7},
		{"MI300A", "f16", false, 980.6}, {"MI300A", "fp8", false, 1961.2},
		{"MI325X", "bf16", false, 1307.4}, {"MI325X", "bf8", false, 2614.9},
		{"MI350X", "bf16", false, 2306.9}, {"MI350X", "fp8", false, 4613.7}, {"MI350X", "fp4", false, 9227.5},
		{"MI350X", "f32", true, 144.2}, {"MI350X", "f64", true, 72.1},
		{"MI355X", "bf16", false, 2516.6}, {"MI355X", "fp8", false, 5033.2}, {"MI355X", "fp6", false, 10066.3},
		{"MI355X", "f64", false, 78.6}, {"MI355X", "bf16", true, 157.3},
	} {
		s, ok := ByProduct(c.product)
		if !ok {
			t.Fatalf("%s is not in the table", c.product)
		}
		peak, ok := s.MatrixPeak(c.dtype)
		if c.vector {
			peak, ok = s.VectorPeak(c.dtype)
		}
		if got := peak / 1e12; !ok || math.Abs(got-c.want) > 0.1 {
			t.Errorf("%s %s (vector %v): %.1f TFLOP/s, %v; want %.1f", c.product, c.dtype, c.vector, got, ok, c.want)
		}
	}
}

func TestNoPeakWhereTheHardwareHasNone(t *testing.T) {
	for _, c := range [][2]string{{"MI300X", "fp4"}, {"MI300X", "fp6"}, {"MI355X", "tf32"}, {"MI300X", "int4"}, {"MI350X", ""}} {
		s, _ := ByProduct(c[0])
		if peak, ok := s.MatrixPeak(c[1]); ok || peak != 0 {
			t.Errorf("%s %q: peak %g, %v; want none", c[0], c[1], peak, ok)
		}
	}
	if peak, ok := (SoC{}).MatrixPeak("bf16"); ok || peak != 0 {
		t.Errorf("a GPU that is not known has the peak %g", peak)
	}
}

func TestEveryFigureHasASource(t *testing.T) {
	for _, s := range products() {
		if len(s.Sources) == 0 {
			t.Errorf("%s has no source", s.Product)
		}
		if s.SEs()*s.PhysicalCUsPerSE < s.CUs || s.SEs() > 64 {
			t.Errorf("%s: %d SEs of %d physical CUs do not hold %d", s.Product, s.SEs(), s.PhysicalCUsPerSE, s.CUs)
		}
	}
}

func TestFor(t *testing.T) {
	for _, c := range []struct {
		name, arch, product string
		want                string // product, "" for not known
		assumed             bool
	}{
		{"marketing name", "gfx950", "AMD Instinct MI350X", "MI350X", false},
		{"virtual function", "gfx942", "AMD Instinct MI300X VF", "MI300X", false},
		{"PCI name", "gfx942", "Aqua Vanjaram [Instinct MI325X]", "MI325X", false},
		{"APU", "gfx942", "AMD Instinct MI300A", "MI300A", false},
		{"name alone", "", "MI355X", "MI355X", false},
		{"generic name", "gfx950", "AMD Radeon Graphics", "MI350X", true},
		{"no name", "gfx942", "", "MI300X", true},
		{"features", "gfx942:sramecc+:xnack-", "", "MI300X", true},
		{"upper case", "GFX950", "", "MI350X", true},
		{"another generation", "gfx90a", "AMD Instinct MI250X", "", false},
		{"RDNA", "gfx1201", "AMD Radeon RX 9070 XT", "", false},
		{"a prefix is no match", "gfx94", "", "", false},
		{"longer word", "", "MI300XYZ", "", false},
		{"name and architecture contradict", "gfx950", "AMD Instinct MI300X", "", false},
		{"nothing", "", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ok := For(c.arch, c.product)
			if ok != (c.want != "") {
				t.Fatalf("For(%q, %q) = %s, %v; want %q", c.arch, c.product, s.Product, ok, c.want)
			}
			if ok && (s.Product != c.want || s.Assumed != c.assumed) {
				t.Errorf("For(%q, %q) = %s assumed %v; want %s, %v", c.arch, c.product, s.Product, s.Assumed, c.want, c.assumed)
			}
		})
	}
}

func TestByDevice(t *testing.T) {
	for id, want := range map[int]string{29861: "MI325X", 30112: "MI350X", 30115: "MI355X", 0x74a1: "MI300X"} {
		if s, ok := ByDevice(id); !ok || s.Product != want || s.Assumed {
			t.Errorf("device 0x%x is %s, %v; want %s", id, s.Product, ok, want)
		}
	}
	if s, ok := ByDevice(30032); ok {
		t.Errorf("an RX 9070 XT is taken for %s", s.Product)
	}
}

func TestPartitionHasItsShare(t *testing.T) {
	whole, _ := ByProduct("MI300X")
	cpx := whole.WithTopology(38, 1, 4)
	if cpx.CUs != 38 || cpx.SEs() != 4 || cpx.HBMBytesPerS != 5.3e12/8 {
		t.Errorf("CPX: %d CUs, %d SEs, %g B/s", cpx.CUs, cpx.SEs(), cpx.HBMBytesPerS)
	}
	if peak, _ := cpx.MatrixPeak("bf16"); math.Abs(peak-38*2048*2.1e9) > 1 {
		t.Errorf("CPX peak %g", peak)
	}
	if same := whole.WithTopology(0, 0, 0); same.CUs != 304 || same.SEs() != 32 {
		t.Errorf("unknown counts changed the table's: %+v", same)
	}
	if none := (SoC{}).WithTopology(304, 8, 32); none.Known() {
		t.Errorf("counts alone made figures: %+v", none)
	}
	if s := whole.WithTopology(-1, -1, -1); s.CUs != 304 || s.XCDs != 8 || s.SEsPerXCD != 4 {
		t.Errorf("negative counts were believed: %+v", s)
	}
	if s := whole.WithClock(1900); s.ClockHz != 1.9e9 {
		t.Errorf("clock %g", s.ClockHz)
	}
}

// The figures are worked out by hand from the rule: registers rounded, 512 divided, times 4 SIMDs, divided by the
// workgroup's waves; LDS rounded to 512 bytes (gfx942) or 1,280 (gfx950).
func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		name                   string
		product                string
		arch, accum, lds, size int
		vgprs, waves, groups   int
		limiter                string
	}{
		{"60+4 registers are 64: 8 waves a SIMD, not 7", "MI300X", 60, 4, 0, 256, 64, 32, 8, "hardware"},
		{"61+4 round to 64+4, 72: 7 waves a SIMD", "MI300X", 61, 4, 0, 256, 72, 28, 7, "vgpr"},
		{"flash attention as recorded: 242 -> 248 -> 2 a SIMD, LDS would hold 3", "MI350X", 242, 0, 49152, 256, 248, 8, 2, "vgpr"},
		{"rmsnorm as recorded", "MI350X", 60, 0, 512, 256, 64, 32, 8, "hardware"},
		{"vec_add as recorded", "MI350X", 9, 0, 0, 256, 16, 32, 8, "hardware"},
		{"all of the LDS", "MI300X", 32, 0, 65536, 256, 32, 4, 1, "lds"},
		{"a byte over half of the LDS", "MI300X", 32, 0, 32769, 256, 32, 4, 1, "lds"},
		{"half of gfx950's LDS", "MI350X", 32, 0, 81920, 256, 32, 8, 2, "lds"},
		{"more LDS than there is", "MI300X", 32, 0, 65537, 256, 32, 0, 0, "lds"},
		{"the same fits on gfx950", "MI350X", 32, 0, 65537, 256, 32, 8, 2, "lds"},
		{"54,000 bytes are 43 x 1,280 on gfx950: 2 fit, not 3", "MI350X", 32, 0, 54000, 256, 32, 8, 2, "lds"},
		{"16 waves in 28 slots", "MI300X", 72, 0, 0, 1024, 72, 16, 1, "vgpr"},
		{"10 waves in 32 slots", "MI300X", 32, 0, 0, 640, 32, 30, 3, "workgroup"},
		{"256+256: one wave a SIMD", "MI350X", 256, 256, 0, 256, 512, 4, 1, "vgpr"},
		{"256+256 and 8 waves cannot run", "MI350X", 256, 256, 0, 512, 512, 0, 0, "vgpr"},
		{"a workgroup that is too large", "MI350X", 32, 0, 0, 1025, 32, 0, 0, "workgroup"},
		{"size not known", "MI350X", 128, 0, 0, 0, 128, 16, 16, "vgpr"},
		{"registers and LDS give the same", "MI300X", 256, 0, 32768, 256, 256, 8, 2, "vgpr"},
		{"no registers at all take 8", "MI300X", 0, 0, 0, 64, 8, 32, 32, "hardware"},
		{"more registers than the file", "MI300X", 513, 0, 0, 64, 520, 0, 0, "vgpr"},
		{"negative figures count as none", "MI300X", -60, -4, -1, -256, 8, 32, 32, "hardware"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := ByProduct(c.product)
			o := OccupancyOf(s, c.arch, c.accum, c.lds, c.size)
			if o.VGPRsAllocated != c.vgprs || o.WavesPerCU != c.waves || o.WorkgroupsPerCU != c.groups || o.Limiter != c.limiter {
				t.Errorf("got %+v", o)
			}
			if want := (c.waves + 3) / 4; o.WavesPerSIMD != want {
				t.Errorf("%d waves a SIMD, want %d", o.WavesPerSIMD, want)
			}
		})
	}
	if o := OccupancyOf(SoC{}, 32, 0, 0, 256); o != (Occupancy{}) {
		t.Errorf("a GPU that is not known has an occupancy: %+v", o)
	}
}
