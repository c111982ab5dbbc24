package schemas

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/invopop/jsonschema"
)

// Words says in words what a schema allows, such as `an integer from 0 to 255`.
func Words(s *jsonschema.Schema) string {
	if s == nil {
		return "left out"
	}
	if len(s.Enum) > 0 {
		return oneOf(s.Enum)
	}
	switch s.Type {
	case "integer":
		return "an integer" + numberRange(s)
	case "number":
		return "a number" + numberRange(s)
	case "boolean":
		return "true or false"
	case "string":
		return "text" + textRange(s)
	case "array":
		return "an array" + countRange(s) + ", each " + Words(s.Items)
	case "object":
		return "an object"
	}
	return "a value"
}

func oneOf(values []any) string {
	var out []string
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err == nil {
			out = append(out, string(raw))
		}
	}
	return "one of " + strings.Join(out, ", ")
}

func numberRange(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != "" && s.Maximum != "":
		return fmt.Sprintf(" from %s to %s", s.Minimum, s.Maximum)
	case s.Minimum != "":
		return fmt.Sprintf(" of at least %s", s.Minimum)
	case s.Maximum != "":
		return fmt.Sprintf(" of at most %s", s.Maximum)
	}
	return ""
}

func textRange(s *jsonschema.Schema) string {
	var b strings.Builder
	if s.MaxLength != nil {
		low := uint64(0)
		if s.MinLength != nil {
			low = *s.MinLength
		}
		fmt.Fprintf(&b, " of %d to %d characters", low, *s.MaxLength)
	} else if s.MinLength != nil {
		fmt.Fprintf(&b, " of at least %d characters", *s.MinLength)
	}
	if s.Pattern != "" {
		fmt.Fprintf(&b, " of the form %s", PatternWords(s.Pattern))
	}
	return b.String()
}

func countRange(s *jsonschema.Schema) string {
	switch {
	case s.MinItems != nil && s.MaxItems != nil:
		return fmt.Sprintf(" of %d to %d items", *s.MinItems, *s.MaxItems)
	case s.MaxItems != nil:
		return fmt.Sprintf(" of at most %d items", *s.MaxItems)
	case s.MinItems != nil:
		return fmt.Sprintf(" of at least %d items", *s.MinItems)
	}
	return ""
}

// PatternWords reads a regular expression out: ^gfx[0-9a-f]+$ is `"gfx" then one or more of 0-9 a-f`.
// What it cannot say in words it gives as the expression itself.
func PatternWords(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	words, ok := readOut(re)
	if !ok || words == "" {
		return pattern
	}
	return words
}

func readOut(re *syntax.Regexp) (string, bool) {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpEmptyMatch:
		return "", true
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return fmt.Sprintf("%q in either case", strings.ToLower(string(re.Rune))), true
		}
		return fmt.Sprintf("%q", string(re.Rune)), true
	case syntax.OpCharClass:
		return "one of " + class(re.Rune), true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "any character", true
	case syntax.OpCapture:
		return readOut(re.Sub[0])
	case syntax.OpPlus, syntax.OpStar, syntax.OpQuest:
		inner, ok := readOut(re.Sub[0])
		count := map[syntax.Op]string{syntax.OpPlus: "one or more", syntax.OpStar: "any number", syntax.OpQuest: "optionally"}[re.Op]
		if re.Op == syntax.OpQuest {
			return count + " " + inner, ok
		}
		return count + " of " + strings.TrimPrefix(inner, "one of "), ok
	case syntax.OpConcat:
		return join(re.Sub, " then ")
	case syntax.OpAlternate:
		return join(re.Sub, ", or ")
	}
	return "", false
}

func join(subs []*syntax.Regexp, with string) (string, bool) {
	var parts []string
	for _, sub := range subs {
		words, ok := readOut(sub)
		if !ok {
			return "", false
		}
		if words != "" {
			parts = append(parts, words)
		}
	}
	return strings.Join(parts, with), true
}

func class(ranges []rune) string {
	var parts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] == ranges[i+1] {
			parts = append(parts, string(ranges[i]))
			continue
		}
		parts = append(parts, fmt.Sprintf("%c-%c", ranges[i], ranges[i+1]))
	}
	return strings.Join(parts, " ")
}
