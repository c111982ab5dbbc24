// Package skills holds the texts that teach an agent: the Agent Skills and the references that they point to. They are part of
// the binary, so that a client needs no checkout to read them.
package skills

import (
	_ "embed" // the texts
	"strings"
)

// Document is one text to serve.
type Document struct {
	// URI is where clients read it: skill://<name>/SKILL.md or flyprof://reference/<name>.
	URI string
	// Name is unique and stable.
	Name string
	// Description says in a sentence or two when to read it.
	Description string
	// MIME is the type of Body.
	MIME string
	// Body is the whole text; a skill's begins with its front matter.
	Body string
}

//go:embed flyprof-capture/SKILL.md
var captureSkill string

//go:embed flyprof-triage/SKILL.md
var triageSkill string

//go:embed references/rocprofv3-quirks.md
var quirks string

const markdown = "text/markdown"

// Documents gives every text, skills first.
func Documents() []Document {
	return []Document{
		skill(captureSkill),
		skill(triageSkill),
		{
			URI: "flyprof://reference/rocprofv3-quirks", Name: "rocprofv3-quirks", MIME: markdown, Body: quirks,
			Description: "What bites when rocprofv3 takes a thread trace: empty traces and what each looks like on disk, how launches are counted, small grids, silent defaults, versions.",
		},
		{
			URI: "flyprof://reference/error-codes", Name: "error-codes", MIME: markdown, Body: ErrorCodes(),
			Description: "Every error code: its class and exit code, what it means and what to do.",
		},
	}
}

// skill takes name and description from the text's own front matter.
func skill(body string) Document {
	name := field(body, "name")
	return Document{URI: "skill://" + name + "/SKILL.md", Name: name, Description: field(body, "description"), MIME: markdown, Body: body}
}

// field gives a one-line value of the front matter, which lies between the text's first two lines of "---"; empty where it
// is not there.
func field(body, key string) string {
	fences := 0
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "---" {
			fences++
		}
		if value, ok := strings.CutPrefix(line, key+":"); ok && fences == 1 {
			return strings.TrimSpace(value)
		}
		if fences != 1 {
			break
		}
	}
	return ""
}
