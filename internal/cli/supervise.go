package cli

import (
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// superviseVerb makes this program the supervisor of one run. Standard input is the pipe that tells it that its server lives.
const superviseVerb = "supervise"

func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use: superviseVerb + " RUNS_DIR RUN_ID", Hidden: true, Args: cobra.ExactArgs(2), DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			log := slog.New(tint.NewTextHandler(os.Stderr, &tint.Options{TimeFormat: time.RFC3339, NoColor: true}))
			store, err := runs.Open(args[0], launch.Local{})
			if err != nil {
				return err
			}
			return capture.Supervise(cmd.Context(), store, launch.Local{}, args[1], os.Stdin, log)
		},
	}
}
