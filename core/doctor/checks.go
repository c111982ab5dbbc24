package doctor

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/rocprof"
)

const setRocprof = "--rocprofv3 (FLYPROF_ROCPROFV3)"

func (h *host) platform(context.Context) Check {
	found := h.OS + "/" + runtime.GOARCH
	switch {
	case h.Simulated != "":
		return pass("platform", found+", simulated "+h.Simulated)
	case h.OS != "linux":
		return fail("platform", envelope.PlatformUnsupported, found, "capture on a Linux GPU host, or start the server with --simulate; everything that reads works here")
	}
	return pass("platform", found)
}

// rocprofv3 asks the program for its options and its version: an old one ignores what a trace needs without a word.
func (h *host) rocprofv3(ctx context.Context) Check {
	const id = "rocprofv3"
	if len(h.Rocprofv3) == 0 {
		return fail(id, envelope.Rocprofv3Missing, "rocprofv3 is in none of the places", "install ROCm 7.0 or later, or set "+setRocprof, h.RocprofPlaces...)
	}
	name := strings.Join(h.Rocprofv3, " ")
	if h.Run == nil {
		return pass(id, name+" is there; its version was not asked for (read-only)", h.Rocprofv3[0])
	}
	help, said, exit, err := h.Run(ctx, commandLimit, append(append([]string(nil), h.Rocprofv3...), "--help"), h.Env, "")
	looked := []string{name + " --help", name + " --version"}
	if err != nil {
		return fail(id, envelope.Rocprofv3Missing, fmt.Sprintf("%s cannot be run: %v", name, err), "mend the installation, or set "+setRocprof, looked...)
	}
	options := rocprof.ParseHelp(append(help, said...))
	if len(options.Names()) == 0 {
		return fail(id, envelope.Rocprofv3Missing, fmt.Sprintf("%s does not say what it can do (exit %d)%s", name, exit, lastLine(said)), "mend the installation, or set "+setRocprof, looked...)
	}
	if !options.Has("--att") {
		return fail(id, envelope.Rocprofv3TooOld, fmt.Sprintf("%s has no --att (exit %d)", name, exit), "use rocprofv3 of ROCm 7.0 or later", looked...)
	}
	out, said, _, err := h.Run(ctx, commandLimit, append(append([]string(nil), h.Rocprofv3...), "--version"), h.Env, "")
	v, parseErr := rocprof.ParseVersion(append(out, said...))
	if err != nil || parseErr != nil {
		return caution(id, name+" has --att; its version cannot be read", "report the output of "+name+" --version", looked...)
	}
	h.set(func(d *Data) { d.Rocprofv3, d.ROCm = v.SDK, v.ROCm })
	return pass(id, fmt.Sprintf("%s %s (ROCm %s), has --att", name, v.SDK, v.ROCm), looked...)
}

// lastLine is what a program complained of at its end, put behind a message; empty where it said nothing.
func lastLine(said []byte) string {
	said = bytes.TrimSpace(said)
	line := strings.ToValidUTF8(strings.TrimSpace(string(said[bytes.LastIndexByte(said, '\n')+1:])), "")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": %.200q", line)
}

const decoderName = "librocprof-trace-decoder.so"

// decoder looks for the library under its exact name: rocprofv3's script is content with a versioned name, which the library then
// cannot load. The script searches the given directories, else LD_LIBRARY_PATH and ROCm's lib, all with what lies below.
func (h *host) decoder(context.Context) Check {
	const id = "decoder"
	const do = "install the package rocprof-trace-decoder, or set --att-library-path (FLYPROF_ATT_LIBRARY_PATH) to the directory that has " + decoderName
	if h.Simulated != "" {
		return skipped(id, "the simulated GPU needs no decoder")
	}
	dirs := slices.Clone(h.ATTLibraryPath)
	if len(dirs) == 0 {
		dirs = filepath.SplitList(h.Getenv("LD_LIBRARY_PATH"))
		if len(h.Rocprofv3) > 0 {
			if real, err := filepath.EvalSymlinks(h.Rocprofv3[0]); err == nil {
				dirs = append(dirs, filepath.Join(filepath.Dir(filepath.Dir(real)), "lib"))
			}
		}
		dirs = append(dirs, "/opt/rocm/lib")
	}
	var near []string
	// An empty entry of LD_LIBRARY_PATH is the working directory of whoever runs; nobody keeps the decoder there.
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
	for _, dir := range dirs {
		found, others := findLibrary(filepath.Join(h.Root, dir))
		near = append(near, others...)
		if found == "" {
			continue
		}
		if why := loadable(found); why != "" {
			return fail(id, envelope.DecoderMissing, fmt.Sprintf("%s is there and cannot be loaded: %s", found, why), do, dirs...)
		}
		return pass(id, found, dirs...)
	}
	if len(near) > 0 {
		return fail(id, envelope.DecoderMissing, fmt.Sprintf("only %s, which rocprofv3 finds and cannot load: the name must be %s", near[0], decoderName), "make a link "+decoderName+" beside it", dirs...)
	}
	return fail(id, envelope.DecoderMissing, "no "+decoderName+" in the places that rocprofv3 searches", do, dirs...)
}

const (
	maxLibraryDepth   = 4
	maxLibraryEntries = 20_000
)

// findLibrary looks below a directory; others are files whose names only begin like the library's.
func findLibrary(dir string) (found string, others []string) {
	seen := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		var below []string
		for _, e := range entries {
			if seen++; seen > maxLibraryEntries || found != "" {
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Name() == decoderName:
				found = path
			case strings.Contains(e.Name(), decoderName):
				others = append(others, path)
			case e.IsDir():
				below = append(below, path)
			}
		}
		for _, path := range below {
			if depth < maxLibraryDepth {
				walk(path, depth+1)
			}
		}
	}
	walk(dir, 0)
	return found, others
}

// loadable says what keeps a library from being loaded, as far as its headers tell.
func loadable(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is a link to nothing"
	case err != nil:
		return err.Error()
	case !info.Mode().IsRegular():
		return "it is no regular file" // and opening a FIFO would wait
	}
	f, err := elf.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return "this user may not read it"
	}
	if err != nil {
		return "it is no ELF file"
	}
	defer f.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, ok := machines[runtime.GOARCH]; ok && f.Machine != want {
		return fmt.Sprintf("it is for %v", f.Machine)
	}
	if f.Type != elf.ET_DYN {
		return "it is no shared library"
	}
	return ""
}

// runsDir tries the directory as the first run will: by writing into it. In read-only mode it only looks.
func (h *host) runsDir(context.Context) Check {
	const id = "runs_dir"
	const do = "give write access, or set --runs-dir (FLYPROF_RUNS_DIR)"
	dir := h.RunsDir
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return fail(id, envelope.StoreUnwritable, dir+" is no directory", do, h.RunsDir)
		}
		if err == nil {
			break
		}
		if _, linkErr := os.Lstat(dir); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
			return fail(id, envelope.StoreUnwritable, dir+" is a link to nothing", do, h.RunsDir)
		}
		if parent := filepath.Dir(dir); parent != dir && errors.Is(err, fs.ErrNotExist) {
			dir = parent
			continue
		}
		return fail(id, envelope.StoreUnwritable, fmt.Sprintf("%s cannot be reached: %v", dir, err), do, h.RunsDir)
	}
	if h.Run == nil {
		return skipped(id, "not tried (read-only)")
	}
	f, err := os.CreateTemp(dir, ".flyprof-doctor-")
	if err != nil {
		return fail(id, envelope.StoreUnwritable, fmt.Sprintf("%s cannot be written: %v", dir, err), do, h.RunsDir)
	}
	_ = f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return caution(id, fmt.Sprintf("%s can be written and a file in it not removed: %v", dir, err), do, h.RunsDir)
	}
	if dir != h.RunsDir {
		return pass(id, h.RunsDir+" will be made", h.RunsDir)
	}
	return pass(id, h.RunsDir, h.RunsDir)
}

// Room for a run: the raw traces of a large grid are some hundred megabytes, their decoded form several times as much.
const (
	enoughBytes = 2 << 30
	leastBytes  = 512 << 20
)

func (h *host) space(context.Context) Check {
	const id = "space"
	dir := h.RunsDir
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, ok := h.Free(dir)
	text := fmt.Sprintf("%.1f GiB free where the runs are kept", float64(free)/(1<<30))
	switch {
	case !ok:
		return skipped(id, "this system does not say how much room there is")
	case free < leastBytes:
		return fail(id, envelope.DiskFull, text, "free space, or set --runs-dir (FLYPROF_RUNS_DIR) to a larger disk", dir)
	case free < enoughBytes:
		return caution(id, text, "a trace of a large grid takes up to some gigabytes", dir)
	}
	return pass(id, text, dir)
}

// others are programs that take the GPU's counters or its thread trace for themselves.
var others = []string{"rocprofv3", "rocprofv2", "rocprof", "rocprof-compute", "rocprof-sys", "omniperf", "omnitrace", "rocgdb", "rocprofiler-sdk"}

// profilers looks whether somebody profiles at this moment. It only informs: nobody else's process is touched.
func (h *host) profilers(context.Context) Check {
	const id = "profilers"
	if h.OS != "linux" {
		return skipped(id, "there is no /proc here")
	}
	entries, err := os.ReadDir(filepath.Join(h.Root, "proc"))
	if err != nil {
		return skipped(id, "/proc cannot be read")
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || len(found) >= 8 {
			continue
		}
		line, err := readHead(filepath.Join(h.Root, "proc", e.Name(), "cmdline"), maxCmdline)
		if err != nil {
			continue
		}
		if name := profilerOf(line); name != "" {
			found = append(found, fmt.Sprintf("%s (process %d)", name, pid))
		}
	}
	if len(found) > 0 {
		return caution(id, "running: "+strings.Join(found, ", "), "wait for them when a capture reports GPU_BUSY; they belong to whoever started them", "/proc/*/cmdline")
	}
	return pass(id, "no other profiler runs, as far as this user may see", "/proc/*/cmdline")
}

// maxCmdline is what is read of a command line: the program and its script stand at its beginning.
const maxCmdline = 8 << 10

func readHead(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

var interpreter = regexp.MustCompile(`^(python[\d.]*|sh|bash|dash|perl|env)$`)

// profilerOf names the profiler that a command line runs: as the program, or as the script of an interpreter. Who only has
// the word among other arguments, such as an editor, runs none.
func profilerOf(cmdline []byte) string {
	for _, arg := range bytes.Split(cmdline, []byte{0}) {
		base := filepath.Base(string(arg))
		if slices.Contains(others, base) {
			return base
		}
		if !interpreter.MatchString(base) && !strings.HasPrefix(base, "-") && !strings.Contains(base, "=") {
			return ""
		}
	}
	return ""
}
