package isa

import (
	"math/bits"
	"strings"
)

// Counters is a set of the counters of outstanding work that waits name.
type Counters uint32

// The counters: vmcnt, lgkmcnt, expcnt until gfx11, vscnt on gfx10 and gfx11, the others from gfx12, but for depctr (gfx10 and
// gfx11) and event (gfx11). alu, depctr and event are no counts of memory; idle waits for everything.
const (
	VMCnt Counters = 1 << iota
	LGKMCnt
	ExpCnt
	VSCnt
	LoadCnt
	StoreCnt
	SampleCnt
	BVHCnt
	KMCnt
	DSCnt
	XCnt
	AsyncCnt
	TensorCnt
	DepCtr
	ALU
	Event
	Idle
	counterEnd
)

// counterNames are the names in the order of the bits.
var counterNames = [...]string{
	"vmcnt", "lgkmcnt", "expcnt", "vscnt", "loadcnt", "storecnt", "samplecnt", "bvhcnt", "kmcnt", "dscnt", "xcnt", "asynccnt", "tensorcnt",
	"depctr", "alu", "event", "idle",
}

// String joins the names by "+" in the order of the constants.
func (c Counters) String() string { return strings.Join(c.Names(), "+") }

// Names are the counters of the set by name, in the order of the constants.
func (c Counters) Names() []string {
	var out []string
	for i, name := range counterNames {
		if c&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Len is how many counters the set has.
func (c Counters) Len() int { return bits.OnesCount32(uint32(c & (counterEnd - 1))) }

// Split gives the counters of the set one by one, in the order of the constants.
func (c Counters) Split() []Counters {
	var out []Counters
	for i := range counterNames {
		if one := Counters(1) << i; c&one != 0 {
			out = append(out, one)
		}
	}
	return out
}

// CounterNamed finds a counter by its name.
func CounterNamed(name string) (Counters, bool) {
	for i, n := range counterNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// countersOf reads a wait: the counters stand in the mnemonic (s_wait_loadcnt_dscnt, s_waitcnt_vscnt) or in the operands of
// s_waitcnt ("vmcnt(0) lgkmcnt(3)"). A bare number is 0 or unknown: its fields lie elsewhere on each generation.
func countersOf(name, operands string) Counters {
	if name == "s_waitcnt" {
		if o := strings.TrimSpace(operands); o == "0" || o == "0x0" {
			return VMCnt | LGKMCnt | ExpCnt
		}
		name = operands
	}
	var found Counters
	for name != "" {
		var word string
		word, name = nextWord(name)
		if c, ok := CounterNamed(word); ok {
			found |= c
		}
	}
	return found
}

// nextWord cuts the first run of small letters off; word is "" where there is none.
func nextWord(s string) (word, rest string) {
	small := func(c byte) bool { return c >= 'a' && c <= 'z' }
	i := 0
	for i < len(s) && !small(s[i]) {
		i++
	}
	j := i
	for j < len(s) && small(s[j]) {
		j++
	}
	return s[i:j], s[j:]
}
