package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/core/request"
)

// The formats of an answer.
const (
	formatJSON  = "json"  // the envelope, indented
	formatLine  = "line"  // the envelope in one line
	formatTable = "table" // for people
)

var formats = []string{formatJSON, formatLine, formatTable}

// addFormat adds the flag that chooses among them.
func addFormat(cmd *cobra.Command, format *string, usual string) {
	cmd.Flags().StringVarP(format, "format", "f", usual, "json: the envelope, indented; line: the envelope in one line; table: for people")
	offerFor(cmd, "format", fixed(formats...))
}

// output is where answers go.
type output struct {
	io.Writer
	// colours: it is a terminal that wants them.
	colours bool
}

// print writes an envelope. The verb says what its data is; empty where it has none.
func (o output) print(format string, verb request.Verb, raw json.RawMessage) error {
	var out bytes.Buffer
	switch format {
	case formatTable:
		if err := writeTable(&out, verb, raw, o.colours); err != nil {
			return err
		}
	case formatLine:
		out.Write(raw)
		out.WriteByte('\n')
	default:
		if err := json.Indent(&out, raw, "", "  "); err != nil {
			return err
		}
		out.WriteByte('\n')
	}
	_, err := o.Write(out.Bytes())
	return err
}

// formatOf finds the format that a command line asks for, also where it cannot be parsed. It is the usual one where none or no known one
// is named.
func formatOf(args []string, usual string) string {
	format := usual
	for i, arg := range args {
		value := ""
		switch {
		case arg == "--":
			return format
		case (arg == "-f" || arg == "--format") && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, "--format="), strings.HasPrefix(arg, "-f="):
			_, value, _ = strings.Cut(arg, "=")
		case strings.HasPrefix(arg, "-f"):
			value = arg[2:]
		}
		if slices.Contains(formats, value) {
			format = value
		}
	}
	return format
}

// checkFormat is BAD_ARGS for a format that there is not.
func (c *caller) checkFormat(format string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	meant, allowed := near.Nearest(format, formats), strings.Join(formats, ", ")
	return misuse{repaired: c.repair(format, meant), err: envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("--format is %.100q; allowed: %s%s", format, allowed, isNear(meant)),
		Evidence: envelope.Evidence{Field: "--format", Value: format, Allowed: allowed, ValidNames: formats},
	})}
}
