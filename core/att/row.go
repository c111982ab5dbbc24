package att

import "strings"

// Row is one line of code.json: an instruction, or a header row that names a kernel.
type Row struct {
	// ISA is the instruction as disassembled. "; <mangled kernel>" is a header row, "" an address that could not be resolved.
	ISA string
	// Line is LineNumber: the instruction's id, which the wave files refer to.
	Line int64
	// Source is "file:line", or a chain of inlined places "a:1 -> b:2", the innermost first; "" where nothing is known.
	Source string
	// Codeobj is the code object's id, Vaddr the address in it.
	Codeobj, Vaddr int64
	// Hit, Latency, Stall and Idle are sums over the traced waves; see Totals.
	Hit, Latency, Stall, Idle int64
}

// Header says that the row names a kernel and is no instruction.
func (r Row) Header() bool { return strings.HasPrefix(r.ISA, ";") }

// Instruction says that the row is an instruction with an address: neither a header, nor a label, nor the unresolved row of
// format 3.1.0.
func (r Row) Instruction() bool {
	return r.ISA != "" && !r.Header() && !strings.HasPrefix(r.ISA, "label") && !strings.HasSuffix(r.ISA, ":")
}

// Mapped says that the row has a source line.
func (r Row) Mapped() bool { return r.Source != "" }

// Kernel is the mangled name that a header row holds, "" for other rows.
func (r Row) Kernel() string {
	if !r.Header() {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(r.ISA, ";"))
}

// Totals are the row's own sums.
func (r Row) Totals() Totals {
	return Totals{Hit: r.Hit, Latency: r.Latency, Stall: r.Stall, Idle: r.Idle}
}
