package prompts

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf16"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

//go:embed capture_kernel.md diagnose_empty_att.md explain_trace.md
var texts embed.FS

// maxQuoted is the longest value, in bytes, that is quoted in a message; what it belongs to has the rest.
const maxQuoted = 600

// write fills a prompt's text. The functions of the texts are: call, the tool call of a verb's arguments; quote, a value; json, a value
// of several members.
func (p *Prompts) write(name string, view any) (string, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"call": p.call, "quote": quote, "json": jsonText}).ParseFS(texts, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, view); err != nil {
		return "", err
	}
	return b.String(), nil
}

// quote writes a text as a JSON string in which every character can be seen, so that none of it reads as part of the message.
func quote(s string) string { return jsonText(wire.Shorten(s, maxQuoted)) }

// jsonText writes a value as JSON on one line, visibly.
func jsonText(v any) string {
	raw, err := jsontree.Marshal(v)
	if err != nil {
		return "null"
	}
	return visible(string(raw))
}

// visible escapes what JSON lets through and a reader does not see, or takes for the end of a code span.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch hi, lo := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case hi == unicode.ReplacementChar: // one unit is enough
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r == '`' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// call writes a call as its tool's name and arguments, in one code span; where the tool is not served, as what the user may run.
func (p *Prompts) call(args request.Args) string {
	w, ok := p.Served.Renderer().Render(envelope.Action{Kind: envelope.CallTool, Args: args})
	switch {
	case !ok:
		return "(nothing here does this)"
	case w.Action == envelope.CallTool:
		return "`" + w.Tool + " " + visible(string(w.Arguments)) + "`"
	case w.Argv != nil:
		return "(not served here; the user can run `" + commandLine(w.Argv) + "`)"
	}
	return "(not served here)"
}

// commandLine writes argv for a shell of POSIX, and as a list where that would not show it all.
func commandLine(argv []string) string {
	if strings.ContainsFunc(strings.Join(argv, " "), hidden) {
		return jsonText(argv)
	}
	var words []string
	for _, word := range argv {
		if strings.ContainsFunc(word, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,", r)
		}) || word == "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// compact gives a value's JSON members without those that are empty, cut to a bound; for evidence.
func compact(v any, most int) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "{}" {
		return ""
	}
	return wire.Shorten(visible(string(raw)), most)
}

// action is a next action in words.
func (p *Prompts) action(a envelope.WireAction) string {
	reason := quote(a.Reason)
	switch {
	case a.Tool != "":
		return "call `" + a.Tool + " " + visible(string(a.Arguments)) + "` - " + reason
	case a.Action == envelope.ReadResource:
		return "read " + p.call(request.Read{URI: a.URI}) + " - " + reason
	case a.Argv != nil:
		return string(a.Action) + ": the user can run `" + commandLine(a.Argv) + "` - " + reason
	}
	return string(a.Action) + ": " + reason
}
