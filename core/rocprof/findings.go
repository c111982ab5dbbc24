package rocprof

import (
	"regexp"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// signature is one row of the table: a line by which a failure or a caveat is known.
type signature struct {
	// id is the row's stable name. It is also the code of the warning where code is empty.
	id string
	// has are literals of which each matching line contains one: a cheap test before re.
	has []string
	// re matches the line without its log prefix; unless, where set, must not match it.
	re, unless *regexp.Regexp
	// in and notIn match the innermost place "file:line" of the Python traceback that the line ends, from the outermost one.
	in, notIn, from *regexp.Regexp
	// with and without name facts that the whole log must or must not show.
	with, without fact
	// output says whether the line counts before or after the profiler has written everything.
	output outputTime
	// kind limits the row to some lines.
	kind lineKind
	// code is the catalogue's; empty for a warning.
	code envelope.Code
	// says is the message, with $1 and so on for what re caught; meaning the same in general, for readers of the table.
	says, meaning string
	// list names the values of the warning's first group, which are gathered over all lines.
	list string
	// more: the lines that follow, up to an empty one, belong to the message.
	more bool
}

// fact is something about the whole log.
type fact int

const (
	noFact           fact = iota
	somePassed            // a test passed
	profilerAttached      // another profiler holds the GPU
	filesOpened           // the profiler has begun to write
)

// factLines are the lines that show a fact, with a literal that each contains; filesOpened is known otherwise.
var factLines = []struct {
	fact    fact
	literal string
	re      *regexp.Regexp
}{
	{somePassed, " passed", rx(`\b[1-9]\d* passed\b`)},
	{somePassed, "ALL TESTS PASSED", rx(`ALL TESTS PASSED`)},
	{profilerAttached, "has a profiler attached", rx(`has a profiler attached to it`)},
}

// outputTime is when a line counts.
type outputTime int

const (
	anyTime outputTime = iota
	beforeOutput
	afterOutput
)

// lineKind is what a line must be.
type lineKind int

const (
	anyLine    lineKind = iota
	fatalLine           // logged at level F
	lastWords           // an exception that ends the log, or that pytest reports
	ownLine             // not one of the profiler's log
	stackFrame          // a frame of a native stack; other kinds leave those out
)

func rx(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// Files by what they are part of. A kernel's own file is under kernels/, which tests/kernels/ also ends with.
var (
	compilerFile = rx(`(?:^|/)flydsl/(?:compiler|expr|_mlir)/`)
	kernelFile   = rx(`(?:^|/)kernels/`)
	testFile     = rx(`(?:^|/)tests?/`)
	profilerFile = rx(`(?:^|/)rocprofv3(?:\.py)?:`)
)

// signatures is the table. The first row that matches anywhere in the log names the failure, so rows stand in the order of
// what explains more: what kept the profiler from starting, then imports, GPU, compiler, memory, profiler, faults, and at
// last what a test says about itself. Skips stand behind failures, because a test may skip one case and fail in the next.
//
// Texts are those of rocprofiler-sdk 0.6 to 1.3.2 (bin/rocprofv3.py, lib/rocprofiler-sdk-tool, lib/att-tool, hsa/,
// counters/ioctl.cpp), rocprof-trace-decoder (info strings), ROCr, rocminfo, HIP, PyTorch, pytest and FlyDSL
// (compiler/diagnostics.py, lib/Runtime/ROCm).
var signatures = []signature{
	// What kept the profiler from starting.
	{id: "PROFILER_TOO_OLD", has: []string{"unrecognized arguments"}, re: rx(`rocprofv3(?:\.py)?: error: unrecognized arguments: (.*)`),
		code: envelope.Rocprofv3TooOld, says: "rocprofv3 does not know $1", meaning: "rocprofv3 refuses an option that newer ones have"},
	{id: "DECODER_NOT_FOUND", has: []string{"rocprof-trace-decoder"}, re: rx(`rocprof-trace-decoder library path not found(?: in (\[.*?\]))?`),
		code: envelope.DecoderMissing, says: "rocprofv3 found no librocprof-trace-decoder.so in $1", meaning: "the trace decoder is not in any directory that was searched"},
	{id: "DECODER_NOT_LOADED", has: []string{"loading decoder", "Decoder library not found"}, re: rx(`Error loading decoder: \d+|Decoder library not found.*`),
		code: envelope.DecoderMissing, says: "rocprofv3 could not load the trace decoder ($0): 37 is a file that is missing under its plain name or cannot be loaded, 18 one of another version",
		meaning: "the trace decoder's library cannot be loaded; raw .att files are on disk"},
	{id: "TRACE_PARAMETER", has: []string{"configure failed"}, re: rx(`thread trace service configure failed with error code (\d+)(?:: (.*))?`),
		code: envelope.BadArgs, says: "rocprofv3 refused a parameter of the trace (target CU, mask, SIMDs or buffer size): error $1 $2", meaning: "a parameter of the trace is out of range"},
	{id: "TRACE_GPU_INDEX", has: []string{"Invalid GPU"}, re: rx(`Invalid GPU (?:Device Index|Id string): ?(.*)`),
		code: envelope.BadArgs, says: "rocprofv3 knows no GPU $1", meaning: "the GPU index does not exist"},
	{id: "DISK_FULL", has: []string{"No space left", "quota exceeded"}, re: rx(`No space left on device|Disk quota exceeded`),
		code: envelope.DiskFull, says: "a file could not be written: $0", meaning: "the disk is full or the quota is spent"},
	{id: "OUTPUT_UNWRITABLE", has: []string{"for output", "not a directory"}, re: rx(`Failed to open '(.*?)' for output|ROCPROFILER_OUTPUT_PATH \((.*?)\) already exists and is not a directory`),
		code: envelope.StoreUnwritable, says: "rocprofv3 cannot write to $1$2", meaning: "the output directory cannot be written"},
	{id: "YAML_MISSING", has: []string{"YAML package"}, re: rx(`YAML package is not installed`),
		code: envelope.DependencyMissing, says: "rocprofv3's Python has no PyYAML", meaning: "a YAML job file needs PyYAML"},
	{id: "PROGRAM_MISSING", has: []string{"FileNotFoundError"}, re: rx(`^FileNotFoundError: .*No such file or directory: '(.*?)'`), from: profilerFile, kind: lastWords,
		code: envelope.MissingPrereq, says: "rocprofv3 could not start $1: there is no such program", meaning: "the program to profile is not there"},
	{id: "JOB_REFUSED", has: []string{"Error:"}, re: rx(`^((?:\w+\.)*\w+Error: .*)`), from: profilerFile, kind: lastWords,
		code: envelope.Internal, says: "rocprofv3's own script failed on the job: $1", meaning: "the job file or command line is not what this rocprofv3 expects"},
	{id: "FORMAT_REFUSED", has: []string{"Unsupported output format"}, re: rx(`Unsupported output format type: ?(.*)`),
		code: envelope.Internal, says: "rocprofv3 does not know the output format $1", meaning: "the job asks for an output format that is not known"},

	// What cannot be imported.
	{id: "FLYDSL_MISSING", has: []string{"No module named"}, re: rx(`No module named '?flydsl'?(?:$|[^.\w])`),
		code: envelope.BuildTreeMissing, says: "Python finds no flydsl", meaning: "FlyDSL cannot be imported"},
	{id: "FLYDSL_NOT_BUILT", has: []string{"flydsl._mlir", "JIT runtime", "_mlir_libs", "MLIR Python bindings"},
		re:   rx(`No module named 'flydsl\._mlir\S*|Required JIT runtime library not found.*|ImportError: .*_mlir_libs.*|MLIR Python bindings not available`),
		code: envelope.BuildTreeBroken, says: "FlyDSL is there without its compiled part: $0", meaning: "the compiled part of FlyDSL is missing or cannot be loaded"},
	{id: "FLYDSL_LIBRARY", has: []string{"cannot open shared object", "undefined symbol"}, re: rx(`^(?:ImportError|OSError): (\S*(?:[Ff]ly|mlir|MLIR)\S*?): (?:cannot open shared object file|undefined symbol).*`),
		code: envelope.BuildTreeBroken, says: "FlyDSL's library cannot be loaded: $0", meaning: "a library of FlyDSL is missing or of another build"},
	{id: "FLYDSL_STALE", has: []string{"flydsl"}, re: rx(`ImportError: cannot import name '(\w+)' from '(?:partially initialized module ')?(flydsl[\w.]*)'|AttributeError: module '(flydsl[\w.]*)' has no attribute '(\w+)'`),
		code: envelope.BuildTreeBroken, says: "the built FlyDSL has no $1$4 in $2$3: build and sources are of different versions", meaning: "the built FlyDSL is older than the sources that use it"},
	{id: "KERNELS_MISSING", has: []string{"kernels", "tests"}, re: rx(`^ModuleNotFoundError: No module named '((?:kernels|tests)[\w.]*)'|^ImportError: cannot import name '\w+' from '((?:kernels|tests)[\w.]*)'`),
		code: envelope.WorktreeInvalid, says: "the test wants $1$2, which this worktree does not have: $0", meaning: "test and kernel sources are of different commits, or the worktree is not on the path"},
	{id: "TORCH_MISSING", has: []string{"torch", "PyTorch"}, re: rx(`No module named '(torch)(?:\.\w+)*'|PyTorch not available`),
		code: envelope.DependencyMissing, says: "Python has no torch", meaning: "PyTorch is not installed for this Python"},

	// The GPU cannot be used.
	{id: "GPU_ACCESS_DENIED", has: []string{"/dev/kfd", "render", "CAP_PERFMON"}, re: rx(`/dev/kfd(?: read-write| failed)?: (?:Permission denied|Operation not permitted)|USER is not member of "?render"? group|error code 40: .*CAP_PERFMON.*`),
		code: envelope.GPUAccessDenied, says: "this user may not open the GPU: $0", meaning: "/dev/kfd or the render node may not be opened"},
	{id: "NO_GPU", has: []string{"available", "NOT loaded", "/dev/kfd", "detected", "NoDevice"},
		re:   rx(`No (?:HIP|CUDA) GPUs are available|(?:^|[^"'(])CUDA/ROCm not available|ROCk module is NOT loaded|/dev/kfd(?: read-write)?: (?:No such file or directory|Invalid argument)|no ROCm-capable device is detected|hipErrorNoDevice`),
		code: envelope.NoGPU, says: "the test sees no GPU: $0", meaning: "no GPU is visible to the test"},

	// The kernel cannot be built.
	{id: "KERNEL_COMPILE", has: []string{"DSLCompileError"}, re: rx(`\b(?:Fly)?DSLCompileError: (.*)`),
		code: envelope.KernelCompileFail, says: "FlyDSL could not compile the kernel: $1", meaning: "FlyDSL's compiler rejects the kernel", more: true},
	{id: "KERNEL_COMPILE_MLIR", has: []string{"MLIRError", "pass pipeline", "ExternalLLVMError", "_reusable_slot_spec"},
		re:   rx(`\bMLIRError: (.*)|(Failure while executing pass pipeline.*)|\bExternalLLVMError: (.*)|(missing _reusable_slot_spec.*)`),
		code: envelope.KernelCompileFail, says: "MLIR could not compile the kernel: $1$2$3$4", meaning: "an MLIR pass or the verifier rejects the kernel", more: true},
	{id: "KERNEL_COMPILE_LLVM", has: []string{"LLVM ERROR", "exceeds limit", "PLEASE submit"},
		re:   rx(`LLVM ERROR: (.*)|error: (.*local memory \(\d+\) exceeds limit \(\d+\) in function.*)|(PLEASE submit a bug report.*)`),
		code: envelope.KernelCompileFail, says: "LLVM could not compile the kernel: $1$2$3", meaning: "LLVM ends in an error or in a crash of its own", more: true},
	{id: "KERNEL_TRACE", has: []string{"Error"}, re: rx(`^((?:\w+\.)*\w*Error(?:: .*)?)$`), unless: rx(`^(?:ImportError|ModuleNotFoundError|TimeoutError|\S*OutOfMemoryError)|HIP error|failed with error code`), in: compilerFile,
		code: envelope.KernelCompileFail, says: "FlyDSL could not trace the kernel: $1", meaning: "an exception inside FlyDSL's compiler"},
	{id: "KERNEL_REFUSES", has: []string{"Error"}, re: rx(`^((?:RuntimeError|ValueError|NotImplementedError|AssertionError|TypeError): .*)`), in: kernelFile, notIn: testFile,
		code: envelope.UnsupportedConfig, says: "the kernel's own check refuses this configuration: $1", meaning: "a kernel's file raises an exception about its arguments"},

	// Memory and binaries.
	{id: "GPU_OOM", has: []string{"out of memory", "OutOfMemory", "OUT_OF_RESOURCES"}, unless: rx(`ATT packet|[Rr]ocprof`), kind: ownLine,
		re:   rx(`(?:HIP|CUDA) out of memory.*|OutOfMemoryError: .*|failed with 'hipErrorOutOfMemory'|HIP error: out of memory|HSA_STATUS_ERROR_OUT_OF_RESOURCES.*`),
		code: envelope.GPUOOM, says: "the GPU ran out of memory: $0", meaning: "an allocation on the GPU failed"},
	{id: "WRONG_ARCH_BINARY", has: []string{"hipError", "kernel image", "device function"}, re: rx(`hipErrorNoBinaryForGpu|no kernel image is available|hipErrorInvalidImage|invalid device function`),
		code: envelope.UnsupportedConfig, says: "the kernel was built for another GPU: $0", meaning: "the binary does not fit the GPU"},

	// The profiler cannot use the GPU. These lines hold HSA status names, so they stand before the faults.
	{id: "GPU_PROFILED", has: []string{"ATT packet"}, re: rx(`[Ff]ailed to create ATT packet(.*)`), with: profilerAttached,
		code: envelope.GPUBusy, says: "the thread trace could not be set up, and another profiler holds this GPU$1", meaning: "another process profiles on this GPU, so the trace cannot be set up"},
	{id: "TRACE_SETUP", has: []string{"ATT packet"}, re: rx(`[Ff]ailed to create ATT packet(.*)`),
		code: envelope.ProfilerCrashed, says: "the thread trace could not be set up$1: its buffer may be too large for this GPU, or another program holds the trace", meaning: "the buffer or the trace hardware could not be had"},
	{id: "COUNTERS_TOO_MANY", has: []string{"exceeds the capabilities"}, re: rx(`(?:error code 38: )?Request exceeds the capabilities of the hardware to collect`),
		code: envelope.BadArgs, says: "the counters do not fit one pass of the hardware", meaning: "more counters were asked for than one pass can collect"},
	{id: "COUNTERS_NONE", has: []string{"No counter information"}, re: rx(`No counter information found for agent (.*)`),
		code: envelope.UnsupportedConfig, says: "rocprofv3 knows no counters for agent $1", meaning: "rocprofv3 has no counters for this GPU"},
	{id: "AGENT_UNKNOWN", has: []string{"Agent"}, re: rx(`Agent not supported|Agent HW architecture is not supported.*`),
		code: envelope.Rocprofv3TooOld, says: "this rocprofv3 does not support the GPU: $0", meaning: "rocprofv3 does not know this GPU"},
	{id: "PROFILER_QUEUE", has: []string{"agent to be profiled", "async queue", "conflict with another context"}, re: rx(`Could not set agent to be profiled|Failed to create thread trace async queue|Context has a conflict with another context`),
		code: envelope.ProfilerCrashed, says: "rocprofv3 could not take hold of the GPU's queues: $0", meaning: "the profiler's set-up inside the test failed"},
	{id: "TWO_ROCMS", has: []string{"registered more than once", "ROCPROFILER_REGISTER_LIBRARY", "undefined symbol"}, re: rx(`\S+ registered more than once!?|ROCPROFILER_REGISTER_LIBRARY is already set to.*|undefined symbol: (?:hsa|hip|rocprofiler)_\w+`),
		code: envelope.MissingPrereq, says: "two ROCm installations meet in one process ($0): use the rocprofv3 of the ROCm that torch was built with", meaning: "rocprofv3 and torch bring different copies of ROCm"},

	// The GPU failed.
	{id: "GPU_HANG", has: []string{"GPU Hang"}, re: rx(`HW Exception by GPU node-(\d+).*GPU Hang.*`),
		code: envelope.GPUHang, says: "GPU node $1 hung and was reset", meaning: "the driver reset the GPU"},
	{id: "GPU_FAULT", has: []string{"Memory access fault", "HSA_STATUS_ERROR", "illegal memory", "IllegalAddress", "LaunchFailure", "HW Exception"}, unless: rx(`ATT packet|[Rr]ocprof`), kind: ownLine,
		re:   rx(`Memory access fault by GPU node-.*|HW Exception by GPU node-.*|HSA_STATUS_ERROR_\w+.*|HIP error: an illegal memory access.*|hipErrorIllegalAddress|hipErrorLaunchFailure`),
		code: envelope.GPUFault, says: "the GPU faulted: $0", meaning: "a bad address, an illegal instruction or another exception on the GPU"},
	{id: "HIP_ERROR", has: []string{"failed with 'hipError", "HIP error:"}, re: rx(`'(hip\w+)\(.*' failed with '(hipError\w+)'|HIP error: (.*)`),
		code: envelope.WorkloadFailed, says: "a HIP call failed: $1 $2$3", meaning: "a HIP call failed and the test went on or ended"},
	{id: "CACHE_LOCK", has: []string{"Timed out waiting for"}, re: rx(`Timed out waiting for (?:exclusive|shared) lock on (.*)`),
		code: envelope.WorkloadFailed, says: "FlyDSL's compile cache was locked too long: $1", meaning: "another process holds a lock of FlyDSL's cache"},

	// The test cannot run like this.
	{id: "RANKS_MISSING", has: []string{"environment variable"}, re: rx(`environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set`),
		code: envelope.NeedsMultiGPU, says: "the test wants to be started by torchrun: $0", meaning: "the test is one of several processes"},
	{id: "DEPENDENCY", has: []string{"No module named"}, re: rx(`^ModuleNotFoundError: No module named '((?:aiter|mori|triton)[\w.]*)'`),
		code: envelope.DependencyMissing, says: "Python has no $1", meaning: "a package that the test imports is missing"},
	{id: "DEPENDENCY_OTHER", has: []string{"No module named"}, re: rx(`^ModuleNotFoundError: No module named '([\w.]+)'`), kind: lastWords,
		code: envelope.DependencyMissing, says: "Python has no $1", meaning: "a package that the test imports is missing"},
	{id: "LIBRARY_MISSING", has: []string{"cannot open shared object"}, re: rx(`^(?:ImportError|OSError): (\S+): cannot open shared object file`),
		code: envelope.DependencyMissing, says: "the library $1 cannot be loaded", meaning: "a shared library that a package needs is missing"},
	{id: "BAD_INVOCATION", has: []string{"error:", "not found", "can't open file"},
		re:   rx(`^\S+: error: (the following arguments are required.*|unrecognized arguments.*|argument .*|ambiguous option.*)|^ERROR: ((?:file or directory )?not found: .*)|can't open file '(.*?)'`),
		code: envelope.BadArgs, says: "the test's command line does not fit: $1$2$3", meaning: "the test's command line or the test's file is wrong"},

	// Crashes. One that comes after everything was written costs nothing.
	{id: "PROFILER_CRASH", has: []string{"rocprof"}, re: rx(`rocprofiler::|rocprofiler_\w+|finalize_rocprofv3|librocprofiler\S*`), kind: stackFrame, output: beforeOutput,
		code: envelope.ProfilerCrashed, says: "the process crashed in the profiler's code ($0)", meaning: "a native stack leads through the profiler"},
	{id: "PROFILER_CRASH_OF_COMMAND", has: []string{"died with"}, re: rx(`Fatal error: Command .* died with <Signals\.(SIG\w+)`), with: filesOpened, output: beforeOutput,
		code: envelope.ProfilerCrashed, says: "the process died of $1 after the profiler had begun to write", meaning: "the test dies while the profiler writes"},
	{id: "TEST_CRASH", has: []string{"died with", "Fatal Python error", "Segmentation fault", "*** SIG", "core dumped"},
		re:     rx(`Fatal error: Command .* died with <Signals\.(SIG\w+)|Fatal Python error: (.*)|\*\*\* (SIG\w+) |(Segmentation fault)|(\w+ \(core dumped\))`),
		output: beforeOutput,
		code:   envelope.WorkloadFailed, says: "the test crashed: $1$2$3$4$5", meaning: "the test dies of a signal"},
	{id: "PROFILER_FATAL", re: rx(`.+`), kind: fatalLine, output: beforeOutput,
		code: envelope.ProfilerCrashed, says: "rocprofv3 ended the process: $0", meaning: "rocprofv3 logs at level F and aborts"},
	{id: "PROFILER_SCRIPT", has: []string{"Fatal error:"}, re: rx(`^(?:\[rocprofv3\] )?Fatal error: (.*)`), unless: rx(`died with|non-zero exit status`),
		code: envelope.ProfilerCrashed, says: "rocprofv3 gave up: $1", meaning: "rocprofv3's script ends with a message of its own"},
	{id: "DECODER_REFUSES", has: []string{"INVALID_SHADER_DATA"}, re: rx(`.*STATUS_ERROR_INVALID_SHADER_DATA`),
		code: envelope.DecoderMissing, says: "the trace decoder cannot read the trace: it or aqlprofile is older than this GPU", meaning: "the decoder refuses the data of at least one shader engine"},

	// What the test says about itself.
	{id: "TERMINATED", has: []string{"terminate called"}, re: rx(`^terminate called (.*)`), output: beforeOutput, more: true,
		code: envelope.WorkloadFailed, says: "an exception of C++ ended the process: $1", meaning: "an uncaught C++ exception"},
	{id: "TEST_ASSERT", has: []string{"AssertionError"}, re: rx(`^(?:\w+\.)*AssertionError(?:: (.*))?$`), kind: ownLine,
		code: envelope.WorkloadFailed, says: "an assertion of the test failed: $1", meaning: "the test's own check fails"},
	{id: "TEST_EXCEPTION", has: []string{"Error", "Exception"}, re: rx(`^((?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?)$`), kind: lastWords,
		code: envelope.WorkloadFailed, says: "the test ended with $1", meaning: "an exception that nothing caught"},
	{id: "TESTS_FAILED", has: []string{"FAILED", "failed", "error"}, re: rx(`\b[1-9]\d* TESTS FAILED|^=* ?(?:.*, )?([1-9]\d* failed)\b.* in [\d.]+s|^=* ?(?:.*, )?([1-9]\d* errors?)\b.* in [\d.]+s`), kind: ownLine,
		code: envelope.WorkloadFailed, says: "tests failed: $0", meaning: "the summary counts failures"},
	{id: "GPUS_TOO_FEW", has: []string{"GPUs"}, re: rx(`(?i)(?:Skipped: |SKIPPED .*)((?:needs|requires) *>= *\d+ (?:physical )?GPUs.*)`), without: somePassed, kind: ownLine,
		code: envelope.NeedsMultiGPU, says: "the test $1", meaning: "the test skips itself for want of GPUs"},
	{id: "DEPENDENCY_SKIPPED", has: []string{"Skipped: ", "SKIPPED"}, re: rx(`(?:^|\.)Skipped: (.*\b(aiter|mori|triton)\b.*)|SKIPPED .*\b(aiter|mori|triton)\b.*`), without: somePassed, kind: ownLine,
		code: envelope.DependencyMissing, says: "the test skips itself for want of $2$3: $0", meaning: "the test skips itself because a package is missing"},
	{id: "TEST_SKIPPED", has: []string{"Skipped: ", "SKIPPED"}, re: rx(`(?:^|outcomes\.)Skipped: (.*)|SKIPPED (?:\((.*)\)|\[\d+\] (.*))`), without: somePassed, kind: ownLine,
		code: envelope.WorkloadSkipped, says: "the test skipped itself: $1$2$3", meaning: "the test decides not to run"},
	{id: "TEST_DISABLED", has: []string{"temporarily disabled"}, re: rx(`.*temporarily disabled.*`), without: somePassed, kind: ownLine,
		code: envelope.WorkloadSkipped, says: "the test is switched off: $0", meaning: "the test is switched off by its author"},
	{id: "ALL_SKIPPED", has: []string{"skipped"}, re: rx(`^=* ?(?:collected 0 items / )?(\d+ skipped)\b`), unless: rx(`\d (?:passed|failed|error)`), without: somePassed, kind: ownLine,
		code: envelope.WorkloadSkipped, says: "every test was skipped: $1", meaning: "pytest skips all tests"},
	{id: "NOTHING_RAN", has: []string{"no tests ran", "deselected"}, re: rx(`no tests ran|^=* ?(\d+ deselected)\b`), unless: rx(`\d (?:passed|failed|skipped|error)`), without: somePassed, kind: ownLine,
		code: envelope.WorkloadSkipped, says: "pytest ran no test: $0", meaning: "pytest selects no test"},

	// Caveats.
	{id: "BUFFER_FULL", has: []string{"buffer full"}, re: rx(`Thread trace buffer full!|SQTT data buffer full, SE\((\d+)\)`), list: "shader engines",
		says: "the trace buffer was full before the kernel ended: later waves are missing", meaning: "the trace is cut where the buffer ended"},
	{id: "DATA_LOST", has: []string{"Data Lost"}, re: rx(`Data Lost: .*`),
		says: "the profiler dropped part of the trace for bandwidth: counts and times are too low", meaning: "part of the trace was dropped"},
	{id: "WAVES_INCOMPLETE", has: []string{"Wave incomplete"}, re: rx(`Wave incomplete: .*`),
		says: "the trace ended before all waves did: their times are cut", meaning: "waves are cut at the end of the trace"},
	{id: "STITCH_INCOMPLETE", has: []string{"Stitch Incomplete"}, re: rx(`Stitch Incomplete: .*`),
		says: "the decoder could not match some tokens to instructions: some counts are missing", meaning: "part of the trace could not be matched to the code"},
	{id: "CODE_UNKNOWN", has: []string{"Could not fetch some", "was not loaded", "Unable to load codeobj"}, re: rx(`Could not fetch some instructions|memory://\S* was not loaded|Unable to load codeobj: ?.*`),
		says: "the code of some addresses is not known to the decoder ($0)", meaning: "a code object could not be read by the decoder"},
	{id: "CONTEXT_SWITCHED", has: []string{"context save-restores"}, re: rx(`Wave had (\d+) context save-restores`),
		says: "waves were swapped out while they were traced: their times hold the pauses", meaning: "the GPU switched to another process"},
	{id: "TRACE_FILE_LOST", has: []string{"could not open", "Could not retrieve shader_id"}, re: rx(`could not open \S*\.att|Could not retrieve shader_id`),
		says: "a raw trace file was lost: $0", meaning: "a raw trace file could not be written or read"},
	{id: "TRACE_STOPPED", has: []string{"Thread trac"}, re: rx(`Thread trace context not present for agent!|Thread tracer being destroyed with thread trace active`),
		says: "the profiler ended the trace without a result: $0", meaning: "the trace was not running, or was torn down, when it was to be read"},
	{id: "PACKET_FAILED", has: []string{"command packet"}, re: rx(`Failed to generate command packet, some counters will be unavailable`),
		says: "some counters are not available", meaning: "a counter's set-up failed"},
	{id: "COUNTERS_MISSING", has: []string{"Unable to find all counters"}, re: rx(`Unable to find all counters for agent (.*?) in \[.*Missing: \[(.*?)\]`),
		says: "agent $1 has no counter $2", meaning: "a counter does not exist on this GPU; the others were collected"},
	{id: "PROFILER_ATTACHED", has: []string{"has a profiler attached"}, re: rx(`Device (\d+) has a profiler attached to it`),
		says: "another process profiles on device $1: counters may be wrong", meaning: "another process holds the GPU's profiler lock"},
	{id: "PERFMON_DENIED", has: []string{"SYS_PERFMON", "CAP_PERFMON"}, re: rx(`Device (\d+) could not be locked for profiling|Required permission \(CAP_PERFMON\) is not set`), unless: rx(`error code 40`),
		says: "the GPU could not be locked for profiling (CAP_PERFMON): counters are right as long as nobody else profiles", meaning: "the profiler lock needs CAP_PERFMON"},
	{id: "DRIVER_OLD", has: []string{"locking device", "newer version of KFD"}, re: rx(`does not support locking device|depends on a newer version of KFD`),
		says: "the GPU driver is too old to lock the GPU for profiling", meaning: "the amdgpu driver is older than the profiler expects"},
	{id: "STOPPED_BY_SIGNAL", has: []string{"caught signal"}, re: rx(`rocprofv3 caught signal (\d+)`),
		says: "rocprofv3 was stopped by signal $1 and wrote what it had", meaning: "the run was stopped; the output may be partial"},
	{id: "CRASHED_AFTER_OUTPUT", has: []string{"died with", "Segmentation fault", "*** SIG", "*** Aborted", "core dumped", "terminate called", "Fatal Python error"},
		re:     rx(`died with <Signals\.SIG\w+|Segmentation fault|\*\*\* (?:SIG\w+|Aborted) .*|core dumped|terminate called.*|Fatal Python error: .*`),
		output: afterOutput, says: "the process crashed at its end, after the profiler had written everything: $0", meaning: "a crash that cost nothing"},
}

// Signature is one row of the table for readers: triage and documentation.
type Signature struct {
	// ID is the row's stable name, and the warning's code where Code is empty.
	ID string `json:"id"`
	// Code is the catalogue's.
	Code envelope.Code `json:"code,omitempty"`
	// Pattern is the regular expression (RE2) for the line.
	Pattern string `json:"pattern"`
	// Meaning says in a few words what the line stands for.
	Meaning string `json:"meaning"`
}

// Signatures gives the table in its order: the first row that matches names a failure.
func Signatures() []Signature {
	out := make([]Signature, len(signatures))
	for i, s := range signatures {
		out[i] = Signature{ID: s.id, Code: s.code, Pattern: s.re.String(), Meaning: s.meaning}
	}
	return out
}
