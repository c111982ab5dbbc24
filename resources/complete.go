package resources

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// maxCompletions is the protocol's bound on one answer.
const maxCompletions = 100

// Completer offers values for arguments of prompts and of resource templates. It reads files only.
type Completer struct {
	Source *Source
	// Kernels lists the worktree's kernels; nil offers none.
	Kernels func(ctx context.Context) []string
}

var (
	_ server.PromptCompletionProvider   = Completer{}
	_ server.ResourceCompletionProvider = Completer{}
)

// CompletePromptArgument implements server.PromptCompletionProvider.
func (c Completer) CompletePromptArgument(ctx context.Context, _ string, a mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	switch a.Name {
	case "kernel":
		if c.Kernels == nil {
			return offer(nil, a.Value), nil
		}
		return offer(c.Kernels(ctx), a.Value), nil
	case "run":
		return offer(c.runs(), a.Value), nil
	case "tag":
		return offer([]string{"big", "small", "both"}, a.Value), nil
	}
	return offer(nil, a.Value), nil
}

// CompleteResourceArgument implements server.ResourceCompletionProvider. Names of files and logs are those of the run that is given
// besides.
func (c Completer) CompleteResourceArgument(_ context.Context, _ string, a mcp.CompleteArgument, given mcp.CompleteContext) (*mcp.Completion, error) {
	run := given.Arguments["run"]
	switch a.Name {
	case "run":
		return offer(c.runs(), a.Value), nil
	case "path":
		return offer(c.files(run, ""), a.Value), nil
	case "name":
		return offer(c.files(run, "logs"), a.Value), nil
	}
	return offer(nil, a.Value), nil
}

// runs are the run ids, the newest first.
func (c Completer) runs() []string {
	ids, err := c.Source.Store.IDs()
	if err != nil {
		return nil
	}
	return ids
}

// files are the files of a run: those of one folder by name, or all by path.
func (c Completer) files(run, folder string) []string {
	files, err := c.Source.Store.Files(run)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		switch {
		case folder == "":
			out = append(out, f.Path)
		case path.Dir(f.Path) == folder:
			out = append(out, path.Base(f.Path))
		}
	}
	return out
}

// offer keeps what begins with the text so far, then what contains it, in the given order.
func offer(all []string, value string) *mcp.Completion {
	value = strings.ToLower(value)
	begins, contains := []string{}, []string{}
	for _, v := range all {
		switch low := strings.ToLower(v); {
		case strings.HasPrefix(low, value):
			begins = append(begins, v)
		case strings.Contains(low, value):
			contains = append(contains, v)
		}
	}
	fit := slices.Concat(begins, contains)
	return &mcp.Completion{Values: fit[:min(len(fit), maxCompletions)], Total: len(fit), HasMore: len(fit) > maxCompletions}
}
