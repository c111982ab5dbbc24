package rocprof

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/google/go-cmp/cmp"
)

// Prefixes of rocprofv3's log: glog (7.2) and Abseil (1.3).
const (
	glogW  = "W20260602 10:30:56.313932 139053582401024 "
	glogE  = "E20260602 10:30:58.454084 139053582401024 "
	glogF  = "F20250713 19:30:14.500030 137326532578368 "
	abseil = "W0818 15:16:55.797812      22 "
)

// rows has at least one log for each row of the table: text as the programs print it, the row that must name it, and a part
// of the message.
var rows = []struct{ id, log, says string }{
	{"PROFILER_TOO_OLD", "rocprofv3: error: unrecognized arguments: --att=true --att-library-path /opt/rocm/lib", "--att=true"},
	{"DECODER_NOT_FOUND", "[rocprofv3] Fatal error: rocprof-trace-decoder library path not found in ['', '/opt/rocm-7.1.1/lib']", "['', '/opt/rocm-7.1.1/lib']"},
	{"DECODER_NOT_LOADED", glogF + "att_lib_wrapper.cpp:126] Error loading decoder: 37", "37"},
	{"DECODER_NOT_LOADED", "F20250716 12:40:57.978614 134896844727936 tool.cpp:1730] Decoder library not found at ROCPROF_ATT_LIBRARY_PATH", "ROCPROF_ATT_LIBRARY_PATH"},
	{"DECODER_NOT_LOADED", "F0713 19:30:14.500030      37 tool.cpp:3567] Decoder library not found!", ""},
	{"TRACE_PARAMETER", glogF + "tool.cpp:2711] thread trace service configure failed with error code 19: Function invoked with one or more invalid arguments", "one or more invalid arguments"},
	{"TRACE_GPU_INDEX", glogE + "tool.cpp:2948] Invalid GPU Device Index: 9", "no GPU 9"},
	{"TRACE_GPU_INDEX", glogF + "tool.cpp:2867] Invalid GPU Id string: a,b", "a,b"},
	{"DISK_FULL", "OSError: [Errno 28] No space left on device", "No space left"},
	{"DISK_FULL", "cp: error writing 'x': Disk quota exceeded", "quota"},
	{"OUTPUT_UNWRITABLE", glogF + "output_stream.cpp:104] Failed to open '/data/x/out_kernel_trace.csv' for output", "/data/x/out_kernel_trace.csv"},
	{"OUTPUT_UNWRITABLE", glogF + "output_stream.cpp:88] ROCPROFILER_OUTPUT_PATH (/data/x) already exists and is not a directory", "/data/x"},
	{"YAML_MISSING", "[rocprofv3] Fatal error: YAML package is not installed. Run '/usr/bin/python3 -m pip install pyyaml' or use JSON or text format", ""},
	{"PROGRAM_MISSING", scriptTraceback + "  File \"/usr/lib/python3.12/os.py\", line 575, in execvpe\n    _execvpe(file, args, env)\nFileNotFoundError: [Errno 2] No such file or directory: 'python9'", "python9"},
	{"JOB_REFUSED", scriptTraceback + "KeyError: 'jobs'", "KeyError: 'jobs'"},
	{"JOB_REFUSED", scriptTraceback + "  File \"/usr/lib/python3.12/json/decoder.py\", line 353, in raw_decode\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "Expecting value"},
	{"FORMAT_REFUSED", glogF + "output_config.cpp:71] Unsupported output format type: xml", "xml"},

	{"FLYDSL_MISSING", testTraceback + "ModuleNotFoundError: No module named 'flydsl'", ""},
	{"FLYDSL_MISSING", "E   ModuleNotFoundError: No module named 'flydsl'\n!!! Interrupted: 1 error during collection !!!\n1 error in 0.05s", ""},
	{"FLYDSL_NOT_BUILT", testTraceback + "ModuleNotFoundError: No module named 'flydsl._mlir'", "flydsl._mlir"},
	{"FLYDSL_NOT_BUILT", testTraceback + "RuntimeError: Required JIT runtime library not found: /w/libfly_jit_runtime.so. Please rebuild the project.", "libfly_jit_runtime.so"},
	{"FLYDSL_NOT_BUILT", testTraceback + "ImportError: cannot import name '_mlirDialectsFly' from 'flydsl._mlir._mlir_libs' (unknown location)", "_mlirDialectsFly"},
	{"FLYDSL_NOT_BUILT", "SKIPPED [3] tests/conftest.py:66: MLIR Python bindings not available\n3 skipped in 0.02s", ""},
	{"FLYDSL_LIBRARY", testTraceback + "ImportError: libFlyPythonCAPI.so: cannot open shared object file: No such file or directory", "libFlyPythonCAPI.so"},
	{"FLYDSL_STALE", testTraceback + "ImportError: cannot import name 'get_warp_size' from 'flydsl.runtime.device' (/w/build-fly/python_packages/flydsl/runtime/device.py)", "get_warp_size in flydsl.runtime.device"},
	{"FLYDSL_STALE", testTraceback + "AttributeError: module 'flydsl.expr' has no attribute 'make_buffer'", "make_buffer in flydsl.expr"},
	{"KERNELS_MISSING", testTraceback + "ModuleNotFoundError: No module named 'kernels.moe.mixed_moe_gemm_2stage'", "kernels.moe.mixed_moe_gemm_2stage"},
	{"KERNELS_MISSING", testTraceback + "ImportError: cannot import name 'build_x' from 'kernels.norm' (/w/kernels/norm/__init__.py)", "build_x"},
	{"TORCH_MISSING", testTraceback + "ModuleNotFoundError: No module named 'torch'", "no torch"},
	{"TORCH_MISSING", "Skipped: PyTorch not available", "no torch"},

	{"GPU_ACCESS_DENIED", "Unable to open /dev/kfd read-write: Permission denied\nroot is not member of \"render\" group", "Permission denied"},
	{"GPU_ACCESS_DENIED", `USER is not member of "render" group, the default DRM access group. Users must be a member of the "render" group`, "render"},
	{"GPU_ACCESS_DENIED", glogF + "tool.cpp:1460] counter collection failed with error code 40: Required permission (CAP_PERFMON) is not set, permission denied", "CAP_PERFMON"},
	{"NO_GPU", testTraceback + "RuntimeError: No HIP GPUs are available", "No HIP GPUs"},
	{"NO_GPU", "Skipped: CUDA/ROCm not available. Skipping GPU tests.", "CUDA/ROCm not available"},
	{"NO_GPU", "collected 0 items / 1 skipped\n\nSKIPPED [1] tests/kernels/test_moe_gemm.py:140: CUDA/ROCm not available. Skipping GPU tests.", "CUDA/ROCm"},
	{"NO_GPU", "ROCk module is NOT loaded, possibly no GPU devices", "NOT loaded"},

	{"KERNEL_COMPILE", testTraceback + "----------------------------------------\nDSLCompileError: Failure while executing pass pipeline.", "Failure while executing pass pipeline"},
	{"KERNEL_COMPILE", "E   flydsl.compiler.diagnostics.DSLCompileError: MLIR verification failed", "MLIR verification failed"},
	{"KERNEL_COMPILE", testTraceback + "flydsl.compiler.jit_function.FlyDSLCompileError: broken", "broken"},
	{"KERNEL_COMPILE_MLIR", testTraceback + "flydsl._mlir._mlir_libs._site_initialize.<locals>.MLIRError: Verification failed:\nerror: \"k.py\":12:8: 'llvm.load' op operand", "'llvm.load' op operand"},
	{"KERNEL_COMPILE_MLIR", testTraceback + "RuntimeError: Failure while executing pass pipeline:", "pass pipeline"},
	{"KERNEL_COMPILE_MLIR", testTraceback + "flydsl.x.ExternalLLVMError: opt failed", "opt failed"},
	{"KERNEL_COMPILE_MLIR", testTraceback + "RuntimeError: flyc.compile(): missing _reusable_slot_spec for k", "missing _reusable_slot_spec for k"},
	{"KERNEL_COMPILE_LLVM", "LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.mfma", "Cannot select"},
	{"KERNEL_COMPILE_LLVM", "error: <unknown>:0:0: local memory (163968) exceeds limit (65536) in function 'gemm_kernel_0'", "163968"},
	{"KERNEL_COMPILE_LLVM", "PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace.", ""},
	{"KERNEL_TRACE", "Traceback (most recent call last):\n  File \"tests/kernels/test_x.py\", line 9, in <module>\n    run()\n  File \"/w/build-fly/python_packages/flydsl/compiler/ast_rewriter.py\", line 88, in visit_If\n    raise TypeError(m)\nTypeError: dynamic if condition must lower to ir.Value", "dynamic if condition"},
	{"KERNEL_TRACE", "    def visit(self):\n>       raise NameError(m)\nE   NameError: variable 'x' is not available before if/else\n\npython/flydsl/expr/meta.py:33: NameError\n1 failed in 2.00s", "variable 'x'"},
	{"KERNEL_REFUSES", "Traceback (most recent call last):\n  File \"tests/kernels/test_flash_attn_fwd.py\", line 9, in <module>\n    run()\n  File \"/w/kernels/attention/flash_attn_gfx950.py\", line 105, in build\n    raise RuntimeError(m)\nRuntimeError: flash_attn_dualwave_swp requires gfx950+ (uses ds_read_tr16_b64), got gfx942", "requires gfx950+"},
	{"KERNEL_REFUSES", "E   AssertionError: pa_decode_tile only supports block_size in (16, 64), got 128\n\nkernels/attention/pa_decode_tile.py:82: AssertionError\n1 failed in 2.00s", "got 128"},
	{"KERNEL_REFUSES", "kernels/gemm/preshuffle_gemm.py:157: in build\n    raise ValueError(m)\nE   ValueError: use_async_copy requires gfx950, got gfx942", "use_async_copy"},

	{"GPU_OOM", testTraceback + "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 512.00 GiB. GPU 0 has a total capacity of 287.98 GiB", "512.00 GiB"},
	{"GPU_OOM", "'hipMalloc(&p, n)' failed with 'hipErrorOutOfMemory'", "hipErrorOutOfMemory"},
	{"GPU_OOM", ":0:rocdevice.cpp :2726: 5 us: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. code: 0x1008", "0x1008"},
	{"WRONG_ARCH_BINARY", "'hipModuleLoadData(&module, data)' failed with 'hipErrorNoBinaryForGpu'\nAssertionError: results differ", "hipErrorNoBinaryForGpu"},
	{"WRONG_ARCH_BINARY", testTraceback + "RuntimeError: HIP error: no kernel image is available for execution on the device", "no kernel image"},

	{"GPU_PROFILED", abseil + "ioctl.cpp:61] Device 2 has a profiler attached to it. PMC Counters may be inaccurate.\n" + glogF + "aql_packet.cpp:174] failed to create ATT packet: HSA_STATUS_ERROR_OUT_OF_RESOURCES", "another profiler"},
	{"TRACE_SETUP", glogF + "aql_packet.cpp:174] failed to create ATT packet: HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate", "buffer"},
	{"TRACE_SETUP", glogF + "aql_packet.cpp:201] Failed to create ATT packet", "buffer"},
	{"COUNTERS_TOO_MANY", glogF + "tool.cpp:1460] [rocprofv3] counter collection config failed with error code 38: Request exceeds the capabilities of the hardware to collect", "one pass"},
	{"COUNTERS_NONE", glogF + "tool.cpp:1409] No counter information found for agent 3 (gpu-1, gfx1201). Unable to find counter: SQ_WAVES", "gfx1201"},
	{"AGENT_UNKNOWN", glogF + "tool.cpp:1460] failed with error code 39: Agent HW architecture is not supported, no counter metrics found.", "architecture"},
	{"PROFILER_QUEUE", glogF + "queue.cpp:831] Could not set agent to be profiled", "Could not set"},
	{"TWO_ROCMS", "CommandLine Error: Option 'spirv-expand-step' registered more than once!", "two ROCm"},
	{"TWO_ROCMS", "python: symbol lookup error: librocprofiler-sdk.so.1: undefined symbol: hsa_amd_vmem_export_fabric_handle", "hsa_amd_vmem"},

	{"GPU_HANG", "HW Exception by GPU node-2 (Agent handle: 0x2f0a0b0) reason :GPU Hang", "node 2"},
	{"GPU_FAULT", "Memory access fault by GPU node-2 (Agent handle: 0x2f0a0b0) on address 0x7f1200000000. Reason: Page not present or supervisor privilege.", "0x7f1200000000"},
	{"GPU_FAULT", ":0:rocdevice.cpp :3020: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016", "0x1016"},
	{"GPU_FAULT", testTraceback + "RuntimeError: HIP error: an illegal memory access was encountered", "illegal memory access"},
	{"HIP_ERROR", "'hipModuleLaunchKernel(f, gx, gy, gz)' failed with 'hipErrorInvalidValue'", "hipErrorInvalidValue"},
	{"HIP_ERROR", testTraceback + "RuntimeError: HIP error: invalid argument", "invalid argument"},
	{"CACHE_LOCK", testTraceback + "TimeoutError: Timed out waiting for exclusive lock on /home/u/.flydsl/cache/k.lock", "k.lock"},

	{"RANKS_MISSING", testTraceback + "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set", "torchrun"},
	{"DEPENDENCY", testTraceback + "ModuleNotFoundError: No module named 'aiter'", "aiter"},
	{"DEPENDENCY", "E   ModuleNotFoundError: No module named 'mori.shmem'\n1 error in 0.05s", "mori.shmem"},
	{"DEPENDENCY_OTHER", testTraceback + "ModuleNotFoundError: No module named 'einops'", "einops"},
	{"LIBRARY_MISSING", testTraceback + "ImportError: libamdhip64.so.7: cannot open shared object file: No such file or directory", "libamdhip64.so.7"},
	{"BAD_INVOCATION", "usage: test_gemm.py [-h] -mode MODE\ntest_gemm.py: error: the following arguments are required: -mode, -mnk", "-mode, -mnk"},
	{"BAD_INVOCATION", "usage: test_x.py [-h]\ntest_x.py: error: unrecognized arguments: --shape", "--shape"},
	{"BAD_INVOCATION", "test_x.py: error: argument --dtype: invalid choice: 'fp7' (choose from 'bf16')", "fp7"},
	{"BAD_INVOCATION", "ERROR: file or directory not found: tests/kernels/test_gone.py\n\nno tests ran in 0.00s", "test_gone.py"},
	{"BAD_INVOCATION", "ERROR: not found: tests/x.py::test_y\n(no match in any of [<Module x.py>])", "test_y"},
	{"BAD_INVOCATION", "python: can't open file '/w/gone.py': [Errno 2] No such file or directory", "/w/gone.py"},

	{"PROFILER_CRASH", "*** SIGSEGV (@0x0) received by PID 77 (TID 0x7f) from PID 0; stack trace: ***\n    @     0x7f3d12345678 rocprofiler_iterate_buffer_tracing_record_args", "rocprofiler_iterate_buffer_tracing_record_args"},
	{"PROFILER_CRASH", "#4 0x00007f12 in finalize_rocprofv3 () from /opt/rocm/lib/librocprofiler-sdk-tool.so", "finalize_rocprofv3"},
	{"PROFILER_CRASH_OF_COMMAND", "Opened result file: /o/1_kernel_trace.csv\n[rocprofv3] Fatal error: Command '['python', 't.py']' died with <Signals.SIGSEGV: 11>.", "SIGSEGV"},
	{"TEST_CRASH", "[rocprofv3] Fatal error: Command '['python', 't.py']' died with <Signals.SIGSEGV: 11>.", "SIGSEGV"},
	{"TEST_CRASH", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n  File \"/w/t.py\", line 7 in <module>", "Segmentation fault"},
	{"TEST_CRASH", "*** SIGABRT (@0x0) received by PID 77 from PID 0; stack trace: ***\n    @     0x7f3d12345678 at::native::copy_", "SIGABRT"},
	{"TEST_CRASH", "Aborted (core dumped)", "Aborted"},
	{"PROFILER_FATAL", glogF + "registration.cpp:411] no such agent", "no such agent"},
	{"PROFILER_SCRIPT", "[rocprofv3] Fatal error: nothing to do", "nothing to do"},
	{"PROFILER_SCRIPT", "Fatal error: nothing to do", "nothing to do"},
	{"DECODER_REFUSES", glogE + "decode.cpp:245] Callback failed with status 4: ROCPROFILER_THREAD_TRACE_DECODER_STATUS_ERROR_INVALID_SHADER_DATA", "decoder"},

	{"TERMINATED", "terminate called after throwing an instance of 'std::out_of_range'\n  what():  _Map_base::at", "_Map_base::at"},
	{"TEST_ASSERT", testTraceback + "AssertionError: max error 0.75 above 0.01", "max error 0.75"},
	{"TEST_EXCEPTION", testTraceback + "ValueError: shapes differ", "shapes differ"},
	{"TEST_EXCEPTION", "E   IndexError: list index out of range\n\ntests/kernels/test_x.py:12: IndexError\n" + strings.Repeat("a line of the captured output\n", 50) + "1 failed in 3.1s", "IndexError"},
	{"TESTS_FAILED", "3 TESTS FAILED", "3 TESTS FAILED"},
	{"TESTS_FAILED", "E       assert 0.75 < 0.01\n\ntests/kernels/test_x.py:12: AssertionError\n================== 1 failed, 2 passed in 3.10s ==================", "1 failed"},
	{"GPUS_TOO_FEW", "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nSkipped: needs >=2 GPUs", "needs >=2 GPUs"},
	{"GPUS_TOO_FEW", "SKIPPED [1] tests/kernels/test_allreduce.py:876: Requires >= 8 physical GPUs, found 1.\n1 skipped in 0.1s", "8 physical GPUs"},
	{"DEPENDENCY_SKIPPED", "Skipped: could not import 'aiter': No module named 'aiter'", "aiter"},
	{"DEPENDENCY_SKIPPED", "SKIPPED [1] tests/kernels/test_mla_decode.py:47: aiter.ops.attention API mismatch (x)\n1 skipped in 0.1s", "aiter"},
	{"TEST_SKIPPED", "Skipped: test_preshuffle_gemm.py: not supported on this GPU", "not supported"},
	{"TEST_SKIPPED", "tests/x.py::test_y SKIPPED (FP8 row-scale GEMMs requires CDNA4 (gfx95*))\n1 skipped in 0.1s", "gfx95*"},
	{"TEST_SKIPPED", "_pytest.outcomes.Skipped: FP4 4-wave GEMM requires gfx950, got gfx942", "got gfx942"},
	{"TEST_DISABLED", "Per-token quant benchmark temporarily disabled (set FLYDSL_RUN_QUANT=1 to enable).", "FLYDSL_RUN_QUANT=1"},
	{"ALL_SKIPPED", "tests/x.py sss\n3 skipped in 0.02s", "3 skipped"},
	{"ALL_SKIPPED", "collected 0 items / 1 skipped", "1 skipped"},
	{"NOTHING_RAN", "no tests ran in 0.01s", "no tests ran"},
	{"NOTHING_RAN", "======== 14 deselected in 0.01s ========", "14 deselected"},

	{"BUFFER_FULL", glogW + "tool.cpp:1649] Thread trace buffer full!", "buffer was full"},
	{"BUFFER_FULL", "SQTT data buffer full, SE(3)\nSQTT data buffer full, SE(0)\nSQTT data buffer full, SE(3)", "(shader engines 3, 0) (said 3 times)"},
	{"DATA_LOST", abseil + "profile_interface.cpp:58] Data Lost: The profiler dropped part of the trace due to bandwidth limitations.", "bandwidth"},
	{"DATA_LOST", abseil + "profile_interface.cpp:58] Data Lost: 12.5% of the trace", "(12.5%)"},
	{"WAVES_INCOMPLETE", glogW + "profile_interface.cpp:58] Wave incomplete: The trace was cutoff before all waves ended.", "their times are cut"},
	{"STITCH_INCOMPLETE", glogW + "profile_interface.cpp:58] Stitch Incomplete: The parser could not fully match a trace token to the underlying disassembly.", "tokens"},
	{"CODE_UNKNOWN", glogW + "profile_interface.cpp:154] Could not fetch some instructions!", "code"},
	{"CODE_UNKNOWN", glogE + "att_lib_wrapper.cpp:210] memory://77#offset=0x1000&size=4096 was not loaded", "memory://77"},
	{"CONTEXT_SWITCHED", glogW + "wave.cpp:37] Wave had 2 context save-restores", "swapped out"},
	{"TRACE_FILE_LOST", glogE + "att_lib_wrapper.cpp:99] could not open /o/77_11420_shader_engine_0_1.att", "shader_engine_0_1.att"},
	{"TRACE_STOPPED", glogW + "core.cpp:588] Thread trace context not present for agent!", "context not present"},
	{"PACKET_FAILED", glogW + "helpers.cpp:165] Failed to generate command packet, some counters will be unavailable", "counters"},
	{"COUNTERS_MISSING", glogW + "tool.cpp:1433] Unable to find all counters for agent 2 (gpu-0, gfx950) in [SQ_WAVES, NOPE]. Found: [SQ_WAVES]. Missing: [NOPE]", "2 (gpu-0, gfx950) has no counter NOPE"},
	{"PROFILER_ATTACHED", glogW + "ioctl.cpp:61] Device 3 has a profiler attached to it. PMC Counters may be inaccurate.", "device 3"},
	{"PERFMON_DENIED", glogW + "ioctl.cpp:68] Device 3 could not be locked for profiling due to lack of permissions (capability SYS_PERFMON). PMC Counters may be inaccurate and System Counter Collection will be degraded.", "CAP_PERFMON"},
	{"DRIVER_OLD", glogW + "ioctl.cpp:80] Driver/Kernel version does not support locking device 3.", "driver"},
	{"STOPPED_BY_SIGNAL", glogW + "tool.cpp:3921] [rocprofv3] rocprofv3 caught signal 15...", "signal 15"},
	{"CRASHED_AFTER_OUTPUT", started + finished + "*** SIGSEGV (@0x0) received by PID 77 from PID 0; stack trace: ***\n    @ rocprofiler_iterate_buffer_tracing_record_args", "everything"},
}

const (
	scriptTraceback = "Traceback (most recent call last):\n  File \"/opt/rocm/bin/rocprofv3\", line 1860, in <module>\n    ec = main(sys.argv[1:])\n"
	testTraceback   = "Traceback (most recent call last):\n  File \"/w/tests/kernels/test_x.py\", line 7, in <module>\n    main()\n    ~~~~^^\n"
	started         = glogW + "simple_timer.cpp:55] [rocprofv3] tool initialization ::     0.000331 sec\n"
	finished        = glogW + "simple_timer.cpp:55] [rocprofv3] tool finalization ::     0.005721 sec\n"
)

// TestSignatures: each row of the table is the one that names its lines, in plain form and in the forms of a real log:
// colours, CR LF, among a child's lines, after and before much else.
func TestSignatures(t *testing.T) {
	children := strings.Repeat(abseil+"simple_timer.cpp:55] [rocprofv3] 'sh -c true' ::     0.000480 sec\n", 3)
	forms := []struct {
		name string
		make func(string) string
	}{
		{"plain", func(s string) string { return s }},
		{"CR LF", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") + "\r\n" }},
		{"colours", func(s string) string {
			return "\x1b[1;31m" + strings.ReplaceAll(s, "\n", "\x1b[0m\n\x1b[32m") + "\x1b[0m\n"
		}},
		{"a child between", func(s string) string { return children + strings.ReplaceAll(s, "\n", "\n"+children) + "\n" + children }},
		{"after much", func(s string) string { return strings.Repeat("iter 1 of 100: 12.5 us\n", 300) + s }},
		{"a progress bar before", func(s string) string { return "10%|#  |\r20%|## |\r\n" + s }},
		{"success of the profiler after", func(s string) string {
			return s + "\n" + glogW + "simple_timer.cpp:55] [rocprofv3] output generation ::     0.005383 sec\n"
		}},
	}
	covered := map[string]bool{}
	for _, row := range rows {
		covered[row.id] = true
		at := slices.IndexFunc(signatures, func(s signature) bool { return s.id == row.id })
		if at < 0 {
			t.Errorf("no row %s", row.id)
			continue
		}
		for _, form := range forms {
			report := Classify(strings.NewReader(form.make(row.log)))
			got := report.Primary
			if signatures[at].code == "" {
				if report.Primary != nil {
					t.Errorf("%s, %s: a failure %+v", row.id, form.name, *report.Primary)
				}
				got = nil
				for _, w := range report.Warnings {
					if w.ID == row.id {
						got = &w
					}
				}
			}
			switch {
			case got == nil:
				t.Errorf("%s, %s: nothing was found in %.200q", row.id, form.name, row.log)
			case got.ID != row.id || got.Code != signatures[at].code:
				t.Errorf("%s, %s: found %s (%s): %s", row.id, form.name, got.ID, got.Code, got.Message)
			case !strings.Contains(got.Message, row.says) || strings.Contains(got.Message, "$"):
				t.Errorf("%s, %s: message %q lacks %q", row.id, form.name, got.Message, row.says)
			case got.Line == "" || strings.ContainsAny(got.Line, "\x1b\r\n"):
				t.Errorf("%s, %s: line %q", row.id, form.name, got.Line)
			}
		}
	}
	for _, s := range signatures {
		if !covered[s.id] {
			t.Errorf("row %s has no log", s.id)
		}
	}
}

// TestSignatureTable: ids are stable words, each once; codes are the catalogue's; failures stand before caveats.
func TestSignatureTable(t *testing.T) {
	word := regexp.MustCompile(`^[A-Z][A-Z0-9_]{2,40}$`)
	seen := map[string]bool{}
	caveats := false
	for i, s := range Signatures() {
		if !word.MatchString(s.ID) || seen[s.ID] {
			t.Errorf("id %q", s.ID)
		}
		seen[s.ID] = true
		if _, ok := envelope.Lookup(s.Code); s.Code != "" && !ok {
			t.Errorf("%s: the catalogue lacks %s", s.ID, s.Code)
		}
		if caveats && s.Code != "" {
			t.Errorf("%s stands behind the caveats", s.ID)
		}
		caveats = caveats || s.Code == ""
		if s.Meaning == "" || signatures[i].says == "" {
			t.Errorf("%s says nothing", s.ID)
		}
		if _, err := regexp.Compile(s.Pattern); err != nil {
			t.Errorf("%s: %v", s.ID, err)
		}
	}
}

// TestSimulatedFaults: the logs of the simulated GPU's faults, as it printed them, lead to the codes that it promises.
func TestSimulatedFaults(t *testing.T) {
	begun := started + glogW + "simple_timer.cpp:55] [rocprofv3] 'python tests/kernels/test_softmax.py' ::     0.000000 sec\n" +
		glogW + "tool.cpp:2422] HSA version 8.20.0 initialized (instance=0)\n"
	ended := glogW + "simple_timer.cpp:55] [rocprofv3] 'python tests/kernels/test_softmax.py' ::     2.136713 sec\n"
	wrote := glogE + "output_stream.cpp:111] Opened result file: /o/att_kernel_trace.csv\n" + glogW + "simple_timer.cpp:55] [rocprofv3] output generation ::     0.005383 sec\n" + finished
	figures := "[simulated] softmax_kernel_0 2048x8192xbf16: 14.3 us\n"
	scriptLine := "Traceback (most recent call last):\n  File \"/w/tests/kernels/test_softmax.py\", line 1, in <module>\n"
	tests := []struct {
		fault, log string
		code       envelope.Code
		warnings   []string
	}{
		{"none", begun + figures + ended + wrote, "", nil},
		{"compile_fail", begun + "  File \"/w/kernels/norm/softmax_kernel.py\", line 1, in <module>\n----------------------------------------\nDSLCompileError: MLIR verification failed: 'llvm.load' op operand #0 must be LLVM pointer type, but got 'i32' (simulated)\n\nDSL Traceback (most recent operation last):\n  File \"/w/kernels/norm/softmax_kernel.py\", line 12\n    value = load(softmax_kernel_0)\n            ^\n" + ended + wrote, envelope.KernelCompileFail, nil},
		{"decoder_missing", "flyprof-mcp: SIMULATED GPU (gfx950): figures are invented\n[rocprofv3] Fatal error: rocprof-trace-decoder library path not found in ['', '/opt/rocm/lib']\n", envelope.DecoderMissing, nil},
		{"decoder_unloadable", begun + figures + ended + glogF + "att_lib_wrapper.cpp:130] Error loading decoder: 37\n", envelope.DecoderMissing, nil},
		{"app_crash", begun + "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n  File \"/w/tests/kernels/test_softmax.py\", line 1 in <module>\n", envelope.WorkloadFailed, nil},
		{"assert_after_kernel", begun + figures + scriptLine + "AssertionError: max error 0.75 above 0.01 (simulated)\n" + ended + wrote, envelope.WorkloadFailed, nil},
		{"skipped", begun + "Skipped: test_softmax.py: not supported on this GPU (simulated)\n" + ended + wrote, envelope.WorkloadSkipped, nil},
		{"skipped under pytest", begun + "tests/kernels/test_softmax.py ss\n2 skipped in 0.02s\n" + ended + wrote, envelope.WorkloadSkipped, nil},
		{"truncated", begun + figures + ended + glogW + "tool.cpp:1649] Thread trace buffer full!\n" + glogW + "profile_interface.cpp:58] Wave incomplete: The trace was cutoff before all waves ended.\n" + wrote, "", []string{"BUFFER_FULL", "WAVES_INCOMPLETE"}},
		{"data_lost", begun + figures + ended + glogW + "profile_interface.cpp:58] Data Lost: The profiler dropped part of the trace due to bandwidth limitations.\n" + wrote, "", []string{"DATA_LOST"}},
		{"oom", begun + scriptLine + "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 512.00 GiB. GPU 0 has a total capacity of 287.98 GiB of which 270.10 GiB is free.\n" + ended + wrote, envelope.GPUOOM, nil},
		{"gpu_fault", begun + "Memory access fault by GPU node-2 (Agent handle: 0x2f0a0b0) on address 0x7f1200000000. Reason: Page not present or supervisor privilege.\n" + ended + wrote, envelope.GPUFault, nil},
		{"gpu_hang", begun + "HW Exception by GPU node-2 (Agent handle: 0x2f0a0b0) reason :GPU Hang\n" + ended + wrote, envelope.GPUHang, nil},
		{"disk_full", begun + figures + ended + glogE + "output_stream.cpp:130] Error writing '/o/att_kernel_trace.csv': No space left on device\nterminate called after throwing an instance of 'std::filesystem::filesystem_error'\n  what():  filesystem error: cannot write: No space left on device [/o/att_kernel_trace.csv]\n", envelope.DiskFull, nil},
		{"busy", begun + glogW + "ioctl.cpp:61] Device 2 has a profiler attached to it. PMC Counters may be inaccurate.\n" + glogF + "aql_packet.cpp:174] failed to create ATT packet: HSA_STATUS_ERROR_OUT_OF_RESOURCES: another process has the thread trace of this GPU\n", envelope.GPUBusy, []string{"PROFILER_ATTACHED"}},
		{"old_rocprof", "usage: rocprofv3 [options] -- <application> [application options]\nrocprofv3: error: unrecognized arguments: --att\n", envelope.Rocprofv3TooOld, nil},
		{"no_gpu", begun + scriptLine + "RuntimeError: No HIP GPUs are available\n" + ended + wrote, envelope.NoGPU, nil},
		{"torch_missing", begun + scriptLine + "ModuleNotFoundError: No module named 'torch'\n" + ended + wrote, envelope.DependencyMissing, nil},
		{"not_built", begun + scriptLine + "ModuleNotFoundError: No module named 'flydsl'\n" + ended + wrote, envelope.BuildTreeMissing, nil},
		{"profiler_crash", begun + figures + ended + wrote + "*** SIGSEGV (@0x0) received by PID 77 from PID 0; stack trace: ***\n    @ rocprofiler_iterate_buffer_tracing_record_args\n", "", []string{"CRASHED_AFTER_OUTPUT"}},
		{"timeout", begun + glogW + "tool.cpp:3921] [rocprofv3] rocprofv3 caught signal 15...\n" + ended + wrote, "", []string{"STOPPED_BY_SIGNAL"}},
		{"an import that pytest reports", "ERROR collecting tests/kernels/test_softmax.py\nE   ModuleNotFoundError: No module named 'flydsl._mlir'\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n1 error in 0.05s\n", envelope.BuildTreeBroken, nil},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			got := Classify(strings.NewReader(tt.log))
			code, message := envelope.Code(""), ""
			if got.Primary != nil {
				code, message = got.Primary.Code, got.Primary.Message
			}
			var warnings []string
			for _, w := range got.Warnings {
				warnings = append(warnings, w.ID)
			}
			if code != tt.code || !slices.Equal(warnings, tt.warnings) {
				t.Errorf("%s (%s) and %v, want %s and %v", code, message, warnings, tt.code, tt.warnings)
			}
		})
	}
}

// TestFirstInTable: of several failures in a log the one that explains the others is named, in whatever order they stand.
func TestFirstInTable(t *testing.T) {
	const (
		compile = "DSLCompileError: bad"
		assert  = "AssertionError: results differ"
		skip    = "Skipped: fp8 not supported"
		aiter   = "Skipped: aiter not installed"
		fault   = "Memory access fault by GPU node-2"
		hang    = "HW Exception by GPU node-2 (Agent handle: 0x1) reason :GPU Hang"
		binary  = "'hipModuleLoadData(&module, data)' failed with 'hipErrorNoBinaryForGpu'"
		launch  = "'hipModuleLaunchKernel(f, g)' failed with 'hipErrorInvalidValue'"
		flydsl  = "ModuleNotFoundError: No module named 'flydsl'"
		torch   = "ModuleNotFoundError: No module named 'torch'"
		nothing = "no tests ran in 0.00s"
		gone    = "ERROR: file or directory not found: x.py"
		died    = "[rocprofv3] Fatal error: Command '['python', 't.py']' died with <Signals.SIGABRT: 6>."
	)
	tests := []struct{ want, other string }{
		{compile, skip}, {compile, aiter}, {compile, assert}, {compile, died}, {flydsl, torch}, {binary, assert}, {binary, launch}, {launch, assert},
		{hang, fault}, {fault, died}, {fault, assert}, {gone, nothing}, {assert, skip}, {torch, skip}, {aiter, nothing},
	}
	for _, tt := range tests {
		want := Classify(strings.NewReader(tt.want)).Primary
		for _, log := range []string{tt.want + "\n" + tt.other + "\n", tt.other + "\n" + tt.want + "\n"} {
			if got := Classify(strings.NewReader(log)).Primary; got == nil || want == nil || got.ID != want.ID || got.Line != tt.want {
				t.Errorf("%q: %+v, want the row of %q", log, got, tt.want)
			}
		}
	}
}

// TestGoodLogs: what stands in the log of a good run names no failure.
func TestGoodLogs(t *testing.T) {
	tests := []struct{ name, log string }{
		{"empty", ""},
		{"the command line is echoed", started + glogW + `simple_timer.cpp:55] [rocprofv3] 'pytest -k "AssertionError or No module named 'flydsl' or HIP out of memory"' ::     0.000000 sec`},
		{"E lines of success", glogE + "output_stream.cpp:111] Opened result file: /o/GPU Hang/No space left on device.csv"},
		{"GPUs are masked", glogW + "tool.cpp:99] Attempt to enable hip visiblity for agent-3 which is not visible to HSA (ROCR)"},
		{"some skipped", "tests/x.py::a PASSED\ntests/x.py::b SKIPPED (needs gfx950)\nSKIPPED [1] tests/x.py:12: aiter missing\n5 passed, 1 skipped, 3 deselected in 2.0s"},
		{"all cases pass", "Skipped: fp8 needs gfx950\nALL TESTS PASSED"},
		{"a test about errors", "tests/x.py::test_raises_AssertionError PASSED\ntests/x.py::test_oom PASSED\n2 passed in 1.0s"},
		{"source in a traceback", "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    raise RuntimeError(\"HIP out of memory\")\n>       pytest.skip(\"CUDA/ROCm not available\")\n    print('no tests ran')\n"},
		{"an exception that was caught", testTraceback + "ValueError: fallback is used\n" + strings.Repeat("iter: 12.5 us\n", 40)},
		{"another profiler is only noted", glogW + "ioctl.cpp:61] Device 3 has a profiler attached to it. PMC Counters may be inaccurate."},
	}
	for _, tt := range tests {
		if got := Classify(strings.NewReader(tt.log)).Primary; got != nil {
			t.Errorf("%s: %+v", tt.name, *got)
		}
	}
}

// TestCrashTimes: only the end of the first process's profiler makes a crash harmless; its children end all the time.
func TestCrashTimes(t *testing.T) {
	child := strings.ReplaceAll(started+finished, "139053582401024", "126101448588800")
	crash := "*** SIGSEGV (@0x0) received by PID 77 from PID 0; stack trace: ***\n    @     0x7f3d12345678 main\n"
	for name, tt := range map[string]struct{ log, id string }{
		"before":               {started + crash + finished, "TEST_CRASH"},
		"after":                {started + finished + crash, ""},
		"after a child's end":  {started + child + crash, "TEST_CRASH"},
		"after both":           {started + child + finished + crash, ""},
		"without a beginning":  {finished + crash, "TEST_CRASH"},
		"a fault stays one":    {started + finished + "Memory access fault by GPU node-2\n", "GPU_FAULT"},
		"one before, one more": {started + crash + finished + crash, "TEST_CRASH"},
	} {
		got := Classify(strings.NewReader(tt.log)).Primary
		if (got == nil) != (tt.id == "") || got != nil && got.ID != tt.id {
			t.Errorf("%s: %+v, want %q", name, got, tt.id)
		}
	}
}

// TestTracebacks: a failure carries its place and the traceback that leads there.
func TestTracebacks(t *testing.T) {
	dsl := "DSLCompileError: 'llvm.load' op operand #0 must be LLVM pointer type\nsee current operation: %1 = llvm.load\n\nDSL Traceback (most recent operation last):\n  File \"/w/kernels/norm/rmsnorm.py\", line 80\n    launch(x)\n    ^\n  File \"/w/kernels/norm/helper.py\", line 12\n    load(x)\n    ^^^^\n\nanother block\n"
	dslBlock := []string{"DSL Traceback (most recent operation last):", "  File \"/w/kernels/norm/rmsnorm.py\", line 80", "    launch(x)", "    ^", "  File \"/w/kernels/norm/helper.py\", line 12", "    load(x)", "    ^^^^"}
	python := []string{"Traceback (most recent call last):", "  File \"/w/t.py\", line 7, in <module>", "    main()", "    ~~~~^^", "  File \"/w/u.py\", line 3, in main", "    assert x", "AssertionError: differs"}
	interleaved := strings.Join(python[:3], "\n") + "\n" + abseil + "tool.cpp:1] from a child\n" + strings.Join(python[3:], "\n")
	tests := []struct {
		name, log, source, message string
		traceback                  []string
	}{
		{"FlyDSL in a script", testTraceback + "----------------------------------------\n" + dsl, "/w/kernels/norm/helper.py:12", "FlyDSL could not compile the kernel: 'llvm.load' op operand #0 must be LLVM pointer type see current operation: %1 = llvm.load", dslBlock},
		{"FlyDSL under pytest", "E   flydsl.compiler.diagnostics." + strings.ReplaceAll(strings.TrimSpace(dsl), "\n", "\nE   "), "/w/kernels/norm/helper.py:12", "FlyDSL could not compile the kernel: 'llvm.load' op operand #0 must be LLVM pointer type see current operation: %1 = llvm.load", dslBlock},
		{"Python", strings.Join(python, "\n"), "/w/u.py:3", "an assertion of the test failed: differs", python},
		{"Python with a child between", interleaved, "/w/u.py:3", "an assertion of the test failed: differs", python},
		{"an older traceback does not belong", strings.Join(python[:6], "\n") + "\nValueError: caught\nfallback\nDSLCompileError: bad", "", "FlyDSL could not compile the kernel: bad", nil},
		{"pytest's place", "E   RuntimeError: HIP error: invalid argument\nE   more\n\ntests/kernels/test_x.py:88: RuntimeError", "tests/kernels/test_x.py:88", "a HIP call failed: invalid argument", nil},
		{"a kernel's check", "Traceback (most recent call last):\n  File \"/w/tests/kernels/t.py\", line 7, in f\n    g()\n  File \"/w/kernels/g.py\", line 3, in g\n    raise ValueError(m)\nValueError: head_dim 96", "/w/kernels/g.py:3", "the kernel's own check refuses this configuration: ValueError: head_dim 96",
			[]string{"Traceback (most recent call last):", "  File \"/w/tests/kernels/t.py\", line 7, in f", "    g()", "  File \"/w/kernels/g.py\", line 3, in g", "    raise ValueError(m)", "ValueError: head_dim 96"}},
		{"Python's own crash", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File \"/w/t.py\", line 7 in f\n  File \"/w/t.py\", line 9 in <module>\n", "/w/t.py:7", "the test crashed: Segmentation fault", []string{"Current thread 0x1 (most recent call first):", "  File \"/w/t.py\", line 7 in f", "  File \"/w/t.py\", line 9 in <module>"}},
		{"a test's check is not a kernel's", "Traceback (most recent call last):\n  File \"/w/tests/kernels/t.py\", line 7, in f\n    raise ValueError(m)\nValueError: bad flag", "/w/tests/kernels/t.py:7", "the test ended with ValueError: bad flag",
			[]string{"Traceback (most recent call last):", "  File \"/w/tests/kernels/t.py\", line 7, in f", "    raise ValueError(m)", "ValueError: bad flag"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Classify(strings.NewReader(tt.log)).Primary
			if got == nil {
				t.Fatal("nothing was found")
			}
			if got.Source != tt.source || got.Message != tt.message {
				t.Errorf("%s %q, want %s %q", got.Source, got.Message, tt.source, tt.message)
			}
			if diff := cmp.Diff(tt.traceback, got.Traceback); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRecordedLogs: logs of real runs that went well name no failure and give the files; lines that users quoted are known.
func TestRecordedLogs(t *testing.T) {
	opened := regexp.MustCompile(`Opened result file: (\S+)`)
	for name, files := range map[string]int{"rocprofv3_7.2_flydsl.stderr.txt": 2, "rocprofv3_7.2_triton.stderr.txt": 2, "rocprofv3_1.3.2_host_trap.stderr.txt": 0, "rocprofv3_1.3.2_unsupported.stderr.txt": 0} {
		text, err := io.ReadAll(capture(t, "logs", name))
		if err != nil {
			t.Fatal(err)
		}
		got := Classify(strings.NewReader(string(text)))
		var want []string
		for _, m := range opened.FindAllStringSubmatch(string(text), -1) {
			want = append(want, m[1])
		}
		if got.Primary != nil || len(got.Warnings) > 0 || len(want) != files || !slices.Equal(got.Opened, want) {
			t.Errorf("%s: %+v, want the files %v", name, got, want)
		}
	}
	text, err := io.ReadAll(capture(t, "logs", "stderr_messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "\t")
		got := Classify(strings.NewReader(line))
		if got.Primary != nil {
			ids[got.Primary.ID]++
		}
		for _, w := range got.Warnings {
			ids[w.ID]++
		}
	}
	want := map[string]int{"DECODER_NOT_FOUND": 1, "PROFILER_TOO_OLD": 1, "DECODER_NOT_LOADED": 2, "DECODER_REFUSES": 1, "BUFFER_FULL": 1, "DATA_LOST": 1}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Error(diff)
	}
}

func TestOpenedFiles(t *testing.T) {
	log := glogE + "output_stream.cpp:111] Opened result file: /o/a b.csv\r\n" + "E0727 17:41:55.306312    3494 output_stream.cpp:111] Opened result file: /o/c.csv\n" +
		"....." + glogE + "output_stream.cpp:111] Opened result file: /o/d.csv\n" + "Opened result file: /o/c.csv\nOpened result file: \n"
	if diff := cmp.Diff([]string{"/o/a b.csv", "/o/c.csv", "/o/d.csv"}, Classify(strings.NewReader(log)).Opened); diff != "" {
		t.Error(diff)
	}
	var many strings.Builder
	for i := range 2 * maxOpened {
		fmt.Fprintf(&many, "Opened result file: /o/%d.csv\n", i)
	}
	if got := Classify(strings.NewReader(many.String())).Opened; len(got) != maxOpened {
		t.Errorf("%d files", len(got))
	}
}

// repeated gives n bytes of a text over and over.
type repeated struct {
	text string
	n    int
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.at >= r.n {
		return 0, io.EOF
	}
	n := min(len(b), r.n-r.at)
	for i := range n {
		b[i] = r.text[(r.at+i)%len(r.text)]
	}
	r.at += n
	return n, nil
}

// TestBounds: however long a log or a line is, little is kept of it, and a failure behind or before it is found.
func TestBounds(t *testing.T) {
	const size = 256 << 10
	for name, text := range map[string]string{
		"one line": "x", "empty lines": "\n", "short lines": "iter 1: 12.5 us\n", "NULs": "\x00", "no UTF-8": "\xff\xfe\n", "escapes": "\x1b[31",
		"frames": "  File \"/w/kernels/x.py\", line 1, in f\n", "asserts": "AssertionError: x\n", "E lines": "E   ValueError: x\n", "caveats": glogW + "a.cpp:1] SQTT data buffer full, SE(1)\n",
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got := Classify(io.MultiReader(strings.NewReader("LLVM ERROR: first\n"), &repeated{text: text, n: size}, strings.NewReader("\nMemory access fault by GPU node-2")))
		runtime.GC()
		runtime.ReadMemStats(&after)
		if got.Primary == nil || got.Primary.ID != "KERNEL_COMPILE_LLVM" {
			t.Errorf("%s: %+v", name, got.Primary)
		}
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4<<20 {
			t.Errorf("%s: %d bytes are kept", name, kept)
		}
		if fault := Classify(io.MultiReader(&repeated{text: text, n: 64 << 10}, strings.NewReader("\nMemory access fault by GPU node-2"))).Primary; fault == nil || fault.ID != "GPU_FAULT" {
			t.Errorf("%s: the last line is not found: %+v", name, fault)
		}
	}
	long := "DSLCompileError: " + strings.Repeat("long ", 1<<16) + "\n" + strings.Repeat("more of it\n", 100)
	got := Classify(strings.NewReader(long)).Primary
	if got == nil || len(got.Message) > maxMessage || len(got.Line) > maxShown || len(got.Message) < 100 {
		t.Errorf("%+v", got)
	}
	end := Classify(strings.NewReader(strings.Repeat("x", 1<<20) + " LLVM ERROR: at the end")).Primary
	if end == nil || !strings.Contains(end.Message, "at the end") {
		t.Errorf("the end of a long line: %+v", end)
	}
}

func FuzzClassify(f *testing.F) {
	for _, row := range rows {
		f.Add([]byte(row.log))
	}
	f.Add([]byte("E   \n  File \"\", line 9\nE   DSLCompileError: \n\nDSL Traceback (most recent operation last):\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		got := Classify(strings.NewReader(string(log)))
		all := slices.Clone(got.Warnings)
		if got.Primary != nil {
			if got.Primary.Code == "" {
				t.Fatalf("a failure without a code: %+v", got.Primary)
			}
			all = append(all, *got.Primary)
		}
		for _, one := range all {
			if one.ID == "" || one.Message == "" || len(one.Message) > maxMessage || len(one.Line) > maxShown || len(one.Traceback) > maxTraceback+1 {
				t.Fatalf("%+v", one)
			}
			if strings.ContainsAny(one.Message+one.Line, "\r\n") {
				t.Fatalf("%q %q", one.Message, one.Line)
			}
		}
		for line := range strings.Lines(string(log)) {
			line = strings.TrimRight(line, "\r\n")
			for _, s := range signatures {
				if s.re.MatchString(line) && !s.hasLiteral(line) {
					t.Fatalf("%s matches %q, which holds none of its literals", s.id, line)
				}
			}
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	const size = 4 << 20
	b.SetBytes(size)
	for b.Loop() {
		Classify(&repeated{text: "iter 17 of 100: 12.5 us, 1.3 TB/s\nW0818 15:16:55.797812      22 simple_timer.cpp:55] [rocprofv3] 'sh -c x' ::     0.000480 sec\n", n: size})
	}
}
