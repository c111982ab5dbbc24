package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// Payloads that are valid of their kind: a PNG of one pixel, and a WAV without a sample.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
)

// schema2020 uses what only JSON Schema 2020-12 has; the suite looks whether it arrives as it is.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

type handler = server.ToolHandlerFunc

func answer(content ...mcp.Content) handler {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// tools are the fixtures by the names that the scenarios call.
var tools = map[string]handler{
	"test_simple_text":       answer(mcp.NewTextContent("This is a simple text response for testing.")),
	"test_image_content":     answer(mcp.NewImageContent(png, "image/png")),
	"test_audio_content":     answer(mcp.NewAudioContent(wav, "audio/wav")),
	"test_embedded_resource": answer(embedded("test://embedded-resource", "This is an embedded resource content.")),
	"test_multiple_content_types": answer(mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(png, "image/png"),
		embedded("test://mixed-content-resource", `{"test":"data","value":123}`)),
	"test_error_handling": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	},
	"test_tool_with_progress": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, n := range []float64{0, 50, 100} {
			wire.Progress(ctx)(n, 100, fmt.Sprintf("Completed step %v of 100", n))
			time.Sleep(50 * time.Millisecond) // as the scenario asks
		}
		return mcp.NewToolResultText("done"), nil
	},
	"test_tool_with_logging": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := logTo(ctx, text); err != nil {
				return nil, err
			}
			time.Sleep(50 * time.Millisecond)
		}
		return mcp.NewToolResultText("logged"), nil
	},
	"test_logging_tool": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("logged"), logTo(ctx, "said by the tool")
	},
	"test_missing_capability": answer(mcp.NewTextContent("answered before it is called")),
	"test_reconnection":       answer(mcp.NewTextContent("done")),
	"test_trigger_tool_change": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		srv := server.ServerFromContext(ctx)
		srv.AddTool(mcp.NewTool("test_added_later"), answer(mcp.NewTextContent("x")))
		srv.DeleteTools("test_added_later")
		return mcp.NewToolResultText("changed"), nil
	},
	"test_trigger_prompt_change": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		srv := server.ServerFromContext(ctx)
		srv.AddPrompt(mcp.NewPrompt("test_added_later"), prompt(mcp.NewTextContent("x")))
		srv.DeletePrompts("test_added_later")
		return mcp.NewToolResultText("changed"), nil
	},
}

func logTo(ctx context.Context, text string) error {
	return server.ServerFromContext(ctx).SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "conformance", text))
}

func embedded(uri, text string) mcp.Content {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: text})
}

func prompt(content ...mcp.Content) server.PromptHandlerFunc {
	return func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var messages []mcp.PromptMessage
		for _, c := range content {
			messages = append(messages, mcp.NewPromptMessage(mcp.RoleUser, c))
		}
		return mcp.NewGetPromptResult("a fixture", messages), nil
	}
}

func addFixtures(srv *server.MCPServer) {
	for name, h := range tools {
		srv.AddTool(mcp.NewTool(name, mcp.WithDescription("A fixture of the conformance suite.")), h)
	}
	for name, all := range rounds {
		srv.AddTool(mcp.NewTool(name, mcp.WithDescription("A fixture of the conformance suite.")), askingTool(all))
	}
	srv.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "A fixture of the conformance suite.", json.RawMessage(schema2020)), tools["test_simple_text"])
	srv.AddTool(mcp.NewToolWithRawSchema("test_x_mcp_header", "A fixture of the conformance suite.",
		json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)), tools["test_simple_text"])

	text := func(uri, mime, body string) server.ResourceHandlerFunc {
		return func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: body}}, nil
		}
	}
	for uri, body := range map[string]string{"test://static-text": "This is the content of the static text resource.", "test://watched-resource": "watched", "test://example-resource": "an example"} {
		srv.AddResource(mcp.NewResource(uri, uri, mcp.WithMIMEType("text/plain")), text(uri, "text/plain", body))
	}
	srv.AddResource(mcp.NewResource("test://static-binary", "test://static-binary", mcp.WithMIMEType("image/png")), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: png}}, nil
	})
	srv.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "test-template", mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := r.Params.Arguments["id"]
			if list, ok := id.([]string); ok && len(list) == 1 {
				id = list[0]
			}
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": fmt.Sprintf("Data for ID: %v", id)})
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json", Text: string(body)}}, err
		})

	srv.AddPrompt(mcp.NewPrompt("test_simple_prompt", mcp.WithPromptDescription("A fixture of the conformance suite.")), prompt(mcp.NewTextContent("This is a simple prompt for testing.")))
	described := mcp.WithPromptDescription("A fixture of the conformance suite.")
	srv.AddPrompt(mcp.NewPrompt("test_input_required_result_prompt", described), askingPrompt)
	two := []mcp.PromptOption{described, mcp.WithArgument("arg1", mcp.RequiredArgument(), mcp.ArgumentDescription("first")), mcp.WithArgument("arg2", mcp.RequiredArgument(), mcp.ArgumentDescription("second"))}
	srv.AddPrompt(mcp.NewPrompt("test_prompt_with_image", described), prompt(mcp.NewImageContent(png, "image/png"), mcp.NewTextContent("Please analyze the image above.")))
	srv.AddPrompt(mcp.NewPrompt("test_prompt_with_arguments", two...), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		body := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(body))}), nil
	})
	srv.AddPrompt(mcp.NewPrompt("test_prompt_with_embedded_resource", described, mcp.WithArgument("resourceUri", mcp.RequiredArgument())), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{
			mcp.NewPromptMessage(mcp.RoleUser, embedded(r.Params.Arguments["resourceUri"], "Embedded resource content for testing.")),
			mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Please process the embedded resource above.")),
		}), nil
	})
}
