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

//go:embed flyprof-usage/SKILL.md
var usageSkill string

//go:embed references/rocprofv3-quirks.md
var quirks string

const markdown = "text/markdown"

// Documents gives every text, skills first.
func Documents() []Document {
	var docs []Document
	for _, s := range Skills() {
		docs = append(docs, Document{URI: s.URI(), Name: s.Name, Description: s.Description, MIME: markdown, Body: s.Files[0].Body})
	}
	return append(docs,
		Document{
			URI: "flyprof://reference/rocprofv3-quirks", Name: "rocprofv3-quirks", MIME: markdown, Body: quirks,
			Description: "What bites when rocprofv3 takes a thread trace: empty traces and what each looks like on disk, how launches are counted, small grids, silent defaults, versions.",
		},
		Document{
			URI: "flyprof://reference/error-codes", Name: "error-codes", MIME: markdown, Body: ErrorCodes(),
			Description: "Every error code: its class and exit code, what it means and what to do.",
		},
	)
}

// Manifest is the file that every skill has at its root.
const Manifest = "SKILL.md"

// Skill is one Agent Skill with all of its files, as it is served and installed.
type Skill struct {
	// Name is also the name of its folder.
	Name, Description string
	// Front is the front matter of its SKILL.md.
	Front map[string]string
	// Files begin with SKILL.md. In a checkout the skills share the references beside them; here each has its own.
	Files []File
}

// File is one file of a skill.
type File struct {
	// Path is relative to the skill's folder, with forward slashes.
	Path, MIME, Body string
}

// URI is that of the skill's SKILL.md.
func (s Skill) URI() string { return s.FileURI(Manifest) }

// FileURI is the URI of a file or folder of the skill.
func (s Skill) FileURI(path string) string { return "skill://" + s.Name + "/" + path }

// Skills gives the Agent Skills.
func Skills() []Skill {
	references := []File{
		{Path: "references/rocprofv3-quirks.md", MIME: markdown, Body: quirks},
		{Path: "references/error-codes.md", MIME: markdown, Body: ErrorCodes()},
	}
	return []Skill{skill(captureSkill, references...), skill(triageSkill, references...), skill(usageSkill)}
}

// skill takes name and description from the text's own front matter.
func skill(body string, further ...File) Skill {
	front := frontMatter(body)
	return Skill{
		Name: front["name"], Description: front["description"], Front: front,
		Files: append([]File{{Path: Manifest, MIME: markdown, Body: body}}, further...),
	}
}

// frontMatter gives the one-line values between the text's first two lines of "---". A test holds the skills to such values, which
// YAML reads as the same strings.
func frontMatter(body string) map[string]string {
	values, fences := map[string]string{}, 0
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "---" {
			fences++
			continue
		}
		if fences != 1 {
			break
		}
		if key, value, ok := strings.Cut(line, ": "); ok {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}
