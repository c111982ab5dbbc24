package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/flyprof/flyprof-mcp/core/tile"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

const tileText = `Size a kernel before capturing it: a tile with its LDS, registers and occupancy, the roofline regime, how the grid fills the GPU, and how likely a trace of it is not empty. Arithmetic only: starts nothing, needs no GPU.

data.recommended.regime is memory-bound or compute-bound by the whole problem; data.grid.tail_verdict says how the last wave of workgroups fills; data.grid.att.verdict likely, unlikely or none, with min_leading_dim from which a trace is likely to hold waves. Give that extent to flyprof_capture when the shape is too small.`

func tileTool(d Deps) Tool {
	return New(Def{
		Title: "Size a kernel", Description: tileText, Toolset: ToolsetCapture, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, in request.Tile) (envelope.Reply[tile.Data], error) {
		input, warnings, err := tileInput(ctx, d, in)
		if err != nil {
			return envelope.Reply[tile.Data]{}, err
		}
		data, more, err := tile.Advise(input)
		if err != nil {
			return envelope.Reply[tile.Data]{}, err
		}
		return envelope.Reply[tile.Data]{Data: &data, Warnings: append(warnings, more...), Actions: tileActions(in, data)}, nil
	})
}

// tileInput reads the question: the kernel's category from the worktree where there is one, else from its name.
func tileInput(ctx context.Context, d Deps, in request.Tile) (tile.Input, []envelope.Warning, error) {
	out := tile.Input{Kernel: in.Kernel, OutDType: in.OutDType, BM: given(in.BM), BN: given(in.BN), BK: given(in.BK), Buffers: given(in.Buffers)}
	var warnings []envelope.Warning
	out.Category = worktree.CategoryOf(in.Kernel)
	if _, listing, err := d.Worktrees.List(ctx, ""); err == nil {
		if k, err := listing.Find(in.Kernel); err == nil {
			out.Category = k.Category
		} else {
			warnings = append(warnings, envelope.Warning{Code: "KERNEL_NOT_IN_WORKTREE", Message: fmt.Sprintf("the worktree has no kernel %q; its category %s was told from its name", in.Kernel, out.Category)})
		}
	}
	switch out.Category {
	case worktree.CategoryOther:
		return out, nil, noModel(in, fmt.Sprintf("what %q computes cannot be told from its name, and the worktree has no such kernel", in.Kernel))
	case worktree.CategoryConv, worktree.CategoryComm:
		return out, nil, noModel(in, fmt.Sprintf("there is no tile model for kernels of the category %s", out.Category))
	}
	shape, err := worktree.ParseShape(out.Category, in.Shape)
	if err != nil {
		return out, nil, err
	}
	if out.Problem, err = problemOf(shape, in); err != nil {
		return out, nil, err
	}
	arch := in.Arch
	if arch == "" {
		arch = d.Arch
	}
	if arch == "" {
		arch = defaultArch
		warnings = append(warnings, envelope.Warning{Code: "ARCH_ASSUMED", Message: "no GPU is known here; " + defaultArch + " was assumed. Give arch for another."})
	}
	out.Arch = arch
	out.SoC, _ = soc.Lookup(arch)
	return out, warnings, nil
}

// defaultArch stands in where no GPU is known.
const defaultArch = "gfx950"

func noModel(in request.Tile, why string) error {
	return envelope.Build(envelope.NoRecommendation, envelope.Facts{
		Message:  why,
		Evidence: envelope.Evidence{Field: "kernel", Value: in.Kernel, Allowed: "a kernel as flyprof_list names it, of the categories gemm, reduction, elementwise, attention, moe; or a name that says the operator"},
	})
}

// problemOf joins the shape and the dtype argument, which must not contradict each other.
func problemOf(shape worktree.Shape, in request.Tile) (tile.Problem, error) {
	p := tile.Problem{DType: shape.DType, Causal: shape.Causal}
	for _, dim := range shape.Dims {
		p.Dims = append(p.Dims, tile.Dim{Name: dim.Name, Value: dim.Value})
	}
	if in.DType == "" {
		return p, nil
	}
	dtype, ok := worktree.ParseDType(in.DType)
	if !ok {
		dtype = in.DType // the advisor knows what is allowed, and says so
	}
	if p.DType != "" && !strings.EqualFold(p.DType, dtype) {
		return p, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("dtype is %q and the shape says %q", in.DType, shape.DType),
			Evidence: envelope.Evidence{Field: "dtype", Value: in.DType, Allowed: shape.DType + ", or a shape without a dtype"},
		})
	}
	p.DType = dtype
	return p, nil
}

// given is nil for an argument that was left out; the schema allows nothing below 1.
func given(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// tileActions say how to go on: capture this shape, or one that is likely to be traced.
func tileActions(in request.Tile, data tile.Data) []envelope.Action {
	att := data.Grid.ATT
	capture := request.Capture{Kernel: in.Kernel, Shape: data.Problem.Shape}
	if att == nil || att.Verdict == "likely" {
		return []envelope.Action{{Kind: envelope.CallTool, Args: capture, Reason: "traces this shape", Confidence: envelope.Medium}}
	}
	if att.MinLeadingDim == 0 {
		return nil
	}
	shape, err := worktree.ParseShape(data.Category, data.Problem.Shape)
	if err != nil {
		return nil
	}
	capture.Shape = shape.With(att.LeadingDim, att.MinLeadingDim).String()
	return []envelope.Action{{
		Kind: envelope.CallTool, Args: capture, Confidence: envelope.Medium,
		Reason: fmt.Sprintf("this shape is %s to be traced; %s=%d is the smallest that is likely to be", att.Verdict, att.LeadingDim, att.MinLeadingDim),
	}}
}
