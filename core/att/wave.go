package att

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
)

// Integrity compares the wave files with code.json: on a complete trace every row is the sum over its waves, exactly.
type Integrity struct {
	// WavesRead counts the files that were read whole.
	WavesRead int
	// Instructions is the number of executed instructions in them.
	Instructions int64
	// Totals are summed over these files: executions, cycles of duration, cycles of stall. Idle is not in them.
	Totals Totals
	// RowsDiffering counts rows of code.json that are not the sums of the waves. UnknownLines counts instructions whose line is
	// no row of code.json.
	RowsDiffering int
	UnknownLines  int64
	// CorruptFiles counts unreadable files; Corrupt names some. Inconsistent counts files that contradict themselves.
	CorruptFiles int
	Corrupt      []CorruptFile
	Inconsistent int
	// Unfinished counts waves whose record ends before the end of the program (s_endpgm), where the code has one: the trace was cut.
	Unfinished int
	// CU is the traced CU, physical within its shader engine; -1 where the files do not say or do not agree.
	CU       int64
	complete bool
}

// CorruptFile is a wave file that cannot be read, and why.
type CorruptFile struct{ File, What string }

// maxSums bounds the sums of all workers together: 400 MB.
const maxSums = 16 << 20

// lineSums are the sums of one line over waves.
type lineSums struct{ hit, latency, stall int64 }

// waveReader reads wave files one after the other with the same buffers.
type waveReader struct {
	scan *scanner
	// sums is indexed like Code.Rows by way of index; unknown lines go to other.
	index  map[int64]int32
	sums   []lineSums
	other  int64
	totals Totals
	count  int64
	// last is the line of the last instruction of the wave that was read last, -1 for none.
	last int64
	// observer is shown what is read, where there is one.
	observer WaveObserver
	targets  []int
}

// dense says whether the lines are their own row numbers, which makes the map needless; they are in almost every file.
func lineIndex(c Code) map[int64]int32 {
	index := make(map[int64]int32, len(c.Rows))
	for i, r := range c.Rows {
		if _, twice := index[r.Line]; !twice {
			index[r.Line] = int32(i)
		}
	}
	return index
}

func (w *waveReader) row(line int64) int {
	if line >= 0 && line < int64(len(w.sums)) && w.index == nil {
		return int(line)
	}
	if i, ok := w.index[line]; ok {
		return int(i)
	}
	return -1
}

// waveHead is what a wave file says of itself.
type waveHead struct {
	duration, begin, end, instructions int64
	read                               int64
	hasDuration, hasBegin, hasCount    bool
	// cu, simd, slot and id are -1 where the file leaves them out, as files of other writers do.
	cu, simd, slot, id int64
	// last is the line of the last instruction, -1 for none.
	last int64
}

// wave reads one file into the sums. What a file that fails half-way added to the sums of lines stays: the caller then
// compares nothing. The totals are those of whole files.
func (w *waveReader) wave(r io.Reader) (waveHead, error) {
	s := w.scan
	s.reset(r)
	totals, count, other := w.totals, w.count, w.other
	h := waveHead{cu: -1, simd: -1, slot: -1, id: -1}
	w.last = -1
	err := s.document(func(key []byte) error {
		switch string(key) {
		case "duration":
			h.hasDuration = true
			return optionalInt(s, &h.duration)
		case "num_insts":
			h.hasCount = true
			return optionalInt(s, &h.instructions)
		case "wave":
			return s.object(func(key []byte) error {
				switch string(key) {
				case "begin":
					h.hasBegin = true
					return optionalInt(s, &h.begin)
				case "end":
					return optionalInt(s, &h.end)
				case "cu":
					return optionalInt(s, &h.cu)
				case "simd":
					return optionalInt(s, &h.simd)
				case "slot":
					return optionalInt(s, &h.slot)
				case "id":
					return optionalInt(s, &h.id)
				case "instructions":
					if null, err := s.null(); null || err != nil {
						return err
					}
					return s.array(func() error {
						h.read++
						return w.instruction(s)
					})
				case "waitcnt":
					if w.observer != nil {
						return w.waits(s)
					}
				case "timeline":
					if w.observer != nil {
						return w.timeline(s)
					}
				}
				return s.skip()
			})
		}
		return s.skip()
	})
	if err != nil {
		w.totals, w.count, w.other = totals, count, other
	}
	h.last = w.last
	return h, err
}

// The cells of an instruction: time, type, stall, duration, line.
const (
	cellTime     = 0
	cellStall    = 2
	cellDuration = 3
	cellLine     = 4
)

func (w *waveReader) instruction(s *scanner) error {
	var time, stall, duration, line int64
	n := 0
	ok, err := s.begin('[', ']')
	for err == nil && ok {
		switch n {
		case cellTime:
			if w.observer == nil {
				err = s.skip() // what is not needed need not be right
			} else {
				time, err = s.int64()
			}
		case cellStall:
			stall, err = s.int64()
		case cellDuration:
			duration, err = s.int64()
		case cellLine:
			line, err = s.int64()
		default:
			err = s.skip()
		}
		n++
		if err == nil {
			ok, err = s.more(']')
		}
	}
	if err != nil {
		return err
	}
	if n <= cellLine {
		return s.fail("an instruction of %d cells where 5 were expected", n)
	}
	if stall < 0 || duration < 0 {
		return s.fail("an instruction with a negative duration or stall")
	}
	w.count++
	w.last = line
	w.totals.Add(Totals{Hit: 1, Latency: duration, Stall: stall})
	i := w.row(line)
	if w.observer != nil {
		w.observer.Instruction(WaveInstruction{Row: i, Time: time, Stall: stall, Duration: duration})
	}
	if i < 0 {
		w.other++
		return nil
	}
	sum := &w.sums[i]
	sum.hit++
	sum.latency = satAdd(sum.latency, duration)
	sum.stall = satAdd(sum.stall, stall)
	return nil
}

// consistent says whether what a file says of itself agrees with what it holds, and with the manifest.
func (h waveHead) consistent(ref WaveRef) bool {
	if h.hasCount && h.instructions != h.read {
		return false
	}
	for _, pair := range [][2]int64{{h.simd, ref.SIMD}, {h.slot, ref.Slot}, {h.id, ref.ID}} {
		if pair[0] >= 0 && pair[0] != pair[1] {
			return false
		}
	}
	if !h.hasBegin {
		return true
	}
	if h.hasDuration && h.duration != h.end-h.begin {
		return false
	}
	return h.begin == ref.Begin && h.end == ref.End
}

// readAllWaves reads the wave files by several workers and compares their sums with the rows.
func (d *Dispatch) readAllWaves(ctx context.Context, f *folder, waves []WaveRef, opt Options) (*Integrity, error) {
	code := d.Code
	index := lineIndex(code)
	if dense(code) {
		index = nil
	}
	jobs := make(chan WaveRef)
	// Each worker has sums of its own, so their number is bounded by the rows too and not by the processors alone.
	parts := make([]*waveReader, min(opt.Workers, len(waves), max(1, maxSums/max(1, len(code.Rows)))))
	var mu sync.Mutex
	out := &Integrity{CU: unseenCU}
	ends := programEnds(code)
	var group sync.WaitGroup
	for i := range parts {
		part := &waveReader{scan: newScanner(nil), index: index, sums: make([]lineSums, len(code.Rows))}
		if opt.Observe != nil {
			part.observer = opt.Observe(d)
		}
		parts[i] = part
		group.Go(func() {
			for ref := range jobs {
				head, err := waveHead{}, error(nil)
				err = f.read(ctx, ref.File, func(r io.Reader) (err error) {
					head, err = part.wave(r)
					return err
				})
				if part.observer != nil {
					part.observer.End(WaveEnd{WaveRef: ref, CU: head.cu}, err)
				}
				mu.Lock()
				out.note(ref, head, err)
				if err == nil && len(ends) > 0 && !ends[head.last] && (head.read == 0 || part.row(head.last) >= 0) {
					out.Unfinished++
				}
				mu.Unlock()
			}
		})
	}
	for _, w := range waves {
		if ctx.Err() != nil {
			break
		}
		jobs <- w
	}
	close(jobs)
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(out.Corrupt, func(a, b CorruptFile) int {
		if a.File < b.File {
			return -1
		}
		return 1
	})
	out.compare(code, parts)
	out.CU = max(out.CU, mixedCU)
	return out, nil
}

// Values of Integrity.CU while the waves are read: none seen yet, and several or none.
const (
	unseenCU = -2
	mixedCU  = -1
)

// programEnds are the lines that end a program. Every complete wave of the recorded traces ends at one.
func programEnds(c Code) map[int64]bool {
	ends := map[int64]bool{}
	for _, r := range c.Rows {
		if strings.HasPrefix(r.ISA, "s_endpgm") {
			ends[r.Line] = true
		}
	}
	return ends
}

// dense says that every row's line is its own number.
func dense(c Code) bool {
	for i, r := range c.Rows {
		if r.Line != int64(i) {
			return false
		}
	}
	return true
}

func (i *Integrity) note(ref WaveRef, head waveHead, err error) {
	if err != nil {
		if i.CorruptFiles++; len(i.Corrupt) < maxNamed {
			i.Corrupt = append(i.Corrupt, CorruptFile{ref.File, err.Error()})
		}
		return
	}
	i.WavesRead++
	switch {
	case i.CU == unseenCU:
		i.CU = head.cu
	case i.CU != head.cu:
		i.CU = mixedCU
	}
	if !head.consistent(ref) {
		i.Inconsistent++
	}
}

func (i *Integrity) compare(code Code, parts []*waveReader) {
	for _, p := range parts {
		i.Instructions += p.count
		i.UnknownLines += p.other
		i.Totals.Add(p.totals)
	}
	for n, r := range code.Rows {
		var sum lineSums
		for _, p := range parts {
			sum.hit += p.sums[n].hit
			sum.latency = satAdd(sum.latency, p.sums[n].latency)
			sum.stall = satAdd(sum.stall, p.sums[n].stall)
		}
		// The unresolved row of 3.1.0 stands for tokens that code.json does not count.
		if r.ISA != "" && (sum.hit != r.Hit || sum.latency != r.Latency || sum.stall != r.Stall) {
			i.RowsDiffering++
		}
	}
}
