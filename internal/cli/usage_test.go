package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/tools"
)

var (
	mcpProgram    = Program{Name: "flyprof-mcp"}
	dropInProgram = Program{Name: "flyprof", DropIn: true}
)

// called runs a command line inside this process.
func called(t *testing.T, p Program, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &caller{program: p, out: output{Writer: &out}, screen: &screen{out: &errs}}
	c.flags.log = c.screen
	exit = c.execute(t.Context(), args)
	return out.String(), errs.String(), exit
}

type bare = envelope.Wire[struct{}]

// TestMisuse: whatever is wrong with a command line is an envelope with the field, the value and what is allowed, its exit code is
// the error's, standard error has one line, and a misspelt name comes with the command line that was meant.
func TestMisuse(t *testing.T) {
	for name, c := range map[string]struct {
		program    Program
		args       []string
		field, has string
		fixed      string
	}{
		"unknown verb":          {mcpProgram, []string{"nonsense"}, "verb", "nonsense", ""},
		"near verb":             {mcpProgram, []string{"captur", "softmax", "--shape", "8,8"}, "verb", "did you mean capture?", "flyprof-mcp capture softmax --shape 8,8"},
		"near verb, setting":    {mcpProgram, []string{"--log-level", "error", "lst", "-f", "line"}, "verb", "did you mean list?", "flyprof-mcp --log-level error list -f line"},
		"near verb, wrong flag": {mcpProgram, []string{"captur", "softmax", "--nonsense"}, "verb", "did you mean capture?", ""},
		"unknown flag":          {mcpProgram, []string{"list", "--nonsense", "x"}, "--nonsense", "valid_names", ""},
		"near flag":             {mcpProgram, []string{"capture", "softmax", "--shap=8,8"}, "--shap", "did you mean --shape?", "flyprof-mcp capture softmax --shape=8,8"},
		"near setting":          {mcpProgram, []string{"list", "--work-tree", "/x"}, "--work-tree", "did you mean --worktree?", "flyprof-mcp list --worktree /x"},
		"one dash":              {mcpProgram, []string{"capture", "softmax", "-shape", "8,8"}, "-shape", "did you mean --shape?", "flyprof-mcp capture softmax --shape 8,8"},
		"letter":                {mcpProgram, []string{"list", "-x"}, "-x", "has no flag -x", ""},
		"no value":              {mcpProgram, []string{"capture", "softmax", "--shape"}, "--shape", "needs a value", ""},
		"no truth value":        {mcpProgram, []string{"capture", "softmax", "--with-pmc=NaN"}, "--with-pmc", `"value":"NaN"`, ""},
		"no flag at all":        {mcpProgram, []string{"list", "--=x"}, "", "bad flag syntax", ""},
		"too many":              {mcpProgram, []string{"capture", "softmax", "gemm"}, "kernel", "one KERNEL", ""},
		"none wanted":           {mcpProgram, []string{"doctor", "now"}, "argument", "flags only", ""},
		"help about nothing":    {mcpProgram, []string{"help", "captur"}, "verb", "did you mean capture?", "flyprof-mcp help capture"},
		"not for version":       {mcpProgram, []string{"version", "now"}, "argument", "flags only", ""},
		"format":                {mcpProgram, []string{"list", "-f", "yaml"}, "--format", "json, line, table", ""},
		"near format":           {mcpProgram, []string{"list", "-f", "tables"}, "--format", "did you mean table?", "flyprof-mcp list -f table"},
		"setting":               {mcpProgram, []string{"list", "--gpu", "x"}, "--gpu", "a whole number from 0 to 255", ""},
		"setting NaN":           {mcpProgram, []string{"list", "--gpu", "NaN"}, "--gpu", `"value":"NaN"`, ""},
		"argument NaN":          {mcpProgram, []string{"tile", "gemm", "--shape", "8,8,8", "--bm", "NaN", "--simulate", "--runs-dir", t.TempDir()}, "bm", `"value":"\"NaN\""`, ""},
		"no argument":           {mcpProgram, []string{"status", "--simulate", "--runs-dir", t.TempDir()}, "run_id", "missing", ""},
		"read-only":             {mcpProgram, []string{"capture", "softmax", "--read-only", "--simulate", "--runs-dir", t.TempDir()}, "--read-only", "starts or stops processes", ""},
		"toolset":               {mcpProgram, []string{"list", "--toolsets", "captures"}, "--toolsets", "capture, analyze, all", ""},
		"tool":                  {mcpProgram, []string{"list", "--tools", "flyprof_lst", "--simulate", "--runs-dir", t.TempDir()}, "--tools", "did you mean flyprof_list?", ""},
		"tool, excluded":        {mcpProgram, []string{"list", "--exclude-tools", "capture", "--simulate", "--runs-dir", t.TempDir()}, "--exclude-tools", "flyprof_capture_status", ""},
		"near skills verb":      {mcpProgram, []string{"skills", "lst"}, "verb", "did you mean list?", "flyprof-mcp skills list"},
		"no client":             {mcpProgram, []string{"install", "--client", "curser"}, "--client", "did you mean cursor?", ""},
		"log file":              {mcpProgram, []string{"list", "--log-file", "/nowhere/at/all"}, "--log-file", "can be written", ""},

		"drop-in, no server":      {dropInProgram, []string{"serve"}, "verb", "there is no verb", ""},
		"drop-in, flag, no verb":  {dropInProgram, []string{"--nonsense"}, "--nonsense", "has no flag", ""},
		"drop-in, bundle":         {dropInProgram, []string{"capture", "softmax", "--bundle", "runs/x"}, "--bundle", "--runs-dir", ""},
		"drop-in, bundle of list": {dropInProgram, []string{"list", "--bundle=x"}, "--bundle", "--runs-dir", ""},
		"drop-in, examples":       {dropInProgram, []string{"doctor", "--examples-dir", "x"}, "--examples-dir", "read flyprof://runs/RUN_ID/files", ""},
		"drop-in, arch":           {dropInProgram, []string{"capture", "softmax", "--arch", "gfx950"}, "--arch", "--gpu", ""},
		"drop-in, two timeouts":   {dropInProgram, []string{"capture", "softmax", "--timeout", "60", "--timeout-s", "70"}, "--timeout", "different things", ""},
		"drop-in, run":            {dropInProgram, []string{"run", "softmax", "--gpu", "0"}, "verb", "capture KERNEL --tag both --with-pmc", "flyprof capture softmax --tag both --with-pmc --gpu 0"},
		"drop-in, wiki":           {dropInProgram, []string{"wiki", "barrier"}, "verb", "no catalogue of techniques", ""},
		"not the drop-in":         {mcpProgram, []string{"capture", "softmax", "--timeout", "60"}, "--timeout", "did you mean --timeout-s?", "flyprof-mcp capture softmax --timeout-s 60"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(slices.Clone(c.args), "-f", "line")
			if slices.Contains(c.args, "-f") || c.field == "--shape" || c.args[0] == "version" || c.args[0] == "help" {
				args = c.args
			}
			stdout, stderr, exit := called(t, c.program, args...)
			var e bare
			if err := json.Unmarshal([]byte(stdout), &e); err != nil || e.OK || e.Error == nil {
				t.Fatalf("%v: %s\n%s", err, stdout, stderr)
			}
			if e.Error.Code != envelope.BadArgs || e.Error.ExitCode != exit || exit != 78 || e.Error.Evidence.Field != c.field || len(e.Error.NextActions) == 0 {
				t.Errorf("exit %d: %s", exit, stdout)
			}
			if !strings.Contains(stdout, c.has) {
				t.Errorf("the answer does not say %q: %s", c.has, stdout)
			}
			usage := !strings.HasPrefix(name, "argument") && name != "no argument"
			if lines := strings.Count(stderr, "\n"); usage && (lines != 1 || !strings.HasPrefix(stderr, c.program.Name+": BAD_ARGS: ")) {
				t.Errorf("standard error has %q", stderr)
			}
			first := e.Error.NextActions[0]
			if got := strings.Join(first.Argv, " "); strings.TrimSuffix(got, " -f line") != strings.TrimSuffix(c.fixed, " -f line") {
				t.Errorf("the first action is %q (%s), want %q", got, first.Action, c.fixed)
			}
		})
	}
}

// TestLongMisuse: however much is wrong, the answer is short.
func TestLongMisuse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\x1b\n", 100_000)
	for _, args := range [][]string{{long}, {"list", "--" + long}, {"list", "-" + long}, {"list", long}, {"list", "--gpu", long}, {"list", "-f", long}, {"capture", "softmax", "--with-pmc=" + long}, {"capture", "--shap", long}, {"run", long}} {
		for _, p := range []Program{mcpProgram, dropInProgram} {
			stdout, stderr, exit := called(t, p, args...)
			if exit != 78 || len(stdout)+len(stderr) > 2*tools.MaxErrorChars || strings.ContainsRune(stdout+stderr, 0x1b) || strings.Count(stderr, "\n") != 1 || !json.Valid([]byte(stdout)) {
				t.Errorf("%.40q: exit %d, %d and %d bytes: %.300q", args, exit, len(stdout), len(stderr), stderr)
			}
		}
	}
}

// TestFormatOfMisuse: an error has the format that was asked for, wherever it stands, and json where none was.
func TestFormatOfMisuse(t *testing.T) {
	t.Parallel()
	for want, lists := range map[string][][]string{
		formatLine:  {{"-f", "line", "--x"}, {"--x", "--format=line"}, {"-fline", "--x"}, {"--x", "-f=line"}, {"-f", "json", "-f", "line", "--x"}, {"--format", "line", "--x"}},
		formatTable: {{"--x", "-f", "table"}},
		formatJSON:  {{"--x"}, {"-f", "yaml", "--x"}, {"--x", "table"}, {"--x", "--", "-f", "table"}, {"--x", "-f"}},
	} {
		for _, args := range lists {
			stdout, _, _ := called(t, mcpProgram, append([]string{"list"}, args...)...)
			got := formatTable
			switch {
			case strings.HasPrefix(stdout, "{\n"):
				got = formatJSON
			case strings.HasPrefix(stdout, "{"):
				got = formatLine
			}
			if got != want {
				t.Errorf("%q: the format is %s, want %s", args, got, want)
			}
		}
	}
}

func TestTextCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program Program
		args    []string
		says    string
	}{
		"version":                {mcpProgram, []string{"version"}, version()},
		"version flag":           {dropInProgram, []string{"--version"}, "flyprof version"},
		"help":                   {mcpProgram, []string{"--help"}, "Available Commands"},
		"help of a verb":         {mcpProgram, []string{"capture", "--help"}, "--with-pmc"},
		"drop-in without a verb": {dropInProgram, nil, "Available Commands"},
	} {
		if stdout, _, exit := called(t, c.program, c.args...); exit != 0 || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: exit %d: %s", name, exit, stdout)
		}
	}
}
