package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// figure is a number or a formula over the shape's axes: "M", "ceil(M/256)*ceil(N/256)", "T*k". Operators + - * / %,
// comparisons (1 or 0), parentheses, ceil, floor, min, max.
type figure string

// UnmarshalJSON takes a JSON number or a string.
func (f *figure) UnmarshalJSON(raw []byte) error {
	*f = figure(strings.Trim(string(raw), `"`))
	return nil
}

// maxFigure bounds every result: beyond it a launch would be no launch of a real GPU.
const maxFigure = 1 << 40

// eval gives the value; an empty formula gives fallback.
func (f figure) eval(vars map[string]float64, fallback float64) (float64, error) {
	if strings.TrimSpace(string(f)) == "" {
		return fallback, nil
	}
	if len(f) > 1000 {
		return 0, fmt.Errorf("formula of %d characters", len(f))
	}
	p := &parser{text: string(f), vars: vars}
	v, err := p.compare()
	if err == nil && p.peek() != 0 {
		err = fmt.Errorf("unexpected %q in %q", p.text[p.pos:], p.text)
	}
	if err == nil && (math.IsNaN(v) || math.Abs(v) > maxFigure) {
		err = fmt.Errorf("%q is out of range", p.text)
	}
	return v, err
}

func (f figure) int(vars map[string]float64, fallback int64) (int64, error) {
	v, err := f.eval(vars, float64(fallback))
	return int64(math.Ceil(v)), err
}

// parser is a recursive descent over one formula.
type parser struct {
	text  string
	pos   int
	depth int
	vars  map[string]float64
}

func (p *parser) peek() byte {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) take(token string) bool {
	if p.peek() != 0 && strings.HasPrefix(p.text[p.pos:], token) {
		p.pos += len(token)
		return true
	}
	return false
}

func (p *parser) compare() (float64, error) {
	a, err := p.sum()
	if err != nil {
		return 0, err
	}
	for _, op := range []string{"==", "<=", ">=", "<", ">"} {
		if !p.take(op) {
			continue
		}
		b, err := p.sum()
		yes := map[string]bool{"==": a == b, "<=": a <= b, ">=": a >= b, "<": a < b, ">": a > b}[op]
		if yes {
			return 1, err
		}
		return 0, err
	}
	return a, nil
}

func (p *parser) sum() (float64, error) {
	v, err := p.product()
	for err == nil {
		var w float64
		switch {
		case p.take("+"):
			w, err = p.product()
			v += w
		case p.take("-"):
			w, err = p.product()
			v -= w
		default:
			return v, nil
		}
	}
	return v, err
}

func (p *parser) product() (float64, error) {
	v, err := p.factor()
	for err == nil {
		var w float64
		switch {
		case p.take("*"):
			w, err = p.factor()
			v *= w
		case p.take("/"):
			if w, err = p.factor(); w == 0 && err == nil {
				err = fmt.Errorf("division by zero in %q", p.text)
			}
			v /= w
		case p.take("%"):
			if w, err = p.factor(); w == 0 && err == nil {
				err = fmt.Errorf("division by zero in %q", p.text)
			}
			v = math.Mod(v, w)
		default:
			return v, nil
		}
	}
	return v, err
}

func (p *parser) factor() (float64, error) {
	if p.depth++; p.depth > 50 {
		return 0, fmt.Errorf("%q is nested too deeply", p.text)
	}
	defer func() { p.depth-- }()
	c := p.peek()
	switch {
	case p.take("("):
		v, err := p.compare()
		if err == nil && !p.take(")") {
			err = fmt.Errorf("missing ) in %q", p.text)
		}
		return v, err
	case c >= '0' && c <= '9':
		start := p.pos
		for p.pos < len(p.text) && (p.text[p.pos] == '.' || p.text[p.pos] >= '0' && p.text[p.pos] <= '9') {
			p.pos++
		}
		return strconv.ParseFloat(p.text[start:p.pos], 64)
	case isLetter(c):
		start := p.pos
		for p.pos < len(p.text) && (isLetter(p.text[p.pos]) || p.text[p.pos] >= '0' && p.text[p.pos] <= '9') {
			p.pos++
		}
		return p.name(p.text[start:p.pos])
	}
	return 0, fmt.Errorf("unexpected %q in %q", p.text[min(p.pos, len(p.text)):], p.text)
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

var functions = map[string]func(a, b float64) float64{
	"ceil":  func(a, _ float64) float64 { return math.Ceil(a) },
	"floor": func(a, _ float64) float64 { return math.Floor(a) },
	"min":   math.Min,
	"max":   math.Max,
}

func (p *parser) name(word string) (float64, error) {
	fn, isFunction := functions[word]
	if !isFunction || p.peek() != '(' {
		v, ok := p.vars[word]
		if !ok {
			return 0, fmt.Errorf("unknown name %q in %q", word, p.text)
		}
		return v, nil
	}
	p.take("(")
	a, err := p.compare()
	b := a
	if err == nil && p.take(",") {
		b, err = p.compare()
	}
	if err == nil && !p.take(")") {
		err = fmt.Errorf("missing ) in %q", p.text)
	}
	return fn(a, b), err
}
