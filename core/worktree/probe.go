package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// probeCode imports what every kernel needs, then says what was found. torch is looked for and not imported: that alone
// takes seconds and may touch the GPU.
const probeCode = "import json,flydsl; from flydsl._mlir import ir; import importlib.util as u; " +
	"print(json.dumps({'v':getattr(flydsl,'__version__',''),'f':flydsl.__file__,'torch':bool(u.find_spec('torch'))}))"

// ProbeArgv is the command that shows whether the target interpreter can import this build. It is to be run in the worktree
// with Env, and bounded: a minute is plenty.
func (b Build) ProbeArgv(python []string) []string {
	code := probeCode
	if b.Kind == BuildFLIR {
		code = strings.Replace(code, "from flydsl._mlir import ir", "from _mlir import ir", 1)
	}
	return append(append([]string(nil), python...), "-c", code)
}

// ProbeResult is what the probe showed.
type ProbeResult struct {
	// Code is empty where FlyDSL and torch can be imported.
	Code    envelope.Code
	Message string
	// Module is the package that is missing, for DEPENDENCY_MISSING.
	Module string
	// Version and File are those of the package that was imported.
	Version, File string
	Torch         bool
	Warnings      []envelope.Warning
	// Signature is the line of the output that decided.
	Signature string
}

// probeRow maps a line of the interpreter's complaint to a code.
type probeRow struct {
	line *regexp.Regexp
	code envelope.Code
	says string
}

// probeRows are tried in order on each line. The group of DEPENDENCY_MISSING names the package.
var probeRows = []probeRow{
	{regexp.MustCompile(`No module named '(flydsl|_mlir)'$`), envelope.BuildTreeMissing, "this Python finds no FlyDSL"},
	{regexp.MustCompile(`No module named '((?:flydsl\.)?_mlir[\w.]*|flydsl\.[\w.]+)'`), envelope.BuildTreeBroken, "FlyDSL is there and its compiled part is not"},
	{regexp.MustCompile(`cannot open shared object file|undefined symbol|version .(?:GLIBC|GLIBCXX|CXXABI)_\S+ not found|invalid ELF header|file too short`), envelope.BuildTreeBroken, "FlyDSL's compiled part cannot be loaded"},
	{regexp.MustCompile(`Required JIT runtime library not found`), envelope.BuildTreeBroken, "FlyDSL's JIT runtime is missing"},
	{regexp.MustCompile(`cannot import name .* from '?(?:partially initialized module )?'?flydsl`), envelope.BuildTreeBroken, "FlyDSL's Python and its compiled part do not fit together"},
	{regexp.MustCompile(`No module named '([\w.]+)'`), envelope.DependencyMissing, "FlyDSL needs a package that this Python does not have"},
	{regexp.MustCompile(`^ImportError: `), envelope.BuildTreeBroken, "FlyDSL cannot be imported"},
	{regexp.MustCompile(`^\w*Error: `), envelope.BuildTreeBroken, "importing FlyDSL fails"},
}

// JudgeProbe reads what the probe of ProbeArgv left: its output and exit code, negative for a signal.
func (t *Tree) JudgeProbe(b Build, stdout, stderr []byte, exit int) ProbeResult {
	if exit != 0 {
		return judgeFailure(string(stderr), exit)
	}
	var found struct {
		Version string `json:"v"`
		File    string `json:"f"`
		Torch   bool   `json:"torch"`
	}
	if err := lastJSON(stdout, &found); err != nil {
		return ProbeResult{Code: envelope.BuildTreeBroken, Message: "the import probe ended well and answered nothing that can be read: " + err.Error()}
	}
	r := ProbeResult{Version: cutTo(found.Version, 64), File: cutTo(found.File, 1024), Torch: found.Torch}
	if !found.Torch {
		r.Code, r.Module, r.Message = envelope.DependencyMissing, "torch", "this Python has FlyDSL and no torch, which every test imports"
	}
	r.Warnings = t.probeWarnings(b, r)
	return r
}

// probeWarnings compares what was imported with what was chosen and with the sources.
func (t *Tree) probeWarnings(b Build, r ProbeResult) []envelope.Warning {
	var out []envelope.Warning
	if b.SourceVersion != "" && r.Version != "" && b.SourceVersion != r.Version && b.Stale() == "" {
		out = append(out, envelope.Warning{Code: "BUILD_TREE_STALE", Message: fmt.Sprintf("Python imports FlyDSL %s and the worktree's sources are %s", r.Version, b.SourceVersion)})
	}
	if filepath.IsAbs(r.File) && b.Outside == "" {
		real, err := filepath.EvalSymlinks(r.File)
		if err != nil {
			real = r.File
		}
		if !inside(t.root, real) {
			out = append(out, envelope.Warning{Code: "BUILD_OUTSIDE_WORKTREE", Message: fmt.Sprintf("Python imports FlyDSL from %s, outside the worktree", r.File)})
		}
	}
	return out
}

const maxProbeOutput = 256 << 10

// judgeFailure finds the complaint, from the last line up: what is raised last is what ended the probe.
func judgeFailure(stderr string, exit int) ProbeResult {
	lines := strings.Split(strings.ToValidUTF8(stderr[max(0, len(stderr)-maxProbeOutput):], ""), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		for _, row := range probeRows {
			m := row.line.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			r := ProbeResult{Code: row.code, Signature: cutTo(line, 300)}
			r.Message = fmt.Sprintf("%s: %s", row.says, r.Signature)
			if row.code == envelope.DependencyMissing {
				r.Module = cutTo(m[1], 100)
			}
			return r
		}
	}
	r := ProbeResult{Code: envelope.BuildTreeBroken, Message: fmt.Sprintf("importing FlyDSL ended Python with exit code %d", exit)}
	if exit < 0 {
		r.Message = fmt.Sprintf("importing FlyDSL killed Python with signal %d", -exit)
	}
	return r
}

// lastJSON decodes the last line that is an object: packages print what they like while they are imported.
func lastJSON(stdout []byte, into any) error {
	lines := strings.Split(string(stdout[max(0, len(stdout)-maxProbeOutput):]), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), into) == nil {
			return nil
		}
	}
	return errors.New("no JSON in its output")
}

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
