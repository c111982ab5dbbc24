package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

// fit shortens an envelope that is over the limit (in characters), as the last resort: handlers page long lists
// themselves. It drops what is largest first - the older half of a log, the later half of another list, the end of a long
// text - and never next actions, codes or messages as long as anything else is left. What was cut stands in truncated.
func fit(raw json.RawMessage, limit int) (json.RawMessage, error) {
	if utf8.RuneCount(raw) <= limit {
		return raw, nil
	}
	root, err := jsontree.Parse(raw, jsontree.Limits{Bytes: len(raw), Depth: 1000})
	if err != nil {
		return nil, err
	}
	c := cutter{root: root, full: map[*jsontree.Node]int{}}
	for _, protected := range [][]string{
		{"ok", "command", "bundle", "error", "next_actions", "truncated", "warnings"},
		{"ok", "command", "bundle"},
	} {
		for range maxCuts {
			if utf8.RuneCount(root.Bytes()) <= limit || !c.cutLargest(protected) {
				break
			}
			c.note()
		}
	}
	out := root.Bytes()
	if utf8.RuneCount(out) <= limit {
		return out, nil
	}
	return c.bare(limit)
}

type cutter struct {
	root *jsontree.Node
	// full is the length of each list that was cut, before the first cut.
	full map[*jsontree.Node]int
	// first is what was cut first: it stands in truncated.
	first *place
	paths []string
	// wrote says that truncated is ours and not the handler's.
	wrote bool
}

// maxCuts bounds the work: an answer that so many cuts do not make fit has no large parts.
const maxCuts = 300

// place is a list or a text that can be cut.
type place struct {
	path string
	node *jsontree.Node
	size int
}

// keepItems is how many items stay in a list, keepText how many bytes of a text.
const (
	keepItems = 1
	keepText  = 120
)

// cutLargest halves the largest list or text that is not protected, and says whether there was one.
func (c *cutter) cutLargest(protected []string) bool {
	var best place
	c.walk(c.root, nil, func(path []string, n *jsontree.Node) {
		if size := len(n.Bytes()); size > best.size && cuttable(n) && !isProtected(path, protected) {
			best = place{strings.Join(path, "."), n, size}
		}
	})
	if best.node == nil {
		return false
	}
	n := best.node
	if _, seen := c.full[n]; !seen {
		c.full[n] = max(len(n.Items), len(n.Text))
		if !slices.Contains(c.paths, best.path) && len(c.paths) < 12 {
			c.paths = append(c.paths, best.path)
		}
	}
	if c.first == nil || n.Kind == jsontree.Array && c.first.node.Kind != jsontree.Array {
		c.first = &best
	}
	halve(n, strings.HasSuffix(best.path, "log_tail"))
	return true
}

func cuttable(n *jsontree.Node) bool {
	switch n.Kind {
	case jsontree.Array:
		return len(n.Items) > keepItems
	case jsontree.String:
		return len(n.Text) > keepText
	}
	return false
}

// halve drops half of a list, the older one of a log, or half of a text.
func halve(n *jsontree.Node, log bool) {
	if n.Kind == jsontree.String {
		end := max(keepText, len(n.Text)/2) - len("…")
		for end > 0 && !utf8.RuneStart(n.Text[end]) {
			end--
		}
		n.Text = n.Text[:end] + "…"
		return
	}
	half := max(keepItems, len(n.Items)/2)
	if log {
		n.Items = n.Items[len(n.Items)-half:]
		return
	}
	n.Items = n.Items[:half]
}

// isProtected: members of the root by name; but inside an error, its lists and evidence are cut before all else, and what
// a program executes (arguments, argv, uri, tool) is never halved, since a part of it would be a different call.
func isProtected(path, protected []string) bool {
	if len(path) == 0 {
		return true
	}
	for _, executed := range []string{"arguments", "argv", "uri", "tool", "action", "code"} {
		if slices.Contains(path, executed) {
			return true
		}
	}
	if path[0] == "error" && len(path) > 1 && slices.Contains([]string{"log_tail", "candidates", "available", "evidence"}, path[1]) {
		return false
	}
	return slices.Contains(protected, path[0])
}

// walk visits lists and texts; the path has names only, so that all items of a list share one.
func (c *cutter) walk(n *jsontree.Node, path []string, visit func([]string, *jsontree.Node)) {
	visit(path, n)
	for _, item := range n.Items {
		c.walk(item, path, visit)
	}
	for _, m := range n.Members {
		c.walk(m.Value, append(path[:len(path):len(path)], m.Name), visit)
	}
}

// note says what was cut: the main part in truncated where the handler did not write its own there, all of it in a warning.
func (c *cutter) note() {
	c.warn("ANSWER_CUT", "cut to keep the answer small: "+strings.Join(c.paths, ", "))
	if !c.wrote && c.root.Get("truncated") != nil {
		return
	}
	c.wrote = true
	n := c.first.node
	readOn := "ask for less at once: a smaller limit, a filter, or one item"
	if bundle := c.root.Get("bundle"); bundle != nil && bundle.Text != "" {
		readOn = "read flyprof://runs/" + bundle.Text + "/files and the files that it lists"
	}
	c.root.Set("truncated", &jsontree.Node{Kind: jsontree.Object, Members: []jsontree.Member{
		{Name: "field", Value: text(c.first.path)}, {Name: "shown", Value: number(max(len(n.Items), len(n.Text)))},
		{Name: "total", Value: number(c.full[n])}, {Name: "read_on", Value: text(readOn)},
	}})
}

func (c *cutter) warn(code, message string) {
	warnings := c.root.Get("warnings")
	if warnings == nil || warnings.Kind != jsontree.Array {
		warnings = &jsontree.Node{Kind: jsontree.Array}
		c.root.Set("warnings", warnings)
	}
	for _, w := range warnings.Items {
		if w.Get("code") != nil && w.Get("code").Text == code {
			w.Set("message", text(message))
			return
		}
	}
	warnings.Items = append(warnings.Items, &jsontree.Node{Kind: jsontree.Object, Members: []jsontree.Member{
		{Name: "code", Value: text(code)}, {Name: "message", Value: text(message)},
	}})
}

// bare is what is left where nothing can be halved any more (an object of very many members, very long arguments): the
// members of the envelope that its schema asks for, and of an error all but evidence and the actions that do not fit.
func (c *cutter) bare(limit int) (json.RawMessage, error) {
	c.root.Delete("data")
	c.warn("ANSWER_CUT", "the data of this answer is too large to show")
	if e := c.root.Get("error"); e != nil {
		e.Set("evidence", &jsontree.Node{Kind: jsontree.Object})
		for _, name := range []string{"available", "candidates", "log_tail"} {
			e.Delete(name)
		}
		dropActions(c.root, e.Get("next_actions"), limit, 1)
	}
	dropActions(c.root, c.root.Get("next_actions"), limit, 0)
	out := c.root.Bytes()
	if utf8.RuneCount(out) > limit {
		return nil, fmt.Errorf("an answer of %d characters cannot be cut to %d", utf8.RuneCount(out), limit)
	}
	return out, nil
}

// dropActions drops the largest actions until the whole fits; the last one that may not go is replaced by stop.
func dropActions(root, actions *jsontree.Node, limit, keep int) {
	if actions == nil {
		return
	}
	for utf8.RuneCount(root.Bytes()) > limit && len(actions.Items) > 0 {
		largest := 0
		for i, a := range actions.Items {
			if len(a.Bytes()) > len(actions.Items[largest].Bytes()) {
				largest = i
			}
		}
		actions.Items = slices.Delete(actions.Items, largest, largest+1)
	}
	if len(actions.Items) < keep {
		actions.Items = append(actions.Items, &jsontree.Node{Kind: jsontree.Object, Members: []jsontree.Member{
			{Name: "action", Value: text("stop")}, {Name: "reason", Value: text("the next actions are too large to show; report what was found")},
		}})
	}
}

func text(s string) *jsontree.Node { return &jsontree.Node{Kind: jsontree.String, Text: s} }

func number(n int) *jsontree.Node {
	return &jsontree.Node{Kind: jsontree.Number, Text: fmt.Sprint(n)}
}
