//go:build unix

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

// TestNothingIsThere: blockers stand in the order of the checks, each once.
func TestNothingIsThere(t *testing.T) {
	f := readyHost(t)
	f.probe.OS, f.probe.Rocprofv3, f.probe.Python = "windows", nil, nil
	f.remove("opt")
	f.remove("sys")
	f.remove("wt")
	f.remove("runs")
	f.put("runs", "")
	f.probe.Free = func(string) (int64, bool) { return 0, true }
	r := f.ask()
	want := []envelope.Code{envelope.PlatformUnsupported, envelope.Rocprofv3Missing, envelope.DecoderMissing, envelope.NoGPU, envelope.WorktreeInvalid,
		envelope.MissingPrereq, envelope.StoreUnwritable, envelope.DiskFull}
	if !slices.Equal(r.Data.Blockers, want) {
		t.Errorf("got  %v\nwant %v", r.Data.Blockers, want)
	}
	if c := check(t, r.Data, "build"); c.State != StateSkipped {
		t.Errorf("%+v", c)
	}
	if len(r.Actions) != 6 || r.Actions[0].Kind != envelope.FixConfig || r.Data.GPU != nil {
		t.Errorf("%+v %+v", r.Actions, r.Data.GPU)
	}
	if len(f.calls) != 0 {
		t.Errorf("started %q", f.calls)
	}
}

// TestReadOnly: nothing is started and nothing is written, and what was not tried says so.
func TestReadOnly(t *testing.T) {
	f := readyHost(t)
	f.probe.Run = nil
	f.probe.RunsDir = f.path("runs/new")
	r := f.ask()
	if r.Data.Verdict != Ready || len(r.Data.GPUs) != 8 {
		t.Errorf("%+v", r.Data)
	}
	for id, says := range map[string]string{"rocprofv3": "read-only", "runs_dir": "read-only", "build": "not tried"} {
		if c := check(t, r.Data, id); !strings.Contains(c.Found, says) || !c.OK {
			t.Errorf("%+v does not say %q", c, says)
		}
	}
	if _, err := os.Stat(f.probe.RunsDir); !os.IsNotExist(err) {
		t.Errorf("the runs directory was made: %v", err)
	}
	// The GPU's absence is no reason to start rocminfo.
	f.remove("sys")
	f.probe.Rocminfo, f.probe.AMDSMI = []string{"/usr/bin/rocminfo"}, []string{"amd-smi"}
	if r = f.ask(); !slices.Equal(r.Data.Blockers, []envelope.Code{envelope.NoGPU}) {
		t.Errorf("%v", r.Data.Blockers)
	}
	f.probe.RunsDir = f.path("wt/kernels/__init__.py")
	if c := check(t, f.ask().Data, "runs_dir"); c.Code != envelope.StoreUnwritable {
		t.Errorf("%+v", c)
	}
	f.probe.Simulated = "gfx950"
	if c := check(t, f.ask().Data, "gpu"); c.State != StateSkipped || !strings.Contains(c.Found, "gfx950") {
		t.Errorf("%+v", c)
	}
	if len(f.calls) != 0 {
		t.Errorf("started %q", f.calls)
	}
}

const rocminfoText = `ROCk module is loaded
=====================
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC
  Uuid:                    CPU-XX
  Node:                    0
  Device Type:             CPU
*******
Agent 2
*******
  Name:                    %s
  Uuid:                    GPU-00000000000000a1
  Marketing Name:          AMD Instinct
  Node:                    1
  Device Type:             GPU
  Compute Unit:            256
*** Done ***
`

func TestSimulated(t *testing.T) {
	f := readyHost(t)
	f.remove("sys")
	f.remove("dev")
	f.remove("opt")
	f.probe.OS = "darwin"
	f.probe.Simulated, f.probe.Rocminfo = "gfx950", []string{"self", "sim-tool", "rocminfo"}
	f.says["sim-tool rocminfo"] = answer{out: fmt.Sprintf(rocminfoText, "gfx950")}
	// Masks of the host's own GPUs mean nothing to the simulated one.
	f.env["HIP_VISIBLE_DEVICES"], f.env["ROCR_VISIBLE_DEVICES"] = "5", "7"
	r := f.ask()
	d := r.Data
	if d.Verdict != Ready || !d.Simulated || d.GPU == nil || d.GPU.Arch != "gfx950" || d.GPU.CUs != 256 || len(d.GPUs) != 1 {
		t.Errorf("%+v %+v", d, d.GPU)
	}
	for id, want := range map[string]string{"platform": StateOK, "decoder": StateSkipped, "kfd": StateSkipped, "render_node": StateSkipped, "arch": StateOK} {
		if c := check(t, d, id); c.State != want {
			t.Errorf("%+v is not %s", c, want)
		}
	}
	if c := check(t, d, "platform"); !strings.Contains(c.Found, "simulated gfx950") {
		t.Errorf("%+v", c)
	}
	f.says["sim-tool rocminfo"] = answer{fails: errors.New("broken pipe")}
	if c := check(t, f.ask().Data, "gpu"); c.Code != envelope.NoGPU || !strings.Contains(c.Found, "broken pipe") {
		t.Errorf("%+v", c)
	}
}

const (
	smiListText   = `[{"gpu": 0, "bdf": "0000:10:00.0", "uuid": "u", "node_id": 2, "render": "renderD128"}]`
	smiStaticText = `[{"gpu": 0, "asic": {"market_name": "MI300X", "device_id": "0x74a1", "num_compute_units": 304, "target_graphics_version": "gfx942"}}]`
)

// TestFallbacks: rocminfo and then amd-smi are asked where /sys shows no GPU.
func TestFallbacks(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name               string
		change             func(f *fake)
		code               envelope.Code // of the check "gpu"
		says, arch, looked string
	}{
		{name: "rocminfo", change: func(f *fake) { f.says["/rocminfo"] = answer{out: fmt.Sprintf(rocminfoText, "gfx942")} }, arch: "gfx942", looked: "nodes /usr/bin/rocminfo"},
		{name: "rocminfo that fails after its list", change: func(f *fake) { f.says["/rocminfo"] = answer{out: fmt.Sprintf(rocminfoText, "gfx942"), exit: 1} }, arch: "gfx942", looked: "nodes /usr/bin/rocminfo"},
		{name: "rocminfo is gone, amd-smi", change: func(f *fake) {
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: smiListText}, answer{out: smiStaticText}
		}, arch: "gfx942", looked: "nodes amd-smi list --json amd-smi static --json"},
		{name: "rocminfo sees none, amd-smi", change: func(f *fake) {
			f.says["/rocminfo"] = answer{out: "ROCk module is NOT loaded, possibly no GPU devices\n", exit: 1}
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: "WARNING: old\n" + smiListText}, answer{out: smiStaticText}
		}, arch: "gfx942", looked: "nodes /usr/bin/rocminfo amd-smi list --json amd-smi static --json"},
		{name: "amd-smi knows no architecture", change: func(f *fake) {
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: smiListText}, answer{out: "[]"}
		}, arch: "", looked: "amd-smi"},
		{name: "rocminfo may not", change: func(f *fake) {
			f.says["/rocminfo"] = answer{out: "ROCk module is loaded\n", err: "Unable to open /dev/kfd read-write: Permission denied\n", exit: 1}
		}, code: envelope.GPUAccessDenied, says: "Permission denied", looked: "nodes /usr/bin/rocminfo"},
		{name: "both say nothing", change: func(f *fake) {
			f.says["/rocminfo"] = answer{out: "ROCk module is NOT loaded, possibly no GPU devices\n", exit: 1}
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: "[]"}, answer{out: "[]"}
		}, code: envelope.NoGPU, says: "is not there (the amdgpu driver is not loaded, or /sys is not mounted); rocminfo: ROCk module is NOT loaded", looked: "nodes /usr/bin/rocminfo"},
		{name: "amd-smi says no JSON", change: func(f *fake) {
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: "Traceback\n", exit: 1}, answer{}
		}, code: envelope.NoGPU, says: "not loaded", looked: "nodes"},
		{name: "amd-smi static hangs", change: func(f *fake) {
			f.says["amd-smi list"], f.says["amd-smi static"] = answer{out: smiListText}, answer{fails: errTooLong}
		}, code: envelope.NoGPU, says: "not loaded", looked: "nodes"},
		{name: "both hang", change: func(f *fake) {
			f.says["/rocminfo"], f.says["amd-smi list"] = answer{fails: errTooLong}, answer{fails: errTooLong}
		}, code: envelope.NoGPU, says: "not loaded", looked: "nodes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := readyHost(t)
			f.remove("sys/class")
			f.probe.Rocminfo, f.probe.AMDSMI = []string{"/usr/bin/rocminfo"}, []string{"/usr/bin/amd-smi"}
			c.change(f)
			d := f.ask().Data
			got := check(t, d, "gpu")
			if looked := strings.Join(got.LookedAt, " "); got.Code != c.code || !strings.Contains(got.Found, c.says) || !strings.Contains(looked, c.looked) {
				t.Errorf("got  %+v\nwant %+v", got, c)
			}
			if c.code == "" && (d.GPU == nil || d.GPU.Arch != c.arch) {
				t.Errorf("%+v", d.GPU)
			}
			if c.code == "" && c.arch == "" {
				if a := check(t, d, "arch"); a.State != StateWarn || !strings.Contains(a.Found, "not found out") {
					t.Errorf("%+v", a)
				}
			}
			if check(t, d, "kfd").ID == "" {
				t.Error("the device was not looked at")
			}
		})
	}
	t.Run("not asked where /sys answers", func(t *testing.T) {
		f := readyHost(t)
		f.probe.Rocminfo, f.probe.AMDSMI = []string{"/usr/bin/rocminfo"}, []string{"/usr/bin/amd-smi"}
		f.ask()
		if s := strings.Join(f.calls, "\n"); strings.Contains(s, "rocminfo") || strings.Contains(s, "smi") {
			t.Errorf("started %s", s)
		}
	})
}

// TestRealRocminfo runs the distribution's rocminfo on this host.
func TestRealRocminfo(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("rocminfo")
	if err != nil {
		t.Skip("rocminfo is not installed on this host (Debian: apt-get install rocminfo)")
	}
	if _, err := os.Stat("/dev/kfd"); err == nil {
		t.Skip("this host has a GPU's device; the test is about one without")
	}
	f := readyHost(t)
	f.remove("sys/class")
	f.probe.Rocminfo, f.probe.Env = []string{path}, os.Environ()
	f.probe.Run = func(ctx context.Context, limit time.Duration, argv, env []string, dir string) ([]byte, []byte, int, error) {
		if argv[0] == path {
			return Exec(ctx, limit, argv, env, dir)
		}
		return f.run(ctx, limit, argv, env, dir)
	}
	got := check(t, f.ask().Data, "gpu")
	if got.Code != envelope.NoGPU || !strings.Contains(got.Found, "; rocminfo: ") || !slices.Contains(got.LookedAt, path) {
		t.Errorf("%+v", got)
	}
	t.Logf("found: %s", got.Found)
}

// asNobody runs the test that calls it as an unprivileged user where it was started as root, whom no permission keeps out. It
// returns false in the process that has nothing left to do.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, os.ErrNotExist) {
		t.Skipf("this root cannot become another user: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as an unprivileged user: %v\n%s", err, out)
	}
	return false
}

// TestPermissions: what this user may not do.
func TestPermissions(t *testing.T) {
	t.Parallel()
	if !asNobody(t) {
		return
	}
	mode := func(f *fake, name string, m os.FileMode) {
		if err := os.Chmod(f.path(name), m); err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { _ = os.Chmod(f.path(name), 0o755) })
	}
	cases := []struct {
		name     string
		change   func(f *fake)
		id       string
		code     envelope.Code
		found    string
		do       string
		blockers []envelope.Code
	}{
		{"kfd", func(f *fake) { mode(f, "dev/kfd", 0o440) }, "kfd", envelope.GPUAccessDenied, "may not be opened by this user; its group is", "render and video", nil},
		{"render node", func(f *fake) { mode(f, "dev/dri/renderD128", 0) }, "render_node", envelope.GPUAccessDenied, "/dev/dri/renderD128 may not be opened", "render and video", nil},
		{"dev cannot be looked into", func(f *fake) { mode(f, "dev", 0) }, "kfd", envelope.GPUAccessDenied, "cannot even be looked at", "access", nil},
		{"topology", func(f *fake) { mode(f, "sys/class/kfd/kfd/topology", 0) }, "gpu", envelope.GPUAccessDenied, "may not be read", "", nil},
		{"nodes of a container's rules", func(f *fake) {
			for i := range 9 {
				mode(f, fmt.Sprintf("sys/class/kfd/kfd/topology/nodes/%d/properties", i), 0)
			}
		}, "gpu", envelope.GPUAccessDenied, "9 nodes of", "", nil},
		{"runs directory", func(f *fake) { mode(f, "runs", 0o555) }, "runs_dir", envelope.StoreUnwritable, "cannot be written: ", "write access", nil},
		{"runs directory to be made", func(f *fake) { mode(f, "runs", 0o555); f.probe.RunsDir = f.path("runs/a/b") }, "runs_dir", envelope.StoreUnwritable, "cannot be written: ", "write access", nil},
		{"above the runs directory", func(f *fake) { mode(f, "runs", 0); f.probe.RunsDir = f.path("runs/a/b") }, "runs_dir", envelope.StoreUnwritable, "cannot be reached", "write access", nil},
		{"decoder", func(f *fake) { mode(f, "opt/decoder/deep/er/librocprof-trace-decoder.so", 0) }, "decoder", envelope.DecoderMissing, "this user may not read it", "install", nil},
		{"decoder's directory", func(f *fake) { mode(f, "opt/decoder/deep", 0) }, "decoder", envelope.DecoderMissing, "no librocprof", "install", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := readyHost(t)
			c.change(f)
			d := f.ask().Data
			got := check(t, d, c.id)
			if got.Code != c.code || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Do, c.do) || len(got.LookedAt) == 0 || !slices.Equal(d.Blockers, []envelope.Code{c.code}) {
				t.Errorf("%v\ngot  %+v\nwant %+v", d.Blockers, got, c)
			}
		})
	}
	t.Run("another user's process", func(t *testing.T) {
		f := readyHost(t)
		f.put("proc/77/cmdline", "rocprofv3\x00")
		mode(f, "proc/77/cmdline", 0)
		if c := check(t, f.ask().Data, "profilers"); c.State != StateOK {
			t.Errorf("%+v", c)
		}
	})
}

func TestCancelled(t *testing.T) {
	f := readyHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, f.probe, request.Doctor{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestManyProfilers: the list stays short, long command lines are cut, and this process is not among them.
func TestManyProfilers(t *testing.T) {
	f := readyHost(t)
	for i := range 40 {
		f.put(fmt.Sprintf("proc/%d/cmdline", 100+i), "rocgdb\x00")
	}
	f.put("proc/99/cmdline", "x"+strings.Repeat("y", 64<<10))
	f.put(fmt.Sprintf("proc/%d/cmdline", os.Getpid()), "rocprofv3\x00")
	if c := check(t, f.ask().Data, "profilers"); strings.Count(c.Found, "rocgdb") != 8 || strings.Contains(c.Found, "rocprofv3") {
		t.Errorf("%+v", c)
	}
}

// TestSearchIsBounded: a directory with more entries than are looked at ends the search.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range maxLibraryEntries + 10 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, decoderName), nil, 0o600); err != nil { // after all that begins with "a"
		t.Fatal(err)
	}
	if found, _ := findLibrary(dir); found != "" {
		t.Errorf("found %s", found)
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	cases := []struct {
		name     string
		argv     []string
		env      []string
		dir      string
		out, err string
		exit     int
	}{
		{"output and status", sh("echo out; echo err >&2; exit 3"), nil, "", "out\n", "err\n", 3},
		{"environment is what was given", sh("echo $A$HOME"), []string{"A=1"}, "", "1\n", "", 0},
		{"directory", sh("pwd"), nil, "/", "/\n", "", 0},
		{"standard input is empty", sh("cat; echo end"), nil, "", "end\n", "", 0},
		{"signal", sh("kill -SEGV $$"), nil, "", "", "", -int(unix.SIGSEGV)},
		{"another signal", sh("kill -ABRT $$"), nil, "", "", "", -int(unix.SIGABRT)},
		{"leftovers do not keep the answer", sh("sleep 300 & echo done"), nil, "", "done\n", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, said, exit, err := Exec(t.Context(), 10*time.Second, c.argv, c.env, c.dir)
			if string(out) != c.out || string(said) != c.err || exit != c.exit || err != nil {
				t.Errorf("%q %q %d %v", out, said, exit, err)
			}
		})
	}
	t.Run("capped", func(t *testing.T) {
		out, said, _, err := Exec(t.Context(), 10*time.Second, sh("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"), nil, "")
		if len(out) != maxOutput || len(said) != maxOutput || err != nil {
			t.Errorf("%d and %d bytes, %v", len(out), len(said), err)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		if _, _, _, err := Exec(t.Context(), time.Second, []string{"/nonexistent/rocminfo"}, nil, ""); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if _, _, _, err := Exec(t.Context(), time.Second, nil, nil, ""); err == nil {
			t.Error("nothing was run without complaint")
		}
	})
	t.Run("the caller's end is not the limit's", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, _, _, err := Exec(ctx, 30*time.Second, sh("sleep 300"), nil, ""); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooLong) {
			t.Errorf("%v", err)
		}
	})
}

// TestExecEndsTheGroup: at the limit the program's children go with it, also those that will not listen.
func TestExecEndsTheGroup(t *testing.T) {
	t.Parallel()
	script := "trap '' TERM INT HUP; sleep 300 & echo $!; (trap '' TERM; sleep 300) & echo $!; wait"
	began := time.Now()
	out, _, _, err := Exec(t.Context(), 400*time.Millisecond, []string{"/bin/sh", "-c", script}, []string{"PATH=/usr/bin:/bin"}, "")
	if !errors.Is(err, errTooLong) || time.Since(began) > 8*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	pids := strings.Fields(string(out))
	if len(pids) != 2 {
		t.Fatalf("the children are %q", out)
	}
	for _, text := range pids {
		var pid int
		if _, err := fmt.Sscan(text, &pid); err != nil || pid < 2 {
			t.Fatalf("%q", text)
		}
		// An orphan that was killed may stay as a zombie until init looks.
		if err := unix.Kill(pid, 0); err == nil && !zombie(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestFreeSpace(t *testing.T) {
	n, ok := FreeSpace(t.TempDir())
	var st unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &st); err != nil {
		t.Fatal(err)
	}
	// Others write at the same time: the same disk to within a gigabyte.
	want := int64(st.Bavail) * int64(st.Bsize)
	if !ok || n <= 0 || n > want+1<<30 || n < want-1<<30 {
		t.Errorf("%d %v, want about %d", n, ok, want)
	}
	if _, ok := FreeSpace("/nonexistent/dir"); ok {
		t.Error("room in a directory that is not there")
	}
}
