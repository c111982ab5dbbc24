package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/skills"
)

func skill(name string, files ...string) skills.Skill {
	s := skills.Skill{Name: name}
	for i := 0; i < len(files); i += 2 {
		s.Files = append(s.Files, skills.File{Path: files[i], Body: files[i+1]})
	}
	return s
}

// states gives "path state" of each file.
func states(files []SkillFile) string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path+" "+f.State)
	}
	return strings.Join(out, ", ")
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSkillsOverTime: installed, brought up to date, changed by somebody, replaced by force.
func TestSkillsOverTime(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, ".claude", "skills")
	one := []skills.Skill{skill("flyprof-a", "SKILL.md", "a1", "references/x.md", "x1"), skill("flyprof-b", "SKILL.md", "b1")}
	two := []skills.Skill{skill("flyprof-a", "SKILL.md", "a2"), skill("flyprof-b", "SKILL.md", "b2"), skill("flyprof-c", "SKILL.md", "c2")}
	mine := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := func(list []skills.Skill, force bool, want string, left ...string) {
		t.Helper()
		got, err := Skills(base, SkillsDir, list, force)
		if states(got) != want {
			t.Errorf("%s, want %s", states(got), want)
		}
		if len(left) == 0 {
			if err != nil {
				t.Errorf("%v", err)
			}
			return
		}
		if e := envelope.As(err); e.Code != envelope.FileConflict || !slices.Equal(e.Evidence.LookedAt, left) || !strings.Contains(e.Message, left[0]) {
			t.Errorf("%v, want %v left", err, left)
		}
	}
	install(one, false, "flyprof-a/SKILL.md new, flyprof-a/references/x.md new, flyprof-b/SKILL.md new")
	install(one, false, "flyprof-a/SKILL.md unchanged, flyprof-a/references/x.md unchanged, flyprof-b/SKILL.md unchanged")
	mine("flyprof-b/SKILL.md", "mine")
	mine("flyprof-b/notes.md", "my notes")
	install(two, false, "flyprof-a/SKILL.md updated, flyprof-a/references/x.md removed, flyprof-b/SKILL.md changed, flyprof-c/SKILL.md new", "flyprof-b/SKILL.md")
	if got := contents(t, dir); got["flyprof-b/SKILL.md"] != "mine" || got["flyprof-a/SKILL.md"] != "a2" {
		t.Errorf("%v", got)
	}
	install(two, false, "flyprof-a/SKILL.md unchanged, flyprof-b/SKILL.md changed, flyprof-c/SKILL.md unchanged", "flyprof-b/SKILL.md")
	install(two, true, "flyprof-a/SKILL.md unchanged, flyprof-b/SKILL.md updated, flyprof-c/SKILL.md unchanged")
	got := contents(t, dir)
	var m manifest
	if err := json.Unmarshal([]byte(got[manifestName]), &m); err != nil || len(m.Files) != 3 || m.Files["flyprof-b/SKILL.md"] != hash([]byte("b2")) {
		t.Errorf("%v: %s", err, got[manifestName])
	}
	delete(got, manifestName)
	if len(got) != 4 || got["flyprof-b/SKILL.md"] != "b2" || got["flyprof-b/notes.md"] != "my notes" {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "flyprof-a", "references")); err == nil {
		t.Error("an empty folder of an earlier version is left")
	}
	// A file that somebody else put there before us is not ours to replace.
	mine("flyprof-c/SKILL.md", "c2")
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil {
		t.Fatal(err)
	}
	mine("flyprof-a/SKILL.md", "a0")
	install(two, false, "flyprof-a/SKILL.md changed, flyprof-b/SKILL.md unchanged, flyprof-c/SKILL.md unchanged", "flyprof-a/SKILL.md")
}

// TestSkillsAndLinks: no link leads out, not even by force, and a record with names from outside removes nothing.
func TestSkillsAndLinks(t *testing.T) {
	t.Parallel()
	base, away := t.TempDir(), t.TempDir()
	list := []skills.Skill{skill("flyprof-a", "SKILL.md", "a"), skill("flyprof-b", "SKILL.md", "b")}
	victim := filepath.Join(away, "SKILL.md")
	if err := os.WriteFile(victim, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, ".claude", "skills")
	if err := os.MkdirAll(filepath.Join(dir, "flyprof-b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(dir, "flyprof-a")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "flyprof-b", "SKILL.md")); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(manifest{Files: map[string]string{"../../../" + filepath.Base(away) + "/SKILL.md": hash([]byte("theirs")), "flyprof-a/SKILL.md": hash([]byte("theirs")), "flyprof-x/../../../x": "y"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Skills(base, SkillsDir, list, false)
	if envelope.CodeOf(err) != envelope.FileConflict || states(got) != "flyprof-a/SKILL.md changed, flyprof-b/SKILL.md changed" {
		t.Errorf("%v: %s", err, states(got))
	}
	got, err = Skills(base, SkillsDir, list, true)
	if envelope.CodeOf(err) != envelope.FileConflict || states(got) != "flyprof-a/SKILL.md changed, flyprof-b/SKILL.md updated" {
		t.Errorf("by force: %v: %s", err, states(got))
	}
	if theirs, _ := os.ReadFile(victim); string(theirs) != "theirs" {
		t.Errorf("a link was followed out: %s", theirs)
	}
	if info, err := os.Lstat(filepath.Join(dir, "flyprof-b", "SKILL.md")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v %v", info, err)
	}
	other := t.TempDir()
	if err := os.Symlink(away, filepath.Join(other, ".claude")); err != nil {
		t.Fatal(err)
	}
	if got, err := Skills(other, SkillsDir, list, true); envelope.CodeOf(err) != envelope.FileConflict {
		t.Errorf("a project whose .claude leads out: %v: %s", err, states(got))
	}
	if left, _ := os.ReadDir(away); len(left) != 1 {
		t.Errorf("outside there are %v", left)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Skills(base, SkillsDir, list, false); envelope.CodeOf(err) != envelope.FileConflict || !strings.Contains(err.Error(), manifestName) {
		t.Errorf("a record that cannot be read: %v", err)
	}
}
