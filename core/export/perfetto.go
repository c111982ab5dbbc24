package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/flyprof/flyprof-mcp/core/att"
)

// maxEvents bounds a timeline: browsers show no more.
const maxEvents = 2_000_000

// states are the names of a wave's states in its timeline (trace_decoder_types.h).
var states = map[int64]string{0: "empty", 1: "idle", 2: "exec", 3: "wait", 4: "stall"}

// writePerfetto writes the timelines of the traced waves in the Chrome trace event format, which Perfetto and chrome://tracing open. A
// process is a shader engine, a thread a wave slot of a SIMD. Viewers show microseconds: one of theirs is 1,000 cycles, so that a cycle is
// shown as a nanosecond.
func writePerfetto(ctx context.Context, w io.Writer, dir string, about About) error {
	out := &timeline{w: bufio.NewWriterSize(w, 256<<10), threads: map[[3]int64]bool{}}
	out.text(`{"displayTimeUnit":"ns","otherData":`)
	meta, err := json.Marshal(map[string]any{"kernel": about.Kernel, "run": about.Run, "arch": about.Arch, "simulated": about.Simulated, "unit": "1 us = 1000 cycles of the shader clock", "max_events": maxEvents})
	if err != nil {
		return err
	}
	out.text(string(meta) + `,"traceEvents":[`)
	if _, err := kept(ctx, dir, about, att.Options{ReadWaves: true, Observe: func(*att.Dispatch) att.WaveObserver { return &waveEvents{out: out} }}); err != nil {
		return err
	}
	if out.events == 0 {
		return fmt.Errorf("the directory has no wave file: a timeline needs them; use another format")
	}
	out.text(fmt.Sprintf(`],"truncated":%d}`, out.dropped) + "\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// timeline is what all readers write to, a wave at a time.
type timeline struct {
	mu              sync.Mutex
	w               *bufio.Writer
	err             error
	events, dropped int64
	threads         map[[3]int64]bool
}

func (t *timeline) text(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(s)
	}
}

type event struct {
	Name string         `json:"name"`
	Ph   string         `json:"ph"`
	PID  int64          `json:"pid"`
	TID  int64          `json:"tid"`
	TS   float64        `json:"ts"`
	Dur  float64        `json:"dur,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

func (t *timeline) event(e event) {
	if t.events >= maxEvents {
		t.dropped++
		return
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.err = err
		return
	}
	if t.events > 0 {
		t.text(",\n")
	}
	t.events++
	t.text(string(raw))
}

// waveEvents gathers the spans of one wave until its file is read whole.
type waveEvents struct {
	out          *timeline
	spans        []span
	instructions int64
}

type span struct{ state, cycles int64 }

// maxSpans bounds what is kept of one wave.
const maxSpans = 1 << 20

// Instruction implements att.WaveObserver.
func (e *waveEvents) Instruction(att.WaveInstruction) { e.instructions++ }

// Wait implements att.WaveObserver.
func (e *waveEvents) Wait(int, []int) {}

// State implements att.WaveObserver.
func (e *waveEvents) State(state, cycles int64) {
	if len(e.spans) < maxSpans {
		e.spans = append(e.spans, span{state, cycles})
	}
}

// End implements att.WaveObserver.
func (e *waveEvents) End(w att.WaveEnd, err error) {
	defer func() { e.spans, e.instructions = e.spans[:0], 0 }()
	if err != nil {
		return
	}
	t := e.out
	t.mu.Lock()
	defer t.mu.Unlock()
	tid := w.SIMD*1000 + w.Slot
	if key := [3]int64{w.SE, w.SIMD, w.Slot}; !t.threads[key] {
		t.threads[key] = true
		t.event(event{Name: "process_name", Ph: "M", PID: w.SE, Args: map[string]any{"name": fmt.Sprintf("SE %d CU %d", w.SE, w.CU)}})
		t.event(event{Name: "thread_name", Ph: "M", PID: w.SE, TID: tid, Args: map[string]any{"name": fmt.Sprintf("SIMD %d slot %d", w.SIMD, w.Slot)}})
	}
	const cycles = 1000.0 // of one microsecond of the viewer
	t.event(event{Name: fmt.Sprintf("wave %d", w.ID), Ph: "X", PID: w.SE, TID: tid, TS: float64(w.Begin) / cycles, Dur: float64(w.End-w.Begin) / cycles, Args: map[string]any{"instructions": e.instructions, "file": w.File}})
	at := w.Begin
	for _, s := range e.spans {
		if name := states[s.state]; name != "" && s.state != 0 && s.cycles > 0 {
			t.event(event{Name: name, Ph: "X", PID: w.SE, TID: tid, TS: float64(at) / cycles, Dur: float64(s.cycles) / cycles})
		}
		at += s.cycles
	}
}
