package att

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Fields of the kernel descriptor (LLVM AMDGPU usage, "Kernel Descriptor", code object v3 to v6): 64 bytes at <kernel>.kd.
const (
	descriptorBytes = 64
	rsrc3Offset     = 44 // COMPUTE_PGM_RSRC3: ACCUM_OFFSET in bits 0 to 5 on gfx90a, gfx942 and gfx950
	rsrc1Offset     = 48 // COMPUTE_PGM_RSRC1: GRANULATED_WORKITEM_VGPR_COUNT in bits 0 to 5
	lowSixBits      = 0x3f
	vgprGranule     = 8 // registers a granule on gfx90a, gfx942 and gfx950
	accumGranule    = 4 // registers a step of ACCUM_OFFSET
)

const (
	maxSymbols    = 1 << 20
	maxCodeObject = 512 << 20
)

// ErrNoDescriptor: the code object does not hold the kernel.
var ErrNoDescriptor = errors.New("the code object has no descriptor of the kernel")

// ParseDescriptor reads the registers that a kernel is given, from the descriptor in its code object (an ELF file): arch are
// the VGPRs a lane before the accumulation registers begin, accum the rest of what is allocated. Both are what the hardware
// allocates, so up to seven registers more than the code names.
func ParseDescriptor(r io.ReaderAt, kernel string) (arch, accum int, err error) {
	f, err := elf.NewFile(io.NewSectionReader(r, 0, maxCodeObject))
	if err != nil {
		return 0, 0, fmt.Errorf("no ELF file: %w", err)
	}
	symbol, err := findSymbol(f, kernel+".kd")
	if err != nil {
		return 0, 0, err
	}
	if int(symbol.Section) <= 0 || int(symbol.Section) >= len(f.Sections) {
		return 0, 0, fmt.Errorf("the descriptor's section %d is not there", symbol.Section)
	}
	section := f.Sections[symbol.Section]
	if section.Type == elf.SHT_NOBITS || symbol.Value < section.Addr || symbol.Value-section.Addr > section.FileSize || section.FileSize-(symbol.Value-section.Addr) < descriptorBytes {
		return 0, 0, errors.New("the descriptor lies outside its section")
	}
	var d [descriptorBytes]byte
	if _, err := section.ReadAt(d[:], int64(symbol.Value-section.Addr)); err != nil {
		return 0, 0, fmt.Errorf("the descriptor cannot be read: %w", err)
	}
	total := (int(binary.LittleEndian.Uint32(d[rsrc1Offset:])&lowSixBits) + 1) * vgprGranule
	arch = (int(binary.LittleEndian.Uint32(d[rsrc3Offset:])&lowSixBits) + 1) * accumGranule
	if arch > total {
		return 0, 0, fmt.Errorf("the descriptor gives %d registers in all and %d before the accumulation registers", total, arch)
	}
	return arch, total - arch, nil
}

// findSymbol looks the name up in the dynamic symbols first: a stripped code object has no others.
func findSymbol(f *elf.File, name string) (elf.Symbol, error) {
	for _, kind := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		if s := f.SectionByType(kind); s == nil || s.FileSize/24 > maxSymbols || s.Size > s.FileSize {
			continue
		}
		read := f.DynamicSymbols
		if kind == elf.SHT_SYMTAB {
			read = f.Symbols
		}
		symbols, err := read()
		if err != nil {
			continue
		}
		for _, s := range symbols {
			if s.Name == name {
				return s, nil
			}
		}
	}
	return elf.Symbol{}, ErrNoDescriptor
}

// vectorRegister is an operand: v7, a[0:3], acc12. Scalar registers and counters such as vmcnt do not match.
var vectorRegister = regexp.MustCompile(`(?:^|[^A-Za-z0-9_])(v|a|acc)(?:(\d{1,3})|\[(\d{1,3})(?::(\d{1,3}))?\])(?:$|[^A-Za-z0-9_])`)

// RegistersFromISA gives the number of registers that the instructions name: the highest one and one more, since they count
// from 0. It is what the code uses; the hardware allocates in steps of eight.
func RegistersFromISA(rows []Row) (arch, accum int) {
	for _, r := range rows {
		if !r.Instruction() {
			continue
		}
		_, operands, _ := strings.Cut(r.ISA, " ")
		// Neighbours share a separator, so each match begins where the one before ended its own.
		for at := 0; at < len(operands); {
			m := vectorRegister.FindStringSubmatchIndex(operands[at:])
			if m == nil {
				break
			}
			n := highest(operands[at:], m)
			if operands[at:][m[2]:m[3]] == "v" {
				arch = max(arch, n+1)
			} else {
				accum = max(accum, n+1)
			}
			at += m[1] - 1
			if m[1] == len(operands[at:]) || m[1] <= 1 {
				at++
			}
		}
	}
	return arch, accum
}

// highest is the last register that an operand names.
func highest(text string, m []int) int {
	for _, group := range []int{8, 6, 4} {
		if m[group] >= 0 {
			n, _ := strconv.Atoi(text[m[group]:m[group+1]]) // at most three digits
			return n
		}
	}
	return 0
}
