// Package export writes a trace in forms that other programs read: a pprof profile, a timeline for Perfetto, CSV. Numbers are those of
// the files; nothing is scaled.
package export

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/att"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Format is a form to write.
type Format string

// The formats.
const (
	Pprof    Format = "pprof"    // github.com/google/pprof profile.proto, gzipped
	Perfetto Format = "perfetto" // Chrome trace event format, JSON
	CSV      Format = "csv"      // one line for each instruction
)

// Formats are all of them, with the ending of a file's name and its media type.
var Formats = []struct {
	Format       Format
	Ending, MIME string
}{
	{Pprof, ".pb.gz", "application/octet-stream"},
	{Perfetto, ".json", "application/json"},
	{CSV, ".csv", "text/csv"},
}

// About is what is known of the trace besides its files; empty where it is not.
type About struct {
	// Kernel is the traced symbol: rows of other code objects are left out. Empty takes the code object with most hits.
	Kernel string
	// Run, Arch and Simulated say where the trace is from.
	Run, Arch string
	Simulated bool
}

// Write reads a dispatch directory and writes it to w in a format.
//
// Errors: BAD_ARGS for an unknown format; those of att.Open; EMPTY_ATT where there is nothing to write; of w.
func Write(ctx context.Context, w io.Writer, dir string, format Format, about About) error {
	write, ok := map[Format]func(context.Context, io.Writer, string, About) error{Pprof: writePprof, Perfetto: writePerfetto, CSV: writeCSV}[format]
	if !ok {
		names := make([]string, len(Formats))
		for i, f := range Formats {
			names[i] = string(f.Format)
		}
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("there is no format %.40q; there are %s", format, strings.Join(names, ", ")),
			Evidence: envelope.Evidence{Field: "format", Value: fmt.Sprintf("%.40s", format), Allowed: strings.Join(names, ", "), ValidNames: names},
		})
	}
	return write(ctx, w, dir, about)
}

// kept opens a directory that holds a trace of the kernel.
func kept(ctx context.Context, dir string, about About, opt att.Options) (*att.Dispatch, error) {
	d, err := att.Open(ctx, dir, opt)
	if err != nil {
		return nil, err
	}
	if v := d.Verdict(about.Kernel); v.Err != nil {
		return nil, v.Err
	}
	return d, nil
}
