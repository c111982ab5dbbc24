package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flyprof/flyprof-mcp/skills"
)

// SkillsExtension is the identifier of the skills extension (SEP-2640). A server that declares it answers skills/list and skills/get; the
// files themselves are ordinary resources.
const SkillsExtension = "io.modelcontextprotocol/skills"

// skillEntry is one skill as both methods give it.
type skillEntry struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// caching are the attributes of results from 2026-07-28 on; the texts are part of the program.
type caching struct {
	ResultType string `json:"resultType,omitempty"`
	TTLMs      *int64 `json:"ttlMs,omitempty"`
	Scope      string `json:"cacheScope,omitempty"`
}

func cachingOf(params json.RawMessage) caching {
	if versionOf(params) < modernProtocol {
		return caching{}
	}
	ttl := int64(FixedTTL.Milliseconds())
	return caching{ResultType: "complete", TTLMs: &ttl, Scope: "public"}
}

// versionOf is the protocol version that a request names, empty before 2026-07-28.
func versionOf(params json.RawMessage) string {
	var p struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p)
	return p.Meta.Version
}

// SkillMethod answers the methods of the skills extension; false for another method. An error text is for invalid params (-32602).
func SkillMethod(method string, params json.RawMessage) (result any, invalid string, ok bool) {
	switch method {
	case "skills/list":
		var p struct {
			Cursor string `json:"cursor"`
		}
		_ = json.Unmarshal(params, &p)
		if p.Cursor != "" {
			return nil, "the list of skills has one page, and no cursor", true
		}
		list := []skillEntry{}
		for _, s := range skills.Skills() {
			list = append(list, entryOf(s))
		}
		return struct {
			Skills []skillEntry `json:"skills"`
			caching
		}{list, cachingOf(params)}, "", true
	case "skills/get":
		var p struct {
			URI string `json:"uri"`
		}
		_ = json.Unmarshal(params, &p)
		var names []string
		for _, s := range skills.Skills() {
			e := entryOf(s)
			if e.URI == p.URI {
				return struct {
					Skill skillEntry `json:"skill"`
					caching
				}{e, cachingOf(params)}, "", true
			}
			names = append(names, e.URI)
		}
		return nil, fmt.Sprintf("there is no skill %.200q; there are %s", p.URI, strings.Join(names, ", ")), true
	}
	return nil, "", false
}

func entryOf(s skills.Skill) skillEntry {
	e := skillEntry{URI: s.URI(s.Files[0]), Frontmatter: s.Front}
	for _, f := range s.Files {
		sum := sha256.Sum256([]byte(f.Body))
		e.Resources = append(e.Resources, skillFile{URI: s.URI(f), Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(f.Body)})
	}
	return e
}
