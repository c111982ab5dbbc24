// Package cli is the command line of both programs: the settings, the verbs, the server, and what they are put together from.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// Program is what the programs that share this command line differ in.
type Program struct {
	// Name is what the program is called.
	Name string
	// Release is its version where it is a release, else empty.
	Release string
	// DropIn makes it stand in for the public flyprof: it takes that program's flags too, knows its verbs, and serves nothing.
	DropIn bool
}

// Main runs the command line of this process and gives its exit code.
func (p Program) Main() int {
	released = p.Release
	if name, args, ok := standIn(os.Args); ok {
		return sim.Main(name, args, os.Stdin, os.Stdout, os.Stderr, os.Environ())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newCaller(p, os.Stdout, os.Stderr).execute(ctx, os.Args[1:])
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

// caller is one call of a program: what it was called with, and where its answer goes.
type caller struct {
	program Program
	args    []string
	out     output
	screen  *screen
	flags   settingFlags
}

func newCaller(p Program, stdout, stderr *os.File) *caller {
	c := &caller{program: p, out: output{Writer: stdout, colours: colours(stdout)}, screen: newScreen(stderr)}
	c.flags.log, c.flags.colours = c.screen, colours(stderr)
	return c
}

// execute runs one command line and gives the exit code.
func (c *caller) execute(ctx context.Context, args []string) int {
	c.args = args
	root := c.command()
	root.SetArgs(args)
	root.SetOut(c.out)
	root.SetErr(c.screen)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var done exited
	if errors.As(err, &done) {
		return int(done)
	}
	if ctx.Err() != nil && envelope.CodeOf(err) == "" {
		err = envelope.Build(envelope.Cancelled, envelope.Facts{Message: "interrupted"})
	}
	return c.fail(cmd, err)
}

// command is the whole command line.
func (c *caller) command() *cobra.Command {
	root := &cobra.Command{
		Use:           c.program.Name,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	c.flags.register(root)
	completeSettings(root)
	root.AddCommand(superviseCommand(), versionCommand(), c.configCommand())
	root.AddCommand(c.verbCommands()...)
	if c.program.DropIn {
		root.Short = "Capture instruction-level traces of FlyDSL kernels with rocprofv3"
		root.Long = "Takes the command lines of the public flyprof. flyprof-mcp has the same verbs, and serves them over MCP."
		root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	} else {
		root.Short = "MCP server that captures instruction-level traces of FlyDSL kernels with rocprofv3"
		root.Long = "Serves MCP over standard input and output when no verb is given. Logs go to standard error."
		root.RunE = func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), &c.flags) }
		root.AddCommand(c.exportCommand())
		root.AddCommand(&cobra.Command{Use: serveVerb, Short: "Serve MCP over standard input and output (the default)", Args: cobra.NoArgs, RunE: root.RunE}, demoCommand(), c.installCommand(), c.skillsCommand())
	}
	c.helpTopics(root)
	c.checkUsage(root)
	return root
}

// serveVerb serves, as no verb does.
const serveVerb = "serve"

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
		return err
	}}
}

// settingFlags are the flags of config's table.
type settingFlags struct {
	cmd *cobra.Command
	// log is where the log goes without a log file, and whether in colours.
	log     io.Writer
	colours bool
	// resolve gives the settings in force, which are worked out once: flags, then environment, then the configuration file, then
	// defaults.
	resolve func() (config.Config, error)
}

// register adds one flag for each setting.
func (f *settingFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	f.resolve = sync.OnceValues(func() (config.Config, error) { return config.Load(os.Getenv, f.source) })
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

// source gives the flags that were given, to config.Load.
func (f *settingFlags) source(s config.Setting) (config.Given, bool) {
	set := f.cmd.PersistentFlags()
	flag := set.Lookup(s.Flag)
	if flag == nil || !flag.Changed {
		return config.Given{}, false
	}
	values := []string{flag.Value.String()}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	return config.Given{Values: values, From: config.FromFlag}, true
}

// given writes the settings that were given as flags out again, each as its words.
func (f *settingFlags) given() [][]string {
	return f.words(func(_ config.Setting, value string) string { return value })
}

// words does so with values of another form.
func (f *settingFlags) words(form func(s config.Setting, value string) string) [][]string {
	var out [][]string
	for _, s := range config.Settings() {
		given, _ := f.source(s)
		for _, v := range given.Values {
			v = form(s, v)
			switch {
			case s.Bool && v == "true":
				out = append(out, []string{"--" + s.Flag})
			case s.Bool, s.Optional != "", strings.HasPrefix(v, "-"):
				out = append(out, []string{"--" + s.Flag + "=" + v})
			default:
				out = append(out, []string{"--" + s.Flag, v})
			}
		}
	}
	return out
}
