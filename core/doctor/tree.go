package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// worktree looks at the checkout, its compiled FlyDSL and the Python that imports it.
func (h *host) worktree(ctx context.Context) []Check {
	tree, err := h.Worktree(ctx)
	if err != nil {
		e := envelope.As(err)
		return []Check{fail("worktree", e.Code, e.Message, e.Help, e.Evidence.LookedAt...), h.python(), skipped("build", "there is no worktree to build")}
	}
	state := tree.State(ctx, nil)
	h.set(func(d *Data) { d.Worktree, d.Commit = tree.Root(), state.Commit })
	found := tree.Root()
	if state.Commit != "" {
		found += " at " + state.Commit[:min(len(state.Commit), 12)]
	}
	if state.Dirty != nil && *state.Dirty {
		found += ", changed"
	}
	out := []Check{pass("worktree", found, tree.Root())}
	python := h.python()
	return append(out, python, h.build(ctx, tree, python.State == StateOK))
}

func (h *host) python() Check {
	if len(h.Python) == 0 {
		return fail("python", envelope.MissingPrereq, "no Python interpreter is in the places that were looked at", "set --python (FLYPROF_PYTHON)", h.PythonPlaces...)
	}
	return pass("python", strings.Join(h.Python, " "), h.Python[0])
}

// build chooses the compiled FlyDSL by its files, and lets the target interpreter import it.
func (h *host) build(ctx context.Context, tree *worktree.Tree, havePython bool) Check {
	const id = "build"
	const do = "build FlyDSL (scripts/build.sh) or install its wheel for this Python"
	build, warnings, err := tree.Build(h.Getenv)
	if err != nil {
		e := envelope.As(err)
		return fail(id, e.Code, e.Message, e.Help, e.Evidence.LookedAt...)
	}
	h.warn(warnings...)
	name := string(build.Kind)
	if build.Path != "" {
		name += " " + build.Path
	}
	if h.Run == nil || !havePython {
		return skipped(id, name+" would be used; importing it was not tried")
	}
	argv := build.ProbeArgv(h.Python)
	stdout, stderr, exit, err := h.Run(ctx, importLimit, argv, rocprof.WithEnv(h.Env, build.Env(), nil), tree.Root())
	looked := []string{name, strings.Join(h.Python, " ") + " -c 'from flydsl._mlir import ir'"}
	if err != nil {
		return fail(id, envelope.BuildTreeBroken, fmt.Sprintf("importing FlyDSL: %v", err), do, looked...)
	}
	r := tree.JudgeProbe(build, stdout, stderr, exit)
	h.warn(r.Warnings...)
	if r.Code != "" {
		row, _ := envelope.Lookup(r.Code)
		return fail(id, r.Code, r.Message, row.Help, looked...)
	}
	h.set(func(d *Data) { d.FlyDSL = r.Version })
	return pass(id, fmt.Sprintf("FlyDSL %s from %s, torch is there", r.Version, r.File), looked...)
}
