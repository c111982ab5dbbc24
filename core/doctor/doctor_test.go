//go:build unix

package doctor

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/worktree"
)

// fake is a made-up host: files below a root of its own, and programs that answer from a table.
type fake struct {
	t     *testing.T
	probe Probe
	in    request.Doctor
	env   map[string]string
	// says are the programs' answers by the end of their command line.
	says  map[string]answer
	mu    sync.Mutex
	calls []string
	envs  map[string][]string
}

type answer struct {
	out, err string
	exit     int
	fails    error
}

const (
	helpText    = "usage: rocprofv3 [-h] [-i INPUT] [--att ATT]\n\noptions:\n  -i INPUT, --input INPUT\n                        input file\n  --att ATT             Enable thread trace\n"
	oldHelpText = "usage: rocprofv3 [-h] [-i INPUT]\n\noptions:\n  -i INPUT, --input INPUT\n                        input file, see --att of later ones\n"
	versionText = "         version: 1.1.0\n    git_revision: abc\n    library_arch: x86_64-linux-gnu\n    rocm_version: 7.2.0\n"
	importText  = "warning: noise\n{\"v\": \"0.3.2\", \"f\": \"/x/flydsl/__init__.py\", \"torch\": true}\n"
)

// readyHost has eight MI300X and all that a capture needs.
func readyHost(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, env: map[string]string{}, envs: map[string][]string{}, says: map[string]answer{
		"rocprofv3 --help": {out: helpText}, "rocprofv3 --version": {out: versionText}, "flydsl.__file__": {out: importText},
	}}
	root := t.TempDir()
	f.probe = Probe{
		Root: root, OS: "linux", Getenv: func(name string) string { return f.env[name] }, Run: f.run,
		Rocprofv3: []string{"/opt/rocm/bin/rocprofv3"}, RocprofPlaces: []string{"PATH", "/opt/rocm/bin"},
		Python: []string{"/usr/bin/python3"}, PythonPlaces: []string{"/wt/.venv/bin/python", "PATH"},
		ATTLibraryPath: []string{"/opt/decoder"}, RunsDir: filepath.Join(root, "runs"),
		Free: func(string) (int64, bool) { return 40 << 30, true },
		Env:  []string{"HOME=/h", "PYTHONPATH=/old"},
	}
	f.put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 96\nsimd_count 0\n")
	for i := range 8 {
		f.gpu(i, 90402, 0x74a1)
	}
	f.put("sys/bus/pci/devices/0000:10:00.0/current_compute_partition", "SPX\n")
	f.put("dev/kfd", "")
	f.put("opt/decoder/deep/er/librocprof-trace-decoder.so", elfFile(elf.ET_DYN, machine()))
	f.put("proc/1/cmdline", "/sbin/init\x00splash\x00")
	f.put("proc/self/cmdline", "rocprofv3\x00") // no number: no process
	f.put("runs/x", "")
	for name, text := range map[string]string{
		"kernels/__init__.py": "", "python/flydsl/__init__.py": "__version__ = \"0.3.2\"\n",
		"build-fly/python_packages/flydsl/__init__.py":                                                       "__version__ = \"0.3.2\"\n",
		"build-fly/python_packages/flydsl/_mlir/ir.py":                                                       "",
		"build-fly/python_packages/flydsl/_mlir/_mlir_libs/_mlirDialectsFly.cpython-312-x86_64-linux-gnu.so": "x",
		"build-fly/python_packages/flydsl/_mlir/_mlir_libs/libfly_jit_runtime.so":                            "x",
		".git/HEAD": "0123456789abcdef0123456789abcdef01234567\n",
	} {
		f.put("wt/"+name, text)
	}
	f.probe.Worktree = func(ctx context.Context) (*worktree.Tree, error) {
		return worktree.Open(ctx, filepath.Join(root, "wt"))
	}
	return f
}

// gpu adds a GPU behind the CPU's node.
func (f *fake) gpu(i, version, device int) {
	f.put(fmt.Sprintf("sys/class/kfd/kfd/topology/nodes/%d/properties", i+1), fmt.Sprintf(
		"cpu_cores_count 0\nsimd_count 1216\nsimd_per_cu 4\narray_count 32\nsimd_arrays_per_engine 1\nnum_xcc 8\ngfx_target_version %d\ndevice_id %d\nlocation_id %d\ndomain 0\ndrm_render_minor %d\nunique_id %d\n",
		version, device, (0x10+i)<<8, 128+i, 0xa1+i))
	f.put(fmt.Sprintf("dev/dri/renderD%d", 128+i), "")
}

func (f *fake) path(name string) string { return filepath.Join(f.probe.Root, name) }

func (f *fake) put(name, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) link(to, name string) {
	f.t.Helper()
	if err := os.Symlink(to, f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) fifo(name string) {
	f.t.Helper()
	if err := unix.Mkfifo(f.path(name), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) run(ctx context.Context, limit time.Duration, argv, env []string, dir string) ([]byte, []byte, int, error) {
	line := strings.Join(argv, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, line)
	if limit <= 0 || limit > 2*time.Minute {
		return nil, nil, 0, fmt.Errorf("the limit of %q is %v", line, limit)
	}
	for key, a := range f.says {
		if strings.Contains(line, key) {
			f.envs[key] = env
			return []byte(a.out), []byte(a.err), a.exit, a.fails
		}
	}
	return nil, nil, 0, fmt.Errorf("no such program: %s", line)
}

func (f *fake) ask() envelope.Reply[Data] {
	f.t.Helper()
	reply, err := Run(f.t.Context(), f.probe, f.in)
	if err != nil {
		f.t.Fatal(err)
	}
	sound(f.t, reply)
	return reply
}

func check(t *testing.T, d *Data, id string) Check {
	t.Helper()
	at := slices.IndexFunc(d.Checks, func(c Check) bool { return c.ID == id })
	if at < 0 {
		t.Fatalf("no check %s in %+v", id, d.Checks)
	}
	return d.Checks[at]
}

// sound holds what is true of every answer.
func sound(t *testing.T, r envelope.Reply[Data]) {
	t.Helper()
	d := r.Data
	raw, err := json.Marshal(d)
	if err != nil || bytes.Contains(raw, []byte("null")) {
		t.Errorf("%v %s", err, raw)
	}
	seen := map[string]bool{}
	var codes []envelope.Code
	for _, c := range d.Checks {
		if seen[c.ID] {
			t.Errorf("the check %s is there twice", c.ID)
		}
		seen[c.ID] = true
		failed := c.State == StateFail
		if c.OK == failed || failed != (c.Code != "") || c.Found == "" || !slices.Contains([]string{StateOK, StateFail, StateWarn, StateSkipped}, c.State) {
			t.Errorf("%+v", c)
		}
		if (failed || c.State == StateWarn) != (c.Do != "") {
			t.Errorf("what to do about it: %+v", c)
		}
		if _, ok := envelope.Lookup(c.Code); failed && !ok {
			t.Errorf("%s is not in the catalogue", c.Code)
		}
		if failed && !slices.Contains(codes, c.Code) {
			codes = append(codes, c.Code)
		}
	}
	if !slices.Equal(codes, d.Blockers) || (len(codes) == 0) != (d.Verdict == Ready) || (d.Verdict != Ready && d.Verdict != NotReady) {
		t.Errorf("%s with the blockers %v; the checks say %v", d.Verdict, d.Blockers, codes)
	}
	if len(r.Actions) == 0 || len(r.Actions) > 6 {
		t.Fatalf("actions: %+v", r.Actions)
	}
	if last := r.Actions[len(r.Actions)-1]; (last.Kind == envelope.Stop) != (d.Verdict == NotReady) {
		t.Errorf("%s ends with %+v", d.Verdict, last)
	}
}

func machine() elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
}

// elfFile is the header of an ELF file and nothing else.
func elfFile(kind elf.Type, m elf.Machine) string {
	h := elf.Header64{Type: uint16(kind), Machine: uint16(m), Version: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	return b.String()
}

func TestReadyHost(t *testing.T) {
	f := readyHost(t)
	r := f.ask()
	d := r.Data
	want := []string{"platform", "rocprofv3", "decoder", "gpu", "kfd", "render_node", "arch", "partition", "worktree", "python", "build", "runs_dir", "space", "profilers"}
	var got []string
	for _, c := range d.Checks {
		got = append(got, c.ID)
		if c.State != StateOK {
			t.Errorf("%+v", c)
		}
		if c.ID != "platform" && len(c.LookedAt) == 0 {
			t.Errorf("%s looked at nothing", c.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("checks %v", got)
	}
	if d.Verdict != Ready || d.Rocprofv3 != "1.1.0" || d.ROCm != "7.2.0" || d.FlyDSL != "0.3.2" || d.Commit != "0123456789abcdef0123456789abcdef01234567" || d.RunsDir != f.probe.RunsDir || d.Simulated {
		t.Errorf("%+v", d)
	}
	if len(d.GPUs) != 8 || d.GPU == nil || d.GPU.BDF != "0000:10:00.0" || d.GPU.Arch != "gfx942" || d.GPU.CUs != 304 {
		t.Errorf("%+v of %d", d.GPU, len(d.GPUs))
	}
	if len(r.Actions) != 1 || r.Actions[0].Kind != envelope.CallTool || r.Actions[0].Args.Verb() != request.VerbList {
		t.Errorf("%+v", r.Actions)
	}
	// The probe imports what the capture will: the build comes before what was inherited.
	env := f.envs["flydsl.__file__"]
	at := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PYTHONPATH=") })
	if at < 0 || !strings.HasPrefix(env[at], "PYTHONPATH="+d.Worktree+"/build-fly/python_packages:") || !slices.Contains(env, "HOME=/h") {
		t.Errorf("the import's environment is %q", env)
	}
	left, err := os.ReadDir(f.probe.RunsDir)
	if err != nil || len(left) != 1 || left[0].Name() != "x" {
		t.Errorf("the runs directory has now %v (%v)", left, err)
	}
}

// TestEachCheck lets one thing fail, or be doubtful, at a time.
func TestEachCheck(t *testing.T) {
	t.Parallel()
	other := map[bool]elf.Machine{true: elf.EM_AARCH64, false: elf.EM_X86_64}[machine() == elf.EM_X86_64]
	const lib = "opt/decoder/deep/er/librocprof-trace-decoder.so"
	pip := func(text string) answer {
		return answer{err: "Traceback (most recent call last):\n" + text + "\n", exit: 1}
	}
	seven := 7
	eight := 8
	cases := []struct {
		name   string
		change func(f *fake)
		id     string
		state  string
		code   envelope.Code
		found  string
		do     string
		looked string
		// blockers where they are not just the code
		blockers []envelope.Code
	}{
		{name: "not Linux", change: func(f *fake) { f.probe.OS = "darwin" }, id: "platform", state: StateFail, code: envelope.PlatformUnsupported, found: "darwin", do: "--simulate"},

		{name: "rocprofv3 missing", change: func(f *fake) { f.probe.Rocprofv3 = nil }, id: "rocprofv3", state: StateFail, code: envelope.Rocprofv3Missing, found: "none of the places", do: "--rocprofv3", looked: "/opt/rocm/bin"},
		{name: "rocprofv3 cannot be run", change: func(f *fake) { f.says["rocprofv3 --help"] = answer{fails: errors.New("exec format error")} }, id: "rocprofv3", state: StateFail, code: envelope.Rocprofv3Missing, found: "exec format error", do: "--rocprofv3", looked: "rocprofv3 --help"},
		{name: "rocprofv3 hangs", change: func(f *fake) { f.says["rocprofv3 --help"] = answer{fails: errTooLong} }, id: "rocprofv3", state: StateFail, code: envelope.Rocprofv3Missing, found: "did not end in time", do: "mend", looked: "rocprofv3 --help"},
		{name: "rocprofv3's interpreter is gone", change: func(f *fake) {
			f.says["rocprofv3 --help"] = answer{exit: 127, err: "/usr/bin/env: 'python3': No such file or directory\n"}
		}, id: "rocprofv3", state: StateFail, code: envelope.Rocprofv3Missing, found: "exit 127): \"/usr/bin/env: 'python3'", do: "mend", looked: "rocprofv3 --help"},
		{name: "rocprofv3 too old, though its text speaks of --att", change: func(f *fake) { f.says["rocprofv3 --help"] = answer{out: oldHelpText} }, id: "rocprofv3", state: StateFail, code: envelope.Rocprofv3TooOld, found: "no --att", do: "ROCm 7.0", looked: "rocprofv3 --help"},
		{name: "version unreadable", change: func(f *fake) { f.says["rocprofv3 --version"] = answer{out: "rocprofv3, the one and only\n"} }, id: "rocprofv3", state: StateWarn, found: "version cannot be read", do: "report", looked: "rocprofv3 --version"},
		{name: "version cannot be asked", change: func(f *fake) { f.says["rocprofv3 --version"] = answer{fails: errTooLong} }, id: "rocprofv3", state: StateWarn, found: "version cannot be read", do: "report", looked: "rocprofv3 --version"},
		{name: "version on the other stream", change: func(f *fake) { f.says["rocprofv3 --version"] = answer{err: versionText} }, id: "rocprofv3", state: StateOK, found: "1.1.0 (ROCm 7.2.0)", looked: "rocprofv3 --version"},

		{name: "decoder missing", change: func(f *fake) { f.remove("opt/decoder") }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no librocprof-trace-decoder.so", do: "--att-library-path", looked: "/opt/decoder"},
		{name: "only a versioned decoder", change: func(f *fake) { f.remove(lib); f.put(lib+".0.1", "x") }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "librocprof-trace-decoder.so.0.1", do: "link", looked: "/opt/decoder"},
		{name: "a versioned decoder beside the true one", change: func(f *fake) { f.put(lib+".0.1", "x") }, id: "decoder", state: StateOK, found: "decoder.so", looked: "/opt/decoder"},
		{name: "decoder of another machine", change: func(f *fake) { f.put(lib, elfFile(elf.ET_DYN, other)) }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "it is for EM_", do: "install", looked: "/opt/decoder"},
		{name: "decoder is text", change: func(f *fake) { f.put(lib, "INPUT(libx.so)\n") }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no ELF file", do: "install", looked: "/opt/decoder"},
		{name: "decoder is empty", change: func(f *fake) { f.put(lib, "") }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no ELF file", do: "install", looked: "/opt/decoder"},
		{name: "decoder is a program", change: func(f *fake) { f.put(lib, elfFile(elf.ET_EXEC, machine())) }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no shared library", do: "install", looked: "/opt/decoder"},
		{name: "decoder is a link to nothing", change: func(f *fake) { f.remove(lib); f.link("gone.so", lib) }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "a link to nothing", do: "install", looked: "/opt/decoder"},
		{name: "decoder is a FIFO", change: func(f *fake) { f.remove(lib); f.fifo(lib) }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no regular file", do: "install", looked: "/opt/decoder"},
		{name: "decoder is a directory", change: func(f *fake) { f.remove(lib); f.put(lib+"/x", "") }, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no regular file", do: "install", looked: "/opt/decoder"},
		{name: "decoder by LD_LIBRARY_PATH", change: func(f *fake) {
			f.probe.ATTLibraryPath = nil
			f.env["LD_LIBRARY_PATH"] = "/nowhere::/opt/decoder"
		}, id: "decoder", state: StateOK, found: "decoder.so", looked: "/opt/decoder"},
		{name: "an empty entry of LD_LIBRARY_PATH is not the whole disk", change: func(f *fake) {
			f.probe.ATTLibraryPath = nil
			f.env["LD_LIBRARY_PATH"] = ":"
		}, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no librocprof", do: "install", looked: "/opt/rocm/lib"},
		{name: "decoder too deep", change: func(f *fake) {
			f.remove("opt/decoder")
			f.put("opt/decoder/1/2/3/4/5/librocprof-trace-decoder.so", elfFile(elf.ET_DYN, machine()))
		}, id: "decoder", state: StateFail, code: envelope.DecoderMissing, found: "no librocprof", do: "install", looked: "/opt/decoder"},

		{name: "no driver", change: func(f *fake) { f.remove("sys/class/kfd") }, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "not loaded", do: "GPU host", looked: "sys/class/kfd/kfd/topology/nodes"},
		{name: "CPUs only", change: func(f *fake) {
			for i := range 8 {
				f.remove(fmt.Sprintf("sys/class/kfd/kfd/topology/nodes/%d", i+1))
			}
		}, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "lists no GPU", do: "GPU host", looked: "topology/nodes"},
		{name: "GPU number 8 of 8", change: func(f *fake) { f.in.GPU = &eight }, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "no GPU 8: this host has 8", do: "GPU host", looked: "topology/nodes"},
		{name: "GPU number of the settings", change: func(f *fake) { f.probe.GPU = 9 }, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "no GPU 9", do: "GPU host", looked: "topology/nodes"},
		{name: "the argument beats the settings", change: func(f *fake) { f.probe.GPU = 9; f.in.GPU = &seven }, id: "gpu", state: StateOK, found: "7 of 8: gfx942", looked: "topology/nodes"},
		{name: "index inside the mask", change: func(f *fake) { f.env["HIP_VISIBLE_DEVICES"] = "5,3"; f.in.GPU = &seven }, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "shows 2 of this host's 8", do: "GPU host", looked: "topology/nodes"},
		{name: "all masked", change: func(f *fake) { f.env["ROCR_VISIBLE_DEVICES"] = "-1" }, id: "gpu", state: StateFail, code: envelope.NoGPU, found: "all 8 GPUs of this host are masked", do: "GPU host", looked: "topology/nodes"},

		{name: "kfd is gone", change: func(f *fake) { f.remove("dev/kfd") }, id: "kfd", state: StateFail, code: envelope.NoGPU, found: "/dev/kfd is not there", do: "--device=/dev/kfd", looked: "/dev/kfd"},
		{name: "kfd cannot be opened for writing", change: func(f *fake) { f.remove("dev/kfd"); f.put("dev/kfd/x", "") }, id: "kfd", state: StateFail, code: envelope.GPUAccessDenied, found: "is a directory", do: "access", looked: "/dev/kfd"},
		{name: "dev is no directory", change: func(f *fake) { f.remove("dev"); f.put("dev", "") }, id: "kfd", state: StateFail, code: envelope.GPUAccessDenied, found: "not a directory", do: "access", looked: "/dev/kfd"},
		{name: "render node is gone", change: func(f *fake) { f.remove("dev/dri/renderD128") }, id: "render_node", state: StateFail, code: envelope.NoGPU, found: "/dev/dri/renderD128 is not there", do: "--device=/dev/dri", looked: "renderD128"},
		{name: "the other GPU's render node is gone", change: func(f *fake) { f.remove("dev/dri/renderD129") }, id: "render_node", state: StateOK, found: "renderD128", looked: "renderD128"},

		{name: "another architecture was asked for", change: func(f *fake) { f.in.Arch = "gfx950" }, id: "arch", state: StateFail, code: envelope.UnsupportedConfig, found: "gfx942 and the kernel is meant for gfx950", do: "gfx950 host", looked: "topology/nodes"},
		{name: "the same architecture was asked for", change: func(f *fake) { f.in.Arch = "gfx942" }, id: "arch", state: StateOK, found: "supported", looked: "topology/nodes"},
		{name: "unverified architecture", change: func(f *fake) { f.gpu(0, 90010, 0x7408) }, id: "arch", state: StateWarn, found: "gfx90a", do: "shader engines", looked: "topology/nodes"},
		{name: "CPX partition", change: func(f *fake) { f.put("sys/bus/pci/devices/0000:10:00.0/current_compute_partition", "CPX\n") }, id: "partition", state: StateWarn, found: "CPX: this is one partition with 304 CUs", do: "within the partition", looked: "topology/nodes"},
		{name: "partition unknown", change: func(f *fake) { f.remove("sys/bus/pci") }, id: "partition", state: StateSkipped, found: "does not say", looked: "topology/nodes"},

		{name: "worktree invalid", change: func(f *fake) { f.remove("wt/kernels") }, id: "worktree", state: StateFail, code: envelope.WorktreeInvalid, found: "neither kernels/ nor tests/kernels/", do: "", looked: "kernels"},
		{name: "worktree not allowed", change: func(f *fake) {
			f.probe.Worktree = func(context.Context) (*worktree.Tree, error) {
				return nil, envelope.Build(envelope.PathNotAllowed, envelope.Facts{Message: "outside"})
			}
		}, id: "worktree", state: StateFail, code: envelope.PathNotAllowed, found: "outside"},
		{name: "python missing", change: func(f *fake) { f.probe.Python = nil }, id: "python", state: StateFail, code: envelope.MissingPrereq, found: "no Python", do: "--python", looked: ".venv/bin/python"},
		{name: "build in FLY_BUILD_DIR missing", change: func(f *fake) { f.env["FLY_BUILD_DIR"] = "gone" }, id: "build", state: StateFail, code: envelope.BuildTreeMissing, found: "gone"},
		{name: "build in FLY_BUILD_DIR not finished", change: func(f *fake) {
			f.env["FLY_BUILD_DIR"] = "mine"
			f.put("wt/mine/python_packages/flydsl/__init__.py", "")
		}, id: "build", state: StateFail, code: envelope.BuildTreeBroken, found: "lacks"},
		{name: "no FlyDSL", change: func(f *fake) {
			f.says["flydsl.__file__"] = pip("ModuleNotFoundError: No module named 'flydsl'")
		}, id: "build", state: StateFail, code: envelope.BuildTreeMissing, found: "finds no FlyDSL", looked: "python3 -c"},
		{name: "build broken", change: func(f *fake) {
			f.says["flydsl.__file__"] = pip("ImportError: libLLVM.so: cannot open shared object file: No such file or directory")
		}, id: "build", state: StateFail, code: envelope.BuildTreeBroken, found: "libLLVM.so", looked: "build-fly"},
		{name: "torch missing", change: func(f *fake) {
			f.says["flydsl.__file__"] = answer{out: strings.Replace(importText, "true", "false", 1)}
		}, id: "build", state: StateFail, code: envelope.DependencyMissing, found: "no torch", looked: "python3 -c"},
		{name: "numpy missing", change: func(f *fake) {
			f.says["flydsl.__file__"] = pip("ModuleNotFoundError: No module named 'numpy'")
		}, id: "build", state: StateFail, code: envelope.DependencyMissing, found: "numpy", looked: "python3 -c"},
		{name: "the import kills Python", change: func(f *fake) { f.says["flydsl.__file__"] = answer{exit: -11} }, id: "build", state: StateFail, code: envelope.BuildTreeBroken, found: "signal 11", looked: "python3 -c"},
		{name: "the import takes too long", change: func(f *fake) { f.says["flydsl.__file__"] = answer{fails: errTooLong, exit: -1} }, id: "build", state: StateFail, code: envelope.BuildTreeBroken, found: "did not end in time", do: "scripts/build.sh", looked: "python3 -c"},
		{name: "the import says nothing", change: func(f *fake) { f.says["flydsl.__file__"] = answer{out: "hello\n"} }, id: "build", state: StateFail, code: envelope.BuildTreeBroken, found: "nothing that can be read", looked: "python3 -c"},

		{name: "runs directory is a file", change: func(f *fake) { f.remove("runs"); f.put("runs", "") }, id: "runs_dir", state: StateFail, code: envelope.StoreUnwritable, found: "no directory", do: "--runs-dir", looked: "runs"},
		{name: "runs directory below a file", change: func(f *fake) { f.probe.RunsDir = f.path("runs/x/y/z") }, id: "runs_dir", state: StateFail, code: envelope.StoreUnwritable, found: "not a directory", do: "--runs-dir", looked: "x/y/z"},
		{name: "runs directory to be made", change: func(f *fake) { f.probe.RunsDir = f.path("runs/new/er") }, id: "runs_dir", state: StateOK, found: "will be made", looked: "new/er"},
		{name: "runs directory is a link to nothing", change: func(f *fake) { f.remove("runs"); f.link("gone/deep", "runs") }, id: "runs_dir", state: StateFail, code: envelope.StoreUnwritable, found: "link to nothing", do: "--runs-dir", looked: "runs"},

		{name: "no room", change: func(f *fake) { f.probe.Free = func(string) (int64, bool) { return 512<<20 - 1, true } }, id: "space", state: StateFail, code: envelope.DiskFull, found: "0.5 GiB", do: "--runs-dir", looked: "runs"},
		{name: "little room", change: func(f *fake) { f.probe.Free = func(string) (int64, bool) { return 512 << 20, true } }, id: "space", state: StateWarn, found: "0.5 GiB", do: "gigabytes", looked: "runs"},
		{name: "just enough room", change: func(f *fake) { f.probe.Free = func(string) (int64, bool) { return 2 << 30, true } }, id: "space", state: StateOK, found: "2.0 GiB", looked: "runs"},
		{name: "room unknown", change: func(f *fake) { f.probe.Free = func(string) (int64, bool) { return 0, false } }, id: "space", state: StateSkipped, found: "does not say"},
		{name: "room of the directory that will hold the runs", change: func(f *fake) {
			f.probe.RunsDir = f.path("runs/new/er")
			f.probe.Free = func(dir string) (int64, bool) { return map[bool]int64{true: 9 << 30}[dir == f.path("runs")], true }
		}, id: "space", state: StateOK, found: "9.0 GiB", looked: "runs"},

		{name: "a profiler runs", change: func(f *fake) { f.put("proc/4711/cmdline", "/opt/rocm/bin/omniperf\x00profile\x00") }, id: "profilers", state: StateWarn, found: "omniperf (process 4711)", do: "GPU_BUSY", looked: "/proc"},
		{name: "a profiler's script runs", change: func(f *fake) {
			f.put("proc/4712/cmdline", "/usr/bin/python3.12\x00-u\x00/opt/rocm/bin/rocprofv3\x00-i\x00x.json\x00")
		}, id: "profilers", state: StateWarn, found: "rocprofv3 (process 4712)", do: "GPU_BUSY", looked: "/proc"},
		{name: "a script by env", change: func(f *fake) {
			f.put("proc/4713/cmdline", "/usr/bin/env\x00A=1\x00rocprof\x00./app\x00")
		}, id: "profilers", state: StateWarn, found: "rocprof (process 4713)", do: "GPU_BUSY", looked: "/proc"},
		{name: "who only reads about it", change: func(f *fake) {
			f.put("proc/1/cmdline", "less\x00/usr/share/doc/rocprofv3\x00")
			f.put("proc/2/cmdline", "grep\x00rocprof\x00")
			f.put("proc/3/cmdline", "python3\x00app.py\x00rocprofv3\x00")
			f.put("proc/4/cmdline", "")
		}, id: "profilers", state: StateOK, found: "no other profiler", looked: "/proc"},
		{name: "no proc", change: func(f *fake) { f.remove("proc") }, id: "profilers", state: StateSkipped, found: "cannot be read"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := readyHost(t)
			c.change(f)
			r := f.ask()
			got := check(t, r.Data, c.id)
			if got.State != c.state || got.Code != c.code || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Do, c.do) || !strings.Contains(strings.Join(got.LookedAt, "\n"), c.looked) {
				t.Errorf("got  %+v\nwant %+v", got, c)
			}
			if c.blockers == nil && c.code != "" {
				c.blockers = []envelope.Code{c.code}
			}
			if !slices.Equal(r.Data.Blockers, c.blockers) {
				t.Errorf("blockers %v, want %v", r.Data.Blockers, c.blockers)
			}
			if c.state == StateFail && !strings.HasPrefix(r.Actions[0].Reason, c.id+": ") {
				t.Errorf("actions %+v", r.Actions)
			}
		})
	}
}
