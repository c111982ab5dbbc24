// Package schemas makes the JSON schemas of the tools from their Go types, holds the committed copies, and checks
// arguments and answers against them.
package schemas

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// Input makes the input schema of a tool: an object that takes no other members than T's fields.
// It fails where T has no portable schema; see CheckPortable.
func Input[T any]() (json.RawMessage, error) { return generate(reflect.TypeFor[T](), false) }

// Output makes the output schema of a tool. It takes members that it does not name, so that a client which holds an older
// copy does not reject an answer that has grown.
func Output[T any]() (json.RawMessage, error) { return generate(reflect.TypeFor[T](), true) }

func generate(t reflect.Type, open bool) (json.RawMessage, error) {
	if err := checkType(t, t.String(), nil); err != nil {
		return nil, err
	}
	reflector := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, ExpandedStruct: true, AllowAdditionalProperties: open,
		// The library keys types by their bare name, and a nested type of the same name would replace the root.
		Namer:  qualifiedName,
		Mapper: mapType,
	}
	s := reflector.ReflectFromType(t)
	s.Version = ""
	simplify(s)
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	if err := CheckPortable(raw); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return raw, nil
}

func qualifiedName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return t.PkgPath() + "." + t.Name()
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	describedType     = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
	timeType          = reflect.TypeFor[time.Time]()
)

// mapType gives the schema of types that write themselves as text.
func mapType(t reflect.Type) *jsonschema.Schema {
	if t == timeType || t.Implements(describedType) || t.Implements(marshalerType) || !t.Implements(textMarshalerType) {
		return nil
	}
	return &jsonschema.Schema{Type: "string"}
}

// checkType refuses what has no portable schema before the library meets it: it does not end on types that contain
// themselves, and it describes neither interfaces nor types that marshal themselves.
func checkType(t reflect.Type, path string, above []reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == timeType || t.Implements(describedType) {
		return nil
	}
	if t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType) {
		return fmt.Errorf("%s: %s marshals itself and has no JSONSchema method", path, t)
	}
	if t.Implements(textMarshalerType) {
		return nil
	}
	if slices.Contains(above, t) {
		return fmt.Errorf("%s: %s contains itself", path, t)
	}
	above = append(above[:len(above):len(above)], t)
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("%s: %s has no schema", path, t)
	case reflect.Slice, reflect.Array:
		return checkType(t.Elem(), path+"[]", above)
	case reflect.Map:
		return checkType(t.Elem(), path+"{}", above)
	case reflect.Struct:
		return checkFields(t, path, above)
	}
	return nil
}

func checkFields(t reflect.Type, path string, above []reflect.Type) error {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if tag == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Type.Kind() == reflect.Pointer && !f.Anonymous && !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			return fmt.Errorf("%s.%s: a pointer without omitempty is written as null", path, name)
		}
		if err := checkType(f.Type, path+"."+name, above); err != nil {
			return err
		}
	}
	return nil
}

// simplify rewrites what the library makes of maps with whole-number keys: clients that turn schemas into types know
// additionalProperties and do not know patternProperties.
func simplify(s *jsonschema.Schema) {
	for _, key := range slices.Sorted(maps.Keys(s.PatternProperties)) {
		s.AdditionalProperties = s.PatternProperties[key]
	}
	s.PatternProperties = nil
	if s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			simplify(pair.Value)
		}
		if s.Properties.Len() == 0 {
			s.Properties = nil
		}
	}
	if s.Items != nil {
		simplify(s.Items)
	}
	if isSchema(s.AdditionalProperties) {
		simplify(s.AdditionalProperties)
	}
}

// isSchema says whether a subschema is there and is not just true or false.
func isSchema(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	raw, err := json.Marshal(s)
	return err == nil && !bytes.Equal(raw, []byte("true")) && !bytes.Equal(raw, []byte("false"))
}
