package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
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
func verbCommands(flags *settingFlags) []*cobra.Command {
	var out []*cobra.Command
	for _, t := range tools.All(tools.Deps{}) {
		out = append(out, verbCommand(t, flags))
	}
	return out
}

func verbCommand(t tools.Tool, flags *settingFlags) *cobra.Command {
	positional := tools.Positional(t.Verb)
	use := string(t.Verb)
	if positional != "" {
		use += " " + strings.ToUpper(positional)
	}
	v := &verb{tool: t, flags: flags}
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
	cmd.Flags().StringVarP(&v.format, "format", "f", "json", "json: the envelope, indented; line: the envelope in one line")
	if t.Verb == request.VerbCapture {
		cmd.Flags().BoolVar(&v.noWait, "no-wait", false, "start the run, print its run_id and leave it running")
	}
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
	tool   tools.Tool
	flags  *settingFlags
	names  []string
	format string
	noWait bool
}

func (v *verb) run(cmd *cobra.Command, args []string) error {
	if v.format != "json" && v.format != "line" {
		return invalidSetting("format", "-f", v.format, "json or line", errors.New("no such format"))
	}
	call, err := v.arguments(cmd, args)
	if err != nil {
		return err
	}
	a, closer, err := v.flags.open()
	if err != nil {
		return err
	}
	defer closer.Close()
	if v.noWait {
		a.service.OnServerExit = runs.FinishOnExit
	}
	answer := v.follow(cmd.Context(), a, call)
	a.spawner.Release()
	if err := v.print(cmd, answer.JSON); err != nil {
		return err
	}
	if answer.Failed() {
		return exited(answer.Exit)
	}
	if cmd.Context().Err() != nil {
		return exited(130)
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
		flag := cmd.Flags().Lookup(strings.TrimPrefix(tools.FlagName(name), "--"))
		if !flag.Changed {
			continue
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			call[name] = list.GetSlice()
			continue
		}
		call[name] = flag.Value.String()
	}
	return call, nil
}

// follow calls the tool, and waits for a capture to its end: on a command line nobody gives up after a minute.
func (v *verb) follow(ctx context.Context, a *app, call map[string]any) tools.Answer {
	host := tools.Host{Renderer: tools.CommandLine(), Log: a.log}
	if v.noWait {
		call["wait_s"] = 0
	}
	answer := a.call(ctx, v.tool.Verb, call, host)
	for !v.noWait && v.tool.Verb == request.VerbCapture && ctx.Err() == nil {
		var e struct {
			Data struct {
				RunID string     `json:"run_id"`
				State runs.State `json:"state"`
			} `json:"data"`
		}
		if answer.Failed() || json.Unmarshal(answer.JSON, &e) != nil || e.Data.State.Ended() {
			break
		}
		answer = a.call(ctx, request.VerbStatus, map[string]any{"run_id": e.Data.RunID, "wait_s": 60}, host)
	}
	return answer
}

func (a *app) call(ctx context.Context, verb request.Verb, args map[string]any, host tools.Host) tools.Answer {
	t, _ := a.all.ByVerb(verb)   // every verb has a tool
	raw, _ := json.Marshal(args) // strings, booleans and lists of strings
	return t.Call(ctx, raw, host)
}

func (v *verb) print(cmd *cobra.Command, envelope json.RawMessage) error {
	var out bytes.Buffer
	if v.format == "line" {
		out.Write(envelope)
	} else if err := json.Indent(&out, envelope, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := cmd.OutOrStdout().Write(out.Bytes())
	return err
}
