package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/jail"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/core/triage"
	"github.com/flyprof/flyprof-mcp/internal/stdio"
	"github.com/flyprof/flyprof-mcp/internal/watch"
	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/resources"
	"github.com/flyprof/flyprof-mcp/skills"
	"github.com/flyprof/flyprof-mcp/tools"
	"github.com/flyprof/flyprof-mcp/tools/prompts"
)

// app is the program put together from the settings in force.
type app struct {
	config  config.Config
	log     *slog.Logger
	service *capture.Service
	spawner *capture.Spawner
	source  *resources.Source
	served  tools.Served
	skills  *resources.SkillMethods
	prompts *prompts.Prompts
	// all holds the tools that are not served too: the resource of a run is rendered by one of them.
	all tools.Inventory
	// resolve jails a path to be read.
	resolve func(field, path string) (string, error)
}

// newApp wires everything. It starts no process and probes no hardware.
func newApp(c config.Config, log *slog.Logger) (*app, error) {
	programs, worktree, err := findPrograms(c, log)
	if err != nil {
		return nil, err
	}
	store, err := runs.Open(c.RunsDir, launch.Local{})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of this program: %w", err)
	}
	a := &app{config: c, log: log}
	environ := os.Environ()
	a.spawner = &capture.Spawner{Argv: []string{self, superviseVerb}, Env: rocprof.Environment(environ, rocprof.Passed(environ, c.PassEnv), nil), Log: log}
	prepare := capture.Preparer{
		Programs: programs, Worktree: worktree, Jail: jail.New(append([]string{worktree}, c.AllowPath...)...), Recipes: c.Recipes,
		GPU: c.GPU, StopGraceS: c.StopGraceS, RefuseBusy: c.GPUInUse == "refuse", LockDirs: lockDirs(c), Version: version(), OS: runtime.GOOS, SysRoot: "/", Environ: environ, PassEnv: c.PassEnv,
		AnyInvocation: c.AllowAnyInvocation,
	}
	a.service = &capture.Service{Store: store, Spawn: a.spawner, Prepare: prepare.Prepare, OnServerExit: runs.CancelOnExit, Log: log}
	if c.KeepRuns {
		a.service.OnServerExit = runs.FinishOnExit
	}
	a.source = &resources.Source{Store: store, Envelope: a.envelopeOf, Texts: resources.Texts(), Recover: func(id string) {
		if _, err := store.Recover(context.Background(), id, a.service.Salvage); err != nil {
			log.Warn("a run that is watched could not be looked after", "run", id, "err", err)
		}
	}}
	a.resolve = readJail(c, worktree).Resolve
	a.source.Traces = artifact.Finder{Store: store, Resolve: a.resolve}
	a.skills = resources.NewSkillMethods(skills.Skills(), mcp.Implementation{Name: serverName, Version: version(), Title: serverTitle})
	a.all = tools.All(tools.Deps{
		Runs: a.service, Worktrees: prepare, Triage: triage.Service{Store: store, Resolve: a.resolve}, Traces: a.source.Traces, ReadOnly: c.ReadOnly, Doctor: a.doctor(prepare, store), Resources: a.source, Progress: progress, Arch: c.Simulate,
	})
	if a.served, err = a.all.Filter(tools.Selection{Toolsets: toolsets(c), Only: c.Tools, Except: c.ExcludeTools, ReadOnly: c.ReadOnly}); err != nil {
		return nil, err
	}
	a.prompts = &prompts.Prompts{Served: a.served, Worktrees: prepare, Source: a.source, Log: log}
	return a, nil
}

// lockDirs: simulated GPUs belong to a runs directory, real ones to the host.
func lockDirs(c config.Config) []string {
	if c.Simulate != "" && c.LockDir == "" {
		return []string{filepath.Join(c.RunsDir, ".locks")}
	}
	return capture.LockDirs(c.LockDir)
}

// readJail holds the directories that a path to be read may lie in: the runs, the worktree, the working directory, and what the
// settings allow.
func readJail(c config.Config, worktree string) jail.Jail {
	cwd, _ := os.Getwd()
	if filepath.Dir(cwd) == cwd {
		cwd = "" // clients start servers in the root of the file system, and do not mean all of it
	}
	return jail.New(append([]string{c.RunsDir, worktree, cwd}, c.AllowPath...)...)
}

// toolsets gives none for all.
func toolsets(c config.Config) []string {
	for _, t := range c.Toolsets {
		if t == "all" {
			return nil
		}
	}
	return c.Toolsets
}

// progress reports over MCP how far a waiting call is. The numbers are seconds.
func progress(ctx context.Context) capture.Progress {
	tell := wire.Progress(ctx)
	return func(elapsedS float64, estimateS int, message string) { tell(elapsedS, float64(estimateS), message) }
}

// envelopeOf renders the envelope of a run for the resource flyprof://runs/<run>.
func (a *app) envelopeOf(ctx context.Context, id string) ([]byte, error) {
	if _, err := a.service.Store.Load(id); err != nil {
		return nil, err
	}
	status, ok := a.all.ByVerb(request.VerbStatus)
	if !ok {
		return nil, fmt.Errorf("no tool renders runs")
	}
	look := 0
	args, err := json.Marshal(request.Status{RunID: id, WaitS: &look})
	if err != nil {
		return nil, err
	}
	return status.Call(ctx, args, tools.Host{Renderer: a.served.Renderer(), Log: a.log}).JSON, nil
}

// What the server calls itself.
const (
	serverName  = "flyprof-mcp"
	serverTitle = "FlyDSL kernel traces"
)

// ttlStatic is how long clients may keep what does not change while this server runs, in ms.
const ttlStatic = 300_000

// server makes the MCP server.
func (a *app) server(more ...server.ServerOption) *server.MCPServer {
	hooks := &server.Hooks{}
	wire.ReportErrors(hooks)
	a.source.Hook(hooks)
	var srv *server.MCPServer
	a.source.Subscriptions(hooks, watch.Options{}, func(uri string) bool { return srv.ListResources()[uri] != nil })
	options := []server.ServerOption{
		server.WithTitle(serverTitle),
		server.WithInstructions(instructions),
		server.WithToolCapabilities(false),
		server.WithResourceCapabilities(true, false),
		server.WithPromptCapabilities(false),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(a.prompts),
		server.WithResourceCompletionProvider(a.source),
		server.WithLogger(a.log),
		server.WithHooks(hooks),
		server.WithExtensions(map[string]any{resources.SkillsExtension: resources.SkillSettings()}),
		server.WithCacheHints(ttlStatic, mcp.CacheScopePrivate),
	}
	srv = server.NewMCPServer(serverName, version(), append(options, more...)...)
	a.served.Register(srv, a.log)
	a.source.Register(srv, a.log)
	a.prompts.Register(srv)
	return srv
}

// recover ends, in the background, what servers before this one left behind.
func (a *app) recover(ctx context.Context) {
	recovered, err := a.service.Store.RecoverAll(ctx, a.service.Salvage)
	if err != nil {
		a.log.Warn("runs of before could not be recovered", "err", err)
	}
	for _, id := range recovered {
		a.log.Info("a run was left without its supervisor and was ended", "run", id)
	}
}

// intercept answers the methods that the library does not know.
func (a *app) intercept(ctx context.Context, method string, params json.RawMessage) (any, bool, error) {
	return a.skills.Intercept(ctx, method, params)
}

// open puts the program together from the settings in force; the closer is the log's.
func (f *settingFlags) open() (*app, io.Closer, error) {
	c, err := f.resolve()
	if err != nil {
		return nil, nil, err
	}
	log, closer, err := logger(c, f.log, f.colours)
	if err != nil {
		return nil, nil, err
	}
	a, err := newApp(c, log)
	if err != nil {
		return nil, nil, errors.Join(err, closer.Close())
	}
	return a, closer, nil
}

// serve answers MCP on standard input and output, or over HTTP where an address is given.
func serve(ctx context.Context, flags *settingFlags) error {
	c, err := flags.resolve()
	if err != nil {
		return err
	}
	if c.HTTP != "" {
		return serveHTTP(ctx, flags)
	}
	return serveStdio(ctx, flags)
}

// serveStdio answers MCP on standard input and output until the client goes away.
func serveStdio(ctx context.Context, flags *settingFlags) error {
	out, err := stdio.ReserveStdout()
	if err != nil {
		return fmt.Errorf("standard output cannot be reserved: %w", err)
	}
	a, closer, err := flags.open()
	if err != nil {
		return err
	}
	defer closer.Close()
	c, log := a.config, a.log
	slog.SetDefault(log)
	if c.Simulate != "" {
		log.Warn("SIMULATED GPU: every figure of every capture is invented", "arch", c.Simulate)
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	go a.recover(background)
	log.Info("serving MCP on standard input and output", "version", version(), "tools", len(a.served.Tools), "runs", a.service.Store.Dir())
	err = stdio.Serve(ctx, a.server(), os.Stdin, out, stdio.Options{Log: log, Intercept: a.intercept})
	a.spawner.Release()
	if n := a.spawner.Live(); n > 0 {
		log.Info("runs go on or end by their policy, without this server", "runs", n, "policy", a.service.OnServerExit)
	}
	return err
}

// invalidSetting is BAD_ARGS about a setting.
func invalidSetting(flag, env, value, allowed string, err error) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("--%s (%s) is %q: %v", flag, env, value, err),
		Evidence: envelope.Evidence{Field: "--" + flag, Value: value, Allowed: allowed, Setting: "--" + flag + " (" + env + ")"},
	})
}
