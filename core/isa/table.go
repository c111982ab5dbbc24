package isa

// row is the class of the mnemonics that are a word, or that begin with it and an underscore, and the counters that they raise.
type row struct {
	word  string
	class Class
	uses  Counters
}

// What memory instructions count on, on any generation (LLVM SIInsertWaitcnts; the ISA documents of MI300, RDNA 3 and RDNA 4).
const (
	loads    = VMCnt | LoadCnt
	stores   = VMCnt | VSCnt | StoreCnt // gfx9 counts stores on vmcnt, gfx10 and gfx11 on vscnt
	atomics  = loads | stores           // with a result they count as loads, without as stores
	scalar   = LGKMCnt | KMCnt
	shared   = LGKMCnt | DSCnt
	eitherIO = atomics | shared // flat addresses may be LDS
)

// table is all classes: a new mnemonic is a new row. Where several rows fit, the longest word counts.
var table = []row{
	{"v", VALU, 0},
	{"v_mfma", Matrix, 0}, {"v_smfmac", Matrix, 0}, {"v_wmma", Matrix, 0}, {"v_swmmac", Matrix, 0},
	{"v_nop", Nop, 0},

	{"s", SALU, 0},
	{"s_waitcnt", Wait, 0}, {"s_wait", Wait, 0},
	{"s_barrier", Barrier, 0}, {"s_get_barrier_state", Barrier, scalar}, {"s_wakeup_barrier", Barrier, 0},

	{"s_nop", Nop, 0}, {"s_sleep", Nop, 0}, {"s_delay_alu", Nop, 0}, {"s_clause", Nop, 0}, {"s_setprio", Nop, 0}, {"s_code_end", Nop, 0},
	{"s_inst_prefetch", Nop, 0}, {"s_set_inst_prefetch_distance", Nop, 0}, {"s_wakeup", Nop, 0}, {"s_sethalt", Nop, 0}, {"s_setkill", Nop, 0},
	{"ds_nop", Nop, 0},

	{"s_branch", Branch, 0}, {"s_cbranch", Branch, 0}, {"s_setpc", Branch, 0}, {"s_swappc", Branch, 0}, {"s_call", Branch, 0}, {"s_add_pc", Branch, 0},
	{"s_subvector_loop_begin", Branch, 0}, {"s_subvector_loop_end", Branch, 0},

	{"s_sendmsg", Message, scalar}, {"s_sendmsghalt", Message, scalar}, {"s_endpgm", Message, 0}, {"s_trap", Message, 0}, {"s_rfe", Message, 0},
	{"s_ttracedata", Message, 0},

	{"s_load", SMEM, scalar}, {"s_buffer", SMEM, scalar}, {"s_scratch", SMEM, scalar}, {"s_store", SMEM, scalar}, {"s_atomic", SMEM, scalar},
	{"s_prefetch", SMEM, 0}, {"s_atc_probe", SMEM, scalar}, {"s_memtime", SMEM, scalar}, {"s_memrealtime", SMEM, scalar},
	{"s_get_waveid_in_workgroup", SMEM, scalar},

	{"s_dcache", Cache, scalar}, {"s_gl1_inv", Cache, scalar}, {"s_icache_inv", Cache, 0},
	{"buffer_wbl2", Cache, stores}, {"buffer_inv", Cache, loads}, {"buffer_invl2", Cache, loads}, {"buffer_wbinvl1", Cache, loads}, {"buffer_wbinvl2", Cache, loads},
	{"buffer_gl0_inv", Cache, loads}, {"buffer_gl1_inv", Cache, loads}, {"global_inv", Cache, loads}, {"global_wb", Cache, stores}, {"global_wbinv", Cache, stores},

	{"buffer_load", VMEMLoad, loads}, {"tbuffer_load", VMEMLoad, loads}, {"global_load", VMEMLoad, loads}, {"global_prefetch", VMEMLoad, loads},
	{"cluster_load", VMEMLoad, loads}, {"global_load_async", VMEMLoad, AsyncCnt}, {"cluster_load_async", VMEMLoad, AsyncCnt},
	{"tensor_load", VMEMLoad, TensorCnt},
	{"buffer_store", VMEMStore, stores}, {"tbuffer_store", VMEMStore, stores}, {"global_store", VMEMStore, stores},
	{"global_store_async", VMEMStore, AsyncCnt}, {"tensor_store", VMEMStore, TensorCnt},
	{"buffer_atomic", VMEMAtomic, atomics}, {"global_atomic", VMEMAtomic, atomics}, {"flat_atomic", VMEMAtomic, eitherIO},

	{"image", Image, atomics | SampleCnt | BVHCnt},
	{"flat", Flat, eitherIO},
	{"scratch_load", Scratch, loads}, {"scratch_store", Scratch, stores},

	{"ds", LDS, shared}, {"lds", LDS, ExpCnt}, {"ds_direct_load", LDS, ExpCnt}, {"ds_param_load", LDS, ExpCnt},

	{"exp", Export, ExpCnt}, {"export", Export, ExpCnt},
}

var byWord = func() map[string]row {
	out := make(map[string]row, len(table))
	for _, r := range table {
		out[r.word] = r
	}
	return out
}()
