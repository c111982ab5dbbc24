package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/tools"
)

// dropInFlag is a flag of the public flyprof (0.x, June 2026) that has another name here, or none.
type dropInFlag struct {
	name string
	// verbs have the flag; nil for all.
	verbs []request.Verb
	// plain flags take no value.
	plain bool
	// means is the argument that it is here.
	means string
	// run: a value of the form of a run id is run_id, since that is what an envelope's bundle is here.
	run bool
	// always says that what it asks for is so without it.
	always string
	// instead says what to use where it cannot be honoured.
	instead string
}

const ownDirectory = "each run gets a directory of its own below --runs-dir, named in data.run_id: set --runs-dir, and go on with the run_id"

// captures are the verbs that make runs or need none, analyses those that read a trace, noArch those without an argument arch.
var (
	captures = []request.Verb{request.VerbDoctor, request.VerbList, request.VerbTile, request.VerbCapture, request.VerbStatus, request.VerbCancel, request.VerbTriage, request.VerbRead}
	analyses = []request.Verb{request.VerbBubbles, request.VerbMap, request.VerbCounters, request.VerbReport}
	noArch   = slices.DeleteFunc(slices.Concat(captures, analyses, []request.Verb{request.VerbDiff}), func(v request.Verb) bool { return v == request.VerbDoctor || v == request.VerbTile })
)

var dropInFlags = []dropInFlag{
	{name: "timeout", verbs: []request.Verb{request.VerbCapture}, means: "timeout_s"},
	{name: "refresh", verbs: []request.Verb{request.VerbList}, plain: true, always: "every list reads the worktree anew"},
	{name: "detail", verbs: []request.Verb{request.VerbBubbles}, means: "code_line"},
	{name: "bundle", verbs: analyses, means: "path", run: true},
	{name: "bundle", verbs: captures, instead: ownDirectory},
	{name: "bundle", verbs: []request.Verb{request.VerbDiff}, instead: "diff takes the two traces as --before and --after"},
	{name: "out", instead: ownDirectory},
	{name: "examples-dir", instead: "nothing is copied out: the files of a run stay in its directory below --runs-dir, and `read flyprof://runs/RUN_ID/files` lists them"},
	{name: "arch", verbs: noArch, instead: "the architecture is that of the GPU (--gpu) or of the trace; doctor and tile take --arch"},
}

// dropInVerb is a verb of the public flyprof that is none here.
type dropInVerb struct {
	instead string
	// call makes the call to send in its place, for the kernel that was named; nil where there is none.
	call func(kernel string) request.Args
}

func captureAll(kernel string) request.Args {
	return request.Capture{Kernel: kernel, Tag: "both", WithPMC: true}
}

var dropInVerbs = map[string]dropInVerb{
	"run":      {instead: "doctor, tile and capture KERNEL --tag both --with-pmc, one after the other", call: captureAll},
	"bundle":   {instead: "the run's own directory below --runs-dir, whose files `read flyprof://runs/RUN_ID/files` lists"},
	"wiki":     {instead: "the kernel's own documentation: this program has no catalogue of techniques"},
	"optimize": {instead: "the envelope of the run, and a person or agent that changes the kernel"},
}

// refuse says what to use in the place of a verb.
func (d dropInVerb) refuse(c *caller, verb string) *envelope.Error {
	facts := envelope.Facts{
		Message:  fmt.Sprintf("this flyprof has no %s; use %s", verb, d.instead),
		Help:     "Use " + d.instead + ".",
		Evidence: envelope.Evidence{Field: "verb", Value: verb, Allowed: d.instead},
	}
	if at := slices.Index(c.args, verb); d.call != nil && at+1 < len(c.args) && len(c.args[at+1]) > 0 && c.args[at+1][0] != '-' {
		facts.Suggestions = []envelope.Action{{Kind: envelope.CallTool, Args: d.call(c.args[at+1]), Reason: "what there is of " + verb, Confidence: envelope.Medium}}
	}
	return envelope.Build(envelope.BadArgs, facts)
}

// dropInFor gives the rows of a verb.
func dropInFor(verb request.Verb) []dropInFlag {
	var out []dropInFlag
	for _, row := range dropInFlags {
		if row.verbs == nil || slices.Contains(row.verbs, verb) {
			out = append(out, row)
		}
	}
	return out
}

// addDropIn adds the flags. Those that cannot be honoured are taken too, so that their values are not read as something else.
func addDropIn(cmd *cobra.Command, verb request.Verb) {
	set := cmd.Flags()
	for _, row := range dropInFor(verb) {
		help := row.always
		if row.means != "" {
			help = "the same as " + tools.FlagName(row.means)
		}
		if row.plain {
			set.Bool(row.name, false, help)
		} else {
			set.String(row.name, "", help)
		}
		if row.instead != "" {
			set.Lookup(row.name).Hidden = true
		}
	}
}

// dropIn puts what such flags ask for into the call. BAD_ARGS for one that cannot be honoured, and for one thing that is said twice
// and differently.
func (v *verb) dropIn(cmd *cobra.Command, call map[string]any) error {
	if !v.caller.program.DropIn {
		return nil
	}
	for _, row := range dropInFor(v.tool.Verb) {
		flag := cmd.Flags().Lookup(row.name)
		if !flag.Changed {
			continue
		}
		value, means := flag.Value.String(), row.means
		if row.run && runs.ValidID(value) {
			means = "run_id"
		}
		evidence := envelope.Evidence{Field: "--" + row.name, Value: value, Allowed: row.instead}
		if row.instead != "" {
			return envelope.Build(envelope.BadArgs, envelope.Facts{
				Message: fmt.Sprintf("--%s cannot be honoured: %s", row.name, row.instead), Help: "Leave it out: " + row.instead + ".", Evidence: evidence,
			})
		}
		if means == "" {
			continue
		}
		if said, ok := call[means]; ok && said != value {
			evidence.Allowed = "one of --" + row.name + " and " + tools.FlagName(means)
			return envelope.Build(envelope.BadArgs, envelope.Facts{Message: fmt.Sprintf("--%s and %s say different things", row.name, tools.FlagName(means)), Evidence: evidence})
		}
		call[means] = value
	}
	return nil
}
