package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// logger writes to stderr, or to the log file in force. It never writes to standard output, which belongs to JSON-RPC.
func logger(c config.Config, stderr io.Writer, coloured bool) (*slog.Logger, io.Closer, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, nil, err
	}
	if c.LogFile == "" {
		return slog.New(tint.NewTextHandler(stderr, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !coloured})), io.NopCloser(nil), nil
	}
	f, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the log file cannot be opened: %v", err),
			Evidence: envelope.Evidence{Field: "--log-file", Value: c.LogFile, Allowed: "a file that can be written", Setting: "--log-file (FLYPROF_LOG_FILE)"},
		})
	}
	return slog.New(tint.NewTextHandler(f, &tint.Options{Level: level, TimeFormat: time.RFC3339, NoColor: true})), f, nil
}

// colours says whether a stream is a terminal that wants colours (https://no-color.org).
func colours(f *os.File) bool {
	return isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
