//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
