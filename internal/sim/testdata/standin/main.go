// Command standin is the stand-ins alone, as a program that tests can start.
package main

import (
	"os"

	"github.com/flyprof/flyprof-mcp/internal/sim"
)

func main() {
	if len(os.Args) < 3 || os.Args[1] != sim.ExecVerb {
		os.Exit(2)
	}
	os.Exit(sim.Main(os.Args[2], os.Args[3:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
