package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the sequences that steer a terminal (ECMA-48): control sequences, strings up to their terminator, and two-character ones.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)|\x1b[ -/]*[0-Z\\\\^-~]")

// plain makes one line of a text that somebody else wrote: terminal sequences go, a line break or tab becomes a space, and what is
// left that does not print is shown as its code. So a log cannot write to the terminal what it likes, nor turn its text around.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for s = escapes.ReplaceAllString(s, ""); s != ""; {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r == '\r':
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

func isPlain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
