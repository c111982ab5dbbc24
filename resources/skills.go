package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/internal/wire"
	"github.com/flyprof/flyprof-mcp/skills"
)

// SkillsExtension is the identifier under which servers declare that they serve Agent Skills (SEP-2640).
const SkillsExtension = "io.modelcontextprotocol/skills"

// The methods of the extension.
const (
	methodSkillsList    = "skills/list"
	methodSkillsGet     = "skills/get"
	methodDirectoryRead = "resources/directory/read"
)

// directoryMIME marks a folder among the children of another one.
const directoryMIME = "inode/directory"

// SkillSettings are what is declared under SkillsExtension.
func SkillSettings() map[string]any { return map[string]any{"directoryRead": true} }

// Texts gives the documents of this program: those of skills, and the further files of the skills, to which their SKILL.md lead.
func Texts() []Text {
	var texts []Text
	for _, d := range skills.Documents() {
		texts = append(texts, Text{URI: d.URI, Name: d.Name, Description: d.Description, MIME: d.MIME, Body: d.Body})
	}
	for _, s := range skills.Skills() {
		for _, f := range s.Files[1:] {
			texts = append(texts, Text{URI: s.FileURI(f.Path), Name: s.Name + "/" + f.Path, MIME: f.MIME, Body: f.Body, Unlisted: true})
		}
	}
	return texts
}

// SkillMethods answers the methods of the skills extension, which the library does not know. What it answers is made once.
type SkillMethods struct {
	entries []skillEntry
	folders map[string][]mcp.Resource
	server  mcp.Implementation
}

// skillEntry is a skill on the wire.
type skillEntry struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillResource   `json:"resources"`
}

// skillResource is a file of a skill: its digest and its size in bytes are of the same raw content.
type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// NewSkillMethods makes the answers about skills. server is what results of 2026-07-28 and later name as their origin.
func NewSkillMethods(all []skills.Skill, server mcp.Implementation) *SkillMethods {
	m := &SkillMethods{entries: []skillEntry{}, folders: map[string][]mcp.Resource{}, server: server}
	for _, s := range all {
		e := skillEntry{URI: s.URI(), Frontmatter: s.Front}
		for _, f := range s.Files {
			sum := sha256.Sum256([]byte(f.Body))
			e.Resources = append(e.Resources, skillResource{URI: s.FileURI(f.Path), Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(f.Body))})
			m.addChild(s, f.Path, mcp.NewResource(s.FileURI(f.Path), path.Base(f.Path), mcp.WithMIMEType(f.MIME), mcp.WithResourceSize(int64(len(f.Body)))))
		}
		m.entries = append(m.entries, e)
	}
	return m
}

// addChild puts a file or folder into the folder that it lies in, and that one into its own.
func (m *SkillMethods) addChild(s skills.Skill, at string, child mcp.Resource) {
	folder := path.Dir(at)
	uri := "skill://" + s.Name
	if folder != "." {
		uri = s.FileURI(folder)
	}
	if slices.ContainsFunc(m.folders[uri], func(r mcp.Resource) bool { return r.URI == child.URI }) {
		return
	}
	m.folders[uri] = append(m.folders[uri], child)
	if folder != "." {
		m.addChild(s, folder, mcp.NewResource(uri, path.Base(folder), mcp.WithMIMEType(directoryMIME)))
	}
}

type skillList struct {
	mcp.CacheableResult
	Skills []skillEntry `json:"skills"`
}

type skillGot struct {
	mcp.CacheableResult
	Skill skillEntry `json:"skill"`
}

type folderRead struct {
	mcp.CacheableResult
	Resources []mcp.Resource `json:"resources"`
}

// Intercept is a wire.Intercept.
func (m *SkillMethods) Intercept(_ context.Context, method string, params json.RawMessage) (any, bool, error) {
	switch method {
	case methodSkillsList, methodSkillsGet, methodDirectoryRead:
	default:
		return nil, false, nil
	}
	modern, fault := wire.Modern(params)
	if fault != nil {
		return nil, true, fault
	}
	var p struct {
		URI    string `json:"uri"`
		Cursor string `json:"cursor"`
	}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, true, invalid("the parameters cannot be read", "")
		}
	}
	if p.Cursor != "" { // every answer is one page, and gives none
		return nil, true, invalid("there is no such cursor", "")
	}
	var base mcp.CacheableResult
	if modern {
		base.SetResultType(mcp.ResultTypeComplete)
		base.EnsureResultMeta().SetServerInfo(m.server)
		base.SetCacheHints(ttlImmutable, mcp.CacheScopePrivate)
	}
	switch method {
	case methodSkillsList:
		return skillList{base, m.entries}, true, nil
	case methodSkillsGet:
		i := slices.IndexFunc(m.entries, func(e skillEntry) bool { return e.URI == p.URI })
		if i < 0 {
			return nil, true, invalid(fmt.Sprintf("there is no skill %.300q: skills/list names those that there are", p.URI), p.URI)
		}
		return skillGot{base, m.entries[i]}, true, nil
	}
	children, ok := m.folders[strings.TrimSuffix(p.URI, "/")]
	if !ok {
		return nil, true, invalid(fmt.Sprintf("%.300q is no folder of a skill", p.URI), p.URI)
	}
	return folderRead{base, children}, true, nil
}

func invalid(message, uri string) *wire.Error {
	e := &wire.Error{Code: mcp.INVALID_PARAMS, Message: message}
	if uri != "" {
		e.Data = map[string]string{"uri": wire.Shorten(uri, 1000)}
	}
	return e
}
