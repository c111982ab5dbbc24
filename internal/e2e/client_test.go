package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flyprof/flyprof-mcp/internal/sim"
)

// binary is the program under test, and dropIn the one that stands in for the public flyprof; built once.
var binary, dropIn string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "flyprof-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, dropIn = filepath.Join(dir, "flyprof-mcp.exe"), filepath.Join(dir, "flyprof.exe")
	for out, name := range map[string]string{binary: "flyprof-mcp", dropIn: "flyprof"} {
		cmd := exec.Command("go", "build", "-o", out, "github.com/flyprof/flyprof-mcp/cmd/"+name)
		if said, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, said)
			return 1
		}
	}
	return m.Run()
}

// session is a client of its own making: newline-delimited JSON-RPC and nothing else, so that no library hides a fault.
type session struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  *lockedBuffer
	runs    string
	done    chan struct{} // closed when stdout has ended
	schemas map[string]*jsonschema.Schema

	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	lines   []string
	notes   []message
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// environ is the environment of a server under test: no settings of this program from outside, and no configuration file.
func environ(extra ...string) []string {
	out := []string{"FLYPROF_CONFIG=" + os.DevNull}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "FLYPROF_") {
			out = append(out, kv)
		}
	}
	return append(out, extra...)
}

// start starts a server on a runs directory (empty: a fresh one) with further flags, and says hello.
func start(t *testing.T, runs string, flags ...string) *session {
	t.Helper()
	if runs == "" {
		runs = t.TempDir()
	}
	args := append([]string{"--runs-dir", runs, "--stop-grace", "2", "--log-level", "debug"}, flags...)
	s := &session{t: t, cmd: exec.Command(binary, args...), stderr: &lockedBuffer{}, runs: runs, done: make(chan struct{}), waiting: map[string]chan message{}}
	s.cmd.Env, s.cmd.Stderr = environ(), s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(stdout)
	t.Cleanup(s.stop)
	s.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"}})
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return s
}

// simulated starts a server with the simulated GPU.
func simulated(t *testing.T, runs string, flags ...string) *session {
	t.Helper()
	return start(t, runs, append([]string{"--simulate"}, flags...)...)
}

func (s *session) read(stdout io.Reader) {
	defer close(s.done)
	lines := bufio.NewReaderSize(stdout, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.take(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *session) take(line string) {
	var m message
	bad := json.Unmarshal([]byte(line), &m) != nil || m.JSONRPC != "2.0" || !strings.HasSuffix(line, "\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	if bad {
		s.t.Errorf("a line of standard output is no JSON-RPC: %.300q", line)
		return
	}
	if ch, ok := s.waiting[string(m.ID)]; ok && m.Method == "" {
		delete(s.waiting, string(m.ID))
		ch <- m
		return
	}
	s.notes = append(s.notes, m)
}

func (s *session) send(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = s.stdin.Write(append(b, '\n'))
	}
	if err != nil {
		s.t.Logf("the server takes no input: %v", err)
	}
}

// begin sends a request and gives the channel of its answer.
func (s *session) begin(method string, params any) (id int, answer chan message) {
	s.mu.Lock()
	s.next++
	id = s.next
	answer = make(chan message, 1)
	s.waiting[fmt.Sprint(id)] = answer
	s.mu.Unlock()
	s.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, answer
}

// patience is how long any answer may take on a slow machine; it measures nothing.
const patience = 3 * time.Minute

// request sends a request and waits for its answer.
func (s *session) request(method string, params any) message {
	s.t.Helper()
	_, answer := s.begin(method, params)
	select {
	case m := <-answer:
		return m
	case <-s.done:
		s.t.Fatalf("the server went away during %s; it logged:\n%s", method, s.stderr)
	case <-time.After(patience):
		s.t.Fatalf("%s was not answered; the server logged:\n%s", method, s.stderr)
	}
	return message{}
}

// stop ends the session as a client does: it closes the server's input.
func (s *session) stop() {
	_ = s.stdin.Close()
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		s.t.Errorf("the server did not end after its input had ended; it logged:\n%s", s.stderr)
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
}

// answer is an envelope.
type answer struct {
	OK          bool
	Command     string
	Bundle      string
	Data        map[string]any
	Warnings    []struct{ Code, Message string }
	NextActions []action `json:"next_actions"`
	Error       *failure
	raw         json.RawMessage
}

type failure struct {
	Code       string
	Class      string
	ExitCode   int
	Message    string
	Help       string
	Evidence   map[string]any
	Available  []map[string]any
	Candidates []map[string]any
	LogTail    []string `json:"log_tail"`
	Retry      struct {
		Allowed      bool
		Used, Budget int
	}
	NextActions []action `json:"next_actions"`
}

type action struct {
	Action, Tool, URI, Reason, Confidence string
	Arguments                             map[string]any
	Argv                                  []string
}

// call calls a tool and holds the answer to everything that is promised of every answer.
func (s *session) call(tool string, args map[string]any) answer {
	s.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	return s.envelope(tool, s.request("tools/call", map[string]any{"name": tool, "arguments": args}))
}

func (s *session) envelope(tool string, m message) answer {
	s.t.Helper()
	if m.Error != nil {
		s.t.Fatalf("%s answered JSON-RPC error %d: %s", tool, m.Error.Code, m.Error.Message)
	}
	var res struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(m.Result, &res); err != nil {
		s.t.Fatal(err)
	}
	if len(res.Content) != 1 || !sameJSON([]byte(res.Content[0].Text), res.StructuredContent) {
		s.t.Errorf("%s: the text is not the structured content", tool)
	}
	var a answer
	if err := json.Unmarshal(res.StructuredContent, &a); err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, res.StructuredContent)
	}
	a.raw = res.StructuredContent
	if a.OK == res.IsError || a.OK != (a.Error == nil) {
		s.t.Errorf("%s: ok %v, isError %v, error %v", tool, a.OK, res.IsError, a.Error)
	}
	if limit := map[bool]int{true: 48_000, false: 10_000}[a.OK]; len([]rune(string(a.raw))) > limit {
		s.t.Errorf("%s: an answer of %d characters", tool, len(a.raw))
	}
	s.fitsOutput(tool, a)
	actions := a.NextActions
	if a.Error != nil {
		actions = a.Error.NextActions
		if len(actions) == 0 {
			s.t.Errorf("%s: %s has no next action", tool, a.Error.Code)
		}
	}
	for _, n := range actions {
		if n.Action == "call_tool" {
			s.fitsInput(n)
		}
	}
	return a
}

// sameJSON compares two texts as JSON: the library escapes < and > on its way out.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// load compiles the schemas that tools/list gives.
func (s *session) load() {
	if s.schemas != nil {
		return
	}
	s.schemas = map[string]*jsonschema.Schema{}
	var list struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(s.request("tools/list", map[string]any{}).Result, &list); err != nil {
		s.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		for kind, text := range map[string]json.RawMessage{"in": tool.InputSchema, "out": tool.OutputSchema} {
			schema, err := jsonschema.CompileString(tool.Name+"."+kind, string(text))
			if err != nil {
				s.t.Fatalf("%s %s: %v", tool.Name, kind, err)
			}
			s.schemas[tool.Name+"."+kind] = schema
		}
	}
}

func (s *session) fitsOutput(tool string, a answer) {
	s.t.Helper()
	s.load()
	var v any
	if err := json.Unmarshal(a.raw, &v); err != nil {
		s.t.Fatal(err)
	}
	schema := s.schemas[tool+".out"]
	if schema == nil {
		s.t.Fatalf("no tool %s is served", tool)
	}
	if err := schema.Validate(v); err != nil {
		s.t.Errorf("the answer of %s does not fit its output schema: %#v\n%s", tool, err, a.raw)
	}
}

func (s *session) fitsInput(n action) {
	s.t.Helper()
	s.load()
	schema := s.schemas[n.Tool+".in"]
	if schema == nil {
		s.t.Errorf("a next action calls %q, which is not served", n.Tool)
		return
	}
	if err := schema.Validate(any(n.Arguments)); err != nil {
		s.t.Errorf("the arguments of a next action do not fit %s: %v", n.Tool, err)
	}
}

// capture captures and waits until the run has ended.
func (s *session) capture(args map[string]any) answer {
	s.t.Helper()
	return s.wait(s.call("flyprof_capture", args))
}

// wait waits for a run to end.
func (s *session) wait(a answer) answer {
	s.t.Helper()
	for a.OK && (a.Data["state"] == "running" || a.Data["state"] == "queued") {
		a = s.call("flyprof_capture_status", map[string]any{"run_id": a.Data["run_id"], "wait_s": 60})
	}
	return a
}

// get reads a path such as "tags.big.waves" of the data.
func (a answer) get(path string) any {
	var v any = a.Data
	for _, name := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// text gives the whole of a resource.
func (s *session) text(uri string) string {
	s.t.Helper()
	m := s.request("resources/read", map[string]any{"uri": uri})
	if m.Error != nil {
		s.t.Fatalf("%s: %s", uri, m.Error.Message)
	}
	var res struct{ Contents []struct{ Text string } }
	if err := json.Unmarshal(m.Result, &res); err != nil || len(res.Contents) != 1 {
		s.t.Fatalf("%s: %v, %d contents", uri, err, len(res.Contents))
	}
	return res.Contents[0].Text
}

// processesOf lists the live processes whose command line or environment names the runs directory: supervisors by the first,
// everything that they started by the second.
func processesOf(t *testing.T, runs string) []string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(procs) == 0 {
		t.Skip("there is no /proc to count processes by")
	}
	var left []string
	for _, p := range procs {
		if filepath.Base(p) == strconv.Itoa(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		if !bytes.Contains(line, []byte(runs)) && !bytes.Contains(env, []byte(runs)) {
			continue
		}
		if stat, err := os.ReadFile(filepath.Join(p, "stat")); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue
		}
		left = append(left, filepath.Base(p)+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return left
}

// noProcesses waits until nothing is left that names the runs directory.
func noProcesses(t *testing.T, runs string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		left := processesOf(t, runs)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// checkFiles: an ended run has its answer, and no file of ours is torn.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "result.json")); err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !json.Valid(b) {
			t.Errorf("%s is torn: %v", f, err)
		}
	}
	// The marker goes after the terminal state was written, so a reader of that may be too early for it.
	mark := filepath.Join(filepath.Dir(dir), ".active", filepath.Base(dir))
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(mark); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s is still marked as active", dir)
			return
		}
	}
}

// demoTree writes the demo checkout outside of any runs directory.
func demoTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteDemoWorktree(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
