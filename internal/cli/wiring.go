package cli

import (
	"log/slog"
	"os"

	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// Wiring is the production server without a transport.
type Wiring struct {
	Server    *server.MCPServer
	Intercept wire.Intercept
}

// Wire puts the production server together on a runs directory, with the simulated GPU, for a program that tests it from outside; more
// adds capabilities that the production server has not.
func Wire(runsDir string, log *slog.Logger, more ...server.ServerOption) (Wiring, error) {
	given := map[string]string{"runs-dir": runsDir, "simulate": "gfx950"}
	c, err := config.Resolve(os.Getenv, func(s config.Setting) (config.Given, bool) {
		v, ok := given[s.Flag]
		return config.Given{Values: []string{v}, From: config.FromFlag}, ok
	})
	if err != nil {
		return Wiring{}, err
	}
	a, err := newApp(c, log)
	if err != nil {
		return Wiring{}, err
	}
	return Wiring{a.server(more...), a.intercept}, nil
}
