//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// overHTTP starts a server on a port of its own and gives what posts to it: the events of the answer, or its one frame.
func overHTTP(t *testing.T, runs string, flags ...string) (cmd *exec.Cmd, post func(body string, headers ...string) (int, http.Header, []string), stderr *lockedBuffer) {
	t.Helper()
	stderr = &lockedBuffer{}
	cmd = exec.Command(binary, append([]string{"serve", "--http", "127.0.0.1:0", "--runs-dir", runs, "--stop-grace", "2"}, flags...)...)
	cmd.Env, cmd.Stderr = environ(), stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := regexp.MustCompile(`url=(\S+)`)
	for began := time.Now(); address.FindStringSubmatch(stderr.String()) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("no address: %s", stderr)
		}
	}
	url := address.FindStringSubmatch(stderr.String())[1]
	token, err := os.ReadFile(filepath.Join(runs, ".http-token"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stderr.String(), strings.TrimSpace(string(token))) {
		t.Error("the token is in the log")
	}
	return cmd, func(body string, headers ...string) (int, http.Header, []string) {
		t.Helper()
		r, err := http.NewRequest("POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + strings.TrimSpace(string(token))}}
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var frames []string
		for line := range strings.Lines(string(raw)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				frames = append(frames, strings.TrimSpace(data))
			}
		}
		if len(frames) == 0 && len(bytes.TrimSpace(raw)) > 0 {
			frames = []string{string(raw)}
		}
		return res.StatusCode, res.Header, frames
	}, stderr
}

// TestHTTP: a capture over HTTP with its progress, without a token nothing, and a run that outlives its server.
func TestHTTP(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	cmd, post, stderr := overHTTP(t, runs, "--simulate", "--fault", "discover:slow=6,att:slow=60")
	status, header, frames := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	id := header.Get("Mcp-Session-Id")
	if status != 200 || id == "" || len(frames) != 1 {
		t.Fatalf("%d %v", status, frames)
	}
	capture := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"flyprof_capture","arguments":{"kernel":"softmax","wait_s":7},"_meta":{"progressToken":"p"}}}`
	if status, _, frames := post(capture, "Mcp-Session-Id", id, "Authorization", "Bearer wrong"); status != 401 {
		t.Errorf("%d %v", status, frames)
	}
	status, _, frames = post(capture, "Mcp-Session-Id", id)
	if status != 200 || len(frames) < 2 || !strings.Contains(frames[0], "notifications/progress") {
		t.Fatalf("%d %v", status, frames)
	}
	var last struct {
		Result struct {
			StructuredContent struct {
				OK   bool
				Data struct {
					RunID string `json:"run_id"`
					State string
				}
			} `json:"structuredContent"`
		}
	}
	if err := json.Unmarshal([]byte(frames[len(frames)-1]), &last); err != nil || !last.Result.StructuredContent.OK || last.Result.StructuredContent.Data.State != "running" {
		t.Fatalf("%v %v", err, frames[len(frames)-1])
	}
	run := last.Result.StructuredContent.Data.RunID
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, stderr)
	}
	var record struct{ State string }
	raw, err := os.ReadFile(filepath.Join(runs, run, "run.json"))
	if err != nil || json.Unmarshal(raw, &record) != nil || record.State != "running" {
		t.Errorf("the run did not outlive its server: %v %s", err, raw)
	}
	cancel := exec.Command(binary, "cancel", run, "--simulate", "--runs-dir", runs)
	cancel.Env = environ()
	if out, err := cancel.Output(); err != nil || !strings.Contains(string(out), `"cancelled"`) {
		t.Errorf("%v %s", err, out)
	}
	noProcesses(t, runs)
}

// TestHTTPEnds: a wait that its client cancels, or that vanishes, ends alone; the run goes on until it is cancelled. Then the session ends,
// and the figures have counted it all.
func TestHTTPEnds(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	cmd, post, stderr := overHTTP(t, runs, "--simulate", "--fault", "discover:timeout")
	_, header, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	id := header.Get("Mcp-Session-Id")
	call := func(id int, tool, args string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}}`, id, tool, args)
	}
	answered := make(chan []string, 1)
	go func() {
		_, _, frames := post(call(2, "flyprof_capture", `{"kernel":"softmax","wait_s":60}`), "Mcp-Session-Id", id)
		answered <- frames
	}()
	var run string
	for began := time.Now(); run == ""; time.Sleep(20 * time.Millisecond) {
		if marks, _ := filepath.Glob(filepath.Join(runs, ".active", "*")); len(marks) == 1 {
			run = filepath.Base(marks[0])
		} else if time.Since(began) > patience {
			t.Fatalf("no run: %s", stderr)
		}
	}
	if status, _, frames := post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}`, "Mcp-Session-Id", id); status != 202 || len(frames) != 0 {
		t.Errorf("%d %v", status, frames)
	}
	for _, frame := range <-answered {
		if !strings.Contains(frame, "notifications/progress") {
			t.Errorf("a cancelled call is answered: %s", frame)
		}
	}

	url := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(stderr.String())[1]
	token, err := os.ReadFile(filepath.Join(runs, ".http-token"))
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, method, url, body string) (int, string, error) {
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + strings.TrimSpace(string(token))}, "Mcp-Session-Id": {id}}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		return res.StatusCode, string(raw), err
	}
	ctx, vanish := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer vanish()
	if status, _, err := send(ctx, "POST", url, call(3, "flyprof_capture_status", fmt.Sprintf(`{"run_id":%q,"wait_s":60}`, run))); err == nil && status == 200 {
		t.Error("a wait for a run that hangs was answered")
	}
	if _, _, frames := post(call(4, "flyprof_capture_status", fmt.Sprintf(`{"run_id":%q,"wait_s":0}`, run)), "Mcp-Session-Id", id); len(frames) != 1 || !strings.Contains(frames[0], `"state":"running"`) {
		t.Errorf("the run did not go on: %v", frames)
	}
	if _, _, frames := post(call(5, "flyprof_capture_cancel", fmt.Sprintf(`{"run_id":%q}`, run)), "Mcp-Session-Id", id); len(frames) == 0 || !strings.Contains(frames[len(frames)-1], `"state":"cancelled"`) {
		t.Errorf("%v", frames)
	}

	base := strings.TrimSuffix(url, "/mcp")
	status, figures, err := send(t.Context(), "GET", base+"/metrics", "")
	for _, want := range []string{
		`flyprof_tool_calls_total{code="OK",tool="flyprof_capture_cancel"} 1`, `flyprof_tool_calls_total{code="OK",tool="flyprof_capture"} 1`,
		`flyprof_runs{state="cancelled"} 1`, `flyprof_runs{state="running"} 0`, `flyprof_http_sessions 1`, "flyprof_http_requests_in_flight ",
		`flyprof_http_requests_total{endpoint="/mcp",method="POST",status="202"} 1`, "process_open_fds",
	} {
		if status != 200 || err != nil || !strings.Contains(figures, want) {
			t.Errorf("%d %v: the figures lack %s:\n%s", status, err, want, figures)
		}
	}
	if res, err := http.Get(base + "/metrics"); err != nil || res.StatusCode != 401 {
		t.Errorf("figures without a token: %v %+v", err, res)
	}
	if res, err := http.Get(base + "/healthz"); err != nil || res.StatusCode != 200 {
		t.Errorf("%v %+v", err, res)
	}
	if status, _, err := send(t.Context(), "DELETE", url, ""); status != 204 || err != nil {
		t.Errorf("%d %v", status, err)
	}
	if status, _, _ := post(call(6, "flyprof_capture_status", fmt.Sprintf(`{"run_id":%q,"wait_s":0}`, run)), "Mcp-Session-Id", id); status != 404 {
		t.Errorf("a call in a session that has ended: %d", status)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, stderr)
	}
	noProcesses(t, runs)
}

// TestHTTPToken: servers that start at once on one runs directory share one token.
func TestHTTPToken(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_, post, _ := overHTTP(t, runs, "--simulate")
			if status, _, frames := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); status != 200 {
				t.Errorf("%d %v", status, frames)
			}
		})
	}
	group.Wait()
	if info, err := os.Stat(filepath.Join(runs, ".http-token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// TestHTTPSettings: addresses that others can reach need a token of the user's own, in a file that nobody else may read.
func TestHTTPSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "0123456789abcdef"
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  string
		says string
	}{
		"all interfaces without a token": {[]string{"--http", "0.0.0.0:0"}, "", "others can reach"},
		"a name":                         {[]string{"--http", "gpu1:8080"}, "", "no IP address"},
		"no port":                        {[]string{"--http", "127.0.0.1:x"}, "", "port"},
		"a file that others may read":    {[]string{"--http", "0", "--http-token-file", write("open", good, 0o644)}, "", "chmod 600"},
		"no such file":                   {[]string{"--http", "0", "--http-token-file", filepath.Join(dir, "none")}, "", "no such file"},
		"a pipe":                         {[]string{"--http", "0", "--http-token-file", pipe}, "", "no regular file"},
		"a directory":                    {[]string{"--http", "0", "--http-token-file", dir}, "", "no regular file"},
		"a short token":                  {[]string{"--http", "0", "--http-token-file", write("short", "x\n", 0o600)}, "", "no such token"},
		"a short token of the env":       {[]string{"--http", "0"}, "x", "does not fit"},
		"a key without a certificate":    {[]string{"--http", "0", "--http-key", write("key", "", 0o600)}, "", "one of the two"},
		"a certificate that is none":     {[]string{"--http", "0", "--http-key", write("k", "", 0o600), "--http-cert", write("c", "", 0o600)}, "", "PEM"},
	} {
		cmd := exec.Command(binary, append([]string{"--simulate", "--runs-dir", filepath.Join(dir, "runs")}, c.args...)...)
		cmd.Env = environ()
		if c.env != "" {
			cmd.Env = append(cmd.Env, "FLYPROF_HTTP_TOKEN="+c.env)
		}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}
