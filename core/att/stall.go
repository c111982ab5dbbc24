package att

import "strings"

// stallRule gives the class of instructions by the beginning of the mnemonic. The first rule that fits counts.
type stallRule struct{ prefix, class string }

// stallRules is the table: what a wave waits for at an instruction. The words are those of the counters (vmcnt, lgkmcnt ...)
// and of the units that issue it.
var stallRules = []stallRule{
	{"s_barrier", "barrier"},
	{"s_nop", "nop"}, {"s_sleep", "nop"}, {"s_delay_alu", "nop"},
	{"s_sendmsg", "message"}, {"s_endpgm", "message"}, {"s_trap", "message"},
	{"s_cbranch", "branch"}, {"s_branch", "branch"}, {"s_setpc", "branch"}, {"s_swappc", "branch"}, {"s_call", "branch"},
	{"s_load", "smem"}, {"s_buffer_load", "smem"}, {"s_store", "smem"}, {"s_scratch", "smem"}, {"s_atc_probe", "smem"},
	{"s_dcache", "smem"}, {"s_memtime", "smem"}, {"s_memrealtime", "smem"}, {"s_prefetch", "smem"}, {"s_icache", "smem"},
	{"v_mfma", "mfma"}, {"v_smfmac", "mfma"}, {"v_wmma", "mfma"}, {"v_swmmac", "mfma"}, {"v_dot", "valu"},
	{"ds_", "lds"}, {"lds_", "lds"},
	{"flat_", "flat"},
	{"global_", "vmem"}, {"buffer_", "vmem"}, {"scratch_", "vmem"}, {"image_", "vmem"}, {"tbuffer_", "vmem"}, {"tensor_", "vmem"},
	{"exp", "export"},
	{"v_", "valu"},
	{"s_", "salu"},
}

// StallType is what a wave that stalls at an instruction waits for: the counters of a wait ("vmcnt", "lgkmcnt",
// "vmcnt+lgkmcnt"), or the unit that would issue it ("mfma", "valu", "lds", "barrier" ...); "other" for what the table does
// not know.
func StallType(isa string) string {
	name, operands, _ := strings.Cut(strings.TrimSpace(isa), " ")
	if name == "s_waitcnt" {
		return waitCounters(operands)
	}
	if rest, ok := strings.CutPrefix(name, "s_waitcnt_"); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(name, "s_wait_"); ok {
		if rest == "alu" || rest == "idle" || rest == "event" {
			return "nop"
		}
		return strings.ReplaceAll(rest, "_", "+")
	}
	for _, r := range stallRules {
		if strings.HasPrefix(name, r.prefix) {
			return r.class
		}
	}
	return "other"
}

// counters are those of s_waitcnt on gfx9, in the order in which they are named.
var counters = []string{"vmcnt", "lgkmcnt", "expcnt", "vscnt"}

// waitCounters names the counters that a wait has, joined by +.
func waitCounters(operands string) string {
	var found []string
	for _, c := range counters {
		if strings.Contains(operands, c+"(") {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return "waitcnt" // a bare number
	}
	return strings.Join(found, "+")
}
