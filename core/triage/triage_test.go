package triage

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/launch"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

func service(t testing.TB) Service {
	t.Helper()
	store, err := runs.Open(t.TempDir(), launch.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return Service{Store: store, Resolve: func(_, path string) (string, error) { return path, nil }}
}

// TestEveryCode: each code of the catalogue has a cause and something to do, with and without a kernel.
func TestEveryCode(t *testing.T) {
	s := service(t)
	for _, row := range envelope.Catalogue() {
		for _, in := range []request.Triage{{Code: string(row.Code)}, {Code: strings.ToLower(string(row.Code)), Kernel: "softmax", Shape: "8,8"}} {
			got, err := s.Triage(t.Context(), in)
			if err != nil || got.Data.Code != row.Code || got.Data.Class != row.Class || len(got.Data.Causes) == 0 || len(got.Actions) == 0 {
				t.Errorf("%s: %v %+v", row.Code, err, got.Data)
				continue
			}
			for _, c := range got.Data.Causes {
				if c.Cause == "" || c.Do == "" || len(c.Evidence) == 0 || c.Confidence == "" {
					t.Errorf("%s: %+v", row.Code, c)
				}
			}
		}
	}
}

// TestRecorded: the recorded real captures are told for what they are, under any name of their folder.
func TestRecorded(t *testing.T) {
	root := recorded.Traces(t)
	s := service(t)
	for dir, want := range map[string]envelope.Code{
		"dispatches": "", "variants/code_null": envelope.EmptyATT, "variants/gfx12_synthetic_waves": "", "variants/pc_sampling_13_columns": envelope.TraceCorrupt,
	} {
		got, err := s.Triage(t.Context(), request.Triage{Path: filepath.Join(root, filepath.FromSlash(dir))})
		if err != nil || got.Data.Code != want {
			t.Errorf("%s: %v %+v", dir, err, got.Data)
		}
	}
}

func TestGoodEnvelope(t *testing.T) {
	low := 40.0
	for name, c := range map[string]struct {
		kept, confidence string
		mapped           *float64
		causes           int
	}{
		"good": {"att/x", "exact", nil, 0}, "nothing kept": {"", "exact", nil, 1}, "few lines": {"att/x", "exact", &low, 1}, "guessed": {"att/x", "heuristic", &low, 2},
	} {
		if _, causes := goodEnvelope(c.kept, c.confidence, c.mapped); len(causes) != c.causes {
			t.Errorf("%s: %v", name, causes)
		}
	}
}

func FuzzTriage(f *testing.F) {
	f.Add(`{"ok":false,"error":{"code":"EMPTY_ATT","message":"m","evidence":{"workgroups":8},"log_tail":["x"]}}`, false)
	f.Add("Memory access fault by GPU node-2\n", true)
	f.Add(`{"ok":true}`, false)
	f.Fuzz(func(t *testing.T, text string, log bool) {
		in := request.Triage{Envelope: text}
		if log {
			in = request.Triage{LogText: text}
		}
		got, err := service(t).Triage(t.Context(), in)
		if err != nil && envelope.CodeOf(err) != envelope.BadArgs {
			t.Fatalf("%v", err)
		}
		if err == nil && (got.Data == nil || got.Data.Summary == "" && got.Data.Code != "") {
			t.Fatalf("%+v", got.Data)
		}
	})
}
