package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// question is what a fixture asks of the client in a result of the type input_required.
type question struct {
	key string
	// method is the request that the client would answer; field and kind are of the form of an elicitation.
	method            mcp.MCPMethod
	text, field, kind string
}

var (
	userName = question{"user_name", mcp.MethodElicitationCreate, "What is your name?", "name", "string"}
	confirm  = question{"confirm", mcp.MethodElicitationCreate, "Please confirm", "ok", "boolean"}
	roots    = question{key: "client_roots", method: mcp.MethodListRoots}
	capital  = question{key: "capital_question", method: mcp.MethodSamplingCreateMessage, text: "What is the capital of France?"}
	greeting = question{key: "greeting", method: mcp.MethodSamplingCreateMessage, text: "Generate a greeting"}
	step1    = question{"step1", mcp.MethodElicitationCreate, "Step 1: What is your name?", "name", "string"}
	step2    = question{"step2", mcp.MethodElicitationCreate, "Step 2: What is your favorite color?", "color", "string"}
	about    = question{"user_context", mcp.MethodElicitationCreate, "What context should the prompt use?", "context", "string"}
)

// rounds are the tools that ask: for each, the questions round by round.
var rounds = map[string][][]question{
	"test_input_required_result_elicitation":     {{userName}},
	"test_input_required_result_sampling":        {{capital}},
	"test_input_required_result_list_roots":      {{roots}},
	"test_input_required_result_request_state":   {{confirm}},
	"test_input_required_result_multiple_inputs": {{userName, greeting, roots}},
	"test_input_required_result_multi_round":     {{step1}, {step2}},
	"test_input_required_result_tampered_state":  {{confirm}},
	"test_input_required_result_capabilities":    {{userName, capital}},
	"test_streaming_elicitation":                 {{userName}},
}

// promptRounds are those of the prompt that asks.
var promptRounds = [][]question{{about}}

// within says whether a client with these capabilities can answer.
func (q question) within(c *mcp.ClientCapabilities) bool {
	switch q.method {
	case mcp.MethodElicitationCreate:
		return c != nil && c.Elicitation != nil
	case mcp.MethodSamplingCreateMessage:
		return c != nil && c.Sampling != nil
	default:
		return c != nil && c.Roots != nil
	}
}

func (q question) addTo(b *server.InputRequestBuilder) {
	switch q.method {
	case mcp.MethodElicitationCreate:
		b.Elicit(q.key, mcp.ElicitationParams{Mode: mcp.ElicitationModeForm, Message: q.text, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{q.field: map[string]any{"type": q.kind}}, "required": []string{q.field},
		}})
	case mcp.MethodSamplingCreateMessage:
		b.Sample(q.key, mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(q.text)}}})
	default:
		b.Roots(q.key)
	}
}

func (q question) answered(in mcp.InputResponses) bool {
	switch q.method {
	case mcp.MethodElicitationCreate:
		r := server.ElicitationResponse(in, q.key)
		return r != nil && r.Action == mcp.ElicitationResponseActionAccept
	case mcp.MethodSamplingCreateMessage:
		r := server.SamplingResponse(in, q.key)
		return r != nil && r.Content != nil
	default:
		return server.RootsResponse(in, q.key) != nil
	}
}

// next gives what is to be asked now, nil when all is answered. The state names the round that the client answers; without one it is
// the first. What the client cannot answer is not asked.
func next(all [][]question, in mcp.MultiRoundTripParams, caps *mcp.ClientCapabilities) (*server.InputRequestBuilder, error) {
	round := 0
	if in.RequestState != "" {
		var err error
		if round, err = unseal(in.RequestState); err != nil || round >= len(all) {
			return nil, errors.Join(errors.New("the request state is none of this server's"), err)
		}
	}
	ask := func(round int) *server.InputRequestBuilder {
		b := server.NewInputRequestBuilder(seal(round))
		for _, q := range all[round] {
			if q.within(caps) {
				q.addTo(b)
			}
		}
		return b
	}
	for _, q := range all[round] {
		if q.within(caps) && !q.answered(in.InputResponses) {
			return ask(round), nil
		}
	}
	if round+1 < len(all) {
		return ask(round + 1), nil
	}
	return nil, nil
}

// key seals states; clients of another process have other ones.
var key = rand.Text()

func mac(text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func seal(round int) string {
	text := strconv.Itoa(round)
	return text + "." + mac(text)
}

func unseal(state string) (int, error) {
	text, sum, _ := strings.Cut(state, ".")
	if !hmac.Equal([]byte(sum), []byte(mac(text))) {
		return 0, errors.New("its seal does not fit")
	}
	return strconv.Atoi(text)
}

// askingTool is a tool that answers when all is answered.
func askingTool(all [][]question) handler {
	return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b, err := next(all, r.Params.MultiRoundTripParams, r.Params.Meta.ClientCapabilities())
		if err != nil {
			return nil, err
		}
		if b != nil {
			return b.ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("all answered, state-ok: %d answers", len(r.Params.InputResponses))), nil
	}
}

func askingPrompt(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	b, err := next(promptRounds, r.Params.MultiRoundTripParams, r.Params.Meta.ClientCapabilities())
	if err != nil {
		return nil, err
	}
	if b != nil {
		return b.PromptResult(), nil
	}
	return mcp.NewGetPromptResult("a fixture", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("all answered"))}), nil
}
