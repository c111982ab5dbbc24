package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/tools"
)

// exited ends the program with an exit code; what there was to say has been printed.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// property is what the command line needs of an argument's schema.
type property struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

// verbCommands makes a command of every tool: its arguments are flags, its answer is the same envelope on standard output.
func (c *caller) verbCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range tools.All(tools.Deps{}) {
		out = append(out, c.verbCommand(t))
	}
	return out
}

func (c *caller) verbCommand(t tools.Tool) *cobra.Command {
	positional := tools.Positional(t.Verb)
	use := string(t.Verb)
	if positional != "" {
		use += " " + strings.ToUpper(positional)
	}
	v := &verb{caller: c, tool: t}
	cmd := &cobra.Command{Use: use, Short: t.Title, Long: t.Description, Args: cobra.MaximumNArgs(1), RunE: v.run}
	if positional == "" {
		cmd.Args = cobra.NoArgs
	}
	var schema struct {
		Properties map[string]property `json:"properties"`
	}
	if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
		panic(err) // a committed schema
	}
	for name, p := range schema.Properties {
		if name != positional && !isSetting(name) {
			addFlag(cmd.Flags(), name, p)
			v.names = append(v.names, name)
		}
	}
	slices.Sort(v.names)
	addFormat(cmd, &v.format, formatJSON)
	cmd.Flags().BoolVar(&v.quiet, "quiet", false, "tell nothing of how a long call goes")
	if t.Verb == request.VerbCapture {
		cmd.Flags().BoolVar(&v.noWait, "no-wait", false, "start the run, print its run_id and leave it running")
	}
	if c.program.DropIn {
		addDropIn(cmd, t.Verb)
	}
	v.complete(cmd, schema.Properties)
	return cmd
}

// isSetting: what a setting says of the same name needs no argument besides.
func isSetting(name string) bool {
	return slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return "--"+s.Flag == tools.FlagName(name) })
}

func addFlag(set *pflag.FlagSet, name string, p property) {
	flag := strings.TrimPrefix(tools.FlagName(name), "--")
	help := p.Description
	if len(p.Enum) > 0 {
		help += fmt.Sprintf(" %v", p.Enum)
	}
	switch p.Type {
	case "boolean":
		set.Bool(flag, false, help)
	case "array":
		set.StringArray(flag, nil, help)
	default: // numbers too: what is wrong with one is an envelope like any other
		set.String(flag, "", help)
	}
}

// verb is one call from the command line.
type verb struct {
	caller *caller
	tool   tools.Tool
	names  []string
	format string
	quiet  bool
	noWait bool
}

func (v *verb) run(cmd *cobra.Command, args []string) error {
	if err := v.caller.checkFormat(v.format); err != nil {
		return err
	}
	call, err := v.arguments(cmd, args)
	if err != nil {
		return err
	}
	a, closer, err := v.caller.flags.open()
	if err != nil {
		return err
	}
	defer closer.Close()
	if a.config.ReadOnly && !v.tool.ReadOnly {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("%s starts or stops processes, and --read-only (FLYPROF_READ_ONLY) is set", v.tool.Verb),
			Evidence: envelope.Evidence{Field: "--read-only", Value: "true", Allowed: "a verb that only reads", Setting: "--read-only (FLYPROF_READ_ONLY)"},
		})
	}
	answer := v.follow(cmd.Context(), a, call)
	a.spawner.Release()
	if err := v.caller.out.print(v.format, v.tool.Verb, answer.JSON); err != nil {
		return err
	}
	if answer.Failed() {
		return exited(answer.Exit)
	}
	return nil
}

// arguments makes the call of the flags that were given.
func (v *verb) arguments(cmd *cobra.Command, args []string) (map[string]any, error) {
	call := map[string]any{}
	if len(args) > 0 {
		call[tools.Positional(v.tool.Verb)] = args[0]
	}
	for _, name := range v.names {
		if flag := cmd.Flags().Lookup(strings.TrimPrefix(tools.FlagName(name), "--")); flag.Changed {
			call[name] = valueOf(flag)
		}
	}
	return call, v.dropIn(cmd, call)
}

// valueOf gives what a flag was given: text, which the schema makes of the right type, or a list of texts.
func valueOf(flag *pflag.Flag) any {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return flag.Value.String()
}

func (a *app) call(ctx context.Context, verb request.Verb, args map[string]any, host tools.Host) tools.Answer {
	t, _ := a.all.ByVerb(verb)   // every verb has a tool
	raw, _ := json.Marshal(args) // strings, numbers, booleans and lists of strings
	return t.Call(ctx, raw, host)
}
