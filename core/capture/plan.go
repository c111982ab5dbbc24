package capture

import (
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// Defaults of a capture.
const (
	DefaultTimeoutS   = 1200
	DefaultWaitS      = 45
	maxDiscoverS      = 900
	DefaultTargetCU   = 1
	DefaultBufferSize = 96 << 20
	// maxWorkloadRuns caps what automatic retries inside one run may cost.
	maxWorkloadRuns = 12
	// maxAutoBuffer is the largest buffer that is tried unasked, maxBuffer the largest that may be asked for: with 1 GiB some GPUs
	// cannot set up a trace or hang.
	maxAutoBuffer = 512 << 20
	maxBuffer     = 1 << 30
)

// Tools are the programs that a capture starts. Each is an argv prefix, so that the simulated ones and wrappers fit.
type Tools struct {
	Rocprofv3      []string `json:"rocprofv3"`
	Python         []string `json:"python"`
	ATTLibraryPath []string `json:"att_library_path,omitempty"`
	// Env is set for every child in the end: the simulated GPU's switches.
	Env []string `json:"env,omitempty"`
	// Simulated is the architecture of the simulated GPU, empty on real hardware.
	Simulated string `json:"simulated,omitempty"`
}

// Plan is plan.json: all that the supervisor needs, resolved before it starts.
type Plan struct {
	Tools      Tools               `json:"tools"`
	Kernel     *worktree.Kernel    `json:"kernel,omitempty"`
	Invocation worktree.Invocation `json:"invocation"`
	// Named says that the request named a launched symbol in full.
	Symbol string `json:"symbol,omitempty"`
	GPU    GPU    `json:"gpu"`
	// Env is the whole environment of the workload, without what each phase adds and without what is let pass besides: those values may
	// be secrets, so the supervisor takes them over from its own environment and they are never written.
	Env []string `json:"env"`
	// PassEnv names what is let pass besides; Withheld are the names that the server had and the workload has not.
	PassEnv  []string `json:"pass_env,omitempty"`
	Withheld []string `json:"withheld,omitempty"`
	// AnyInvocation: commands are not confined.
	AnyInvocation bool `json:"any_invocation,omitempty"`
	StopGraceS    int  `json:"stop_grace_s"`
	// RefuseBusy: a GPU that is in use is GPU_BUSY and no warning.
	RefuseBusy bool `json:"refuse_busy,omitempty"`
	// LockDirs are where the GPU's lock may be; the first that can be used is.
	LockDirs   []string   `json:"lock_dirs,omitempty"`
	Provenance Provenance `json:"provenance"`
	// Retry is the budget as it stands for this run.
	RetriesUsed   int `json:"retries_used"`
	RetriesBudget int `json:"retries_budget"`
	// DiscoverKey hashes all that the list of launches depends on; runs with the same key launch the same.
	DiscoverKey string `json:"discover_key,omitempty"`
	// Warnings of the preparation belong to the run's answer.
	Warnings []envelope.Warning `json:"warnings,omitempty"`
}

// Grace is the time between SIGTERM and SIGKILL.
func (p Plan) Grace() time.Duration { return time.Duration(p.StopGraceS) * time.Second }
