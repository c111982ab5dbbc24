// Command conformance serves the production wiring over HTTP with the fixtures that the MCP conformance suite asks for by name. It is for
// .ci/run alone: it asks for no token, because the suite sends none, and must listen on a loopback address.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/cli"
	"github.com/flyprof/flyprof-mcp/internal/httpd"
	"github.com/flyprof/flyprof-mcp/internal/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// besides answers the one fixture that is no handler: a tool that needs what the client has not declared.
func besides(production wire.Intercept) wire.Intercept {
	return func(ctx context.Context, method string, params json.RawMessage) (any, bool, error) {
		var p struct{ Name string }
		err := json.Unmarshal(params, &p)
		if err == nil && method == string(mcp.MethodToolsCall) && p.Name == "test_missing_capability" {
			return nil, true, &wire.Error{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "this tool needs sampling", Data: map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}}}
		}
		return production(ctx, method, params)
	}
}

// listen takes loopback addresses alone.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s is no loopback address", l.Addr()), l.Close())
	}
	return l, nil
}

func run() error {
	address := flag.String("http", "127.0.0.1:0", "loopback address to serve at")
	runsDir := flag.String("runs-dir", "", "runs directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := listen(*address)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	w, err := cli.Wire(*runsDir, log, server.WithLogging(), server.WithToolCapabilities(true), server.WithPromptCapabilities(true))
	if err != nil {
		return err
	}
	addFixtures(w.Server)
	fmt.Printf("http://%s%s\n", l.Addr(), httpd.Endpoint)
	return httpd.New(w.Server, httpd.Options{NoToken: true, Intercept: besides(w.Intercept), Log: log}).Serve(ctx, l, "", "")
}
