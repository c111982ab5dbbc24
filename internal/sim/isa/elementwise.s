; one load, one operation, one store
s_load_dwordx4 s[4:7], s[0:1], 0x0 @args
s_load_dwordx2 s[8:9], s[0:1], 0x10 @args
v_lshlrev_b32_e32 v1, 4, v0 @index
s_mov_b32 s11, 0x27000 @index
s_waitcnt lgkmcnt(0) @args
s_mul_i32 s3, s2, s8 @index
s_lshl_b32 s3, s3, 1 @index
v_add_u32_e32 v1, s3, v1 @index
v_cmp_gt_u32_e32 vcc, s9, v1 @index
s_and_saveexec_b64 s[14:15], vcc @index
s_cbranch_execz 12 @index
global_load_dwordx4 v[4:7], v1, s[4:5] @load
global_load_dwordx4 v[8:11], v1, s[6:7] @load
s_waitcnt vmcnt(0) @load
v_add_f32_e32 v4, v4, v8 @scale
v_add_f32_e32 v5, v5, v9 @scale
v_add_f32_e32 v6, v6, v10 @scale
v_add_f32_e32 v7, v7, v11 @scale
global_store_dwordx4 v1, v[4:7], s[8:9] @store
s_endpgm @store
