package prompts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/resources"
)

// CompletePromptArgument implements server.PromptCompletionProvider. It reads the worktree and the runs, and probes nothing.
func (p *Prompts) CompletePromptArgument(ctx context.Context, prompt string, argument mcp.CompleteArgument, given mcp.CompleteContext) (*mcp.Completion, error) {
	i := slices.IndexFunc(All(), func(d Prompt) bool { return d.Name == prompt })
	if i < 0 {
		if srv := server.ServerFromContext(ctx); srv != nil && srv.ListPrompts()[prompt] != nil {
			return resources.Complete(nil, ""), nil // of somebody who serves prompts beside these
		}
		var names []string
		for _, d := range All() {
			names = append(names, d.Name)
		}
		return nil, refuse("name", prompt, names, "there is no prompt %s; there are: %s", quote(prompt), strings.Join(names, ", "))
	}
	def := All()[i]
	if !slices.ContainsFunc(def.Arguments, func(a Argument) bool { return a.Name == argument.Name }) {
		var names []string
		for _, a := range def.Arguments {
			names = append(names, a.Name)
		}
		return nil, refuse(argument.Name, argument.Value, names, "%s takes no argument %s; it takes %s", prompt, quote(argument.Name), strings.Join(names, ", "))
	}
	return resources.Complete(p.choices(ctx, argument.Name, given.Arguments), argument.Value), nil
}

// choices gives what an argument may be where others are as given, the likelier first.
func (p *Prompts) choices(ctx context.Context, argument string, given map[string]string) []string {
	switch argument {
	case "kernel":
		return p.kernelNames(ctx)
	case "shape":
		return p.shapes(given["kernel"])
	case "gpu":
		return []string{strconv.Itoa(p.Worktrees.GPU)}
	case "run":
		return p.Source.Runs()
	case "tag":
		return p.tags(given["run"])
	}
	return nil
}

// recentRuns bounds how many runs are read for what they were asked.
const recentRuns = 50

// earlier gives the newest runs of a kernel, at most most.
func (p *Prompts) earlier(kernel string, most int) []runs.Run {
	ids := p.Source.Runs()
	var out []runs.Run
	for _, id := range ids[:min(len(ids), recentRuns)] {
		if r, err := p.Source.Store.Load(id); err == nil && r.Request.Kernel == kernel && len(out) < most {
			out = append(out, r)
		}
	}
	return out
}

// shapes are those that a kernel was captured with.
func (p *Prompts) shapes(kernel string) []string {
	var out []string
	for _, r := range p.earlier(kernel, recentRuns) {
		if s := r.Request.Shape; s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// tags are those that a run was asked for, both where it is not known.
func (p *Prompts) tags(id string) []string {
	if r, err := p.Source.Store.Load(id); err == nil {
		switch r.Request.Tag {
		case "small":
			return []string{"small"}
		case "big", "":
			return []string{"big"}
		}
	}
	return []string{"big", "small"}
}

// run finds the run that an argument names, by its id or by its URI.
func (p *Prompts) run(value string) (runs.Run, error) {
	id := strings.TrimPrefix(value, "flyprof://runs/")
	r, err := p.Source.Store.Load(id)
	if err == nil {
		return r, nil
	}
	there := p.Source.Runs()
	e := envelope.As(err)
	if e.Code != envelope.RunNotFound {
		return r, err // it is there, and damaged
	}
	return r, refuse("run", value, there, "run %s: %s: %s. %s", quote(value), e.Code, visible(e.Message), thereIs(there))
}

// about says what a run is, for lists.
func about(r runs.Run) string {
	text := fmt.Sprintf("run %s: %s", quote(r.ID), r.State)
	if r.Code != "" {
		text += fmt.Sprintf(" (%s)", r.Code)
	}
	if r.Request.Shape != "" {
		text += ", shape " + quote(r.Request.Shape)
	}
	return text
}
