package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
)

// configFlag names the setting that says which file is read. A file cannot say it.
const configFlag = "config"

// maxFile bounds a configuration file in bytes. All settings with comments take a tenth of it.
const maxFile = 64 << 10

// file is a configuration file that was read.
type file struct {
	path string
	// from says how its path is known.
	from   string
	values map[string]Given
}

// source gives what the file says, and the file's own path.
func (f *file) source(s Setting) (Given, bool) {
	if f == nil {
		return Given{}, false
	}
	if s.Flag == configFlag {
		return Given{[]string{f.path}, f.from}, true
	}
	g, ok := f.values[s.Flag]
	return g, ok
}

// open reads the file that is in force: the one that is named, or the default one where it is there; nil for none. os.DevNull, or
// a name that is given empty, means none.
func open(getenv func(string) string, named ...Source) (*file, error) {
	for _, source := range named {
		if g, ok := source(setting(configFlag)); ok {
			path := g.Values[len(g.Values)-1]
			if path == "" || path == os.DevNull {
				return nil, nil
			}
			return read(getenv, path, g.From)
		}
	}
	path := DefaultPath(getenv)
	if path == "" {
		return nil, nil
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil // a home directory may be somebody else's
	}
	return read(getenv, path, FromDefault)
}

// DefaultPath is where a configuration file is looked for when none is named; empty where the environment names no such place.
func DefaultPath(getenv func(string) string) string {
	if d := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "flyprof", "config.toml")
	}
	base, sub := getenv("HOME"), ".config"
	if runtime.GOOS == "windows" {
		base, sub = getenv("APPDATA"), ""
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, sub, "flyprof", "config.toml")
}

func read(getenv func(string) string, path, from string) (*file, error) {
	unreadable := func(why string) error {
		return envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("the configuration file %s cannot be read: %s", path, why),
			Evidence: envelope.Evidence{Field: "--" + configFlag, Value: path, Allowed: fmt.Sprintf("a TOML file of at most %d bytes", maxFile), Path: path, Setting: configSetting},
		})
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(plainError(err))
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, unreadable("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(plainError(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(plainError(err))
	}
	if len(text) > maxFile {
		return nil, unreadable("it is too large")
	}
	p := parser{path: path, getenv: getenv}
	if p.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return nil, unreadable(plainError(err))
	}
	values, err := p.parse(string(text))
	return &file{path: path, from: from, values: values}, err
}

// plainError leaves out the path that an error of the file system repeats.
func plainError(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

const configSetting = "--" + configFlag + " (FLYPROF_CONFIG)"

// parser makes settings of a file's text.
type parser struct {
	// path is how the file is named to people; relative paths in it are relative to dir.
	path, dir string
	getenv    func(string) string
	md        toml.MetaData
}

func (p *parser) parse(text string) (map[string]Given, error) {
	if !Shallow(text) {
		return nil, p.fault(0, "", "", "a TOML file of plain settings", nil, "it is nested too deep")
	}
	var top map[string]toml.Primitive
	var err error
	if p.md, err = toml.Decode(text, &top); err != nil {
		line, why := 0, err.Error()
		var bad toml.ParseError
		if errors.As(err, &bad) {
			line, why = bad.Position.Line, bad.Message
		}
		return nil, p.fault(line, "", "", "TOML (https://toml.io)", nil, "it is no TOML: "+why)
	}
	values := map[string]Given{}
	keys := map[string]string{}
	for _, key := range p.md.Keys() {
		value, ok := top[key[0]]
		if !ok {
			continue
		}
		delete(top, key[0]) // a table has a key for each of its members
		flag, g, err := p.setting(key[0], value)
		if err != nil {
			return nil, err
		}
		if before, twice := keys[flag]; twice {
			return nil, p.fault(p.line(value), key[0], "", "one of the two", nil, fmt.Sprintf("%s and %s are the same setting", before, key[0]))
		}
		values[flag], keys[flag] = g, key[0]
	}
	return values, nil
}

// Shallow says whether a TOML text is nested as little as a configuration is: the time that the decoder takes grows with the square of
// the depth and more.
func Shallow(text string) bool {
	const most = 400
	if strings.Count(text, "{") > most {
		return false
	}
	for line := range strings.Lines(text) {
		if strings.Count(line, ".") > most {
			return false
		}
	}
	return true
}

// setting reads one key. Keys are the flags' names, with dashes or underscores.
func (p *parser) setting(key string, value toml.Primitive) (flag string, g Given, err error) {
	line := p.line(value)
	var names []string
	for _, s := range settings {
		if s.Flag != configFlag {
			names = append(names, s.Flag)
		}
	}
	flag = strings.ReplaceAll(key, "_", "-")
	if !slices.Contains(names, flag) {
		why := fmt.Sprintf("there is no setting %.100q", key)
		if p.md.Type(key) == "" || p.md.Type(key) == "Hash" || p.md.Type(key) == "ArrayHash" {
			why = fmt.Sprintf("there is no table %.100q", key)
		}
		if meant := near.Nearest(flag, names); meant != "" {
			why += "; did you mean " + meant + "?"
		}
		return "", g, p.fault(line, key, "", "the name of a setting", names, why)
	}
	s := setting(flag)
	var any any
	if err := p.md.PrimitiveDecode(value, &any); err != nil {
		return "", g, p.fault(line, key, "", allowed(s), nil, err.Error())
	}
	texts, ok := textsOf(s, any)
	if !ok {
		found := fmt.Sprint(any)
		return "", g, p.fault(line, key, found, allowed(s), nil, fmt.Sprintf("%s is %.100s; allowed: %s", key, found, allowed(s)))
	}
	for i := range texts {
		if s.Path {
			texts[i] = p.resolve(s, texts[i])
		}
	}
	return flag, Given{texts, p.at(line)}, nil
}

// allowed says in words what a value may be.
func allowed(s Setting) string {
	switch {
	case s.Bool:
		return "true or false"
	case s.Number:
		return "a whole number"
	case s.Multi:
		return "an array of texts"
	case s.Words:
		return "a text or an array of texts"
	case s.Address:
		return "a text or a whole number"
	case s.Optional != "":
		return "a text, true or false"
	}
	return "a text"
}

// textsOf gives a value as the command line would have it, and false for one of a wrong type.
func textsOf(s Setting, value any) ([]string, bool) {
	switch v := value.(type) {
	case string:
		return []string{v}, !s.Bool && !s.Number && !s.Multi && !strings.ContainsRune(v, 0)
	case bool:
		return []string{strconv.FormatBool(v)}, s.Bool || s.Optional != ""
	case int64:
		return []string{strconv.FormatInt(v, 10)}, s.Number || s.Address
	case []any:
		var texts []string
		for _, item := range v {
			text, ok := item.(string)
			if !ok || strings.ContainsRune(text, 0) {
				return nil, false
			}
			texts = append(texts, text)
		}
		if s.Words {
			texts = []string{strings.Join(texts, ",")}
		}
		return texts, s.Multi || s.Words
	}
	return nil, false
}

// resolve makes a path of the file absolute. ~ is the home directory: no shell has seen the text.
func (p *parser) resolve(s Setting, text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		if home := homeDir(p.getenv); home != "" {
			return filepath.Join(home, rest)
		}
	}
	return s.Absolute(p.dir, text)
}

// Absolute gives the value of a setting that is a path as one that means the same from any directory; dir is where a relative one begins.
// A program without a directory stays a name, and any other value what it is.
func (s Setting) Absolute(dir, value string) string {
	program := s.Flag == "python" || s.Flag == "rocprofv3"
	if !s.Path || value == "" || filepath.IsAbs(value) || program && filepath.Base(value) == value {
		return value
	}
	return filepath.Join(dir, value)
}

func homeDir(getenv func(string) string) string {
	if runtime.GOOS == "windows" {
		return getenv("USERPROFILE")
	}
	return getenv("HOME")
}

// errAsked makes the decoder say where a value stands.
var errAsked = errors.New("asked for its line")

type locator struct{}

func (*locator) UnmarshalTOML(any) error { return errAsked }

// line gives the line of a key, 0 where it is not known. The decoder tells it in errors only.
func (p *parser) line(value toml.Primitive) int {
	var at toml.ParseError
	if errors.As(p.md.PrimitiveDecode(value, &locator{}), &at) && at.Position.Line > 0 {
		return at.Position.Line
	}
	var members map[string]toml.Primitive // a table that is made by the name of another has no line
	if p.md.PrimitiveDecode(value, &members) != nil {
		return 0
	}
	first := 0
	for _, member := range members {
		if line := p.line(member); first == 0 || line > 0 && line < first {
			first = line
		}
	}
	return first
}

func (p *parser) at(line int) string {
	if line == 0 {
		return p.path
	}
	return p.path + ":" + strconv.Itoa(line)
}

// fault is BAD_ARGS about a place in the file.
func (p *parser) fault(line int, key, value, allowed string, names []string, why string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s: %s", p.at(line), why),
		Help:     "Correct the configuration file, or name another one with " + configSetting + ".",
		Evidence: envelope.Evidence{Field: key, Value: value, Allowed: allowed, ValidNames: names, Path: p.path, Source: p.at(line), Setting: configSetting},
	})
}
