package skills_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/tile"
	"github.com/flyprof/flyprof-mcp/core/worktree"
	"github.com/flyprof/flyprof-mcp/skills"
)

// answers are the types behind the fields that the skills name.
var answers = map[string][]reflect.Type{
	"data":  {reflect.TypeFor[capture.Data](), reflect.TypeFor[tile.Data](), reflect.TypeFor[struct{ Kernels []worktree.Kernel }]()},
	"error": {reflect.TypeFor[envelope.WireError]()},
}

// byContract are fields of the runbook's contract whose types are not within reach here.
var byContract = []string{"data.verdict", "data.blockers"}

// has says whether the JSON of a type has the path.
func has(t reflect.Type, path []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range fields(t) {
		if f.name == path[0] {
			return has(f.typ, path[1:])
		}
	}
	return false
}

type jsonField struct {
	name string
	typ  reflect.Type
}

// fields gives the fields of a struct as encoding/json names them, those of embedded structs too.
func fields(t reflect.Type) func(func(jsonField) bool) {
	return func(yield func(jsonField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			if !f.Anonymous && !yield(jsonField{name, f.Type}) {
				return
			}
		}
	}
}

func TestFieldsInTheSkillsExist(t *testing.T) {
	named := 0
	for _, d := range skills.Documents() {
		if !strings.HasPrefix(d.URI, "skill://") {
			continue
		}
		for _, m := range regexp.MustCompile("`((data|error)\\.[a-zA-Z_.\\[\\]]+)`").FindAllStringSubmatch(d.Body, -1) {
			named++
			path := strings.Split(strings.ReplaceAll(m[1], "[]", ""), ".")[1:]
			ok := slices.Contains(byContract, m[1]) || slices.ContainsFunc(answers[m[2]], func(a reflect.Type) bool { return has(a, path) })
			if !ok {
				t.Errorf("%s names %s, which no answer has", d.URI, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d fields were found in the skills", named)
	}
}

func TestCallsInTheSkillsAreValid(t *testing.T) {
	calls := map[string]int{}
	for _, d := range skills.Documents() {
		for _, m := range regexp.MustCompile(`(flyprof_[a-z_]+) (\{[^\n]*?\})`).FindAllStringSubmatch(d.Body, -1) {
			calls[m[1]]++
			verb := strings.TrimPrefix(strings.TrimPrefix(m[1], "flyprof_"), "capture_") // flyprof_capture_status is the verb status
			args, err := request.Decode(request.Verb(verb), []byte("{}"))
			if err != nil {
				t.Errorf("%s calls %s: %v", d.URI, m[1], err)
				continue
			}
			into := reflect.New(reflect.TypeOf(args))
			dec := json.NewDecoder(bytes.NewReader([]byte(m[2])))
			dec.DisallowUnknownFields()
			if err := dec.Decode(into.Interface()); err != nil {
				t.Errorf("%s: %s %s: %v", d.URI, m[1], m[2], err)
			}
		}
	}
	for _, tool := range []string{"flyprof_doctor", "flyprof_list", "flyprof_tile", "flyprof_capture", "flyprof_capture_status", "flyprof_triage", "flyprof_read"} {
		if calls[tool] == 0 {
			t.Errorf("no example calls %s", tool)
		}
	}
}
