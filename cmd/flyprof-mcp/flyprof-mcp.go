// Command flyprof-mcp is an MCP server that captures instruction-level traces of FlyDSL kernels with rocprofv3.
//
// Without a verb it serves MCP over standard input and output. `flyprof-mcp demo` runs the whole runbook on a simulated GPU.
package main

import (
	"os"

	"github.com/flyprof/flyprof-mcp/internal/cli"
)

// released is set by the linker for releases: -ldflags "-X main.released=v1.2.3".
var released string

func main() { os.Exit(cli.Program{Name: "flyprof-mcp", Release: released}.Main()) }
