package cli

import _ "embed"

// instructions teach a client's model the loop. Clients show them at most in part, so they stay short.
//
//go:embed instructions.md
var instructions string
