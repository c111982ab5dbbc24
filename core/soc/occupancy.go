package soc

// Occupancy is how many waves of a kernel fit on a CU at a time, and what allows no more.
type Occupancy struct {
	WavesPerSIMD    int    `json:"waves_per_simd" jsonschema_description:"Waves on the fullest SIMD."`
	WavesPerCU      int    `json:"waves_per_cu" jsonschema_description:"Waves that fit on a CU at a time."`
	WorkgroupsPerCU int    `json:"workgroups_per_cu"`
	Limiter         string `json:"limiter,omitempty" jsonschema:"enum=vgpr,enum=lds,enum=workgroup,enum=hardware" jsonschema_description:"What allows no more: registers; LDS; the size of the workgroup; or the hardware's own 8 waves a SIMD."`
	// VGPRsAllocated is what one wave takes of a SIMD's file, in registers a lane, after rounding.
	VGPRsAllocated int `json:"vgprs_allocated" jsonschema_description:"Registers a lane that one wave takes after rounding up."`
	// PctOfPeak is WavesPerCU in percent of the slots.
	PctOfPeak float64 `json:"pct_of_peak"`
}

// What can limit the occupancy.
const (
	LimiterVGPR      = "vgpr"
	LimiterLDS       = "lds"
	LimiterWorkgroup = "workgroup"
	LimiterHardware  = "hardware"
)

// MaxWorkgroupSize is the most work-items of a workgroup (Workgroup_Max_Size of agent_info.csv).
const MaxWorkgroupSize = 1024

// OccupancyOf applies LLVM's rule for gfx90a, gfx942 and gfx950 to one wave's registers (arch and accum, a lane), a
// workgroup's LDS in bytes and its size in work-items (0 where not known: one wave). A kernel that cannot run at all has no
// waves, and the limiter says why. Without figures (SoC not known) the answer is the zero value.
//
// A workgroup runs on one CU as a whole, so its waves count in multiples. The limiter is the limit that gives the fewest
// workgroups; where registers and LDS give the same, registers are named.
func OccupancyOf(s SoC, archVGPR, accumVGPR, ldsBytes, workgroupSize int) Occupancy {
	if !s.Known() {
		return Occupancy{}
	}
	o := Occupancy{VGPRsAllocated: AllocatedVGPRs(archVGPR, accumVGPR)}
	waves := max(1, ceilDiv(workgroupSize, s.WaveSize))
	slots := s.SIMDsPerCU * s.WavesPerSIMD
	byHardware := slots / waves
	if workgroupSize > MaxWorkgroupSize {
		byHardware = 0
	}
	byVGPR := s.SIMDsPerCU * min(s.WavesPerSIMD, s.VGPRsPerSIMD/o.VGPRsAllocated) / waves
	if archVGPR > s.VGPRsPerSIMD || accumVGPR > s.VGPRsPerWave {
		byVGPR = 0
	}
	byLDS := byHardware
	if ldsBytes > 0 {
		byLDS = s.LDSBytesPerCU / align(ldsBytes, s.LDSGranuleBytes)
	}
	o.WorkgroupsPerCU = min(byHardware, byVGPR, byLDS)
	switch {
	case byVGPR == o.WorkgroupsPerCU && byVGPR < byHardware:
		o.Limiter = LimiterVGPR
	case byLDS == o.WorkgroupsPerCU && byLDS < byHardware:
		o.Limiter = LimiterLDS
	case byHardware*waves < slots:
		o.Limiter = LimiterWorkgroup
	default:
		o.Limiter = LimiterHardware
	}
	o.WavesPerCU = o.WorkgroupsPerCU * waves
	o.WavesPerSIMD = ceilDiv(o.WavesPerCU, s.SIMDsPerCU)
	o.PctOfPeak = 100 * float64(o.WavesPerCU) / float64(slots)
	return o
}

// AllocatedVGPRs is what one wave takes of the unified file in registers a lane: the arch registers rounded up to 4 and
// the accum registers behind them, together rounded up to 8; at least 8 (LLVM: getVGPRAllocGranule, accum offset).
func AllocatedVGPRs(arch, accum int) int {
	arch, accum = max(arch, 0), max(accum, 0)
	if accum > 0 {
		arch = align(arch, 4)
	}
	return max(8, align(arch+accum, 8))
}

func align(n, unit int) int { return ceilDiv(n, unit) * unit }

func ceilDiv(n, d int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/d + 1
}
