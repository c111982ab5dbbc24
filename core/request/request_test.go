package request

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// verbs are all argument structs.
var verbs = []Args{Doctor{}, List{}, Tile{}, Capture{}, Status{}, Cancel{}, Triage{}, Read{}}

// TestEveryArgument: each has a JSON name and a description, which may hold no comma: the schema's tag would end at it.
func TestEveryArgument(t *testing.T) {
	for _, args := range verbs {
		typ := reflect.TypeOf(args)
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name != strings.ToLower(name) {
				t.Errorf("%s.%s has the JSON name %q", typ.Name(), f.Name, name)
			}
			if f.Tag.Get("jsonschema_description") == "" {
				t.Errorf("%s.%s is not described", typ.Name(), f.Name)
			}
			if kind := f.Type.Kind(); kind == reflect.String && !strings.Contains(f.Tag.Get("jsonschema"), "maxLength") && !strings.Contains(f.Tag.Get("jsonschema"), "enum") {
				t.Errorf("%s.%s has no bound", typ.Name(), f.Name)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	for _, args := range verbs {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(args.Verb(), raw)
		if err != nil || !reflect.DeepEqual(back, args) {
			t.Errorf("%s: %v %+v", args.Verb(), err, back)
		}
	}
	if _, err := Decode("nonsense", []byte("{}")); err == nil {
		t.Error("an unknown verb is decoded")
	}
	if _, err := Decode(VerbCapture, []byte(`{"gpu":"x"}`)); err == nil {
		t.Error("a wrong type is decoded")
	}
}
