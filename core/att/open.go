package att

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Options bound what Open reads.
type Options struct {
	// ReadWaves also reads every wave file and compares them with code.json.
	ReadWaves bool
	// MaxFileBytes is the largest file that is read; default 2 GiB.
	MaxFileBytes int64
	// MaxWaveFiles is how many wave files are read at most; default 100,000.
	MaxWaveFiles int
	// Workers read wave files at the same time; default one for each processor.
	Workers int
	// Observe, when set, is asked for an observer by each worker; code.json has been read then. It needs ReadWaves.
	Observe func(d *Dispatch) WaveObserver
}

func (o Options) filled() Options {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 2 << 30
	}
	if o.MaxWaveFiles <= 0 {
		o.MaxWaveFiles = 100_000
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// Dispatch is one dispatch directory that was read.
type Dispatch struct {
	Dir string
	// Agent and Dispatch are from the directory's name, -1 where it has another name.
	Agent, Dispatch int64
	// Version is the format's.
	Version string
	// GfxIP is the generation of the GPU; 0 where it is not known.
	GfxIP     int64
	Code      Code
	Manifest  Manifest
	Occupancy Occupancy
	// WavesPresent counts the listed wave files that are on disk. MissingWaves names some that are not.
	WavesPresent int
	MissingWaves []string
	// Snapshots are the sources that were saved with the trace.
	Snapshots []Snapshot
	// Integrity is set when the wave files were read.
	Integrity *Integrity
	Warnings  []envelope.Warning
	// maxFileBytes is Options.MaxFileBytes, for what is read later.
	maxFileBytes int64
}

// Open reads a dispatch directory. What is missing beside code.json is a warning; a code.json that is not what it should be is
// the error TRACE_CORRUPT, which names file, byte and what was expected. A directory without code.json is NO_ARTIFACT. When the
// context ends the error is the context's.
func Open(ctx context.Context, dir string, opt Options) (*Dispatch, error) {
	opt = opt.filled()
	f, err := openFolder(dir, opt.MaxFileBytes)
	if err != nil {
		return nil, envelope.Build(envelope.NoArtifact, envelope.Facts{
			Message: fmt.Sprintf("the directory %s cannot be opened: %v", filepath.Base(dir), err), Evidence: envelope.Evidence{Path: dir},
		})
	}
	defer f.root.Close()
	d := &Dispatch{Dir: dir, Agent: -1, Dispatch: -1, maxFileBytes: opt.MaxFileBytes}
	if agent, dispatch, _, ok := ParseDirName(filepath.Base(dir)); ok {
		d.Agent, d.Dispatch = agent, dispatch
	}
	waves := func(ctx context.Context, f *folder) error { return d.readWaves(ctx, f, opt) }
	for _, read := range []func(context.Context, *folder) error{d.readCode, d.readManifest, d.readOccupancy, d.readSnapshots, waves} {
		err := read(ctx, f)
		if ctx.Err() != nil {
			return nil, ctx.Err() // whatever was found then says nothing of the file
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *Dispatch) warn(code, format string, args ...any) {
	d.Warnings = append(d.Warnings, warn(code, fmt.Sprintf(format, args...)))
}

func (d *Dispatch) readCode(ctx context.Context, f *folder) error {
	var header []int
	read := func(columns []int) error {
		return f.read(ctx, codeFile, func(r io.Reader) (err error) {
			d.Code, header, err = readCode(r, columns)
			return err
		})
	}
	err := read(nil)
	if missing(err) {
		return envelope.Build(envelope.NoArtifact, envelope.Facts{
			Message: fmt.Sprintf("%s has no %s", filepath.Base(d.Dir), codeFile), Evidence: envelope.Evidence{Path: filepath.Join(filepath.Base(d.Dir), codeFile)},
		})
	}
	// The header stands behind the rows in files of the C++ writer. Where the columns turn out to stand elsewhere, read again.
	if err != nil || !slices.Equal(header, usual) {
		if columns := d.columns(ctx, f); columns != nil && !slices.Equal(columns, usual) {
			err = read(columns)
		}
	}
	if err != nil {
		return corrupt(d.Dir, codeFile, err)
	}
	d.Version = d.Code.Version
	d.judgeCode()
	return nil
}

// columns reads the header alone; nil where there is none, or the file cannot be read so far.
func (d *Dispatch) columns(ctx context.Context, f *folder) []int {
	var columns []int
	_ = f.read(ctx, codeFile, func(r io.Reader) error {
		s := newScanner(r)
		c := Code{}
		return s.document(func(key []byte) error {
			if string(key) != "header" {
				return s.skip()
			}
			var err error
			columns, err = c.readHeader(s)
			return err
		})
	})
	return columns
}

func (d *Dispatch) judgeCode() {
	if d.Code.Short > 0 {
		d.warn(WarnShortRows, "%d rows of code.json have too few cells and were left out", d.Code.Short)
	}
	if !d.Code.header && len(d.Code.Rows) > 0 {
		d.warn(WarnHeaderMissing, "code.json names no columns; the usual order was taken")
	}
	if v := d.Code.Version; v != "" && !strings.HasPrefix(v, "3.0") && !strings.HasPrefix(v, "3.1") {
		d.warn(WarnVersion, "format %.40s is not known; 3.0.0 and 3.1.0 are", v)
	}
	if dense(d.Code) {
		return
	}
	lines := make(map[int64]bool, len(d.Code.Rows))
	twice := 0
	for _, r := range d.Code.Rows {
		if lines[r.Line] && r.ISA != "" {
			twice++
		}
		lines[r.Line] = true
	}
	if twice > 0 {
		d.warn(WarnDuplicateLines, "%d rows of code.json have a LineNumber that another row has", twice)
	}
}

func (d *Dispatch) readManifest(ctx context.Context, f *folder) error {
	err := f.read(ctx, manifestFile, func(r io.Reader) (err error) {
		d.Manifest, err = readManifest(r)
		return err
	})
	if missing(err) {
		d.warn(WarnManifestMissing, "there is no filenames.json, so no wave is known")
	} else if err != nil {
		return corrupt(d.Dir, manifestFile, err)
	}
	d.GfxIP = d.Manifest.GfxIP
	if d.Version == "" {
		d.Version = d.Manifest.Version
	}
	if d.pcSamples() {
		d.warn(WarnNotATT, "the files hold PC samples: hitcount counts samples, and there are no waves")
	}
	return nil
}

// readOccupancy fails never: a trace can be judged without it.
func (d *Dispatch) readOccupancy(ctx context.Context, f *folder) error {
	var o Occupancy
	err := f.read(ctx, occupancyFile, func(r io.Reader) (err error) {
		o, err = readOccupancy(r)
		return err
	})
	switch {
	case missing(err):
		d.warn(WarnOccupancyMissing, "there is no occupancy.json: which CUs had waves is not known")
	case err != nil:
		d.warn(WarnOccupancyCorrupt, "occupancy.json cannot be read: %v", err)
	default:
		d.Occupancy = o
	}
	return nil
}

const maxNamed = 8

// readWaves finds which wave files are there and, when asked, reads them.
func (d *Dispatch) readWaves(ctx context.Context, f *folder, opt Options) error {
	listed := d.Manifest.Waves
	if len(listed) > opt.MaxWaveFiles {
		d.warn(WarnWavesCut, "%d waves are listed; the first %d are read", len(listed), opt.MaxWaveFiles)
		listed = listed[:opt.MaxWaveFiles]
	}
	present := d.findWaves(ctx, f, listed)
	d.WavesPresent = len(present)
	hits := d.Code.Totals().Hit > 0
	if hits && len(listed) == 0 && !d.pcSamples() {
		d.warn(WarnNoWavesListed, "code.json has hits and no wave is listed: instruction sums can be read, single waves cannot")
	}
	if !opt.ReadWaves || len(present) == 0 {
		return nil
	}
	integrity, err := d.readAllWaves(ctx, f, present, opt)
	if err != nil {
		return err
	}
	integrity.complete = len(present) == len(d.Manifest.Waves)
	d.Integrity = integrity
	return d.judgeWaves(len(present))
}

// findWaves gives the listed waves whose files can be opened, and warns of the others.
func (d *Dispatch) findWaves(ctx context.Context, f *folder, listed []WaveRef) []WaveRef {
	var present []WaveRef
	var why error
	absent, refused := 0, 0
	for _, w := range listed {
		if ctx.Err() != nil {
			return nil
		}
		file, err := f.open(w.File)
		switch {
		case err == nil:
			file.Close()
			present = append(present, w)
		case missing(err):
			if absent++; len(d.MissingWaves) < maxNamed {
				d.MissingWaves = append(d.MissingWaves, w.File)
			}
		default:
			if refused++; why == nil {
				why = err
			}
		}
	}
	if absent > 0 {
		d.warn(WarnWavesMissing, "%d of %d wave files that filenames.json lists are not there", absent, len(listed))
	}
	if refused > 0 {
		d.warn(WarnWaveRefused, "%d of %d wave files that filenames.json lists were not opened, the first: %v", refused, len(listed), why)
	}
	return present
}

func share(part, whole int64) string { return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole)) }

// judgeWaves turns what the wave files showed into warnings; all of them unreadable is TRACE_CORRUPT.
func (d *Dispatch) judgeWaves(present int) error {
	i := d.Integrity
	if len(i.Corrupt) > 0 {
		first := i.Corrupt[0]
		if i.CorruptFiles == present {
			return corrupt(d.Dir, first.File, errors.New(first.What))
		}
		d.warn(WarnWaveCorrupt, "%d of %d wave files cannot be read, the first %s: %s", i.CorruptFiles, present, first.File, first.What)
	}
	if i.Inconsistent > 0 {
		d.warn(WarnWaveInconsistent, "%d wave files contradict their own counts or filenames.json", i.Inconsistent)
	}
	if i.complete && i.CorruptFiles == 0 && i.RowsDiffering > 0 {
		d.warn(WarnWavesDiffer, "%d rows of code.json are not the sums of the wave files", i.RowsDiffering)
	}
	if i.Unfinished > 0 {
		d.warn(WarnWavesUnfinished, "%d of %d traced waves (%s) end before their program does: the trace was cut, and their times and counts are too low", i.Unfinished, i.WavesRead, share(int64(i.Unfinished), int64(i.WavesRead)))
	}
	if began := d.Occupancy.startsOn(i.CU); i.complete && i.CU >= 0 && began > int64(len(d.Manifest.Waves)) {
		lost := began - int64(len(d.Manifest.Waves))
		d.warn(WarnWavesLost, "%d of %d waves that began on the traced CU %d (%s) have no record", lost, began, i.CU, share(lost, began))
	}
	if i.UnknownLines > 0 {
		d.warn(WarnLinesUnknown, "%d instructions of the wave files have a line that no row of code.json has", i.UnknownLines)
	}
	return nil
}
