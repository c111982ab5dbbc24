package sim

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// snapshot is a copy of a source file in a dispatch directory.
type snapshot struct {
	path string // as code.json's Source has it
	name string // source_<n>_<base>
	text []byte
}

// sourceLines maps an instruction's tag to "file:line"; empty without debug info.
type sourceLines struct {
	lines     map[string]string
	fallback  string
	snapshots []snapshot
}

// of gives the Source column for a tag.
func (l sourceLines) of(tag string) string {
	if s, ok := l.lines[tag]; ok {
		return s
	}
	return l.fallback
}

// tagWords are the words by which the line of a kernel's source is found that an instruction belongs to.
var tagWords = map[string][]string{
	"index":   {"block_idx", "thread_idx", "bid", "tid"},
	"load":    {"load("},
	"max":     {"max"},
	"exp":     {"exp"},
	"sum":     {"sum", "square"},
	"scale":   {"rsqrt", "rcp", "scale"},
	"weight":  {"weight", "gamma"},
	"store":   {"store("},
	"mma":     {"mma("},
	"lds":     {"shared_load", "lds"},
	"stage":   {"shared_store", "stage"},
	"barrier": {"barrier("},
	"loop":    {"range("},
	"init":    {"zeros", "acc"},
	"hist":    {"histogram", "atomic_add"},
	"scan":    {"scan", "prefix"},
}

// libraryTags are instructions that the DSL's own helpers emit: their Source is inside the flydsl package.
var libraryTags = map[string]string{"args": "def kernel_argument", "store": "def store"}

const maxSnapshots = 16

// sources reads the kernel's file and finds a line for each tag. A compiler without FLYDSL_DEBUG_ENABLE_DEBUG_INFO leaves
// no lines, and then there is nothing to copy.
func (s *session) sources(o *kernelObject) sourceLines {
	l := sourceLines{lines: map[string]string{}}
	if !s.env.truth("FLYDSL_DEBUG_ENABLE_DEBUG_INFO") || o.source.path == "" {
		return l
	}
	text, err := readBounded(o.source.path)
	if err != nil {
		return l
	}
	path := filepath.ToSlash(o.source.path)
	body, start := functionBody(strings.Split(text, "\n"), o.source.function)
	l.fallback = fmt.Sprintf("%s:%d", path, start)
	for tag, words := range tagWords {
		if at := findLine(body, words...); at >= 0 {
			l.lines[tag] = fmt.Sprintf("%s:%d", path, start+at)
		}
	}
	l.add(path, text)
	library := filepath.ToSlash(filepath.Join(o.source.root, "build-fly", "python_packages", "flydsl", "expr", "primitive.py"))
	if helper, err := readBounded(filepath.FromSlash(library)); err == nil {
		lines := strings.Split(helper, "\n")
		for tag, word := range libraryTags {
			at := findLine(lines, word)
			if at < 0 {
				continue
			}
			inner := fmt.Sprintf("%s:%d", library, at+2)
			if outer, ok := l.lines[tag]; ok {
				inner += " -> " + outer
			}
			l.lines[tag] = inner
		}
		l.add(library, helper)
	}
	return l
}

func (l *sourceLines) add(path, text string) {
	if len(l.snapshots) < maxSnapshots {
		name := fmt.Sprintf("source_%d_%s", len(l.snapshots), filepath.Base(path))
		l.snapshots = append(l.snapshots, snapshot{path, name, []byte(text)})
	}
}

// functionBody gives the lines of a def and the number (from 1) of the first; the whole file where there is no such def.
func functionBody(lines []string, function string) ([]string, int) {
	def := regexp.MustCompile(`^(\s*)def ` + regexp.QuoteMeta(function) + `\b`)
	for i, line := range lines {
		m := def.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for j := i + 1; j < len(lines); j++ {
			trimmed := strings.TrimLeft(lines[j], " \t")
			if trimmed != "" && !strings.HasPrefix(trimmed, ")") && len(lines[j])-len(trimmed) <= len(m[1]) {
				return lines[i:j], i + 1
			}
		}
		return lines[i:], i + 1
	}
	return lines, 1
}

// findLine gives the index of the first line of code with one of the words, past the def; -1 for none.
func findLine(lines []string, words ...string) int {
	for _, word := range words {
		for i, line := range lines {
			if strings.Contains(line, word) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				return i
			}
		}
	}
	return -1
}

// snapshotTree nests the copies by path component, "/" first.
func snapshotTree(list []snapshot) []byte {
	root := map[string]any{}
	for _, s := range list {
		at := root
		parts := strings.Split(strings.Trim(s.path, "/"), "/")
		if strings.HasPrefix(s.path, "/") {
			parts = append([]string{"/"}, parts...)
		}
		for _, dir := range parts[:len(parts)-1] {
			next, ok := at[dir].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[dir] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = s.name
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil
	}
	return text
}
