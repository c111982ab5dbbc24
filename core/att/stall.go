package att

import (
	"slices"
	"strings"
)

// stallRule gives the class of the mnemonics that are word or begin with word and an underscore.
type stallRule struct{ word, class string }

// stallRules is the table of classes; the first row that fits counts. Words are the assembler's (LLVM AMDGPU, gfx9 to gfx12):
// a class is the unit that issues the instruction, as in the trace's own categories, but that matrix instructions stand
// apart from other VALU ones, barriers from waits, and global and scratch accesses, which need no LDS path, from flat ones.
var stallRules = []stallRule{
	{"s_barrier", "barrier"}, {"s_get_barrier_state", "barrier"}, {"s_wakeup_barrier", "barrier"},

	// Instructions that do nothing but pass time or set how the wave is scheduled.
	{"s_nop", "nop"}, {"v_nop", "nop"}, {"ds_nop", "nop"}, {"s_sleep", "nop"}, {"s_delay_alu", "nop"}, {"s_clause", "nop"},
	{"s_setprio", "nop"}, {"s_code_end", "nop"}, {"s_inst_prefetch", "nop"},
	{"s_set_inst_prefetch_distance", "nop"}, {"s_wakeup", "nop"}, {"s_sethalt", "nop"}, {"s_setkill", "nop"},

	{"s_sendmsg", "message"}, {"s_sendmsghalt", "message"}, {"s_endpgm", "message"}, {"s_trap", "message"}, {"s_rfe", "message"},
	{"s_ttracedata", "message"}, {"s_icache_inv", "message"},

	{"s_branch", "branch"}, {"s_cbranch", "branch"}, {"s_setpc", "branch"}, {"s_swappc", "branch"}, {"s_call", "branch"},
	{"s_subvector_loop_begin", "branch"}, {"s_subvector_loop_end", "branch"}, {"s_add_pc", "branch"},

	{"s_load", "smem"}, {"s_buffer", "smem"}, {"s_scratch", "smem"}, {"s_store", "smem"}, {"s_atomic", "smem"},
	{"s_dcache", "smem"}, {"s_gl1_inv", "smem"}, {"s_prefetch", "smem"}, {"s_atc_probe", "smem"}, {"s_memtime", "smem"},
	{"s_memrealtime", "smem"}, {"s_get_waveid_in_workgroup", "smem"},

	{"v_mfma", "mfma"}, {"v_smfmac", "mfma"}, {"v_wmma", "mfma"}, {"v_swmmac", "mfma"},

	{"ds", "lds"}, {"lds", "lds"},

	{"buffer", "vmem"}, {"tbuffer", "vmem"}, {"image", "vmem"}, {"tensor", "vmem"}, {"global", "vmem"}, {"scratch", "vmem"}, {"cluster", "vmem"},
	{"flat", "flat"},

	{"exp", "export"}, {"export", "export"},

	{"v", "valu"},
	{"s", "salu"},
}

// waitCounters are what a wait instruction can name, in the order in which a class names them: the operands of s_waitcnt
// (gfx9, gfx10), the mnemonics s_waitcnt_* (gfx10, gfx11) and s_wait_* (gfx12).
var waitCounters = []string{
	"vmcnt", "lgkmcnt", "expcnt", "vscnt",
	"loadcnt", "storecnt", "samplecnt", "bvhcnt", "kmcnt", "dscnt", "xcnt", "asynccnt", "tensorcnt",
	"depctr", "alu", "event", "idle",
}

// StallType is what a wave that stalls at an instruction waits for: the counters of a wait instruction ("vmcnt",
// "vmcnt+lgkmcnt", "loadcnt+dscnt"; "wait" where none can be told), else the class of the instruction: "barrier", "mfma",
// "valu", "salu", "smem", "vmem", "lds", "flat", "branch", "nop", "message" or "export". Header rows, labels and mnemonics
// that are not known give "other". The set of answers is finite whatever isa holds.
func StallType(isa string) string {
	name, operands, _ := strings.Cut(strings.TrimSpace(isa), " ")
	if strings.HasSuffix(name, ":") {
		return "other"
	}
	if name == "s_waitcnt" || strings.HasPrefix(name, "s_waitcnt_") || strings.HasPrefix(name, "s_wait_") {
		return countersOf(name, operands)
	}
	for _, r := range stallRules {
		if rest, ok := strings.CutPrefix(name, r.word); ok && (rest == "" || rest[0] == '_') {
			return r.class
		}
	}
	return "other"
}

// countersOf reads a wait: the counters stand in the mnemonic (s_wait_loadcnt_dscnt) or in the operands ("vmcnt(0)
// lgkmcnt(3)"), which may also be a bare number where the disassembler could not tell.
func countersOf(name, operands string) string {
	if name == "s_waitcnt" {
		switch strings.TrimSpace(operands) {
		case "0", "0x0": // each counter's field is 0 on every generation
			return "vmcnt+lgkmcnt+expcnt"
		}
		name = operands
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c < 'a' || c > 'z' })
	var found []string
	for _, c := range waitCounters {
		if slices.Contains(words, c) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return "wait" // the fields of a number lie elsewhere on each generation
	}
	return strings.Join(found, "+")
}
