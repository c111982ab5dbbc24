package tools

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

type data struct {
	Kernel string   `json:"kernel"`
	List   []string `json:"list"`
}

func TestSmoke(t *testing.T) {
	tool := New(Def{Title: "x"}, func(ctx context.Context, in request.Capture) (envelope.Reply[data], error) {
		return envelope.Reply[data]{Data: &data{Kernel: in.Kernel}}, nil
	})
	served, _ := Inventory{tool}.Filter(nil, false)
	for _, args := range []string{`{"kernel":"softmax","wait":3}`, `{"kernel":"a","gpu":"0x1","args":"[\"a\"]","tag":"BIG"}`, `{"kernel":"a","gpu":300}`, `{"kernel":"a","att_shader_engine_mask":"x"}`, `{}`, `5`} {
		a := tool.Call(t.Context(), json.RawMessage(args), Host{Renderer: served.Renderer()})
		t.Log(string(a.JSON))
	}
	t.Log(len(tool.InputSchema), len(tool.OutputSchema), string(tool.InputSchema))
	t.Log(string(tool.OutputSchema))
}
