package att

import "github.com/flyprof/flyprof-mcp/core/isa"

// StallType is what a wave that stalls at an instruction waits for: the counters of a wait instruction ("vmcnt",
// "vmcnt+lgkmcnt", "loadcnt+dscnt"; "wait" where none can be told), else the class of the instruction, in the words of core/isa.
// Header rows, labels and mnemonics that are not known give "other".
func StallType(text string) string { return isa.Parse(text).Kind() }
