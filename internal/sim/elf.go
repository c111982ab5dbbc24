package sim

import (
	"bytes"
	"encoding/binary"
)

// descriptorBytes is the size of a kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor").
const descriptorBytes = 64

// codeObjectFile makes a minimal ELF64 code object: a descriptor `<kernel>.kd` in .rodata for each kernel, a symbol table
// and a .text that only ends the program.
func codeObjectFile(model gpuModel, kernels []*kernelObject) ([]byte, error) {
	const headerBytes, sectionBytes, symbolBytes = 64, 64, 24
	var rodata, names, symbols bytes.Buffer
	names.WriteByte(0)
	symbols.Write(make([]byte, symbolBytes))
	order := binary.LittleEndian
	addSymbol := func(name string, kind byte, section uint16, value, size uint64) {
		entry := make([]byte, symbolBytes)
		order.PutUint32(entry, uint32(names.Len()))
		entry[4] = 1<<4 | kind // STB_GLOBAL
		entry[5] = 3           // STV_PROTECTED
		order.PutUint16(entry[6:], section)
		order.PutUint64(entry[8:], value)
		order.PutUint64(entry[16:], size)
		symbols.Write(entry)
		names.WriteString(name)
		names.WriteByte(0)
	}
	text := []byte{0x00, 0x00, 0x81, 0xbf} // s_endpgm
	textAt := uint64(headerBytes)
	rodataAt := textAt + 64
	for i, k := range kernels {
		at := rodataAt + uint64(i*descriptorBytes)
		addSymbol(k.kernel, 2, 1, textAt, uint64(len(text)))
		addSymbol(k.kernel+".kd", 1, 2, at, descriptorBytes)
		rodata.Write(descriptor(k, int64(textAt)-int64(at)))
	}
	var sectionNames bytes.Buffer
	sectionNames.WriteByte(0)
	type section struct {
		name              string
		kind              uint32
		flags, at, size   uint64
		link, info        uint32
		alignment, member uint64
	}
	symbolsAt := rodataAt + uint64(rodata.Len())
	namesAt := symbolsAt + uint64(symbols.Len())
	shstrAt := namesAt + uint64(names.Len())
	list := []section{
		{},
		{name: ".text", kind: 1, flags: 6, at: textAt, size: uint64(len(text)), alignment: 64},
		{name: ".rodata", kind: 1, flags: 2, at: rodataAt, size: uint64(rodata.Len()), alignment: 64},
		{name: ".symtab", kind: 2, at: symbolsAt, size: uint64(symbols.Len()), link: 4, info: 1, alignment: 8, member: symbolBytes},
		{name: ".strtab", kind: 3, at: namesAt, size: uint64(names.Len()), alignment: 1},
		{name: ".shstrtab", kind: 3, at: shstrAt, alignment: 1},
	}
	offsets := make([]uint32, len(list))
	for i := 1; i < len(list); i++ {
		offsets[i] = uint32(sectionNames.Len())
		sectionNames.WriteString(list[i].name + "\x00")
	}
	list[5].size = uint64(sectionNames.Len())
	tableAt := (shstrAt + list[5].size + 7) / 8 * 8

	header := make([]byte, headerBytes)
	copy(header, "\x7fELF\x02\x01\x01\x40\x03") // 64-bit little endian, ELFOSABI_AMDGPU_HSA, ABI version of code object 5
	order.PutUint16(header[16:], 3)             // ET_DYN
	order.PutUint16(header[18:], 224)           // EM_AMDGPU
	order.PutUint32(header[20:], 1)
	order.PutUint64(header[40:], tableAt)
	order.PutUint32(header[48:], model.elfMach)
	order.PutUint16(header[52:], headerBytes)
	order.PutUint16(header[58:], sectionBytes)
	order.PutUint16(header[60:], uint16(len(list)))
	order.PutUint16(header[62:], uint16(len(list)-1))

	out := bytes.NewBuffer(header)
	pad := func(to uint64) { out.Write(make([]byte, to-uint64(out.Len()))) }
	out.Write(text)
	pad(rodataAt)
	out.Write(rodata.Bytes())
	out.Write(symbols.Bytes())
	out.Write(names.Bytes())
	out.Write(sectionNames.Bytes())
	pad(tableAt)
	for i, s := range list {
		for _, v := range []any{offsets[i], s.kind, s.flags, s.at, s.at, s.size, s.link, s.info, s.alignment, s.member} {
			if err := binary.Write(out, order, v); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), nil
}

// descriptor makes a kernel descriptor with the register counts where the hardware reads them.
func descriptor(k *kernelObject, entry int64) []byte {
	d := make([]byte, descriptorBytes)
	order := binary.LittleEndian
	order.PutUint32(d[0:], uint32(k.lds))
	order.PutUint32(d[8:], 64) // kernarg bytes
	order.PutUint64(d[16:], uint64(entry))
	accumOffset := align(max(k.arch, 4), 4)
	if k.acc == 0 {
		accumOffset = align(max(k.arch, 1), 8)
	}
	accumOffset = min(accumOffset, 256)
	order.PutUint32(d[44:], uint32(accumOffset/4-1)) // COMPUTE_PGM_RSRC3: ACCUM_OFFSET
	granules := allocated(k)/8 - 1                   // GRANULATED_WORKITEM_VGPR_COUNT, granules of 8 on gfx90a and later
	order.PutUint32(d[48:], uint32(granules&0x3f)|13<<6)
	order.PutUint32(d[52:], 0x90)
	order.PutUint16(d[56:], 0x408)
	return d
}
