package sim

import (
	"slices"
	"strings"
)

// counterBlocks are the hardware blocks with the number of counters that one pass can take of each. The limits are those
// that a careful user keeps to on gfx9 (8 for SQ, 4 for TCC, TCP, TA and TD, 2 for GRBM), not a data sheet's.
var counterBlocks = []struct {
	prefix string
	most   int
}{{"SQ_", 8}, {"TCC_", 4}, {"TCP_", 4}, {"TA_", 2}, {"TD_", 2}, {"GRBM_", 2}, {"SPI_", 2}, {"CPC_", 2}, {"CPF_", 2}, {"GDS_", 4}}

// derived counters are computed from hardware counters of a block.
var derived = map[string]string{"FETCH_SIZE": "TCC_", "WRITE_SIZE": "TCC_", "MeanOccupancyPerCU": "SQ_", "OccupancyPercent": "SQ_", "VALUBusy": "SQ_", "LDSBankConflict": "SQ_", "L2CacheHit": "TCC_", "MfmaUtil": "SQ_"}

func counterBlock(name string) string {
	if block, ok := derived[name]; ok {
		return block
	}
	for _, b := range counterBlocks {
		if strings.HasPrefix(name, b.prefix) {
			return b.prefix
		}
	}
	return ""
}

// checkCounters drops unknown counters with the real one's warning; no known one at all ends the run.
func (s *session) checkCounters() error {
	var err error
	if len(s.cfg.counters) > 0 {
		s.cfg.counters, err = s.knownCounters(s.cfg.counters)
	}
	for i := range s.cfg.groups {
		if err == nil {
			s.cfg.groups[i], err = s.knownCounters(s.cfg.groups[i])
		}
	}
	return err
}

func (s *session) knownCounters(asked []string) ([]string, error) {
	node := firstGPUNode + max(s.gpu, 0)
	var known, missing []string
	for _, name := range asked {
		if counterBlock(name) == "" {
			missing = append(missing, name)
		} else if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if len(known) == 0 {
		return nil, saidf("No counter information found for agent %d (gpu-%d, %s). Unable to find counter: %s", node, max(s.gpu, 0), s.model.arch, missing[0])
	}
	if len(missing) > 0 {
		s.log('W', "tool.cpp:1433", "[rocprofv3] Unable to find all counters for agent %d (gpu-%d, %s) in [%s]. Found: [%s]. Missing: [%s]", node, max(s.gpu, 0), s.model.arch,
			strings.Join(asked, ", "), strings.Join(known, ", "), strings.Join(missing, ", "))
	}
	return known, nil
}

// overCapacity says whether the counters do not fit one pass.
func overCapacity(counters []string) bool {
	used := map[string]int{}
	for _, name := range counters {
		used[counterBlock(name)]++
	}
	for _, b := range counterBlocks {
		if used[b.prefix] > b.most {
			return true
		}
	}
	return false
}

// counterRows has one row for each targeted dispatch and counter; nil when no dispatch was targeted.
func (s *session) counterRows() []byte {
	t := newTable("Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp")
	rows := 0
	for _, d := range s.dispatches {
		if !d.targeted {
			continue
		}
		o, grid := d.object, d.object.items()
		arch, acc, sgpr := s.csvRegisters(o)
		for _, name := range s.countersOf(d) {
			t.row(d.id, d.id, s.agentName(), 1, s.pid, s.pid, grid[0]*grid[1]*grid[2], o.kernelID, s.formatted(o.kernel), o.block[0]*o.block[1]*o.block[2], align(o.lds, 512), 0,
				arch, acc, sgpr, name, decimals(s.counterValue(o, name, d.endNS-d.startNS), 6), d.startNS, d.endNS)
			rows++
		}
	}
	if rows == 0 {
		return nil
	}
	return t.Bytes()
}

// counterValue invents a figure that agrees with the launch: waves, instructions by kind, cycles. What the code template
// says nothing about is a stable number of the same order.
func (s *session) counterValue(o *kernelObject, name string, ns int64) float64 {
	waves := float64(o.workgroups() * o.wavesPerGroup())
	cycles := float64(ns) * float64(s.model.clockMHz) / 1000
	perWave := func(units ...unit) float64 {
		if o.code == nil {
			return 8
		}
		n := 0
		for _, u := range units {
			n += o.code.executed(u, o.trips)
		}
		return float64(n)
	}
	bytes := waves * 64 * 16 * perWave(unitVMEM, unitFlat)
	switch name {
	case "SQ_WAVES":
		return waves
	case "GRBM_GUI_ACTIVE", "GRBM_COUNT":
		return cycles * float64(s.model.xccs)
	case "SQ_BUSY_CYCLES":
		return cycles * float64(s.model.ses())
	case "SQ_WAVE_CYCLES":
		return waves * cycles / 4
	case "SQ_INSTS_VALU":
		return waves * perWave(unitVALU, unitMFMA)
	case "SQ_INSTS_MFMA", "SQ_INSTS_VALU_MFMA_BF16":
		return waves * perWave(unitMFMA)
	case "SQ_INSTS_LDS":
		return waves * perWave(unitLDS)
	case "SQ_INSTS_VMEM", "SQ_INSTS_VMEM_RD":
		return waves * perWave(unitVMEM, unitFlat)
	case "SQ_INSTS_SALU":
		return waves * perWave(unitSALU, unitBranch)
	case "SQ_INSTS_SMEM":
		return waves * perWave(unitSMEM)
	case "SQ_LDS_BANK_CONFLICT":
		return waves * perWave(unitLDS) / 8
	case "FETCH_SIZE":
		return bytes / 1024
	case "TCC_HIT_sum":
		return bytes / 128 * 0.6
	case "TCC_MISS_sum":
		return bytes / 128 * 0.4
	case "TCC_REQ_sum", "TCC_READ_sum":
		return bytes / 128
	case "MeanOccupancyPerCU", "OccupancyPercent", "VALUBusy", "LDSBankConflict", "L2CacheHit", "MfmaUtil":
		return 10 + 60*stream(s.set.Seed, name, o.kernel).Float64()
	}
	return waves * float64(10+stream(s.set.Seed, name, o.kernel).IntN(200))
}
