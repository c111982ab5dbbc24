package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

const listText = `List the kernels of the FlyDSL worktree: what each test launches, how it is run, and how a shape reaches it. Reads files only; starts no Python.

Take data.kernels[].kernel as the kernel argument of flyprof_tile and flyprof_capture. recipe_source "registry" is a curated recipe, "synthesizable" one that is made from the test: both can be captured. shape.form says which shape the test takes; runnable false says in why what stands against a capture. filter narrows by name, file or symbol.`

// ListData is the data of flyprof_list.
type ListData struct {
	Worktree string       `json:"worktree"`
	Kernels  []ListKernel `json:"kernels"`
	// Total counts the kernels that fit the filter; Offset is the first that is shown.
	Total      int `json:"total"`
	Offset     int `json:"offset"`
	NextOffset int `json:"next_offset,omitempty" jsonschema_description:"Offset of the next kernels; absent at the end."`
	// FilesRead counts the Python files behind the answer.
	FilesRead int             `json:"files_read"`
	Helpers   []worktree.Note `json:"helpers,omitempty" jsonschema_description:"Files beside the tests that run nothing."`
	Skipped   []worktree.Note `json:"skipped,omitempty" jsonschema_description:"Files that were not read with the reason."`
}

// ListKernel is one kernel of the list.
type ListKernel struct {
	Kernel       string `json:"kernel" jsonschema_description:"Name for flyprof_tile and flyprof_capture."`
	RecipeSource string `json:"recipe_source" jsonschema:"enum=registry,enum=synthesizable"`
	Category     string `json:"category"`
	TestFile     string `json:"test_file"`
	Runner       string `json:"runner" jsonschema:"enum=script,enum=pytest"`
	// Runnable: one GPU is enough, and nothing is known to be in the way.
	Runnable bool   `json:"runnable"`
	Why      string `json:"why,omitempty" jsonschema_description:"What stands against a capture."`
	Bench    bool   `json:"bench,omitempty"`
	// Symbols are the names under which its kernels are launched; * stands for what only the run knows.
	Symbols  []string `json:"symbols,omitempty"`
	Shape    ListBind `json:"shape"`
	Requires []string `json:"requires,omitempty" jsonschema_description:"Python packages without which the test cannot run."`
	ArchGate []string `json:"arch_gates,omitempty" jsonschema_description:"Reasons for which the test skips itself on some GPUs."`
}

// ListBind says how a shape reaches a test.
type ListBind struct {
	Bound string   `json:"bound" jsonschema:"enum=env,enum=flags,enum=none"`
	Form  string   `json:"form" jsonschema_description:"What the test takes."`
	Axes  []string `json:"axes,omitempty"`
}

const (
	listDefault  = 50
	listMost     = 200
	listSymbols  = 6
	listNotes    = 20
	listMaxChars = MaxSuccessChars - 1_500
)

func listTool(d Deps) Tool {
	return New(Def{
		Title: "List kernels", Description: listText, Toolset: ToolsetCapture, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.List) (envelope.Reply[ListData], error) {
		tree, listing, err := d.Worktrees.List(ctx, in.Worktree)
		if err != nil {
			return envelope.Reply[ListData]{}, err
		}
		return listReply(in, tree.Root(), listing), nil
	})
}

func listReply(in request.List, root string, l *worktree.Listing) envelope.Reply[ListData] {
	all := l.Filter(in.Filter)
	limit := in.Limit
	if limit == 0 {
		limit = listDefault
	}
	from := min(in.Offset, len(all))
	data := ListData{
		Worktree: root, Kernels: []ListKernel{}, Total: len(all), Offset: from, FilesRead: l.FilesRead,
		Helpers: l.Helpers[:min(len(l.Helpers), listNotes)], Skipped: l.Skipped[:min(len(l.Skipped), listNotes)],
	}
	size := 0
	for _, k := range all[from:min(from+min(limit, listMost), len(all))] {
		entry := listKernel(k)
		if size += entry.size(); size > listMaxChars && len(data.Kernels) > 0 {
			break
		}
		data.Kernels = append(data.Kernels, entry)
	}
	reply := envelope.Reply[ListData]{Data: &data, Warnings: l.Warnings}
	next := in
	if next.Offset = from + len(data.Kernels); next.Offset < len(all) {
		data.NextOffset = next.Offset
		reply.Truncated = &envelope.Truncated{Field: "data.kernels", Shown: len(data.Kernels), Total: len(all), NextOffset: next.Offset, ReadOn: "call flyprof_list with this offset"}
		reply.Actions = append(reply.Actions, envelope.Action{Kind: envelope.CallTool, Args: next, Reason: fmt.Sprintf("lists the next of %d kernels", len(all))})
	}
	if len(all) == 0 && in.Filter != "" {
		reply.Actions = append(reply.Actions, envelope.Action{Kind: envelope.CallTool, Args: request.List{Worktree: in.Worktree}, Reason: "nothing fits the filter; this lists all kernels"})
	}
	return reply
}

func listKernel(k worktree.Kernel) ListKernel {
	out := ListKernel{
		Kernel: k.Name, RecipeSource: k.RecipeSource, Category: k.Category, TestFile: k.TestFile, Runner: k.Runner, Bench: k.Bench,
		Shape: ListBind{Bound: k.Shape.Kind, Form: k.Shape.Form, Axes: k.Shape.Axes}, Requires: k.Requires, ArchGate: k.ArchGates, Runnable: true,
	}
	switch {
	case k.Stale != "":
		out.Runnable, out.Why = false, k.Stale
	case k.MultiGPU != "":
		out.Runnable, out.Why = false, k.MultiGPU
	case len(k.NeedsArgs) > 0:
		out.Why = fmt.Sprintf("it demands %v: give them with args", k.NeedsArgs)
	}
	for _, s := range k.Symbols {
		if name := s.Prefix + "*"; s.Direct && s.Pattern != "" && len(out.Symbols) < listSymbols && !slices.Contains(out.Symbols, name) {
			out.Symbols = append(out.Symbols, name)
		}
	}
	return out
}

// size is about how many characters the entry takes in the answer.
func (k ListKernel) size() int {
	n := 220 + len(k.Kernel) + len(k.RecipeSource) + len(k.Category) + len(k.TestFile) + len(k.Why) + len(k.Shape.Form)
	for _, list := range [][]string{k.Symbols, k.Requires, k.ArchGate, k.Shape.Axes} {
		for _, s := range list {
			n += len(s) + 4
		}
	}
	return n
}
