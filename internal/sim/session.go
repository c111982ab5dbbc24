package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// session is the profiler's library inside the profiled process: it sees every dispatch and writes at the end.
type session struct {
	*run
	cfg        config
	model      gpuModel
	rnd        *rand.Rand
	objects    []*kernelObject
	dispatches []dispatch
	counts     map[int]int64 // launches by kernel id, of kernels that pass the filter
	warm       map[*kernelObject]bool
	clockNS    int64
	agentBase  int64 // offset of this process's agent handles over the logical node ids
	pid        int   // as the CSVs and log lines show it; from the seed, so that runs can be compared
	logged     int
	failed     *ending
	include    *regexp.Regexp
	exclude    *regexp.Regexp
}

// dispatch is one kernel launch.
type dispatch struct {
	id       int64
	object   *kernelObject
	startNS  int64
	endNS    int64
	targeted bool
}

// config is the library's environment.
type config struct {
	dir, prefix string // output directory; path prefix of the files
	formats     []string
	kernelTrace bool
	stats       bool
	att         bool
	counters    []string
	// groups take turns every interval dispatches, in place of counters.
	groups      [][]string
	interval    int64
	targetCU    int
	simds       int
	seMask      uint64
	buffer      int64
	gpuIndex    string
	consecutive string
	truncate    bool
	ranges      []span64
}

type span64 struct{ from, to int64 }

const (
	defaultBuffer = 256 << 20
	minBuffer     = 1 << 20
	maxTargetCU   = 15
)

// newSession is the library's start: it reads its environment and refuses what the real one refuses.
func newSession(r *run) (*session, *ending) {
	e := r.env
	s := &session{run: r, model: gpus[r.set.Arch], counts: map[int]int64{}, warm: map[*kernelObject]bool{}}
	// The output paths stay out of it: they differ from run to run.
	s.rnd = stream(r.set.Seed, "session", r.phase(), e.get("ROCPROF_ATT_PARAM_TARGET_CU"), e.get("ROCPROF_ATT_PARAM_SHADER_ENGINE_MASK"),
		e.get("ROCPROF_KERNEL_FILTER_RANGE"), e.get("ROCPROF_COUNTERS"))
	s.agentBase = 255 + int64(s.rnd.IntN(65535-255))
	s.pid = 20000 + s.rnd.IntN(1<<20)
	s.clockNS = 2_000_000_000_000_000 + int64(s.rnd.IntN(1_000_000_000))*1000
	s.log('W', "simple_timer.cpp:55", "[rocprofv3] tool initialization ::     0.000331 sec")
	s.log('W', "simple_timer.cpp:55", "[rocprofv3] '%s' ::     0.000000 sec", r.title)
	if err := s.configure(); err != nil {
		s.log('F', "tool.cpp:2948", "[rocprofv3] %v", err)
		return nil, &ending{signal: sigAbort}
	}
	s.log('W', "tool.cpp:2422", "HSA version 8.20.0 initialized (instance=0)")
	if r.set.has("busy", r.phase()) {
		s.log('W', "ioctl.cpp:61", "Device %d has a profiler attached to it. PMC Counters may be inaccurate.", firstGPUNode+max(r.gpu, 0))
		if s.cfg.att {
			s.log('F', "aql_packet.cpp:174", "failed to create ATT packet: HSA_STATUS_ERROR_OUT_OF_RESOURCES: another process has the thread trace of this GPU")
			return nil, &ending{signal: sigAbort}
		}
	}
	if s.cfg.att && r.set.has("att_packet", r.phase()) {
		s.log('F', "aql_packet.cpp:174", "failed to create ATT packet: HSA_STATUS_ERROR_OUT_OF_RESOURCES")
		return nil, &ending{signal: sigAbort}
	}
	return s, nil
}

func (s *session) configure() error {
	e := s.env
	c := config{
		dir: s.expand(e.get("ROCPROF_OUTPUT_PATH")), kernelTrace: e.get("ROCPROF_KERNEL_TRACE") != "", stats: e.truth("ROCPROF_STATS"),
		att: e.truth("ROCPROF_ADVANCED_THREAD_TRACE"), truncate: e.truth("ROCPROF_TRUNCATE_KERNELS"),
		targetCU: 1, simds: 0xf, seMask: 1, buffer: defaultBuffer, gpuIndex: e.get("ROCPROF_ATT_PARAM_GPU_INDEX"),
		consecutive: e.get("ROCPROF_ATT_CONSECUTIVE_KERNELS"),
	}
	if c.dir == "" {
		c.dir, _ = os.Getwd()
	}
	name := e.get("ROCPROF_OUTPUT_FILE_NAME")
	if name == "" {
		name = "%hostname%/%pid%"
	}
	c.prefix = filepath.Join(c.dir, filepath.FromSlash(s.expand(name)))
	for word := range strings.SplitSeq(e.get("ROCPROF_OUTPUT_FORMAT"), ",") {
		if !slices.Contains([]string{"csv", "json", "pftrace", "otf2", "rocpd"}, strings.ToLower(word)) {
			return saidf("Unsupported output format type: %s", strings.ToUpper(word))
		}
		c.formats = append(c.formats, strings.ToLower(word))
	}
	c.counters = counterWords(e.get("ROCPROF_COUNTERS"))
	for line := range strings.Lines(e.get("ROCPROF_COUNTER_GROUPS")) {
		if words := counterWords(line); len(words) > 0 && !s.set.has("no_rotation", phasePMC) {
			c.groups = append(c.groups, words)
		}
	}
	c.interval = 1
	for _, n := range []struct {
		name string
		into func(int64)
	}{
		{"ROCPROF_ATT_PARAM_TARGET_CU", func(v int64) { c.targetCU = int(v) }},
		{"ROCPROF_ATT_PARAM_SHADER_ENGINE_MASK", func(v int64) { c.seMask = uint64(v) }},
		{"ROCPROF_ATT_PARAM_SIMD_SELECT", func(v int64) { c.simds = int(v) }},
		{"ROCPROF_ATT_PARAM_BUFFER_SIZE", func(v int64) { c.buffer = v }},
		{"ROCPROF_COUNTER_GROUPS_INTERVAL", func(v int64) { c.interval = max(v, 1) }},
	} {
		if text := e.get(n.name); text != "" {
			v, err := pythonInt(text)
			if err != nil {
				return fmt.Errorf("expected integer for %s", n.name)
			}
			n.into(v)
		}
	}
	// Bits above the GPU's shader engines are masked off without a word (aqlprofile, sqtt_builder.h).
	c.seMask &= 1<<uint(s.model.ses()) - 1
	if c.att && (c.targetCU < 0 || c.targetCU > maxTargetCU || c.buffer < minBuffer || c.simds&^0xf != 0 || c.seMask == 0) {
		return fmt.Errorf("thread trace service configure failed with error code 19: Function invoked with one or more invalid arguments")
	}
	var err error
	if c.ranges, err = parseRanges(e.get("ROCPROF_KERNEL_FILTER_RANGE")); err != nil {
		return err
	}
	if s.include, err = regexpOf(e.get("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX"), ".*"); err != nil {
		return err
	}
	if s.exclude, err = regexpOf(e.get("ROCPROF_KERNEL_FILTER_EXCLUDE_REGEX"), ""); err != nil {
		return err
	}
	s.cfg = c
	return s.checkCounters()
}

func counterWords(text string) []string {
	return strings.FieldsFunc(strings.TrimPrefix(strings.TrimSpace(text), "pmc:"), func(r rune) bool { return r == ' ' || r == ',' })
}

// countersOf are the counters of one dispatch: those of every dispatch, or of the group whose turn it is.
func (s *session) countersOf(d dispatch) []string {
	if len(s.cfg.groups) == 0 {
		return s.cfg.counters
	}
	return s.cfg.groups[(d.id-1)/s.cfg.interval%int64(len(s.cfg.groups))]
}

// counting says whether counters are collected at all.
func (s *session) counting() bool { return len(s.cfg.counters)+len(s.cfg.groups) > 0 }

// regexpOf compiles a std::regex (ECMAScript) with Go's engine, which agrees on what a capture writes: anchors and
// quoted names.
func regexpOf(text, fallback string) (*regexp.Regexp, error) {
	if text == "" {
		text = fallback
	}
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("terminate called after throwing an instance of 'std::regex_error'\n  what():  %v", err)
	}
	return re, nil
}

// parseRanges reads an iteration set: numbers and A-B ranges between brackets, commas and spaces (config.cpp,
// get_kernel_filter_range).
func parseRanges(text string) ([]span64, error) {
	var out []span64
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[], ", r) }) {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 62)
		b, errB := strconv.ParseUint(to, 10, 62)
		if errA != nil || errB != nil {
			if isRange {
				return nil, fmt.Errorf("bad range format for '%s'. Expected [A-B] where A and B are numbers", word)
			}
			return nil, fmt.Errorf("expected integer for %s. Non-integer value detected", word)
		}
		out = append(out, span64{int64(a), int64(b)})
	}
	return out, nil
}

// expand replaces the keys of output_key.cpp that a capture may meet.
func (s *session) expand(text string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	cwd, _ := os.Getwd()
	pid, ppid := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	return strings.NewReplacer("%hostname%", host, "%h", host, "%pid%", pid, "{pid}", pid, "%ppid%", ppid, "%p", pid, "%cwd%", cwd,
		"%rank%", "0", "%r", "0", "%size%", "1", "%job%", "0", "%nid%", "0").Replace(text)
}

// log writes a glog line as ROCm 7.2 has them. Its time is the simulated one.
func (s *session) log(level byte, where, format string, a ...any) {
	s.logged++
	at := 36*3600 + s.logged
	fmt.Fprintf(s.stderr, "%c20260602 %02d:%02d:%02d.%06d %d %s] %s\n", level, at/3600%24, at/60%60, at%60, (s.logged*317)%1_000_000, 139_000_000_000_000+s.pid, where, fmt.Sprintf(format, a...))
}

// formatted is a kernel's name as filters and CSVs see it: without template and parameter lists where names are truncated.
func (s *session) formatted(name string) string {
	if !s.cfg.truncate || strings.HasPrefix(name, "_Z") {
		return name
	}
	name = strings.TrimPrefix(strings.ReplaceAll(name, "(anonymous namespace)::", ""), "void ")
	if i := strings.IndexAny(name, "<("); i >= 0 {
		name = name[:i]
	}
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return name
}

// dispatched sees one launch. The iteration counter is per kernel id, from 1, over kernels that pass the filter.
func (s *session) dispatched(o *kernelObject) {
	duration := o.ns + int64(s.rnd.IntN(int(min(o.ns/12, 1<<30))+1))
	if !s.warm[o] {
		s.warm[o] = true
		duration += duration / 3 // cold caches
	}
	d := dispatch{id: int64(len(s.dispatches)) + 1, object: o, startNS: s.clockNS, endNS: s.clockNS + duration}
	s.clockNS += duration + 5000 + int64(s.rnd.IntN(40000))
	name := s.formatted(o.kernel)
	if s.include.MatchString(name) && (s.exclude == nil || !s.exclude.MatchString(name)) {
		s.counts[o.kernelID]++
		d.targeted = s.inRange(s.counts[o.kernelID])
	}
	s.dispatches = append(s.dispatches, d)
	if d.targeted && s.counting() && overCapacity(s.countersOf(d)) {
		s.log('F', "tool.cpp:1460", "[rocprofv3] counter collection config failed with error code 38: Request exceeds the capabilities of the hardware to collect")
		panic(ending{signal: sigAbort, silent: true})
	}
}

// inRange: an empty set is every launch for counters and the first of each kernel for ATT.
func (s *session) inRange(n int64) bool {
	if len(s.cfg.ranges) == 0 {
		return !s.cfg.att || n == 1
	}
	return slices.ContainsFunc(s.cfg.ranges, func(r span64) bool { return r.from <= n && n <= r.to })
}

// agent gives the handle of a GPU's agent in this process, as directory names have it.
func (s *session) agent(gpu int) int64 { return s.agentBase + int64(firstGPUNode+gpu) }

// finish writes everything. A non-nil ending is how the library itself brings the process down.
func (s *session) finish() *ending {
	s.log('W', "simple_timer.cpp:55", "[rocprofv3] '%s' ::     2.136713 sec", s.title)
	s.marked()
	if s.cfg.att {
		s.writeATT()
	}
	s.writeTables()
	if s.failed == nil {
		s.log('W', "simple_timer.cpp:55", "[rocprofv3] output generation ::     0.005383 sec")
		s.log('W', "simple_timer.cpp:55", "[rocprofv3] tool finalization ::     0.005721 sec")
	}
	return s.failed
}

// marked leaves the file that says what this directory is.
func (s *session) marked() {
	text := fmt.Sprintf("These files come from flyprof-mcp's simulated GPU (%s, seed %d). Every figure in them is invented.\n", s.set.Arch, s.set.Seed)
	if s.set.Replay != "" {
		text = "These files come from flyprof-mcp's simulated GPU: it handed out a recorded dispatch directory.\n"
	}
	if os.MkdirAll(s.cfg.dir, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(s.cfg.dir, "SIMULATED"), []byte(text), 0o644)
	}
}

// write makes one output file and logs it at E level, as rocprofv3 does on success. After a failure nothing more is written.
func (s *session) write(path string, logged bool, fill func(w io.Writer) error) {
	if s.failed != nil {
		return
	}
	full := s.set.has("disk_full", s.phase())
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil && full {
		_ = os.WriteFile(path, nil, 0o644)
		err = saidf("No space left on device")
	}
	if err == nil {
		err = writeFile(path, fill)
	}
	switch {
	case err == nil && logged:
		s.log('E', "output_stream.cpp:111", "Opened result file: %s", path)
	case full:
		s.log('E', "output_stream.cpp:130", "Error writing '%s': No space left on device", path)
		s.errf("terminate called after throwing an instance of 'std::filesystem::filesystem_error'\n  what():  filesystem error: cannot write: No space left on device [%s]", path)
		s.failed = &ending{signal: sigAbort}
	case err != nil:
		s.log('F', "output_stream.cpp:104", "Failed to open '%s' for output: %v", path, err)
		s.failed = &ending{signal: sigAbort}
	}
}

func (s *session) writeText(path string, logged bool, text []byte) {
	s.write(path, logged, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func writeFile(path string, fill func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
