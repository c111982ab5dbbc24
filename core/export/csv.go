package export

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/isa"
)

// writeCSV writes the instructions with the columns of att-tool's own stats file, and their class.
func writeCSV(ctx context.Context, w io.Writer, dir string, about About) error {
	d, err := kept(ctx, dir, about, att.Options{})
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"CodeObj", "Vaddr", "Instruction", "Class", "Hitcount", "Latency", "Stall", "Idle", "Source"})
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	for _, r := range d.Code.KernelRows(about.Kernel) {
		if r.Instruction() {
			_ = out.Write([]string{n(r.Codeobj), n(r.Vaddr), r.ISA, isa.Parse(r.ISA).Kind(), n(r.Hit), n(r.Latency), n(r.Stall), n(r.Idle), r.Source})
		}
	}
	out.Flush()
	return out.Error()
}
