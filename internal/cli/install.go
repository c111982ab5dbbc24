package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/internal/install"
)

const installVerb request.Verb = "install"

// installData is what the command install answers.
type installData struct {
	Client string `json:"client"`
	Scope  string `json:"scope"`
	// File is where the entry belongs; Snippet is the file as it would be with nothing else in it.
	File    string `json:"file"`
	Snippet string `json:"snippet"`
	// Command adds the server by the client's own means, where it has any.
	Command []string `json:"command,omitempty"`
	// State is printed, written or unchanged.
	State  string `json:"state"`
	Backup string `json:"backup,omitempty"`
}

// installer is one call of the command.
type installer struct {
	caller                *caller
	client, scope, format string
	print, write, force   bool
	// host and program are this one's but in tests.
	host    func() (install.Host, error)
	program func() (string, error)
}

func (c *caller) installCommand() *cobra.Command {
	i := &installer{caller: c, host: thisHost, program: os.Executable}
	cmd := &cobra.Command{
		Use: string(installVerb), Short: "Add this server to an MCP client's configuration", Args: cobra.NoArgs, ValidArgsFunction: noFiles, RunE: i.run,
		Long: "Prints the entry for an MCP client and the file that it belongs in, or writes it there. Settings that are given as flags become part\nof the entry: flyprof-mcp install --client cursor --worktree /path/to/FlyDSL",
	}
	set := cmd.Flags()
	set.StringVar(&i.client, "client", "", "the MCP client: "+strings.Join(install.Names(), ", "))
	set.StringVar(&i.scope, "scope", install.ScopeUser, "user: for this user wherever he works; project: for the working directory")
	set.BoolVar(&i.print, "print", false, "print the entry and write nothing (the default)")
	set.BoolVar(&i.write, "write", false, "write the entry into the client's file; what it was is kept beside it as .bak")
	set.BoolVar(&i.force, "force", false, "with --write: replace what differs in an entry that is there")
	addFormat(cmd, &i.format, formatTable)
	offerFor(cmd, "client", fixed(install.Names()...))
	offerFor(cmd, "scope", fixed(install.Scopes()...))
	return cmd
}

func thisHost() (install.Host, error) {
	dir, err := os.Getwd()
	return install.Host{OS: runtime.GOOS, Getenv: os.Getenv, Dir: dir}, err
}

func (i *installer) run(*cobra.Command, []string) error {
	if err := i.caller.checkFormat(i.format); err != nil {
		return err
	}
	if i.print && i.write {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message: "--print and --write contradict each other", Evidence: envelope.Evidence{Field: "--write", Value: "true", Allowed: "one of --print and --write"},
		})
	}
	client, err := install.Find(i.client)
	if err != nil {
		return err
	}
	settings, err := i.caller.flags.resolve()
	if err != nil {
		return err
	}
	host, err := i.host()
	if err != nil {
		return err
	}
	entry, err := i.entry(settings, host)
	if err != nil {
		return err
	}
	data := installData{Client: client.Name, Scope: i.scope, State: "printed", Command: client.Command(entry, i.scope)}
	if data.File, err = client.File(host, i.scope); err != nil {
		return err
	}
	if data.Snippet, err = client.Snippet(entry); err != nil {
		return err
	}
	if i.write {
		var done install.Written
		if done, err = client.Write(data.File, entry, i.force); err == nil {
			data.State, data.Backup = map[bool]string{true: "written", false: "unchanged"}[done.Changed], done.Backup
		}
	}
	return reply(i.caller, installVerb, i.format, envelope.Reply[installData]{Data: &data, Warnings: notCarried(settings)}, err)
}

// entry is how a client is to start this program: with the settings that were given as flags, whose paths are made absolute, since the
// client's working directory is another.
func (i *installer) entry(settings config.Config, host install.Host) (install.Entry, error) {
	program, err := i.program()
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return install.Entry{}, fmt.Errorf("the path of this program: %w", err)
	}
	if err := install.Program(program); err != nil {
		return install.Entry{}, err
	}
	if settings.HTTP != "" {
		return install.Entry{}, invalidSetting("http", "FLYPROF_HTTP", settings.HTTP, "no address: clients start the entry and talk to it over standard input and output", errors.New("it is for a server that is started once"))
	}
	e := install.Entry{Command: program, Args: []string{}}
	for _, words := range i.caller.flags.words(func(s config.Setting, value string) string { return s.Absolute(host.Dir, value) }) {
		e.Args = append(e.Args, words...)
	}
	return e, nil
}

// notCarried warns of settings that hold here and not in the client: it starts the server in an environment of its own.
func notCarried(c config.Config) []envelope.Warning {
	var names []string
	for _, s := range c.InForce() {
		if s.From == config.FromEnvironment {
			names = append(names, s.Env)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []envelope.Warning{{Code: "ENVIRONMENT_NOT_CARRIED", Message: strings.Join(names, ", ") + " of this environment are no part of the entry: give them as flags, or in the configuration file"}}
}

func installView(s *sheet, d installData) {
	s.linef("%s, scope %s: %s", d.Client, d.Scope, d.File)
	switch d.State {
	case "written":
		s.linef("%s written; restart the client", markOK)
		if d.Backup != "" {
			s.linef("what it was: %s", d.Backup)
		}
		return
	case "unchanged":
		s.linef("%s it is there already", markOK)
		return
	}
	s.section()
	s.text(d.Snippet)
	if d.Command != nil {
		s.section()
		s.linef("or: %s", shell(d.Command))
	}
}
