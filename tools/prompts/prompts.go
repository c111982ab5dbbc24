// Package prompts gives the MCP prompts: messages that teach the loop with the caller's kernel or run filled in, and the calls written
// out. Whatever comes from a caller, a run or a worktree stands in them as a quoted value.
package prompts

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/resources"
	"github.com/flyprof/flyprof-mcp/tools"
)

// Prompt is the definition of one prompt.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	get                      func(p *Prompts, ctx context.Context, args map[string]string) (answer, error)
}

// Argument is one argument of a prompt. All are texts.
type Argument struct {
	Name, Description string
	Required          bool
	// Max is the longest value, in bytes.
	Max int
}

// answer is what a prompt gives: what it is about, the message, and the run whose envelope goes with it.
type answer struct {
	description, text string
	uri, envelope     string
}

const maxRunID = 200

// All gives the definitions of all prompts.
func All() []Prompt {
	run := Argument{Name: "run", Description: "run_id of the capture, as answers and flyprof://runs give it", Required: true, Max: maxRunID}
	return []Prompt{
		{Name: "capture_kernel", Title: "Capture a kernel", Description: "Take a thread trace of one FlyDSL kernel step by step, with the calls written out and the shape judged", get: (*Prompts).captureKernel,
			Arguments: []Argument{
				{Name: "kernel", Description: "Kernel as flyprof_list names it, or a symbol that its test launches", Required: true, Max: request.MaxKernel},
				{Name: "shape", Description: "Problem shape in the test's own form, such as 8192,8192,bf16", Max: 400},
				{Name: "gpu", Description: "GPU index; default the configured one", Max: 8},
			}},
		{Name: "diagnose_empty_att", Title: "Explain an empty trace", Description: "Find out why the trace of a run is empty, or why its capture failed, and what to do next", Arguments: []Argument{run}, get: (*Prompts).diagnose},
		{Name: "explain_trace", Title: "Explain a trace", Description: "Read the trace of a run: where its time goes, by which instructions and source lines", get: (*Prompts).explain,
			Arguments: []Argument{run, {Name: "tag", Description: "Which trace of the run: big (default) or small", Max: 16}}},
	}
}

// Prompts gives the prompts of one server. It is safe for concurrent use.
type Prompts struct {
	// Served are the tools that calls may name; others are written as command lines.
	Served    tools.Served
	Worktrees capture.Preparer
	Source    *resources.Source
	Log       *slog.Logger

	listing listing
}

// Register adds the prompts to an MCP server.
func (p *Prompts) Register(srv *server.MCPServer) {
	for _, def := range All() {
		options := []mcp.PromptOption{mcp.WithPromptTitle(def.Title), mcp.WithPromptDescription(def.Description)}
		for _, a := range def.Arguments {
			about := []mcp.ArgumentOption{mcp.ArgumentDescription(a.Description)}
			if a.Required {
				about = append(about, mcp.RequiredArgument())
			}
			options = append(options, mcp.WithArgument(a.Name, about...))
		}
		srv.AddPrompt(mcp.NewPrompt(def.Name, options...), func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			args, err := p.arguments(ctx, def, req.Params.Arguments)
			if err != nil {
				return nil, err
			}
			a, err := def.get(p, ctx, args)
			if err != nil {
				return nil, err
			}
			messages := []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(a.text))}
			if a.envelope != "" {
				messages = append(messages, mcp.NewPromptMessage(mcp.RoleUser, mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: a.uri, MIMEType: "application/json", Text: a.envelope})))
			}
			return mcp.NewGetPromptResult(a.description, messages), nil
		})
	}
}

// arguments holds the caller's arguments to the definition. An empty one is as good as none.
func (p *Prompts) arguments(ctx context.Context, def Prompt, given map[string]string) (map[string]string, error) {
	var names []string
	known := map[string]Argument{}
	for _, a := range def.Arguments {
		names = append(names, a.Name)
		known[a.Name] = a
	}
	args := map[string]string{}
	for name, value := range given {
		a, ok := known[name]
		value = strings.TrimSpace(value)
		switch {
		case !ok:
			e := refuse(name, value, names, "%s takes no argument %s; it takes %s", def.Name, quote(name), strings.Join(names, ", "))
			if closest := near.Nearest(name, names); closest != "" {
				e.Message += "; " + closest + " is nearest"
			}
			return nil, e
		case len(value) > a.Max:
			return nil, refuse(name, value, nil, "%s of %s is longer than %d bytes", name, def.Name, a.Max)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			return nil, refuse(name, value, nil, "%s of %s is %s, and may hold no control characters", name, def.Name, quote(value))
		case value != "":
			args[name] = value
		}
	}
	for _, a := range def.Arguments {
		if a.Required && args[a.Name] == "" {
			there := p.choices(ctx, a.Name, args)
			return nil, refuse(a.Name, "", there, "%s needs the argument %s: %s. %s", def.Name, a.Name, a.Description, thereIs(there))
		}
	}
	return args, nil
}

// maxAvailable bounds how many choices an error names.
const maxAvailable = 10

// refuse is the error about an argument: which, its value, and what there is.
func refuse(argument, value string, available []string, format string, args ...any) *wire.Error {
	return &wire.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf(format, args...), Data: struct {
		Argument  string   `json:"argument"`
		Value     string   `json:"value"`
		Available []string `json:"available,omitempty"`
	}{wire.Shorten(argument, 100), wire.Shorten(value, 200), available[:min(len(available), maxAvailable)]}}
}

// thereIs names choices in words.
func thereIs(available []string) string {
	if len(available) == 0 {
		return "There are none."
	}
	var quoted []string
	for _, v := range available[:min(len(available), maxAvailable)] {
		quoted = append(quoted, quote(v))
	}
	more := ""
	if n := len(available) - len(quoted); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "There are: " + strings.Join(quoted, ", ") + more + "."
}

// refusal turns an error of core about an argument into one of the prompt. Where no choices are given the error's own are named.
func refusal(argument, value string, available []string, err error) error {
	e := envelope.As(err)
	if e.Code == envelope.Internal {
		return err
	}
	message := fmt.Sprintf("%s %s: %s: %s", argument, quote(value), e.Code, visible(e.Message))
	if e.Evidence.Allowed != "" {
		message += "; allowed: " + visible(e.Evidence.Allowed)
	}
	if available == nil {
		for _, c := range e.Candidates {
			available = append(available, c.Kernel)
		}
		if available == nil {
			available = e.Evidence.ValidNames
		}
		message += ". " + thereIs(available)
	}
	return refuse(argument, value, available, "%s", message)
}

// listing holds the names of the worktree's kernels for a moment: completion asks for them with every key.
type listing struct {
	mu    sync.Mutex
	read  time.Time
	names []string
}

const (
	// keepListing is how long the names are taken for completion.
	keepListing = 30 * time.Second
	// listLimit bounds how long completion reads the worktree.
	listLimit = 2 * time.Second
)

// kernelNames gives the names for completion, none where the worktree cannot be read. Of those who ask at the same time one reads.
func (p *Prompts) kernelNames(ctx context.Context) []string {
	p.listing.mu.Lock()
	defer p.listing.mu.Unlock()
	if !p.listing.read.IsZero() && time.Since(p.listing.read) < keepListing {
		return p.listing.names
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	_, list, err := p.Worktrees.List(ctx, "")
	if err != nil {
		return nil
	}
	p.listing.names, p.listing.read = nil, time.Now()
	for _, k := range list.Kernels {
		p.listing.names = append(p.listing.names, k.Name)
	}
	return p.listing.names
}
