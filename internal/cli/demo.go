package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/internal/demo"
)

func demoCommand() *cobra.Command {
	var keep string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Walk the whole runbook over a real MCP session on the simulated GPU",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd, keep, verbose)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "keep the runs in this directory")
	cmd.Flags().BoolVar(&verbose, "server-log", false, "show what the server logs")
	return cmd
}

func runDemo(cmd *cobra.Command, keep string, verbose bool) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "flyprof-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	runs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	log := io.Discard
	if verbose {
		log = cmd.ErrOrStderr()
	}
	return demo.Run(cmd.Context(), demo.Options{
		Server: []string{self, "--simulate", "--runs-dir", runs, "--stop-grace", "5"},
		Env:    withoutSettings(os.Environ()), Out: cmd.OutOrStdout(), Log: log,
		Kernel: "softmax", Shape: "8192,8192", Small: "8,8192",
	})
}

// withoutSettings drops settings of this program from the environment, and leaves no configuration file: the demo is the same
// everywhere.
func withoutSettings(environ []string) []string {
	out := []string{"FLYPROF_CONFIG=" + os.DevNull}
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "FLYPROF_") {
			out = append(out, kv)
		}
	}
	return out
}
