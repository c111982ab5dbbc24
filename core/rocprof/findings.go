package rocprof

import (
	"regexp"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Signature is one row of the table of log lines: what they look like and what they mean.
type Signature struct {
	// ID is the row's stable name; it is the warning's code where the row is a caveat.
	ID string
	// Code is the failure that the line proves; empty for a caveat on a trace that may be good.
	Code envelope.Code
	// Meaning says what the line stands for, for the answer.
	Meaning string
	// hints are texts of which a line must hold one, before the pattern is tried; none for rows that match rarely anyway.
	hints   []string
	pattern *regexp.Regexp
	// needs is an ID of another row that must have been seen too; absent one that must not.
	needs string
	// without are texts that the line must not hold.
	without []string
}

// Pattern is the regular expression (RE2) of the line, without colours and logger prefix.
func (s Signature) Pattern() string { return s.pattern.String() }

func row(id string, code envelope.Code, meaning, pattern string, hints ...string) Signature {
	return Signature{ID: id, Code: code, Meaning: meaning, hints: hints, pattern: regexp.MustCompile(pattern)}
}

func (s Signature) with(needs string) Signature       { s.needs = needs; return s }
func (s Signature) unlessHolds(t ...string) Signature { s.without = t; return s }

// signatures is the table. The first row that was seen decides, whatever the order of the lines in the log: what a log says of
// the profiler and the build explains the exceptions that follow from it. Sources: rocprofv3.py and the tool library of
// rocprofiler-sdk, ROCr, FlyDSL (compiler/diagnostics.py, FlyRocmRuntimeWrappers.cpp, tests/conftest.py), PyTorch, LLVM, pytest.
var signatures = []Signature{
	// The profiler cannot begin.
	row("ROCPROF_NO_ATT", envelope.Rocprofv3TooOld, "this rocprofv3 does not know --att", `unrecognized arguments: --att`, "unrecognized arguments"),
	row("DECODER_NOT_FOUND", envelope.DecoderMissing, "rocprofv3 found no trace decoder", `trace-decoder library path not found`, "library path not found"),
	row("DECODER_NOT_LOADABLE", envelope.DecoderMissing, "the trace decoder is there and cannot be loaded: its file is not called librocprof-trace-decoder.so, needs another glibc, or has another ABI", `Error loading decoder: \d+|Decoder library not found`, "oading decoder", "Decoder library"),
	row("DISK_FULL", envelope.DiskFull, "there was no room left to write", `No space left on device|Disk quota exceeded`, "No space left", "quota exceeded"),
	row("ATT_PACKET_BUSY", envelope.GPUBusy, "the thread trace of this GPU is in use by another profiler", `failed to create ATT packet`, "ATT packet").with("OTHER_PROFILER"),
	row("ATT_PACKET", envelope.ProfilerCrashed, "the thread trace could not be set up on the GPU: its buffer cannot be allocated, or its counters are locked", `failed to create ATT packet`, "ATT packet"),
	row("ATT_PARAMETER", envelope.BadArgs, "rocprofv3 refused an ATT parameter", `thread trace service configure failed`, "configure failed"),
	row("GPU_INDEX", envelope.NoGPU, "rocprofv3 does not know the GPU index", `Invalid GPU (?:Device Index|Id string)`, "Invalid GPU"),
	row("PMC_TOO_MANY", envelope.ProfilerCrashed, "more counters were asked for than one pass can collect", `error code 38: Request exceeds the capabilities`, "error code 38"),
	row("ARCH_NOT_PROFILED", envelope.UnsupportedConfig, "rocprofv3 does not support this GPU for what was asked", `Agent (?:HW architecture is )?not supported|configuration is not supported on any of the agents`, "not supported"),
	row("TWO_ROCM_STACKS", envelope.WorkloadFailed, "two ROCm installations are loaded into one process", `registered more than once!|ROCPROFILER_REGISTER_LIBRARY is already set|undefined symbol: hsa_amd_`, "registered more than once", "already set to", "undefined symbol"),
	row("OUTPUT_UNWRITABLE", envelope.StoreUnwritable, "rocprofv3 could not write into the run's directory", `Failed to open '.*' for output|already exists and is not a directory`, "for output", "not a directory"),

	// The build and what the test needs.
	row("FLYDSL_BROKEN", envelope.BuildTreeBroken, "FlyDSL is there and its compiled part cannot be loaded", `No module named 'flydsl\._mlir|Required JIT runtime library not found|ImportError: .*_mlir_libs|_mlir_libs.*cannot open shared object`, "flydsl._mlir", "JIT runtime library", "_mlir_libs"),
	row("FLYDSL_NOT_BUILT", envelope.BuildTreeMissing, "no FlyDSL can be imported", `No module named 'flydsl'`, "No module named 'flydsl"),
	row("FLYDSL_STALE", envelope.BuildTreeBroken, "the compiled FlyDSL is older than the sources that use it", `ImportError: cannot import name '\w+' from 'flydsl\.`, "from 'flydsl."),
	row("KERNEL_MODULE_MISSING", envelope.WorktreeInvalid, "the test imports kernels that this worktree does not have", `No module named 'kernels[\w.]*'`, "No module named 'kernels"),
	row("TORCH_MISSING", envelope.DependencyMissing, "the Python in use has no torch", `No module named 'torch'|PyTorch not available`, "'torch'", "PyTorch not available"),
	row("DEPENDENCY_MISSING", envelope.DependencyMissing, "the test needs a Python package that is not installed", `No module named '(?:aiter|mori|triton|pytest|numpy|einops)[\w.]*'|Skipped: .*\b(?:aiter|mori)\b|No module named pytest`, "No module named", "Skipped: "),
	row("MODULE_MISSING", envelope.DependencyMissing, "the test needs a Python module that is not installed", `ModuleNotFoundError: No module named '[\w.]+'`, "ModuleNotFoundError"),

	// The GPU.
	row("KFD_DENIED", envelope.GPUAccessDenied, "this user may not open the GPU", `Unable to open /dev/kfd read-write: (?:Permission denied|Operation not permitted)|not member of "(?:render|video)" group`, "/dev/kfd", "not member of"),
	row("NO_GPU", envelope.NoGPU, "the test saw no GPU", `CUDA/ROCm not available|No HIP GPUs are available|ROCk module is NOT loaded|no ROCm-capable device|hipErrorNoDevice`, "not available", "No HIP GPUs", "NOT loaded", "no ROCm-capable", "hipErrorNoDevice"),
	row("GPU_FAULT", envelope.GPUFault, "the kernel made the GPU fault", `Memory access fault by GPU|HSA_STATUS_ERROR_(?:MEMORY_FAULT|MEMORY_APERTURE_VIOLATION|ILLEGAL_INSTRUCTION|EXCEPTION)`, "access fault", "HSA_STATUS_ERROR_"),
	row("GPU_HANG", envelope.GPUHang, "the GPU hung and was reset", `HW Exception by GPU.*GPU Hang|GPU Hang`, "GPU Hang"),
	row("GPU_OOM", envelope.GPUOOM, "the GPU ran out of memory", `(?:HIP|CUDA) out of memory|OutOfMemoryError|failed with 'hipErrorOutOfMemory'|HSA_STATUS_ERROR_OUT_OF_RESOURCES`, "out of memory", "OutOfMemory", "OUT_OF_RESOURCES").unlessHolds("ATT packet"),
	row("WRONG_ARCH_BINARY", envelope.UnsupportedConfig, "the kernel was compiled for another GPU", `hipErrorNoBinaryForGpu|no kernel image is available|hipErrorInvalidImage`, "hipErrorNoBinaryForGpu", "no kernel image", "hipErrorInvalidImage"),

	// The kernel.
	row("COMPILE_FAIL", envelope.KernelCompileFail, "FlyDSL could not compile the kernel", `\b(?:Fly)?DSLCompileError: |MLIRError|Failure while executing pass pipeline|ExternalLLVMError|missing _reusable_slot_spec`, "CompileError", "MLIRError", "pass pipeline", "ExternalLLVMError", "_reusable_slot_spec"),
	row("LLVM_ERROR", envelope.KernelCompileFail, "LLVM could not compile the kernel", `LLVM ERROR: |local memory \(\d+\) exceeds limit|PLEASE submit a bug report`, "LLVM ERROR", "exceeds limit", "PLEASE submit"),
	row("TRACE_FAIL", envelope.KernelCompileFail, "FlyDSL could not build the kernel from its Python source", ``),
	row("CONFIG_REFUSED", envelope.UnsupportedConfig, "the kernel does not support this configuration", ``),
	row("HIP_ERROR", envelope.WorkloadFailed, "a HIP call failed", `'hip\w+\(.*' failed with 'hipError\w+'|HIP error:|hipError\w+: `, "hipError", "HIP error:"),

	// The test decided not to run.
	row("SKIPPED", envelope.WorkloadSkipped, "the test skipped itself", `^(?:E\s+)?(?:_pytest\.outcomes\.)?Skipped: |^SKIPPED \[?|collected 0 items / \d+ skipped|\b\d+ skipped in `, "kipped", "SKIPPED").unlessHolds(" passed", " failed"),
	row("NOTHING_RAN", envelope.WorkloadSkipped, "no test was selected", `no tests ran|\b\d+ deselected in |temporarily disabled`, "no tests ran", "deselected in", "temporarily disabled").unlessHolds(" passed", " failed"),
	row("BAD_INVOCATION", envelope.WorkloadFailed, "the test did not understand its command line", `error: the following arguments are required|error: unrecognized arguments|file or directory not found|can't open file|invalid choice: `, "are required", "unrecognized arguments", "not found", "can't open file", "invalid choice"),
	row("CACHE_LOCK", envelope.WorkloadFailed, "the compile cache is locked by another process", `Timed out waiting for (?:exclusive|shared) lock on`, "Timed out waiting"),

	// The ends of programs.
	row("PROFILER_CRASH", envelope.ProfilerCrashed, "rocprofv3 died after it had begun to write its output", `died with <Signals\.SIG|\*\*\* (?:SIG\w+|Aborted)`, "died with", "*** ").with("OUTPUT_WRITTEN"),
	row("APP_CRASH", envelope.WorkloadFailed, "the test crashed", `died with <Signals\.SIG|\*\*\* (?:SIG\w+|Aborted)|Segmentation fault`, "died with", "*** ", "Segmentation fault"),
	row("TEST_ASSERT", envelope.WorkloadFailed, "a check of the test failed", `AssertionError|TESTS? FAILED|\b\d+ failed\b`, "AssertionError", "FAILED", " failed"),
	row("EXCEPTION", envelope.WorkloadFailed, "the test ended with an exception", `^(?:E\s+)?[A-Za-z_][\w.]*(?:Error|Exception): |^(?:E\s+)?KeyboardInterrupt`, "Error: ", "Exception: ", "KeyboardInterrupt"),

	// Caveats on a trace that may be good.
	row("OUTPUT_WRITTEN", "", "", `Opened result file: `, "Opened result file"),
	row("TRACE_BUFFER_FULL", "", "the trace buffer was full, so the trace is cut: a larger att_buffer_size or fewer shader engines give more", `Thread trace buffer full!|SQTT data buffer full`, "buffer full"),
	row("TRACE_DATA_LOST", "", "the profiler dropped a part of the trace for lack of bandwidth", `Data Lost: `, "Data Lost"),
	row("TRACE_WAVES_CUT", "", "the trace ended before all its waves did", `Wave incomplete: `, "Wave incomplete"),
	row("TRACE_STITCH_INCOMPLETE", "", "some trace tokens fit no instruction of the disassembly", `Stitch Incomplete: `, "Stitch Incomplete"),
	row("TRACE_CODE_MISSING", "", "some instructions could not be fetched from their code object", `Could not fetch some instructions!|Unable to load codeobj:|memory://.* was not loaded`, "Could not fetch", "Unable to load codeobj", "was not loaded"),
	row("TRACE_CONTEXT_SWITCH", "", "waves were saved and restored while they were traced, so their times hold the pause", `Wave had \d+ context save-restores`, "context save-restores"),
	row("TRACE_DECODE_ERROR", "", "the trace of a shader engine could not be decoded", `DECODER_STATUS_ERROR_INVALID_SHADER_DATA`, "INVALID_SHADER_DATA"),
	row("TRACE_NOT_ARMED", "", "the thread trace was torn down before it was read", `Thread trace context not present for agent|Thread tracer being destroyed`, "context not present", "being destroyed"),
	row("TRACE_FILE_LOST", "", "a raw trace file could not be read back", `could not open .*\.att|Could not retrieve shader_id`, "could not open", "shader_id"),
	row("OTHER_PROFILER", "", "another profiler is attached to the GPU; counters may be wrong", `has a profiler attached to it`, "profiler attached"),
	row("NO_PERFMON", "", "the GPU could not be locked for profiling (CAP_PERFMON); counters are usually right all the same", `could not be locked for profiling due to lack of permissions`, "could not be locked"),
	row("COUNTERS_MISSING", "", "some counters do not exist on this GPU and were left out", `Unable to find all counters|some counters will be unavailable`, "all counters", "will be unavailable"),
}

// The rows that are told from a traceback and not from a line.
const (
	traceFail     = "TRACE_FAIL"
	configRefused = "CONFIG_REFUSED"
)

// Signatures gives the rows that stand for something a caller sees, in the order in which they decide.
func Signatures() []Signature {
	var out []Signature
	for _, s := range signatures {
		if s.Meaning != "" {
			out = append(out, s)
		}
	}
	return out
}
