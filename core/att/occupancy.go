package att

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// Occupancy is occupancy.json, reduced: which CUs of the traced shader engines had waves, and of which kernel. It covers all CUs
// of the selected engines and not only the traced one.
type Occupancy struct {
	// Known is false where there is no such file.
	Known bool
	// Starts counts the waves that began, by engine, CU and kernel id of the file.
	starts map[cuKey]int64
	// names are the kernels by id: mangled, or "<codeobj> / 0x<address>" where the name is not known.
	names map[int64]string
	// each is shown every row while the file is read, where it is set.
	each func(e OccupancyEvent, kernel int64) error
}

type cuKey struct{ se, cu, kernel int64 }

const (
	maxOccupancyKernels = 1 << 16
	maxOccupancyCUs     = 1 << 16
	maxEngine           = 1 << 10
)

// The cells of a row: time, cu, simd, slot, start, kernel id; format 3.1.0 adds five.
const (
	cellCU     = 1
	cellSIMD   = 2
	cellSlot   = 3
	cellStart  = 4
	cellKernel = 5
)

func readOccupancy(r io.Reader) (Occupancy, error) {
	o := Occupancy{Known: true, starts: map[cuKey]int64{}, names: map[int64]string{}}
	err := o.read(r)
	return o, err
}

func (o *Occupancy) read(r io.Reader) error {
	s := newScanner(r)
	return s.document(func(key []byte) error {
		if string(key) == "dispatches" {
			return o.readNames(s)
		}
		se, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil || se < 0 || se > maxEngine {
			return s.skip()
		}
		if null, err := s.null(); null || err != nil {
			return err
		}
		return s.array(func() error { return o.row(s, se) })
	})
}

func (o *Occupancy) readNames(s *scanner) error {
	if null, err := s.null(); null || err != nil {
		return err
	}
	return s.object(func(key []byte) error {
		id, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil {
			return s.skip()
		}
		if len(o.names) >= maxOccupancyKernels {
			return s.fail("more than %d kernels", maxOccupancyKernels)
		}
		name := ""
		if s.peek() != '"' {
			return s.skip()
		}
		if name, err = s.str(); err == nil {
			o.names[id] = name
		}
		return err
	})
}

func (o *Occupancy) row(s *scanner, se int64) error {
	k, n, e := cuKey{se: se}, 0, OccupancyEvent{SE: se}
	into := [...]*int64{cellTime: &e.Time, cellSIMD: &e.SIMD, cellSlot: &e.Slot}
	err := s.array(func() (err error) {
		at := n
		n++
		switch at {
		case cellCU:
			e.CU, err = s.int64()
		case cellTime, cellSIMD, cellSlot:
			if o.each == nil {
				return s.skip() // what is not needed need not be right
			}
			*into[at], err = s.int64()
		case cellStart:
			e.Start, err = s.flag()
		case cellKernel:
			k.kernel, err = s.int64()
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if n <= cellKernel {
		return s.fail("a row of %d cells where at least 6 were expected", n)
	}
	if k.cu = e.CU; k.cu < 0 {
		return s.fail("a wave on CU %d", k.cu)
	}
	if o.each != nil {
		return o.each(e, k.kernel)
	}
	if !e.Start {
		return nil
	}
	if _, known := o.starts[k]; !known && len(o.starts) >= maxOccupancyCUs {
		return s.fail("more than %d CUs", maxOccupancyCUs)
	}
	o.starts[k]++
	return nil
}

// BusyCUs gives the CUs, by shader engine, on which waves of the kernel began; all kernels for "". For a kernel that the file
// does not name they are those of the waves whose kernel it could not name.
func (o Occupancy) BusyCUs(kernel string) map[int][]int {
	out, is := map[int][]int{}, o.matches(kernel)
	for k := range o.starts {
		if is(k.kernel) {
			out[int(k.se)] = append(out[int(k.se)], int(k.cu))
		}
	}
	for se, cus := range out {
		slices.Sort(cus)
		out[se] = slices.Compact(cus)
	}
	return out
}

// BusiestCU is the CU that had waves in most shader engines, the lowest among equals, of what BusyCUs gives. engines is 0 where no
// CU had any.
func BusiestCU(busy map[int][]int) (cu, engines int) {
	count := map[int]int{}
	for _, cus := range busy {
		for _, c := range cus {
			count[c]++
		}
	}
	for c := range maxPhysicalCUs {
		if count[c] > engines {
			cu, engines = c, count[c]
		}
	}
	return cu, engines
}

// maxPhysicalCUs is the range of the field that names the traced CU (SQ_THREAD_TRACE_MASK.CU_SEL has four bits on gfx9).
const maxPhysicalCUs = 16

// WavesStarted is the number of waves, of the kernels that BusyCUs takes, that began on the traced engines, on any CU.
func (o Occupancy) WavesStarted(kernel string) int64 {
	n, is := int64(0), o.matches(kernel)
	for k, count := range o.starts {
		if is(k.kernel) {
			n += count
		}
	}
	return n
}

// startsOn is the number of waves, of any kernel, that began on one physical CU of the traced engines.
func (o Occupancy) startsOn(cu int64) int64 {
	n := int64(0)
	for k, count := range o.starts {
		if k.cu == cu {
			n += count
		}
	}
	return n
}

// matches tells which kernel ids of the file are the kernel. One name can have two ids; ids without a name may be any kernel
// that the file does not name.
func (o Occupancy) matches(kernel string) func(id int64) bool {
	if kernel == "" {
		return func(int64) bool { return true }
	}
	for _, name := range o.names {
		if name == kernel {
			return func(id int64) bool { return o.names[id] == kernel }
		}
	}
	return func(id int64) bool { return nameless(o.names[id]) }
}

// nameless says that a name is none: kernels whose code object was not seen stand as "<codeobj> / 0x<address>".
func nameless(name string) bool { return name == "" || strings.Contains(name, " / 0x") }

// Kernels are the names that the file gives, sorted, without those that are addresses.
func (o Occupancy) Kernels() []string {
	var out []string
	for _, name := range o.names {
		if !nameless(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
