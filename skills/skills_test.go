package skills_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/skills"
)

var update = flag.Bool("update", false, "write skills/references/error-codes.md anew")

// tools are the names that a skill may allow or call: those of the inventory and of the analysis to come.
var tools = []string{
	"flyprof_doctor", "flyprof_list", "flyprof_tile", "flyprof_capture", "flyprof_capture_status", "flyprof_capture_cancel",
	"flyprof_triage", "flyprof_read", "flyprof_bubbles", "flyprof_map", "flyprof_counters", "flyprof_report", "flyprof_diff",
}

// skillFolders gives the folders that hold a SKILL.md.
func skillFolders(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/SKILL.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no skills found: %v", err)
	}
	for i, f := range files {
		files[i] = filepath.Dir(f)
	}
	return files
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), "\r\n", "\n")
}

// frontMatter reads the plain one-line scalars of a front matter by the rules of YAML that matter here, and fails for
// anything that YAML would read otherwise.
func frontMatter(t *testing.T, text string) (map[string]string, string) {
	t.Helper()
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		t.Fatal("the text does not begin with ---")
	}
	front, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		t.Fatal("the front matter does not end")
	}
	values := map[string]string{}
	for _, line := range strings.Split(front, "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok || !regexp.MustCompile(`^[a-z-]+$`).MatchString(key) {
			t.Fatalf("no key: value in %q", line)
		}
		if strings.Contains(value, ": ") || strings.Contains(value, " #") || strings.HasSuffix(value, ":") || strings.ContainsAny(value[:1], "\"'`@%&*!|>[]{}#,?-") {
			t.Errorf("%s is no plain YAML scalar: %q", key, value)
		}
		if _, twice := values[key]; twice {
			t.Errorf("%s is given twice", key)
		}
		values[key] = value
	}
	return values, body
}

func TestSkillsAreValidAgentSkills(t *testing.T) {
	for _, folder := range skillFolders(t) {
		t.Run(folder, func(t *testing.T) {
			front, body := frontMatter(t, readText(t, folder+"/SKILL.md"))
			for key := range front {
				if !slices.Contains([]string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}, key) {
					t.Errorf("%s is no key of an Agent Skill", key)
				}
			}
			name := front["name"]
			if name != folder {
				t.Errorf("name %q differs from its folder %q", name, folder)
			}
			if len(name) > 64 || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name) {
				t.Errorf("name %q is not allowed", name)
			}
			if d := front["description"]; d == "" || utf8.RuneCountInString(d) > 1024 || strings.ContainsAny(d, "<>") {
				t.Errorf("description has %d characters, or angle brackets: %q", utf8.RuneCountInString(d), d)
			}
			if n := strings.Count(body, "\n"); n > 500 {
				t.Errorf("the body has %d lines, at most 500 are wanted", n)
			}
			// 5,000 tokens at four characters a token.
			if n := utf8.RuneCountInString(body); n > 20_000 {
				t.Errorf("the body has %d characters, at most 20,000 are wanted", n)
			}
			allowed := strings.Fields(front["allowed-tools"])
			if len(allowed) == 0 {
				t.Error("no tool is allowed")
			}
			for _, tool := range allowed {
				if short, ok := strings.CutPrefix(tool, "mcp__flyprof__"); !ok || !slices.Contains(tools, short) {
					t.Errorf("allowed-tools names %q", tool)
				}
			}
		})
	}
}

// A skill that sends its reader to a tool must allow that tool, except where it says that another host is needed.
func TestSkillsAllowTheToolsThatTheyCall(t *testing.T) {
	elsewhere := map[string][]string{"flyprof-triage": {"flyprof_capture", "flyprof_doctor"}}
	for _, folder := range skillFolders(t) {
		front, body := frontMatter(t, readText(t, folder+"/SKILL.md"))
		for _, tool := range regexp.MustCompile(`flyprof_[a-z_]+`).FindAllString(body, -1) {
			if !slices.Contains(tools, tool) {
				t.Errorf("%s names %q, which is no tool", folder, tool)
			}
			if !slices.Contains(strings.Fields(front["allowed-tools"]), "mcp__flyprof__"+tool) && !slices.Contains(elsewhere[folder], tool) {
				t.Errorf("%s calls %s and does not allow it", folder, tool)
			}
		}
	}
}

func TestQuirksAreSmallEnoughForOnePage(t *testing.T) {
	if n := len(readText(t, "references/rocprofv3-quirks.md")); n >= 20_000 {
		t.Errorf("the quirks have %d bytes; a page of flyprof_read has 20,000", n)
	}
}

// slug is the anchor that GitHub makes of a heading.
func slug(heading string) string {
	heading = strings.ToLower(strings.TrimSpace(heading))
	heading = regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(heading, "")
	return strings.ReplaceAll(heading, " ", "-")
}

func TestLinksInsideDocumentsLead(t *testing.T) {
	for _, d := range skills.Documents() {
		anchors := map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(d.Body, -1) {
			anchors[slug(m[1])]++
		}
		for anchor, n := range anchors {
			if n > 1 {
				t.Errorf("%s: %d headings share the anchor %s", d.URI, n, anchor)
			}
		}
		links := regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(d.Body, -1)
		for _, m := range links {
			if anchor, ok := strings.CutPrefix(m[1], "#"); !ok || anchors[anchor] == 0 {
				t.Errorf("%s: the link %q leads nowhere", d.URI, m[1])
			}
		}
		if strings.HasPrefix(d.URI, "flyprof://") && len(links) < 10 {
			t.Errorf("%s has %d links, so its contents are missing", d.URI, len(links))
		}
	}
}

// The anchors of the quirks are linked from elsewhere; a new section is added here, an old one is never renamed.
func TestQuirksAnchorsAreStable(t *testing.T) {
	want := []string{
		"empty-traces", "launch-counting", "small-grids", "shader-engine-mask-and-target-cu", "gpu-numbering", "job-file",
		"silent-ignores-and-defaults", "kernel-names", "decoder", "exit-codes-and-log", "cut-traces", "counters", "registers",
		"source-lines", "names-on-disk", "versions",
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(readText(t, "references/rocprofv3-quirks.md"), -1) {
		got = append(got, slug(m[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("sections are\n%v, want\n%v", got, want)
	}
}

func TestDocuments(t *testing.T) {
	docs := skills.Documents()
	uris, names := map[string]bool{}, map[string]bool{}
	for _, d := range docs {
		if d.Name == "" || d.Description == "" || d.Body == "" || d.MIME != "text/markdown" {
			t.Errorf("%s lacks name, description, body or type", d.URI)
		}
		if uris[d.URI] || names[d.Name] {
			t.Errorf("%s or %s is there twice", d.URI, d.Name)
		}
		uris[d.URI], names[d.Name] = true, true
	}
	want := append(envelope.ReferenceURIs(), "flyprof://reference/rocprofv3-quirks", "flyprof://reference/error-codes")
	for _, folder := range skillFolders(t) {
		want = append(want, "skill://"+folder+"/SKILL.md")
	}
	for _, uri := range want {
		if !uris[uri] {
			t.Errorf("%s is not served", uri)
		}
	}
	for _, d := range docs {
		for _, uri := range regexp.MustCompile("`((?:flyprof|skill)://[^`]*)`").FindAllStringSubmatch(d.Body, -1) {
			if !uris[uri[1]] {
				t.Errorf("%s points to %s, which is not served", d.URI, uri[1])
			}
		}
	}
}

// TestSkillsAreTheFolders: every folder with a SKILL.md is served, with the front matter that its file has, and complete.
func TestSkillsAreTheFolders(t *testing.T) {
	var names []string
	for _, s := range skills.Skills() {
		names = append(names, s.Name)
		front, _ := frontMatter(t, readText(t, s.Name+"/SKILL.md"))
		if !maps.Equal(front, s.Front) || s.Description != front["description"] || s.Files[0].Path != skills.Manifest {
			t.Errorf("%s: %v, want %v", s.Name, s.Front, front)
		}
		paths := map[string]bool{}
		for _, f := range s.Files {
			if paths[f.Path] || f.Body == "" || f.MIME == "" || !fs.ValidPath(f.Path) {
				t.Errorf("%s: %q is there twice, or empty", s.Name, f.Path)
			}
			paths[f.Path] = true
			if f.Path != skills.Manifest && readText(t, f.Path) != strings.ReplaceAll(f.Body, "\r\n", "\n") {
				t.Errorf("%s: %s is not the shared one", s.Name, f.Path)
			}
		}
		for _, m := range regexp.MustCompile("`(references/[^`]*)`").FindAllStringSubmatch(s.Files[0].Body, -1) {
			if !paths[m[1]] {
				t.Errorf("%s points to %s, which it has not", s.Name, m[1])
			}
		}
	}
	if folders := skillFolders(t); !slices.Equal(names, folders) {
		t.Errorf("%v are served, %v are there", names, folders)
	}
}

// TestUsageLeadsToTheOthers: the router names every other skill.
func TestUsageLeadsToTheOthers(t *testing.T) {
	text := readText(t, "flyprof-usage/SKILL.md")
	for _, folder := range skillFolders(t) {
		if !strings.Contains(text, folder) {
			t.Errorf("flyprof-usage does not name %s", folder)
		}
	}
	if n := strings.Count(text, "\n"); n > 60 {
		t.Errorf("the router has %d lines", n)
	}
}

func TestServedTextsAreTheFiles(t *testing.T) {
	for uri, file := range map[string]string{
		"skill://flyprof-capture/SKILL.md":     "flyprof-capture/SKILL.md",
		"skill://flyprof-triage/SKILL.md":      "flyprof-triage/SKILL.md",
		"skill://flyprof-usage/SKILL.md":       "flyprof-usage/SKILL.md",
		"flyprof://reference/rocprofv3-quirks": "references/rocprofv3-quirks.md",
	} {
		i := slices.IndexFunc(skills.Documents(), func(d skills.Document) bool { return d.URI == uri })
		if i < 0 || strings.ReplaceAll(skills.Documents()[i].Body, "\r\n", "\n") != readText(t, file) {
			t.Errorf("%s is not the text of %s", uri, file)
		}
	}
}

// codes are words that can only be codes of the catalogue. Other words in capitals are listed.
func TestCodesInTheSkillsExist(t *testing.T) {
	notCodes := []string{
		"HSA_CU_MASK", "HIP_VISIBLE_DEVICES", "ROCPROF_OUTPUT_FORMAT", "ROCPROF_OUTPUT_PATH", "ROCPROF_OUTPUT_FILE_NAME", "ROCPROF_",
		"ROCPROF_ATT_LIBRARY_PATH", "DECODER_STATUS_ERROR_INVALID_SHADER_DATA", "INVALID_SHADER_DATA", "VGPR_Count",
		"FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "FLYDSL_RUNTIME_CACHE_DIR", "FLYDSL_RUNTIME_ENABLE_CACHE",
	}
	named := map[string]bool{}
	for _, d := range skills.Documents() {
		if d.Name == "error-codes" {
			continue
		}
		for _, word := range regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]*\b`).FindAllString(d.Body, -1) {
			if slices.Contains(notCodes, word) {
				continue
			}
			named[word] = true
			if _, ok := envelope.Lookup(envelope.Code(word)); !ok {
				t.Errorf("%s names %s, which is no code of the catalogue", d.URI, word)
			}
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d codes are named: %v", len(named), named)
	}
}

// The capture skill must say what to do for every failure that a capture can end with.
func TestCaptureSkillCoversTheCatalogue(t *testing.T) {
	text := readText(t, "flyprof-capture/SKILL.md")
	_, table, ok := strings.Cut(text, "| `error.code` |")
	if !ok {
		t.Fatal("the table of errors is missing")
	}
	elsewhere := []envelope.Code{ // not of a capture, or clear from the class alone
		envelope.NoArtifact, envelope.NoRecommendation, envelope.RunNotFound, envelope.RunNotFinished,
		envelope.DiskFull, envelope.StoreUnwritable, envelope.FileConflict, envelope.Internal, envelope.Cancelled,
	}
	for _, row := range envelope.Catalogue() {
		in := regexp.MustCompile(`\b` + string(row.Code) + `\b`).MatchString(table)
		if !in && !slices.Contains(elsewhere, row.Code) {
			t.Errorf("the table says nothing of %s", row.Code)
		}
	}
}

func TestTriageSkillCoversTheClasses(t *testing.T) {
	text := readText(t, "flyprof-triage/SKILL.md")
	row := regexp.MustCompile(`(?m)^\| ([a-z]+) \| ([A-Z0-9_, ]+) \|`)
	seen := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		seen[m[1]] = true
		for _, code := range strings.Split(m[2], ", ") {
			if r, ok := envelope.Lookup(envelope.Code(code)); !ok || string(r.Class) != m[1] {
				t.Errorf("%s stands under class %s", code, m[1])
			}
		}
	}
	for _, r := range envelope.Catalogue() {
		if !seen[string(r.Class)] {
			t.Errorf("class %s is missing", r.Class)
		}
	}
}

func TestErrorCodesHoldTheCatalogue(t *testing.T) {
	text := skills.ErrorCodes()
	sections := strings.Split(text, "\n### ")
	rows := envelope.Catalogue()
	if len(sections)-1 != len(rows) {
		t.Fatalf("%d sections for %d codes", len(sections)-1, len(rows))
	}
	for i, row := range rows {
		section := sections[i+1]
		if !strings.HasPrefix(section, string(row.Code)+"\n") {
			t.Errorf("section %d is %.40q, want %s", i+1, section, row.Code)
		}
		for _, want := range []string{row.Meaning, row.Help, string(row.Class)} {
			if !strings.Contains(section, want) {
				t.Errorf("%s: %q is missing", row.Code, want)
			}
		}
		for _, kind := range row.Kinds {
			if !strings.Contains(section, string(kind)) {
				t.Errorf("%s: the action %s is missing", row.Code, kind)
			}
		}
	}
	// The design's exit codes, written out.
	for class, exit := range map[string]string{
		"empty": "66", "finding": "65", "unavailable": "69", "transient": "75", "config": "78", "io": "74", "internal": "70", "cancelled": "130",
	} {
		if !strings.Contains(text, "| "+class+" | "+exit+" |") {
			t.Errorf("class %s with exit code %s is missing", class, exit)
		}
	}
	for _, kind := range []string{"call_tool", "read_resource", "fix_config", "report_finding", "ask_user", "stop"} {
		if !strings.Contains(text, "| "+kind+" |") {
			t.Errorf("kind %s is not explained", kind)
		}
	}
}

func TestErrorCodesCopyIsCurrent(t *testing.T) {
	const file = "references/error-codes.md"
	if *update {
		if err := os.WriteFile(file, []byte(skills.ErrorCodes()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readText(t, file) != skills.ErrorCodes() {
		t.Errorf("%s is not what the catalogue gives: run go test ./skills -update", file)
	}
}

func TestNothingPointsOutside(t *testing.T) {
	forbidden := []string{"../shared", "/" + "work/", "github.com/", "http://", "https://"}
	check := func(name, text string) {
		for _, word := range forbidden {
			if strings.Contains(text, word) {
				t.Errorf("%s holds %q", name, word)
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(line) > 600 {
				t.Errorf("%s:%d is too long to read", name, i+1)
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			check(path, readText(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check("error-codes", skills.ErrorCodes())
}
