package capture

import (
	"context"
	"fmt"
	"math"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// smallShare is how much smaller the small problem is where the grid allows it: a quarter of the workgroups.
const smallShare = 4

// traceSmall takes the trace of a smaller problem of the same kind, or says why there is none. It runs the test with the
// smaller shape; the launch is counted as in the discovery, since the test does the same with another extent.
func (d *driver) traceSmall(ctx context.Context, big rocprof.Choice) error {
	inv, workgroups, why := d.smaller(ctx, big)
	if inv == nil {
		d.data.Tags.Small = &Tag{State: "skipped", Shape: d.plan.Invocation.Shape, Why: why}
		d.warn("SMALL_SKIPPED", why)
		return nil
	}
	invocation, env := d.plan.Invocation, d.plan.Env
	d.plan.Invocation, d.plan.Env = *inv, rocprof.WithEnv(env, inv.Env, nil)
	defer func() { d.plan.Invocation, d.plan.Env = invocation, env }()
	small := big
	small.Group.Workgroups = workgroups
	_, err := d.traceWith(ctx, "small", &d.data.Tags.Small, small)
	return err
}

// smaller gives the invocation of the smaller problem and about how many workgroups it has; nil with the reason where there is
// none.
func (d *driver) smaller(ctx context.Context, big rocprof.Choice) (*worktree.Invocation, int64, string) {
	inv := d.plan.Invocation
	if d.plan.Kernel == nil || !inv.ShapeBound {
		return nil, 0, "no shape was bound to the test, so there is no smaller problem to run: give shape"
	}
	num, den, why := shrink(big.Group.Workgroups, d.gpu)
	if why != "" {
		return nil, 0, why
	}
	shape, err := d.plan.Kernel.ParseShape(inv.Shape)
	if err != nil {
		return nil, 0, fmt.Sprintf("the shape %s cannot be made smaller: %v", inv.Shape, err)
	}
	axis := shape.LeadingAxis()
	less := shape.Scaled(axis, num, den)
	before, _ := shape.Value(axis)
	after, ok := less.Value(axis)
	if !ok || after >= before {
		return nil, 0, fmt.Sprintf("the shape %s has no axis that can be made smaller", inv.Shape)
	}
	tree, err := worktree.Open(ctx, d.plan.Provenance.Worktree)
	if err != nil {
		return nil, 0, fmt.Sprintf("the worktree is not there any more: %v", err)
	}
	got, err := tree.WithAnyInvocation(d.plan.AnyInvocation).Invocation(d.plan.Kernel, worktree.InvocationRequest{Shape: less.String(), Args: d.run.Request.Args})
	if err != nil {
		return nil, 0, fmt.Sprintf("the smaller shape %s cannot be bound: %v", less, err)
	}
	return got, num, ""
}

// shrink gives the share num/den of the leading axis that leaves a grid which is still likely to reach the traced CUs.
func shrink(workgroups int64, gpu soc.SoC) (num, den int64, why string) {
	least := int64(1)
	if gpu.Known() {
		least = soc.MinWorkgroupsLikely(gpu, DefaultTargetCU)
	}
	target := max(int64(math.Ceil(float64(workgroups)/smallShare)), least)
	if workgroups <= 0 || target >= workgroups {
		return 0, 0, fmt.Sprintf("%d workgroups are already as few as a trace is likely to need (%d): a smaller problem would be empty", workgroups, least)
	}
	return target, workgroups, ""
}

// bigDecides turns the failure of the small trace into a warning: what was asked for is the big one.
func (d *driver) bigDecides(err error) {
	e := envelope.As(err)
	d.warn("SMALL_FAILED", fmt.Sprintf("the small trace failed and the big one stands: %s: %s", e.Code, e.Message))
}
