; row softmax: load, maximum, exponentials, sum, scale, store
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
v_mov_b32_e32 v6, 0xff800000 @max
s_waitcnt vmcnt(3) @load
v_and_b32_e32 v32, 0xffff0000, v16 @load
v_lshlrev_b32_e32 v33, 16, v16 @load
v_max3_f32 v6, v6, v32, v33 @max
v_and_b32_e32 v34, 0xffff0000, v17 @load
v_lshlrev_b32_e32 v35, 16, v17 @load
v_max3_f32 v6, v6, v34, v35 @max
v_and_b32_e32 v36, 0xffff0000, v18 @load
v_lshlrev_b32_e32 v37, 16, v18 @load
v_max3_f32 v6, v6, v36, v37 @max
v_and_b32_e32 v38, 0xffff0000, v19 @load
v_lshlrev_b32_e32 v39, 16, v19 @load
v_max3_f32 v6, v6, v38, v39 @max
s_waitcnt vmcnt(2) @load
v_and_b32_e32 v40, 0xffff0000, v20 @load
v_lshlrev_b32_e32 v41, 16, v20 @load
v_max3_f32 v6, v6, v40, v41 @max
v_and_b32_e32 v42, 0xffff0000, v21 @load
v_lshlrev_b32_e32 v43, 16, v21 @load
v_max3_f32 v6, v6, v42, v43 @max
v_and_b32_e32 v44, 0xffff0000, v22 @load
v_lshlrev_b32_e32 v45, 16, v22 @load
v_max3_f32 v6, v6, v44, v45 @max
v_and_b32_e32 v46, 0xffff0000, v23 @load
v_lshlrev_b32_e32 v47, 16, v23 @load
v_max3_f32 v6, v6, v46, v47 @max
s_waitcnt vmcnt(1) @load
v_and_b32_e32 v48, 0xffff0000, v24 @load
v_lshlrev_b32_e32 v49, 16, v24 @load
v_max3_f32 v6, v6, v48, v49 @max
v_and_b32_e32 v50, 0xffff0000, v25 @load
v_lshlrev_b32_e32 v51, 16, v25 @load
v_max3_f32 v6, v6, v50, v51 @max
v_and_b32_e32 v52, 0xffff0000, v26 @load
v_lshlrev_b32_e32 v53, 16, v26 @load
v_max3_f32 v6, v6, v52, v53 @max
v_and_b32_e32 v54, 0xffff0000, v27 @load
v_lshlrev_b32_e32 v55, 16, v27 @load
v_max3_f32 v6, v6, v54, v55 @max
s_waitcnt vmcnt(0) @load
v_and_b32_e32 v56, 0xffff0000, v28 @load
v_lshlrev_b32_e32 v57, 16, v28 @load
v_max3_f32 v6, v6, v56, v57 @max
v_and_b32_e32 v58, 0xffff0000, v29 @load
v_lshlrev_b32_e32 v59, 16, v29 @load
v_max3_f32 v6, v6, v58, v59 @max
v_and_b32_e32 v60, 0xffff0000, v30 @load
v_lshlrev_b32_e32 v61, 16, v30 @load
v_max3_f32 v6, v6, v60, v61 @max
v_and_b32_e32 v62, 0xffff0000, v31 @load
v_lshlrev_b32_e32 v63, 16, v31 @load
v_max3_f32 v6, v6, v62, v63 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_bpermute_b32 v3, v2, v6 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v3 @max
ds_write_b32 v4, v6 @max
s_waitcnt lgkmcnt(0) @max
s_barrier @max
ds_read_b128 v[8:11], v5 @max
s_waitcnt lgkmcnt(0) @max
v_max_f32_e32 v6, v6, v8 @max
v_max_f32_e32 v6, v6, v9 @max
v_max_f32_e32 v6, v6, v10 @max
v_max_f32_e32 v6, v6, v11 @max
s_barrier @max
v_mov_b32_e32 v7, 0 @exp
v_sub_f32_e32 v32, v32, v6 @exp
v_mul_f32_e32 v32, 0x3fb8aa3b, v32 @exp
v_exp_f32_e32 v32, v32 @exp
v_sub_f32_e32 v33, v33, v6 @exp
v_mul_f32_e32 v33, 0x3fb8aa3b, v33 @exp
v_exp_f32_e32 v33, v33 @exp
v_pk_add_f32 v[12:13], v[12:13], v[32:33] @sum
v_sub_f32_e32 v34, v34, v6 @exp
v_mul_f32_e32 v34, 0x3fb8aa3b, v34 @exp
v_exp_f32_e32 v34, v34 @exp
v_sub_f32_e32 v35, v35, v6 @exp
v_mul_f32_e32 v35, 0x3fb8aa3b, v35 @exp
v_exp_f32_e32 v35, v35 @exp
v_pk_add_f32 v[12:13], v[12:13], v[34:35] @sum
v_sub_f32_e32 v36, v36, v6 @exp
v_mul_f32_e32 v36, 0x3fb8aa3b, v36 @exp
v_exp_f32_e32 v36, v36 @exp
v_sub_f32_e32 v37, v37, v6 @exp
v_mul_f32_e32 v37, 0x3fb8aa3b, v37 @exp
v_exp_f32_e32 v37, v37 @exp
v_pk_add_f32 v[12:13], v[12:13], v[36:37] @sum
v_sub_f32_e32 v38, v38, v6 @exp
v_mul_f32_e32 v38, 0x3fb8aa3b, v38 @exp
v_exp_f32_e32 v38, v38 @exp
v_sub_f32_e32 v39, v39, v6 @exp
v_mul_f32_e32 v39, 0x3fb8aa3b, v39 @exp
v_exp_f32_e32 v39, v39 @exp
v_pk_add_f32 v[12:13], v[12:13], v[38:39] @sum
v_sub_f32_e32 v40, v40, v6 @exp
v_mul_f32_e32 v40, 0x3fb8aa3b, v40 @exp
v_exp_f32_e32 v40, v40 @exp
v_sub_f32_e32 v41, v41, v6 @exp
v_mul_f32_e32 v41, 0x3fb8aa3b, v41 @exp
v_exp_f32_e32 v41, v41 @exp
v_pk_add_f32 v[12:13], v[12:13], v[40:41] @sum
v_sub_f32_e32 v42, v42, v6 @exp
v_mul_f32_e32 v42, 0x3fb8aa3b, v42 @exp
v_exp_f32_e32 v42, v42 @exp
v_sub_f32_e32 v43, v43, v6 @exp
v_mul_f32_e32 v43, 0x3fb8aa3b, v43 @exp
v_exp_f32_e32 v43, v43 @exp
v_pk_add_f32 v[12:13], v[12:13], v[42:43] @sum
v_sub_f32_e32 v44, v44, v6 @exp
v_mul_f32_e32 v44, 0x3fb8aa3b, v44 @exp
v_exp_f32_e32 v44, v44 @exp
v_sub_f32_e32 v45, v45, v6 @exp
v_mul_f32_e32 v45, 0x3fb8aa3b, v45 @exp
v_exp_f32_e32 v45, v45 @exp
v_pk_add_f32 v[12:13], v[12:13], v[44:45] @sum
v_sub_f32_e32 v46, v46, v6 @exp
v_mul_f32_e32 v46, 0x3fb8aa3b, v46 @exp
v_exp_f32_e32 v46, v46 @exp
v_sub_f32_e32 v47, v47, v6 @exp
v_mul_f32_e32 v47, 0x3fb8aa3b, v47 @exp
v_exp_f32_e32 v47, v47 @exp
v_pk_add_f32 v[12:13], v[12:13], v[46:47] @sum
v_sub_f32_e32 v48, v48, v6 @exp
v_mul_f32_e32 v48, 0x3fb8aa3b, v48 @exp
v_exp_f32_e32 v48, v48 @exp
v_sub_f32_e32 v49, v49, v6 @exp
v_mul_f32_e32 v49, 0x3fb8aa3b, v49 @exp
v_exp_f32_e32 v49, v49 @exp
v_pk_add_f32 v[12:13], v[12:13], v[48:49] @sum
v_sub_f32_e32 v50, v50, v6 @exp
v_mul_f32_e32 v50, 0x3fb8aa3b, v50 @exp
v_exp_f32_e32 v50, v50 @exp
v_sub_f32_e32 v51, v51, v6 @exp
v_mul_f32_e32 v51, 0x3fb8aa3b, v51 @exp
v_exp_f32_e32 v51, v51 @exp
v_pk_add_f32 v[12:13], v[12:13], v[50:51] @sum
v_sub_f32_e32 v52, v52, v6 @exp
v_mul_f32_e32 v52, 0x3fb8aa3b, v52 @exp
v_exp_f32_e32 v52, v52 @exp
v_sub_f32_e32 v53, v53, v6 @exp
v_mul_f32_e32 v53, 0x3fb8aa3b, v53 @exp
v_exp_f32_e32 v53, v53 @exp
v_pk_add_f32 v[12:13], v[12:13], v[52:53] @sum
v_sub_f32_e32 v54, v54, v6 @exp
v_mul_f32_e32 v54, 0x3fb8aa3b, v54 @exp
v_exp_f32_e32 v54, v54 @exp
v_sub_f32_e32 v55, v55, v6 @exp
v_mul_f32_e32 v55, 0x3fb8aa3b, v55 @exp
v_exp_f32_e32 v55, v55 @exp
v_pk_add_f32 v[12:13], v[12:13], v[54:55] @sum
v_sub_f32_e32 v56, v56, v6 @exp
v_mul_f32_e32 v56, 0x3fb8aa3b, v56 @exp
v_exp_f32_e32 v56, v56 @exp
v_sub_f32_e32 v57, v57, v6 @exp
v_mul_f32_e32 v57, 0x3fb8aa3b, v57 @exp
v_exp_f32_e32 v57, v57 @exp
v_pk_add_f32 v[12:13], v[12:13], v[56:57] @sum
v_sub_f32_e32 v58, v58, v6 @exp
v_mul_f32_e32 v58, 0x3fb8aa3b, v58 @exp
v_exp_f32_e32 v58, v58 @exp
v_sub_f32_e32 v59, v59, v6 @exp
v_mul_f32_e32 v59, 0x3fb8aa3b, v59 @exp
v_exp_f32_e32 v59, v59 @exp
v_pk_add_f32 v[12:13], v[12:13], v[58:59] @sum
v_sub_f32_e32 v60, v60, v6 @exp
v_mul_f32_e32 v60, 0x3fb8aa3b, v60 @exp
v_exp_f32_e32 v60, v60 @exp
v_sub_f32_e32 v61, v61, v6 @exp
v_mul_f32_e32 v61, 0x3fb8aa3b, v61 @exp
v_exp_f32_e32 v61, v61 @exp
v_pk_add_f32 v[12:13], v[12:13], v[60:61] @sum
v_sub_f32_e32 v62, v62, v6 @exp
v_mul_f32_e32 v62, 0x3fb8aa3b, v62 @exp
v_exp_f32_e32 v62, v62 @exp
v_sub_f32_e32 v63, v63, v6 @exp
v_mul_f32_e32 v63, 0x3fb8aa3b, v63 @exp
v_exp_f32_e32 v63, v63 @exp
v_pk_add_f32 v[12:13], v[12:13], v[62:63] @sum
v_add_f32_e32 v7, v12, v13 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_bpermute_b32 v3, v2, v7 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v3 @sum
ds_write_b32 v4, v7 @sum
s_waitcnt lgkmcnt(0) @sum
s_barrier @sum
ds_read_b128 v[8:11], v5 @sum
s_waitcnt lgkmcnt(0) @sum
v_add_f32_e32 v7, v7, v8 @sum
v_add_f32_e32 v7, v7, v9 @sum
v_add_f32_e32 v7, v7, v10 @sum
v_add_f32_e32 v7, v7, v11 @sum
s_barrier @sum
v_rcp_f32_e32 v7, v7 @scale
s_nop 0 @scale
v_pk_mul_f32 v[32:33], v[32:33], v[7:8] @scale
v_cvt_pk_bf16_f32 v16, v32, v33 @store
v_pk_mul_f32 v[34:35], v[34:35], v[7:8] @scale
v_cvt_pk_bf16_f32 v17, v34, v35 @store
v_pk_mul_f32 v[36:37], v[36:37], v[7:8] @scale
v_cvt_pk_bf16_f32 v18, v36, v37 @store
v_pk_mul_f32 v[38:39], v[38:39], v[7:8] @scale
v_cvt_pk_bf16_f32 v19, v38, v39 @store
v_pk_mul_f32 v[40:41], v[40:41], v[7:8] @scale
v_cvt_pk_bf16_f32 v20, v40, v41 @store
v_pk_mul_f32 v[42:43], v[42:43], v[7:8] @scale
v_cvt_pk_bf16_f32 v21, v42, v43 @store
v_pk_mul_f32 v[44:45], v[44:45], v[7:8] @scale
v_cvt_pk_bf16_f32 v22, v44, v45 @store
v_pk_mul_f32 v[46:47], v[46:47], v[7:8] @scale
v_cvt_pk_bf16_f32 v23, v46, v47 @store
v_pk_mul_f32 v[48:49], v[48:49], v[7:8] @scale
v_cvt_pk_bf16_f32 v24, v48, v49 @store
v_pk_mul_f32 v[50:51], v[50:51], v[7:8] @scale
v_cvt_pk_bf16_f32 v25, v50, v51 @store
v_pk_mul_f32 v[52:53], v[52:53], v[7:8] @scale
v_cvt_pk_bf16_f32 v26, v52, v53 @store
v_pk_mul_f32 v[54:55], v[54:55], v[7:8] @scale
v_cvt_pk_bf16_f32 v27, v54, v55 @store
v_pk_mul_f32 v[56:57], v[56:57], v[7:8] @scale
v_cvt_pk_bf16_f32 v28, v56, v57 @store
v_pk_mul_f32 v[58:59], v[58:59], v[7:8] @scale
v_cvt_pk_bf16_f32 v29, v58, v59 @store
v_pk_mul_f32 v[60:61], v[60:61], v[7:8] @scale
v_cvt_pk_bf16_f32 v30, v60, v61 @store
v_pk_mul_f32 v[62:63], v[62:63], v[7:8] @scale
v_cvt_pk_bf16_f32 v31, v62, v63 @store
s_load_dwordx4 s[12:15], s[0:1], 0x18 @args
s_waitcnt lgkmcnt(0) @args
buffer_store_dwordx4 v[16:19], v1, s[12:15], 0 offen @store
v_add_u32_e32 v1, 0x1000, v1 @store
buffer_store_dwordx4 v[20:23], v1, s[12:15], 0 offen @store
v_add_u32_e32 v1, 0x1000, v1 @store
buffer_store_dwordx4 v[24:27], v1, s[12:15], 0 offen @store
v_add_u32_e32 v1, 0x1000, v1 @store
buffer_store_dwordx4 v[28:31], v1, s[12:15], 0 offen @store
v_add_u32_e32 v1, 0x1000, v1 @store
s_endpgm @store
