//go:build unix

package e2e

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// modern marks the parameters of a request as one of 2026-07-28.
func modern(params map[string]any) map[string]any {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	return params
}

// update is what a notification says of a resource.
type update struct {
	URI  string
	Meta map[string]json.RawMessage `json:"_meta"`
}

// updates gives what was told so far by a method.
func (s *session) updates(method string) (out []update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.notes {
		var u update
		if n.Method == method && json.Unmarshal(n.Params, &u) == nil {
			out = append(out, u)
		}
	}
	return out
}

// hear waits until a notification of a method fits.
func (s *session) hear(method, what string, fits func(update) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !slices.ContainsFunc(s.updates(method), fits); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s was not told; the notifications are %+v", what, s.updates(method))
		}
	}
}

const updated = "notifications/resources/updated"

// prompt gives the text of a prompt.
func (s *session) prompt(name string, args map[string]string) string {
	s.t.Helper()
	m := s.request("prompts/get", map[string]any{"name": name, "arguments": args})
	if m.Error != nil {
		s.t.Fatalf("%s: %d %s", name, m.Error.Code, m.Error.Message)
	}
	var res struct {
		Messages []struct{ Content struct{ Text string } }
	}
	if err := json.Unmarshal(m.Result, &res); err != nil || len(res.Messages) == 0 {
		s.t.Fatalf("%s: %s", name, m.Result)
	}
	return res.Messages[0].Content.Text
}

var promptCall = regexp.MustCompile("`(flyprof_[a-z_]+) (\\{[^`]*\\})`")

// calls gives the tool calls that a prompt writes out, and holds them to the schemas.
func (s *session) calls(text string) (out []action) {
	s.t.Helper()
	for _, m := range promptCall.FindAllStringSubmatch(text, -1) {
		n := action{Action: "call_tool", Tool: m[1]}
		if err := json.Unmarshal([]byte(m[2]), &n.Arguments); err != nil {
			s.t.Fatalf("%s: %v", m[0], err)
		}
		s.fitsInput(n)
		out = append(out, n)
	}
	return out
}

// TestPromptsLead: whoever does what the prompts say gets from a kernel's name to its instructions.
func TestPromptsLead(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	text := s.prompt("capture_kernel", map[string]string{"kernel": "softmax", "shape": "8192,8192"})
	var last answer
	for _, n := range s.calls(text) {
		if n.Tool == "flyprof_capture_status" {
			continue // the capture is waited for below
		}
		last = s.call(n.Tool, n.Arguments)
		if !last.OK {
			t.Fatalf("%s: %s", n.Tool, last.raw)
		}
	}
	last = s.wait(last)
	id, _ := last.get("run_id").(string)
	if last.Command != "capture" || last.get("state") != "done" {
		t.Fatalf("%s", last.raw)
	}
	read := 0
	for _, n := range s.calls(s.prompt("explain_trace", map[string]string{"run": id})) {
		if a := s.call(n.Tool, n.Arguments); !a.OK {
			t.Errorf("%s %v: %s", n.Tool, n.Arguments, a.raw)
		} else if text, _ := a.get("text").(string); strings.Contains(text, "s_waitcnt") {
			read++
		}
	}
	if read == 0 {
		t.Error("no instruction is read by what explain_trace says")
	}
	if text := s.prompt("diagnose_empty_att", map[string]string{"run": id}); !strings.Contains(text, "not empty") {
		t.Error(text)
	}
}

// TestPromptOfEmptyTrace: the prompt says what the run's own envelope says, next actions included.
func TestPromptOfEmptyTrace(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "empty_att")
	a := s.capture(map[string]any{"kernel": "softmax", "shape": "64,8192"})
	if a.Error == nil || a.Error.Code != "EMPTY_ATT" {
		t.Fatalf("%s", a.raw)
	}
	text := s.prompt("diagnose_empty_att", map[string]string{"run": a.Bundle})
	calls := s.calls(text)
	for _, n := range a.Error.NextActions {
		if n.Action == "call_tool" && !slices.ContainsFunc(calls, func(c action) bool { return c.Tool == n.Tool && sameValue(c.Arguments, n.Arguments) }) {
			t.Errorf("the next action %+v is not in\n%s", n, text)
		}
	}
	if triage := s.call("flyprof_triage", map[string]any{"run_id": a.Bundle}); !strings.Contains(text, `flyprof_triage {"run_id":"`+a.Bundle+`"}`) || triage.raw == nil {
		t.Error(text)
	}
}

func sameValue(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && sameJSON(x, y)
}

func TestPromptRefusals(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	for argument, c := range map[string]struct {
		prompt string
		args   map[string]string
		there  string
	}{
		"kernel": {"capture_kernel", map[string]string{"kernel": "sofmax"}, "softmax"},
		"run":    {"explain_trace", map[string]string{"run": "none-20260101T000000Z-aaaaaa"}, "There are none"},
	} {
		m := s.request("prompts/get", map[string]any{"name": c.prompt, "arguments": c.args})
		if m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.Error.Message, argument+` "`+c.args[argument]+`"`) || !strings.Contains(m.Error.Message, c.there) {
			t.Errorf("%s: %+v", argument, m.Error)
		}
	}
}

func (s *session) complete(ref, argument map[string]any, given map[string]string) []string {
	s.t.Helper()
	m := s.request("completion/complete", map[string]any{"ref": ref, "argument": argument, "context": map[string]any{"arguments": given}})
	var res struct{ Completion struct{ Values []string } }
	if m.Error != nil || json.Unmarshal(m.Result, &res) != nil {
		s.t.Fatalf("%v: %+v", ref, m.Error)
	}
	return res.Completion.Values
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	a := s.capture(map[string]any{"kernel": "vec_add"})
	run := map[string]string{"run": a.Bundle}
	if got := s.complete(map[string]any{"type": "ref/prompt", "name": "capture_kernel"}, map[string]any{"name": "kernel", "value": "vec"}, nil); !slices.Equal(got, []string{"vec_add"}) {
		t.Errorf("kernels: %q", got)
	}
	if got := s.complete(map[string]any{"type": "ref/prompt", "name": "explain_trace"}, map[string]any{"name": "run", "value": "vec"}, nil); !slices.Equal(got, []string{a.Bundle}) {
		t.Errorf("runs: %q", got)
	}
	const files, logs = "flyprof://files/{run}/{+path}{?offset,limit,line,lines}", "flyprof://logs/{run}/{name}{?offset,limit,line,lines}"
	kept, _ := a.get("tags.big.kept_dir").(string)
	if got := s.complete(map[string]any{"type": "ref/resource", "uri": files}, map[string]any{"name": "path", "value": kept + "/code"}, run); !slices.Equal(got, []string{kept + "/code.json"}) {
		t.Errorf("files: %q", got)
	}
	if got := s.complete(map[string]any{"type": "ref/resource", "uri": logs}, map[string]any{"name": "name", "value": "disc"}, run); !slices.Equal(got, []string{"discover.log"}) {
		t.Errorf("logs: %q", got)
	}
}

// TestSubscriptions: a client of each era hears of a run's progress and of its end, in one session, and of nothing it did not ask for.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	s := simulated(t, "", "--fault", "timeout")
	id := begun(t, s)
	run, log := "flyprof://runs/"+id, "flyprof://logs/"+id+"/discover.log"
	for _, uri := range []string{run, log} {
		if m := s.request("resources/subscribe", map[string]any{"uri": uri}); m.Error != nil {
			t.Fatalf("%s: %+v", uri, m.Error)
		}
	}
	if m := s.request("resources/unsubscribe", map[string]any{"uri": log}); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	listening, ended := s.begin("subscriptions/listen", modern(map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{run, "flyprof://runs"}}}))
	s.hear("notifications/subscriptions/acknowledged", "the subscription", func(update) bool { return true })
	if m := s.request("resources/subscribe", map[string]any{"uri": "flyprof://runs/none-20260101T000000Z-aaaaaa"}); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("a run that is not there: %+v", m.Error)
	}
	if a := s.call("flyprof_capture_cancel", map[string]any{"run_id": id}); !a.OK {
		t.Fatalf("%s", a.raw)
	}
	for what, fits := range map[string]func(update) bool{
		"the end to the legacy subscription": func(u update) bool { return u.URI == run && u.Meta == nil },
		"the end to the listener":            func(u update) bool { return u.URI == run && u.Meta != nil },
		"the index to the listener":          func(u update) bool { return u.URI == "flyprof://runs" && u.Meta != nil },
	} {
		s.hear(updated, what, fits)
	}
	if text := s.text(run); !strings.Contains(text, "CANCELLED") {
		t.Errorf("after the last note the run is %s", text)
	}
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": listening}})
	// Nothing more is said for it: its result would mean that the server ended it.
	if m := s.request("ping", map[string]any{}); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	select {
	case m := <-ended:
		t.Errorf("a reply to a listener that was cancelled: %+v", m)
	default:
	}
	for _, u := range s.updates(updated) {
		if u.URI == log || (u.Meta == nil && u.URI != run) {
			t.Errorf("nobody asked for %+v", u)
		}
	}
}

// TestSkillsServed: the extension is declared in both eras, and its entries are those of the files.
func TestSkillsServed(t *testing.T) {
	t.Parallel()
	s := simulated(t, "")
	hello := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}}
	for method, params := range map[string]map[string]any{"initialize": hello, "server/discover": modern(map[string]any{})} {
		var res struct {
			Capabilities struct {
				Extensions  map[string]map[string]any
				Prompts     *struct{}
				Completions *struct{}
				Resources   struct{ Subscribe bool }
			}
		}
		if m := s.request(method, params); m.Error != nil || json.Unmarshal(m.Result, &res) != nil {
			t.Fatalf("%s: %+v", method, m.Error)
		}
		c := res.Capabilities
		if c.Extensions["io.modelcontextprotocol/skills"]["directoryRead"] != true || c.Prompts == nil || c.Completions == nil || !c.Resources.Subscribe {
			t.Errorf("%s declares %+v", method, c)
		}
	}
	folders, err := filepath.Glob("../../skills/*/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Skills []struct {
			URI       string
			Resources []struct{ URI, Digest string }
		}
		TTLMs *int64 `json:"ttlMs"`
	}
	if m := s.request("skills/list", modern(map[string]any{})); m.Error != nil || json.Unmarshal(m.Result, &list) != nil || len(list.Skills) != len(folders) || list.TTLMs == nil {
		t.Fatalf("%+v %+v", m.Error, list)
	}
	for _, skill := range list.Skills {
		for _, r := range skill.Resources {
			if s.text(r.URI) == "" {
				t.Errorf("%s is empty", r.URI)
			}
		}
	}
	if m := s.request("skills/get", map[string]any{"uri": "skill://nothing/SKILL.md"}); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("%+v", m.Error)
	}
}
