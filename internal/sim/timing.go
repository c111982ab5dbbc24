package sim

import (
	"math/rand/v2"
)

// Cycles of the timing model: orders of magnitude as traces of gfx9 show them, multiples of 4 like real ones.
const (
	latencySMEM   = 240
	latencyVMEM   = 700
	latencyLDS    = 64
	startupCycles = 28
	maxWaitEdges  = 29
)

// step is one executed instruction: [time, category, stall, duration, line] of a wave file.
type step struct {
	time     int64
	category int
	stall    int64
	duration int64
	line     int
}

// waitEdge is an executed s_waitcnt and the instructions that it waited for.
type waitEdge struct {
	line    int
	targets []int
}

// phaseSpan is one entry of a wave's timeline: state (1 idle, 2 exec, 3 wait, 4 stall) and cycles.
type phaseSpan struct {
	state  int
	cycles int64
}

// waveTrace is one traced wave.
type waveTrace struct {
	begin, end int64
	steps      []step
	waits      []waitEdge
	timeline   []phaseSpan
}

type pending struct {
	line int
	done int64
}

// walker executes a template for one wave.
type walker struct {
	code  *template
	rnd   *rand.Rand
	full  bool // record steps, not only the end
	now   int64
	trace waveTrace
	vm    []pending // in order
	lgkm  []pending // LDS and scalar loads
	mfma  int64     // when the matrix pipe is free
}

func cycles(n int) int64 { return int64(n+3) / 4 * 4 }

// wave runs one wave of a kernel from begin. Line numbers start after the header row.
func (t *template) wave(rnd *rand.Rand, begin int64, trips int, full bool) waveTrace {
	w := &walker{code: t, rnd: rnd, full: full, now: begin}
	w.trace.begin = begin
	w.span(1, startupCycles)
	loop := t.loopUntil > t.loopFrom
	for i, trip := 0, 1; i < len(t.ops); i++ {
		taken := loop && i == t.loopUntil && trip < trips
		w.execute(i, taken)
		if taken {
			trip++
			i = t.loopFrom - 1
		}
	}
	w.trace.end = w.now
	return w.trace
}

// span lets time pass in a state.
func (w *walker) span(state int, n int64) {
	w.now += n
	if n == 0 || !w.full {
		return
	}
	if last := len(w.trace.timeline) - 1; last >= 0 && w.trace.timeline[last].state == state {
		w.trace.timeline[last].cycles += n
		return
	}
	w.trace.timeline = append(w.trace.timeline, phaseSpan{state, n})
}

func (w *walker) execute(i int, taken bool) {
	o := w.code.ops[i]
	line := i + 1
	if w.rnd.IntN(6) == 0 {
		w.span(1, cycles(w.rnd.IntN(12)))
	}
	at := w.now
	stall, issue := w.cost(o, line)
	if o.unit == unitWait || o.unit == unitBarrier || o.unit == unitNop {
		// Waiting is all there is: the whole duration counts as stall.
		issue = 0
		stall = max(stall, 4)
		w.span(3, stall)
	} else {
		w.span(4, stall)
		w.span(2, issue)
	}
	if w.full {
		w.trace.steps = append(w.trace.steps, step{at, o.unit.category(taken), stall, stall + issue, line})
	}
	done := w.now
	switch o.unit {
	case unitVMEM, unitFlat:
		done += latencyVMEM + cycles(w.rnd.IntN(600))
		if n := len(w.vm); n > 0 {
			done = max(done, w.vm[n-1].done+4)
		}
		w.vm = append(w.vm, pending{line, done})
	case unitSMEM:
		w.lgkm = append(w.lgkm, pending{line, done + latencySMEM + cycles(w.rnd.IntN(200))})
	case unitLDS:
		w.lgkm = append(w.lgkm, pending{line, done + latencyLDS + cycles(w.rnd.IntN(64))})
	case unitMFMA:
		w.mfma = w.now + 12
	}
}

// cost gives stall and issue cycles of an instruction.
func (w *walker) cost(o op, line int) (stall, issue int64) {
	busy := func(chance, most int) int64 {
		if w.rnd.IntN(chance) == 0 {
			return cycles(w.rnd.IntN(most))
		}
		return 0
	}
	switch o.unit {
	case unitWait:
		return w.wait(o, line), 0
	case unitBarrier:
		return 4 + cycles(w.rnd.IntN(120)), 0
	case unitNop:
		return 4 + cycles(w.rnd.IntN(8)), 0
	case unitVMEM, unitFlat:
		return busy(2, 40), 4
	case unitLDS:
		return busy(3, 16), 4
	case unitMFMA:
		return max(0, w.mfma-w.now), 4
	case unitTrans:
		return busy(4, 12), 8
	case unitVALU:
		return busy(8, 16), 4
	}
	return 0, 4
}

// wait gives the cycles until the counts of an s_waitcnt hold, and notes what it waited for.
func (w *walker) wait(o op, line int) int64 {
	until := w.now
	var targets []int
	drain := func(queue []pending, keep int) []pending {
		if keep < 0 || len(queue) <= keep {
			return queue
		}
		n := len(queue) - keep
		for _, p := range queue[:n] {
			until = max(until, p.done)
			targets = append(targets, p.line)
		}
		return append([]pending(nil), queue[n:]...)
	}
	w.vm = drain(w.vm, o.vm)
	w.lgkm = drain(w.lgkm, o.lgkm)
	if w.full && len(targets) > 0 {
		w.trace.waits = append(w.trace.waits, waitEdge{line, targets[:min(len(targets), maxWaitEdges)]})
	}
	return until - w.now
}
