// Package skills holds the texts that teach an agent: the Agent Skills and the references that they point to. They are part of
// the binary, so that a client needs no checkout to read them.
package skills

import (
	"embed"
	"io/fs"
	"path"
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

// Skill is one Agent Skill (agentskills.io): a folder of its name with a SKILL.md.
type Skill struct {
	// Name and Description are of the front matter, which Front has whole.
	Name, Description string
	Front             map[string]string
	// Files are all of the folder, SKILL.md first; paths are relative to the folder, with slashes.
	Files []File
}

// File is one file of a skill.
type File struct{ Path, Body string }

// URI is where a file of the skill is read.
func (s Skill) URI(f File) string { return "skill://" + s.Name + "/" + f.Path }

const main = "SKILL.md"

//go:embed flyprof-*
var folders embed.FS

//go:embed references/rocprofv3-quirks.md
var quirks string

const markdown = "text/markdown"

// Skills gives the skills by name.
func Skills() []Skill {
	entries, err := folders.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	var out []Skill
	for _, e := range entries {
		out = append(out, read(e.Name()))
	}
	return out
}

func read(folder string) Skill {
	s := Skill{Front: map[string]string{}}
	err := fs.WalkDir(folders, folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := folders.ReadFile(name)
		f := File{Path: strings.TrimPrefix(name, folder+"/"), Body: string(body)}
		if f.Path == main {
			s.Files = append([]File{f}, s.Files...)
			return err
		}
		s.Files = append(s.Files, f)
		return err
	})
	if err != nil || len(s.Files) == 0 || s.Files[0].Path != main {
		panic("skills: " + folder + " has no " + main) // embedded, and tested
	}
	s.Front = frontMatter(s.Files[0].Body)
	s.Name, s.Description = s.Front["name"], s.Front["description"]
	return s
}

// Documents gives every text, skills first.
func Documents() []Document {
	var out []Document
	for _, s := range Skills() {
		for _, f := range s.Files {
			d := Document{URI: s.URI(f), Name: s.Name, Description: s.Description, MIME: markdown, Body: f.Body}
			if f.Path != main {
				d.Name, d.Description = s.Name+"/"+f.Path, "Part of the skill "+s.Name+"."
			}
			if path.Ext(f.Path) != ".md" {
				d.MIME = "text/plain"
			}
			out = append(out, d)
		}
	}
	return append(out,
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

// frontMatter gives the one-line values of a front matter, which lies between the text's first two lines of "---". The skills here have
// no others, which a test holds.
func frontMatter(body string) map[string]string {
	out, fences := map[string]string{}, 0
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "---" {
			if fences++; fences == 2 {
				break
			}
			continue
		}
		if key, value, ok := strings.Cut(line, ":"); ok && fences == 1 {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}
