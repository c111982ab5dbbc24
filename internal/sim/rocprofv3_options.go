package sim

import (
	"fmt"
	"strconv"
	"strings"
)

type optionKind int

const (
	flagOption  optionKind = iota // a boolean, alone or with a truth word
	valueOption                   // one value
	listOption                    // one or more values
	wordsOption                   // a list that a job may also give as one string
)

// option is one row of rocprofv3's command line (rocprofv3.py of 1.1.0): names, destination and the environment variable
// that carries it into the application.
type option struct {
	long, short string
	dest        string
	kind        optionKind
	env         string
	sep         string // between list members in env
	integer     bool   // int(x, 0)
	since70     bool   // absent in ROCm 6.4
	zero        bool   // 0 is passed on; the others drop what Python takes for false
	help        string
}

func (o option) most() int {
	switch o.kind {
	case flagOption, valueOption:
		return 1
	}
	return 1 << 20
}

var options = []option{
	{long: "--help", short: "-h", dest: "help", help: "show this help message and exit"},
	{long: "--version", short: "-v", dest: "version", since70: true, help: "Print the version information and exit"},
	{long: "--input", short: "-i", dest: "input", kind: valueOption, help: "Input file for run configuration (JSON or YAML)"},
	{long: "--output-file", short: "-o", dest: "output_file", kind: valueOption, env: "ROCPROF_OUTPUT_FILE_NAME", help: "For the output file name"},
	{long: "--output-directory", short: "-d", dest: "output_directory", kind: valueOption, env: "ROCPROF_OUTPUT_PATH", help: "For adding output path where the output files will be saved"},
	{long: "--output-format", short: "-f", dest: "output_format", kind: listOption, env: "ROCPROF_OUTPUT_FORMAT", sep: ",", help: "Specify the output formats: csv json pftrace otf2 rocpd"},
	{long: "--log-level", dest: "log_level", kind: valueOption, env: "ROCPROF_LOG_LEVEL", help: "Set the desired log level"},
	{long: "--kernel-trace", dest: "kernel_trace", env: "ROCPROF_KERNEL_TRACE", help: "For collecting Kernel Dispatch Traces"},
	{long: "--stats", short: "-S", dest: "stats", env: "ROCPROF_STATS", help: "For collecting statistics of enabled tracing types"},
	{long: "--sys-trace", short: "-s", dest: "sys_trace", help: "Collect tracing data for HIP API, HSA API, marker API, memory and kernel dispatches"},
	{long: "--runtime-trace", short: "-r", dest: "runtime_trace", help: "Collect tracing data for HIP runtime API and kernel dispatches"},
	{long: "--hip-trace", dest: "hip_trace", help: "Combination of HIP tracing"},
	{long: "--hsa-trace", dest: "hsa_trace", help: "Combination of HSA tracing"},
	{long: "--memory-copy-trace", dest: "memory_copy_trace", help: "For collecting Memory Copy Traces"},
	{long: "--marker-trace", dest: "marker_trace", help: "For collecting Marker (ROCTx) Traces"},
	{long: "--scratch-memory-trace", dest: "scratch_memory_trace", help: "For collecting Scratch Memory operations Traces"},
	{long: "--summary", dest: "summary", help: "Output single summary of tracing data"},
	{long: "--pmc", dest: "pmc", kind: wordsOption, env: "ROCPROF_COUNTERS", sep: " ", help: "Specify Performance Monitoring Counters to collect"},
	{dest: "pmc_groups", kind: wordsOption, env: "ROCPROF_COUNTER_GROUPS", sep: "\n", since70: true},
	{dest: "pmc_group_interval", kind: valueOption, env: "ROCPROF_COUNTER_GROUPS_INTERVAL", integer: true, since70: true},
	{long: "--truncate-kernels", short: "-T", dest: "truncate_kernels", env: "ROCPROF_TRUNCATE_KERNELS", help: "Truncate the demangled kernel names"},
	{long: "--mangled-kernels", short: "-M", dest: "mangled_kernels", env: "ROCPROF_MANGLED_KERNELS", help: "Do not demangle the kernel names"},
	{long: "--kernel-include-regex", dest: "kernel_include_regex", kind: valueOption, env: "ROCPROF_KERNEL_FILTER_INCLUDE_REGEX", help: "Include the kernels matching this filter from counter-collection and thread-trace data"},
	{long: "--kernel-exclude-regex", dest: "kernel_exclude_regex", kind: valueOption, env: "ROCPROF_KERNEL_FILTER_EXCLUDE_REGEX", help: "Exclude the kernels matching this filter"},
	{long: "--kernel-iteration-range", dest: "kernel_iteration_range", kind: wordsOption, env: "ROCPROF_KERNEL_FILTER_RANGE", sep: ", ", help: "Iteration range"},
	{long: "--att", dest: "att", since70: true, help: "Enables advanced thread trace"},
	{long: "--advanced-thread-trace", dest: "advanced_thread_trace", since70: true, help: "Enables advanced thread trace"},
	{long: "--att-library-path", dest: "att_library_path", kind: listOption, since70: true, help: "Search path(s) to decoder library"},
	{long: "--att-target-cu", dest: "att_target_cu", kind: valueOption, env: "ROCPROF_ATT_PARAM_TARGET_CU", integer: true, since70: true, zero: true, help: "Target compute unit ID (default: 1)"},
	{long: "--att-simd-select", dest: "att_simd_select", kind: valueOption, env: "ROCPROF_ATT_PARAM_SIMD_SELECT", integer: true, since70: true, help: "Bitmask of SIMDs (gfx9) or SIMD id (gfx10+) (default: 0xF)"},
	{long: "--att-buffer-size", dest: "att_buffer_size", kind: valueOption, env: "ROCPROF_ATT_PARAM_BUFFER_SIZE", integer: true, since70: true, help: "Buffer size of the thread trace (default: 256MB)"},
	{long: "--att-shader-engine-mask", dest: "att_shader_engine_mask", kind: valueOption, env: "ROCPROF_ATT_PARAM_SHADER_ENGINE_MASK", integer: true, since70: true, help: "Bitmask of shader engines (default: 0x1)"},
	{long: "--att-gpu-index", dest: "att_gpu_index", kind: valueOption, env: "ROCPROF_ATT_PARAM_GPU_INDEX", since70: true, help: "Comma-separated list of GPU index to enable thread trace (default: all)"},
	{long: "--att-serialize-all", dest: "att_serialize_all", env: "ROCPROF_ATT_PARAM_SERIALIZE_ALL", since70: true, help: "Serialize all kernels, not just the ones being traced"},
	{long: "--att-perfcounters", dest: "att_perfcounters", kind: valueOption, env: "ROCPROF_ATT_PARAM_PERFCOUNTERS", since70: true, help: "Performance counters to stream with the trace"},
	{long: "--att-perfcounter-ctrl", dest: "att_perfcounter_ctrl", kind: valueOption, env: "ROCPROF_ATT_PARAM_PERFCOUNTER_CTRL", integer: true, since70: true, help: "Collection period of the streamed counters"},
	{long: "--att-activity", dest: "att_activity", kind: valueOption, since70: true, help: "Collection period of a default set of counters"},
	{long: "--att-consecutive-kernels", dest: "att_consecutive_kernels", kind: valueOption, env: "ROCPROF_ATT_CONSECUTIVE_KERNELS", integer: true, since70: true, help: "Number of consecutive kernels to profile"},
}

func findOption(name string) (option, bool) {
	for _, o := range options {
		if name != "" && (o.long == name || o.short == name) {
			return o, true
		}
	}
	return option{}, false
}

// value makes an option's value of the words after it.
func (o option) value(given []string) (value, error) {
	switch {
	case o.kind == flagOption:
		on := len(given) == 0 || truthWords[strings.ToLower(given[0])]
		return value{text: strconv.FormatBool(on), isBool: true, truthy: on}, nil
	case len(given) == 0 && o.kind == valueOption:
		return value{}, fmt.Errorf("expected one argument")
	case len(given) == 0:
		return value{}, fmt.Errorf("expected at least one argument")
	case o.kind == valueOption:
		return value{text: given[0], truthy: given[0] != ""}, nil
	}
	return value{list: given, isList: true, truthy: true}, nil
}

// render gives the text for the environment, with the script's own type errors.
func (o option) render(v value) (string, error) {
	switch {
	case o.integer:
		n, err := pythonInt(v.text)
		if err != nil {
			return "", traceback("ValueError", "invalid literal for int() with base 10: '%s'", v.text)
		}
		return strconv.FormatInt(n, 10), nil
	case o.kind == valueOption && v.isInt && o.dest == "att_gpu_index":
		return v.text, nil
	case o.kind == valueOption && v.isList:
		return "", traceback("TypeError", "str expected, not list")
	case o.kind == valueOption:
		return v.text, nil
	case v.badItems:
		return "", traceback("TypeError", "sequence item 0: expected str instance, int found")
	case o.dest == "kernel_iteration_range" && !v.isList:
		return v.text, nil
	case o.dest == "pmc":
		return "pmc: " + v.join(o.sep), nil
	}
	return v.join(o.sep), nil
}

// pythonInt is int(x) with a "0x" prefix taken as base 16.
func pythonInt(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		n, err := strconv.ParseUint(hex, 16, 63)
		return int64(n), err
	}
	return strconv.ParseInt(text, 10, 64)
}

var truthWords = map[string]bool{"y": true, "yes": true, "t": true, "true": true, "on": true, "1": true,
	"n": false, "no": false, "f": false, "false": false, "off": false, "0": false}

func isTruthWord(s string) bool {
	_, ok := truthWords[strings.ToLower(s)]
	return ok
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// versionText has the nine lines of rocprofv3 --version of ROCm 7.2. The revision is no real one.
func versionText(arch string) string {
	rows := [][2]string{
		{"version", "1.1.0"},
		{"git_revision", "simulated-" + arch},
		{"library_arch", "x86_64-linux-gnu"},
		{"system_name", "Linux"},
		{"system_processor", "x86_64"},
		{"system_version", "simulated"},
		{"compiler_id", "Clang"},
		{"compiler_version", "22.0.0"},
		{"rocm_version", "7.2.0"},
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "    %16s: %s\n", r[0], r[1])
	}
	return b.String()
}

func helpText(old bool) string {
	var b strings.Builder
	b.WriteString("usage: rocprofv3 [options] -- <application> [application options]\n\noptions:\n")
	for _, o := range options {
		if old && o.since70 || o.long == "" {
			continue
		}
		names := o.long
		if o.short != "" {
			names = o.short + ", " + o.long
		}
		switch o.kind {
		case flagOption:
			if o.dest != "help" && o.dest != "version" {
				names += " [BOOL]"
			}
		case valueOption:
			names += " " + strings.ToUpper(o.dest)
		default:
			names += " " + strings.ToUpper(o.dest) + " [" + strings.ToUpper(o.dest) + " ...]"
		}
		fmt.Fprintf(&b, "  %s\n                        %s\n", names, o.help)
	}
	return b.String()
}
