//go:build unix

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/skills"
)

// modernMeta is what requests of 2026-07-28 say of themselves.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// skillAnswer is the answer to any method of the extension.
type skillAnswer struct {
	Skills     []skillEntry
	Skill      skillEntry
	Resources  []struct{ URI, Name, MIMEType string }
	ResultType string
	TTL        *int64 `json:"ttlMs"`
	CacheScope string
	Meta       map[string]struct{ Name string } `json:"_meta"`
}

func askSkills(t *testing.T, method, params string) (skillAnswer, *wire.Error) {
	t.Helper()
	m := NewSkillMethods(skills.Skills(), mcp.Implementation{Name: "test", Version: "1"})
	result, ok, err := m.Intercept(t.Context(), method, json.RawMessage(params))
	if !ok {
		t.Fatalf("%s is not answered", method)
	}
	var coded *wire.Error
	if errors.As(err, &coded) || err != nil {
		return skillAnswer{}, coded
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var a skillAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	return a, nil
}

// TestSkillMethods: what is listed is what is read, byte for byte.
func TestSkillMethods(t *testing.T) {
	l := newLibrary(t)
	l.Texts = Texts()
	list, fault := askSkills(t, "skills/list", `{}`)
	if fault != nil || len(list.Skills) != len(skills.Skills()) {
		t.Fatalf("%+v, %v", list, fault)
	}
	for i, e := range list.Skills {
		if front := skills.Skills()[i].Front; !maps.Equal(e.Frontmatter, front) || e.URI != "skill://"+front["name"]+"/SKILL.md" || e.Resources[0].URI != e.URI {
			t.Errorf("%+v", e)
		}
		total := int64(0)
		for _, r := range e.Resources {
			p := l.read(t, r.URI)
			sum := sha256.Sum256([]byte(p.Text))
			if p.NextOffset != 0 || p.Size != r.Size || r.Digest != "sha256:"+hex.EncodeToString(sum[:]) || !strings.HasPrefix(r.URI, strings.TrimSuffix(e.URI, "SKILL.md")) {
				t.Errorf("%+v is read as %d bytes of %d", r, len(p.Text), p.Size)
			}
			total += r.Size
		}
		if len(e.Resources) > 512 || total > 16<<20 {
			t.Errorf("%s: %d files, %d bytes", e.URI, len(e.Resources), total)
		}
		got, fault := askSkills(t, "skills/get", `{"uri":"`+e.URI+`"}`)
		if fault != nil || got.Skill.URI != e.URI || !slices.Equal(got.Skill.Resources, e.Resources) || got.Skills != nil {
			t.Errorf("%+v, %v", got, fault)
		}
	}
}

func TestSkillFolders(t *testing.T) {
	l := newLibrary(t)
	l.Texts = Texts()
	files, folders := map[string]bool{}, []string{"skill://flyprof-capture", "skill://flyprof-triage/", "skill://flyprof-usage"}
	for len(folders) > 0 {
		a, fault := askSkills(t, "resources/directory/read", `{"uri":"`+folders[0]+`"}`)
		if fault != nil || len(a.Resources) == 0 {
			t.Fatalf("%s: %+v %v", folders[0], a, fault)
		}
		folders = folders[1:]
		for _, r := range a.Resources {
			if r.MIMEType == "inode/directory" {
				folders = append(folders, r.URI)
				continue
			}
			if p := l.read(t, r.URI); p.MIME != r.MIMEType || files[r.URI] {
				t.Errorf("%+v, read as %s", r, p.MIME)
			}
			files[r.URI] = true
		}
	}
	for _, s := range skills.Skills() {
		for _, f := range s.Files {
			if !files[s.FileURI(f.Path)] {
				t.Errorf("%s of %s is in no folder", f.Path, s.Name)
			}
		}
	}
}

func TestSkillEras(t *testing.T) {
	for method, params := range map[string]string{
		"skills/list": `{`, "skills/get": `{"uri":"skill://flyprof-usage/SKILL.md",`, "resources/directory/read": `{"uri":"skill://flyprof-usage",`,
	} {
		a, fault := askSkills(t, method, params+modernMeta+`}`)
		if fault != nil || a.ResultType != "complete" || a.TTL == nil || a.CacheScope != "private" || a.Meta["io.modelcontextprotocol/serverInfo"].Name != "test" {
			t.Errorf("%s: %+v, %v", method, a, fault)
		}
		a, fault = askSkills(t, method, strings.TrimSuffix(params, ",")+`}`)
		if fault != nil || a.ResultType != "" || a.TTL != nil || a.CacheScope != "" || a.Meta != nil {
			t.Errorf("%s before 2026-07-28: %+v, %v", method, a, fault)
		}
	}
}

func TestSkillRefusals(t *testing.T) {
	for _, c := range []struct {
		method, params string
		code           int
	}{
		{"skills/get", `{"uri":"skill://nothing/SKILL.md"}`, -32602},
		{"skills/get", `{"uri":"skill://nothing/SKILL.md",` + modernMeta + `}`, -32602},
		{"skills/get", `{"uri":"skill://flyprof-capture/references/error-codes.md"}`, -32602},
		{"skills/get", `{"uri":""}`, -32602}, {"skills/get", ``, -32602}, {"skills/get", `{"uri":7}`, -32602}, {"skills/get", `[]`, -32602},
		{"skills/list", `{"cursor":"x"}`, -32602},
		{"skills/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, -32602},
		{"skills/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`, mcp.UNSUPPORTED_PROTOCOL_VERSION},
		{"resources/directory/read", `{"uri":"skill://flyprof-capture/SKILL.md"}`, -32602},
		{"resources/directory/read", `{"uri":"skill://"}`, -32602},
		{"resources/directory/read", `{"uri":"skill://flyprof-capture/../flyprof-usage"}`, -32602},
		{"resources/directory/read", `{"uri":"flyprof://runs"}`, -32602},
	} {
		if a, fault := askSkills(t, c.method, c.params); fault == nil || fault.Code != c.code {
			t.Errorf("%s %s: %+v %+v", c.method, c.params, a, fault)
		}
	}
	m := NewSkillMethods(skills.Skills(), mcp.Implementation{})
	for _, method := range []string{"resources/read", "skills", "skills/put", ""} {
		if _, ok, _ := m.Intercept(t.Context(), method, nil); ok {
			t.Errorf("%q is answered", method)
		}
	}
}
