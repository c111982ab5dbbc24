package att

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Fields of the kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor", code object v3 to v6): 64 bytes at <kernel>.kd.
const (
	descriptorBytes = 64
	rsrc3Offset     = 44 // COMPUTE_PGM_RSRC3: ACCUM_OFFSET in bits 0 to 5
	rsrc1Offset     = 48 // COMPUTE_PGM_RSRC1: GRANULATED_WORKITEM_VGPR_COUNT in bits 0 to 5
	lowSixBits      = 0x3f
	vgprGranule     = 8 // registers a granule
	accumGranule    = 4 // registers a step of ACCUM_OFFSET
)

// unifiedFile are the EF_AMDGPU_MACH values of the architectures that keep arch and accum registers in one file, which is
// what the two fields above describe (LLVM AMDGPUUsage, "AMDGPU Target Flags").
var unifiedFile = map[uint32]string{0x3f: "gfx90a", 0x40: "gfx940", 0x4b: "gfx941", 0x4c: "gfx942", 0x4f: "gfx950", 0x5f: "gfx9-4-generic"}

const machMask = 0xff

// Bounds on what is read of a code object: those of real ones are two orders of magnitude smaller.
const (
	maxSections    = 4096
	maxSymbolBytes = 32 << 20
	symbolChunk    = 64 << 10 / symbolBytes * symbolBytes
)

const (
	headerBytes  = 64 // elf.Header64
	sectionBytes = 64 // elf.Section64
	symbolBytes  = elf.Sym64Size
)

// ErrNoDescriptor: the code object does not hold the kernel.
var ErrNoDescriptor = errors.New("the code object has no descriptor of the kernel")

// ParseDescriptor reads the registers that a kernel is given, from the descriptor in its code object (an ELF file, as in
// rocprofv3's *_code_object_id_*.out). kernel is the symbol's name, mangled. arch are the VGPRs a lane before the
// accumulation registers begin, accum the rest; both are what the hardware allocates, in steps of 4 and 8, so that a kernel
// without accumulation registers may show 4 of them.
//
// The file's tables are read piece by piece and nothing is kept, whatever sizes they claim: debug/elf's own reader copies
// the names of all sections and symbols first, which a hostile file can make larger than any memory.
func ParseDescriptor(r io.ReaderAt, kernel string) (arch, accum int, err error) {
	sections, err := readSections(r)
	if err != nil {
		return 0, 0, err
	}
	symbol, err := findSymbol(r, sections, strings.TrimSuffix(kernel, ".kd")+".kd")
	if err != nil {
		return 0, 0, err
	}
	d, err := readDescriptor(r, sections, symbol)
	if err != nil {
		return 0, 0, err
	}
	total := (int(binary.LittleEndian.Uint32(d[rsrc1Offset:])&lowSixBits) + 1) * vgprGranule
	arch = (int(binary.LittleEndian.Uint32(d[rsrc3Offset:])&lowSixBits) + 1) * accumGranule
	if arch > total {
		return 0, 0, fmt.Errorf("the descriptor gives %d registers in all and %d before the accumulation registers", total, arch)
	}
	return arch, total - arch, nil
}

// readSections reads the header and the section table.
func readSections(r io.ReaderAt) ([]elf.Section64, error) {
	var h elf.Header64
	if err := readAt(r, 0, headerBytes, &h); err != nil {
		return nil, fmt.Errorf("the ELF header cannot be read: %w", err)
	}
	switch {
	case string(h.Ident[:4]) != elf.ELFMAG:
		return nil, errors.New("the file is no ELF file")
	case elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64, elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB, elf.Machine(h.Machine) != elf.EM_AMDGPU:
		return nil, errors.New("the ELF file is no code object of an AMD GPU")
	case unifiedFile[h.Flags&machMask] == "":
		return nil, fmt.Errorf("the code object is for EF_AMDGPU_MACH 0x%x, whose registers are counted in another way", h.Flags&machMask)
	case int(h.Shentsize) != sectionBytes, h.Shnum == 0, h.Shnum > maxSections:
		return nil, fmt.Errorf("the ELF file has %d section headers of %d bytes each", h.Shnum, h.Shentsize)
	}
	sections := make([]elf.Section64, h.Shnum)
	if err := readAt(r, h.Shoff, int(h.Shnum)*sectionBytes, sections); err != nil {
		return nil, fmt.Errorf("the section table cannot be read: %w", err)
	}
	return sections, nil
}

// findSymbol looks a descriptor's symbol up in the dynamic symbols first, then in those that stripping removes.
func findSymbol(r io.ReaderAt, sections []elf.Section64, name string) (elf.Sym64, error) {
	for _, kind := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		for _, table := range sections {
			if elf.SectionType(table.Type) != kind || int(table.Link) >= len(sections) || elf.SectionFlag(table.Flags)&elf.SHF_COMPRESSED != 0 {
				continue
			}
			if symbol, ok := findIn(r, table, sections[table.Link], name); ok {
				return symbol, nil
			}
			break // there is at most one of a kind
		}
	}
	return elf.Sym64{}, ErrNoDescriptor
}

// findIn goes through one symbol table. Only symbols that have a descriptor's type and size are asked for their names.
func findIn(r io.ReaderAt, table, names elf.Section64, name string) (elf.Sym64, bool) {
	want := append([]byte(name), 0)
	got := make([]byte, len(want))
	symbols := make([]elf.Sym64, symbolChunk/symbolBytes)
	for at, end := uint64(0), min(table.Size, maxSymbolBytes); at+symbolBytes <= end; at += symbolChunk {
		n := int(min(symbolChunk, end-at)) / symbolBytes
		if at+table.Off < at || readAt(r, table.Off+at, n*symbolBytes, symbols[:n]) != nil {
			return elf.Sym64{}, false
		}
		for _, s := range symbols[:n] {
			if elf.ST_TYPE(s.Info) != elf.STT_OBJECT || s.Size != descriptorBytes {
				continue
			}
			if uint64(s.Name)+uint64(len(want)) > names.Size || names.Off+uint64(s.Name) < names.Off {
				continue
			}
			if readBytes(r, names.Off+uint64(s.Name), got) == nil && bytes.Equal(got, want) {
				return s, true
			}
		}
	}
	return elf.Sym64{}, false
}

func readDescriptor(r io.ReaderAt, sections []elf.Section64, symbol elf.Sym64) ([]byte, error) {
	if symbol.Shndx == 0 || int(symbol.Shndx) >= len(sections) {
		return nil, fmt.Errorf("the descriptor's section %d is not there", symbol.Shndx)
	}
	in := sections[symbol.Shndx]
	inside := symbol.Value - in.Addr
	switch {
	case elf.SectionType(in.Type) == elf.SHT_NOBITS, elf.SectionFlag(in.Flags)&elf.SHF_COMPRESSED != 0,
		symbol.Value < in.Addr, in.Size < descriptorBytes, inside > in.Size-descriptorBytes, in.Off+inside < inside:
		return nil, errors.New("the descriptor lies outside its section")
	}
	d := make([]byte, descriptorBytes)
	if err := readBytes(r, in.Off+inside, d); err != nil {
		return nil, fmt.Errorf("the descriptor cannot be read: %w", err)
	}
	return d, nil
}

// readAt decodes n bytes at an offset; a short file is an error.
func readAt(r io.ReaderAt, at uint64, n int, into any) error {
	b := make([]byte, n)
	if err := readBytes(r, at, b); err != nil {
		return err
	}
	_, err := binary.Decode(b, binary.LittleEndian, into)
	return err
}

func readBytes(r io.ReaderAt, at uint64, b []byte) error {
	if at > 1<<62 {
		return io.ErrUnexpectedEOF
	}
	n, err := r.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// maxRegister is the highest number that any generation can address (gfx1250); a larger one is no register.
const maxRegister = 1023

// RegistersFromISA gives the number of registers that the instructions name: the highest of v5, v[250:253] (which ends at
// 253), a[0:15], acc3 and so on, and one more, since they count from 0. It is what the code uses; the hardware allocates in
// steps. Both are 0 where no instruction names a register.
func RegistersFromISA(rows []Row) (arch, accum int) {
	for _, r := range rows {
		if !r.Instruction() || strings.HasPrefix(r.ISA, "image_") { // images take "a16" for a modifier
			continue
		}
		_, operands, _ := strings.Cut(r.ISA, " ")
		operands, _, _ = strings.Cut(operands, "//")
		for i := 0; i < len(operands); i++ {
			if !wordByte(operands[i]) {
				continue
			}
			word := operands[i:]
			for i < len(operands) && wordByte(operands[i]) {
				i++
			}
			kind, n := register(word[:len(word)-len(operands[i:])], operands[i:])
			switch kind {
			case 'v':
				arch = max(arch, n+1)
			case 'a':
				accum = max(accum, n+1)
			}
		}
	}
	return arch, accum
}

// register reads one word of the operands and what follows it: kind is 'v' or 'a', 0 for anything else; n is the last
// register that is meant.
func register(word, rest string) (kind byte, n int) {
	var digits string
	switch {
	case strings.HasPrefix(word, "v"):
		kind, digits = 'v', word[1:]
	case strings.HasPrefix(word, "acc"):
		kind, digits = 'a', word[3:]
	case strings.HasPrefix(word, "a"):
		kind, digits = 'a', word[1:]
	default:
		return 0, 0
	}
	if digits == "" {
		inner, ok := strings.CutPrefix(rest, "[")
		if inner, _, closed := strings.Cut(inner, "]"); ok && closed {
			digits = inner[strings.LastIndexByte(inner, ':')+1:]
		}
	}
	digits, _, _ = strings.Cut(digits, ".") // v5.l and v5.h are halves
	n, ok := smallNumber(digits)
	if !ok {
		return 0, 0
	}
	return kind, n
}

func smallNumber(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, n <= maxRegister
}

func wordByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
