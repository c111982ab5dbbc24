package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

type data struct {
	Kernel string   `json:"kernel"`
	List   []string `json:"list"`
}

// quiet is a host whose log goes nowhere.
func quiet() Host {
	served, _ := every().Filter(Selection{})
	return Host{Renderer: served.Renderer(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func capturing(fn func(ctx context.Context, in request.Capture) (envelope.Reply[data], error)) Tool {
	return New(Def{Title: "x", Toolset: ToolsetCapture, generated: true}, fn)
}

// TestArguments: what models send is read as it was meant, and what cannot be names field, value and what is allowed.
func TestArguments(t *testing.T) {
	var got request.Capture
	tool := capturing(func(_ context.Context, in request.Capture) (envelope.Reply[data], error) {
		got = in
		return envelope.Reply[data]{Data: &data{Kernel: in.Kernel}}, nil
	})
	for args, check := range map[string]func() bool{
		`{"kernel":"a","gpu":"3"}`:                     func() bool { return got.GPU != nil && *got.GPU == 3 },
		`{"kernel":"a","with_pmc":"true"}`:             func() bool { return got.WithPMC },
		`{"kernel":"a","args":"[\"-M\",\"8\"]"}`:       func() bool { return len(got.Args) == 2 && got.Args[1] == "8" },
		`{"kernel":"a","shape":null}`:                  func() bool { return got.Shape == "" },
		`{"kernel":"a","att_buffer_size":"0x6000000"}`: func() bool { return got.ATTBufferSize == 0x6000000 },
	} {
		got = request.Capture{}
		if a := tool.Call(t.Context(), json.RawMessage(args), quiet()); a.Failed() || !check() {
			t.Errorf("%s gave %+v: %s", args, got, a.JSON)
		}
	}
	for args, says := range map[string][]string{
		`{}`:                                             {"kernel"},
		`{"kernel":"a","wait":3}`:                        {`"field":"wait"`, "wait_s"},
		`{"kernel":"a","gpu":300}`:                       {`"field":"gpu"`, "300", "255"},
		`{"kernel":"a","gpu":1.5}`:                       {`"field":"gpu"`, "1.5"},
		`{"kernel":"a","tag":"huge"}`:                    {`"field":"tag"`, "huge", "small", "both"},
		`{"kernel":"a","args":{"x":1}}`:                  {`"field":"args"`},
		`{"kernel":"` + strings.Repeat("k", 3000) + `"}`: {`"field":"kernel"`, "2000"},
		`5`:          {"BAD_ARGS"},
		`{"kernel":`: {"BAD_ARGS"},
	} {
		a := tool.Call(t.Context(), json.RawMessage(args), quiet())
		if a.Code != envelope.BadArgs || a.Exit != 78 {
			t.Errorf("%.80s: %s", args, a.JSON)
		}
		for _, s := range says {
			if !strings.Contains(string(a.JSON), s) {
				t.Errorf("%.80s: the answer does not say %s: %s", args, s, a.JSON)
			}
		}
	}
}

// TestPanicAndErrors: whatever goes wrong in a handler is an envelope.
func TestPanicAndErrors(t *testing.T) {
	var nothing *data
	for name, c := range map[string]struct {
		fn   func(context.Context, request.Capture) (envelope.Reply[data], error)
		code envelope.Code
	}{
		"panic": {func(context.Context, request.Capture) (envelope.Reply[data], error) {
			return envelope.Reply[data]{Data: &data{Kernel: nothing.Kernel}}, nil
		}, envelope.Internal},
		"plain error": {func(context.Context, request.Capture) (envelope.Reply[data], error) {
			return envelope.Reply[data]{}, errors.New("odd")
		}, envelope.Internal},
		"catalogue": {func(context.Context, request.Capture) (envelope.Reply[data], error) {
			return envelope.Reply[data]{}, envelope.Build(envelope.GPUBusy, envelope.Facts{})
		}, envelope.GPUBusy},
	} {
		a := capturing(c.fn).Call(t.Context(), json.RawMessage(`{"kernel":"a"}`), quiet())
		var wire envelope.Wire[data]
		if err := json.Unmarshal(a.JSON, &wire); err != nil || wire.OK || wire.Error.Code != c.code || a.Code != c.code || len(wire.Error.NextActions) == 0 {
			t.Errorf("%s: %v %s", name, err, a.JSON)
		}
	}
}

// TestCancelled: a call whose caller went away is answered as cancelled and is no internal error, however deep it was.
func TestCancelled(t *testing.T) {
	for name, err := range map[string]error{
		"as it is": context.Canceled, "wrapped": fmt.Errorf("asking: %w", context.Canceled), "completed": envelope.As(context.Canceled),
		"completed twice": envelope.Build(envelope.Internal, envelope.Facts{Message: "x"}).WithCause(envelope.As(context.Canceled)),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		tool := capturing(func(context.Context, request.Capture) (envelope.Reply[data], error) {
			cancel()
			return envelope.Reply[data]{}, err
		})
		var log strings.Builder
		host := quiet()
		host.Log = slog.New(slog.NewTextHandler(&log, nil))
		if a := tool.Call(ctx, json.RawMessage(`{"kernel":"a"}`), host); !strings.Contains(string(a.JSON), `"CANCELLED"`) || log.Len() > 0 {
			t.Errorf("%s: %s %s", name, a.JSON, log.String())
		}
	}
}

// TestSize: an answer that is too large is cut and says so; it stays an envelope of the tool's own schema.
func TestSize(t *testing.T) {
	tool := capturing(func(context.Context, request.Capture) (envelope.Reply[data], error) {
		d := &data{Kernel: "softmax"}
		for range 5000 {
			d.List = append(d.List, "a line that is repeated")
		}
		return envelope.Reply[data]{Data: d}, nil
	})
	a := tool.Call(t.Context(), json.RawMessage(`{"kernel":"a"}`), quiet())
	var wire envelope.Wire[data]
	if err := json.Unmarshal(a.JSON, &wire); err != nil || !wire.OK || len(a.JSON) > MaxSuccessChars {
		t.Fatalf("%v, %d bytes", err, len(a.JSON))
	}
	if wire.Truncated == nil || wire.Truncated.Total != 5000 || wire.Truncated.Shown != len(wire.Data.List) || len(wire.Data.List) == 0 {
		t.Errorf("truncated %+v with %d entries", wire.Truncated, len(wire.Data.List))
	}
	long := capturing(func(context.Context, request.Capture) (envelope.Reply[data], error) {
		f := envelope.Facts{Message: strings.Repeat("m", 5000), LogTail: make([]string, 200)}
		for i := range f.LogTail {
			f.LogTail[i] = strings.Repeat("l", 500)
		}
		return envelope.Reply[data]{}, envelope.Build(envelope.WorkloadFailed, f)
	})
	if a := long.Call(t.Context(), json.RawMessage(`{"kernel":"a"}`), quiet()); len(a.JSON) > MaxErrorChars || !json.Valid(a.JSON) {
		t.Errorf("an error of %d bytes", len(a.JSON))
	}
}

// TestPlatform: a capture on real hardware needs Linux, and says so through the tool.
func TestPlatform(t *testing.T) {
	d := Deps{Runs: &capture.Service{Prepare: capture.Preparer{OS: "darwin"}.Prepare}}
	tool, _ := All(d).ByVerb(request.VerbCapture)
	a := tool.Call(t.Context(), json.RawMessage(`{"kernel":"softmax"}`), quiet())
	if a.Code != envelope.PlatformUnsupported || a.Exit != 69 {
		t.Errorf("%s", a.JSON)
	}
}

// TestNotServed: an action of a tool that is left out asks the user and keeps the command line.
func TestNotServed(t *testing.T) {
	served, err := every().Filter(Selection{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	w, ok := served.Renderer().Render(envelope.Action{Kind: envelope.CallTool, Args: request.Capture{Kernel: "softmax", Shape: "8,8"}, Reason: "captures"})
	if !ok || w.Action != envelope.AskUser || w.Tool != "" || !strings.Contains(w.Reason, "flyprof_capture") || strings.Join(w.Argv, " ") != "flyprof-mcp capture softmax --shape 8,8" {
		t.Errorf("%v %+v", ok, w)
	}
}

func TestArgv(t *testing.T) {
	gpu := 2
	for want, args := range map[string]request.Args{
		"flyprof-mcp capture softmax --shape 8,8 --args=-M --args=8 --tag both --with-pmc --gpu 2": request.Capture{Kernel: "softmax", Shape: "8,8", Args: []string{"-M", "8"}, Tag: "both", WithPMC: true, GPU: &gpu},
		"flyprof-mcp status a-b --wait-s 2": request.Status{RunID: "a-b", WaitS: &gpu},
		"flyprof-mcp read flyprof://runs":   request.Read{URI: "flyprof://runs"},
		"flyprof-mcp doctor":                request.Doctor{},
		"flyprof-mcp capture -- -odd":       request.Capture{Kernel: "-odd"},
	} {
		if got := strings.Join(Argv(args), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCommandLineSettings: a next call has the settings of the command line that it follows, and its own arguments before them.
func TestCommandLineSettings(t *testing.T) {
	gpu := 2
	r := CommandLine("flyprof", [][]string{{"--simulate=gfx942"}, {"--gpu", "1"}, {"--worktree", "/w"}, {"--allow-path", "/a"}, {"--allow-path", "/b"}})
	for want, args := range map[string]request.Args{
		"flyprof list --simulate=gfx942 --gpu 1 --worktree /w --allow-path /a --allow-path /b":            request.List{},
		"flyprof capture k --gpu 2 --worktree /v --simulate=gfx942 --allow-path /a --allow-path /b":       request.Capture{Kernel: "k", GPU: &gpu, Worktree: "/v"},
		"flyprof capture --simulate=gfx942 --gpu 1 --worktree /w --allow-path /a --allow-path /b -- -odd": request.Capture{Kernel: "-odd"},
	} {
		if w, ok := r.Render(envelope.Action{Kind: envelope.CallTool, Args: args}); !ok || strings.Join(w.Argv, " ") != want {
			t.Errorf("%q, want %q", strings.Join(w.Argv, " "), want)
		}
	}
}

func FuzzCall(f *testing.F) {
	tool := capturing(func(_ context.Context, in request.Capture) (envelope.Reply[data], error) {
		return envelope.Reply[data]{Data: &data{Kernel: in.Kernel}}, nil
	})
	for _, seed := range []string{`{"kernel":"a"}`, `{"kernel":"a","gpu":"0x1"}`, `[]`, `null`, `{"kernel":{"kernel":[1e999]}}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		a := tool.Call(t.Context(), args, quiet())
		var wire envelope.Wire[data]
		if err := json.Unmarshal(a.JSON, &wire); err != nil || wire.OK == a.Failed() {
			t.Fatalf("%v: %s", err, a.JSON)
		}
	})
}
