package prompts

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/tile"
	"github.com/flyprof/flyprof-mcp/core/worktree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// captureView is what capture_kernel.md is filled from.
type captureView struct {
	Kernel, Shape string
	// Facts are what the worktree says of the kernel, in sentences; Unlisted why nothing is known of it.
	Facts    []string
	Unlisted string
	// Blocked says why it cannot be captured as it stands.
	Blocked string
	// Form says which shape the test takes.
	Form string
	// Advice is what the arithmetic says of the shape, Enlarge the capture with a shape that is likely to be traced.
	Advice  []string
	Enlarge *request.Capture
	Earlier []string

	Doctor  request.Doctor
	List    request.List
	Tile    *request.Tile
	Capture request.Capture
	Status  request.Status
}

func (p *Prompts) captureKernel(ctx context.Context, args map[string]string) (answer, error) {
	v := captureView{Kernel: args["kernel"], Shape: args["shape"], Status: request.Status{RunID: placeholderRun}}
	v.Capture = request.Capture{Kernel: v.Kernel, Shape: v.Shape}
	if text := args["gpu"]; text != "" {
		gpu, err := strconv.Atoi(text)
		if err != nil || gpu < 0 || gpu > 255 {
			return answer{}, refuse("gpu", text, []string{"0", "255"}, "gpu is %s, and may be a whole number from 0 to 255", quote(text))
		}
		v.Capture.GPU, v.Doctor.GPU = &gpu, &gpu
	}
	tree, list, err := p.Worktrees.List(ctx, "")
	switch {
	case err != nil && ctx.Err() != nil:
		return answer{}, ctx.Err()
	case err != nil:
		e := envelope.As(err)
		v.Unlisted = fmt.Sprintf("%s: %s", e.Code, quote(e.Message))
	default:
		if err := p.know(&v, tree, list); err != nil {
			return answer{}, err
		}
		if v.Shape != "" {
			if err := p.judge(ctx, &v); err != nil {
				return answer{}, err
			}
		}
	}
	for _, r := range p.earlier(v.Kernel, 3) {
		v.Earlier = append(v.Earlier, about(r))
	}
	text, err := p.write("capture_kernel.md", v)
	return answer{description: "Capture " + quote(v.Kernel), text: text}, err
}

// maxTileKernel is the longest name that flyprof_tile takes, in bytes.
const maxTileKernel = 200

// placeholderRun stands for the id that the answer of the capture brings: the one value that cannot be known before.
const placeholderRun = "<data.run_id>"

// know fills in what the worktree says of the kernel, and refuses what it has not.
func (p *Prompts) know(v *captureView, tree *worktree.Tree, list *worktree.Listing) error {
	k, symbol, err := capture.FindKernel(list, v.Kernel)
	if err != nil {
		return refusal("kernel", v.Kernel, nil, err)
	}
	if _, err = tree.Invocation(k, worktree.InvocationRequest{Shape: v.Shape}); err != nil {
		e := envelope.As(err)
		if e.Code == envelope.ShapeNotBound || e.Evidence.Field == "shape" {
			return refusal("shape", v.Shape, []string{k.Shape.Form}, err)
		}
		v.Blocked = fmt.Sprintf("%s: %s", e.Code, quote(e.Message))
	}
	v.Facts = append(v.Facts, fmt.Sprintf("Its test is %s, of the category %s; its recipe is %s.", quote(k.TestFile), k.Category, map[string]string{
		worktree.FromRegistry: "a curated one", worktree.Synthesized: "made from the test, which is as good",
	}[k.RecipeSource]))
	if symbol != "" {
		v.Facts = append(v.Facts, fmt.Sprintf("The test is named %s; what is traced is its launch of %s.", quote(k.Name), quote(symbol)))
	}
	if len(k.ArchGates) > 0 {
		v.Facts = append(v.Facts, "The test skips itself on some GPUs: "+quote(strings.Join(k.ArchGates, "; ")))
	}
	v.Form = k.Shape.Form
	if k.Shape.Kind != worktree.BindNone && len(k.Name) <= maxTileKernel {
		v.Tile = &request.Tile{Kernel: k.Name, Shape: v.Shape}
	}
	return nil
}

// judge asks flyprof_tile about the shape. Where that knows no model of the kernel, nothing is said.
func (p *Prompts) judge(ctx context.Context, v *captureView) error {
	t, ok := p.Served.Tools.ByVerb(request.VerbTile)
	if !ok || v.Tile == nil {
		return nil
	}
	raw, err := json.Marshal(v.Tile)
	if err != nil {
		return err
	}
	var w envelope.Wire[tile.Data]
	if err := json.Unmarshal(t.Call(ctx, raw, tools.Host{Renderer: p.Served.Renderer(), Log: p.Log}).JSON, &w); err != nil {
		return err
	}
	if w.Data == nil {
		v.Tile = nil
		return nil
	}
	d := *w.Data
	if d.Recommended.Regime != "" {
		v.Advice = append(v.Advice, fmt.Sprintf("The whole problem is %s (%s).", d.Recommended.Regime, visible(d.DecidedBy)))
	}
	if d.Grid.TailVerdict != "" {
		v.Advice = append(v.Advice, fmt.Sprintf("%d workgroups on %d CUs: %s.", d.Grid.Workgroups, d.Grid.TargetCUs, d.Grid.TailVerdict))
	}
	if a := d.Grid.ATT; a != nil {
		v.Advice = append(v.Advice, fmt.Sprintf("That a traced CU runs a wave is %s: %s.", map[string]string{"likely": "likely", "unlikely": "unlikely", "none": "out of the question"}[a.Verdict], visible(a.Basis)))
		if a.Verdict != "likely" {
			v.Enlarge = larger(v.Capture, w.NextActions)
		}
	}
	for _, warning := range w.Warnings {
		v.Advice = append(v.Advice, fmt.Sprintf("%s: %s.", warning.Code, visible(warning.Message)))
	}
	return nil
}

// larger takes the shape that flyprof_tile offers in the place of one that is too small.
func larger(c request.Capture, offered []envelope.WireAction) *request.Capture {
	for _, a := range offered {
		if args, err := request.Decode(request.VerbCapture, a.Arguments); err == nil && a.Tool == tools.ToolName(request.VerbCapture) {
			c.Shape = args.(request.Capture).Shape
			return &c
		}
	}
	return nil
}
