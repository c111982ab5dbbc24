package rocprof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ATTJob is one thread trace: which launches of which kernel, on which CUs of which GPU.
type ATTJob struct {
	// Kernel is the symbol as the kernel trace of a discovery prints it: demangled, with template and parameter list.
	Kernel string
	// Iter is which launches, in the terms of ParseIterRange, counted from 1 within each kernel id.
	Iter string
	// OutputDir is absolute. OutputFile is a plain name that the files begin with; %pid% in it keeps processes apart.
	OutputDir, OutputFile string
	// TargetCU is the physical CU (a WGP from gfx10 on) traced in each selected shader engine, 0 to 15.
	TargetCU int
	// SEMask has one bit for each shader engine over all XCDs: bit = XCC * engines an XCC + engine. Not 0.
	SEMask uint64
	// SIMDSelect is a bit mask of SIMDs on gfx9 and the number of one SIMD from gfx10 on, 0 to 15.
	SIMDSelect int
	// BufferBytes is shared by the selected shader engines; at least 1 MiB.
	BufferBytes int64
	// GPUIndex counts the GPUs that the driver (KFD) shows, whatever HIP_VISIBLE_DEVICES says.
	GPUIndex int
	// LibraryPath are directories searched for librocprof-trace-decoder.so; empty leaves rocprofv3's own search.
	LibraryPath []string
	// KernelTrace also lists the launches, so that the traced Dispatch_Id can be told by grid in the same process.
	KernelTrace bool
}

// PMCJob is one pass of counters over some launches of one kernel.
type PMCJob struct {
	Kernel string
	// Iter is which launches; empty is every one.
	Iter string
	// Counters fit one hardware pass (CounterGroups): more than that ends the workload at its first dispatch.
	Counters []string
	// Groups, in place of Counters, take turns: dispatch d of the process, whatever its kernel, is counted by group
	// (d-1)/Interval modulo their number (rocprofv3's iteration based counter multiplexing). Each fits one pass. See Rotate.
	Groups   [][]string
	Interval int64
	// OutputDir is absolute; rocprofv3 writes to the folder pass_1 in it, since the job comes from a file.
	OutputDir, OutputFile string
}

// attFile is the job as rocprofv3.py reads it. Numbers stand as strings, "0x" in lower case: an integer 0 counts as unset
// there, and another spelling of hexadecimal is not understood. There is one job in a file, since from 7.13 on a file with
// several runs only those with counters.
type attFile struct {
	AdvancedThreadTrace bool     `json:"advanced_thread_trace"`
	IncludeRegex        string   `json:"kernel_include_regex"`
	IterationRange      string   `json:"kernel_iteration_range"`
	TargetCU            string   `json:"att_target_cu"`
	SEMask              string   `json:"att_shader_engine_mask"`
	SIMDSelect          string   `json:"att_simd_select"`
	BufferSize          string   `json:"att_buffer_size"`
	GPUIndex            string   `json:"att_gpu_index"`
	LibraryPath         []string `json:"att_library_path,omitempty"`
	KernelTrace         bool     `json:"kernel_trace,omitempty"`
	output
}

type pmcFile struct {
	PMC            []string   `json:"pmc,omitempty"`
	Groups         [][]string `json:"pmc_groups,omitempty"`
	Interval       int64      `json:"pmc_group_interval,omitempty"`
	IncludeRegex   string     `json:"kernel_include_regex"`
	IterationRange string     `json:"kernel_iteration_range,omitempty"`
	output
}

// output is where a job writes. truncate_kernels is false because the regex is matched against the formatted name: a
// truncated one has lost the parameter list that the regex holds (config.cpp format_name).
type output struct {
	TruncateKernels bool     `json:"truncate_kernels"`
	File            string   `json:"output_file"`
	Directory       string   `json:"output_directory"`
	Format          []string `json:"output_format"`
}

type jobs[J any] struct {
	Jobs [1]J `json:"jobs"`
}

const (
	maxKernelName = 16 << 10
	minATTBuffer  = 1 << 20
	maxATTBuffer  = 1 << 30
	maxLibraries  = 32
	maxGPUIndex   = 255
)

// JSON renders the job file. JSON and not YAML: rocprofv3's Python may lack a YAML package, and nothing needs escaping twice.
//
// Errors: BAD_ARGS for a field that rocprofv3 would refuse, rewrite or silently ignore.
func (j ATTJob) JSON() ([]byte, error) {
	set, err := j.check()
	if err != nil {
		return nil, err
	}
	pattern, err := KernelRegex(j.Kernel)
	if err != nil {
		return nil, err
	}
	return render(attFile{
		AdvancedThreadTrace: true, IncludeRegex: pattern, IterationRange: set.String(),
		TargetCU: hex(uint64(j.TargetCU)), SEMask: hex(j.SEMask), SIMDSelect: hex(uint64(j.SIMDSelect)), BufferSize: hex(uint64(j.BufferBytes)),
		GPUIndex: strconv.Itoa(j.GPUIndex), LibraryPath: j.LibraryPath, KernelTrace: j.KernelTrace,
		output: output{File: j.OutputFile, Directory: j.OutputDir, Format: []string{"json", "csv"}},
	})
}

func (j ATTJob) check() (IterSet, error) {
	set, err := ParseIterRange(j.Iter)
	if err != nil {
		return set, err
	}
	if err := checkOutput(j.OutputDir, j.OutputFile); err != nil {
		return set, err
	}
	switch {
	case j.TargetCU < 0 || j.TargetCU > 15:
		return set, badArg("att_target_cu", strconv.Itoa(j.TargetCU), "0 to 15")
	case j.SEMask == 0:
		return set, badArg("att_shader_engine_mask", "0x0", "at least one bit; rocprofv3 takes 0 for its default 0x1 without a word")
	case j.SIMDSelect < 0 || j.SIMDSelect > 15:
		return set, badArg("att_simd_select", strconv.Itoa(j.SIMDSelect), "0 to 15")
	case j.BufferBytes < minATTBuffer || j.BufferBytes > maxATTBuffer:
		return set, badArg("att_buffer_size", strconv.FormatInt(j.BufferBytes, 10), fmt.Sprintf("%d to %d bytes", minATTBuffer, maxATTBuffer))
	case j.GPUIndex < 0 || j.GPUIndex > maxGPUIndex:
		return set, badArg("gpu", strconv.Itoa(j.GPUIndex), fmt.Sprintf("0 to %d", maxGPUIndex))
	case len(j.LibraryPath) > maxLibraries:
		return set, badArg("att_library_path", strconv.Itoa(len(j.LibraryPath))+" directories", fmt.Sprintf("at most %d", maxLibraries))
	}
	for _, dir := range j.LibraryPath {
		if err := checkDir("att_library_path", dir); err != nil {
			return set, err
		}
	}
	return set, nil
}

var counterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}(\[\d{1,3}\])?$`)

// JSON renders the job file of a counter pass; errors as for ATTJob.
func (j PMCJob) JSON() ([]byte, error) {
	iter := ""
	if j.Iter != "" {
		set, err := ParseIterRange(j.Iter)
		if err != nil {
			return nil, err
		}
		iter = set.String()
	}
	if err := checkOutput(j.OutputDir, j.OutputFile); err != nil {
		return nil, err
	}
	passes := j.Groups
	if len(passes) == 0 {
		passes = [][]string{j.Counters}
	} else if len(j.Counters) > 0 || j.Interval < 1 || len(passes) > maxGroupsInTurn {
		return nil, badArg("groups", fmt.Sprintf("%d groups every %d dispatches, %d counters besides", len(passes), j.Interval, len(j.Counters)), fmt.Sprintf("at most %d groups, an interval of 1 or more, no counters besides", maxGroupsInTurn))
	}
	for _, pass := range passes {
		if err := checkCounters(pass); err != nil {
			return nil, err
		}
	}
	pattern, err := KernelRegex(j.Kernel)
	if err != nil {
		return nil, err
	}
	return render(pmcFile{PMC: j.Counters, Groups: j.Groups, Interval: j.Interval, IncludeRegex: pattern, IterationRange: iter,
		output: output{File: j.OutputFile, Directory: j.OutputDir, Format: []string{"csv"}}})
}

const maxGroupsInTurn = 16

// checkCounters refuses what is no list of counters for one pass.
func checkCounters(counters []string) error {
	if len(counters) == 0 || len(counters) > 64 {
		return badArg("counters", strconv.Itoa(len(counters))+" names", "1 to 64 names")
	}
	for _, name := range counters {
		if !counterName.MatchString(name) {
			return badArg("counters", name, "names of letters, digits and _, such as SQ_WAVES")
		}
	}
	return checkPass(counters)
}

// KernelRegex gives the pattern that matches exactly this kernel name. rocprofv3 searches with std::regex (ECMAScript), where
// an unanchored name also finds its siblings (softmax_kernel_0 in topk_gating_softmax_kernel_0), and which does not know
// RE2's \Q. Only the characters with a meaning are escaped, since an escape of any other is an error there.
//
// Errors: BAD_ARGS for an empty or over-long name, invalid UTF-8 and control characters, which no symbol has.
func KernelRegex(name string) (string, error) {
	if name == "" || len(name) > maxKernelName || !utf8.ValidString(name) || hasControl(name) {
		return "", badArg("kernel", cutBytes(strings.ToValidUTF8(name, "\uFFFD"), 200), fmt.Sprintf("a symbol of 1 to %d bytes without control characters", maxKernelName))
	}
	var b strings.Builder
	b.WriteByte('^')
	for _, r := range name {
		if strings.ContainsRune(`^$\.*+?()[]{}|`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte('$')
	return b.String(), nil
}

// maxShaderEngines is how many the largest GPU has: 8 XCDs of 4 on MI300X and MI350X.
const maxShaderEngines = 32

// ParseSEMask reads a mask of shader engines, decimal or with 0x. BAD_ARGS for no bit and for bits that no GPU has: rocprofv3 takes
// 0 for its default and passes over high bits without a word.
func ParseSEMask(text string) (uint64, error) {
	mask, err := strconv.ParseUint(text, 0, 64)
	if err != nil || mask == 0 || mask >= 1<<maxShaderEngines {
		return 0, badArg("att_shader_engine_mask", text, "auto, or 0x1 to 0xffffffff: one bit for each shader engine over all XCDs")
	}
	return mask, nil
}

func hex(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

func render[J any](job J) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(jobs[J]{Jobs: [1]J{job}}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
