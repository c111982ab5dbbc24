package att

import (
	"io"
	"sort"
	"strconv"
)

// Manifest is filenames.json.
type Manifest struct {
	Version string
	// GfxIP is the generation of the GPU (9, 10, 11, 12): 9 does not tell gfx90a, gfx942 and gfx950 apart.
	GfxIP int64
	GfxV  string
	// Null: wave_filenames is null, so no wave is listed.
	Null  bool
	Waves []WaveRef
	// PCSampling: the files hold PC samples and no thread trace.
	PCSampling bool
	// seen are the waves so far by SE, SIMD, slot and ID, while the file is read.
	seen map[[4]int64]bool
}

// WaveRef is one wave that filenames.json lists.
type WaveRef struct {
	SE, SIMD, Slot, ID int64
	// File is the name of the wave's file, as the manifest gives it: not to be trusted.
	File string
	// Begin and End are in cycles of the shader clock.
	Begin, End int64
}

const maxWaves = 1 << 20

func readManifest(r io.Reader) (Manifest, error) {
	s := newScanner(r)
	m := Manifest{seen: map[[4]int64]bool{}}
	err := s.document(func(key []byte) error {
		switch string(key) {
		case "version":
			return optionalText(s, &m.Version)
		case "gfxip":
			return optionalInt(s, &m.GfxIP)
		case "gfxv":
			return optionalText(s, &m.GfxV)
		case "pc_sampling":
			if null, err := s.null(); null || err != nil {
				return err
			}
			on, err := s.flag()
			m.PCSampling = on
			return err
		case "wave_filenames":
			if null, err := s.null(); null || err != nil {
				m.Null = null
				return err
			}
			return m.readWaves(s)
		}
		return s.skip()
	})
	m.seen = nil
	sort.Slice(m.Waves, func(i, j int) bool {
		a, b := m.Waves[i], m.Waves[j]
		switch {
		case a.SE != b.SE:
			return a.SE < b.SE
		case a.SIMD != b.SIMD:
			return a.SIMD < b.SIMD
		case a.Slot != b.Slot:
			return a.Slot < b.Slot
		}
		return a.ID < b.ID
	})
	return m, err
}

// readWaves reads {SE: {SIMD: {slot: {wave: [file, begin, end]}}}}.
func (m *Manifest) readWaves(s *scanner) error {
	var w WaveRef
	return level(s, &w.SE, func() error {
		return level(s, &w.SIMD, func() error {
			return level(s, &w.Slot, func() error {
				return level(s, &w.ID, func() error { return m.wave(s, w) })
			})
		})
	})
}

// level reads an object whose keys are numbers.
func level(s *scanner, number *int64, inner func() error) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	return s.object(func(key []byte) error {
		n, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil || n < 0 {
			return s.fail("the key %.40q where a number was expected", key)
		}
		*number = n
		return inner()
	})
}

func (m *Manifest) wave(s *scanner, w WaveRef) error {
	if len(m.Waves) >= maxWaves {
		return s.fail("more than %d waves", maxWaves)
	}
	id := [4]int64{w.SE, w.SIMD, w.Slot, w.ID}
	if m.seen[id] { // it would be counted twice
		return s.fail("the wave %d of SE %d, SIMD %d, slot %d is listed twice", w.ID, w.SE, w.SIMD, w.Slot)
	}
	m.seen[id] = true
	n := 0
	err := s.array(func() error {
		n++
		switch n {
		case 1:
			return optionalText(s, &w.File)
		case 2:
			return optionalInt(s, &w.Begin)
		case 3:
			return optionalInt(s, &w.End)
		}
		return s.skip()
	})
	if err == nil && n < 3 {
		err = s.fail("a wave of %d cells where file, begin and end were expected", n)
	}
	m.Waves = append(m.Waves, w)
	return err
}
