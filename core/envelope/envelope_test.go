package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flyprof/flyprof-mcp/core/request"
)

// TestCatalogue: codes are unique, and class and exit code are those that the command line promises.
func TestCatalogue(t *testing.T) {
	exit := map[Class]int{ClassEmpty: 66, ClassFinding: 65, ClassUnavailable: 69, ClassTransient: 75, ClassConfig: 78, ClassIO: 74, ClassInternal: 70, ClassCancelled: 130}
	seen := map[Code]bool{}
	for _, row := range Catalogue() {
		if seen[row.Code] {
			t.Errorf("%s stands twice", row.Code)
		}
		seen[row.Code] = true
		if row.Exit != exit[row.Class] || row.Exit == 0 {
			t.Errorf("%s: class %s, exit %d", row.Code, row.Class, row.Exit)
		}
		if row.Meaning == "" || row.Help == "" || len(row.Kinds) == 0 {
			t.Errorf("%s says too little: %+v", row.Code, row)
		}
		if found, ok := Lookup(row.Code); !ok || found.Exit != row.Exit {
			t.Errorf("%s is not found", row.Code)
		}
	}
	for _, want := range []Code{"EMPTY_ATT", "KERNEL_COMPILE_FAIL", "ROCPROFV3_MISSING", "CAPTURE_TIMEOUT", "BUILD_TREE_MISSING", "DISK_FULL", "INTERNAL", "CANCELLED"} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
}

func TestBuildBounds(t *testing.T) {
	f := Facts{Message: strings.Repeat("ä", 5000), Evidence: Evidence{Value: strings.Repeat("v", 5000), Signature: strings.Repeat("s", 5000)}}
	for range 500 {
		f.LogTail = append(f.LogTail, strings.Repeat("l", 2000))
		f.Available = append(f.Available, Available{IterRange: "1"})
		f.Candidates = append(f.Candidates, Candidate{Kernel: "k"})
		f.Suggestions = append(f.Suggestions, Action{Kind: AskUser, Reason: strings.Repeat("r", 2000)})
	}
	e := Build(NoKernelDiscovered, f)
	if len(e.Message) > maxMessageLen+8 || len(e.LogTail) > maxLogLines || len(e.Available) > maxAvailable || len(e.Candidates) > maxCandidates || len(e.Actions) > maxActions {
		t.Errorf("message %d, log %d, available %d, candidates %d, actions %d", len(e.Message), len(e.LogTail), len(e.Available), len(e.Candidates), len(e.Actions))
	}
	if len(e.Evidence.Value) > maxEvidenceLen+8 || len(e.Evidence.Signature) > maxEvidenceLen+8 {
		t.Errorf("evidence of %d and %d bytes", len(e.Evidence.Value), len(e.Evidence.Signature))
	}
	if strings.Contains(e.Message, "\uFFFD") {
		t.Error("the message was cut inside a character")
	}
}

// TestBudget: a spent budget takes the captures out of the actions, and says stop.
func TestBudget(t *testing.T) {
	f := Facts{Request: &request.Capture{Kernel: "softmax"}, RunID: "r"}
	first := Build(CaptureTimeout, f)
	if !first.Retry.Allowed || first.Retry.Budget != 1 || first.Actions[0].Args.(request.Capture).TimeoutS != 2400 {
		t.Errorf("%+v", first)
	}
	f.Retry = &Retry{Used: 1, Budget: 1}
	spent := Build(CaptureTimeout, f)
	last := spent.Actions[len(spent.Actions)-1]
	if spent.Retry.Allowed || last.Kind != Stop {
		t.Errorf("%+v", spent)
	}
	for _, a := range spent.Actions {
		if a.Args != nil && a.Args.Verb() == request.VerbCapture {
			t.Errorf("the budget is spent and an action captures: %+v", a)
		}
	}
}

func TestAsAndCodeOf(t *testing.T) {
	built := Build(NoGPU, Facts{Message: "none"})
	wrapped := fmt.Errorf("while looking: %w", built)
	if As(wrapped) != built || CodeOf(wrapped) != NoGPU {
		t.Error("a wrapped catalogue error is not found")
	}
	plain := errors.New("odd")
	if e := As(plain); e.Code != Internal || !errors.Is(e, plain) || CodeOf(plain) != "" {
		t.Errorf("%+v", e)
	}
	if e := Build("NO_SUCH_CODE", Facts{Message: "x"}); e.Code != Internal || !strings.Contains(e.Message, "NO_SUCH_CODE") {
		t.Errorf("%+v", e)
	}
}

// TestStoredError: what is kept on disk is read back to the same.
func TestStoredError(t *testing.T) {
	gpu := 0
	e := Build(DispatchOutOfRange, Facts{
		Message: "launch 9 does not exist", Request: &request.Capture{Kernel: "softmax", GPU: &gpu, Args: []string{"--x"}}, RunID: "r",
		Available: []Available{{IterRange: "3", Group: "7:1x1x1"}}, Suggestions: []Action{{Kind: ReadResource, URI: "flyprof://runs", Reason: "x"}},
	})
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Error
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*e, back, cmpopts.IgnoreUnexported(Error{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

type echo struct{ leaveOut bool }

func (r echo) Render(a Action) (WireAction, bool) {
	return WireAction{Action: a.Kind, Reason: a.Reason, URI: a.URI}, !r.leaveOut
}

func TestWire(t *testing.T) {
	type data struct {
		X int `json:"x"`
	}
	good := NewWire("list", Reply[data]{Data: &data{3}, Command: "capture", Bundle: "b"}, nil, echo{})
	raw, err := json.Marshal(good)
	if want := `{"ok":true,"command":"capture","bundle":"b","data":{"x":3},"warnings":[]}`; err != nil || string(raw) != want {
		t.Errorf("%s (%v), want %s", raw, err, want)
	}
	bad := NewWire("list", Reply[data]{}, Build(NoGPU, Facts{Message: "none"}), echo{leaveOut: true})
	if bad.OK || bad.Error.ExitCode != 69 || len(bad.Error.NextActions) != 1 || bad.Error.NextActions[0].Action != Stop {
		t.Errorf("%+v", bad.Error)
	}
}
