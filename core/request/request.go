// Package request holds what can be asked: one struct of arguments for each verb.
//
// The same structs are the MCP tools' inputs, the command line's flags and the arguments of next actions, so an action
// that core computes is always a call that can be sent as it stands.
package request

import (
	"encoding/json"
	"fmt"
)

// Verb names one operation of the runbook. MCP calls it flyprof_<verb>, the command line `flyprof-mcp <verb>`.
type Verb string

// The verbs. Their MCP tool names and command lines stand in tools/.
const (
	VerbDoctor   Verb = "doctor"
	VerbList     Verb = "list"
	VerbTile     Verb = "tile"
	VerbCapture  Verb = "capture"
	VerbStatus   Verb = "status"
	VerbCancel   Verb = "cancel"
	VerbTriage   Verb = "triage"
	VerbRead     Verb = "read"
	VerbBubbles  Verb = "bubbles"
	VerbMap      Verb = "map"
	VerbCounters Verb = "counters"
	VerbDiff     Verb = "diff"
	VerbReport   Verb = "report"
)

// Args is implemented by the argument struct of each verb.
type Args interface{ Verb() Verb }

// Doctor asks whether this host can capture.
type Doctor struct {
	GPU      *int   `json:"gpu,omitempty" jsonschema:"minimum=0,maximum=255" jsonschema_description:"GPU index inside the inherited visible-devices mask; default 0."`
	Worktree string `json:"worktree,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"FlyDSL checkout to look at; default the configured one."`
	Arch     string `json:"arch,omitempty" jsonschema:"maxLength=32,pattern=^gfx[0-9a-f]+$" jsonschema_description:"Architecture the kernel is meant for such as gfx942 or gfx950; default the GPU's own."`
}

// List asks which kernels the worktree has and how each is run.
type List struct {
	Worktree string `json:"worktree,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"FlyDSL checkout to list; default the configured one."`
	Filter   string `json:"filter,omitempty" jsonschema:"maxLength=200" jsonschema_description:"Keep kernels whose name or symbol or test file contains this text."`
	Limit    int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=200" jsonschema_description:"Kernels per answer; default 50."`
	Offset   int    `json:"offset,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"Kernels to pass over; use the next_offset of the answer before."`
}

// Tile asks for tile advice, the roofline regime and whether the grid reaches the traced CUs.
type Tile struct {
	Kernel   string `json:"kernel" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Kernel name as flyprof_list gives it."`
	Shape    string `json:"shape" jsonschema:"minLength=1,maxLength=400" jsonschema_description:"Problem shape: GEMM M;N;K - reduction and elementwise M;N - attention B;H;S;D - MoE T;E;k;D. Written with commas or named (M=8192) and a dtype may follow."`
	DType    string `json:"dtype,omitempty" jsonschema:"maxLength=16" jsonschema_description:"Input dtype: bf16 f16 f32 fp8 int8 fp6 fp4 f64; default the shape's own else bf16."`
	OutDType string `json:"out_dtype,omitempty" jsonschema:"maxLength=16" jsonschema_description:"Output dtype; default bf16 for 8-bit and smaller inputs else the input dtype."`
	Arch     string `json:"arch,omitempty" jsonschema:"maxLength=32,pattern=^gfx[0-9a-f]+$" jsonschema_description:"gfx942 or gfx950; default the GPU at hand else gfx950 with a note of what was assumed."`
	BM       int    `json:"bm,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"Tile rows (M). Give bm and bn and bk together or none."`
	BN       int    `json:"bn,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"Tile columns (N)."`
	BK       int    `json:"bk,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"Tile depth (K)."`
	Buffers  int    `json:"buffers,omitempty" jsonschema:"minimum=1,maximum=8" jsonschema_description:"LDS buffers (pipeline stages); default 2."`
}

// SymbolMark stands between a kernel's name and the launched symbol that is meant: "softmax::softmax_kernel_0".
const SymbolMark = "::"

// MaxKernel is the longest kernel argument of Capture in bytes: C++ symbols are long.
const MaxKernel = 2000

// Capture asks for an instruction-level trace of one kernel.
type Capture struct {
	Kernel              string   `json:"kernel" jsonschema:"minLength=1,maxLength=2000" jsonschema_description:"Kernel name from flyprof_list or the exact launched symbol such as softmax_kernel_0 or both as softmax::softmax_kernel_0."`
	Shape               string   `json:"shape,omitempty" jsonschema:"maxLength=400" jsonschema_description:"Problem shape for the test such as 8192x8192 or M=8192;N=8192;bf16 (commas work). Default the test's own."`
	Args                []string `json:"args,omitempty" jsonschema:"maxItems=64" jsonschema_description:"Further arguments for the test as plain tokens."`
	Tag                 string   `json:"tag,omitempty" jsonschema:"enum=small,enum=big,enum=both" jsonschema_description:"Which trace to take: big (default) is the shape asked for; small a smaller problem; both."`
	WithPMC             bool     `json:"with_pmc,omitempty" jsonschema_description:"Also collect performance counters in separate passes; re-runs the workload several times (minutes)."`
	GPU                 *int     `json:"gpu,omitempty" jsonschema:"minimum=0,maximum=255" jsonschema_description:"GPU index inside the inherited visible-devices mask; default 0."`
	IterRange           string   `json:"iter_range,omitempty" jsonschema:"maxLength=200" jsonschema_description:"1-based launch of the kernel to trace: a number such as 8. Default the second launch or later."`
	Group               string   `json:"group,omitempty" jsonschema:"maxLength=200" jsonschema_description:"Which launch group when a kernel is launched with several grids: the id that an earlier answer lists in groups."`
	TimeoutS            int      `json:"timeout_s,omitempty" jsonschema:"minimum=10,maximum=86400" jsonschema_description:"Limit for the whole run in seconds; default 1200."`
	WaitS               *int     `json:"wait_s,omitempty" jsonschema:"minimum=0,maximum=3600" jsonschema_description:"Seconds to wait for the run before answering that it goes on; default 45."`
	Invocation          string   `json:"invocation,omitempty" jsonschema:"maxLength=4000" jsonschema_description:"Command that launches the kernel in place of the recipe: python or pytest on a script. Split on spaces and quotes; no shell."`
	Cwd                 string   `json:"cwd,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"Directory to run the invocation in; default the worktree."`
	Worktree            string   `json:"worktree,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"FlyDSL checkout; default the configured one."`
	Target              string   `json:"target,omitempty" jsonschema:"enum=flydsl,enum=baseline" jsonschema_description:"Trace the FlyDSL kernel (default) or on purpose the baseline beside it."`
	ATTTargetCU         *int     `json:"att_target_cu,omitempty" jsonschema:"minimum=0,maximum=15" jsonschema_description:"Physical CU traced in each shader engine; default 1."`
	ATTShaderEngineMask string   `json:"att_shader_engine_mask,omitempty" jsonschema:"maxLength=18,pattern=^(auto|0[xX][0-9a-fA-F]+|[0-9]+)$" jsonschema_description:"Shader engines to trace as a bit mask over all XCDs such as 0xf or 0x11111111; default auto by grid size."`
	ATTBufferSize       int      `json:"att_buffer_size,omitempty" jsonschema:"minimum=1048576,maximum=1073741824" jsonschema_description:"Trace buffer in bytes shared by the selected shader engines; default 100663296 (96 MiB)."`
	RetryOf             string   `json:"retry_of,omitempty" jsonschema:"maxLength=200" jsonschema_description:"run_id of the run that this one retries."`
	Force               bool     `json:"force,omitempty" jsonschema_description:"Run again although nothing changed since an identical failure."`
	Rediscover          bool     `json:"rediscover,omitempty" jsonschema_description:"Do not reuse an earlier discovery."`
}

// Status asks for a run: its progress, or the envelope it ended with.
type Status struct {
	RunID string `json:"run_id" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"run_id of the capture."`
	WaitS *int   `json:"wait_s,omitempty" jsonschema:"minimum=0,maximum=3600" jsonschema_description:"Seconds to wait for the run to end; default 45."`
}

// Cancel stops a run and its whole process tree.
type Cancel struct {
	RunID string `json:"run_id" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"run_id of the capture to stop."`
}

// Triage asks for causes and next actions; exactly one source is given.
type Triage struct {
	RunID    string `json:"run_id,omitempty" jsonschema:"maxLength=200" jsonschema_description:"A run of this server."`
	Path     string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A directory on the server's host: a ui_output directory or an att folder or a run."`
	Code     string `json:"code,omitempty" jsonschema:"maxLength=64" jsonschema_description:"An error code such as EMPTY_ATT."`
	LogText  string `json:"log_text,omitempty" jsonschema:"maxLength=200000" jsonschema_description:"Pasted log text of rocprofv3 or of the test."`
	Envelope string `json:"envelope,omitempty" jsonschema:"maxLength=200000" jsonschema_description:"A pasted envelope as JSON text."`
	Kernel   string `json:"kernel,omitempty" jsonschema:"maxLength=400" jsonschema_description:"The kernel where known."`
	Shape    string `json:"shape,omitempty" jsonschema:"maxLength=400" jsonschema_description:"The shape where known."`
}

// Read asks for a resource, or without URI for what there is to read.
type Read struct {
	URI    string `json:"uri,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A flyprof:// or skill:// URI. Left out: a list of what there is to read."`
	Offset int64  `json:"offset,omitempty" jsonschema:"minimum=0" jsonschema_description:"Byte offset to read from (with no uri: entries to pass over)."`
	Limit  int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=20000" jsonschema_description:"Characters per page (with no uri: entries); default 20000 (with no uri 100)."`
}

// Bubbles asks where the waves of a trace stalled.
type Bubbles struct {
	RunID    string `json:"run_id,omitempty" jsonschema:"maxLength=200" jsonschema_description:"A run of this server; give this or path."`
	Path     string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A directory with a trace on the server's host: a ui_output directory or a folder or a bundle."`
	Tag      string `json:"tag,omitempty" jsonschema:"enum=small,enum=big" jsonschema_description:"Which trace of the run; default big where there is one."`
	CodeLine *int64 `json:"code_line,omitempty" jsonschema:"minimum=0" jsonschema_description:"Show this one instruction (its LineNumber) in place of the hot ones."`
	Limit    int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=200" jsonschema_description:"Hot instructions and source lines per answer; default 10."`
	Offset   int    `json:"offset,omitempty" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"How many of them to pass over."`
}

// Map asks which instructions belong to which source lines.
type Map struct {
	RunID      string `json:"run_id,omitempty" jsonschema:"maxLength=200" jsonschema_description:"A run of this server; give this or path."`
	Path       string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A directory with a trace on the server's host: a ui_output directory or a folder or a bundle."`
	Tag        string `json:"tag,omitempty" jsonschema:"enum=small,enum=big" jsonschema_description:"Which trace of the run; default big where there is one."`
	SourceLine string `json:"source_line,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"file or file:12 or file:10-20 or 12 or 10-20; a file is a whole path or its last elements."`
	CodeLine   *int64 `json:"code_line,omitempty" jsonschema:"minimum=0" jsonschema_description:"LineNumber of an instruction."`
	Address    string `json:"address,omitempty" jsonschema:"maxLength=32,pattern=^(0[xX][0-9a-fA-F]+|[0-9]+)$" jsonschema_description:"Virtual address such as 0x1a40."`
	Class      string `json:"class,omitempty" jsonschema:"maxLength=40" jsonschema_description:"Class such as valu or mfma or vmem_load or lds or wait; or a counter such as vmcnt."`
	Limit      int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=200" jsonschema_description:"Instructions per answer; default 10."`
	Offset     int    `json:"offset,omitempty" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"Instructions to pass over."`
}

// Counters asks for the performance counters of a kernel and what follows from them.
type Counters struct {
	RunID  string `json:"run_id,omitempty" jsonschema:"maxLength=200" jsonschema_description:"A run of this server that was captured with_pmc; give this or path."`
	Path   string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A directory with counter_collection.csv files on the server's host."`
	Tag    string `json:"tag,omitempty" jsonschema:"enum=small,enum=big" jsonschema_description:"Counters are collected for the launch of the tag big."`
	Kernel string `json:"kernel,omitempty" jsonschema:"maxLength=2000" jsonschema_description:"Which kernel of the files; default the traced one or the only one."`
}

// Diff asks what changed between two traces of a kernel.
type Diff struct {
	Before string `json:"before" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"run_id or path of the trace before the change."`
	After  string `json:"after" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"run_id or path of the trace after it."`
	Tag    string `json:"tag,omitempty" jsonschema:"enum=small,enum=big" jsonschema_description:"Which traces of the runs; default big where there is one."`
}

// Report asks for ranked advice on a trace.
type Report struct {
	RunID string `json:"run_id,omitempty" jsonschema:"maxLength=200" jsonschema_description:"A run of this server; give this or path."`
	Path  string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"A directory with a trace on the server's host."`
	Tag   string `json:"tag,omitempty" jsonschema:"enum=small,enum=big" jsonschema_description:"Which trace of the run; default big where there is one."`
}

// Verb implements Args.
func (Report) Verb() Verb { return VerbReport }

// Verb implements Args.
func (Diff) Verb() Verb { return VerbDiff }

// Verb implements Args.
func (Counters) Verb() Verb { return VerbCounters }

// Verb implements Args.
func (Bubbles) Verb() Verb { return VerbBubbles }

// Verb implements Args.
func (Map) Verb() Verb { return VerbMap }

// Verb implements Args.
func (Doctor) Verb() Verb { return VerbDoctor }

// Verb implements Args.
func (List) Verb() Verb { return VerbList }

// Verb implements Args.
func (Tile) Verb() Verb { return VerbTile }

// Verb implements Args.
func (Capture) Verb() Verb { return VerbCapture }

// Verb implements Args.
func (Status) Verb() Verb { return VerbStatus }

// Verb implements Args.
func (Cancel) Verb() Verb { return VerbCancel }

// Verb implements Args.
func (Triage) Verb() Verb { return VerbTriage }

// Verb implements Args.
func (Read) Verb() Verb { return VerbRead }

// Decode reads the arguments of a verb from JSON, as a stored next action has them. An unknown verb is an error.
func Decode(verb Verb, raw []byte) (Args, error) {
	read, ok := readers[verb]
	if !ok {
		return nil, fmt.Errorf("unknown verb %q", verb)
	}
	return read(raw)
}

var readers = map[Verb]func([]byte) (Args, error){
	VerbDoctor:   read[Doctor],
	VerbList:     read[List],
	VerbTile:     read[Tile],
	VerbCapture:  read[Capture],
	VerbStatus:   read[Status],
	VerbCancel:   read[Cancel],
	VerbTriage:   read[Triage],
	VerbRead:     read[Read],
	VerbBubbles:  read[Bubbles],
	VerbMap:      read[Map],
	VerbCounters: read[Counters],
	VerbDiff:     read[Diff],
	VerbReport:   read[Report],
}

func read[A Args](raw []byte) (Args, error) {
	var a A
	err := json.Unmarshal(raw, &a)
	return a, err
}
