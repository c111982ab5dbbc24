; histogram in LDS, prefix sum, scatter
.lds 4096
s_load_dwordx4 s[4:7], s[0:1], 0x0 @args
s_load_dwordx2 s[8:9], s[0:1], 0x10 @args
v_lshlrev_b32_e32 v1, 4, v0 @index
s_mov_b32 s11, 0x27000 @index
s_waitcnt lgkmcnt(0) @args
s_mul_i32 s3, s2, s8 @index
s_lshl_b32 s3, s3, 1 @index
v_add_u32_e32 v1, s3, v1 @index
v_mov_b32_e32 v2, 0 @hist
ds_write_b32 v1, v2 @hist
s_waitcnt lgkmcnt(0) @hist
s_barrier @hist
loop:
global_load_dword v3, v1, s[4:5] @load
s_waitcnt vmcnt(0) @load
v_lshlrev_b32_e32 v4, 2, v3 @hist
ds_add_rtn_u32 v5, v4, v2 @hist
s_add_u32 s4, s4, 0x400 @load
s_cmp_lt_u32 s4, s9 @load
s_cbranch_scc1 loop @load
s_waitcnt lgkmcnt(0) @hist
s_barrier @hist
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
ds_bpermute_b32 v6, v7, v5 @scan
s_waitcnt lgkmcnt(0) @scan
v_add_u32_e32 v5, v5, v6 @scan
v_lshlrev_b32_e32 v5, 2, v5 @store
global_store_dword v5, v3, s[6:7] @store
s_endpgm @store
