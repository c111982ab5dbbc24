package worktree

import (
	"fmt"
	"slices"
	"strings"
)

// Options of pytest by what they may do to a run that is confined to the worktree.
const (
	pytestSwitches = "qvxsl" // short, without a value
	pytestValues   = "kmr"   // short, with a value that selects or reports
)

// pytestRefused load code from elsewhere (a plugin, a configuration, a package, a debugger) or write or remove files.
var pytestRefused = []string{
	"--basetemp", "--config-file", "--confcutdir", "--cov", "--debug", "--html", "--inifile", "--junit-xml", "--junitxml", "--log-file", "--override-ini",
	"--pastebin", "--pdb", "--pdbcls", "--pyargs", "--report-log", "--result-log", "--resultlog", "--rootdir", "--trace",
}

// confined says why words may not be given to pytest; empty where they may. allowed judges a file or directory that is named.
func confined(words []string, allowed func(name string) string) string {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "" || w == "--":
		case w[0] == '@':
			return fmt.Sprintf("pytest reads further arguments from %q", shorten(w, 100))
		case strings.HasPrefix(w, "--"):
			name, _, _ := strings.Cut(w, "=")
			// A beginning counts as the whole, and what begins with it is of the same plugin.
			if slices.ContainsFunc(pytestRefused, func(r string) bool { return strings.HasPrefix(r, name) || strings.HasPrefix(name, r+"-") }) {
				return fmt.Sprintf("pytest's option %s is not allowed", shorten(name, 100))
			}
		case w[0] == '-':
			skip, why := shortOptions(w, words[i+1:])
			if why != "" {
				return why
			}
			i += skip
		default:
			file, _, _ := strings.Cut(w, "::")
			if why := allowed(file); why != "" {
				return why
			}
		}
	}
	return ""
}

// shortOptions reads -x, -xvs, -k EXPR, -kEXPR and the like. skip is how many of the words behind are its value.
func shortOptions(w string, behind []string) (skip int, why string) {
	for at := 1; at < len(w); at++ {
		c, value := w[at:at+1], w[at+1:]
		switch {
		case strings.Contains(pytestSwitches, c):
			continue
		case c != "p" && !strings.Contains(pytestValues, c):
			return 0, fmt.Sprintf("pytest's option -%s is not allowed", shorten(strings.ToValidUTF8(c, "?"), 8))
		}
		if value == "" && len(behind) > 0 {
			value, skip = behind[0], 1
		}
		if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "-p") { // pytest scans values for both
			return 0, fmt.Sprintf("the value %q of pytest's option -%s is not allowed", shorten(value, 100), c)
		}
		if c == "p" && !strings.HasPrefix(value, "no:") {
			return 0, fmt.Sprintf("pytest's option -p only switches plugins off here (-p no:NAME), and %q does not", shorten(value, 100))
		}
		return skip, ""
	}
	return 0, ""
}
