package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// misuse is BAD_ARGS about the command line itself.
type misuse struct {
	err *envelope.Error
	// repaired is the command line that was probably meant, nil where none suggests itself.
	repaired []string
	// noVerb: there is no verb of that name, so nothing that owns standard output was called.
	noVerb bool
}

func (m misuse) Error() string { return m.err.Error() }

func (m misuse) Unwrap() error { return m.err }

// fail prints what kept a command from answering and gives its exit code: the envelope on standard output and one line on standard
// error. Where standard output belongs to somebody else, standard error has it all.
func (c *caller) fail(cmd *cobra.Command, err error) int {
	var wrong misuse
	_ = errors.As(err, &wrong)
	e := envelope.As(err)
	row, _ := envelope.Lookup(e.Code)
	if c.ownsStdout(cmd) && !wrong.noVerb {
		fmt.Fprintf(c.screen, "%s: %s: %s\n%s\n", c.program.Name, e.Code, plain(e.Message), plain(e.Help))
		return row.Exit
	}
	name := c.program.Name
	if cmd != cmd.Root() {
		name = strings.TrimPrefix(cmd.CommandPath(), name+" ")
	}
	wire := envelope.NewWire(name, envelope.Reply[struct{}]{}, e, tools.CommandLine(c.program.Name, c.flags.given()))
	if wrong.repaired != nil {
		fixed := envelope.WireAction{Action: envelope.CallTool, Argv: append([]string{c.program.Name}, wrong.repaired...),
			Reason: "the same with what is misspelt put right", Confidence: envelope.Medium}
		wire.Error.NextActions = append([]envelope.WireAction{fixed}, wire.Error.NextActions...)
	}
	raw, marshalErr := jsontree.Marshal(wire)
	if marshalErr == nil {
		usual := formatJSON
		if flag := cmd.Flags().Lookup("format"); flag != nil {
			usual = flag.DefValue
		}
		marshalErr = c.out.print(formatOf(c.args, usual), "", raw)
	}
	fmt.Fprintf(c.screen, "%s: %s: %s\n", c.program.Name, e.Code, plain(e.Message))
	if marshalErr != nil {
		fmt.Fprintf(c.screen, "%s: the envelope cannot be written: %v\n", c.program.Name, marshalErr)
	}
	return row.Exit
}

// ownsStdout: serving and completing write what a program reads, and a supervisor writes nothing.
func (c *caller) ownsStdout(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case serveVerb, superviseVerb, "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
		if cmd.Parent() == cmd.Root() {
			return false
		}
	}
	return !c.program.DropIn // no verb: it would have served
}

// checkUsage makes BAD_ARGS of what cobra finds wrong with a command line.
func (c *caller) checkUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			switch {
			case err == nil || envelope.CodeOf(err) != "":
				return err
			case cmd == cmd.Root():
				return c.unknownVerb(cmd, args[0])
			}
			return wrongArguments(cmd, args)
		}
	}
	cmd.SetFlagErrorFunc(c.flagError)
	for _, sub := range cmd.Commands() {
		c.checkUsage(sub)
	}
}

// wrongArguments: too many or too few arguments that are no flags.
func wrongArguments(cmd *cobra.Command, args []string) error {
	field, allowed := "argument", "flags only"
	if _, positional, ok := strings.Cut(cmd.Use, " "); ok {
		field, allowed = strings.ToLower(positional), "one "+positional
	}
	return misuse{err: envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s takes %s, and was given %s", cmd.CommandPath(), allowed, quoted(args)),
		Help:     seeHelp(cmd),
		Evidence: envelope.Evidence{Field: field, Value: strings.Join(args, " "), Allowed: allowed},
	})}
}

func (c *caller) unknownVerb(root *cobra.Command, verb string) error {
	if row, ok := dropInVerbs[verb]; ok && c.program.DropIn {
		return misuse{noVerb: true, err: row.refuse(c, verb)}
	}
	var names []string
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			names = append(names, cmd.Name())
		}
	}
	slices.Sort(names)
	m := misuse{noVerb: true, err: envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("there is no verb %.100q%s", verb, isNear(near.Nearest(verb, names))),
		Help:     seeHelp(root),
		Evidence: envelope.Evidence{Field: "verb", Value: verb, Allowed: "one of the verbs", ValidNames: names},
	})}
	m.repaired = c.repair(verb, near.Nearest(verb, names))
	return m
}

// flagError is about a flag that is not there, has no value where it needs one, or one that it cannot take.
func (c *caller) flagError(cmd *cobra.Command, err error) error {
	if verb := c.word(cmd); verb != "" {
		return c.unknownVerb(cmd, verb) // the flag may be one of the verb that was meant
	}
	if at := slices.Index(c.args, cmd.Name()); cmd.HasParent() && cmd.HasSubCommands() && at+1 < len(c.args) && !strings.HasPrefix(c.args[at+1], "-") {
		return cmd.Args(cmd, c.args[at+1:at+2]) // likewise
	}
	evidence, near, given := envelope.Evidence{Allowed: "a flag that " + cmd.CommandPath() + " has"}, "", ""
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	message := err.Error()
	switch {
	case errors.As(err, &unknown):
		given = "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			given = "-" + short // a whole name after one dash is read as letters
		}
		near, evidence.ValidNames = nearestFlag(cmd, given)
		evidence.Field = fmt.Sprintf("%.100s", given)
		message = fmt.Sprintf("%s has no flag %.100s%s", cmd.CommandPath(), given, isNear(near))
	case errors.As(err, &bare):
		evidence.Field, evidence.Allowed = "--"+bare.GetFlag().Name, "a value after the flag: "+bare.GetFlag().Usage
		message = fmt.Sprintf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		evidence.Field, evidence.Value, evidence.Allowed = "--"+invalid.GetFlag().Name, invalid.GetValue(), "true or false, or no value"
	}
	m := misuse{err: envelope.Build(envelope.BadArgs, envelope.Facts{Message: message, Help: seeHelp(cmd), Evidence: evidence})}
	m.repaired = c.repair(given, near)
	return m
}

// nearestFlag gives the flag that a wrong one stands for, and the verb's own.
func nearestFlag(cmd *cobra.Command, given string) (string, []string) {
	var all, own []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		all = append(all, "--"+f.Name)
		if cmd.LocalNonPersistentFlags().Lookup(f.Name) != nil {
			own = append(own, "--"+f.Name)
		}
	})
	if best := near.Nearest(given, own); best != "" {
		return best, own
	}
	return near.Nearest(given, all), own
}

func isNear(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}

func seeHelp(cmd *cobra.Command) string {
	return fmt.Sprintf("`%s --help` shows what it takes.", cmd.CommandPath())
}

// helpTopics: help about a verb that there is not is misuse too.
func (c *caller) helpTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if about, _, err := root.Find(args); len(args) > 0 && (err != nil || about == root) {
					return c.unknownVerb(root, args[0])
				}
				return nil
			}
		}
	}
}

func quoted(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, fmt.Sprintf("%.100q", a))
	}
	return strings.Join(out, " ")
}

// word gives the first argument of a command line without a verb that is no flag: it was meant as the verb. It is empty where an
// unknown flag comes first, whose value it might be.
func (c *caller) word(root *cobra.Command) string {
	if root.HasParent() {
		return ""
	}
	for i := 0; i < len(c.args); i++ {
		arg := c.args[i]
		name, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flag := root.Flags().Lookup(name)
		switch {
		case !strings.HasPrefix(arg, "-"):
			return arg
		case flag == nil || arg == "--":
			return ""
		case flag.NoOptDefVal == "" && !hasValue:
			i++
		}
	}
	return ""
}

// repair writes a name in the command line as it was meant, and gives nil where that does not make a whole command line.
func (c *caller) repair(given, meant string) []string {
	if given == "" || meant == "" {
		return nil
	}
	args, size := slices.Clone(c.args), 0
	at := slices.IndexFunc(args, func(arg string) bool { return arg == given || strings.HasPrefix(arg, given+"=") })
	if at < 0 {
		return nil
	}
	args[at] = meant + strings.TrimPrefix(args[at], given)
	for _, arg := range args {
		size += len(arg)
	}
	again := &caller{program: c.program, args: args}
	root := again.command()
	cmd, rest, err := root.Find(args)
	if err != nil || size > maxRepaired || cmd == root || cmd.ParseFlags(rest) != nil || cmd.ValidateArgs(cmd.Flags().Args()) != nil {
		return nil
	}
	return args
}

// maxRepaired is the longest command line, in bytes, that is written out once more.
const maxRepaired = 4096
