package skills

import (
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// classes says what each class asks of its reader, in the order of the document.
var classes = [...]struct {
	class envelope.Class
	asks  string
}{
	{envelope.ClassEmpty, "A result, not a bug: change the request."},
	{envelope.ClassFinding, "Something about the kernel, the test or the trace: report it, do not loop."},
	{envelope.ClassUnavailable, "This host cannot do it: stop."},
	{envelope.ClassTransient, "Passing trouble: one retry."},
	{envelope.ClassConfig, "Fix what is named, then run again."},
	{envelope.ClassIO, "The disk."},
	{envelope.ClassInternal, "A bug of flyprof-mcp: report it."},
	{envelope.ClassCancelled, "Stopped on request."},
}

// kinds says what each kind of next action asks of its reader.
var kinds = [...]struct {
	kind envelope.ActionKind
	asks string
}{
	{envelope.CallTool, "send `arguments` to `tool` as they are"},
	{envelope.ReadResource, "read `uri`"},
	{envelope.FixConfig, "change a setting, an argument or the host"},
	{envelope.ReportFinding, "tell the user what was found"},
	{envelope.AskUser, "ask what cannot be known here"},
	{envelope.Stop, "do nothing more"},
}

// ErrorCodes writes the catalogue as Markdown: a table of all codes, then a section for each. skills/references/error-codes.md is a copy.
func ErrorCodes() string {
	var b strings.Builder
	b.WriteString(`# Error codes

An error is ` + "`error`" + ` of an answer whose ` + "`ok`" + ` is false. Its ` + "`code`" + ` is stable: switch on it, not on the message. ` + "`class`" + ` tells what kind of
reaction it wants; the command line exits with the exit code. ` + "`next_actions`" + ` is never empty; the first one is the most promising.

`)
	writeClasses(&b)
	writeKinds(&b)
	writeTable(&b)
	for _, row := range envelope.Catalogue() {
		writeSection(&b, row)
	}
	return b.String()
}

func writeClasses(b *strings.Builder) {
	exits := map[envelope.Class]int{}
	for _, row := range envelope.Catalogue() {
		exits[row.Class] = row.Exit
	}
	b.WriteString("## Classes\n\n| class | exit code | asks for |\n|---|---|---|\n")
	for _, c := range classes {
		fmt.Fprintf(b, "| %s | %d | %s |\n", c.class, exits[c.class], c.asks)
	}
	b.WriteString("\n")
}

func writeKinds(b *strings.Builder) {
	b.WriteString("## Kinds of next action\n\n| action | do |\n|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(b, "| %s | %s |\n", k.kind, k.asks)
	}
	b.WriteString("\n")
}

func writeTable(b *strings.Builder) {
	b.WriteString("## Codes\n\n| code | class | exit code | meaning |\n|---|---|---|---|\n")
	for _, row := range envelope.Catalogue() {
		fmt.Fprintf(b, "| [%s](#%s) | %s | %d | %s |\n", row.Code, anchor(row.Code), row.Class, row.Exit, cell(row.Meaning))
	}
}

func writeSection(b *strings.Builder, row envelope.Row) {
	names := make([]string, len(row.Kinds))
	for i, k := range row.Kinds {
		names[i] = string(k)
	}
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", row.Code, row.Meaning)
	fmt.Fprintf(b, "- What to do: %s\n", row.Help)
	fmt.Fprintf(b, "- Class: %s, exit code %d\n", row.Class, row.Exit)
	fmt.Fprintf(b, "- Next actions may be: %s\n", strings.Join(names, ", "))
}

// anchor is the link target that Markdown renderers make of a heading.
func anchor(code envelope.Code) string { return strings.ToLower(string(code)) }

// cell keeps a text inside one cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
