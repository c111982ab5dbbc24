package rocprof

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Outputs are the files that a job of rocprofv3 left, by kind, with absolute paths. What they are called before the kind
// does not count: the prefix is a host and process, a process, or the name that was asked for.
type Outputs struct {
	KernelTraces, KernelStats, DomainStats, AgentInfos, Counters []string
	// ResultsJSON and Databases are the same data as JSON and as a rocpd database; with databases and no CSV, the format was
	// left to rocprofv3's default.
	ResultsJSON, Databases []string
	// ATTFiles are the raw traces, sorted by agent, dispatch and shader engine.
	ATTFiles []ATTFile
	// UIDirs are ui_output_agent_<A>_dispatch_<D>, sorted by dispatch. ATTStats are the CSV files beside them, in the order
	// of their names.
	UIDirs, ATTStats []string
	// CodeObjects are the ELF files <prefix>_<gfx>_code_object_id_<N>.out, sorted by N.
	CodeObjects []string
	// Truncated says that there was more than could be looked at.
	Truncated bool
}

// ATTFile is the raw thread trace of one shader engine in one dispatch.
type ATTFile struct {
	Path  string
	Bytes int64
	// Agent is rocprofv3's number of the GPU in this process; it can be told from nothing else and differs between runs.
	Agent        int64
	ShaderEngine int
	Dispatch     int64
}

// attHeaderBytes is the size of a trace without a token: the shader engine was idle, or the GPU was not the one at work.
const attHeaderBytes = 424

// HeaderOnly says that nothing was traced.
func (f ATTFile) HeaderOnly() bool { return f.Bytes <= attHeaderBytes }

const (
	maxOutputDepth   = 8
	maxOutputEntries = 200_000
)

var (
	attName    = regexp.MustCompile(`(?:^|_)(\d{1,18})_shader_engine_(\d{1,4})_(\d{1,18})\.att$`)
	uiName     = regexp.MustCompile(`^ui_output_agent_(\d{1,18})_dispatch_(\d{1,18})$`)
	objectName = regexp.MustCompile(`_code_object_id_(\d{1,18})\.out$`)
)

// outputKinds sorts files by how their names end. A new kind is a new row; the first that fits counts.
var outputKinds = []struct {
	ending string
	list   func(*Outputs) *[]string
}{
	{"kernel_trace.csv", func(o *Outputs) *[]string { return &o.KernelTraces }},
	{"kernel_stats.csv", func(o *Outputs) *[]string { return &o.KernelStats }},
	{"domain_stats.csv", func(o *Outputs) *[]string { return &o.DomainStats }},
	{"agent_info.csv", func(o *Outputs) *[]string { return &o.AgentInfos }},
	{"counter_collection.csv", func(o *Outputs) *[]string { return &o.Counters }},
	{"results.json", func(o *Outputs) *[]string { return &o.ResultsJSON }},
	{"results.db", func(o *Outputs) *[]string { return &o.Databases }},
}

// FindOutputs looks through the output directory of a job: folders for hosts and passes (pass_1) included, dispatch directories
// not entered. It follows no symbolic link and looks at no more than 200,000 entries, 8 levels deep. It does not say what is
// in the files.
//
// Errors: the directory is missing or cannot be read (an *fs.PathError).
func FindOutputs(dir string) (Outputs, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Outputs{}, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return Outputs{}, err
	}
	defer root.Close()
	f := finder{root: root, base: abs, left: maxOutputEntries}
	if err := f.walk(".", 0); err != nil {
		return Outputs{}, err
	}
	f.sort()
	return f.out, nil
}

type finder struct {
	root *os.Root
	base string
	left int
	out  Outputs
}

// walk looks at one folder. Folders below the first that cannot be read are passed over: other users' files may lie about.
func (f *finder) walk(dir string, depth int) error {
	if depth > maxOutputDepth {
		f.out.Truncated = true
		return nil
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(1024)
		for _, e := range entries {
			if f.left--; f.left < 0 {
				f.out.Truncated = true
				return nil
			}
			f.look(filepath.Join(dir, e.Name()), e, depth)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", filepath.Join(f.base, dir), err)
		}
	}
}

func (f *finder) look(rel string, e fs.DirEntry, depth int) {
	path := filepath.Join(f.base, rel)
	switch name := e.Name(); {
	case e.IsDir() && uiName.MatchString(name):
		f.out.UIDirs = append(f.out.UIDirs, path)
	case e.IsDir():
		if f.walk(rel, depth+1) != nil {
			f.out.Truncated = true
		}
	case !e.Type().IsRegular():
	case strings.HasSuffix(name, ".att"):
		f.att(path, e)
	case objectName.MatchString(name):
		f.out.CodeObjects = append(f.out.CodeObjects, path)
	case strings.HasPrefix(name, "stats_ui_output_") && strings.HasSuffix(name, ".csv"):
		f.out.ATTStats = append(f.out.ATTStats, path)
	default:
		for _, kind := range outputKinds {
			if name == kind.ending || strings.HasSuffix(name, "_"+kind.ending) {
				list := kind.list(&f.out)
				*list = append(*list, path)
				return
			}
		}
	}
}

func (f *finder) att(path string, e fs.DirEntry) {
	m := attName.FindStringSubmatch(e.Name())
	info, err := e.Info()
	if m == nil || err != nil {
		return
	}
	se, _ := strconv.Atoi(m[2])
	f.out.ATTFiles = append(f.out.ATTFiles, ATTFile{Path: path, Bytes: info.Size(), Agent: number(m[1]), ShaderEngine: se, Dispatch: number(m[3])})
}

// number reads digits that a pattern has matched, at most 18.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

func (f *finder) sort() {
	for _, kind := range outputKinds {
		slices.Sort(*kind.list(&f.out))
	}
	slices.Sort(f.out.ATTStats)
	slices.SortFunc(f.out.UIDirs, byNumbers(uiName, 2, 1))
	slices.SortFunc(f.out.CodeObjects, byNumbers(objectName, 1))
	slices.SortFunc(f.out.ATTFiles, func(a, b ATTFile) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Dispatch, b.Dispatch), cmp.Compare(a.ShaderEngine, b.ShaderEngine), strings.Compare(a.Path, b.Path))
	})
}

// byNumbers compares paths by the numbers in their last part, so that dispatch 9 comes before 13.
func byNumbers(pattern *regexp.Regexp, groups ...int) func(a, b string) int {
	return func(a, b string) int {
		x, y := pattern.FindStringSubmatch(filepath.Base(a)), pattern.FindStringSubmatch(filepath.Base(b))
		for _, g := range groups {
			if c := cmp.Compare(number(x[g]), number(y[g])); c != 0 {
				return c
			}
		}
		return strings.Compare(a, b)
	}
}
