package sim

import (
	"slices"
	"testing"
)

// TestEngineShares: every workgroup has exactly one home, XCC by its number, on a CU that is not harvested.
func TestEngineShares(t *testing.T) {
	for arch, model := range gpus {
		for _, groups := range []int{1, 7, 8, 33, 256, 1000} {
			s := &session{run: &run{process: &process{set: Settings{Arch: arch, Seed: 3}}}, model: model, cfg: config{targetCU: 1}}
			p := s.place(&kernelObject{kernel: "k", grid: [3]int{groups, 1, 1}, block: [3]int{64, 1, 1}})
			seen := make([]int, groups)
			for se := range model.ses() {
				for _, h := range p.engine(se, groups) {
					seen[h.workgroup]++
					if h.workgroup%8 != se/4 {
						t.Errorf("%s: workgroup %d is on XCC %d", arch, h.workgroup, se/4)
					}
					if !slices.Contains(model.activePerSE[se%4], h.cu) {
						t.Errorf("%s: SE %d has no CU %d", arch, se, h.cu)
					}
				}
			}
			if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
				t.Errorf("%s: %d workgroups are placed %v times", arch, groups, seen)
			}
		}
		active := 0
		for _, cus := range model.activePerSE {
			active += len(cus)
		}
		if active*model.xccs != model.cus {
			t.Errorf("%s: %d active CUs an XCC, %d in all", arch, active, model.cus)
		}
	}
}

// TestRestlessPlacement: a seed places a kernel alike for every target CU, unless the fault says otherwise.
func TestRestlessPlacement(t *testing.T) {
	first := func(faults string, cu int) []int {
		list, err := ParseFaults(faults)
		if err != nil {
			t.Fatal(err)
		}
		s := &session{run: &run{process: &process{set: Settings{Arch: "gfx950", Seed: 3, Faults: list}}}, model: gpus["gfx950"], cfg: config{targetCU: cu}}
		return s.place(&kernelObject{kernel: "k", grid: [3]int{64, 1, 1}}).first
	}
	if !slices.Equal(first("", 1), first("", 5)) {
		t.Error("placement varies without the fault")
	}
	if slices.Equal(first("restless", 1), first("restless", 5)) {
		t.Error("placement does not vary with the fault")
	}
}
