package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The phases that a fault may be limited to, by what the profiler was asked for.
const (
	phaseDiscover = "discover"
	phaseATT      = "att"
	phasePMC      = "pmc"
)

// maxJobBytes bounds a job file.
const maxJobBytes = 4 << 20

// runProfiler is rocprofv3: it reads the command line and the job file, sets the environment of the profiler's library
// and becomes the application, as the script of rocprofiler-sdk 1.1.0 does for a single job.
func runProfiler(p *process) int {
	own, app := p.args, []string(nil)
	if i := slices.Index(p.args, "--"); i >= 0 {
		own, app = p.args[:i], p.args[i+1:]
	}
	opts, done, code := p.parseOptions(own)
	if done {
		return code
	}
	if len(app) == 0 {
		p.errf("[rocprofv3] Fatal error: No application provided")
		return 1
	}
	jobs := []values{opts}
	if input, ok := opts["input"]; ok {
		var err error
		if jobs, err = p.readJobs(input.text, opts); err != nil {
			p.errf("%v", err)
			return 1
		}
	}
	if len(jobs) == 1 {
		env, err := p.jobEnvironment(jobs[0], 1)
		if err != nil {
			p.errf("%v", err)
			return 1
		}
		return p.become(app, env)
	}
	for i, job := range jobs {
		env, err := p.jobEnvironment(job, i+1)
		if err != nil {
			p.errf("%v", err)
			return 1
		}
		if code := p.spawn(app, env); code != 0 {
			p.errf("[rocprofv3] Fatal error: Command '%v' returned non-zero exit status %d.", app, code)
			return 1
		}
	}
	return 0
}

// values are the options by argparse destination (long option, `-` -> `_`).
type values map[string]value

// value is one option's value with what Python's truthiness and joins would make of it.
type value struct {
	text   string
	list   []string
	isList bool
	isInt  bool
	isBool bool
	truthy bool
	// badItems marks a list with members that are not strings.
	badItems bool
}

func (v value) same(w value) bool { return v.text == w.text && slices.Equal(v.list, w.list) }

// join is Python's sep.join(v): a string is joined letter by letter, as a job with `output_format: csv` shows.
func (v value) join(sep string) string {
	if v.isList {
		return strings.Join(v.list, sep)
	}
	return strings.Join(strings.Split(v.text, ""), sep)
}

// parseOptions reads the command line; done means that rocprofv3 ends here with code.
func (p *process) parseOptions(args []string) (values, bool, int) {
	old := p.set.has("old_rocprof", "")
	opts := values{}
	for i := 0; i < len(args); {
		word := args[i]
		name, inline, hasInline := strings.Cut(word, "=")
		o, ok := findOption(name)
		if !ok || (old && o.since70) {
			p.errf("usage: rocprofv3 [options] -- <application> [application options]")
			p.errf("rocprofv3: error: unrecognized arguments: %s", word)
			return nil, true, 2
		}
		i++
		var given []string
		if hasInline {
			given = []string{inline}
		} else {
			for i < len(args) && len(given) < o.most() && (!strings.HasPrefix(args[i], "-") || isNumber(args[i])) {
				if o.kind == flagOption && !isTruthWord(args[i]) {
					break
				}
				given = append(given, args[i])
				i++
			}
		}
		switch o.dest {
		case "help":
			fmt.Fprint(p.stdout, helpText(old))
			return nil, true, 0
		case "version":
			fmt.Fprint(p.stdout, versionText(p.set.Arch))
			return nil, true, 0
		}
		v, err := o.value(given)
		if err != nil {
			p.errf("rocprofv3: error: argument %s: %v", name, err)
			return nil, true, 2
		}
		opts[o.dest] = v
	}
	return opts, false, 0
}

// readJobs reads a job file. Only data["jobs"] counts; unknown keys of a job are ignored without a word.
func (p *process) readJobs(path string, opts values) ([]values, error) {
	if strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") {
		return nil, errors.New("[rocprofv3] Fatal error: YAML package is not installed. Run '/usr/bin/python3 -m pip install pyyaml' or use JSON or text format")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, traceback("FileNotFoundError", "[Errno 2] No such file or directory: '%s'", path)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJobBytes+1))
	if err != nil || len(data) > maxJobBytes {
		return nil, traceback("OSError", "cannot read '%s'", path)
	}
	var file struct {
		Jobs *[]map[string]json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, traceback("json.decoder.JSONDecodeError", "%v", err)
	}
	if file.Jobs == nil {
		return nil, traceback("KeyError", "'jobs'")
	}
	jobs := make([]values, 0, len(*file.Jobs))
	for _, raw := range *file.Jobs {
		job := values{"from_input": {truthy: true}}
		for key, text := range raw {
			v, set, err := jobValue(text)
			if err != nil {
				return nil, traceback("json.decoder.JSONDecodeError", "%v", err)
			}
			if key == "pmc_groups" {
				v = counterGroups(text)
			}
			if !knownKey(key) || !set {
				continue
			}
			job[key] = v
		}
		for key, v := range opts {
			if w, both := job[key]; both && !w.same(v) {
				return nil, traceback("RuntimeError", "Option '%s' has conflicting values: %s vs %s", key, v.show(), w.show())
			}
			job[key] = v
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// knownKey says whether a job may have the key: a long option, or one of those that only a file has.
func knownKey(key string) bool {
	if _, known := findOption("--" + strings.ReplaceAll(key, "_", "-")); known {
		return true
	}
	return slices.ContainsFunc(options, func(o option) bool { return o.long == "" && o.dest == key })
}

// counterGroups reads pmc_groups, one line for each group as the script writes them; what is no list of lists has no groups.
func counterGroups(raw json.RawMessage) value {
	var groups [][]string
	if json.Unmarshal(raw, &groups) != nil {
		return value{}
	}
	v := value{isList: true, truthy: len(groups) > 0}
	for _, g := range groups {
		v.list = append(v.list, "pmc: "+strings.Join(g, " "))
	}
	return v
}

func (v value) show() string {
	if v.isList {
		return fmt.Sprintf("%q", v.list)
	}
	return v.text
}

// jobValue reads a job's value as Python would see it; set is false for null.
func jobValue(raw json.RawMessage) (value, bool, error) {
	var s string
	var b bool
	var list []json.RawMessage
	switch {
	case string(raw) == "null":
		return value{}, false, nil
	case json.Unmarshal(raw, &s) == nil:
		return value{text: s, truthy: s != ""}, true, nil
	case json.Unmarshal(raw, &b) == nil:
		return value{text: strconv.FormatBool(b), isBool: true, truthy: b}, true, nil
	case json.Unmarshal(raw, &list) == nil:
		v := value{isList: true, truthy: len(list) > 0}
		for _, item := range list {
			var word string
			if json.Unmarshal(item, &word) != nil {
				word, v.badItems = string(item), true
			}
			v.list = append(v.list, word)
		}
		return v, true, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return value{}, false, fmt.Errorf("unexpected value %.40q", raw)
	}
	return value{text: string(raw), isInt: true, truthy: n != 0}, true, nil
}

// jobEnvironment gives the environment of the application for one job; pass counts the jobs from 1.
func (p *process) jobEnvironment(job values, pass int) (environment, error) {
	env := newEnvironment(p.env.list())
	for _, o := range options {
		v, ok := job[o.dest]
		if !ok || o.env == "" || (!v.truthy && !o.zero) {
			continue
		}
		if o.kind == flagOption {
			// A quoted "false" is a true string to Python: it is passed on as it stands.
			if v.isBool {
				env.set(o.env, "1")
			} else {
				env.set(o.env, v.text)
			}
			continue
		}
		text, err := o.render(v)
		if err != nil {
			return env, err
		}
		env.set(o.env, text)
	}
	if format, ok := job["output_format"]; !ok || !format.truthy {
		// csv until ROCm 6.4, rocpd (a database and no CSV at all) since 7.0.
		env.set("ROCPROF_OUTPUT_FORMAT", "rocpd")
		if p.set.has("old_rocprof", "") {
			env.set("ROCPROF_OUTPUT_FORMAT", "csv")
		}
	}
	if job["pmc"].truthy && job["pmc_groups"].truthy {
		return env, saidf("[rocprofv3] Fatal error: Cannot specify both --pmc and (input file) pmc_groups")
	}
	if job["pmc"].truthy || job["pmc_groups"].truthy {
		env.set("ROCPROF_COUNTER_COLLECTION", "1")
		if dir := env.get("ROCPROF_OUTPUT_PATH"); job["from_input"].truthy {
			env.set("ROCPROF_OUTPUT_PATH", filepath.Join(dir, "pass_"+strconv.Itoa(pass)))
		}
	}
	if job["advanced_thread_trace"].truthy || job["att"].truthy {
		if p.set.has("old_rocprof", "") {
			// ROCm 6.4 knows none of the keys: nothing is traced and nothing is said.
			for name := range env.values {
				if strings.HasPrefix(name, "ROCPROF_ATT") || name == "ROCPROF_ADVANCED_THREAD_TRACE" {
					delete(env.values, name)
				}
			}
			return env, nil
		}
		env.set("ROCPROF_ADVANCED_THREAD_TRACE", "1")
		dir, err := p.findDecoder(job["att_library_path"])
		if err != nil {
			return env, err
		}
		env.set("ROCPROF_ATT_LIBRARY_PATH", dir)
	}
	return env, nil
}

// findDecoder gives the directory of the trace decoder. The simulated host has one where ROCm puts it; directories that
// the job names are searched as the script searches them: recursively, for a name that contains the library's.
func (p *process) findDecoder(v value) (string, error) {
	const library = "librocprof-trace-decoder.so"
	dirs := []string{p.env.get("LD_LIBRARY_PATH"), "/opt/rocm/lib"}
	missing := p.set.has("decoder_missing", phaseATT)
	if v.truthy {
		if dirs = v.list; !v.isList {
			dirs = strings.Split(v.text, "")
		}
		missing = true
		for _, dir := range dirs {
			seen := 0
			found := ""
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if seen++; err != nil || seen > 20000 {
					return fs.SkipAll
				}
				if !d.IsDir() && strings.Contains(d.Name(), library) {
					found = filepath.Dir(path)
					return fs.SkipAll
				}
				return nil
			})
			if found != "" && !p.set.has("decoder_missing", phaseATT) {
				return found, nil
			}
		}
	}
	if missing {
		return "", fmt.Errorf("[rocprofv3] Fatal error: rocprof-trace-decoder library path not found in ['%s']", strings.Join(dirs, "', '"))
	}
	return "/opt/rocm/lib", nil
}

// become replaces this process with the application where the system can do that and the streams are the process's own.
func (p *process) become(app []string, env environment) int {
	path, err := exec.LookPath(app[0])
	if err != nil {
		p.errf("%v", traceback("FileNotFoundError", "[Errno 2] No such file or directory: '%s'", app[0]))
		return 1
	}
	if p.stdout == io.Writer(os.Stdout) && p.stderr == io.Writer(os.Stderr) {
		if err := replaceProcess(path, app, env.list()); !errors.Is(err, errors.ErrUnsupported) {
			p.errf("%v", traceback("OSError", "%v: '%s'", err, app[0]))
			return 1
		}
	}
	return p.spawn(app, env)
}

// spawn runs the application as a child and gives its exit code, 128 plus the number for a signal.
func (p *process) spawn(app []string, env environment) int {
	cmd := exec.Command(app[0], app[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env.list(), p.stdin, p.stdout, p.stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if code := exit.ExitCode(); code >= 0 {
			return code
		}
		return 128 + signalNumber(exit)
	}
	p.errf("%v", traceback("FileNotFoundError", "%v", err))
	return 1
}

// traceback is an uncaught Python exception as the script's own interpreter prints it.
func traceback(kind, format string, a ...any) error {
	return saidf("Traceback (most recent call last):\n  File \"/opt/rocm/bin/rocprofv3\", line 1860, in <module>\n    ec = main(sys.argv[1:])\n%s: %s", kind, fmt.Sprintf(format, a...))
}
