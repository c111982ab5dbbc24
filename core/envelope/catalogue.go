package envelope

import "github.com/flyprof/flyprof-mcp/core/request"

// Code names one kind of failure. Codes are stable: programs switch on them.
type Code string

// Class groups codes by what their reader must do.
type Class string

// The classes, with the exit code that the command line gives for each (sysexits.h; 130 as shells report SIGINT).
const (
	ClassEmpty       Class = "empty"       // 66: a result, not a bug
	ClassFinding     Class = "finding"     // 65: report it, do not loop
	ClassUnavailable Class = "unavailable" // 69: stop
	ClassTransient   Class = "transient"   // 75: one retry
	ClassConfig      Class = "config"      // 78: fix, then run again
	ClassIO          Class = "io"          // 74
	ClassInternal    Class = "internal"    // 70
	ClassCancelled   Class = "cancelled"   // 130
)

// The catalogue's codes.
const (
	KernelNotFound     Code = "KERNEL_NOT_FOUND"
	NoKernelDiscovered Code = "NO_KERNEL_DISCOVERED"
	AmbiguousKernel    Code = "AMBIGUOUS_KERNEL"
	DispatchOutOfRange Code = "DISPATCH_OUT_OF_RANGE"
	EmptyATT           Code = "EMPTY_ATT"
	NoArtifact         Code = "NO_ARTIFACT"
	NoRecommendation   Code = "NO_RECOMMENDATION"
	RunNotFound        Code = "RUN_NOT_FOUND"

	KernelCompileFail Code = "KERNEL_COMPILE_FAIL"
	WorkloadFailed    Code = "WORKLOAD_FAILED"
	WorkloadSkipped   Code = "WORKLOAD_SKIPPED"
	UnsupportedConfig Code = "UNSUPPORTED_CONFIG"
	GPUOOM            Code = "GPU_OOM"
	GPUFault          Code = "GPU_FAULT"
	GPUHang           Code = "GPU_HANG"
	TraceCorrupt      Code = "TRACE_CORRUPT"

	Rocprofv3Missing    Code = "ROCPROFV3_MISSING"
	Rocprofv3TooOld     Code = "ROCPROFV3_TOO_OLD"
	DecoderMissing      Code = "DECODER_MISSING"
	NoGPU               Code = "NO_GPU"
	GPUAccessDenied     Code = "GPU_ACCESS_DENIED"
	PlatformUnsupported Code = "PLATFORM_UNSUPPORTED"

	CaptureTimeout  Code = "CAPTURE_TIMEOUT"
	GPUBusy         Code = "GPU_BUSY"
	ProfilerCrashed Code = "PROFILER_CRASHED"
	RunNotFinished  Code = "RUN_NOT_FINISHED"
	RunInterrupted  Code = "RUN_INTERRUPTED"

	BuildTreeMissing  Code = "BUILD_TREE_MISSING"
	BuildTreeBroken   Code = "BUILD_TREE_BROKEN"
	WorktreeInvalid   Code = "WORKTREE_INVALID"
	DependencyMissing Code = "DEPENDENCY_MISSING"
	BadArgs           Code = "BAD_ARGS"
	MissingPrereq     Code = "MISSING_PREREQ"
	ShapeNotBound     Code = "SHAPE_NOT_BOUND"
	NeedsMultiGPU     Code = "NEEDS_MULTI_GPU"
	RecipeStale       Code = "RECIPE_STALE"
	PathNotAllowed    Code = "PATH_NOT_ALLOWED"
	FileConflict      Code = "FILE_CONFLICT"

	DiskFull        Code = "DISK_FULL"
	StoreUnwritable Code = "STORE_UNWRITABLE"

	Internal  Code = "INTERNAL"
	Cancelled Code = "CANCELLED"
)

// Row is the catalogue's entry for one code.
type Row struct {
	Code  Code
	Class Class
	Exit  int
	// Meaning says in one sentence what the code stands for.
	Meaning string
	// Help says in one or two sentences what to do, where Facts.Help says nothing better.
	Help string
	// Kinds are the kinds of next action that an error of this code may carry.
	Kinds []ActionKind
	// actions makes the standing actions; computed ones (Facts.Suggestions) come before them.
	actions func(Facts) []Action
}

// Exit codes by class.
var exits = map[Class]int{
	ClassEmpty: 66, ClassFinding: 65, ClassUnavailable: 69, ClassTransient: 75, ClassConfig: 78, ClassIO: 74,
	ClassInternal: 70, ClassCancelled: 130,
}

// Where the reference texts are.
const (
	quirksURI = "flyprof://reference/rocprofv3-quirks"
	codesURI  = "flyprof://reference/error-codes"
)

var (
	findings = []ActionKind{ReportFinding, ReadResource, CallTool, Stop}
	fixes    = []ActionKind{FixConfig, CallTool, AskUser, Stop}
	retries  = []ActionKind{CallTool, ReadResource, AskUser, Stop}
)

// catalogue is the whole table. A new code is a new row.
var catalogue = []Row{
	{Code: KernelNotFound, Class: ClassEmpty, Kinds: retries,
		Meaning: "The worktree defines no kernel of that name and no test that launches it.",
		Help:    "Take a name that flyprof_list gives, or pass invocation to run a command of your own.",
		actions: func(f Facts) []Action {
			acts := captureEach(f, f.Candidates, "the worktree has a kernel with a similar name")
			return append(acts, Action{Kind: CallTool, Args: request.List{Worktree: worktreeOf(f)}, Reason: "shows every kernel of the worktree and how it is run", Confidence: High})
		}},
	{Code: NoKernelDiscovered, Class: ClassEmpty, Kinds: retries,
		Meaning: "The test ran to its end under the profiler and launched no kernel that the worktree defines.",
		Help:    "See error.candidates for what was launched. Try a shape that is not trivial, or name one of the launched symbols in full.",
		actions: func(f Facts) []Action {
			acts := captureEach(f, f.Candidates, "this symbol was launched by the test; naming it in full traces it")
			return append(acts, readLog(f, "shows what the test printed")...)
		}},
	{Code: AmbiguousKernel, Class: ClassEmpty, Kinds: retries,
		Meaning: "Several kernels fit equally well and nothing says which was meant.",
		Help:    "Send one of the calls in next_actions; each names one of the launched symbols.",
		actions: func(f Facts) []Action {
			return orAsk(captureEach(f, f.Candidates, "traces this one of the launched kernels"), "ask which of the launched kernels is meant")
		}},
	{Code: DispatchOutOfRange, Class: ClassEmpty, Kinds: retries,
		Meaning: "The launch that was asked for does not exist.",
		Help:    "Use a value of error.available. Launches count from 1 within one kernel id.",
		actions: func(f Facts) []Action {
			var acts []Action
			for _, a := range f.Available {
				if f.Request == nil || a.IterRange == "" || len(acts) == 3 {
					continue
				}
				r := *f.Request
				r.IterRange, r.Group, r.RetryOf = a.IterRange, a.Group, f.RunID
				acts = append(acts, Action{Kind: CallTool, Args: r, Reason: "this launch exists", Confidence: High})
			}
			return append(acts, Action{Kind: ReadResource, URI: quirksURI, Reason: "how launches are counted"})
		}},
	{Code: EmptyATT, Class: ClassEmpty, Kinds: retries,
		Meaning: "The kernel was traced and no wave of it ran on a traced CU.",
		Help:    "Enlarge the shape so that the grid reaches the traced CU, trace more shader engines, or choose a launch that runs.",
		actions: func(f Facts) []Action {
			var acts []Action
			if f.Request != nil {
				r := *f.Request
				r.ATTShaderEngineMask, r.RetryOf = "0xffffffff", f.RunID
				acts = append(acts, Action{Kind: CallTool, Args: r, Reason: "traces every shader engine of all XCDs, so that any of them may hold the waves", Confidence: Low})
			}
			return append(acts, Action{Kind: ReadResource, URI: quirksURI, Reason: "why a small grid misses the traced CU"})
		}},
	{Code: NoArtifact, Class: ClassEmpty, Kinds: retries,
		Meaning: "The file or dispatch directory that was asked for is not there.",
		Help:    "List what there is with flyprof_read, or capture again.",
		actions: func(f Facts) []Action {
			return []Action{{Kind: CallTool, Args: request.Read{}, Reason: "lists what there is to read", Confidence: High}}
		}},
	{Code: NoRecommendation, Class: ClassEmpty, Kinds: []ActionKind{ReadResource, AskUser, Stop},
		Meaning: "The inputs are sound and nothing can be recommended from them.",
		Help:    "Take a capture first, or ask for a product whose figures are known.",
		actions: func(f Facts) []Action {
			return []Action{{Kind: AskUser, Reason: "which product or problem is meant: " + f.Message}}
		}},
	{Code: RunNotFound, Class: ClassEmpty, Kinds: retries,
		Meaning: "No run of that id is in the runs directory.",
		Help:    "Look at flyprof://runs for the runs that exist. Run ids are never reused.",
		actions: func(f Facts) []Action {
			return []Action{
				{Kind: CallTool, Args: request.Read{URI: "flyprof://runs"}, Reason: "lists the runs that exist", Confidence: High},
				{Kind: ReadResource, URI: "flyprof://runs", Reason: "the same as a resource"},
			}
		}},

	{Code: KernelCompileFail, Class: ClassFinding, Kinds: findings,
		Meaning: "FlyDSL could not compile the kernel.",
		Help:    "This is a finding about the kernel. Report the message and the source line, and stop; do not retry with tweaks.",
		actions: report("report the compile error with its source line")},
	{Code: WorkloadFailed, Class: ClassFinding, Kinds: findings,
		Meaning: "The test ended with an error before the kernel was traced.",
		Help:    "Report what the test printed. Run the test without the profiler to see whether it passes at all.",
		actions: report("report the failure of the test itself")},
	{Code: WorkloadSkipped, Class: ClassFinding, Kinds: findings,
		Meaning: "The test decided not to run: wrong architecture, missing input, or nothing selected.",
		Help:    "Report the reason that the test gives. Another kernel, shape or GPU may be what it wants.",
		actions: report("report why the test skipped itself")},
	{Code: UnsupportedConfig, Class: ClassFinding, Kinds: findings,
		Meaning: "The kernel does not support this shape, dtype or architecture.",
		Help:    "Report the limit that the kernel names, and choose a configuration inside it.",
		actions: report("report the limit that the kernel names")},
	{Code: GPUOOM, Class: ClassFinding, Kinds: findings,
		Meaning: "The GPU ran out of memory.",
		Help:    "Use a smaller shape, or wait until the GPU's other users are done.",
		actions: report("report that the problem does not fit the GPU's memory")},
	{Code: GPUFault, Class: ClassFinding, Kinds: findings,
		Meaning: "The kernel made the GPU fault: a bad address or an illegal instruction.",
		Help:    "This is a finding about the kernel. Report it, and run the test without the profiler before any other capture.",
		actions: report("report the GPU fault")},
	{Code: GPUHang, Class: ClassFinding, Kinds: findings,
		Meaning: "The kernel hung the GPU.",
		Help:    "Report it and stop: a hung GPU may need its owner.",
		actions: report("report the hang; others may be using this GPU")},
	{Code: TraceCorrupt, Class: ClassFinding, Kinds: findings,
		Meaning: "The trace's files cannot be read as what they should be.",
		Help:    "Report which file and what is wrong with it. A capture that was cut short leaves such files; capture again once.",
		actions: func(f Facts) []Action {
			acts := report("report which trace file is damaged")(f)
			if f.Request != nil {
				r := *f.Request
				r.RetryOf, r.Force = f.RunID, true
				acts = append(acts, Action{Kind: CallTool, Args: r, Reason: "captures again into fresh files", Confidence: Medium})
			}
			return acts
		}},

	{Code: Rocprofv3Missing, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "rocprofv3 is not on this host, or not where it was looked for.",
		Help:    "Install ROCm 7.0 or later, or name the program with --rocprofv3 (FLYPROF_ROCPROFV3).",
		actions: fix("install rocprofv3, or set --rocprofv3 to it")},
	{Code: Rocprofv3TooOld, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "This rocprofv3 has no --att: it would ignore the trace options without a word.",
		Help:    "Use rocprofv3 of ROCm 7.0 or later.",
		actions: fix("update ROCm to 7.0 or later, or set --rocprofv3 to a newer one")},
	{Code: DecoderMissing, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "rocprofv3 cannot load librocprof-trace-decoder.so, so no trace can be decoded.",
		Help:    "Install the rocprof-trace-decoder package, or set --att-library-path (FLYPROF_ATT_LIBRARY_PATH) to the directory that has it.",
		actions: fix("install rocprof-trace-decoder, or set --att-library-path to its directory")},
	{Code: NoGPU, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "This host shows no AMD GPU, or not the one that was asked for.",
		Help:    "Run on a GPU host. Try the tool without one by --simulate.",
		actions: fix("run on a host with an AMD Instinct GPU, or start the server with --simulate to try it out")},
	{Code: GPUAccessDenied, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "The GPU is there and this user may not open it.",
		Help:    "Add the user to the groups render and video, or pass /dev/kfd and /dev/dri into the container.",
		actions: fix("give this user access to /dev/kfd and the render node")},
	{Code: PlatformUnsupported, Class: ClassUnavailable, Kinds: fixes,
		Meaning: "Captures need Linux.",
		Help:    "Capture on a Linux GPU host, or start the server with --simulate. Everything that reads works here.",
		actions: fix("capture on Linux, or start the server with --simulate")},

	{Code: CaptureTimeout, Class: ClassTransient, Kinds: retries,
		Meaning: "The run took longer than its limit and was stopped, its whole process tree with it.",
		Help:    "Retry once with a larger timeout_s or a smaller shape.",
		actions: func(f Facts) []Action {
			var acts []Action
			if f.Request != nil {
				r := *f.Request
				limit := int(f.Evidence.LimitS)
				if limit == 0 {
					limit = 1200
				}
				r.TimeoutS, r.RetryOf = min(2*limit, 86400), f.RunID
				acts = append(acts, Action{Kind: CallTool, Args: r, Reason: "the same with twice the time", Confidence: Medium})
			}
			return append(acts, readLog(f, "shows how far the run got")...)
		}},
	{Code: GPUBusy, Class: ClassTransient, Kinds: retries,
		Meaning: "The GPU is in use by somebody else.",
		Help:    "Wait for the holder that the evidence names, or choose another GPU.",
		actions: again("try once more when the GPU is free")},
	{Code: ProfilerCrashed, Class: ClassTransient, Kinds: retries,
		Meaning: "rocprofv3 died before the trace was complete.",
		Help:    "Retry once. If it happens again, report it with the log.",
		actions: again("a crash at exit is often not repeated")},
	{Code: RunNotFinished, Class: ClassTransient, Kinds: retries,
		Meaning: "The run still goes on, so what was asked for is not there yet.",
		Help:    "Wait for the run with flyprof_capture_status.",
		actions: func(f Facts) []Action {
			if f.RunID == "" {
				return []Action{{Kind: CallTool, Args: request.Read{URI: "flyprof://runs"}, Reason: "shows which runs go on", Confidence: High}}
			}
			return []Action{{Kind: CallTool, Args: request.Status{RunID: f.RunID}, Reason: "waits for the run", Confidence: High}}
		}},
	{Code: RunInterrupted, Class: ClassTransient, Kinds: retries,
		Meaning: "The process that drove the run was killed; its leftovers were ended and what it had captured was kept.",
		Help:    "Start the capture again.",
		actions: again("starts the capture again")},

	{Code: BuildTreeMissing, Class: ClassConfig, Kinds: fixes,
		Meaning: "No compiled FlyDSL can be imported by the configured Python.",
		Help:    "STOP. Build it with scripts/build.sh or pip install flydsl, or point --worktree and --python at a built one.",
		actions: fix("build FlyDSL (scripts/build.sh) or install its wheel for the configured Python")},
	{Code: BuildTreeBroken, Class: ClassConfig, Kinds: fixes,
		Meaning: "FlyDSL is there and its compiled part cannot be loaded.",
		Help:    "STOP. Rebuild FlyDSL; an interrupted build or a deleted editable link leaves such a tree.",
		actions: fix("rebuild FlyDSL")},
	{Code: WorktreeInvalid, Class: ClassConfig, Kinds: fixes,
		Meaning: "The worktree is not a FlyDSL checkout.",
		Help:    "Set --worktree (FLYPROF_WORKTREE) to a checkout that has kernels/ and tests/kernels/.",
		actions: fix("set --worktree to a FlyDSL checkout")},
	{Code: DependencyMissing, Class: ClassConfig, Kinds: fixes,
		Meaning: "The test needs a Python package that is not installed.",
		Help:    "Install the package that the evidence names for the configured Python.",
		actions: fix("install the missing package")},
	{Code: BadArgs, Class: ClassConfig, Kinds: fixes,
		Meaning: "An argument is wrong; nothing was started.",
		Help:    "Correct the argument that the evidence names.",
		actions: func(f Facts) []Action {
			return []Action{{Kind: FixConfig, Reason: "correct the argument " + f.Evidence.Field + ": " + f.Message}}
		}},
	{Code: MissingPrereq, Class: ClassConfig, Kinds: fixes,
		Meaning: "A setting that this needs is not given.",
		Help:    "Give the setting that the evidence names.",
		actions: fix("give the missing setting")},
	{Code: ShapeNotBound, Class: ClassConfig, Kinds: fixes,
		Meaning: "The test takes no shape from outside, or not of this form.",
		Help:    "Leave shape out to run the test's own, or pass what the test takes with args.",
		actions: func(f Facts) []Action {
			if f.Request == nil {
				return []Action{{Kind: FixConfig, Reason: "leave the shape out, or give what the test takes: " + f.Evidence.Allowed}}
			}
			r := *f.Request
			r.Shape = ""
			return []Action{{Kind: CallTool, Args: r, Reason: "runs the test with its own shape", Confidence: Medium},
				{Kind: FixConfig, Reason: "or give what the test takes: " + f.Evidence.Allowed}}
		}},
	{Code: NeedsMultiGPU, Class: ClassConfig, Kinds: fixes,
		Meaning: "The test needs several GPUs or processes, which a trace of one kernel on one GPU cannot follow.",
		Help:    "Choose a single-GPU kernel, or pass an invocation that runs one rank.",
		actions: fix("choose a kernel whose test runs on one GPU")},
	{Code: RecipeStale, Class: ClassConfig, Kinds: fixes,
		Meaning: "The recipe names a test that this worktree does not have.",
		Help:    "Update the recipe, or remove it so that one is made from the worktree.",
		actions: fix("update the recipe, or leave it out so that one is synthesised")},
	{Code: PathNotAllowed, Class: ClassConfig, Kinds: fixes,
		Meaning: "The path lies outside the directories that the server may touch.",
		Help:    "Use a path inside the worktree or the runs directory, or allow it with --allow-path.",
		actions: fix("allow the directory with --allow-path, or use a path inside the worktree or the runs directory")},
	{Code: FileConflict, Class: ClassConfig, Kinds: fixes,
		Meaning: "A file that this would write holds something that would be lost, or cannot be read or written; it was left as it is.",
		Help:    "Look at the files that the evidence names; change them by hand, or repeat the command with --force where it has that.",
		actions: func(f Facts) []Action {
			return []Action{{Kind: AskUser, Reason: "somebody has to look at what is in the way: " + f.Message}, {Kind: FixConfig, Reason: "change the file by hand, or repeat the command with --force where it has that"}}
		}},

	{Code: DiskFull, Class: ClassIO, Kinds: fixes,
		Meaning: "There is no room left for the trace.",
		Help:    "Free space, or move the runs with --runs-dir (FLYPROF_RUNS_DIR).",
		actions: fix("free space, or set --runs-dir to a larger disk")},
	{Code: StoreUnwritable, Class: ClassIO, Kinds: fixes,
		Meaning: "The runs directory cannot be written.",
		Help:    "Give write access, or set --runs-dir (FLYPROF_RUNS_DIR) to a directory that can be written.",
		actions: fix("set --runs-dir to a directory that can be written")},

	{Code: Internal, Class: ClassInternal, Kinds: findings,
		Meaning: "A bug in this program.",
		Help:    "Report it with the message.",
		actions: report("report this bug with its message")},
	{Code: Cancelled, Class: ClassCancelled, Kinds: retries,
		Meaning: "The run was stopped on request, its whole process tree with it.",
		Help:    "Start it again when it is wanted.",
		actions: func(f Facts) []Action {
			return []Action{{Kind: Stop, Reason: "the run was cancelled on request; start it again only when it is wanted"}}
		}},
}

// Catalogue gives all rows in the order of their classes.
func Catalogue() []Row {
	out := make([]Row, len(catalogue))
	for i, row := range catalogue {
		row.Exit = exits[row.Class]
		out[i] = row
	}
	return out
}

// Lookup gives the row of a code, and false for one that is not in the catalogue.
func Lookup(code Code) (Row, bool) {
	for _, row := range catalogue {
		if row.Code == code {
			row.Exit = exits[row.Class]
			return row, true
		}
	}
	return Row{}, false
}

// ReferenceURIs are the resources that the catalogue's actions may name.
func ReferenceURIs() []string { return []string{quirksURI, codesURI} }
