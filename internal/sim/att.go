package sim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// attHeaderBytes is the size of an .att file of an idle shader engine: a header and nothing else.
const attHeaderBytes = 424

// writeATT writes what a thread trace leaves: code objects, raw traces, and for each traced dispatch a ui_output directory
// with its stats CSV.
func (s *session) writeATT() {
	s.writeCodeObjects()
	if s.cfg.consecutive != "" && s.cfg.consecutive != "0" {
		s.log('W', "core.cpp:588", "Thread trace context not present for agent!")
		return
	}
	armed, ok := s.armedGPUs()
	if !ok {
		return
	}
	wrong := s.set.has("wrong_gpu", phaseATT)
	decoded := 0
	for _, d := range s.dispatches {
		if !d.targeted {
			continue
		}
		if !slices.Contains(armed, s.gpu) {
			continue
		}
		for _, gpu := range armed {
			if gpu != s.gpu || wrong {
				s.writeRaw(gpu, d, nil)
			}
		}
		if s.set.has("decoder_unloadable", phaseATT) {
			s.writeRaw(s.gpu, d, s.traced(d))
			decoded++
			continue
		}
		switch {
		case s.set.Replay != "" && d.object.code != nil:
			s.replay(d)
		case d.object.code == nil || wrong:
			s.writeDispatch(d, nil)
		default:
			traces := s.traced(d)
			s.writeRaw(s.gpu, d, traces)
			s.warnOf(traces)
			s.writeDispatch(d, traces)
		}
	}
	if decoded > 0 {
		s.log('F', "att_lib_wrapper.cpp:130", "Error loading decoder: 37")
		s.failed = &ending{signal: sigAbort}
	}
}

// armedGPUs reads att_gpu_index: KFD order, empty for every visible GPU.
func (s *session) armedGPUs() ([]int, bool) {
	if s.cfg.gpuIndex == "" {
		return s.visible(), true
	}
	var out []int
	for word := range strings.SplitSeq(s.cfg.gpuIndex, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			s.log('F', "tool.cpp:2867", "Invalid GPU Id string: %s", s.cfg.gpuIndex)
			s.failed = &ending{signal: sigAbort}
			return nil, false
		}
		if n < 0 || n >= GPUs {
			s.log('E', "tool.cpp:2948", "Invalid GPU Device Index: %d", n)
			continue
		}
		out = append(out, n)
	}
	return out, true
}

// traced follows a dispatch over the selected shader engines.
func (s *session) traced(d dispatch) []engineTrace {
	if d.object.code == nil {
		return nil
	}
	p := s.place(d.object)
	var selected []int
	for se := range s.model.ses() {
		if s.cfg.seMask&(1<<se) != 0 {
			selected = append(selected, se)
		}
	}
	// The selected engines share the buffer.
	budget := &traceBudget{waves: maxTracedWaves, steps: maxTracedSteps, bytesPerSE: s.cfg.buffer / int64(len(selected))}
	out := make([]engineTrace, 0, len(selected))
	for _, se := range selected {
		out = append(out, s.traceEngine(d, p, se, budget))
	}
	return out
}

// warnOf logs what the real tool says of a full buffer and of lost data.
func (s *session) warnOf(traces []engineTrace) {
	if slices.ContainsFunc(traces, func(e engineTrace) bool { return e.full }) {
		s.log('W', "tool.cpp:1649", "Thread trace buffer full!")
		s.log('W', "profile_interface.cpp:58", "Wave incomplete: The trace was cutoff before all waves ended.")
	}
	if s.set.has("data_lost", phaseATT) {
		s.log('W', "profile_interface.cpp:58", "Data Lost: The profiler dropped part of the trace due to bandwidth limitations.")
	}
}

// writeCodeObjects writes an ELF for every code object that the process loaded: torch's as one, then one a kernel. A
// replayed kernel has none, because its registers are not known.
func (s *session) writeCodeObjects() {
	var torch []*kernelObject
	for _, o := range s.made {
		if o.code == nil {
			torch = append(torch, o)
		}
	}
	slices.SortFunc(torch, func(a, b *kernelObject) int { return a.kernelID - b.kernelID })
	groups := [][]*kernelObject{torch}
	for _, o := range s.objects {
		if s.set.Replay == "" {
			groups = append(groups, []*kernelObject{o})
		}
	}
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		data, err := codeObjectFile(s.model, g)
		if err != nil {
			continue
		}
		s.writeText(fmt.Sprintf("%s_%s_code_object_id_%d.out", s.cfg.prefix, s.model.arch, g[0].codeObject), false, data)
	}
}

// writeRaw writes the .att files of one agent: the header, and bytes that no decoder will read where there was work.
func (s *session) writeRaw(gpu int, d dispatch, traces []engineTrace) {
	for se := range s.model.ses() {
		if s.cfg.seMask&(1<<se) == 0 {
			continue
		}
		data := make([]byte, attHeaderBytes)
		copy(data, "SIMULATED SQTT")
		for _, e := range traces {
			if e.se == se && len(e.rows) > 0 {
				body := make([]byte, min(1<<16, e.stepsSum*2+len(e.rows)*16))
				rnd := stream(s.set.Seed, "raw", strconv.Itoa(se))
				for i := range body {
					body[i] = byte(rnd.Uint32())
				}
				data = append(data, body...)
			}
		}
		s.writeText(fmt.Sprintf("%s_%d_shader_engine_%d_%d.att", s.cfg.prefix, s.agent(gpu), se, d.id), false, data)
	}
}

// uiName is the name of a dispatch directory.
func (s *session) uiName(d dispatch) string {
	return fmt.Sprintf("ui_output_agent_%d_dispatch_%d", s.agent(s.gpu), d.id)
}

// writeDispatch writes a ui_output directory and its stats CSV. They are made even when the trace decoded to nothing.
func (s *session) writeDispatch(d dispatch, traces []engineTrace) {
	dir := filepath.Join(s.cfg.dir, s.uiName(d))
	u := s.decode(d, traces)
	for _, file := range u.files(s) {
		if file.name == "code.json" && s.set.has("torn_json", phaseATT) {
			file.data = file.data[:len(file.data)*3/5]
		}
		s.writeText(filepath.Join(dir, file.name), false, file.data)
	}
	s.writeText(filepath.Join(s.cfg.dir, "stats_"+s.uiName(d)+".csv"), false, u.stats())
}

// codeRow is a row of code.json.
type codeRow struct {
	isa                      string
	source                   string
	vaddr                    int
	hit, latency, stall, idl int64
}

// decodedWave is a traced wave with its place.
type decodedWave struct {
	se int
	waveRow
}

func (w decodedWave) file() string {
	return fmt.Sprintf("se%d_sm%d_sl%d_wv%d.json", w.se, w.simd, w.slot, w.id)
}

// decoded is what a dispatch's trace decodes to.
type decoded struct {
	symbol     string
	codeObject int
	rows       []codeRow
	waves      []decodedWave
	engines    []engineTrace
	snapshots  []snapshot
}

// decode sums the waves by instruction. Without a traced wave there is no code.
func (s *session) decode(d dispatch, traces []engineTrace) *decoded {
	u := &decoded{symbol: d.object.kernel, codeObject: d.object.codeObject, engines: traces}
	if s.set.has("wrong_kernel", phaseATT) {
		u.symbol = "other_" + u.symbol
	}
	for _, e := range traces {
		for _, r := range e.rows {
			if r.trace != nil {
				u.waves = append(u.waves, decodedWave{e.se, r})
			}
		}
	}
	slices.SortFunc(u.waves, func(a, b decodedWave) int {
		for _, d := range []int{a.se - b.se, a.simd - b.simd, a.slot - b.slot} {
			if d != 0 {
				return d
			}
		}
		return a.id - b.id
	})
	if len(u.waves) == 0 {
		return u
	}
	lines := s.sources(d.object)
	u.snapshots = lines.snapshots
	vaddr := 0x1700
	u.rows = append(u.rows, codeRow{isa: "; " + u.symbol, vaddr: vaddr})
	for _, o := range d.object.code.ops {
		u.rows = append(u.rows, codeRow{isa: o.isa, source: lines.of(o.tag), vaddr: vaddr})
		vaddr += o.size
	}
	for _, w := range u.waves {
		before := w.begin
		for _, t := range w.trace.steps {
			row := &u.rows[t.line]
			row.hit++
			row.latency += t.duration
			row.stall += t.stall
			row.idl += max(t.time-before, 0)
			before = t.time + t.duration
		}
	}
	return u
}

// stats is the stats CSV: the rows of code.json.
func (u *decoded) stats() []byte {
	t := newTable("CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source")
	for _, r := range u.rows {
		t.row(u.codeObject, r.vaddr, r.isa, r.hit, r.latency, r.stall, r.idl, r.source)
	}
	return t.Bytes()
}

// namedFile is one file of a ui_output directory.
type namedFile struct {
	name string
	data []byte
}

// files renders the directory as the tool of ROCm 7.0 to 7.2 does (format 3.0.0).
func (u *decoded) files(s *session) []namedFile {
	out := []namedFile{
		{"code.json", u.codeJSON()},
		{"filenames.json", u.filenamesJSON()},
		{"occupancy.json", u.occupancyJSON()},
		{"realtime.json", u.realtimeJSON(s)},
	}
	for _, w := range u.waves {
		out = append(out, namedFile{w.file(), w.json()})
	}
	out = append(out, u.stateFiles()...)
	if len(u.snapshots) > 0 {
		out = append(out, namedFile{"snapshots.json", snapshotTree(u.snapshots)})
		for _, snap := range u.snapshots {
			out = append(out, namedFile{snap.name, snap.text})
		}
	}
	return out
}
