package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flyprof/flyprof-mcp/core/att"
)

// Residency is how many waves were resident on a CU at a time. A CU's span is from its first begin to its last end of a wave of the
// kernel; all times are cycles of the shader clock.
type Residency struct {
	Source string `json:"source" jsonschema:"enum=occupancy.json,enum=waves"`
	// Waves began on the CUs; Peak is the most that one CU held at a time.
	Waves int64 `json:"waves"`
	Peak  int64 `json:"peak" jsonschema_description:"Most waves that one CU held at a time."`
	// Mean is WaveCycles / SpanCycles: the mean over time of the waves on a CU, over the spans of all CUs.
	Mean       *float64 `json:"mean,omitempty" jsonschema_description:"Waves on a CU, weighted by time over each CU's own span."`
	WaveCycles int64    `json:"wave_cycles" jsonschema_description:"Cycles that waves were resident, added up."`
	SpanCycles int64    `json:"span_cycles" jsonschema_description:"The spans of the CUs, added up."`
	// Slots are the waves that a CU of this GPU can hold, where it is known; MeanPct and PeakPct are of them.
	Slots   int64    `json:"slots,omitempty"`
	MeanPct *float64 `json:"mean_pct,omitempty"`
	PeakPct *float64 `json:"peak_pct,omitempty"`
	// Total counts the CUs; CUs lists them, the traced ones first.
	Total int           `json:"total_cus"`
	CUs   []CUResidency `json:"cus"`
	// Timeline is the mean on the traced CUs (on all where none is known) over equal parts of their common span.
	Timeline []Bucket `json:"timeline,omitempty"`
	// Unfinished waves have no end and are counted to the last event of their engine; Unbegun are ends without a begin, not counted.
	Unfinished int64 `json:"unfinished,omitempty"`
	Unbegun    int64 `json:"unbegun,omitempty"`
}

// CUResidency is the residency of one CU.
type CUResidency struct {
	SE         int64    `json:"se"`
	CU         int64    `json:"cu" jsonschema_description:"Physical CU within the shader engine."`
	Traced     bool     `json:"traced" jsonschema_description:"Its instructions were traced."`
	Waves      int64    `json:"waves"`
	Peak       int64    `json:"peak"`
	Mean       *float64 `json:"mean,omitempty"`
	WaveCycles int64    `json:"wave_cycles"`
	First      int64    `json:"first"`
	Last       int64    `json:"last"`
}

// Bucket is a part of the time.
type Bucket struct {
	From int64    `json:"from"`
	To   int64    `json:"to"`
	Mean *float64 `json:"mean,omitempty" jsonschema_description:"Waves on a CU, weighted by time."`
}

// span is the time of one wave on a CU: resident from begin until before end.
type span struct{ begin, end int64 }

type cuID struct{ se, cu int64 }

func (a cuID) compare(b cuID) int { return cmp.Or(cmp.Compare(a.se, b.se), cmp.Compare(a.cu, b.cu)) }

const (
	// maxSpans bounds the waves that are kept of occupancy.json: 64 MB.
	maxSpans = 4 << 20
	// buckets are the parts of the timeline.
	buckets = 16
)

// residencyOfWaves is the residency by the traced waves alone; nil where there are none.
func residencyOfWaves(waves []Wave) *Residency {
	spans, traced := map[cuID][]span{}, map[cuID]bool{}
	for _, w := range waves {
		id := cuID{w.SE, w.CU}
		spans[id] = append(spans[id], span{w.Begin, max(w.Begin, w.End)})
		traced[id] = true
	}
	return residencyOf("waves", spans, traced)
}

func residencyOf(source string, spans map[cuID][]span, traced map[cuID]bool) *Residency {
	if len(spans) == 0 {
		return nil
	}
	r := &Residency{Source: source, Total: len(spans)}
	for _, id := range slices.SortedFunc(maps.Keys(spans), cuID.compare) {
		c := measure(spans[id])
		c.SE, c.CU, c.Traced = id.se, id.cu, traced[id]
		r.Waves += c.Waves
		r.Peak = max(r.Peak, c.Peak)
		r.WaveCycles = plus(r.WaveCycles, c.WaveCycles)
		r.SpanCycles = plus(r.SpanCycles, c.Last-c.First)
		r.CUs = append(r.CUs, c)
	}
	r.Mean = ratio(r.WaveCycles, r.SpanCycles)
	slices.SortStableFunc(r.CUs, func(a, b CUResidency) int {
		return cmp.Compare(btoi(b.Traced), btoi(a.Traced))
	})
	r.Timeline = timeline(r.CUs, spans)
	return r
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// measure sums one CU's waves up. What begins and ends at one time is taken together: a slot that is handed on holds one wave.
func measure(spans []span) CUResidency {
	type step struct{ at, by int64 }
	steps := make([]step, 0, 2*len(spans))
	c := CUResidency{Waves: int64(len(spans)), First: spans[0].begin, Last: spans[0].end}
	for _, s := range spans {
		steps = append(steps, step{s.begin, 1}, step{s.end, -1})
		c.First, c.Last = min(c.First, s.begin), max(c.Last, s.end)
		c.WaveCycles = plus(c.WaveCycles, s.end-s.begin)
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	now := int64(0)
	for i, s := range steps {
		now += s.by
		if i+1 == len(steps) || steps[i+1].at != s.at {
			c.Peak = max(c.Peak, now)
		}
	}
	c.Mean = ratio(c.WaveCycles, c.Last-c.First)
	return c
}

// timeline is the mean over equal parts of the time in which the CUs had waves.
func timeline(cus []CUResidency, spans map[cuID][]span) []Bucket {
	traced := slices.ContainsFunc(cus, func(c CUResidency) bool { return c.Traced })
	var of []CUResidency
	for _, c := range cus {
		if c.Traced || !traced {
			of = append(of, c)
		}
	}
	first, last := of[0].First, of[0].Last
	for _, c := range of {
		first, last = min(first, c.First), max(last, c.Last)
	}
	if last-first < buckets {
		return nil
	}
	edges := make([]int64, buckets+1)
	step := apportion(last-first, slices.Repeat([]int64{1}, buckets))
	edges[0] = first
	for i, s := range step {
		edges[i+1] = edges[i] + s
	}
	sums := make([]int64, buckets)
	for _, c := range of {
		for _, s := range spans[cuID{c.SE, c.CU}] {
			from, _ := slices.BinarySearch(edges, s.begin+1)
			for i := from - 1; i < buckets && edges[i] < s.end; i++ {
				sums[i] = plus(sums[i], min(s.end, edges[i+1])-max(s.begin, edges[i]))
			}
		}
	}
	out := make([]Bucket, buckets)
	for i := range out {
		out[i] = Bucket{From: edges[i], To: edges[i+1], Mean: rounded(float64(sums[i]) / float64(edges[i+1]-edges[i]) / float64(len(of)))}
	}
	return out
}

// slotID is where a wave runs.
type slotID struct {
	cuID
	simd, slot int64
}

// events collects the waves of occupancy.json.
type events struct {
	spans               map[cuID][]span
	open                map[slotID]int64
	engine              int64
	last                int64 // time of the engine's last event
	kept                int
	unfinished, unbegun int64
}

var errEnough = errors.New("enough")

// event notes a begin or an end. Engines come one after the other.
func (e *events) event(o att.OccupancyEvent) error {
	o.Time = clamp(o.Time)
	if o.SE != e.engine {
		e.finish()
		e.engine, e.last = o.SE, o.Time
	}
	e.last = max(e.last, o.Time)
	at := slotID{cuID{o.SE, o.CU}, o.SIMD, o.Slot}
	began, running := e.open[at]
	switch {
	case o.Start && running: // its end was lost; it cannot have lasted longer
		e.unfinished++
		fallthrough
	case !o.Start && running:
		e.spans[at.cuID] = append(e.spans[at.cuID], span{began, max(began, o.Time)})
		delete(e.open, at)
		e.kept++
	case !o.Start:
		e.unbegun++
	}
	if o.Start {
		e.open[at] = o.Time
	}
	if e.kept+len(e.open) > maxSpans {
		return errEnough
	}
	return nil
}

// finish closes what is still running when the events of an engine end.
func (e *events) finish() {
	for at, began := range e.open {
		e.unfinished++
		e.spans[at.cuID] = append(e.spans[at.cuID], span{began, max(began, e.last)})
	}
	clear(e.open)
}

// readOccupancy takes the residency from occupancy.json. Without the file there is none, which att has warned of.
func (t *Trace) readOccupancy(ctx context.Context) error {
	e := events{spans: map[cuID][]span{}, open: map[slotID]int64{}, engine: -1}
	err := t.dispatch.EachOccupancy(ctx, t.info.Kernel, e.event)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case errors.Is(err, errEnough):
		t.warn(WarnOccupancyCut, fmt.Sprintf("occupancy.json has more than %d waves; the residency is that of the first", maxSpans))
	case err != nil:
		t.warn(att.WarnOccupancyCorrupt, fmt.Sprintf("occupancy.json cannot be read for the residency: %v", err))
		return nil
	}
	e.finish()
	traced := map[cuID]bool{}
	for _, w := range t.waves {
		traced[cuID{w.SE, w.CU}] = true
	}
	t.fromEvents = residencyOf(occupancySource, e.spans, traced)
	if t.fromEvents == nil {
		return nil
	}
	t.fromEvents.Unfinished, t.fromEvents.Unbegun = e.unfinished, e.unbegun
	if e.unfinished > 0 || e.unbegun > 0 {
		t.warn(WarnOccupancyTorn, fmt.Sprintf("occupancy.json has %d waves without an end and %d without a begin", e.unfinished, e.unbegun))
	}
	return nil
}

const occupancySource = "occupancy.json"

// cut is the residency with a page of its CUs and the share of the GPU's slots.
func (r *Residency) cut(slots int64, limit int) *Residency {
	if r == nil {
		return nil
	}
	out := *r
	out.CUs = page(r.CUs, 0, limit)
	if slots > 0 {
		out.Slots = slots
		out.PeakPct = pct(r.Peak, slots)
		if r.SpanCycles > 0 {
			out.MeanPct = rounded(100 * float64(r.WaveCycles) / float64(r.SpanCycles) / float64(slots))
		}
	}
	return &out
}
