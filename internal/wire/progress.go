package wire

import (
	"context"
	"encoding/json"
	"math"
	"sync"
)

// ProgressFunc tells the client how far a call is. progress grows from call to call (what does not grow is not sent);
// total is 0 where it is not known; message is for people.
type ProgressFunc func(progress, total float64, message string)

type progressKey struct{}

// Progress gives the function that reports progress of the request in ctx. It is never nil: it does nothing where the
// client asked for no progress. Reports are written in order, before the result; after the result or a cancel they are
// dropped.
func Progress(ctx context.Context) ProgressFunc {
	if f, ok := ctx.Value(progressKey{}).(ProgressFunc); ok {
		return f
	}
	return func(float64, float64, string) {}
}

// WithProgress gives a context whose requests report by f, for other transports and tests.
func WithProgress(ctx context.Context, f ProgressFunc) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

type progressFrame struct {
	JSONRPC string         `json:"jsonrpc"`
	Method  string         `json:"method"`
	Params  progressParams `json:"params"`
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// Reporter makes the function that reports the progress of one call under its token. write gets each frame, one at a time and in order;
// it decides whether the call still takes any.
func Reporter(token json.RawMessage, write func(frame []byte)) ProgressFunc {
	var mu sync.Mutex
	last := math.Inf(-1)
	return func(progress, total float64, message string) {
		if math.IsNaN(progress) || math.IsInf(progress, 0) || math.IsNaN(total) || math.IsInf(total, 0) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if progress <= last {
			return
		}
		last = progress
		raw, err := json.Marshal(progressFrame{"2.0", "notifications/progress", progressParams{token, progress, total, Shorten(message, 500)}})
		if err != nil {
			return
		}
		write(raw)
	}
}

// ProgressToken gives the token of a request that asks for progress, as the client wrote it; else nil.
func ProgressToken(m Message) json.RawMessage {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return nil
	}
	if token, ok := CanonicalID(p.Meta.Token); ok {
		return token
	}
	return nil
}
