package sim

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// run is one run of a test script, under the profiler or not.
type run struct {
	*process
	script *script
	title  string
	prof   *session // nil when not profiled
	gpu    int      // KFD index of the GPU that HIP device 0 is
	stop   chan os.Signal
	made   map[string]*kernelObject
	nextID int // of code objects and kernels
}

// Numbers of the signals that a run may end by.
const (
	sigAbort = 6
	sigSegv  = 11
)

// ending tells launch's caller how the process ends.
type ending struct {
	code   int
	signal int
	// silent: the profiler's library writes nothing (SIGSEGV is not one of the signals that it handles).
	silent bool
}

func (r *run) phase() string {
	switch {
	case r.env.truth("ROCPROF_ADVANCED_THREAD_TRACE"):
		return phaseATT
	case r.env.truth("ROCPROF_COUNTER_COLLECTION"):
		return phasePMC
	case r.env.get("ROCPROF_KERNEL_TRACE") != "" || r.env.get("ROCPROF_OUTPUT_FORMAT") != "":
		return phaseDiscover
	}
	return ""
}

// profiled runs body between the start and the end of the profiler's library, if this process is profiled at all, and
// ends the process as the run ended.
func (r *run) profiled(body func() int) int {
	r.made = map[string]*kernelObject{}
	r.stop = make(chan os.Signal, 4)
	if r.set.has("ignore_sigterm", r.phase()) {
		signal.Ignore(terminationSignals()...)
	} else {
		signal.Notify(r.stop, terminationSignals()...)
	}
	defer signal.Stop(r.stop)
	r.gpu = r.visibleGPU()
	if r.phase() != "" {
		s, end := newSession(r)
		if end != nil {
			return r.end(*end)
		}
		r.prof = s
	}
	end := r.guard(body)
	if r.prof != nil && !end.silent {
		if failed := r.prof.finish(); failed != nil {
			return r.end(*failed)
		}
		if r.set.has("profiler_crash", r.phase()) {
			r.errf("*** SIGSEGV (@0x0) received by PID %d from PID 0; stack trace: ***\n    @ rocprofiler_iterate_buffer_tracing_record_args", os.Getpid())
			return r.end(ending{signal: sigSegv})
		}
	}
	return r.end(end)
}

// guard runs body and turns an early ending (a panic with an ending) into its value.
func (r *run) guard(body func() int) (end ending) {
	defer func() {
		if v := recover(); v != nil {
			early, ok := v.(ending)
			if !ok {
				panic(v)
			}
			end = early
		}
	}()
	return ending{code: body()}
}

func (r *run) end(e ending) int {
	if e.signal != 0 {
		return dieOf(e.signal)
	}
	return e.code
}

// interrupted waits and ends the run when a termination signal has come; rocprofv3's library says so and writes its output.
func (r *run) interrupted(wait time.Duration) {
	if wait > 0 {
		select {
		case s := <-r.stop:
			r.caught(s)
		case <-time.After(wait):
		}
		return
	}
	select {
	case s := <-r.stop:
		r.caught(s)
	default:
	}
}

func (r *run) caught(s os.Signal) {
	n := signalValue(s)
	if r.prof != nil {
		r.prof.log('W', "tool.cpp:3921", "[rocprofv3] rocprofv3 caught signal %d...", n)
	}
	panic(ending{code: 128 + n, signal: n})
}

// imports are the module-level imports of the script.
func (r *run) imports() error {
	if _, err := r.importFlyDSL(); err != nil {
		return err
	}
	if r.set.has("torch_missing", "") {
		return said("ModuleNotFoundError: No module named 'torch'")
	}
	return nil
}

// needs checks what the test itself asks for before it launches anything.
func (r *run) needs(w *workload) error {
	for _, module := range w.Requires {
		return saidf("Skipped: could not import '%s': No module named '%s'", module, module)
	}
	if r.gpu < 0 || r.set.has("no_gpu", "") {
		return said("RuntimeError: No HIP GPUs are available")
	}
	if w.GPUs > r.visibleCount() {
		return saidf("Skipped: needs >=%d GPUs", w.GPUs)
	}
	return nil
}

// visible lists the KFD indices that HIP sees: ROCR_VISIBLE_DEVICES chooses among all, HIP_VISIBLE_DEVICES (or CUDA's)
// among those. A mask is read up to its first invalid entry, as ROCr and HIP do.
func (r *run) visible() []int {
	all := span(0, GPUs)
	for _, names := range [][]string{{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}} {
		for _, name := range names {
			mask, ok := r.env.values[name]
			if !ok {
				continue
			}
			var chosen []int
			for word := range strings.SplitSeq(mask, ",") {
				word = strings.TrimSpace(word)
				n, err := strconv.Atoi(word)
				if err != nil {
					n = -1
					for i := range GPUs {
						if strings.EqualFold(word, gpuUUID(i)) {
							n = i
						}
					}
				}
				if n < 0 || n >= len(all) {
					break
				}
				chosen = append(chosen, all[n])
			}
			all = chosen
			break
		}
	}
	return all
}

func (r *run) visibleCount() int { return len(r.visible()) }

func (r *run) visibleGPU() int {
	if v := r.visible(); len(v) > 0 {
		return v[0]
	}
	return -1
}

// launch launches the workload's kernels for every shape: torch's kernels around them, each shape with code objects of
// its own, as a JIT makes them. test limits to the launches of one pytest function.
func (r *run) launch(w *workload, shapes []shape, test string) int {
	phase := r.phase()
	if r.env.truth("COMPILE_ONLY") {
		return 0
	}
	if arch := r.env.get("ARCH"); arch != "" && arch != r.set.Arch {
		r.errf("'hipModuleLoadData(&module, data)' failed with 'hipErrorNoBinaryForGpu'")
		r.errf("Traceback (most recent call last):\n  File \"%s\", line 1, in <module>\nAssertionError: results differ", r.script.path)
		return 1
	}
	launches, err := r.plan(w, shapes, test)
	if err != nil {
		return r.raise(r.script.path, err)
	}
	r.noise("before", 3+stream(r.set.Seed, "noise", phase, r.title).IntN(6))
	if code, stop := r.early(phase, launches); stop {
		return code
	}
	r.hang(phase)
	for _, group := range launches {
		r.jit(group)
		most := 0
		for _, l := range group {
			most = max(most, l.calls)
		}
		r.noise("shape", 2)
		for call := range most {
			for _, l := range group {
				r.interrupted(0)
				if call < l.calls && !r.set.has("no_kernel", phase) {
					r.dispatch(l)
				}
			}
		}
		r.noise("compare", 2)
		if len(group) > 0 {
			fmt.Fprintf(r.stdout, "[simulated] %s %s: %.1f us\n", group[0].object.kernel, group[0].shape, float64(group[0].object.ns)/1000)
		}
	}
	if r.set.has("assert_after_kernel", phase) {
		r.errf("Traceback (most recent call last):\n  File \"%s\", line 1, in <module>\nAssertionError: max error 0.75 above 0.01 (simulated)", r.script.path)
		return 1
	}
	return 0
}

// early are the faults that end a test before its kernel ran.
func (r *run) early(phase string, groups [][]planned) (int, bool) {
	kernel, source := "kernel", r.script.path
	if len(groups) > 0 && len(groups[0]) > 0 {
		kernel, source = groups[0][0].object.kernel, groups[0][0].object.source.path
	}
	handle := fmt.Sprintf("0x%x", 0x2f00000+stream(r.set.Seed, "handle").IntN(1<<20)*16)
	node := firstGPUNode + r.gpu
	switch {
	case r.set.has("compile_fail", phase):
		r.errf("%s", compileFailure(kernel, source))
		return 1, true
	case r.set.has("unsupported", phase):
		r.errf("Traceback (most recent call last):\n  File \"%s\", line 1, in <module>\n  File \"%s\", line 20, in build_%s\nNotImplementedError: %s requires gfx1250 (simulated)", r.script.path, source, kernel, kernel)
		return 1, true
	case r.set.has("oom", phase):
		r.errf("Traceback (most recent call last):\n  File \"%s\", line 1, in <module>\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 512.00 GiB. GPU 0 has a total capacity of 287.98 GiB of which 270.10 GiB is free.", r.script.path)
		return 1, true
	case r.set.has("app_crash", phase):
		r.errf("Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n  File \"%s\", line 1 in <module>", r.script.path)
		panic(ending{signal: sigSegv, silent: true})
	case r.set.has("gpu_fault", phase):
		r.errf("Memory access fault by GPU node-%d (Agent handle: %s) on address 0x7f1200000000. Reason: Page not present or supervisor privilege.", node, handle)
		panic(ending{signal: sigAbort})
	case r.set.has("gpu_hang", phase):
		r.errf("HW Exception by GPU node-%d (Agent handle: %s) reason :GPU Hang", node, handle)
		panic(ending{signal: sigAbort})
	}
	return 0, false
}

// compileFailure is what FlyDSL's excepthook prints (0.2 and later).
func compileFailure(kernel, source string) string {
	return fmt.Sprintf(`  File "%s", line 1, in <module>
%s
DSLCompileError: MLIR verification failed: 'llvm.load' op operand #0 must be LLVM pointer type, but got 'i32' (simulated)

DSL Traceback (most recent operation last):
  File "%s", line 12
    value = load(%s)
            ^`, source, strings.Repeat("-", 40), source, kernel)
}

// hang are the faults that take time. timeout and ignore_sigterm also start a child that sleeps in a process group of its
// own, so that only a sweep of the whole tree ends everything.
func (r *run) hang(phase string) {
	if text, ok := r.set.fault("slow", phase); ok {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds < 0 || seconds > 86400 {
			seconds = 5
		}
		r.interrupted(time.Duration(seconds * float64(time.Second)))
	}
	if !r.set.has("timeout", phase) && !r.set.has("ignore_sigterm", phase) {
		return
	}
	if sleep, err := exec.LookPath("sleep"); err == nil {
		child := exec.Command(sleep, "86400")
		ownGroup(child)
		_ = child.Start()
	}
	r.interrupted(365 * 24 * time.Hour)
}

// jit writes what FlyDSL's compiler leaves in its cache: a pickle that holds the module's text.
func (r *run) jit(group []planned) {
	dir := r.env.get("FLYDSL_RUNTIME_CACHE_DIR")
	if dir == "" {
		return
	}
	for _, l := range group {
		if l.baseline {
			continue
		}
		key := fmt.Sprintf("%x", sha256.Sum256([]byte(l.object.kernel+l.shape)))
		entry := filepath.Join(dir, l.object.source.function+"_"+key[:16])
		if os.MkdirAll(entry, 0o755) != nil {
			continue
		}
		text := fmt.Sprintf("simulated pickle\ngpu.module @kernels {\n  gpu.func @%s() kernel {\n    gpu.return\n  }\n}\n", l.object.kernel)
		_ = os.WriteFile(filepath.Join(entry, key[16:32]+".pkl"), []byte(text), 0o644)
		_ = os.WriteFile(filepath.Join(entry, key[16:32]+".lock"), nil, 0o644)
	}
}
