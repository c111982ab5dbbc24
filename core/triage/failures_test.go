package triage

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/diagnose"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

var update = flag.Bool("update", false, "write docs/failures.md anew")

// recognised says how codes are known that no line of a log names.
var recognised = map[envelope.Code]string{
	envelope.KernelNotFound:      "the name is none of the worktree's kernels, symbols or tests",
	envelope.NoKernelDiscovered:  "the kernel trace of the discovery lists no kernel that the worktree defines for the test",
	envelope.AmbiguousKernel:     "several kernels or launched symbols fit equally well",
	envelope.DispatchOutOfRange:  "the launch or group is not among those of the discovery or of the traced run",
	envelope.EmptyATT:            "the dispatch directories hold no wave of the kernel; see the kinds of empty above",
	envelope.NoArtifact:          "the file, directory or counter rows are not there",
	envelope.NoRecommendation:    "the advisor has no model of that operator, dtype or GPU",
	envelope.RunNotFound:         "the runs directory has no such run",
	envelope.TraceCorrupt:        "a file that was written cannot be read; the message names file and byte",
	envelope.Rocprofv3Missing:    "no program at any of the places that evidence lists",
	envelope.Rocprofv3TooOld:     "`rocprofv3 --help` has no --att",
	envelope.NoGPU:               "the driver's topology or rocminfo shows no such GPU under the inherited masks",
	envelope.GPUAccessDenied:     "the device files or the topology may not be read by this user",
	envelope.PlatformUnsupported: "the host is not Linux",
	envelope.CaptureTimeout:      "the run's limit was over; the phase is in evidence",
	envelope.GPUBusy:             "another run holds the lock of the GPU, or the GPU is busy and the settings refuse that",
	envelope.RunNotFinished:      "the run goes on",
	envelope.RunInterrupted:      "the process that drove the run is gone, and the record says that it had not ended",
	envelope.BuildTreeMissing:    "neither a built package in the worktree nor an installed one",
	envelope.BuildTreeBroken:     "the package is there and a compiled part of it is not",
	envelope.WorktreeInvalid:     "the directory is no FlyDSL checkout",
	envelope.BadArgs:             "an argument or setting is not what is allowed; evidence names field, value and what is",
	envelope.MissingPrereq:       "a setting or program that the call needs is not there",
	envelope.ShapeNotBound:       "the test has no way to take a shape",
	envelope.NeedsMultiGPU:       "the test is one of several ranks",
	envelope.RecipeStale:         "a recipe names a test that is not there",
	envelope.PathNotAllowed:      "the path leads out of the directories that may be read",
	envelope.FileConflict:        "an entry in a client's file, or a file of a skill, is not as this program wrote it, or cannot be read or written",
	envelope.DiskFull:            "writing failed for want of room",
	envelope.StoreUnwritable:     "the runs directory cannot be written",
	envelope.Internal:            "a bug: a panic, or an error that no row knows",
	envelope.Cancelled:           "somebody asked for the run to stop, or its server went away",
	envelope.ProfilerCrashed:     "",
}

// failures renders docs/failures.md from the tables.
func failures(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	b.WriteString("# Failures: how each is recognised and what comes next\n\nGenerated from the tables in core/rocprof, core/diagnose and core/envelope by `go test ./core/triage -update`.\n\n" +
		"A capture is judged by the files that it left. Exit codes decide nothing by themselves: a test may fail after its kernel was traced, and rocprofv3 logs at level E on every success.\n")

	b.WriteString("\n## Lines of logs\n\nThe first row that matches anywhere in the log names the failure; rows without a code are warnings on what was written. Prefixes of glog and Abseil, colours and interleaved\nlines of children are taken off before. Patterns are RE2.\n\n| row | code | pattern | meaning |\n|---|---|---|---|\n")
	rows := map[envelope.Code][]string{}
	for _, s := range rocprof.Signatures() {
		code := string(s.Code)
		if code == "" {
			code = "warning"
		}
		rows[s.Code] = append(rows[s.Code], s.ID)
		fmt.Fprintf(&b, "| %s | %s | `` %s `` | %s |\n", s.ID, code, cell(s.Pattern), cell(s.Meaning))
	}

	b.WriteString("\n## Kinds of empty traces\n\nLooked for in this order, by capture and by triage alike. What a capture tries by itself is tried once, where the caller left it open; `data.attempts` says what was tried and why.\n\n| kind | shows | tried unasked |\n|---|---|---|\n")
	for _, k := range diagnose.Kinds() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Kind, cell(k.Shows), cell(k.Tries))
	}

	b.WriteString("\n## Codes\n\n| code | recognised by | next |\n|---|---|---|\n")
	for _, row := range envelope.Catalogue() {
		var by []string
		if ids := rows[row.Code]; len(ids) > 0 {
			by = append(by, "log rows "+strings.Join(ids, ", "))
		}
		if text := recognised[row.Code]; text != "" {
			by = append(by, text)
		}
		if len(by) == 0 {
			t.Errorf("nothing says how %s is recognised", row.Code)
		}
		kinds := make([]string, len(row.Kinds))
		for i, k := range row.Kinds {
			kinds[i] = string(k)
		}
		fmt.Fprintf(&b, "| %s | %s | %s (%s) |\n", row.Code, cell(strings.Join(by, "; ")), cell(row.Help), strings.Join(kinds, ", "))
	}
	return b.String()
}

// TestFailuresDoc: docs/failures.md is what the tables give.
func TestFailuresDoc(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "failures.md")
	want := failures(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s is not what the tables give: run go test ./core/triage -update (%v)", file, err)
	}
	codes := make([]envelope.Code, 0, len(recognised))
	for _, row := range envelope.Catalogue() {
		codes = append(codes, row.Code)
	}
	for code := range recognised {
		if !slices.Contains(codes, code) {
			t.Errorf("%s is no code", code)
		}
	}
}
