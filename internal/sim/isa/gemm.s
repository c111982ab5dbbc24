; tiled matrix product: two tiles through LDS, MFMA on accumulators, cooperative store
.lds 65536
s_load_dwordx4 s[4:7], s[0:1], 0x0 @args
s_load_dwordx2 s[8:9], s[0:1], 0x10 @args
v_lshlrev_b32_e32 v1, 4, v0 @index
s_mov_b32 s11, 0x27000 @index
s_waitcnt lgkmcnt(0) @args
s_mul_i32 s3, s2, s8 @index
s_lshl_b32 s3, s3, 1 @index
v_add_u32_e32 v1, s3, v1 @index
v_accvgpr_write_b32 a0, 0 @init
v_accvgpr_write_b32 a1, 0 @init
v_accvgpr_write_b32 a2, 0 @init
v_accvgpr_write_b32 a3, 0 @init
v_accvgpr_write_b32 a4, 0 @init
v_accvgpr_write_b32 a5, 0 @init
v_accvgpr_write_b32 a6, 0 @init
v_accvgpr_write_b32 a7, 0 @init
v_accvgpr_write_b32 a8, 0 @init
v_accvgpr_write_b32 a9, 0 @init
v_accvgpr_write_b32 a10, 0 @init
v_accvgpr_write_b32 a11, 0 @init
v_accvgpr_write_b32 a12, 0 @init
v_accvgpr_write_b32 a13, 0 @init
v_accvgpr_write_b32 a14, 0 @init
v_accvgpr_write_b32 a15, 0 @init
v_accvgpr_write_b32 a16, 0 @init
v_accvgpr_write_b32 a17, 0 @init
v_accvgpr_write_b32 a18, 0 @init
v_accvgpr_write_b32 a19, 0 @init
v_accvgpr_write_b32 a20, 0 @init
v_accvgpr_write_b32 a21, 0 @init
v_accvgpr_write_b32 a22, 0 @init
v_accvgpr_write_b32 a23, 0 @init
v_accvgpr_write_b32 a24, 0 @init
v_accvgpr_write_b32 a25, 0 @init
v_accvgpr_write_b32 a26, 0 @init
v_accvgpr_write_b32 a27, 0 @init
v_accvgpr_write_b32 a28, 0 @init
v_accvgpr_write_b32 a29, 0 @init
v_accvgpr_write_b32 a30, 0 @init
v_accvgpr_write_b32 a31, 0 @init
buffer_load_dwordx4 v[32:35], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x80, v1 @load
buffer_load_dwordx4 v[36:39], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x80, v1 @load
buffer_load_dwordx4 v[40:43], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x80, v1 @load
buffer_load_dwordx4 v[44:47], v1, s[4:7], 0 offen @load
v_add_u32_e32 v1, 0x80, v1 @load
s_waitcnt vmcnt(0) @load
ds_write_b128 v2, v[32:35] offset:0 @stage
ds_write_b128 v2, v[36:39] offset:4096 @stage
ds_write_b128 v2, v[40:43] offset:8192 @stage
ds_write_b128 v2, v[44:47] offset:12288 @stage
s_waitcnt lgkmcnt(0) @stage
s_barrier @barrier
loop:
buffer_load_dwordx4 v[32:35], v1, s[4:7], 0 offen @load
buffer_load_dwordx4 v[36:39], v1, s[4:7], 0 offen @load
buffer_load_dwordx4 v[40:43], v1, s[4:7], 0 offen @load
buffer_load_dwordx4 v[44:47], v1, s[4:7], 0 offen @load
ds_read_b128 v[64:67], v3 offset:0 @lds
ds_read_b128 v[68:71], v3 offset:1024 @lds
ds_read_b128 v[72:75], v3 offset:2048 @lds
ds_read_b128 v[76:79], v3 offset:3072 @lds
ds_read_b128 v[80:83], v3 offset:16384 @lds
ds_read_b128 v[84:87], v3 offset:17408 @lds
ds_read_b128 v[88:91], v3 offset:18432 @lds
ds_read_b128 v[92:95], v3 offset:19456 @lds
s_waitcnt lgkmcnt(4) @lds
s_setprio 1 @mma
v_mfma_f32_16x16x16_bf16 a[0:3], v[64:65], v[66:67], a[0:3] @mma
v_mfma_f32_16x16x16_bf16 a[4:7], v[64:65], v[70:71], a[4:7] @mma
v_mfma_f32_16x16x16_bf16 a[8:11], v[68:69], v[70:71], a[8:11] @mma
v_mfma_f32_16x16x16_bf16 a[12:15], v[68:69], v[74:75], a[12:15] @mma
v_mfma_f32_16x16x16_bf16 a[16:19], v[72:73], v[74:75], a[16:19] @mma
v_mfma_f32_16x16x16_bf16 a[20:23], v[72:73], v[78:79], a[20:23] @mma
v_mfma_f32_16x16x16_bf16 a[24:27], v[76:77], v[78:79], a[24:27] @mma
v_mfma_f32_16x16x16_bf16 a[28:31], v[76:77], v[66:67], a[28:31] @mma
s_waitcnt lgkmcnt(0) @lds
v_mfma_f32_16x16x16_bf16 a[0:3], v[80:81], v[82:83], a[0:3] @mma
v_mfma_f32_16x16x16_bf16 a[4:7], v[80:81], v[86:87], a[4:7] @mma
v_mfma_f32_16x16x16_bf16 a[8:11], v[84:85], v[86:87], a[8:11] @mma
v_mfma_f32_16x16x16_bf16 a[12:15], v[84:85], v[90:91], a[12:15] @mma
v_mfma_f32_16x16x16_bf16 a[16:19], v[88:89], v[90:91], a[16:19] @mma
v_mfma_f32_16x16x16_bf16 a[20:23], v[88:89], v[94:95], a[20:23] @mma
v_mfma_f32_16x16x16_bf16 a[24:27], v[92:93], v[94:95], a[24:27] @mma
v_mfma_f32_16x16x16_bf16 a[28:31], v[92:93], v[82:83], a[28:31] @mma
s_setprio 0 @mma
s_barrier @barrier
v_add_u32_e32 v1, 0x80, v1 @load
s_waitcnt vmcnt(3) @load
ds_write_b128 v2, v[32:35] offset:0 @stage
s_waitcnt vmcnt(2) @load
ds_write_b128 v2, v[36:39] offset:4096 @stage
s_waitcnt vmcnt(1) @load
ds_write_b128 v2, v[40:43] offset:8192 @stage
s_waitcnt vmcnt(0) @load
ds_write_b128 v2, v[44:47] offset:12288 @stage
s_waitcnt lgkmcnt(0) @stage
s_barrier @barrier
s_add_u32 s12, s12, 64 @loop
s_cmp_lt_u32 s12, s9 @loop
s_cbranch_scc1 loop @loop
s_nop 7 @store
s_nop 7 @store
s_load_dwordx4 s[16:19], s[0:1], 0x20 @args
v_accvgpr_read_b32 v96, a0 @store
v_accvgpr_read_b32 v97, a1 @store
v_accvgpr_read_b32 v98, a2 @store
v_accvgpr_read_b32 v99, a3 @store
v_accvgpr_read_b32 v100, a4 @store
v_accvgpr_read_b32 v101, a5 @store
v_accvgpr_read_b32 v102, a6 @store
v_accvgpr_read_b32 v103, a7 @store
v_accvgpr_read_b32 v104, a8 @store
v_accvgpr_read_b32 v105, a9 @store
v_accvgpr_read_b32 v106, a10 @store
v_accvgpr_read_b32 v107, a11 @store
v_accvgpr_read_b32 v108, a12 @store
v_accvgpr_read_b32 v109, a13 @store
v_accvgpr_read_b32 v110, a14 @store
v_accvgpr_read_b32 v111, a15 @store
v_accvgpr_read_b32 v112, a16 @store
v_accvgpr_read_b32 v113, a17 @store
v_accvgpr_read_b32 v114, a18 @store
v_accvgpr_read_b32 v115, a19 @store
v_accvgpr_read_b32 v116, a20 @store
v_accvgpr_read_b32 v117, a21 @store
v_accvgpr_read_b32 v118, a22 @store
v_accvgpr_read_b32 v119, a23 @store
v_accvgpr_read_b32 v120, a24 @store
v_accvgpr_read_b32 v121, a25 @store
v_accvgpr_read_b32 v122, a26 @store
v_accvgpr_read_b32 v123, a27 @store
v_accvgpr_read_b32 v124, a28 @store
v_accvgpr_read_b32 v125, a29 @store
v_accvgpr_read_b32 v126, a30 @store
v_accvgpr_read_b32 v127, a31 @store
v_cvt_pk_bf16_f32 v32, v96, v97 @store
v_cvt_pk_bf16_f32 v33, v98, v99 @store
v_cvt_pk_bf16_f32 v34, v100, v101 @store
v_cvt_pk_bf16_f32 v35, v102, v103 @store
v_cvt_pk_bf16_f32 v36, v104, v105 @store
v_cvt_pk_bf16_f32 v37, v106, v107 @store
v_cvt_pk_bf16_f32 v38, v108, v109 @store
v_cvt_pk_bf16_f32 v39, v110, v111 @store
v_cvt_pk_bf16_f32 v40, v112, v113 @store
v_cvt_pk_bf16_f32 v41, v114, v115 @store
v_cvt_pk_bf16_f32 v42, v116, v117 @store
v_cvt_pk_bf16_f32 v43, v118, v119 @store
v_cvt_pk_bf16_f32 v44, v120, v121 @store
v_cvt_pk_bf16_f32 v45, v122, v123 @store
v_cvt_pk_bf16_f32 v46, v124, v125 @store
v_cvt_pk_bf16_f32 v47, v126, v127 @store
s_waitcnt lgkmcnt(0) @args
buffer_store_dwordx4 v[32:35], v1, s[16:19], 0 offen @store
buffer_store_dwordx4 v[36:39], v1, s[16:19], 0 offen @store
buffer_store_dwordx4 v[40:43], v1, s[16:19], 0 offen @store
buffer_store_dwordx4 v[44:47], v1, s[16:19], 0 offen @store
s_endpgm @store
