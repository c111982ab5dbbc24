// Package isa says of an instruction, as the disassembler prints it, which class it is of, which memory counters it waits for
// and which it counts on. It knows the AMD GPUs of gfx9 (with the matrix instructions of gfx90a, gfx942 and gfx950) to gfx12.
//
// A class is the unit that issues the instruction, as in the categories of the trace decoder, but that matrix instructions
// stand apart from other VALU ones, loads from stores and atomics, barriers from waits, and cache control from memory.
package isa

import "strings"

// Class is what kind of instruction it is.
type Class string

// The classes.
const (
	VALU       Class = "valu"        // vector arithmetic, without matrix instructions
	Matrix     Class = "mfma"        // matrix instructions: v_mfma, v_smfmac, v_wmma, v_swmmac
	SALU       Class = "salu"        // scalar arithmetic
	SMEM       Class = "smem"        // scalar memory, s_buffer_load too
	VMEMLoad   Class = "vmem_load"   // buffer, global and tensor loads, those into LDS too
	VMEMStore  Class = "vmem_store"  // buffer, global and tensor stores
	VMEMAtomic Class = "vmem_atomic" // buffer, global and flat atomics
	Image      Class = "image"       // image loads, stores, samples, ray intersection
	Flat       Class = "flat"        // flat loads and stores, which take the path of LDS too
	Scratch    Class = "scratch"     // spills and private memory
	LDS        Class = "lds"         // LDS and GDS, lane permutes by way of LDS too
	Wait       Class = "wait"        // waits for counters; see Instruction.Waits
	Barrier    Class = "barrier"     // workgroup and cluster barriers
	Branch     Class = "branch"      // branches, calls, jumps
	Nop        Class = "nop"         // instructions that only pass time or steer how the wave is issued
	Cache      Class = "cache"       // cache write-back and invalidation
	Message    Class = "message"     // messages, traps, the end of the program
	Export     Class = "export"      // exports of graphics shaders
	Other      Class = "other"       // no instruction, or one that is not known
)

// Instruction is what the text of an instruction says.
type Instruction struct {
	// Mnemonic is the first word, as printed: "v_add_u32_e32".
	Mnemonic string
	Class    Class
	// Waits are the counters that a wait instruction names; none for other instructions, and for a wait that names none in words.
	Waits Counters
	// Uses are the counters that the instruction raises, on any generation: buffer_load counts on vmcnt until gfx11 and on
	// loadcnt from gfx12. What a wait names tells which.
	Uses Counters
}

// Parse takes an instruction apart. Whatever text holds, the answer is one of the classes; header rows ("; kernel"), labels
// and mnemonics that are not known are Other.
func Parse(text string) Instruction {
	text = strings.TrimSpace(text)
	name, operands, _ := strings.Cut(text, " ")
	out := Instruction{Mnemonic: name, Class: Other}
	if strings.HasSuffix(name, ":") || strings.HasPrefix(name, ";") {
		return out
	}
	row, ok := lookup(name)
	if !ok {
		return out
	}
	out.Class, out.Uses = row.class, row.uses
	if out.Class == Wait {
		out.Waits = countersOf(name, operands)
	}
	return out
}

// lookup finds the longest row of the table that is the mnemonic or begins it and ends where an underscore follows.
func lookup(name string) (row, bool) {
	if len(name) > maxMnemonic {
		return row{}, false
	}
	for {
		if r, ok := byWord[name]; ok {
			return r, true
		}
		at := strings.LastIndexByte(name, '_')
		if at < 0 {
			return row{}, false
		}
		name = name[:at]
	}
}

// maxMnemonic is far above the longest one, v_cvt_scalef32_2xpk16_fp6_f32_e64 and the like.
const maxMnemonic = 64

// Kind is what a wave that stalls at the instruction waits for: the counters of a wait ("vmcnt", "vmcnt+lgkmcnt", "wait" where
// none is named), else the class.
func (i Instruction) Kind() string {
	if i.Waits != 0 {
		return i.Waits.String()
	}
	return string(i.Class)
}

// widths are the bytes a lane of a memory instruction by how its mnemonic goes on.
var widths = map[string]int{
	"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "ushort": 2, "sshort": 2, "short": 2, "ubyte": 1, "sbyte": 1, "byte": 1,
	"b128": 16, "b96": 12, "b64": 8, "b32": 4, "b16": 2, "b8": 1, "u16": 2, "i16": 2, "u8": 1, "i8": 1,
}

// Bytes is what a load or store of vector memory moves for each lane; 0 where the mnemonic does not say.
func (i Instruction) Bytes() int {
	switch i.Class {
	case VMEMLoad, VMEMStore, Flat, Scratch:
		words := strings.Split(i.Mnemonic, "_")
		for n := len(words) - 1; n > 0; n-- {
			if w, ok := widths[words[n]]; ok {
				return w
			}
		}
	}
	return 0
}
