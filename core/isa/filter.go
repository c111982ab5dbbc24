package isa

import "slices"

// groups are words for several classes at once.
var groups = map[string][]Class{
	"vmem":   {VMEMLoad, VMEMStore, VMEMAtomic},
	"memory": {SMEM, VMEMLoad, VMEMStore, VMEMAtomic, Image, Flat, Scratch},
	"matrix": {Matrix},
	"wmma":   {Matrix},
}

var classes = []Class{VALU, Matrix, SALU, SMEM, VMEMLoad, VMEMStore, VMEMAtomic, Image, Flat, Scratch, LDS, Wait, Barrier, Branch, Nop, Cache, Message, Export, Other}

// Filters are the words by which instructions can be chosen: the classes, the counters of waits, and "vmem", "memory",
// "matrix" and "wmma" for several classes at once.
func Filters() []string {
	var out []string
	for _, c := range classes {
		out = append(out, string(c))
	}
	for name := range groups {
		out = append(out, name)
	}
	slices.Sort(out)
	return append(out, counterNames[:]...)
}

// Is says whether an instruction is of a class, waits for a counter, or is in a group of Filters.
func (i Instruction) Is(filter string) bool {
	if c, ok := CounterNamed(filter); ok {
		return i.Waits&c != 0
	}
	return string(i.Class) == filter || slices.Contains(groups[filter], i.Class)
}
