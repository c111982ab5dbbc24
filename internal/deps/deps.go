// Package deps keeps the modules in go.mod while the packages that need them are written.
package deps

import (
	_ "github.com/gofrs/flock"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/renameio/v2/maybe"
	_ "github.com/invopop/jsonschema"
	_ "github.com/lmittmann/tint"
	_ "github.com/mark3labs/mcp-go/client"
	_ "github.com/mark3labs/mcp-go/mcp"
	_ "github.com/mark3labs/mcp-go/server"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v5"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sys/unix"
)
