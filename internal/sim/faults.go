package sim

import "github.com/flyprof/flyprof-mcp/core/envelope"

// FaultInfo describes a fault that can be dialled in with --fault.
type FaultInfo struct {
	// Name is what --fault takes; Value says what may follow `=`.
	Name, Value string
	// Does says what goes wrong, as the real thing would look.
	Does string
	// Code is the catalogue code that a capture should end with; empty where it should succeed, possibly with a warning.
	Code envelope.Code
}

// FaultNames lists the faults.
func FaultNames() []FaultInfo { return append([]FaultInfo(nil), faults...) }

func faultWords() []string {
	out := make([]string, len(faults))
	for i, f := range faults {
		out[i] = f.Name
	}
	return out
}

// The texts of these faults are those of rocprofiler-sdk 1.1.0, ROCr, PyTorch and FlyDSL 0.3.
var faults = []FaultInfo{
	{Name: "empty_att", Does: "no workgroup lands on the traced CU: null code, occupancy elsewhere", Code: "EMPTY_ATT"},
	{Name: "iteration_out_of_range", Does: "the profiled run launches the kernel once only: silence and no .att for a later launch"},
	{Name: "no_kernel", Does: "the test launches torch's kernels but not its own", Code: "NO_KERNEL_DISCOVERED"},
	{Name: "compile_fail", Does: "FlyDSL's compiler rejects the kernel (DSLCompileError, exit 1)", Code: "KERNEL_COMPILE_FAIL"},
	{Name: "timeout", Does: "the test hangs for ever and has started a sleeping child in a group of its own", Code: "CAPTURE_TIMEOUT"},
	{Name: "slow", Value: "seconds (default 5)", Does: "the test takes that long and then succeeds"},
	{Name: "decoder_missing", Does: "rocprofv3 finds no trace decoder and ends before the test starts", Code: "DECODER_MISSING"},
	{Name: "decoder_unloadable", Does: "the trace decoder cannot be loaded: abort after the run, .att files on disk", Code: "DECODER_MISSING"},
	{Name: "app_crash", Does: "the test dies of SIGSEGV before its kernel runs, nothing is written", Code: "WORKLOAD_FAILED"},
	{Name: "assert_after_kernel", Does: "the test's comparison fails after the kernel ran (exit 1)"},
	{Name: "skipped", Does: "the test skips itself (exit 0, nothing launched)", Code: "WORKLOAD_SKIPPED"},
	{Name: "truncated", Value: "bytes (default any)", Does: "a trace buffer smaller than that is full: waves are cut, with warnings"},
	{Name: "data_lost", Does: "the profiler drops part of the trace for bandwidth, with a warning"},
	{Name: "oom", Does: "torch runs out of GPU memory", Code: "GPU_OOM"},
	{Name: "gpu_fault", Does: "memory access fault: abort before the kernel ends", Code: "GPU_FAULT"},
	{Name: "gpu_hang", Does: "the driver resets the hung GPU: abort", Code: "GPU_HANG"},
	{Name: "disk_full", Does: "the profiler's files cannot be written: No space left on device", Code: "DISK_FULL"},
	{Name: "torn_json", Does: "code.json ends in the middle", Code: "TRACE_CORRUPT"},
	{Name: "wrong_gpu", Does: "ATT armed a GPU on which nothing ran: .att files of 424 bytes only", Code: "EMPTY_ATT"},
	{Name: "wrong_kernel", Does: "the trace holds another kernel than the one that was asked for", Code: "EMPTY_ATT"},
	{Name: "busy", Does: "another process profiles on the GPU and keeps it busy: ATT cannot be set up", Code: "GPU_BUSY"},
	{Name: "att_packet", Does: "the trace buffer cannot be allocated: abort before the test starts", Code: "PROFILER_CRASHED"},
	{Name: "unsupported", Does: "the kernel's builder refuses the configuration (NotImplementedError under kernels/, exit 1)", Code: "UNSUPPORTED_CONFIG"},
	{Name: "old_rocprof", Does: "rocprofv3 of ROCm 6.4: no --version, no --att, ATT keys of a job ignored", Code: "ROCPROFV3_TOO_OLD"},
	{Name: "no_gpu", Does: "no GPU is visible", Code: "NO_GPU"},
	{Name: "torch_missing", Does: "the interpreter has no torch", Code: "DEPENDENCY_MISSING"},
	{Name: "not_built", Does: "FlyDSL's compiled package is missing", Code: "BUILD_TREE_MISSING"},
	{Name: "broken_build", Does: "FlyDSL is there and its compiled part is not", Code: "BUILD_TREE_BROKEN"},
	{Name: "ignore_sigterm", Does: "the test hangs for ever and ignores SIGTERM", Code: "CAPTURE_TIMEOUT"},
	{Name: "profiler_crash", Does: "SIGSEGV in the profiler's finalization, after complete outputs"},
	{Name: "no_rotation", Does: "rocprofv3 does not know pmc_groups: it counts nothing and says nothing"},
	{Name: "restless", Does: "workgroups are placed elsewhere in each run instead of the same CUs for one seed"},
}
