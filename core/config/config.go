// Package config resolves the settings once: flags, then environment, then the configuration file, then defaults.
package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// Setting is one setting: a flag, an environment variable and a key of the configuration file that mean the same.
type Setting struct {
	// Flag is the name without dashes, which is the key too; Env the variable.
	Flag, Env string
	// Default is the value where none is given; empty means none, or one that the program works out.
	Default string
	// Bool marks flags that take no value; Optional is the value of a flag that is given without one (such as --simulate).
	Bool     bool
	Optional string
	// Multi marks flags that may be given several times; the variable separates values with the list separator of the OS.
	Multi bool
	// Words marks names separated by commas, Number whole numbers, and Address a text that may be a number; they are all given as
	// text on the command line.
	Words, Number, Address bool
	// Path marks files and directories: in a file, a relative one is relative to the file.
	Path bool
	Help string
}

// settings is the table. A new setting is a new row, and a field of Config that Resolve fills.
var settings = []Setting{
	{Flag: configFlag, Env: "FLYPROF_CONFIG", Path: true, Help: "configuration file in TOML whose keys are these flags (default: $XDG_CONFIG_HOME/flyprof/config.toml, ~/.config/flyprof/config.toml)"},
	{Flag: "worktree", Env: "FLYPROF_WORKTREE", Path: true, Help: "FlyDSL checkout to capture from"},
	{Flag: "python", Env: "FLYPROF_PYTHON", Path: true, Help: "Python interpreter that runs the tests (default: $VIRTUAL_ENV, the worktree's .venv, /opt/venv, python3)"},
	{Flag: "rocprofv3", Env: "FLYPROF_ROCPROFV3", Path: true, Help: "rocprofv3 program (default: PATH, $ROCM_PATH/bin, /opt/rocm/bin)"},
	{Flag: "att-library-path", Env: "FLYPROF_ATT_LIBRARY_PATH", Multi: true, Path: true, Help: "directory of librocprof-trace-decoder.so"},
	{Flag: "runs-dir", Env: "FLYPROF_RUNS_DIR", Path: true, Help: "where runs are kept (default $XDG_DATA_HOME/flyprof/runs)"},
	{Flag: "recipes", Env: "FLYPROF_RECIPES", Path: true, Help: "recipes.json with curated invocations"},
	{Flag: "gpu", Env: "FLYPROF_GPU", Default: "0", Number: true, Help: "default GPU index inside the inherited visible-devices mask"},
	{Flag: "allow-path", Env: "FLYPROF_ALLOW_PATH", Multi: true, Path: true, Help: "further directory that worktree, cwd and path arguments may name"},
	{Flag: "allow-any-invocation", Env: "FLYPROF_ALLOW_ANY_INVOCATION", Bool: true, Help: "let an invocation run any program, with any variables and arguments (default: python or pytest on a script of the worktree or cwd); there is no shell either way"},
	{Flag: "pass-env", Env: "FLYPROF_PASS_ENV", Words: true, Help: "further variables of the server's environment that tests get, separated by commas; NAME* for all that begin so"},
	{Flag: "toolsets", Env: "FLYPROF_TOOLSETS", Default: "all", Words: true, Help: "toolsets to serve: capture, analyze, all"},
	{Flag: "tools", Env: "FLYPROF_TOOLS", Words: true, Help: "serve only these tools of the toolsets, separated by commas"},
	{Flag: "exclude-tools", Env: "FLYPROF_EXCLUDE_TOOLS", Words: true, Help: "tools that are not served, separated by commas"},
	{Flag: "read-only", Env: "FLYPROF_READ_ONLY", Bool: true, Help: "serve nothing that starts or stops a process"},
	{Flag: "keep-runs", Env: "FLYPROF_KEEP_RUNS", Bool: true, Help: "let runs finish when the server goes away (default: they are cancelled)"},
	{Flag: "http", Env: "FLYPROF_HTTP", Address: true, Help: "serve over HTTP at this address in place of stdio: a port, or host:port; a port alone is bound to 127.0.0.1"},
	{Flag: "http-token-file", Env: "FLYPROF_HTTP_TOKEN_FILE", Path: true, Help: "file with the bearer token, readable by its owner only (or the token itself in FLYPROF_HTTP_TOKEN; default: one is made and kept in the runs directory)"},
	{Flag: "http-allow-host", Env: "FLYPROF_HTTP_ALLOW_HOST", Multi: true, Help: "further name that the Host header may have"},
	{Flag: "http-allow-origin", Env: "FLYPROF_HTTP_ALLOW_ORIGIN", Multi: true, Help: "further origin that a browser may send, such as https://tools.example"},
	{Flag: "http-cert", Env: "FLYPROF_HTTP_CERT", Path: true, Help: "certificate file (PEM) to serve HTTPS with"},
	{Flag: "http-key", Env: "FLYPROF_HTTP_KEY", Path: true, Help: "key file (PEM) of the certificate"},
	{Flag: "lock-dir", Env: "FLYPROF_LOCK_DIR", Path: true, Help: "where the locks of GPUs are, shared by all users of the host (default /run/lock/flyprof)"},
	{Flag: "gpu-in-use", Env: "FLYPROF_GPU_IN_USE", Default: "warn", Help: "what to do when the GPU is busy with something else before a capture: warn, or refuse"},
	{Flag: "stop-grace", Env: "FLYPROF_STOP_GRACE", Default: "60", Number: true, Help: "seconds between SIGTERM and SIGKILL when a run is stopped"},
	{Flag: "log-level", Env: "FLYPROF_LOG_LEVEL", Default: "info", Help: "debug, info, warn or error"},
	{Flag: "log-file", Env: "FLYPROF_LOG_FILE", Path: true, Help: "write the log to this file in place of standard error"},
	{Flag: "simulate", Env: "FLYPROF_SIMULATE", Optional: "gfx950", Help: "use the simulated GPU: gfx950 or gfx942"},
	{Flag: "replay", Env: "FLYPROF_REPLAY", Path: true, Help: "simulated GPU: hand out this recorded ui_output directory"},
	{Flag: "fault", Env: "FLYPROF_FAULT", Words: true, Help: "simulated GPU: faults by name, separated by commas"},
	{Flag: "seed", Env: "FLYPROF_SEED", Default: "1", Number: true, Help: "simulated GPU: the same seed gives the same run"},
}

// Settings gives the table of all settings.
func Settings() []Setting { return append([]Setting(nil), settings...) }

// Config is what is in force.
type Config struct {
	// Config is the configuration file that was read; empty where there is none.
	Config         string
	Worktree       string
	Python         string
	Rocprofv3      string
	ATTLibraryPath []string
	RunsDir        string
	Recipes        string
	GPU            int
	AllowPath      []string
	// AllowAnyInvocation lifts what an invocation is confined to.
	AllowAnyInvocation bool
	// PassEnv are names of variables; one that ends in * stands for all that begin so.
	PassEnv         []string
	Toolsets        []string
	Tools           []string
	ExcludeTools    []string
	ReadOnly        bool
	KeepRuns        bool
	HTTP            string
	HTTPTokenFile   string
	HTTPAllowHost   []string
	HTTPAllowOrigin []string
	HTTPCert        string
	HTTPKey         string
	LockDir         string
	// GPUInUse is "warn" or "refuse".
	GPUInUse string
	// StopGraceS is in seconds.
	StopGraceS int
	LogLevel   string
	LogFile    string
	Simulate   string
	Replay     string
	Fault      string
	Seed       uint64

	given map[string]Given
}

// Where a value is from; one of a configuration file has FILE:LINE there.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromDefault     = "default"
)

// Given is what one place says of a setting.
type Given struct {
	Values []string
	// From names the place.
	From string
}

// Source gives what one place says of a setting, and whether it says anything.
type Source func(s Setting) (Given, bool)

// FromEnv reads settings from environment variables. An empty variable counts as not set.
func FromEnv(getenv func(string) string) Source {
	return func(s Setting) (Given, bool) {
		v := getenv(s.Env)
		if v == "" {
			return Given{}, false
		}
		if s.Multi {
			return Given{filepath.SplitList(v), FromEnvironment}, true
		}
		return Given{[]string{v}, FromEnvironment}, true
	}
}

// Load reads the configuration file that is in force and resolves the settings: flags, then environment, then the file, then
// defaults. BAD_ARGS for a file that cannot be read or says what no setting can be.
func Load(getenv func(string) string, flags Source) (Config, error) {
	env := FromEnv(getenv)
	file, err := open(getenv, flags, env)
	if err != nil {
		return Config{}, err
	}
	return Resolve(getenv, flags, env, file.source)
}

// Resolve takes each setting from the first source that has it. BAD_ARGS names the flag, the value and what is allowed.
func Resolve(getenv func(string) string, sources ...Source) (Config, error) {
	r := resolver{sources: sources, given: map[string]Given{}}
	c := Config{
		Config: r.one(configFlag), Worktree: r.one("worktree"), Python: r.one("python"), Rocprofv3: r.one("rocprofv3"), ATTLibraryPath: r.many("att-library-path"),
		RunsDir: r.one("runs-dir"), Recipes: r.one("recipes"), GPU: r.number("gpu", 0, 255), AllowPath: r.many("allow-path"),
		AllowAnyInvocation: r.boolean("allow-any-invocation"), PassEnv: r.words("pass-env"),
		Toolsets: r.words("toolsets"), Tools: r.words("tools"), ExcludeTools: r.words("exclude-tools"), ReadOnly: r.boolean("read-only"), KeepRuns: r.boolean("keep-runs"), LockDir: r.one("lock-dir"),
		HTTP: r.one("http"), HTTPTokenFile: r.one("http-token-file"), HTTPAllowHost: r.many("http-allow-host"), HTTPAllowOrigin: r.many("http-allow-origin"),
		HTTPCert: r.one("http-cert"), HTTPKey: r.one("http-key"),
		GPUInUse:   r.oneOf("gpu-in-use", "warn", "refuse"),
		StopGraceS: r.number("stop-grace", 0, 3600), LogLevel: r.oneOf("log-level", "debug", "info", "warn", "error"), LogFile: r.one("log-file"),
		Simulate: r.simulate(), Replay: r.one("replay"), Fault: r.one("fault"), Seed: uint64(r.number("seed", 0, 1<<53)),
	}
	for _, t := range c.Toolsets {
		if t != "all" && t != "capture" && t != "analyze" {
			r.bad("toolsets", t, "capture, analyze, all, separated by commas")
		}
	}
	for _, name := range c.PassEnv {
		if !variable.MatchString(name) {
			r.bad("pass-env", name, "names of variables, separated by commas; the last letter may be * for all that begin so")
		}
	}
	if len(c.Toolsets) == 0 {
		r.bad("toolsets", "", "capture, analyze, all, separated by commas")
	}
	for _, implied := range []struct{ by, value string }{{"replay", c.Replay}, {"fault", c.Fault}} {
		if c.Simulate == "" && implied.value != "" {
			c.Simulate = defaultArch
			r.given["simulate"] = Given{[]string{c.Simulate}, r.given[implied.by].From}
		}
	}
	if c.RunsDir == "" {
		c.RunsDir = defaultRunsDir(getenv)
		r.given["runs-dir"] = Given{[]string{c.RunsDir}, FromDefault}
	}
	if c.RunsDir == "" {
		r.bad("runs-dir", "", "a directory: neither XDG_DATA_HOME nor HOME is set, so there is no default")
	}
	c.given = r.given
	return c, r.err
}

// InForce is a setting with the value that is in force.
type InForce struct {
	Setting
	Given
}

// InForce lists every setting with its value and where that is from. A setting without a value has none.
func (c Config) InForce() []InForce {
	out := make([]InForce, len(settings))
	for i, s := range settings {
		out[i] = InForce{s, c.given[s.Flag]}
	}
	return out
}

// variable is a name as --pass-env takes it: an environment may have any that holds no =.
var variable = regexp.MustCompile(`^[^=*\s]+\*?$`)

func defaultRunsDir(getenv func(string) string) string {
	if d := getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "flyprof", "runs")
	}
	home, sub := getenv("HOME"), ".local/share"
	if runtime.GOOS == "windows" {
		home, sub = getenv("LOCALAPPDATA"), ""
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(sub), "flyprof", "runs")
}

type resolver struct {
	sources []Source
	given   map[string]Given
	err     error
}

func (r *resolver) bad(flag, value, allowed string) {
	if r.err != nil {
		return
	}
	s := setting(flag)
	place, from := "", r.given[flag].From
	switch from {
	case FromFlag, FromEnvironment, FromDefault, "":
		from = ""
	default:
		place = from + ": "
	}
	r.err = envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s--%s (%s) is %q; allowed: %s", place, s.Flag, s.Env, value, allowed),
		Evidence: envelope.Evidence{Field: "--" + s.Flag, Value: value, Allowed: allowed, Setting: "--" + s.Flag + " (" + s.Env + ")", Source: from},
	})
}

func setting(flag string) Setting {
	for _, s := range settings {
		if s.Flag == flag {
			return s
		}
	}
	panic("config: no setting " + flag)
}

// many gives the values of a setting, and notes where they are from.
func (r *resolver) many(flag string) []string {
	s := setting(flag)
	for _, source := range r.sources {
		if g, ok := source(s); ok {
			r.given[flag] = g
			return g.Values
		}
	}
	g := Given{From: FromDefault}
	if s.Default != "" {
		g.Values = []string{s.Default}
	}
	r.given[flag] = g
	return g.Values
}

// means notes what a value stands for.
func (r *resolver) means(flag, value string) {
	r.given[flag] = Given{[]string{value}, r.given[flag].From}
}

func (r *resolver) one(flag string) string {
	v := r.many(flag)
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

func (r *resolver) words(flag string) []string {
	var out []string
	for word := range strings.SplitSeq(r.one(flag), ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

func (r *resolver) number(flag string, least, most int) int {
	text := r.one(flag)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		r.bad(flag, text, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n
}

func (r *resolver) boolean(flag string) bool {
	switch v := r.one(flag); strings.ToLower(v) {
	case "", "0", "false", "no", "off":
		r.means(flag, "false")
		return false
	case "1", "true", "yes", "on":
		r.means(flag, "true")
		return true
	default:
		r.bad(flag, v, "true or false")
		return false
	}
}

func (r *resolver) oneOf(flag string, allowed ...string) string {
	v := r.one(flag)
	if !slices.Contains(allowed, v) {
		r.bad(flag, v, strings.Join(allowed, ", "))
	}
	return v
}

const defaultArch = "gfx950"

// simulate takes an architecture, or a truth value: FLYPROF_SIMULATE=1 means the default one.
func (r *resolver) simulate() string {
	switch v := r.one("simulate"); v {
	case "gfx950", "gfx942":
		return v
	case "", "0", "false", "no":
		r.given["simulate"] = Given{From: r.given["simulate"].From}
		return ""
	case "1", "true", "yes":
		r.means("simulate", defaultArch)
		return defaultArch
	default:
		r.bad("simulate", v, "gfx950 or gfx942")
		return ""
	}
}
