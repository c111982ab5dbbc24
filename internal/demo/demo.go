// Package demo walks the whole runbook over a real MCP session with a server process of its own, on the simulated GPU.
//
// It is a client like any other: it knows nothing but what the answers say, and follows the next actions as they stand.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Options of Run.
type Options struct {
	// Server is the program and its arguments; Env its whole environment.
	Server []string
	Env    []string
	// Out gets the story, Log what the server writes to standard error.
	Out, Log io.Writer
	// Kernel and Shape are what is captured; Small is a shape that is too small to be traced.
	Kernel, Shape, Small string
}

// Run does doctor, list, tile, capture and reads the trace, then shows an empty trace and follows the action that mends it.
// The error says which step answered what it should not.
func Run(ctx context.Context, o Options) error {
	d := &demo{o: o, out: o.Out}
	if err := d.connect(ctx); err != nil {
		return err
	}
	defer d.client.Close()
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Can this host capture?", d.doctor},
		{"Which kernels are there?", d.list},
		{"What does the shape promise?", d.tile},
		{"Capture " + o.Kernel + " at " + o.Shape, d.capture},
		{"Where does it stall?", d.stalls},
		{"A small grid: a second attempt where the first one missed", d.small},
		{"One shader engine by hand: an empty trace, and the way out", d.empty},
	} {
		d.say("\n== %s", step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	d.say("\nDone. All of it came over one MCP session; every figure is invented by the simulated GPU.")
	return nil
}

type demo struct {
	o      Options
	out    io.Writer
	client *client.Client
	// kept is the URI of the captured dispatch directory.
	kept string
}

// envelope is the part of an answer that a client goes by.
type envelope struct {
	OK          bool            `json:"ok"`
	Bundle      string          `json:"bundle"`
	Data        json.RawMessage `json:"data"`
	Warnings    []warning       `json:"warnings"`
	NextActions []action        `json:"next_actions"`
	Error       *struct {
		Code        string   `json:"code"`
		ExitCode    int      `json:"exitCode"`
		Message     string   `json:"message"`
		Help        string   `json:"help"`
		NextActions []action `json:"next_actions"`
	} `json:"error"`
}

type warning struct{ Code, Message string }

type action struct {
	Action     string         `json:"action"`
	Tool       string         `json:"tool"`
	Arguments  map[string]any `json:"arguments"`
	Argv       []string       `json:"argv"`
	URI        string         `json:"uri"`
	Reason     string         `json:"reason"`
	Confidence string         `json:"confidence"`
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) connect(ctx context.Context) error {
	t := transport.NewStdioWithOptions(d.o.Server[0], d.o.Env, d.o.Server[1:], transport.WithCommandStderrWriter(d.o.Log))
	if err := t.Start(ctx); err != nil {
		return fmt.Errorf("the server cannot be started: %w", err)
	}
	d.client = client.NewClient(t)
	begin := time.Now()
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = mcp.Implementation{Name: "flyprof-demo", Version: "1"}
	got, err := d.client.Initialize(ctx, hello)
	if err != nil {
		return errors.Join(fmt.Errorf("initialize: %w", err), d.client.Close())
	}
	d.say("MCP session with %s %s, protocol %s (%d ms after the start)", got.ServerInfo.Name, got.ServerInfo.Version, got.ProtocolVersion, time.Since(begin).Milliseconds())
	list, err := d.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return errors.Join(fmt.Errorf("tools/list: %w", err), d.client.Close())
	}
	names := make([]string, len(list.Tools))
	for i, t := range list.Tools {
		names[i] = t.Name
	}
	d.say("tools: %s", strings.Join(names, ", "))
	return nil
}

// call calls a tool and reads its envelope. A JSON-RPC error is an error; an envelope with ok false is not.
func (d *demo) call(ctx context.Context, tool string, args map[string]any) (envelope, error) {
	text, _ := json.Marshal(args) // a map of plain values
	d.say("-> %s %s", tool, text)
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := d.client.CallTool(ctx, req)
	if err != nil {
		return envelope{}, err
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return envelope{}, err
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("%s answered no envelope: %w", tool, err)
	}
	if e.OK == res.IsError {
		return e, fmt.Errorf("%s: ok is %v and isError is %v", tool, e.OK, res.IsError)
	}
	return e, nil
}

// good calls a tool that must succeed and reads its data.
func (d *demo) good(ctx context.Context, tool string, args map[string]any, data any) (envelope, error) {
	e, err := d.call(ctx, tool, args)
	if err != nil {
		return e, err
	}
	if e.Error != nil {
		return e, fmt.Errorf("%s answered %s: %s", tool, e.Error.Code, e.Error.Message)
	}
	for _, w := range e.Warnings {
		d.say("   warning %s: %s", w.Code, w.Message)
	}
	return e, json.Unmarshal(e.Data, data)
}

func (d *demo) doctor(ctx context.Context) error {
	var data struct {
		Verdict  string   `json:"verdict"`
		Blockers []string `json:"blockers"`
		Checks   []struct {
			ID    string `json:"id"`
			State string `json:"state"`
			Found string `json:"found"`
		} `json:"checks"`
	}
	if _, err := d.good(ctx, "flyprof_doctor", map[string]any{}, &data); err != nil {
		return err
	}
	for _, c := range data.Checks {
		d.say("   %-8s %-14s %s", c.State, c.ID, c.Found)
	}
	d.say("   verdict: %s", data.Verdict)
	if data.Verdict != "ready" {
		return fmt.Errorf("the verdict is %s, blocked by %s", data.Verdict, strings.Join(data.Blockers, ", "))
	}
	return nil
}

func (d *demo) list(ctx context.Context) error {
	var data struct {
		Kernels []struct {
			Kernel       string `json:"kernel"`
			Category     string `json:"category"`
			RecipeSource string `json:"recipe_source"`
			TestFile     string `json:"test_file"`
		} `json:"kernels"`
	}
	if _, err := d.good(ctx, "flyprof_list", map[string]any{}, &data); err != nil {
		return err
	}
	found := false
	for _, k := range data.Kernels {
		d.say("   %-22s %-12s %-14s %s", k.Kernel, k.Category, k.RecipeSource, k.TestFile)
		found = found || k.Kernel == d.o.Kernel
	}
	if !found {
		return fmt.Errorf("the list has no %s", d.o.Kernel)
	}
	return nil
}

func (d *demo) tile(ctx context.Context) error {
	var data struct {
		Recommended struct {
			Regime string `json:"regime"`
			Why    string `json:"why"`
		} `json:"recommended"`
		Grid struct {
			Workgroups  int64  `json:"workgroups"`
			TailVerdict string `json:"tail_verdict"`
			ATT         struct {
				Verdict string `json:"verdict"`
				Basis   string `json:"basis"`
			} `json:"att"`
		} `json:"grid"`
	}
	if _, err := d.good(ctx, "flyprof_tile", map[string]any{"kernel": d.o.Kernel, "shape": d.o.Shape, "dtype": "bf16"}, &data); err != nil {
		return err
	}
	d.say("   regime: %s (%s)", data.Recommended.Regime, data.Recommended.Why)
	d.say("   grid: %d workgroups, %s; a trace of it is %s to hold waves: %s", data.Grid.Workgroups, data.Grid.TailVerdict, data.Grid.ATT.Verdict, data.Grid.ATT.Basis)
	return nil
}

type capture struct {
	RunID           string `json:"run_id"`
	State           string `json:"state"`
	Phase           string `json:"phase"`
	Kernel          string `json:"kernel"`
	MatchConfidence string `json:"match_confidence"`
	PMC             []struct {
		Values []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"values"`
	} `json:"pmc"`
	Tags struct {
		Small struct {
			State string `json:"state"`
			Waves int    `json:"waves"`
			Grid  struct {
				Workgroups int64 `json:"workgroups"`
			} `json:"grid"`
		} `json:"small"`
		Big struct {
			KeptDir      string   `json:"kept_dir"`
			Waves        int      `json:"waves"`
			MappedPct    *float64 `json:"mapped_pct"`
			TopStallType string   `json:"top_stall_type"`
			Arch         *int     `json:"arch_vgpr"`
			Occupancy    int      `json:"occupancy_waves_per_cu"`
			Limiter      string   `json:"occupancy_limiter"`
		} `json:"big"`
	} `json:"tags"`
	Attempts []struct {
		N      int    `json:"n"`
		CU     int    `json:"att_target_cu"`
		Mask   string `json:"att_shader_engine_mask"`
		Result string `json:"result"`
		Why    string `json:"why"`
	} `json:"attempts"`
	Checks []struct {
		ID    string `json:"id"`
		Pass  bool   `json:"pass"`
		Value string `json:"value"`
		Want  string `json:"want"`
	} `json:"checks"`
}

// wait follows a run from its first answer to its last.
func (d *demo) wait(ctx context.Context, e envelope) (envelope, capture, error) {
	for {
		var data capture
		if len(e.Data) > 0 {
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return e, data, err
			}
		}
		if data.State != "queued" && data.State != "running" {
			return e, data, nil
		}
		d.say("   %s, phase %q", data.State, data.Phase)
		if len(e.NextActions) == 0 {
			return e, data, errors.New("a run that goes on, and no next action")
		}
		var err error
		if e, err = d.follow(ctx, e.NextActions[0]); err != nil {
			return e, data, err
		}
	}
}

// follow executes a next action as it stands.
func (d *demo) follow(ctx context.Context, a action) (envelope, error) {
	if a.Action != "call_tool" {
		return envelope{}, fmt.Errorf("the next action is %s and not a call", a.Action)
	}
	d.say("   next action (%s): %s", a.Confidence, a.Reason)
	return d.call(ctx, a.Tool, a.Arguments)
}

func (d *demo) capture(ctx context.Context) error {
	e, err := d.call(ctx, "flyprof_capture", map[string]any{"kernel": d.o.Kernel, "shape": d.o.Shape, "tag": "both", "with_pmc": true, "wait_s": 2})
	if err != nil {
		return err
	}
	e, data, err := d.wait(ctx, e)
	if err != nil {
		return err
	}
	return d.judge(e, data)
}

// judge goes by the runbook's checks.
func (d *demo) judge(e envelope, data capture) error {
	if e.Error != nil {
		return fmt.Errorf("%s: %s", e.Error.Code, e.Error.Message)
	}
	big := data.Tags.Big
	d.say("   traced %s (%s): %d waves in %s", data.Kernel, data.MatchConfidence, big.Waves, big.KeptDir)
	if big.Arch != nil {
		d.say("   %d VGPRs, %d waves a CU (limited by %s); most stall cycles: %s", *big.Arch, big.Occupancy, big.Limiter, big.TopStallType)
	}
	if small := data.Tags.Small; small.State != "" {
		d.say("   small problem: %s, %d workgroups, %d waves", small.State, small.Grid.Workgroups, small.Waves)
	}
	for _, p := range data.PMC {
		var list []string
		for _, c := range p.Values {
			list = append(list, fmt.Sprintf("%s %.0f", c.Name, c.Value))
		}
		d.say("   counters: %s", strings.Join(list, ", "))
	}
	for _, w := range e.Warnings {
		d.say("   warning %s: %s", w.Code, w.Message)
	}
	failed := 0
	for _, c := range data.Checks {
		mark := "ok  "
		if !c.Pass {
			mark = "FAIL"
			failed++
		}
		d.say("   %s %-18s %s (want %s)", mark, c.ID, c.Value, c.Want)
	}
	if failed > 0 || len(data.Checks) == 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(data.Checks))
	}
	d.kept = "flyprof://files/" + data.RunID + "/" + big.KeptDir
	return nil
}

// stalls reads the trace's code.json as a resource and shows the worst instructions.
func (d *demo) stalls(ctx context.Context) error {
	text, err := d.read(ctx, d.kept+"/code.json")
	if err != nil {
		return err
	}
	var file struct {
		Code   [][]any         `json:"code"`
		Header json.RawMessage `json:"header"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("code.json: %w", err)
	}
	type row struct {
		isa, source string
		hit, stall  float64
	}
	var rows []row
	for _, cells := range file.Code {
		if len(cells) < 10 {
			continue
		}
		isa, _ := cells[0].(string)
		source, _ := cells[3].(string)
		hit, _ := cells[6].(float64)
		stall, _ := cells[8].(float64)
		rows = append(rows, row{isa, source, hit, stall})
	}
	if len(rows) == 0 {
		return errors.New("code.json has no instruction")
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.stall, a.stall) })
	d.say("   %12s %9s  instruction", "stall cycles", "hitcount")
	for _, r := range rows[:min(5, len(rows))] {
		d.say("   %12.0f %9.0f  %-44s %s", r.stall, r.hit, r.isa, tail(r.source))
	}
	return nil
}

// tail is the end of a source chain's first place.
func tail(source string) string {
	first, _, _ := strings.Cut(source, " -> ")
	if i := strings.LastIndexByte(first, '/'); i >= 0 {
		first = first[i+1:]
	}
	return first
}

// read reads a whole text resource, page by page.
func (d *demo) read(ctx context.Context, uri string) ([]byte, error) {
	d.say("-> resources/read %s", uri)
	var all []byte
	for offset := int64(0); ; {
		var req mcp.ReadResourceRequest
		req.Params.URI = fmt.Sprintf("%s?offset=%d", uri, offset)
		res, err := d.client.ReadResource(ctx, req)
		if err != nil {
			return nil, err
		}
		if len(res.Contents) != 1 {
			return nil, fmt.Errorf("%s has %d contents", uri, len(res.Contents))
		}
		page, ok := res.Contents[0].(mcp.TextResourceContents)
		if !ok {
			return nil, fmt.Errorf("%s is no text", uri)
		}
		all = append(all, page.Text...)
		next, _ := page.Meta["flyprof/next_offset"].(float64)
		if int64(next) <= offset {
			return all, nil
		}
		offset = int64(next)
	}
}

// small captures a grid of few workgroups: the run itself tries again where the occupancy of the first trace shows work.
func (d *demo) small(ctx context.Context) error {
	e, err := d.call(ctx, "flyprof_capture", map[string]any{"kernel": d.o.Kernel, "shape": d.o.Small})
	if err != nil {
		return err
	}
	e, data, err := d.wait(ctx, e)
	if err != nil {
		return err
	}
	for _, a := range data.Attempts {
		d.say("   attempt %d: CU %d, shader engines %s: %s: %s", a.N, a.CU, a.Mask, a.Result, a.Why)
	}
	if e.Error != nil {
		return fmt.Errorf("%s: %s", e.Error.Code, e.Error.Message)
	}
	return nil
}

// empty fixes CU and shader engine, as hand-written job files do, so that a small grid misses them; then it follows the first
// action of the error.
func (d *demo) empty(ctx context.Context) error {
	e, err := d.call(ctx, "flyprof_capture", map[string]any{"kernel": d.o.Kernel, "shape": d.o.Small, "att_target_cu": 1, "att_shader_engine_mask": "0x1"})
	if err != nil {
		return err
	}
	if e, _, err = d.wait(ctx, e); err != nil {
		return err
	}
	if e.Error == nil || e.Error.Code != "EMPTY_ATT" {
		return fmt.Errorf("%s at %s was not answered with EMPTY_ATT", d.o.Kernel, d.o.Small)
	}
	d.say("   %s (exit %d): %s", e.Error.Code, e.Error.ExitCode, e.Error.Message)
	if e, err = d.follow(ctx, e.Error.NextActions[0]); err != nil {
		return err
	}
	e, data, err := d.wait(ctx, e)
	if err != nil {
		return err
	}
	return d.judge(e, data)
}
