// Package near tells which known name a wrong one stands for.
package near

import "strings"

// Nearest gives the valid name that a wrong one most likely stands for, "" where none is near. Case, dashes for
// underscores, and one or two letters that are off are near; so is a name that the other contains.
func Nearest(name string, valid []string) string {
	plain := func(s string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	}
	wrong := plain(name)
	if wrong == "" || len(wrong) > 64 {
		return ""
	}
	best, least := "", 1+max(1, len(wrong)/4)
	for _, v := range valid {
		if d := Distance(wrong, plain(v)); d < least {
			best, least = v, d
		}
	}
	if best != "" {
		return best
	}
	for _, v := range valid {
		if p := plain(v); len(wrong) >= 3 && len(p) >= 3 && (strings.Contains(p, wrong) || strings.Contains(wrong, p)) {
			return v
		}
	}
	return ""
}

// Distance counts the bytes to insert, delete or replace that make one text of the other (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
