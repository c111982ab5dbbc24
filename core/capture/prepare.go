package capture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/gpu"
	"github.com/flyprof/flyprof-mcp/core/jail"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// Preparer resolves requests by the settings in force. It starts no process.
type Preparer struct {
	Programs Finder
	// Worktree is the configured checkout; Jail holds it and what --allow-path names.
	Worktree string
	Jail     jail.Jail
	Recipes  string
	// GPU is the default index inside the inherited mask.
	GPU        int
	StopGraceS int
	// RefuseBusy ends a capture with GPU_BUSY where the GPU is in use, in place of a warning.
	RefuseBusy bool
	// LockDirs are where the locks of GPUs are, as LockDirs gives them.
	LockDirs []string
	Version  string
	// OS is runtime.GOOS but in tests.
	OS string
	// SysRoot is where /sys and /proc are found: "/" but in tests.
	SysRoot string
	// Environ is the server's environment, of which the workload gets what the allow-list of core/rocprof and PassEnv let pass.
	Environ []string
	PassEnv []string
	// AnyInvocation lets commands be anything.
	AnyInvocation bool
}

// Prepare implements Service.Prepare. Every error is one that the caller can mend before anything is started.
func (p Preparer) Prepare(ctx context.Context, in request.Capture) (Prepared, error) {
	simulated := p.Programs.Simulated != nil
	if !simulated && p.OS != "linux" {
		return Prepared{}, envelope.Build(envelope.PlatformUnsupported, envelope.Facts{
			Message: "captures on real hardware need Linux; this is " + p.OS, Request: &in, Evidence: envelope.Evidence{Found: p.OS, Needed: "linux"},
		})
	}
	in = normalise(in)
	if err := checkArguments(in); err != nil {
		return Prepared{}, err
	}
	if in.IterRange != "" {
		set, err := rocprof.ParseIterRange(in.IterRange)
		if err != nil {
			return Prepared{}, err
		}
		in.IterRange = set.String()
	}
	tree, listing, err := p.open(ctx, in)
	if err != nil {
		return Prepared{}, err
	}
	plan := Plan{Tools: p.Programs.Tools(tree.Root()), AnyInvocation: p.AnyInvocation, StopGraceS: p.StopGraceS, RefuseBusy: p.RefuseBusy, LockDirs: p.LockDirs}
	if err := p.havePrograms(plan.Tools, tree.Root()); err != nil {
		return Prepared{}, withRequest(err, in)
	}
	if err := p.invocation(tree, listing, in, &plan); err != nil {
		return Prepared{}, withRequest(err, in)
	}
	if plan.GPU, err = p.selectGPU(ctx, in); err != nil {
		return Prepared{}, withRequest(err, in)
	}
	build, warnings, err := tree.Build(p.getenv)
	if err != nil {
		return Prepared{}, withRequest(err, in)
	}
	plan.Env, plan.PassEnv = p.environment(plan, build), p.PassEnv
	plan.Withheld = rocprof.Withheld(p.Environ, plan.environment(p.Environ))
	p.provenance(ctx, tree, plan.Kernel, &plan)
	plan.Warnings = append(listing.Warnings, warnings...)
	plan.DiscoverKey = p.discoverKey(plan, build.Stamp())
	out := Prepared{Request: in, Plan: plan}
	out.RequestKey, out.SameKey = p.keys(in, plan, build.Stamp())
	return out, nil
}

// havePrograms names the program that is missing, and everywhere it was looked for.
func (p Preparer) havePrograms(t Tools, root string) error {
	if len(t.Rocprofv3) == 0 {
		return envelope.Build(envelope.Rocprofv3Missing, envelope.Facts{
			Message:  "rocprofv3 was not found",
			Evidence: envelope.Evidence{Setting: "--rocprofv3 (FLYPROF_ROCPROFV3)", Value: p.Programs.Rocprofv3, LookedAt: head(p.Programs.RocprofPlaces(), maxPlaces)},
		})
	}
	if len(t.Python) == 0 {
		return envelope.Build(envelope.MissingPrereq, envelope.Facts{
			Message: "no Python interpreter was found", Help: "Give --python (FLYPROF_PYTHON).",
			Evidence: envelope.Evidence{Field: "python", Setting: "--python (FLYPROF_PYTHON)", Value: p.Programs.Python, LookedAt: head(p.Programs.PythonPlaces(root), maxPlaces)},
		})
	}
	return nil
}

// maxPlaces is how many of the places that were looked at an error lists.
const maxPlaces = 24

// normalise writes the defaults out, so that the same request is the same text.
func normalise(in request.Capture) request.Capture {
	if in.Tag == "" {
		in.Tag = "big"
	}
	if in.Target == "" {
		in.Target = "flydsl"
	}
	if in.TimeoutS == 0 {
		in.TimeoutS = DefaultTimeoutS
	}
	if in.ATTShaderEngineMask == "" {
		in.ATTShaderEngineMask = autoMask
	}
	in.WaitS = nil
	return in
}

// maxToken bounds one argument of the test in bytes; Linux takes 128 KiB (MAX_ARG_STRLEN), and no test needs a thousandth of it.
const maxToken = 4096

// checkArguments refuses what the schema cannot say and no process can be started with.
func checkArguments(in request.Capture) error {
	bad := func(field, value, allowed string) error {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message: fmt.Sprintf("%s is %.80q; allowed: %s", field, value, allowed), Request: &in,
			Evidence: envelope.Evidence{Field: field, Value: fmt.Sprintf("%.80q", value), Allowed: allowed},
		})
	}
	for i, token := range in.Args {
		if len(token) > maxToken || strings.ContainsRune(token, 0) {
			return bad(fmt.Sprintf("args[%d]", i), token, fmt.Sprintf("at most %d bytes, no NUL", maxToken))
		}
	}
	for _, text := range []struct{ field, value string }{
		{"kernel", in.Kernel}, {"shape", in.Shape}, {"invocation", in.Invocation}, {"cwd", in.Cwd}, {"worktree", in.Worktree}, {"group", in.Group}, {"retry_of", in.RetryOf},
	} {
		if strings.ContainsRune(text.value, 0) {
			return bad(text.field, text.value, "no NUL")
		}
	}
	if in.ATTShaderEngineMask == autoMask {
		return nil
	}
	if _, err := rocprof.ParseSEMask(in.ATTShaderEngineMask); err != nil {
		return withRequest(err, in)
	}
	return nil
}

// autoMask leaves the shader engines to the grid.
const autoMask = "auto"

// withRequest completes an error with the request, so that its actions are calls that can be sent.
func withRequest(err error, in request.Capture) error {
	e := envelope.As(err)
	return envelope.Build(e.Code, envelope.Facts{
		Message: e.Message, Help: e.Help, Request: &in, Evidence: e.Evidence, Available: e.Available, Candidates: e.Candidates,
	}).WithCause(err)
}

// Root gives the worktree that a call means, jailed. MISSING_PREREQ where none is configured.
func (p Preparer) Root(argument string) (string, error) {
	if argument != "" {
		return p.Jail.Resolve("worktree", argument)
	}
	if p.Worktree == "" {
		return "", envelope.Build(envelope.MissingPrereq, envelope.Facts{
			Message: "no worktree is configured", Help: "Give --worktree (FLYPROF_WORKTREE), or try the tool with --simulate, which brings its own.",
			Evidence: envelope.Evidence{Field: "worktree", Setting: "--worktree (FLYPROF_WORKTREE)"},
		})
	}
	return p.Worktree, nil
}

// List reads the kernels of a worktree, with the configured recipes.
func (p Preparer) List(ctx context.Context, argument string) (*worktree.Tree, *worktree.Listing, error) {
	root, err := p.Root(argument)
	if err != nil {
		return nil, nil, err
	}
	tree, err := worktree.Open(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	tree = tree.WithAnyInvocation(p.AnyInvocation)
	if p.Recipes != "" {
		recipes, err := worktree.LoadRecipes(p.Recipes)
		if err != nil {
			return nil, nil, err
		}
		tree = tree.WithRecipes(recipes)
	}
	listing, err := tree.List(ctx)
	return tree, listing, err
}

func (p Preparer) open(ctx context.Context, in request.Capture) (*worktree.Tree, *worktree.Listing, error) {
	tree, listing, err := p.List(ctx, in.Worktree)
	if err != nil {
		return nil, nil, withRequest(err, in)
	}
	return tree, listing, nil
}

// invocation finds out how the kernel is run: by the request's own command, or by the worktree's test of that kernel.
func (p Preparer) invocation(tree *worktree.Tree, listing *worktree.Listing, in request.Capture, plan *Plan) error {
	if in.Invocation != "" {
		return p.custom(tree, listing, in, plan)
	}
	if in.Cwd != "" {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  "cwd is where an invocation of your own runs, and none is given: a test runs in the worktree",
			Evidence: envelope.Evidence{Field: "cwd", Value: in.Cwd, Allowed: "no cwd, or an invocation besides"},
		})
	}
	k, symbol, err := FindKernel(listing, in.Kernel)
	if err != nil {
		return err
	}
	plan.Kernel, plan.Symbol = k, symbol
	inv, err := tree.Invocation(k, worktree.InvocationRequest{Shape: in.Shape, Args: in.Args})
	if err != nil {
		return err
	}
	plan.Invocation = *inv
	return nil
}

// FindKernel reads the kernel argument: a test's name, a symbol that one test launches, or both with :: between them. C++ names
// have :: of their own, so what stands before it counts only where it is a test's name.
func FindKernel(l *worktree.Listing, name string) (k *worktree.Kernel, symbol string, err error) {
	if test, rest, ok := strings.Cut(name, request.SymbolMark); ok && rest != "" {
		if k, err := l.Find(test); err == nil && (k.Name == test || k.TestFile == test) {
			return k, rest, nil
		}
	}
	if k, err = l.Find(name); err != nil {
		return nil, "", err
	}
	if exact, _ := worktree.MatchSymbol(k, name); exact && name != k.Name {
		symbol = name
	}
	return k, symbol, nil
}

func (p Preparer) custom(tree *worktree.Tree, listing *worktree.Listing, in request.Capture, plan *Plan) error {
	if in.Shape != "" {
		return envelope.Build(envelope.ShapeNotBound, envelope.Facts{
			Message:  "a shape cannot be bound to an invocation of your own",
			Evidence: envelope.Evidence{Field: "shape", Value: in.Shape, Allowed: "put the shape into the invocation, or leave invocation out"},
		})
	}
	cwd := tree.Root()
	if in.Cwd != "" {
		dir, err := p.Jail.Resolve("cwd", in.Cwd)
		if err != nil {
			return err
		}
		cwd = dir
	}
	inv, err := tree.CustomInvocation(in.Invocation, cwd, in.Args)
	if err != nil {
		return err
	}
	if err := p.findProgram(inv); err != nil {
		return err
	}
	plan.Invocation = *inv
	if k, err := listing.Find(in.Kernel); err == nil && in.Kernel == k.Name {
		plan.Kernel = k
	} else {
		plan.Symbol = in.Kernel
	}
	return nil
}

// findProgram replaces a program's name by its path: relative to where it runs, or from PATH.
func (p Preparer) findProgram(inv *worktree.Invocation) error {
	if inv.Program == "" {
		return nil
	}
	var looked []string
	switch {
	case filepath.IsAbs(inv.Program):
		looked = []string{inv.Program}
	case filepath.Base(inv.Program) != inv.Program:
		looked = []string{filepath.Join(inv.Cwd, inv.Program)}
	default:
		looked = onPath(p.getenv("PATH"), inv.Program)
	}
	if path := firstProgram(looked); path != "" {
		inv.Program = path
		return nil
	}
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("the invocation cannot be run: there is no program %.200q", inv.Program),
		Evidence: envelope.Evidence{Field: "invocation", Value: inv.Program, Allowed: "a program on PATH, or its path", LookedAt: head(looked, maxPlaces)},
	})
}

// selectGPU finds the GPU that an index inside the inherited mask means.
func (p Preparer) selectGPU(ctx context.Context, in request.Capture) (GPU, error) {
	index := p.GPU
	if in.GPU != nil {
		index = *in.GPU
	}
	if p.Programs.Simulated != nil {
		_, err := p.simulatedHost().Select(index)
		return GPU{Index: index, KFD: index, HIP: index}, err
	}
	host, err := gpu.Topology(ctx, p.SysRoot, p.getenv)
	if err != nil {
		return GPU{}, err
	}
	g, err := host.Select(index)
	if err != nil {
		return GPU{}, err
	}
	return GPU{Index: index, KFD: g.KFDIndex, HIP: g.HIPIndex, BDF: g.BDF}, nil
}

// simulatedHost has GPUs without a mask.
func (p Preparer) simulatedHost() gpu.Host {
	host := gpu.Host{Source: "simulated"}
	for i := range p.Programs.SimulatedGPUs {
		host.GPUs, host.Visible = append(host.GPUs, gpu.GPU{KFDIndex: i, HIPIndex: i}), append(host.Visible, i)
	}
	return host
}

// environment is the workload's: what may be inherited, the recipe's, the build's, and ours last, so that neither a recipe
// nor an inherited variable beats the caller's GPU.
func (p Preparer) environment(plan Plan, build worktree.Build) []string {
	set := append(slices.Clone(plan.Invocation.Env), build.Env()...)
	set = append(set, "HIP_VISIBLE_DEVICES="+strconv.Itoa(plan.GPU.HIP))
	set = append(set, plan.Tools.Env...)
	return rocprof.Environment(p.Environ, set, plan.unset())
}

// unset are the variables that no workload inherits: the test's, and a second mask beside the one that is set.
func (p Plan) unset() []string {
	return append(slices.Clone(p.Invocation.Unset), "CUDA_VISIBLE_DEVICES")
}

// environment completes Env by what is let pass besides.
func (p Plan) environment(inherited []string) []string {
	return rocprof.WithEnv(rocprof.Passed(inherited, p.PassEnv), p.Env, p.unset())
}

func (p Preparer) provenance(ctx context.Context, tree *worktree.Tree, k *worktree.Kernel, plan *Plan) {
	state := tree.State(ctx, k)
	host, _ := os.Hostname()
	plan.Provenance = Provenance{
		GPU: plan.GPU, Worktree: tree.Root(), Commit: state.Commit, Dirty: state.Dirty, SourceHash: state.SourceHash, Host: host,
		CodegenEnv: rocprof.CodegenEnv(plan.Env), Simulated: plan.Tools.Simulated != "", ServerVersion: p.Version,
	}
}

// keys hash the request, and the request with all that its outcome depends on.
func (p Preparer) keys(in request.Capture, plan Plan, build string) (requestKey, sameKey string) {
	in.RetryOf, in.Force, in.Rediscover = "", false, false
	requestKey = hash("request", in, plan.Provenance.Worktree, plan.GPU)
	sameKey = hash("same", requestKey, plan.Invocation, plan.environment(p.Environ), plan.Provenance.SourceHash, plan.Provenance.Commit, build, toolStamps(plan))
	return requestKey, sameKey
}

// discoverKey hashes what a workload's launches depend on: the command and its environment, the worktree's state, the build, the tools,
// the GPU and the host. What is traced of it makes no difference.
func (p Preparer) discoverKey(plan Plan, build string) string {
	from := plan.Provenance
	return hash("discover", plan.Invocation.Argv, plan.Invocation.Cwd, plan.environment(p.Environ), from.Worktree, from.SourceHash, from.Commit, from.Dirty, from.Host, plan.GPU, build, toolStamps(plan))
}

func hash(parts ...any) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range parts {
		_ = enc.Encode(part) // plain structs and strings always encode
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// toolStamps tell whether a program was replaced since: its path, size and time of change.
func toolStamps(plan Plan) []string {
	t := plan.Tools
	var out []string
	for _, argv := range [][]string{t.Rocprofv3, t.Python, {plan.Invocation.Program}} {
		stamp := strings.Join(argv, " ")
		if len(argv) > 0 {
			if info, err := os.Stat(argv[0]); err == nil && t.Simulated == "" {
				stamp += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
			}
		}
		out = append(out, stamp)
	}
	return out
}

func (p Preparer) getenv(name string) string {
	for _, kv := range slices.Backward(p.Environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}
