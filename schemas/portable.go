package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// portableKeywords are the keywords that every client is known to take. Clients were seen to drop a tool, or all tools of
// a server, on combinators at the root, $ref, boolean subschemas and arrays without items; so nothing outside this list
// is let through.
var portableKeywords = []string{
	"type", "title", "description", "default", "enum", "format",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern", "contentEncoding",
	"minItems", "maxItems", "uniqueItems",
	"required", "properties", "items", "additionalProperties",
}

var jsonTypes = []string{"object", "array", "string", "integer", "number", "boolean"}

// CheckPortable says what in a schema is not understood everywhere: the root must be an object; there is no $ref, $defs,
// $schema or combinator at any depth, no boolean in the place of a subschema, no array without items, no list of types
// and no null.
func CheckPortable(schema json.RawMessage) error {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	object, ok := root.(map[string]any)
	if !ok {
		return errors.New("the schema is not an object")
	}
	if object["type"] != "object" {
		return fmt.Errorf(`the root's type is %v; clients take only "object"`, object["type"])
	}
	return checkSubschema("", root)
}

func checkSubschema(path string, value any) error {
	s, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %v in the place of a schema", where(path), value)
	}
	kind, _ := s["type"].(string)
	if !slices.Contains(jsonTypes, kind) {
		return fmt.Errorf("%s: type is %v; it must be one of %v", where(path), s["type"], jsonTypes)
	}
	if kind == "array" && s["items"] == nil {
		return fmt.Errorf("%s: an array without items", where(path))
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(portableKeywords, keyword) {
			return fmt.Errorf("%s: the keyword %s is not understood by every client", where(path), keyword)
		}
		if err := checkNested(path+"/"+keyword, keyword, s[keyword]); err != nil {
			return err
		}
	}
	return checkRequired(path, s)
}

func checkNested(path, keyword string, value any) error {
	switch keyword {
	case "properties":
		return checkProperties(path, value)
	case "items":
		return checkSubschema(path, value)
	case "additionalProperties":
		if _, ok := value.(bool); !ok {
			return checkSubschema(path, value)
		}
	}
	return nil
}

func checkProperties(path string, value any) error {
	properties, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: not an object", where(path))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := checkSubschema(path+"/"+name, properties[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkRequired(path string, s map[string]any) error {
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range required {
		text, _ := name.(string)
		if _, ok := properties[text]; !ok {
			return fmt.Errorf("%s: requires %v, which it does not describe", where(path), name)
		}
	}
	return nil
}

func where(path string) string {
	if path == "" {
		return "root"
	}
	return path
}
