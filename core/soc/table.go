package soc

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Where figures stand. The rates a clock and CU are those of the CDNA 3 white paper and of AMD's CDNA 4 figures; each
// equals the data sheet's peak divided by CUs and clock (MI300X bf16 1,307 TFLOP/s, MI355X fp8 5,033).
const (
	gpuSpecs  = "ROCm documentation, GPU hardware specifications (CUs, SEs, LDS, VGPRs, L2, Infinity Cache)"
	llvmUsage = "LLVM AMDGPU backend, AMDGPUBaseInfo (512 unified VGPRs, granule 8, 8 waves a SIMD, LDS granule 128 dwords, 320 on gfx950)"
)

// cdna3 is what all gfx942 products share.
func cdna3(product string, xcds, cus int, hbmBytesPerS float64, sheet string) SoC {
	return SoC{
		Arch: "gfx942", Product: product, CUs: cus,
		Topology:   Topology{XCDs: xcds, SEsPerXCD: 4, PhysicalCUsPerSE: 10},
		SIMDsPerCU: 4, WavesPerSIMD: 8, WaveSize: 64, VGPRsPerSIMD: 512, VGPRsPerWave: 256,
		LDSBytesPerCU: 64 * kib, LDSGranuleBytes: 512,
		ClockHz: 2100e6, HBMBytesPerS: hbmBytesPerS,
		Matrix:        Rates{F64: 256, F32: 256, TF32: 1024, F16: 2048, FP8: 4096, Int8: 4096},
		Vector:        Rates{F64: 128, F32: 256},
		L2BytesPerXCD: 4 * mib, MALLBytes: 256 * mib,
		Sources: []string{sheet, gpuSpecs, llvmUsage},
	}
}

// cdna4 is what all gfx950 products share.
func cdna4(product string, clockHz float64, sheet string) SoC {
	return SoC{
		Arch: "gfx950", Product: product, CUs: 256,
		Topology:   Topology{XCDs: 8, SEsPerXCD: 4, PhysicalCUsPerSE: 9},
		SIMDsPerCU: 4, WavesPerSIMD: 8, WaveSize: 64, VGPRsPerSIMD: 512, VGPRsPerWave: 256,
		LDSBytesPerCU: 160 * kib, LDSGranuleBytes: 1280,
		ClockHz: clockHz, HBMBytesPerS: 8.0e12,
		Matrix:        Rates{F64: 128, F32: 256, F16: 4096, FP8: 8192, Int8: 8192, FP6: 16384, FP4: 16384},
		Vector:        Rates{F64: 128, F32: 256},
		L2BytesPerXCD: 4 * mib, MALLBytes: 256 * mib,
		Sources: []string{sheet, gpuSpecs, llvmUsage},
	}
}

// products is the whole table; the first of an architecture is the one that Lookup assumes.
func products() []SoC {
	return []SoC{
		cdna3("MI300X", 8, 304, 5.3e12, "AMD Instinct MI300X data sheet (2,100 MHz, 5.3 TB/s)"),
		cdna3("MI300A", 6, 228, 5.3e12, "AMD Instinct MI300A data sheet (228 CUs, 2,100 MHz, 5.3 TB/s)"),
		cdna3("MI325X", 8, 304, 6.0e12, "AMD Instinct MI325X data sheet (2,100 MHz, 6.0 TB/s)"),
		cdna4("MI350X", 2200e6, "AMD Instinct MI350X data sheet (2,200 MHz, 8.0 TB/s)"),
		cdna4("MI355X", 2400e6, "AMD Instinct MI355X data sheet (2,400 MHz, 8.0 TB/s)"),
	}
}

// deviceProduct names the product of a PCI device id of vendor 0x1002 (the PCI ID repository; 0x74a5, 0x75a0 and 0x75a3 as
// seen in agent_info.csv beside 304 CUs at 2,100 MHz, 256 at 2,200 and 256 at 2,400).
func deviceProduct(id int) (string, bool) {
	switch id {
	case 0x74a0:
		return "MI300A", true
	case 0x74a1, 0x74b5: // physical, virtual function
		return "MI300X", true
	case 0x74a5, 0x74b9:
		return "MI325X", true
	case 0x75a0, 0x75b0:
		return "MI350X", true
	case 0x75a3, 0x75b3:
		return "MI355X", true
	}
	return "", false
}
