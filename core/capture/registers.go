package capture

import (
	"fmt"
	"os"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// registers are VGPRs a lane, and where the figures come from.
type registers struct {
	Arch, Accum int
	From        string
}

// registersOf takes the kernel's registers from the kernel descriptor in its code object, else from the highest register
// that the ISA names, else from the CSV, whose VGPR_Count is half the truth on gfx950 (rocprofv3 1.1.0). Disagreement
// between descriptor and ISA is said.
func registersOf(got traced, kernel string) (registers, []envelope.Warning, bool) {
	isaArch, isaAccum := att.RegistersFromISA(got.kept.att.Code.KernelRows(kernel))
	for _, path := range got.files.CodeObjects {
		arch, accum, err := descriptorOf(path, kernel)
		if err != nil {
			continue // most code objects of a process belong to other kernels
		}
		var warnings []envelope.Warning
		if isaArch > arch || isaAccum > accum {
			warnings = append(warnings, envelope.Warning{Code: "REGISTERS_DISAGREE", Message: fmt.Sprintf(
				"the kernel descriptor allocates %d + %d VGPRs and the ISA names %d + %d", arch, accum, isaArch, isaAccum)})
		}
		return registers{arch, accum, "descriptor"}, warnings, true
	}
	if isaArch > 0 {
		return registers{isaArch, isaAccum, "isa"}, nil, true
	}
	if l := got.kept.launch; l != nil && l.HasRegisters {
		return registers{int(l.VGPR), int(l.AccumVGPR), "csv"}, []envelope.Warning{{Code: "REGISTERS_FROM_CSV", Message: "VGPR_Count of rocprofv3's CSV is half the truth on gfx950"}}, true
	}
	return registers{}, nil, false
}

// descriptorOf reads <kernel>.kd of a code object file.
func descriptorOf(path, kernel string) (arch, accum int, err error) {
	if !strings.HasSuffix(path, ".out") {
		return 0, 0, os.ErrInvalid
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	return att.ParseDescriptor(f, kernel)
}
