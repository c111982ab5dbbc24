package sim

import (
	"embed"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// unit is what executes an instruction, as far as the timing model goes.
type unit int

const (
	unitSALU unit = iota
	unitSMEM
	unitVMEM
	unitFlat
	unitLDS
	unitVALU
	unitTrans
	unitMFMA
	unitBranch
	unitWait
	unitBarrier
	unitNop
	unitEnd
)

// units maps mnemonics to units by prefix; the first that fits counts.
var units = []struct {
	prefix string
	unit   unit
}{
	{"s_load", unitSMEM}, {"s_buffer_load", unitSMEM}, {"s_waitcnt", unitWait}, {"s_barrier", unitBarrier}, {"s_nop", unitNop}, {"s_setprio", unitNop},
	{"s_cbranch", unitBranch}, {"s_branch", unitBranch}, {"s_endpgm", unitEnd}, {"s_", unitSALU}, {"buffer_", unitVMEM}, {"global_", unitFlat},
	{"ds_", unitLDS}, {"v_mfma", unitMFMA}, {"v_exp", unitTrans}, {"v_rcp", unitTrans}, {"v_rsq", unitTrans}, {"v_", unitVALU},
}

// category is the instruction category of a wave file (trace_decoder_types.h).
func (u unit) category(taken bool) int {
	switch u {
	case unitSMEM:
		return 1
	case unitSALU:
		return 2
	case unitVMEM:
		return 3
	case unitFlat:
		return 4
	case unitLDS:
		return 5
	case unitVALU, unitTrans, unitMFMA:
		return 6
	case unitBranch:
		if taken {
			return 7
		}
		return 8
	case unitWait, unitBarrier, unitNop:
		return 9
	}
	return 11
}

// op is one instruction of a template.
type op struct {
	isa  string
	unit unit
	// size is the encoding's length in bytes.
	size int
	// tag says which part of the kernel's source the instruction belongs to.
	tag string
	// vm and lgkm are the counts of an s_waitcnt, -1 where it does not wait for them.
	vm, lgkm int
}

// template is a kernel's code: straight, with one loop at most.
type template struct {
	ops                 []op
	loopFrom, loopUntil int // first instruction of the loop and its branch; equal where there is none
	arch, acc, lds      int // registers named by the code; LDS bytes a workgroup
}

// executed counts how often a unit is used by one wave.
func (t *template) executed(u unit, trips int) int {
	n := 0
	for i, o := range t.ops {
		if o.unit != u && (u != unitVALU || o.unit != unitTrans) {
			continue
		}
		if t.loopUntil > t.loopFrom && i >= t.loopFrom && i <= t.loopUntil {
			n += trips
		} else {
			n++
		}
	}
	return n
}

//go:embed isa/*.s
var isaFiles embed.FS

// templates are the code templates by name, read once from the embedded files. They are written for this purpose and
// compute nothing.
var templates = readTemplates()

func readTemplates() map[string]*template {
	entries, err := isaFiles.ReadDir("isa")
	if err != nil {
		panic(err)
	}
	out := map[string]*template{}
	for _, e := range entries {
		text, err := isaFiles.ReadFile("isa/" + e.Name())
		if err != nil {
			panic(err)
		}
		out[strings.TrimSuffix(path.Base(e.Name()), ".s")] = parseTemplate(string(text))
	}
	return out
}

var (
	waitCount    = regexp.MustCompile(`(vmcnt|lgkmcnt)\((\d+)\)`)
	registerName = regexp.MustCompile(`\b([va])(?:(\d+)|\[(\d+):(\d+)\])`)
)

// parseTemplate reads lines `instruction @tag`, `.lds N`, `loop:` before the loop; a branch to `loop` ends it.
func parseTemplate(text string) *template {
	t := &template{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, ";"):
			continue
		case line == "loop:":
			t.loopFrom = len(t.ops)
			continue
		case strings.HasPrefix(line, ".lds "):
			t.lds, _ = strconv.Atoi(strings.TrimSpace(line[5:]))
			continue
		}
		isa, tag, _ := strings.Cut(line, "@")
		o := op{isa: strings.TrimSpace(isa), tag: strings.TrimSpace(tag), vm: -1, lgkm: -1}
		if body, ok := strings.CutSuffix(o.isa, " loop"); ok {
			t.loopUntil = len(t.ops)
			o.isa = body + " " + strconv.Itoa(65536-4*(t.loopUntil-t.loopFrom))
		}
		for _, u := range units {
			if strings.HasPrefix(o.isa, u.prefix) {
				o.unit = u.unit
				break
			}
		}
		for _, m := range waitCount.FindAllStringSubmatch(o.isa, -1) {
			n, _ := strconv.Atoi(m[2])
			if m[1] == "vmcnt" {
				o.vm = n
			} else {
				o.lgkm = n
			}
		}
		o.size = o.length()
		t.countRegisters(o.isa)
		t.ops = append(t.ops, o)
	}
	return t
}

// length gives the bytes of an instruction: memory, MFMA, VOP3 and literals take eight.
func (o op) length() int {
	switch o.unit {
	case unitSMEM, unitVMEM, unitFlat, unitLDS, unitMFMA:
		return 8
	}
	if strings.Contains(o.isa, " 0x") || strings.Contains(o.isa, "_e64") || strings.Contains(o.isa, "fma") || strings.Contains(o.isa, "pk_") {
		return 8
	}
	return 4
}

func (t *template) countRegisters(isa string) {
	for _, m := range registerName.FindAllStringSubmatch(isa, -1) {
		last := m[2]
		if last == "" {
			last = m[4]
		}
		n, err := strconv.Atoi(last)
		if err != nil {
			continue
		}
		if m[1] == "v" {
			t.arch = max(t.arch, n+1)
		} else {
			t.acc = max(t.acc, n+1)
		}
	}
}
