package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/skills"
)

const (
	// maxValues is the most that MCP lets a completion have.
	maxValues = 100
	// maxTyped is the longest beginning that is looked for, in bytes.
	maxTyped = 4096
)

// Complete picks, of values in their order, those that go on from what was typed: first those that begin with it, then those that hold
// it, whatever the case.
func Complete(values []string, typed string) *mcp.Completion {
	out := &mcp.Completion{Values: []string{}}
	if len(typed) > maxTyped {
		return out
	}
	typed = strings.ToLower(typed)
	var begin, hold []string
	for _, v := range values {
		switch low := strings.ToLower(v); {
		case strings.HasPrefix(low, typed):
			begin = append(begin, v)
		case strings.Contains(low, typed):
			hold = append(hold, v)
		}
	}
	all := append(begin, hold...)
	out.Values, out.Total, out.HasMore = append(out.Values, all[:min(len(all), maxValues)]...), len(all), len(all) > maxValues
	return out
}

// CompleteResourceArgument implements server.ResourceCompletionProvider for the variables of the templates. It reads directories and
// nothing else.
func (s *Source) CompleteResourceArgument(_ context.Context, uri string, argument mcp.CompleteArgument, given mcp.CompleteContext) (*mcp.Completion, error) {
	i := slices.IndexFunc(templates, func(t template) bool { return t.uri == uri })
	if i < 0 {
		if !strings.HasPrefix(uri, "flyprof://") && !strings.HasPrefix(uri, "skill://") {
			return Complete(nil, ""), nil // of somebody who serves resources beside these
		}
		var known []string
		for _, t := range templates {
			known = append(known, t.uri)
		}
		return nil, &wire.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("there is no template %.300q; there are: %s", uri, strings.Join(known, ", "))}
	}
	values, ok := templates[i].complete[argument.Name]
	if !ok {
		return nil, &wire.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("the template %s has no variable %.100q", uri, argument.Name)}
	}
	if values == nil {
		return Complete(nil, ""), nil // a number
	}
	return Complete(values(s, given.Arguments), argument.Value), nil
}

// chooser gives what a variable may be, the likelier first, where the other variables are as given.
type chooser func(s *Source, given map[string]string) []string

// Runs gives the ids of all runs, the newest first.
func (s *Source) Runs() []string {
	ids, err := s.Store.IDs()
	if err != nil {
		return nil
	}
	return ids
}

func chooseRun(s *Source, _ map[string]string) []string { return s.Runs() }

// chooseFile gives the files of the run, those near its root first: thousands of waves lie deepest.
func chooseFile(s *Source, given map[string]string) []string {
	files := s.FilesOf(given["run"])
	slices.SortStableFunc(files, func(a, b runs.File) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func chooseLog(s *Source, given map[string]string) []string {
	var out []string
	for _, f := range s.FilesOf(given["run"]) {
		if name, ok := strings.CutPrefix(f.Path, "logs/"); ok && !strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	return out
}

// FilesOf gives the files of a run whose names a URI can have; none where there is no such run.
func (s *Source) FilesOf(id string) []runs.File {
	files, err := s.Store.Files(id)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(files, func(f runs.File) bool { return !readable(f.Path) })
}

func chooseSkill(*Source, map[string]string) []string {
	var out []string
	for _, s := range skills.Skills() {
		out = append(out, s.Name)
	}
	return out
}

func chooseSkillFile(_ *Source, given map[string]string) []string {
	var out []string
	for _, s := range skills.Skills() {
		for _, f := range s.Files {
			if s.Name == given["skill"] {
				out = append(out, f.Path)
			}
		}
	}
	return out
}
