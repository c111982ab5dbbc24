package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// program is how the command line is called in argv.
const program = "flyprof-mcp"

// maxArgv is the longest value, in bytes, that a command line is written out for: more does not belong on one.
const maxArgv = 4096

// Renderer renders next actions for the clients of these tools: a call has the tool's name, its arguments and the same
// call on the command line. A call of a tool that is left out becomes a question to the user that names the tool, says
// why it is not served and keeps the command line; a call of a verb that no tool has is left out.
func (s Served) Renderer() envelope.Renderer { return mcpRenderer{s} }

type mcpRenderer struct{ served Served }

// Render implements envelope.Renderer.
func (r mcpRenderer) Render(a envelope.Action) (envelope.WireAction, bool) {
	w := envelope.WireAction{Action: a.Kind, URI: a.URI, Reason: a.Reason, Confidence: a.Confidence}
	if a.Kind != envelope.CallTool {
		return w, true
	}
	if a.Args == nil {
		return w, false
	}
	raw, err := jsontree.Marshal(a.Args)
	if err != nil {
		return w, false
	}
	w.Argv = Argv(a.Args)
	if t, ok := r.served.Tools.ByVerb(a.Args.Verb()); ok {
		w.Tool, w.Arguments = t.Name, envelope.Object(raw)
		return w, true
	}
	out, ok := r.served.LeftOut[a.Args.Verb()]
	if !ok {
		return w, false
	}
	w.Action = envelope.AskUser
	w.Reason = fmt.Sprintf("%s is not served here: %s. Ask the user to run the command line in argv, or to serve the tool: %s", out.Tool, out.Why, a.Reason)
	return w, true
}

// CommandLine renders next actions for people and scripts: argv in the place of tools and their arguments. name is what the
// program was called by. settings are the flags of settings that this command line had, each as its words: the next one needs
// them too, where the call does not say the same itself.
func CommandLine(name string, settings [][]string) envelope.Renderer {
	return commandLine{name, settings}
}

type commandLine struct {
	name     string
	settings [][]string
}

// Render implements envelope.Renderer.
func (c commandLine) Render(a envelope.Action) (envelope.WireAction, bool) {
	w := envelope.WireAction{Action: a.Kind, URI: a.URI, Reason: a.Reason, Confidence: a.Confidence}
	switch a.Kind {
	case envelope.CallTool:
		w.Argv = c.argv(a.Args)
	case envelope.ReadResource:
		w.Argv = c.argv(request.Read{URI: a.URI})
	default:
		return w, true
	}
	return w, w.Argv != nil
}

func (c commandLine) argv(args request.Args) []string {
	argv := Argv(args)
	if argv == nil {
		return nil
	}
	argv[0] = c.name
	end := slices.Index(argv, "--") // what follows is no flag
	if end < 0 {
		end = len(argv)
	}
	var more []string
	for _, setting := range c.settings {
		flag, _, _ := strings.Cut(setting[0], "=")
		said := func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") }
		if !slices.ContainsFunc(argv[:end], said) {
			more = append(more, setting...)
		}
	}
	return slices.Insert(argv, end, more...)
}

// Positional gives the argument (by its JSON name) that a verb's command line takes without a flag, "" where there is none.
func Positional(verb request.Verb) string {
	switch verb {
	case request.VerbCapture, request.VerbTile:
		return "kernel"
	case request.VerbStatus, request.VerbCancel:
		return "run_id"
	case request.VerbRead:
		return "uri"
	}
	return ""
}
