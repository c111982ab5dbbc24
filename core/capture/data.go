// Package capture is one run from the request to the verdict: discover the kernel's launches, trace one of them per tag,
// judge what was written, and say what to do next.
//
// The Service is the side of the server: it checks, starts, watches and stops runs. Drive is the side of the supervisor, a
// process of its own that owns the children.
package capture

import (
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/runs"
)

// Data is the data of the capture envelope; the field names are the contract of the runbook.
type Data struct {
	RunID string     `json:"run_id"`
	State runs.State `json:"state" jsonschema:"enum=queued,enum=running,enum=done,enum=failed,enum=cancelled,enum=interrupted"`
	Phase string     `json:"phase,omitempty" jsonschema_description:"What is being done: probe or discover or att:<tag> or pmc:<i>/<n>."`
	// ElapsedS and EstimateS are seconds since the start of the run, and of the whole run.
	ElapsedS  float64  `json:"elapsed_s,omitempty"`
	EstimateS int      `json:"estimate_s,omitempty"`
	LogTail   []string `json:"log_tail,omitempty"`
	Repeated  bool     `json:"repeated,omitempty" jsonschema_description:"An earlier identical failure is answered again; nothing was run."`

	Kernel          string   `json:"kernel,omitempty" jsonschema_description:"The traced symbol."`
	RecipeKernel    string   `json:"recipe_kernel,omitempty" jsonschema_description:"The kernel as flyprof_list names it."`
	RecipeSource    string   `json:"recipe_source,omitempty" jsonschema_description:"registry or synthesizable or invocation."`
	Invocation      string   `json:"invocation,omitempty"`
	MatchConfidence string   `json:"match_confidence,omitempty" jsonschema:"enum=exact,enum=fuzzy,enum=heuristic"`
	Candidates      []string `json:"candidates,omitempty" jsonschema_description:"Launched symbols that fit; check them when match_confidence is heuristic."`

	Discovery *Discovery `json:"discovery,omitempty"`

	// Calls, AvgNS and TotalNS are of the traced symbol in the discovery run.
	Calls     int     `json:"calls,omitempty"`
	AvgNS     float64 `json:"avg_ns,omitempty"`
	TotalNS   int64   `json:"total_ns,omitempty"`
	IterRange string  `json:"iter_range,omitempty" jsonschema_description:"1-based launch within the kernel id that was traced."`
	Group     string  `json:"group,omitempty"`
	Groups    []Group `json:"groups,omitempty" jsonschema_description:"All launch groups of the symbol when there is more than one."`

	Tags       Tags        `json:"tags,omitzero"`
	PMC        []PMCPass   `json:"pmc,omitempty" jsonschema_description:"Performance counters of the traced launch group; one pass of the workload each."`
	Checks     []Check     `json:"checks,omitempty" jsonschema_description:"The runbook's confirmations evaluated."`
	Attempts   []Attempt   `json:"attempts,omitempty"`
	Cost       *Cost       `json:"cost,omitempty"`
	Provenance *Provenance `json:"provenance,omitempty"`
}

// Discovery is where the list of launches is from, when it was not made by this run.
type Discovery struct {
	ReusedFrom string    `json:"reused_from" jsonschema_description:"run_id of the run whose list of launches was taken since nothing it depends on has changed; rediscover makes a new one."`
	At         time.Time `json:"at" jsonschema_description:"When that list was made."`
}

// Group is one kernel id with one grid: what a launch number counts within.
type Group struct {
	ID         string  `json:"id" jsonschema_description:"Value for the argument group."`
	Workgroups int64   `json:"workgroups"`
	Launches   int     `json:"launches"`
	AvgNS      float64 `json:"avg_ns"`
}

// Tags holds the traces that were asked for.
type Tags struct {
	Small *Tag `json:"small,omitempty"`
	Big   *Tag `json:"big,omitempty"`
}

// TagError is why a tag has no trace.
type TagError struct {
	Code    envelope.Code `json:"code"`
	Message string        `json:"message"`
}

// Tag is one trace.
type Tag struct {
	State string    `json:"state" jsonschema:"enum=running,enum=done,enum=failed,enum=skipped"`
	Error *TagError `json:"error,omitempty"`
	Why   string    `json:"why,omitempty" jsonschema_description:"Why the trace was skipped."`
	Shape string    `json:"shape,omitempty"`
	Grid  *Grid     `json:"grid,omitempty"`
	// KeptDir is the dispatch directory, relative to the run's directory.
	KeptDir string `json:"kept_dir,omitempty"`
	Waves   int    `json:"waves"`
	// Ins counts instruction rows of the traced kernel's code object, Mapped those of them with a source line.
	Ins              int      `json:"ins"`
	Mapped           int      `json:"mapped,omitempty"`
	MappedPct        *float64 `json:"mapped_pct,omitempty"`
	MappedLatencyPct *float64 `json:"mapped_latency_pct,omitempty" jsonschema_description:"The same weighted by latency."`
	FlyDSLPct        *float64 `json:"flydsl_pct,omitempty" jsonschema_description:"Share of mapped rows that land inside the flydsl package itself."`
	// Totals over all traced waves: executions, and cycles of the shader clock.
	Hitcount int64 `json:"hitcount,omitempty"`
	Latency  int64 `json:"latency,omitempty"`
	Stall    int64 `json:"stall,omitempty"`
	Idle     int64 `json:"idle,omitempty"`

	ArchVGPR            *int    `json:"arch_vgpr,omitempty"`
	AccumVGPR           *int    `json:"accum_vgpr,omitempty"`
	RegistersFrom       string  `json:"registers_from,omitempty" jsonschema_description:"descriptor or isa or csv."`
	OccupancyWavesPerCU int     `json:"occupancy_waves_per_cu,omitempty"`
	OccupancyLimiter    string  `json:"occupancy_limiter,omitempty"`
	TopStallType        string  `json:"top_stall_type,omitempty"`
	CaptureRC           int     `json:"capture_rc"`
	CaptureS            float64 `json:"capture_s,omitempty"`

	DispatchInventory []envelope.Inventory `json:"dispatch_inventory,omitempty"`
	// What rocprofv3 was told, and why.
	Plan *TracePlan `json:"plan,omitempty"`
}

// PMCPass is what one pass of counters gave.
type PMCPass struct {
	Counters []string  `json:"counters"`
	Values   []Counter `json:"values,omitempty"`
	CSV      []string  `json:"csv,omitempty" jsonschema_description:"Files of the pass relative to the run's directory."`
	CaptureS float64   `json:"capture_s,omitempty"`
	Error    *TagError `json:"error,omitempty"`
}

// Counter is one counter, summed over the collected dispatches of the launch group.
type Counter struct {
	Name       string  `json:"name"`
	Value      float64 `json:"value"`
	Dispatches int     `json:"dispatches"`
}

// Grid is the size of a launch.
type Grid struct {
	// Workgroups of the whole grid; WorkgroupSize in work-items.
	Workgroups    int64  `json:"workgroups"`
	WorkgroupSize int64  `json:"workgroup_size,omitempty"`
	Source        string `json:"source" jsonschema_description:"measured or estimated."`
}

// TracePlan is how a trace was taken.
type TracePlan struct {
	ATTTargetCU         int    `json:"att_target_cu"`
	ATTShaderEngineMask string `json:"att_shader_engine_mask"`
	ATTBufferSize       int64  `json:"att_buffer_size"`
	ATTGPUIndex         int    `json:"att_gpu_index"`
	Why                 string `json:"why"`
}

// Check is one of the runbook's confirmations.
type Check struct {
	ID    string `json:"id"`
	Pass  bool   `json:"pass"`
	Value string `json:"value"`
	Want  string `json:"want"`
}

// Attempt is one trace that was tried.
type Attempt struct {
	N                   int    `json:"n"`
	Tag                 string `json:"tag"`
	IterRange           string `json:"iter_range"`
	ATTTargetCU         int    `json:"att_target_cu"`
	ATTShaderEngineMask string `json:"att_shader_engine_mask"`
	ATTBufferSize       int64  `json:"att_buffer_size"`
	ATTGPUIndex         int    `json:"att_gpu_index"`
	Result              string `json:"result" jsonschema_description:"kept or empty or cut or failed."`
	Why                 string `json:"why"`
}

// Cost is what the run took.
type Cost struct {
	WorkloadRuns int     `json:"workload_runs"`
	Seconds      float64 `json:"seconds"`
}

// Provenance is what the trace depends on, so that it can be told whether it is stale.
type Provenance struct {
	Rocprofv3     string   `json:"rocprofv3,omitempty" jsonschema_description:"Version of the rocprofiler SDK."`
	ROCm          string   `json:"rocm_version,omitempty"`
	Arch          string   `json:"arch,omitempty"`
	Product       string   `json:"product,omitempty"`
	GPU           GPU      `json:"gpu"`
	Worktree      string   `json:"worktree,omitempty"`
	Commit        string   `json:"commit,omitempty"`
	Dirty         *bool    `json:"dirty,omitempty"`
	SourceHash    string   `json:"source_hash,omitempty" jsonschema_description:"Hash of the test and of the kernel sources that it imports."`
	CodegenEnv    []string `json:"codegen_env,omitempty" jsonschema_description:"Environment that changes code generation."`
	Host          string   `json:"host,omitempty"`
	Simulated     bool     `json:"simulated"`
	ServerVersion string   `json:"server_version,omitempty"`
}

// GPU names one GPU as each layer does.
type GPU struct {
	// Index is the argument: the position inside the inherited mask.
	Index int `json:"index"`
	// KFD is the position among all GPUs of the kernel driver, HIP the number that the workload's mask uses.
	KFD int    `json:"kfd"`
	HIP int    `json:"hip"`
	BDF string `json:"bdf,omitempty"`
}
