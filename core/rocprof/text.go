package rocprof

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// ansi are the escape sequences of terminals: CSI (colours, cursor), OSC (titles, links) and two-byte ones.
var ansi = regexp.MustCompile("\x1b\\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[()#][0-9A-Za-z]|\x1b[@-Z\\\\^_a-z=>78]")

// StripANSI removes the escape sequences that terminals understand.
func StripANSI(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	return ansi.ReplaceAllString(s, "")
}

// cutBytes shortens s to at most n bytes at a character boundary.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
