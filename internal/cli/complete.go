package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/jail"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/sim"
	"github.com/flyprof/flyprof-mcp/skills"
	"github.com/flyprof/flyprof-mcp/tools"
)

// Completion reads files only, for a moment at most, and is silent about whatever goes wrong: it runs at each press of a key.
const (
	completeLimit = time.Second
	// completeRuns is how many runs are offered.
	completeRuns = 50
)

type completer = cobra.CompletionFunc

// complete sets what the shell offers for a verb's argument and for its flags.
func (v *verb) complete(cmd *cobra.Command, args map[string]property) {
	cmd.ValidArgsFunction = noFiles
	if positional := tools.Positional(v.tool.Verb); positional != "" {
		cmd.ValidArgsFunction = firstOnly(v.values(positional))
	}
	for _, name := range v.names {
		offer := v.values(name)
		if enum := args[name].Enum; len(enum) > 0 {
			var words []string
			for _, e := range enum {
				words = append(words, fmt.Sprint(e))
			}
			offer = fixed(words...)
		}
		offerFor(cmd, strings.TrimPrefix(tools.FlagName(name), "--"), offer)
	}
	if v.caller.program.DropIn {
		for _, row := range dropInFor(v.tool.Verb) {
			offer := noFiles
			if row.means != "" {
				offer = v.values(row.means)
			}
			offerFor(cmd, row.name, offer)
		}
	}
}

// firstOnly offers for the one argument that a command takes, and nothing after it.
func firstOnly(offer completer) completer {
	return func(cmd *cobra.Command, given []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, given, typed)
	}
}

func offerFor(cmd *cobra.Command, flag string, offer completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // a flag that is not there, or that has a completion: a mistake in the program
	}
}

// values gives the completion of an argument by its JSON name.
func (v *verb) values(name string) completer {
	c := v.caller
	switch name {
	case "kernel":
		return c.kernels
	case "run_id", "retry_of", "before", "after":
		return c.runIDs
	case "uri":
		return c.uris
	case "dtype", "out_dtype":
		return fixed("bf16", "f16", "f32", "fp8", "int8", "fp6", "fp4", "f64")
	case "arch":
		return fixed("gfx942", "gfx950")
	case "code":
		return codes
	case "path", "cwd":
		return directories
	}
	return noFiles
}

// completeSettings sets what the shell offers for the settings.
func completeSettings(root *cobra.Command) {
	offers := map[string]completer{
		"worktree": directories, "att-library-path": directories, "runs-dir": directories, "allow-path": directories, "lock-dir": directories, "replay": directories,
		"python": files(), "rocprofv3": files(), "recipes": files("json"), "config": files("toml"), "log-file": files(),
		"http-token-file": files(), "http-cert": files(), "http-key": files(), "gpu-in-use": fixed("warn", "refuse"),
		"toolsets": fixed("capture", "analyze", "all"), "tools": toolNames, "exclude-tools": toolNames, "log-level": fixed("debug", "info", "warn", "error"), "simulate": fixed("gfx950", "gfx942"),
		"fault": faults,
	}
	for _, s := range config.Settings() {
		switch offer := offers[s.Flag]; {
		case offer != nil:
			offerFor(root, s.Flag, offer)
		case !s.Bool:
			offerFor(root, s.Flag, noFiles)
		}
	}
}

func noFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// files offers files with one of the extensions; any where none is named.
func files(extensions ...string) completer {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(extensions) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

func fixed(words ...string) completer {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// toolNames offers the next name of a list.
func toolNames(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []cobra.Completion
	for _, t := range tools.All(tools.Deps{}) {
		out = append(out, cobra.CompletionWithDesc(before+t.Name, t.Title))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func codes(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, row := range envelope.Catalogue() {
		out = append(out, cobra.CompletionWithDesc(string(row.Code), row.Meaning))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func faults(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, f := range sim.FaultNames() {
		out = append(out, cobra.CompletionWithDesc(f.Name, f.Does))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// kernels offers what the worktree in force has. The demo's worktree is not written for it: its kernels are known.
func (c *caller) kernels(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	settings, err := c.flags.resolve()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers := map[string]string{}
	if settings.Simulate != "" && settings.Worktree == "" {
		for _, k := range sim.DemoKernels() {
			offers[k.Name] = k.Test
		}
	} else {
		ctx, stop := context.WithTimeout(cmd.Context(), completeLimit)
		defer stop()
		p := capture.Preparer{Worktree: settings.Worktree, Jail: jail.New(settings.Worktree), Recipes: settings.Recipes}
		_, listing, err := p.List(ctx, "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, k := range listing.Kernels {
			offers[k.Name] = k.TestFile
		}
	}
	var out []cobra.Completion
	for _, name := range slices.Sorted(maps.Keys(offers)) {
		if strings.HasPrefix(name, typed) && plain(name) == name {
			out = append(out, cobra.CompletionWithDesc(name, plain(offers[name])))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// runIDs offers the runs in the runs directory, the newest first.
func (c *caller) runIDs(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, id := range c.newestRuns() {
		out = append(out, cobra.Completion(id))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (c *caller) newestRuns() []string {
	settings, err := c.flags.resolve()
	if err != nil {
		return nil
	}
	store, err := runs.Open(settings.RunsDir, launch.Local{})
	if err != nil {
		return nil
	}
	ids, err := store.IDs()
	if err != nil {
		return nil
	}
	return ids[:min(len(ids), completeRuns)]
}

// uris offers what flyprof_read takes: the reference texts, and of each run its envelope and its manifest.
func (c *caller) uris(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	out := []cobra.Completion{cobra.CompletionWithDesc("flyprof://runs", "index of runs")}
	for _, d := range skills.Documents() {
		out = append(out, cobra.CompletionWithDesc(d.URI, d.Name))
	}
	for _, id := range c.newestRuns() {
		out = append(out, cobra.Completion("flyprof://runs/"+id), cobra.Completion("flyprof://runs/"+id+"/files"))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
