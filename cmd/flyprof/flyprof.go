// Command flyprof takes the command lines of the public flyprof and answers them with flyprof-mcp's envelopes.
//
// It is a drop-in for agents and scripts that call `flyprof doctor|list|tile|capture ... -f json`. It serves no MCP.
package main

import (
	"os"

	"github.com/flyprof/flyprof-mcp/internal/cli"
)

// released is set by the linker for releases: -ldflags "-X main.released=v1.2.3".
var released string

func main() { os.Exit(cli.Program{Name: "flyprof", Release: released, DropIn: true}.Main()) }
