package att

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// object is a code object by hand: one .rodata with the descriptors, a symbol table, its names.
type object struct {
	machine  elf.Machine
	mach     uint32
	table    elf.SectionType
	symbols  []kernelSymbol
	sections func([]elf.Section64)
	header   func(*elf.Header64)
}

type kernelSymbol struct {
	name         string
	rsrc1, rsrc3 uint32
	size         uint64
	section      uint16
}

const (
	rodataAddr = 0x1000
	mach942    = 0x4c
)

// kernelOf makes the symbol of a kernel with so many granules (of 8 in all, of 4 before the accumulation registers).
func kernelOf(name string, granules, accumOffset uint32) kernelSymbol {
	return kernelSymbol{name: name + ".kd", rsrc1: granules - 1 | 0xffffffc0, rsrc3: accumOffset - 1 | 0xffffffc0, size: 64, section: 1}
}

func (o object) bytes() []byte {
	var rodata, names, symbols bytes.Buffer
	names.WriteByte(0)
	symbols.Write(make([]byte, 24))
	for _, k := range o.symbols {
		d := make([]byte, 64)
		binary.LittleEndian.PutUint32(d[44:], k.rsrc3)
		binary.LittleEndian.PutUint32(d[48:], k.rsrc1)
		s := elf.Sym64{Name: uint32(names.Len()), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), Shndx: k.section, Value: rodataAddr + uint64(rodata.Len()), Size: k.size}
		_ = binary.Write(&symbols, binary.LittleEndian, s)
		rodata.Write(d)
		names.WriteString(k.name + "\x00")
	}
	at := uint64(64)
	place := func(b *bytes.Buffer) uint64 {
		start := at
		at += uint64(b.Len())
		return start
	}
	sections := []elf.Section64{
		{},
		{Type: uint32(elf.SHT_PROGBITS), Addr: rodataAddr, Off: place(&rodata), Size: uint64(rodata.Len())},
		{Type: uint32(o.table), Off: place(&symbols), Size: uint64(symbols.Len()), Link: 3, Entsize: 24},
		{Type: uint32(elf.SHT_STRTAB), Off: place(&names), Size: uint64(names.Len())},
	}
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(o.machine), Version: 1, Shoff: at, Flags: o.mach | 0x500, Ehsize: 64, Shentsize: 64, Shnum: uint16(len(sections))}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01\x40\x03")
	if o.sections != nil {
		o.sections(sections)
	}
	if o.header != nil {
		o.header(&h)
	}
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, h)
	for _, part := range []*bytes.Buffer{&rodata, &symbols, &names} {
		out.Write(part.Bytes())
	}
	_ = binary.Write(&out, binary.LittleEndian, sections)
	return out.Bytes()
}

func good(symbols ...kernelSymbol) object {
	return object{machine: elf.EM_AMDGPU, mach: mach942, table: elf.SHT_DYNSYM, symbols: symbols}
}

func TestParseDescriptor(t *testing.T) {
	many := good()
	for i := range 6000 { // more symbols than one piece of the table holds
		many.symbols = append(many.symbols, kernelOf("k"+strconv.Itoa(i), 1+uint32(i)%64, 1))
	}
	stripped := good(kernelOf("gemm", 16, 24))
	stripped.table = elf.SHT_SYMTAB
	gfx950 := good(kernelOf("flash_attn_kernel_0", 31, 62))
	gfx950.mach = 0x4f
	tests := []struct {
		name        string
		file        object
		kernel      string
		arch, accum int
	}{
		{"arch only, 248", gfx950, "flash_attn_kernel_0", 248, 0},
		{"60 and the rest of a granule", good(kernelOf("rmsnorm_kernel_0", 8, 15)), "rmsnorm_kernel_0", 60, 4},
		{"accumulation registers", good(kernelOf("a", 64, 64), kernelOf("gemm", 64, 64)), "gemm", 256, 256},
		{"the name with its suffix", good(kernelOf("gemm", 16, 24)), "gemm.kd", 96, 32},
		{"static symbols", stripped, "gemm", 96, 32},
		{"a name that ends like another", good(kernelOf("my_gemm", 1, 1), kernelOf("gemm", 2, 4), kernelOf("gemm2", 3, 1)), "gemm", 16, 0},
		{"a symbol far down", many, "k5999", 4, (5999%64+1)*8 - 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := tt.file.bytes()
			if _, err := elf.NewFile(bytes.NewReader(file)); err != nil && !strings.Contains(err.Error(), "shstr") {
				t.Fatalf("the file made by hand is no ELF file: %v", err)
			}
			arch, accum, err := ParseDescriptor(bytes.NewReader(file), tt.kernel)
			if err != nil || arch != tt.arch || accum != tt.accum {
				t.Errorf("%d + %d (%v), want %d + %d", arch, accum, err, tt.arch, tt.accum)
			}
		})
	}
}

func TestParseDescriptorRefuses(t *testing.T) {
	with := func(sections func([]elf.Section64), header func(*elf.Header64)) []byte {
		o := good(kernelOf("k", 4, 2))
		o.sections, o.header = sections, header
		return o.bytes()
	}
	plain := good(kernelOf("k", 4, 2)).bytes()
	wrongSize, wrongSection := kernelOf("k", 4, 2), kernelOf("k", 4, 2)
	wrongSize.size, wrongSection.section = 63, 77
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "ELF header"},
		{"text", bytes.Repeat([]byte("hello "), 20), "no ELF file"},
		{"32 bits", with(nil, func(h *elf.Header64) { h.Ident[elf.EI_CLASS] = 1 }), "no code object"},
		{"a host program", with(nil, func(h *elf.Header64) { h.Machine = uint16(elf.EM_X86_64) }), "no code object"},
		{"gfx1100", with(nil, func(h *elf.Header64) { h.Flags = 0x41 }), "0x41"},
		{"no sections", with(nil, func(h *elf.Header64) { h.Shnum = 0 }), "section headers"},
		{"65535 sections", with(nil, func(h *elf.Header64) { h.Shnum = 65535 }), "section headers"},
		{"sections beyond the file", with(nil, func(h *elf.Header64) { h.Shoff = 1 << 40 }), "section table"},
		{"sections at the end of all numbers", with(nil, func(h *elf.Header64) { h.Shoff = 1<<64 - 1 }), "section table"},
		{"symbols beyond the file", with(func(s []elf.Section64) { s[2].Off = 1 << 63 }, nil), ErrNoDescriptor.Error()},
		{"a table of 2^64 bytes", with(func(s []elf.Section64) { s[2].Size = 1<<64 - 1 }, nil), ErrNoDescriptor.Error()},
		{"names beyond the file", with(func(s []elf.Section64) { s[3].Off = 1<<64 - 2 }, nil), ErrNoDescriptor.Error()},
		{"names of no size", with(func(s []elf.Section64) { s[3].Size = 1 }, nil), ErrNoDescriptor.Error()},
		{"link to nowhere", with(func(s []elf.Section64) { s[2].Link = 4 }, nil), ErrNoDescriptor.Error()},
		{"compressed symbols", with(func(s []elf.Section64) { s[2].Flags = uint64(elf.SHF_COMPRESSED) }, nil), ErrNoDescriptor.Error()},
		{"a section without bytes", with(func(s []elf.Section64) { s[1].Type = uint32(elf.SHT_NOBITS) }, nil), "outside its section"},
		{"a section too small", with(func(s []elf.Section64) { s[1].Size = 63 }, nil), "outside its section"},
		{"a section elsewhere", with(func(s []elf.Section64) { s[1].Addr = rodataAddr + 1 }, nil), "outside its section"},
		{"a section beyond the file", with(func(s []elf.Section64) { s[1].Off = 1 << 40 }, nil), "cannot be read"},
		{"an offset that wraps", with(func(s []elf.Section64) { s[1].Addr, s[1].Size, s[1].Off = 0, 1<<63, 1<<64-64 }, nil), "outside its section"},
		{"another size", good(wrongSize).bytes(), ErrNoDescriptor.Error()},
		{"another section", good(wrongSection).bytes(), "section 77"},
		{"another kernel", good(kernelOf("kernel", 4, 2)).bytes(), ErrNoDescriptor.Error()},
		{"fewer in all than before accum", good(kernelOf("k", 1, 3)).bytes(), "8 registers in all and 12"},
		{"cut in the section table", plain[:len(plain)-1], "section table"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arch, accum, err := ParseDescriptor(bytes.NewReader(tt.file), "k")
			if err == nil || !strings.Contains(err.Error(), tt.want) || arch != 0 || accum != 0 {
				t.Errorf("%d + %d, %v; want an error with %q", arch, accum, err, tt.want)
			}
		})
	}
	if _, _, err := ParseDescriptor(bytes.NewReader(good(kernelOf("x", 4, 2)).bytes()), "k"); !errors.Is(err, ErrNoDescriptor) {
		t.Errorf("%v", err)
	}
}

// endless is a code object whose tables never end: each byte beyond the first bytes is the same.
type endless struct{ head []byte }

func (e endless) ReadAt(b []byte, at int64) (int, error) {
	for i := range b {
		if p := at + int64(i); p >= 0 && p < int64(len(e.head)) {
			b[i] = e.head[p]
		} else {
			b[i] = 0x41
		}
	}
	return len(b), nil
}

// TestParseDescriptorBounds: a file of any claimed size costs little memory and time.
func TestParseDescriptorBounds(t *testing.T) {
	o := good(kernelOf("k", 4, 2))
	o.sections = func(s []elf.Section64) {
		s[2].Off, s[2].Size = 1<<20, 1<<62
		s[3].Size = 1 << 62
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, _, err := ParseDescriptor(endless{o.bytes()}, "absent")
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrNoDescriptor) {
		t.Error(err)
	}
	// The table is decoded in pieces of 64 KiB; the sum of all allocations shows that no piece is larger.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*maxSymbolBytes || took > 10*time.Second {
		t.Errorf("%d bytes, %v", grown, took)
	}
}

func FuzzParseDescriptor(f *testing.F) {
	file := good(kernelOf("k", 4, 2), kernelOf("gemm", 16, 24)).bytes()
	f.Add(file, "k")
	f.Add(file[:100], "gemm")
	f.Add([]byte("\x7fELF"), "")
	f.Fuzz(func(t *testing.T, file []byte, kernel string) {
		arch, accum, err := ParseDescriptor(bytes.NewReader(file), kernel)
		if err != nil && (arch != 0 || accum != 0) {
			t.Fatalf("%d + %d beside %v", arch, accum, err)
		}
		if err == nil && (arch < 4 || arch > 256 || accum < 0 || arch+accum > 512 || (arch+accum)%8 != 0) {
			t.Fatalf("%d + %d", arch, accum)
		}
	})
}

func TestHighestRegister(t *testing.T) {
	tests := []struct {
		isa         string
		arch, accum int
	}{
		{"v_mov_b32_e32 v7, 0", 8, 0},
		{"global_load_dwordx4 v[250:253], v[0:1], off", 254, 0},
		{"v_mfma_f32_32x32x16_bf16 a[0:15], v[2:5], v[6:9], a[0:15]", 10, 16},
		{"v_accvgpr_read_b32 v3, a12", 4, 13},
		{"v_accvgpr_write_b32 acc31, v9", 10, 32},
		{"v_mfma_f32_4x4x1f32 acc[0:3], v1, v2, acc[0:3]", 3, 4},
		{"v_fma_f32 v0, -v5, |v6|, v7", 8, 0},
		{"v_add_f32_e64 v1, abs(v12), neg(v[2:3])", 13, 0},
		{"v_mov_b32 v[4], 0", 5, 0},
		{"v_add_f16 v5.l, v31.h, v2.l", 32, 0},
		{"image_sample v[0:3], [v9, v17], s[0:7] a16", 0, 0},
		{"v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v30, v4", 31, 0},
		{"v_mov_b32 v1, 0 // v200", 2, 0},
		{"v_mov_b32 v1023, 0", 1024, 0},
		{"v_mov_b32 v1024, v2", 3, 0},
		{"v_mov_b32 v99999999999999999999, v2", 3, 0},
		{"s_mov_b32 s4, 0xa5", 0, 0},
		{"s_mov_b32 vcc_lo, v_a5", 0, 0},
		{"s_waitcnt vmcnt(0) lgkmcnt(3)", 0, 0},
		{"s_add_u32 s12, s13, s255", 0, 0},
		{"v_mov_b32 v[0:", 0, 0},
		{"v_mov_b32 v[a:b], v[]", 0, 0},
		{"s_endpgm", 0, 0},
		{"; v99 a99", 0, 0},
		{"label_v7: v7", 0, 0},
		{"", 0, 0},
	}
	for _, tt := range tests {
		if arch, accum := RegistersFromISA([]Row{{ISA: tt.isa}}); arch != tt.arch || accum != tt.accum {
			t.Errorf("%q: %d + %d, want %d + %d", tt.isa, arch, accum, tt.arch, tt.accum)
		}
	}
	if arch, accum := RegistersFromISA([]Row{{ISA: "v_mov_b32 v3, 0"}, {ISA: "v_accvgpr_read_b32 v1, a7"}, {ISA: "v_mov_b32 v2, 0"}}); arch != 4 || accum != 8 {
		t.Errorf("%d + %d over rows", arch, accum)
	}
}

// TestRegistersOfRecorded: the recorded kernels' figures, read off their code by eye, and those of every folder by a regular
// expression.
func TestRegistersOfRecorded(t *testing.T) {
	known := map[string][2]int{
		"flash_attn_func/small/ui_output_agent_32235_dispatch_44": {242, 0}, "rmsnorm/big/ui_output_agent_19276_dispatch_18": {60, 0},
		"vec_add/big/ui_output_agent_14705_dispatch_25": {9, 0}, "tensile_gemm_v3.1.0_perfcounters/ui_output_agent_11420_dispatch_1": {47, 16},
	}
	operand := regexp.MustCompile(`\b(v|a|acc)(?:(\d+)|\[(?:\d+:)?(\d+)\])`)
	found := 0
	for _, dir := range recordedDirs(t) {
		var rows []Row
		want := [2]int{}
		for line, isa := range recordedRows(t, dir) {
			rows = append(rows, Row{ISA: isa, Line: line})
			_, operands, _ := strings.Cut(isa, " ")
			if strings.HasPrefix(isa, ";") {
				continue
			}
			for _, m := range operand.FindAllStringSubmatch(operands, -1) {
				n, _ := strconv.Atoi(m[2] + m[3])
				kind := 1
				if m[1] == "v" {
					kind = 0
				}
				want[kind] = max(want[kind], n+1)
			}
		}
		for path, figures := range known {
			if strings.HasSuffix(filepath.ToSlash(dir), path) {
				found++
				if want != figures {
					t.Errorf("%s: the regular expression gives %v, the eye %v", path, want, figures)
				}
			}
		}
		if arch, accum := RegistersFromISA(rows); arch != want[0] || accum != want[1] {
			t.Errorf("%s: %d + %d, want %v", dir, arch, accum, want)
		}
	}
	if found != len(known) {
		t.Errorf("%d of %d known kernels were there", found, len(known))
	}
}

func FuzzRegistersFromISA(f *testing.F) {
	for _, isa := range []string{"v_mov_b32 v1, v[2:3]", "v_x a[0:15], acc3", "v_y v[", "v v999999999999"} {
		f.Add(isa)
	}
	f.Fuzz(func(t *testing.T, isa string) {
		arch, accum := RegistersFromISA([]Row{{ISA: isa}})
		if arch < 0 || arch > maxRegister+1 || accum < 0 || accum > maxRegister+1 {
			t.Fatalf("%q: %d + %d", isa, arch, accum)
		}
	})
}
