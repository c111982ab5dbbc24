package schemas

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
)

type sample struct {
	Name  string   `json:"name" jsonschema:"minLength=1,maxLength=8" jsonschema_description:"A name."`
	Count int      `json:"count,omitempty" jsonschema:"minimum=1,maximum=9"`
	Big   int      `json:"big,omitempty"`
	Ratio float64  `json:"ratio,omitempty"`
	On    bool     `json:"on,omitempty"`
	List  []string `json:"list,omitempty" jsonschema:"maxItems=3"`
	Mode  string   `json:"mode,omitempty" jsonschema:"enum=fast,enum=slow"`
	Maybe *int     `json:"maybe,omitempty"`
	Inner *struct {
		X int `json:"x"`
	} `json:"inner,omitempty"`
}

func validator(t testing.TB) *Validator {
	t.Helper()
	schema, err := Input[sample]()
	if err != nil {
		t.Fatal(err)
	}
	return NewValidator(schema)
}

func TestInputIsPortable(t *testing.T) {
	schema, err := Input[sample]()
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPortable(schema); err != nil {
		t.Error(err)
	}
	var s struct {
		Type       string
		Required   []string
		Properties map[string]any
		Additional any `json:"additionalProperties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil || s.Type != "object" || !reflect.DeepEqual(s.Required, []string{"name"}) || s.Additional != false || len(s.Properties) != 9 {
		t.Errorf("%v: %s", err, schema)
	}
	for _, word := range []string{"$ref", "$defs", "$schema", "oneOf", "anyOf", "null"} {
		if strings.Contains(string(schema), word) {
			t.Errorf("the schema holds %s: %s", word, schema)
		}
	}
}

// TestCheckPortable refuses what some client cannot read.
func TestCheckPortable(t *testing.T) {
	for name, schema := range map[string]string{
		"no object":           `{"type":"array","items":{"type":"string"}}`,
		"top-level anyOf":     `{"type":"object","anyOf":[]}`,
		"a reference":         `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}`,
		"a dialect":           `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`,
		"a boolean subschema": `{"type":"object","properties":{"a":true}}`,
		"boolean items":       `{"type":"object","properties":{"a":{"type":"array","items":true}}}`,
		"no items":            `{"type":"object","properties":{"a":{"type":"array"}}}`,
		"required, not there": `{"type":"object","required":["b"],"properties":{"a":{"type":"string"}}}`,
		"deep":                `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array"}}}}}`,
		"no JSON":             `{`,
	} {
		if err := CheckPortable(json.RawMessage(schema)); err == nil {
			t.Errorf("%s is let through: %s", name, schema)
		}
	}
}

func TestCoerceAndCheck(t *testing.T) {
	v := validator(t)
	for in, want := range map[string]string{
		`{"name":"a","count":"8"}`:            `{"name":"a","count":8}`,
		`{"name":"a","big":"0x10"}`:           `{"name":"a","big":16}`,
		`{"name":"a","count":8.0}`:            `{"name":"a","count":8}`,
		`{"name":"a","on":"true"}`:            `{"name":"a","on":true}`,
		`{"name":"a","on":"FALSE"}`:           `{"name":"a","on":false}`,
		`{"name":"a","ratio":"0.5"}`:          `{"name":"a","ratio":0.5}`,
		`{"name":"a","list":"[\"x\",\"y\"]"}`: `{"name":"a","list":["x","y"]}`,
		`{"name":"a","list":"x"}`:             `{"name":"a","list":["x"]}`,
		`{"name":"a","maybe":null}`:           `{"name":"a"}`,
		`{"name":"a","maybe":"3"}`:            `{"name":"a","maybe":3}`,
		`{"name":"a","mode":"FAST"}`:          `{"name":"a","mode":"fast"}`,
		`{"name":12}`:                         `{"name":"12"}`,
		`{"name":"a","big":9007199254740993}`: `{"name":"a","big":9007199254740993}`,
	} {
		got, err := v.Check([]byte(in))
		if err != nil || !equal(got, []byte(want)) {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
	}
}

func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// TestErrors name the field, the value and what is allowed.
func TestErrors(t *testing.T) {
	v := validator(t)
	for in, want := range map[string]envelope.Evidence{
		`{"name":"a","count":10}`:               {Field: "count", Value: "10", Allowed: "1 to 9"},
		`{"name":"a","mode":"medium"}`:          {Field: "mode", Value: "medium", Allowed: "fast"},
		`{"name":"123456789"}`:                  {Field: "name", Value: "123456789", Allowed: "8"},
		`{}`:                                    {Field: "name", Allowed: "text"},
		`{"name":"a","kount":3}`:                {Field: "kount", Allowed: "count"},
		`{"name":"a","list":["1","2","3","4"]}`: {Field: "list", Allowed: "3"},
		`{"name":"a","inner":{"x":"y"}}`:        {Field: "inner.x", Value: "y", Allowed: "integer"},
		`{"name":"a","list":[{}]}`:              {Field: "list"},
		`[]`:                                    {},
		`{"name":"a"} {"name":"b"}`:             {},
		"{\"name\":\"\xff\"":                    {},
		strings.Repeat("[", 2000):               {},
	} {
		_, err := v.Check([]byte(in))
		if envelope.CodeOf(err) != envelope.BadArgs {
			t.Errorf("%.60s: %v", in, err)
			continue
		}
		got := envelope.As(err).Evidence
		if !strings.Contains(got.Field, want.Field) || !strings.Contains(got.Value, want.Value) || !strings.Contains(got.Allowed+strings.Join(got.ValidNames, " "), want.Allowed) {
			t.Errorf("%.60s: %+v, want %+v", in, got, want)
		}
	}
	_, err := v.Check([]byte(`{"name":"a","kount":3}`))
	if names := envelope.As(err).Evidence.ValidNames; len(names) != 9 {
		t.Errorf("the valid names are %v", names)
	}
}

func TestFillNulls(t *testing.T) {
	type out struct {
		List []string       `json:"list"`
		Map  map[string]int `json:"map"`
		Text *string        `json:"text,omitempty"`
	}
	schema, err := Output[out]()
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewValidator(schema).FillNulls(json.RawMessage(`{"list":null,"map":null,"text":null,"more":1}`))
	if err != nil || !equal(got, []byte(`{"list":[],"map":{},"more":1}`)) {
		t.Errorf("%s %v", got, err)
	}
}

func TestSync(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"a.json": []byte("{}\n"), "b.json": []byte("[]\n")}
	if drift, err := Sync(dir, files, false); err != nil || len(drift) != 2 {
		t.Errorf("%v %v", drift, err)
	}
	if drift, err := Sync(dir, files, true); err != nil || len(drift) != 0 {
		t.Errorf("%v %v", drift, err)
	}
	delete(files, "b.json")
	if drift, err := Sync(dir, files, false); err != nil || len(drift) != 1 || !strings.Contains(drift[0], "b.json") {
		t.Errorf("%v %v", drift, err)
	}
}

// FuzzCheck: whatever comes in, what comes out is valid for the type, or BAD_ARGS.
func FuzzCheck(f *testing.F) {
	schema, err := Input[request.Capture]()
	if err != nil {
		f.Fatal(err)
	}
	v := NewValidator(schema)
	for _, seed := range []string{`{"kernel":"a"}`, `{"kernel":"a","gpu":"1"}`, `{"kernel":null}`, `[1]`, `{"kernel":"a","args":"[\"x\"]"}`, "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := v.Check(raw)
		if err != nil {
			if envelope.CodeOf(err) != envelope.BadArgs {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := v.Validate(got); err != nil {
			t.Fatalf("what was checked does not fit: %s: %v", got, err)
		}
	})
}
