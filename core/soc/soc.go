// Package soc knows the GPUs: their peaks and topology, how many waves fit on a CU, and where workgroups are likely to run.
//
// One architecture is several products with different figures. A GPU that the table does not name has no figures at all;
// another GPU's are never taken in their place.
package soc

import "strings"

// SoC is the figures of one product. The zero value stands for a GPU that is not known.
type SoC struct {
	// Arch is the LLVM target without features, such as "gfx942".
	Arch string
	// Product is AMD's short name, such as "MI300X".
	Product string
	// Assumed is true where only the architecture was known and Product is this package's choice among its products.
	Assumed bool
	// CUs are the active compute units of the device: of one partition where the GPU is partitioned.
	CUs int
	Topology
	// SIMDsPerCU and WavesPerSIMD are the wave slots of a CU; WaveSize is in work-items.
	SIMDsPerCU, WavesPerSIMD, WaveSize int
	// VGPRsPerSIMD is the unified register file of a SIMD in registers a lane, arch and accum together; a wave names at most
	// VGPRsPerWave of each kind.
	VGPRsPerSIMD, VGPRsPerWave int
	// LDSBytesPerCU is also the most that one workgroup can have. It is handed out in units of LDSGranuleBytes.
	LDSBytesPerCU, LDSGranuleBytes int
	// ClockHz is the peak engine clock.
	ClockHz float64
	// HBMBytesPerS is the peak memory bandwidth; of a partition, its share by XCDs.
	HBMBytesPerS float64
	// Matrix is what a CU's matrix cores do, Vector what its vector ALUs do.
	Matrix, Vector Rates
	// L2BytesPerXCD and MALLBytes are the caches in front of the memory (MALL: Infinity Cache).
	L2BytesPerXCD, MALLBytes int64
	// Sources are the documents that the figures stand in.
	Sources []string
}

// Topology is how the CUs are arranged. A shader engine (SE) of these GPUs has one shader array.
type Topology struct {
	// XCDs are the accelerator dies (XCCs) of the device and SEsPerXCD the shader engines of each.
	XCDs, SEsPerXCD int
	// PhysicalCUsPerSE counts the CUs of an SE with those that are fused off (Cu_Per_Simd_Array of agent_info.csv).
	PhysicalCUsPerSE int
}

// SEs are the shader engines of the whole device.
func (t Topology) SEs() int { return t.XCDs * t.SEsPerXCD }

// ActiveCUsPerSE is the mean over the shader engines: 9.5 where some have 9 and some 10.
func (s SoC) ActiveCUsPerSE() float64 {
	if s.SEs() == 0 {
		return 0
	}
	return float64(s.CUs) / float64(s.SEs())
}

// Rates are dense operations (a multiply-add is two) a clock and CU by element type; 0 where the hardware has none.
type Rates struct {
	F64, F32, TF32, F16, FP8, Int8, FP6, FP4 int
}

// of gives the rate of a canonical element type; bf16 runs as f16 does, bf8 as fp8.
func (r Rates) of(dtype string) int {
	switch dtype {
	case "f64":
		return r.F64
	case "f32":
		return r.F32
	case "tf32":
		return r.TF32
	case "f16", "bf16":
		return r.F16
	case "fp8", "bf8":
		return r.FP8
	case "int8":
		return r.Int8
	case "fp6":
		return r.FP6
	case "fp4":
		return r.FP4
	}
	return 0
}

// MatrixPeak is the dense peak of the matrix cores in operations a second for an element type (bf16, f16, f32, tf32, f64,
// fp8, bf8, int8, fp6, fp4); false where the hardware has no such instruction or is not known.
func (s SoC) MatrixPeak(dtype string) (float64, bool) { return s.peak(s.Matrix.of(dtype)) }

// VectorPeak is the peak of the vector ALUs (no matrix cores) in operations a second for an element type: f64 or f32.
// Narrower types are computed in f32.
func (s SoC) VectorPeak(dtype string) (float64, bool) {
	if dtype == "f64" {
		return s.peak(s.Vector.F64)
	}
	return s.peak(s.Vector.F32)
}

func (s SoC) peak(rate int) (float64, bool) {
	return float64(rate) * float64(s.CUs) * s.ClockHz, rate > 0 && s.CUs > 0 && s.ClockHz > 0
}

// Known is false for the zero value.
func (s SoC) Known() bool { return s.CUs > 0 }

// For finds the figures of a GPU by its architecture ("gfx942", features behind a colon are passed over) and its product
// name as agent_info.csv or rocminfo print it ("AMD Instinct MI350X"; empty or a generic name where not known). Where the
// name says nothing, the first product of the architecture is taken and marked Assumed. False for an architecture that
// the table does not have, and where name and architecture contradict each other.
func For(arch, product string) (SoC, bool) {
	if s, ok := ByProduct(product); ok {
		return s, arch == "" || s.Arch == base(arch)
	}
	return Lookup(arch)
}

// Lookup gives the first product of an architecture, marked Assumed; false for an architecture that is not known.
func Lookup(arch string) (SoC, bool) {
	arch = base(arch)
	for _, s := range products() {
		if s.Arch == arch {
			s.Assumed = true
			return s, true
		}
	}
	return SoC{}, false
}

// ByProduct finds a product by its name or by any text that has the name in it as a word: "AMD Instinct MI300X VF".
func ByProduct(name string) (SoC, bool) {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for _, s := range products() {
		for _, w := range words {
			if w == s.Product {
				return s, true
			}
		}
	}
	return SoC{}, false
}

// ByDevice finds a product by its PCI device id (Device_Id of agent_info.csv). Hosts whose PCI database is old call every
// GPU "AMD Radeon Graphics"; the id still tells them apart.
func ByDevice(id int) (SoC, bool) {
	name, ok := deviceProduct(id)
	if !ok {
		return SoC{}, false
	}
	return ByProduct(name)
}

// Products lists the products of an architecture in the table's order; all of them for "".
func Products(arch string) []string {
	var names []string
	for _, s := range products() {
		if arch == "" || s.Arch == base(arch) {
			names = append(names, s.Product)
		}
	}
	return names
}

// Archs lists the architectures of the table.
func Archs() []string {
	var archs []string
	for _, s := range products() {
		if len(archs) == 0 || archs[len(archs)-1] != s.Arch {
			archs = append(archs, s.Arch)
		}
	}
	return archs
}

// WithTopology replaces the table's counts by those of the GPU at hand (Cu_Count, Num_Xcc and Array_Count of
// agent_info.csv); 0 keeps the table's. A partition has a share of the XCDs, and the same share of the bandwidth is taken
// as its peak.
func (s SoC) WithTopology(cus, xcds, shaderEngines int) SoC {
	if !s.Known() {
		return s
	}
	if cus > 0 {
		s.CUs = cus
	}
	if xcds > 0 {
		if xcds < s.XCDs {
			s.HBMBytesPerS *= float64(xcds) / float64(s.XCDs)
			s.MALLBytes = s.MALLBytes * int64(xcds) / int64(s.XCDs)
		}
		s.XCDs = xcds
	}
	if shaderEngines >= s.XCDs {
		s.SEsPerXCD = shaderEngines / s.XCDs
	}
	return s
}

// WithClock replaces the peak clock by that of the GPU at hand (Max_Engine_Clk_Fcompute of agent_info.csv, in MHz); 0 or
// less keeps the table's.
func (s SoC) WithClock(mhz float64) SoC {
	if s.Known() && mhz > 0 {
		s.ClockHz = mhz * 1e6
	}
	return s
}

func base(arch string) string {
	arch, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(arch)), ":")
	return arch
}
