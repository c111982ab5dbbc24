package sim

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// kernelObject is one kernel symbol of one loaded code object.
type kernelObject struct {
	kernel     string
	codeObject int
	kernelID   int
	grid       [3]int // workgroups
	block      [3]int // work-items
	ns         int64  // duration of one launch
	lds        int    // bytes a workgroup
	trips      int
	code       *template // nil for torch's kernels
	source     sourceRef
	arch, acc  int // VGPRs a lane
}

// sourceRef is where a kernel is defined.
type sourceRef struct {
	root, path, function string
}

// planned is one kernel of one shape and how often it is launched.
type planned struct {
	object   *kernelObject
	shape    string
	calls    int
	baseline bool
}

const (
	maxCalls      = 20000
	maxWorkgroups = 1 << 31
)

// plan evaluates the workload's formulas: a group of launches for each shape.
func (r *run) plan(w *workload, shapes []shape, test string) ([][]planned, error) {
	var groups [][]planned
	for _, s := range shapes {
		var group []planned
		for _, l := range w.Launches {
			if test != "" && len(l.Tests) > 0 && !contains(l.Tests, test) {
				continue
			}
			when, err := l.When.eval(s.vars, 1)
			if err != nil {
				return nil, err
			}
			if when == 0 {
				continue
			}
			one, err := r.planOne(l, s)
			if err != nil {
				return nil, err
			}
			group = append(group, one)
		}
		groups = append(groups, group)
	}
	if r.set.Replay != "" {
		return groups, r.replaySymbol(groups)
	}
	return groups, nil
}

func (r *run) planOne(l launch, s shape) (planned, error) {
	calls, err := l.Calls.int(s.vars, 12)
	if err != nil {
		return planned{}, err
	}
	if r.set.has("iteration_out_of_range", r.phase()) && r.phase() != phaseDiscover {
		calls = 1
	}
	out := planned{shape: s.text, calls: int(min(max(calls, 0), maxCalls)), baseline: l.Baseline}
	if l.Baseline {
		if known, ok := r.made[l.Kernel]; ok {
			out.object = known
			return out, nil
		}
	}
	o, err := r.object(l, s)
	out.object = o
	if l.Baseline {
		r.made[l.Kernel] = o
	}
	return out, err
}

// object loads a code object for a launch.
func (r *run) object(l launch, s shape) (*kernelObject, error) {
	name := l.Kernel
	for axis, v := range s.vars {
		name = strings.ReplaceAll(name, "{"+axis+"}", strconv.FormatInt(int64(v), 10))
	}
	name = strings.ReplaceAll(name, "{dtype}", s.dtype)
	o := &kernelObject{kernel: name, grid: [3]int{1, 1, 1}, block: [3]int{1, 1, 1}}
	total := int64(1)
	for i := range min(len(l.Grid), 3) {
		n, err := l.Grid[i].int(s.vars, 1)
		if err != nil {
			return nil, err
		}
		if n < 1 || n > maxWorkgroups || total*n > maxWorkgroups {
			return nil, fmt.Errorf("RuntimeError: invalid grid %d for %s", n, name)
		}
		total *= n
		o.grid[i] = int(n)
	}
	block := l.Block
	if len(block) == 0 {
		block = []figure{"256"}
	}
	items := int64(1)
	for i := range min(len(block), 3) {
		n, err := block[i].int(s.vars, 1)
		if err != nil {
			return nil, err
		}
		if items *= n; n < 1 || items > 1024 {
			return nil, fmt.Errorf("RuntimeError: invalid workgroup of %d work-items for %s", items, name)
		}
		o.block[i] = int(n)
	}
	code, ok := templates[l.Template]
	if !ok {
		code = templates["reduction"]
	}
	o.code, o.arch, o.acc = code, code.arch, code.acc
	figures := []struct {
		formula  figure
		fallback int64
		most     int64
		into     func(int64)
	}{
		{l.Trips, 1, 64, func(n int64) { o.trips = int(n) }},
		{l.LDS, int64(code.lds), int64(gpus[r.set.Arch].ldsKiB) << 10, func(n int64) { o.lds = int(n) }},
		{l.NS, 4000 + total*int64(o.block[0])/64, 1 << 32, func(n int64) { o.ns = n }},
	}
	for _, f := range figures {
		n, err := f.formula.int(s.vars, f.fallback)
		if err != nil {
			return nil, err
		}
		f.into(min(max(n, 0), f.most))
	}
	o.ns, o.trips = max(o.ns, 1000), max(o.trips, 1)
	o.source = sourceRef{root: r.script.root, function: l.Function}
	if o.source.function == "" {
		o.source.function = strings.TrimRight(strings.TrimRight(name, "0123456789"), "_")
	}
	if l.Source != "" {
		o.source.path = filepath.Join(r.script.root, filepath.FromSlash(l.Source))
	}
	r.load(o)
	return o, nil
}

// load gives a code object its numbers. Kernel ids are those of a process that has loaded torch's kernels before.
func (r *run) load(o *kernelObject) {
	if r.nextID == 0 {
		r.nextID = 1
	}
	o.codeObject = 8 + r.nextID
	o.kernelID = 190 + 3*r.nextID
	r.nextID++
	if r.prof != nil {
		r.prof.objects = append(r.prof.objects, o)
	}
}

// torchKernels are what PyTorch and the HIP runtime launch around any test.
var torchKernels = map[string][]string{
	"before": {
		"void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(at::TensorIteratorBase&, at::CUDAGeneratorImpl*)",
		"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
		"__amd_rocclr_fillBufferAligned",
	},
	"shape": {
		"void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
		"__amd_rocclr_copyBuffer",
	},
	"compare": {
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MaxNanFunctor<float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float>)",
		"void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<float>, std::array<char*, 2ul> >(int)",
	},
}

// noise launches n of torch's kernels.
func (r *run) noise(when string, n int) {
	names := torchKernels[when]
	for i := range n {
		name := names[i%len(names)]
		o, ok := r.made[name]
		if !ok {
			o = &kernelObject{kernel: name, grid: [3]int{512, 1, 1}, block: [3]int{256, 1, 1}, ns: int64(2600 + 800*len(r.made)), arch: 24,
				codeObject: 2, kernelID: 11 + 7*len(r.made)}
			r.made[name] = o
		}
		r.dispatch(planned{object: o, calls: 1, baseline: true})
	}
}

// dispatch launches a kernel once.
func (r *run) dispatch(l planned) {
	if r.prof != nil {
		r.prof.dispatched(l.object)
	}
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word || strings.HasPrefix(word, w+"[") {
			return true
		}
	}
	return false
}
