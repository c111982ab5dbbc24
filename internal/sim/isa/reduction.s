; row norm: load, sum of squares, weights, store
.lds 256
s_load_dwordx4 s[4:7], s[0:1], 0x0 @args
s_load_dwordx2 s[8:9], s[0:1], 0x10 @args
v_lshlrev_b32_e32 v1, 4, v0 @index
s_mov_b32 s11, 0x27000 @index
s_waitcnt lgkmcnt(0) @args
s_mul_i32 s3, s2, s8 @index
s_lshl_b32 s3, s3, 1 @index
v_add_u32_e32 v1, s3, v1 @index
v_and_b32_e32 v2, 63, v0 @index
v_lshlrev_b32_e32 v2, 2, v2 @index
v_lshrrev_b32_e32 v4, 4, v0 @index
v_mov_b32_e32 v5, 0 @index
buffer_load_dwordx4 v[16:19], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x1000, v1 @load
buffer_load_dwordx4 v[20:23], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x1000, v1 @load
buffer_load_dwordx4 v[24:27], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x1000, v1 @load
buffer_load_dwordx4 v[28:31], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x1000, v1 @load
v_mov_b32_e32 v6, 0 @sum
s_waitcnt vmcnt(3) @load
v_lshlrev_b32_e32 v32, 16, v16 @load
v_and_b32_e32 v33, 0xffff0000, v16 @load
v_fmac_f32_e32 v6, v32, v32 @sum
v_fmac_f32_e32 v6, v33, v33 @sum
v_lshlrev_b32_e32 v34, 16, v17 @load
v_and_b32_e32 v35, 0xffff0000, v17 @load
v_fmac_f32_e32 v6, v34, v34 @sum
v_fmac_f32_e32 v6, v35, v35 @sum
v_lshlrev_b32_e32 v36, 16, v18 @load
v_and_b32_e32 v37, 0xffff0000, v18 @load
v_fmac_f32_e32 v6, v36, v36 @sum
v_fmac_f32_e32 v6, v37, v37 @sum
v_lshlrev_b32_e32 v38, 16, v19 @load
v_and_b32_e32 v39, 0xffff0000, v19 @load
v_fmac_f32_e32 v6, v38, v38 @sum
v_fmac_f32_e32 v6, v39, v39 @sum
s_waitcnt vmcnt(2) @load
v_lshlrev_b32_e32 v40, 16, v20 @load
v_and_b32_e32 v41, 0xffff0000, v20 @load
v_fmac_f32_e32 v6, v40, v40 @sum
v_fmac_f32_e32 v6, v41, v41 @sum
v_lshlrev_b32_e32 v42, 16, v21 @load
v_and_b32_e32 v43, 0xffff0000, v21 @load
v_fmac_f32_e32 v6, v42, v42 @sum
v_fmac_f32_e32 v6, v43, v43 @sum
v_lshlrev_b32_e32 v44, 16, v22 @load
v_and_b32_e32 v45, 0xffff0000, v22 @load
v_fmac_f32_e32 v6, v44, v44 @sum
v_fmac_f32_e32 v6, v45, v45 @sum
v_lshlrev_b32_e32 v46, 16, v23 @load
v_and_b32_e32 v47, 0xffff0000, v23 @load
v_fmac_f32_e32 v6, v46, v46 @sum
v_fmac_f32_e32 v6, v47, v47 @sum
s_waitcnt vmcnt(1) @load
v_lshlrev_b32_e32 v48, 16, v24 @load
v_and_b32_e32 v49, 0xffff0000, v24 @load
v_fmac_f32_e32 v6, v48, v48 @sum
v_fmac_f32_e32 v6, v49, v49 @sum
v_lshlrev_b32_e32 v50, 16, v25 @load
v_and_b32_e32 v51, 0xffff0000, v25 @load
v_fmac_f32_e32 v6, v50, v50 @sum
v_fmac_f32_e32 v6, v51, v51 @sum
v_lshlrev_b32_e32 v52, 16, v26 @load
v_and_b32_e32 v53, 0xffff0000, v26 @load
v_fmac_f32_e32 v6, v52, v52 @sum
v_fmac_f32_e32 v6, v53, v53 @sum
v_lshlrev_b32_e32 v54, 16, v27 @load
v_and_b32_e32 v55, 0xffff0000, v27 @load
v_fmac_f32_e32 v6, v54, v54 @sum
v_fmac_f32_e32 v6, v55, v55 @sum
s_waitcnt vmcnt(0) @load
v_lshlrev_b32_e32 v32, 16, v28 @load
v_and_b32_e32 v33, 0xffff0000, v28 @load
v_fmac_f32_e32 v6, v32, v32 @sum
v_fmac_f32_e32 v6, v33, v33 @sum
v_lshlrev_b32_e32 v34, 16, v29 @load
v_and_b32_e32 v35, 0xffff0000, v29 @load
v_fmac_f32_e32 v6, v34, v34 @sum
v_fmac_f32_e32 v6, v35, v35 @sum
v_lshlrev_b32_e32 v36, 16, v30 @load
v_and_b32_e32 v37, 0xffff0000, v30 @load
v_fmac_f32_e32 v6, v36, v36 @sum
v_fmac_f32_e32 v6, v37, v37 @sum
v_lshlrev_b32_e32 v38, 16, v31 @load
v_and_b32_e32 v39, 0xffff0000, v31 @load
v_fmac_f32_e32 v6, v38, v38 @sum
v_fmac_f32_e32 v6, v39, v39 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_bpermute_b32 v3, v2, v6 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v3 @sum
ds_write_b32 v4, v6 @sum
s_waitcnt lgkmcnt(0) @sum
s_barrier @sum
ds_read_b128 v[8:11], v5 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v6, v6, v8 @sum
v_add_f32_e32 v6, v6, v9 @sum
v_add_f32_e32 v6, v6, v10 @sum
v_add_f32_e32 v6, v6, v11 @sum
s_barrier @sum
v_rsq_f32_e32 v6, v6 @scale
s_load_dwordx4 s[12:15], s[0:1], 0x18 @args
s_waitcnt lgkmcnt(0) @args
buffer_load_dwordx4 v[56:59], v0, s[12:15], 0 offen @weight
s_waitcnt vmcnt(0) @weight
v_mul_f32_e32 v16, v6, v16 @scale
v_mul_f32_e32 v16, v56, v16 @weight
v_mul_f32_e32 v17, v6, v17 @scale
v_mul_f32_e32 v17, v57, v17 @weight
v_mul_f32_e32 v18, v6, v18 @scale
v_mul_f32_e32 v18, v58, v18 @weight
v_mul_f32_e32 v19, v6, v19 @scale
v_mul_f32_e32 v19, v59, v19 @weight
buffer_store_dwordx4 v[16:19], v1, s[4:7], 0 offen @store
buffer_load_dwordx4 v[56:59], v0, s[12:15], 0 offen @weight
s_waitcnt vmcnt(0) @weight
v_mul_f32_e32 v20, v6, v20 @scale
v_mul_f32_e32 v20, v56, v20 @weight
v_mul_f32_e32 v21, v6, v21 @scale
v_mul_f32_e32 v21, v57, v21 @weight
v_mul_f32_e32 v22, v6, v22 @scale
v_mul_f32_e32 v22, v58, v22 @weight
v_mul_f32_e32 v23, v6, v23 @scale
v_mul_f32_e32 v23, v59, v23 @weight
buffer_store_dwordx4 v[20:23], v1, s[4:7], 0 offen @store
buffer_load_dwordx4 v[56:59], v0, s[12:15], 0 offen @weight
s_waitcnt vmcnt(0) @weight
v_mul_f32_e32 v24, v6, v24 @scale
v_mul_f32_e32 v24, v56, v24 @weight
v_mul_f32_e32 v25, v6, v25 @scale
v_mul_f32_e32 v25, v57, v25 @weight
v_mul_f32_e32 v26, v6, v26 @scale
v_mul_f32_e32 v26, v58, v26 @weight
v_mul_f32_e32 v27, v6, v27 @scale
v_mul_f32_e32 v27, v59, v27 @weight
buffer_store_dwordx4 v[24:27], v1, s[4:7], 0 offen @store
buffer_load_dwordx4 v[56:59], v0, s[12:15], 0 offen @weight
s_waitcnt vmcnt(0) @weight
v_mul_f32_e32 v28, v6, v28 @scale
v_mul_f32_e32 v28, v56, v28 @weight
v_mul_f32_e32 v29, v6, v29 @scale
v_mul_f32_e32 v29, v57, v29 @weight
v_mul_f32_e32 v30, v6, v30 @scale
v_mul_f32_e32 v30, v58, v30 @weight
v_mul_f32_e32 v31, v6, v31 @scale
v_mul_f32_e32 v31, v59, v31 @weight
buffer_store_dwordx4 v[28:31], v1, s[4:7], 0 offen @store
s_endpgm @store
