package analyze

import "github.com/flyprof/flyprof-mcp/core/soc"

// metricRow is one metric with the ways to compute it; the first whose counters were collected is taken.
type metricRow struct {
	id, unit string
	says     string
	ways     []way
}

// way computes a metric from counters, in the order of needs. It gives false where they do not allow it, with the reason.
type way struct {
	needs   []string
	formula string
	archs   []string // empty for all
	f       func(v []float64, s soc.SoC) (value float64, ok bool, why string)
}

// The units of metrics.
const (
	unitPct   = "percent"
	unitWaves = "waves"
	unitBytes = "bytes"
	unitGBs   = "GB/s"
)

const (
	whyZero    = "the denominator is 0"
	whySizes   = "the counters of request sizes are all 0 though requests were counted"
	whyReverse = "the parts are larger than the whole"
	whyNoGPU   = "the GPU's figures are not known"
)

// share is 100 x part / whole.
func share(part, whole float64) (float64, bool, string) {
	switch {
	case whole <= 0:
		return 0, false, whyZero
	case part > whole:
		return 0, false, whyReverse
	}
	return 100 * part / whole, true, ""
}

func ofTwo(v []float64, _ soc.SoC) (float64, bool, string) { return share(v[0], v[1]) }

// simdsPerCU is that of gfx9, gfx10 and later differ.
const simdsPerCU = 4

var cdna = []string{"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"}

// metrics is the table. Formulas are those of AMD's counter_defs.yaml (L2CacheHit, MfmaUtil, MeanOccupancyPerActiveCU, FETCH_SIZE, WRITE_SIZE)
// and of rocprofiler-compute (LDS, instruction mix). A counter in a CSV is the sum over its instances: over all SEs, and over all XCDs for GRBM_GUI_ACTIVE
// (rocprofv3's generateCSV.cpp), where AMD's formulas take the maximum; so a per-XCD count is the CSV's divided by the XCDs.
var metrics = []metricRow{
	{"l2_hit_pct", unitPct, "requests that hit in L2", []way{
		{[]string{"TCC_HIT_sum", "TCC_MISS_sum"}, "100 x TCC_HIT_sum / (TCC_HIT_sum + TCC_MISS_sum)", nil, hitRate},
		{[]string{"GL2C_HIT_sum", "GL2C_MISS_sum"}, "100 x GL2C_HIT_sum / (GL2C_HIT_sum + GL2C_MISS_sum)", nil, hitRate},
	}},
	{"read_32b_pct", unitPct, "reads from memory that fetch 32 bytes: more than a few mean that accesses do not fill cache lines", []way{
		{[]string{"TCC_EA0_RDREQ_32B_sum", "TCC_EA0_RDREQ_sum"}, "100 x TCC_EA0_RDREQ_32B_sum / TCC_EA0_RDREQ_sum", nil, ofTwo},
		{[]string{"TCC_EA_RDREQ_32B_sum", "TCC_EA_RDREQ_sum"}, "100 x TCC_EA_RDREQ_32B_sum / TCC_EA_RDREQ_sum", nil, ofTwo},
		{[]string{"GL2C_EA_RDREQ_32B_sum", "GL2C_EA_RDREQ_sum", "GL2C_EA_RDREQ_64B_sum", "GL2C_EA_RDREQ_128B_sum"}, "100 x GL2C_EA_RDREQ_32B_sum / GL2C_EA_RDREQ_sum", nil,
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				if v[1] > 0 && v[0]+v[2]+v[3] == 0 {
					return 0, false, whySizes
				}
				return share(v[0], v[1])
			}},
	}},
	{"write_32b_pct", unitPct, "writes to memory of 32 bytes, half of a full request", []way{
		{[]string{"TCC_EA0_WRREQ_64B_sum", "TCC_EA0_WRREQ_sum"}, "100 x (1 - TCC_EA0_WRREQ_64B_sum / TCC_EA0_WRREQ_sum)", nil,
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				full, ok, why := share(v[0], v[1])
				return 100 - full, ok, why
			}},
	}},
	{"mfma_inst_pct", unitPct, "VALU instructions that are matrix instructions", []way{
		{[]string{"SQ_INSTS_MFMA", "SQ_INSTS_VALU"}, "100 x SQ_INSTS_MFMA / SQ_INSTS_VALU", cdna, ofTwo},
	}},
	{"mfma_busy_pct", unitPct, "time of the matrix cores, on CUs that had waves, in which they worked", []way{
		{[]string{"SQ_VALU_MFMA_BUSY_CYCLES", "SQ_BUSY_CU_CYCLES"}, "100 x SQ_VALU_MFMA_BUSY_CYCLES / (4 x SQ_BUSY_CU_CYCLES x 4 SIMDs)", cdna,
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				return share(v[0], quad*v[1]*simdsPerCU)
			}},
	}},
	{"mfma_util_pct", unitPct, "time of all matrix cores of the GPU, while it was active, in which they worked", []way{
		{[]string{"SQ_VALU_MFMA_BUSY_CYCLES", "GRBM_GUI_ACTIVE"}, "100 x SQ_VALU_MFMA_BUSY_CYCLES / (GRBM_GUI_ACTIVE / XCDs x CUs x 4 SIMDs)", cdna,
			func(v []float64, s soc.SoC) (float64, bool, string) {
				if !s.Known() || s.XCDs == 0 {
					return 0, false, whyNoGPU
				}
				return share(v[0], v[1]/float64(s.XCDs)*float64(s.CUs)*simdsPerCU)
			}},
	}},
	{"lds_conflict_pct", unitPct, "cycles of LDS in use that bank conflicts take", []way{
		{[]string{"SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"}, "100 x SQ_LDS_BANK_CONFLICT / SQ_LDS_IDX_ACTIVE", cdna, ofTwo},
	}},
	{"occupancy_waves", unitWaves, "waves resident on a CU that had any, over time", []way{
		{[]string{"SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES"}, "SQ_WAVE_CYCLES / SQ_BUSY_CU_CYCLES", cdna,
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				return v[0] / max(v[1], 1), v[1] > 0, whyZero
			}},
	}},
	{"occupancy_pct", unitPct, "the same of the waves that a CU can hold", []way{
		{[]string{"SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES"}, "100 x SQ_WAVE_CYCLES / SQ_BUSY_CU_CYCLES / slots a CU", cdna,
			func(v []float64, s soc.SoC) (float64, bool, string) {
				if !s.Known() {
					return 0, false, whyNoGPU
				}
				return share(v[0], v[1]*float64(s.SIMDsPerCU*s.WavesPerSIMD))
			}},
	}},
	{"wait_pct", unitPct, "time of waves in which they waited for anything", []way{
		{[]string{"SQ_WAIT_ANY", "SQ_WAVE_CYCLES"}, "100 x SQ_WAIT_ANY / SQ_WAVE_CYCLES", cdna, ofTwo},
	}},
	{"wait_issue_pct", unitPct, "time of waves in which they waited for an instruction to issue", []way{
		{[]string{"SQ_WAIT_INST_ANY", "SQ_WAVE_CYCLES"}, "100 x SQ_WAIT_INST_ANY / SQ_WAVE_CYCLES", cdna, ofTwo},
	}},
	{"wait_lds_issue_pct", unitPct, "time of waves in which they waited for an LDS instruction to issue", []way{
		{[]string{"SQ_WAIT_INST_LDS", "SQ_WAVE_CYCLES"}, "100 x SQ_WAIT_INST_LDS / SQ_WAVE_CYCLES", cdna, ofTwo},
	}},
	{"read_bytes", unitBytes, "bytes read from memory by a dispatch", []way{
		{[]string{"TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum"}, "128 x TCC_BUBBLE_sum + 64 x (TCC_EA0_RDREQ_sum - TCC_BUBBLE_sum - TCC_EA0_RDREQ_32B_sum) + 32 x TCC_EA0_RDREQ_32B_sum",
			[]string{"gfx940", "gfx941", "gfx942"}, // on gfx950 TCC_BUBBLE_sum does not count 128-byte reads
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				rest := v[0] - v[1] - v[2]
				return 128*v[2] + 64*rest + 32*v[1], rest >= 0, whyReverse
			}},
		{[]string{"TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum"}, "64 x (TCC_EA_RDREQ_sum - TCC_EA_RDREQ_32B_sum) + 32 x TCC_EA_RDREQ_32B_sum", []string{"gfx90a", "gfx908"},
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				return 64*(v[0]-v[1]) + 32*v[1], v[0] >= v[1], whyReverse
			}},
		{[]string{"GL2C_EA_RDREQ_32B_sum", "GL2C_EA_RDREQ_64B_sum", "GL2C_EA_RDREQ_128B_sum", "GL2C_EA_RDREQ_sum"}, "32 x GL2C_EA_RDREQ_32B_sum + 64 x GL2C_EA_RDREQ_64B_sum + 128 x GL2C_EA_RDREQ_128B_sum", []string{"gfx12", "gfx1200", "gfx1201"},
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				if v[3] > 0 && v[0]+v[1]+v[2] == 0 {
					return 0, false, whySizes
				}
				return 32*v[0] + 64*v[1] + 128*v[2], true, ""
			}},
	}},
	{"write_bytes", unitBytes, "bytes written to memory by a dispatch", []way{
		{[]string{"TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"}, "32 x (TCC_EA0_WRREQ_sum - TCC_EA0_WRREQ_64B_sum) + 64 x TCC_EA0_WRREQ_64B_sum", cdna,
			func(v []float64, _ soc.SoC) (float64, bool, string) {
				return 32*(v[0]-v[1]) + 64*v[1], v[0] >= v[1], whyReverse
			}},
	}},
}

// quad is the cycles of a quad-cycle, the unit of SQ_BUSY_CU_CYCLES, SQ_WAVE_CYCLES and of the waits.
const quad = 4

func hitRate(v []float64, _ soc.SoC) (float64, bool, string) { return share(v[0], v[0]+v[1]) }

// mustCount are counters that cannot be 0 when a kernel ran.
var mustCount = []string{"GRBM_GUI_ACTIVE", "GRBM_COUNT", "SQ_WAVES", "SQ_BUSY_CYCLES", "SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES", "SQ_INSTS_VALU", "SQ_INSTS"}
