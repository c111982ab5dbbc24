package install

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// ServerName is the key of our entry in a client's file. Clients put it before the names of tools, so it is short.
const ServerName = "flyprof"

// Entry is how a client starts the server.
type Entry struct {
	Command string
	Args    []string
}

// fields gives the entry as a client writes it.
func (c Client) fields(e Entry) []field {
	var out []field
	if c.typed {
		out = append(out, field{"type", "stdio"})
	}
	out = append(out, field{"command", e.Command}, field{"args", append([]string{}, e.Args...)})
	for _, t := range c.timeouts {
		out = append(out, field{t.name, t.value})
	}
	return out
}

// Snippet gives the entry as a whole file that has nothing else.
func (c Client) Snippet(e Entry) (string, error) {
	var text []byte
	var err error
	if c.Format == TOML {
		text, _, _, err = mergeTOML(nil, c.Key, ServerName, c.fields(e))
	} else {
		text, _, _, err = mergeJSON(nil, c.Format, c.Key, ServerName, c.fields(e))
	}
	return string(text), err
}

// Command gives the client's own command line that adds the server, nil where it has none for the scope.
func (c Client) Command(e Entry, scope string) []string {
	if c.command == nil || scope != ScopeUser {
		return nil
	}
	return append(append(slices.Clone(c.command), e.Command), e.Args...)
}

// Written says what became of a file.
type Written struct {
	// Changed is false where the entry was there as it should be.
	Changed bool
	// Backup is the file that was there before, empty where there was none or nothing was changed.
	Backup string
}

// Write puts the entry into the client's file. FILE_CONFLICT where the file cannot be understood or replaced, and, without force, where it
// has an entry that differs.
func (c Client) Write(path string, e Entry, force bool) (Written, error) {
	d, err := open(path)
	if err != nil {
		return Written{}, err
	}
	var text []byte
	var changed, differs bool
	if c.Format == TOML {
		text, changed, differs, err = mergeTOML(d.text, c.Key, ServerName, c.fields(e))
	} else {
		text, changed, differs, err = mergeJSON(d.text, c.Format, c.Key, ServerName, c.fields(e))
	}
	var bad errFormat
	switch {
	case errors.As(err, &bad):
		return Written{}, conflict(path, string(bad))
	case err != nil:
		return Written{}, err
	case !changed:
		return Written{}, nil
	case differs && !force:
		return Written{}, envelope.Build(envelope.FileConflict, envelope.Facts{
			Message:  fmt.Sprintf("%s was left as it is: it has an entry %s that says something else", path, ServerName),
			Help:     "Look at the entry, then replace what differs in it with --force.",
			Evidence: envelope.Evidence{Path: path, Field: c.Key + "." + ServerName, Setting: "--force"},
		})
	}
	backup, err := d.write(text)
	return Written{Changed: err == nil, Backup: backup}, err
}

// runOnly are the places where `go run` puts programs: a directory that it removes, and its cache (cmd/go/internal/work, cache).
var runOnly = regexp.MustCompile(`[/\\](?:go-build\d+[/\\]b\d+[/\\]exe|[0-9a-f]{2}[/\\][0-9a-f]{64}-d)[/\\][^/\\]+$`)

// Program checks that a program will be there when a client starts it. MISSING_PREREQ for one that `go run` has made.
func Program(path string) error {
	if !runOnly.MatchString(path) {
		return nil
	}
	return envelope.Build(envelope.MissingPrereq, envelope.Facts{
		Message:     "this program was started by `go run`, which keeps no file that a client could start",
		Help:        "Build it first (go build -o flyprof-mcp ./cmd/flyprof-mcp, or go install ./cmd/flyprof-mcp), then run install with that program.",
		Evidence:    envelope.Evidence{Path: strings.ToValidUTF8(path, "?"), Needed: "a program that was built or installed"},
		Suggestions: []envelope.Action{{Kind: envelope.FixConfig, Reason: "build or install the program, then run install with it"}},
	})
}
