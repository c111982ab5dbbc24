// Package wire is what the transports share: messages, their answers by the MCP server, progress, and what a session remembers.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Error is a JSON-RPC error with a code, for Intercept and for handlers of a server that has ReportErrors. Data is optional.
type Error struct {
	Code    int
	Message string
	// Data goes with the error where it is not nil.
	Data any
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Intercept answers methods that the library does not know, or would answer wrongly, with a result or an error (an *Error keeps its
// code). It says false for methods that are not its own.
type Intercept func(ctx context.Context, method string, params json.RawMessage) (result any, ok bool, err error)

// Answerer answers messages.
type Answerer struct {
	Server *server.MCPServer
	// Intercept may be nil.
	Intercept Intercept
	Log       *slog.Logger
}

// Answer has the server answer a request, or take a notification, whose answer means nothing. A panic becomes an internal error. ctx
// has the session (MCPServer.WithContext) and, where the client asked for it, WithProgress.
func (a Answerer) Answer(ctx context.Context, raw []byte, m Message) (response Frame) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.ErrorContext(ctx, "panic while answering", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			response = Failure(m.ID, mcp.INTERNAL_ERROR, fmt.Sprintf("panic: %v", p))
		}
	}()
	if a.Intercept != nil && m.Kind == Request {
		if result, ok, err := a.Intercept(ctx, m.Method, m.Params); ok {
			return interceptReply(m.ID, result, err)
		}
	}
	var coded *Error
	switch r := a.Server.HandleMessage(context.WithValue(ctx, codedKey{}, &coded), raw).(type) {
	case mcp.JSONRPCResponse:
		return success(m.ID, r.Result)
	case mcp.JSONRPCError:
		if coded != nil {
			return coded.frame(m.ID)
		}
		return Frame{JSONRPC: mcp.JSONRPC_VERSION, ID: orNull(m.ID), Error: &r.Error}
	}
	// The library also says nothing to what is no proper request; someone waits for an answer all the same.
	return Failure(m.ID, mcp.INVALID_REQUEST, "not a valid request")
}

type codedKey struct{}

// ReportErrors makes the errors of handlers keep their codes: the library answers whatever a handler returns as an internal error.
func ReportErrors(h *server.Hooks) {
	h.AddOnError(func(ctx context.Context, _ any, _ mcp.MCPMethod, _ any, err error) {
		var coded *Error
		if errors.As(err, &coded) {
			AnswerWith(ctx, coded)
		}
	})
}

// AnswerWith has the failed request of ctx answered with an error of one's own, for hooks.
func AnswerWith(ctx context.Context, e *Error) {
	if slot, ok := ctx.Value(codedKey{}).(**Error); ok {
		*slot = e
	}
}

func (e *Error) frame(id json.RawMessage) Frame {
	f := Failure(id, e.Code, e.Message)
	f.Error.Data = e.Data
	return f
}

func interceptReply(id json.RawMessage, result any, err error) Frame {
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return coded.frame(id)
	case err != nil:
		return Failure(id, mcp.INTERNAL_ERROR, err.Error())
	}
	return success(id, result)
}

// Frame is a reply with the request's id as the client wrote it: decoding it would round large numbers.
type Frame struct {
	JSONRPC string                   `json:"jsonrpc"`
	ID      json.RawMessage          `json:"id"`
	Result  any                      `json:"result,omitempty"`
	Error   *mcp.JSONRPCErrorDetails `json:"error,omitempty"`
}

func success(id json.RawMessage, result any) Frame {
	if result == nil {
		result = struct{}{}
	}
	return Frame{JSONRPC: mcp.JSONRPC_VERSION, ID: orNull(id), Result: result}
}

// Failure is an error reply; a nil id becomes null.
func Failure(id json.RawMessage, code int, message string) Frame {
	return Frame{JSONRPC: mcp.JSONRPC_VERSION, ID: orNull(id), Error: &mcp.JSONRPCErrorDetails{Code: code, Message: message}}
}

func orNull(id json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(id)) == 0 {
		return json.RawMessage("null")
	}
	return id
}
