package att

import "testing"

func TestRegistersFromISA(t *testing.T) {
	for isa, want := range map[string][2]int{
		"v_mov_b32_e32 v7, 0":                                       {8, 0},
		"global_load_dwordx4 v[250:253], v[0:1], off":               {254, 0},
		"v_mfma_f32_32x32x16_bf16 a[0:15], v[2:5], v[6:9], a[0:15]": {10, 16},
		"v_accvgpr_read_b32 v3, a12":                                {4, 13},
		"v_accvgpr_write_b32 acc31, v9":                             {10, 32},
		"v_fma_f32 v0, -v5, |v6|, v7":                               {8, 0},
		"v_add_f32_e32 v1, v2, v3":                                  {4, 0},
		"s_waitcnt vmcnt(0) lgkmcnt(3)":                             {0, 0},
		"s_add_u32 s12, s13, s255":                                  {0, 0},
		"; v99":                                                     {0, 0},
	} {
		if arch, accum := RegistersFromISA([]Row{{ISA: isa}}); arch != want[0] || accum != want[1] {
			t.Errorf("%s: %d + %d, want %v", isa, arch, accum, want)
		}
	}
}
