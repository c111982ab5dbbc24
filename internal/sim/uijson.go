package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The files of a ui_output directory: compact JSON, keys in alphabetical order, as rocprofv3's C++ writes them.

const uiVersion = "3.0.0"

// out is a JSON text under construction.
type out struct{ bytes.Buffer }

func (o *out) int(n int64) { o.Write(strconv.AppendInt(o.AvailableBuffer(), n, 10)) }

func (o *out) str(s string) {
	e := json.NewEncoder(&o.Buffer)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil {
		o.Truncate(o.Len() - 1) // the encoder's newline
	}
}

// ints writes [a,b,c].
func (o *out) ints(list ...int64) {
	o.WriteByte('[')
	for i, n := range list {
		if i > 0 {
			o.WriteByte(',')
		}
		o.int(n)
	}
	o.WriteByte(']')
}

// each writes n members with commas between them.
func (o *out) each(n int, member func(i int)) {
	for i := range n {
		if i > 0 {
			o.WriteByte(',')
		}
		member(i)
	}
}

func (u *decoded) codeJSON() []byte {
	o := &out{}
	o.WriteString(`{"code":`)
	if len(u.rows) == 0 {
		o.WriteString("null")
	} else {
		o.WriteByte('[')
		o.each(len(u.rows), func(i int) {
			r := u.rows[i]
			o.WriteByte('[')
			o.str(r.isa)
			fmt.Fprintf(o, ",0,%d,", i)
			o.str(r.source)
			fmt.Fprintf(o, ",%d,%d,%d,%d,%d,%d]", u.codeObject, r.vaddr, r.hit, r.latency, r.stall, r.idl)
		})
		o.WriteByte(']')
	}
	o.WriteString(`,"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"` + uiVersion + `"}`)
	return o.Bytes()
}

// filenamesJSON nests the wave files by SE, SIMD, slot and wave.
func (u *decoded) filenamesJSON() []byte {
	o := &out{}
	o.WriteString(`{"counter_names":[],"gfxip":9,"gfxv":"vega","global_begin_time":0,"version":"` + uiVersion + `","wave_filenames":`)
	if len(u.waves) == 0 {
		o.WriteString("null}")
		return o.Bytes()
	}
	type level map[string]any
	tree := level{}
	descend := func(l level, key int) level {
		name := strconv.Itoa(key)
		next, ok := l[name].(level)
		if !ok {
			next = level{}
			l[name] = next
		}
		return next
	}
	for _, w := range u.waves {
		slot := descend(descend(descend(tree, w.se), w.simd), w.slot)
		slot[strconv.Itoa(w.id)] = []any{w.file(), w.begin, w.end}
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	o.Write(text)
	o.WriteByte('}')
	return o.Bytes()
}

// occupancyJSON lists start and end of every wave on every CU of the selected shader engines.
func (u *decoded) occupancyJSON() []byte {
	type event struct{ time, cu, simd, slot, start int64 }
	events := map[string][]event{}
	var keys []string
	for _, e := range u.engines {
		if len(e.rows) == 0 {
			continue
		}
		key := strconv.Itoa(e.se)
		keys = append(keys, key)
		for _, r := range e.rows {
			where := event{r.begin, int64(r.cu), int64(r.simd), int64(r.slot), 1}
			events[key] = append(events[key], where)
			if !e.full || e.cutoff == 0 || r.end <= e.cutoff {
				where.time, where.start = r.end, 0
				events[key] = append(events[key], where)
			}
		}
		slices.SortStableFunc(events[key], func(a, b event) int {
			if d := a.time - b.time; d != 0 {
				return int(d)
			}
			return int(a.start - b.start)
		})
	}
	slices.Sort(keys)
	o := &out{}
	o.WriteByte('{')
	for _, key := range keys {
		o.WriteString(`"` + key + `":[`)
		o.each(len(events[key]), func(i int) {
			e := events[key][i]
			o.ints(e.time, e.cu, e.simd, e.slot, e.start, 1)
		})
		o.WriteString("],")
	}
	o.WriteString(`"dispatches":{"0":"0 / 0x0"`)
	if len(keys) > 0 {
		o.WriteString(`,"1":`)
		o.str(u.symbol)
	}
	o.WriteString(`},"version":"` + uiVersion + `"}`)
	return o.Bytes()
}

// realtimeJSON ties the shader clock to the 100 MHz clock with two points an engine.
func (u *decoded) realtimeJSON(s *session) []byte {
	o := &out{}
	o.WriteByte('{')
	engines := slices.Clone(u.engines)
	slices.SortFunc(engines, func(a, b engineTrace) int { return strings.Compare(strconv.Itoa(a.se), strconv.Itoa(b.se)) })
	for _, e := range engines {
		first, last := int64(10000-700*(e.se%4)), int64(10000)
		for _, r := range e.rows {
			last = max(last, r.end)
		}
		span := last + 1000 - first
		fmt.Fprintf(o, `"SE%d":[`, e.se)
		base := 236_000_000_000_000 + s.clockNS%1_000_000_000
		o.ints(first, base)
		o.WriteByte(',')
		o.ints(first+span, base+span*100/int64(s.model.clockMHz))
		o.WriteString("],")
	}
	o.WriteString(`"metadata":{"descriptor":"[gfx_clock, realtime_clock]","frequency":100000000}}`)
	return o.Bytes()
}

// json is one wave file.
func (w decodedWave) json() []byte {
	t := w.trace
	o := &out{}
	fmt.Fprintf(o, `{"duration":%d,"name":"SE%d","num_insts":%d,"num_stitched":%d,"wave":{"begin":%d,"cu":%d,"end":%d,"id":%d,"instructions":`,
		t.end-t.begin, w.se, len(t.steps), len(t.steps), t.begin, w.cu, t.end, w.id)
	o.list(len(t.steps), func(i int) {
		s := t.steps[i]
		o.ints(s.time, int64(s.category), s.stall, s.duration, int64(s.line))
	})
	fmt.Fprintf(o, `,"simd":%d,"slot":%d,"timeline":`, w.simd, w.slot)
	o.list(len(t.timeline), func(i int) { o.ints(int64(t.timeline[i].state), t.timeline[i].cycles) })
	o.WriteString(`,"waitcnt":`)
	o.list(len(t.waits), func(i int) {
		fmt.Fprintf(o, "[%d,[", t.waits[i].line)
		o.each(len(t.waits[i].targets), func(j int) { o.ints(int64(t.waits[i].targets[j]), 0) })
		o.WriteString("]]")
	})
	o.WriteString("}}")
	return o.Bytes()
}

// list writes [members], or null for none as nlohmann::json does for a default value.
func (o *out) list(n int, member func(i int)) {
	if n == 0 {
		o.WriteString("null")
		return
	}
	o.WriteByte('[')
	o.each(n, member)
	o.WriteByte(']')
}

// stateFiles are wstates1..4.json: how many traced waves are in a state, over time. A state that never occurs has no file.
func (u *decoded) stateFiles() []namedFile {
	var files []namedFile
	for state := 1; state <= 4; state++ {
		changes := map[int64]int{}
		for _, w := range u.waves {
			at := w.begin
			for _, span := range w.trace.timeline {
				if span.state == state {
					changes[at]++
					changes[at+span.cycles]--
				}
				at += span.cycles
			}
		}
		times := make([]int64, 0, len(changes))
		for at, n := range changes {
			if n != 0 {
				times = append(times, at)
			}
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		counts := make([]int64, len(times))
		n := int64(0)
		for i, at := range times {
			n += int64(changes[at])
			counts[i] = n
		}
		o := &out{}
		name := fmt.Sprintf("wstates%d.json", state)
		fmt.Fprintf(o, `{"name":"%s","state":`, name)
		o.ints(counts...)
		o.WriteString(`,"time":`)
		o.ints(times...)
		o.WriteByte('}')
		files = append(files, namedFile{name, o.Bytes()})
	}
	return files
}
