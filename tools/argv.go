package tools

import (
	"strings"

	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// FlagName gives the command line's flag of an argument: --att-target-cu for att_target_cu.
func FlagName(jsonName string) string { return "--" + strings.ReplaceAll(jsonName, "_", "-") }

// Argv writes a call as its command line: the verb, its positional argument, then flags in the order of the struct; a
// list repeats its flag. It is nil where there is no call, or where a value is too long for a command line.
func Argv(args request.Args) []string {
	if args == nil {
		return nil
	}
	raw, err := jsontree.Marshal(args)
	if err != nil {
		return nil
	}
	tree, err := jsontree.Parse(raw, jsontree.Limits{Bytes: schemas.MaxArgs, Depth: 8})
	if err != nil || tree.Kind != jsontree.Object {
		return nil
	}
	argv := []string{program, string(args.Verb())}
	positional := ""
	for _, m := range tree.Members {
		if m.Name == Positional(args.Verb()) {
			positional = m.Value.Text
		}
	}
	late := strings.HasPrefix(positional, "-") // would be read as a flag
	if positional != "" && !late {
		argv = append(argv, positional)
	}
	for _, m := range tree.Members {
		if m.Name != Positional(args.Verb()) {
			argv = appendFlag(argv, m.Name, m.Value)
		}
	}
	if late {
		argv = append(argv, "--", positional)
	}
	for _, arg := range argv {
		if len(arg) > maxArgv || strings.ContainsRune(arg, 0) {
			return nil
		}
	}
	return argv
}

func appendFlag(argv []string, name string, value *jsontree.Node) []string {
	flag := FlagName(name)
	switch value.Kind {
	case jsontree.Bool:
		if value.Text == "true" {
			return append(argv, flag)
		}
		return append(argv, flag+"=false")
	case jsontree.Array:
		for _, item := range value.Items {
			argv = append(argv, flag+"="+item.Text)
		}
		return argv
	}
	if strings.HasPrefix(value.Text, "-") {
		return append(argv, flag+"="+value.Text)
	}
	return append(argv, flag, value.Text)
}
