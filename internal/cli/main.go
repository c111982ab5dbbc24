// Package cli is the command line of both programs: the settings, the verbs, the server, and what they are put together from.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// Main runs the command line of this process and gives its exit code. release is the version of a release, empty for others.
func Main(release string) int {
	released = release
	if name, args, ok := standIn(os.Args); ok {
		return sim.Main(name, args, os.Stdin, os.Stdout, os.Stderr, os.Environ())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return execute(ctx, os.Args[1:])
}

// standIn says whether this process is to be a simulated program: called by the hidden verb, or under the program's name. It
// is asked before any flag is read, since the flags are the stand-in's own.
func standIn(argv []string) (name string, args []string, ok bool) {
	if len(argv) > 2 && argv[1] == sim.ExecVerb {
		return argv[2], argv[3:], true
	}
	if len(argv) > 0 {
		if name, ok := sim.Names(filepath.Base(argv[0])); ok {
			return name, argv[1:], true
		}
	}
	return "", nil, false
}

// execute runs one command line and gives the exit code.
func execute(ctx context.Context, args []string) int {
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var done exited
	if errors.As(err, &done) {
		return int(done)
	}
	var e *envelope.Error
	if errors.As(err, &e) {
		fmt.Fprintf(os.Stderr, "flyprof-mcp: %s: %s\n%s\n", e.Code, e.Message, e.Help)
		row, _ := envelope.Lookup(e.Code)
		return row.Exit
	}
	fmt.Fprintln(os.Stderr, "flyprof-mcp:", err)
	return exitUsage
}

// exitUsage is EX_USAGE of sysexits.h.
const exitUsage = 64

// command is the whole command line.
func command() *cobra.Command {
	flags := &settingFlags{}
	root := &cobra.Command{
		Use:           "flyprof-mcp",
		Short:         "MCP server that captures instruction-level traces of FlyDSL kernels with rocprofv3",
		Long:          "Serves MCP over standard input and output when no verb is given. Logs go to standard error.",
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), flags) },
	}
	flags.register(root)
	serveCmd := &cobra.Command{Use: "serve", Short: "Serve MCP over standard input and output (the default)", Args: cobra.NoArgs, RunE: root.RunE}
	root.AddCommand(serveCmd, demoCommand(), superviseCommand(), versionCommand())
	root.AddCommand(verbCommands(flags)...)
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
		return err
	}}
}

// settingFlags are the flags of config's table.
type settingFlags struct {
	cmd *cobra.Command
}

// register adds one flag for each setting.
func (f *settingFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	set := cmd.PersistentFlags()
	for _, s := range config.Settings() {
		help := fmt.Sprintf("%s (%s)", s.Help, s.Env)
		switch {
		case s.Bool:
			set.Bool(s.Flag, false, help)
		case s.Multi:
			set.StringArray(s.Flag, nil, help)
		default:
			set.String(s.Flag, s.Default, help)
		}
		if s.Optional != "" {
			set.Lookup(s.Flag).NoOptDefVal = s.Optional
		}
	}
}

// source gives the flags that were given, to config.Resolve.
func (f *settingFlags) source(s config.Setting) ([]string, bool) {
	set := f.cmd.PersistentFlags()
	flag := set.Lookup(s.Flag)
	if flag == nil || !flag.Changed {
		return nil, false
	}
	if s.Multi {
		v, err := set.GetStringArray(s.Flag)
		return v, err == nil
	}
	return []string{flag.Value.String()}, true
}

// resolve gives the settings in force: flags, then environment, then defaults.
func (f *settingFlags) resolve() (config.Config, error) {
	return config.Resolve(os.Getenv, f.source, config.FromEnv(os.Getenv))
}
