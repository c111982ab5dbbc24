package att

import (
	"context"
	"io"
)

// WaveObserver is shown what wave files hold while Open reads them (Options.Observe). Each reader has an observer of its own, which
// is shown one file after the other; the parts of a file come in the file's order, which writers choose.
type WaveObserver interface {
	// Instruction is one executed instruction.
	Instruction(i WaveInstruction)
	// Wait says what one wait waited for: row and targets are indices of Code.Rows, without lines that no row has. targets is
	// valid during the call. att-tool writes an entry for each executed wait and counter that had something outstanding.
	Wait(row int, targets []int)
	// State is a span of the wave's timeline: 0 empty, 1 idle, 2 exec, 3 wait, 4 stall; in cycles.
	State(state, cycles int64)
	// End ends a file. With an error the file could not be read whole, and what was shown of it does not count.
	End(w WaveEnd, err error)
}

// WaveInstruction is one executed instruction of a wave, in cycles of the shader clock.
type WaveInstruction struct {
	// Row is the index in Code.Rows, -1 for a line that no row has.
	Row int
	// Time is when it was first tried, Duration from then to its end, Stall the part of Duration in which it could not issue.
	Time, Stall, Duration int64
}

// WaveEnd is what is known of a wave when its file has been read.
type WaveEnd struct {
	WaveRef
	// CU is the physical CU within the shader engine, -1 where the file does not say.
	CU int64
}

// maxTargets bounds the targets of one wait; real ones have up to 29.
const maxTargets = 1 << 16

// waits reads waitcnt: [[line, [[target line, 0]...]]...].
func (w *waveReader) waits(s *scanner) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	return s.array(func() error {
		row, n := -1, 0
		w.targets = w.targets[:0]
		err := s.array(func() error {
			n++
			switch n {
			case 1:
				line, err := s.int64()
				row = w.row(line)
				return err
			case 2:
				return w.readTargets(s)
			}
			return s.skip()
		})
		if err == nil && n < 2 {
			err = s.fail("a wait of %d cells where line and targets were expected", n)
		}
		if err == nil && row >= 0 && len(w.targets) > 0 {
			w.observer.Wait(row, w.targets)
		}
		return err
	})
}

func (w *waveReader) readTargets(s *scanner) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	return s.array(func() error {
		n := 0
		return s.array(func() error {
			if n++; n > 1 {
				return s.skip()
			}
			line, err := s.int64()
			if err != nil {
				return err
			}
			if row := w.row(line); row >= 0 {
				w.targets = append(w.targets, row)
			}
			if len(w.targets) > maxTargets {
				return s.fail("a wait for more than %d instructions", maxTargets)
			}
			return nil
		})
	})
}

// timeline reads [[state, cycles]...].
func (w *waveReader) timeline(s *scanner) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	return s.array(func() error {
		var cell [2]int64
		n := 0
		err := s.array(func() (err error) {
			if n < len(cell) {
				cell[n], err = s.int64()
			} else {
				err = s.skip()
			}
			n++
			return err
		})
		if err == nil && (n < len(cell) || cell[1] < 0) {
			err = s.fail("a span of the timeline without a state and cycles of 0 or more")
		}
		if err == nil {
			w.observer.State(cell[0], cell[1])
		}
		return err
	})
}

// OccupancyEvent is the begin or the end of a wave on a CU of a traced shader engine, in cycles of the shader clock.
type OccupancyEvent struct {
	SE, Time, CU, SIMD, Slot int64
	Start                    bool
}

// EachOccupancy reads occupancy.json again and shows the waves of the kernel ("" for all kernels), engine after engine, in the order of time.
// Which waves are the kernel's is decided as for BusyCUs. It ends with the first error of each, or with that of the file.
func (d *Dispatch) EachOccupancy(ctx context.Context, kernel string, each func(OccupancyEvent) error) error {
	if !d.Occupancy.Known {
		return nil
	}
	f, err := openFolder(d.Dir, d.maxFileBytes)
	if err != nil {
		return err
	}
	defer f.root.Close()
	is := d.Occupancy.matches(kernel)
	err = f.read(ctx, occupancyFile, func(r io.Reader) error {
		o := Occupancy{starts: map[cuKey]int64{}, names: map[int64]string{}, each: func(e OccupancyEvent, kernel int64) error {
			if !is(kernel) {
				return nil
			}
			return each(e)
		}}
		return o.read(r)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// MaxSnapshotBytes is the largest source file that ReadSnapshot reads.
const MaxSnapshotBytes = 8 << 20

// ReadSnapshot reads the copy of a source file that lies in the directory. Snapshots come from Dispatch.Snapshots; a name that leads out
// of the directory, a link or a larger file is an error.
func (d *Dispatch) ReadSnapshot(ctx context.Context, s Snapshot) ([]byte, error) {
	f, err := openFolder(d.Dir, MaxSnapshotBytes)
	if err != nil {
		return nil, err
	}
	defer f.root.Close()
	var text []byte
	err = f.read(ctx, s.File, func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	return text, err
}
