// Package install puts this program into the files of others: MCP clients' configurations, and folders of Agent Skills. What a file
// holds besides stays as it is, and a file that cannot be understood is left alone.
package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
)

// Host is what decides where files are.
type Host struct {
	// OS is runtime.GOOS but in tests.
	OS     string
	Getenv func(string) string
	// Dir is the working directory, which is the project.
	Dir string
}

// Home is the user's home directory, empty where the environment names none.
func (h Host) Home() string {
	if h.OS == "windows" {
		return h.Getenv("USERPROFILE")
	}
	return h.Getenv("HOME")
}

// home is a path below the home directory.
func home(parts ...string) func(Host) string {
	return func(h Host) string { return below(h.Home(), parts) }
}

// settings is a path below the directory in which applications keep their settings.
func settings(parts ...string) func(Host) string {
	return func(h Host) string {
		switch h.OS {
		case "windows":
			return below(h.Getenv("APPDATA"), parts)
		case "darwin":
			return below(h.Home(), append([]string{"Library", "Application Support"}, parts...))
		}
		if d := h.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
			return below(d, parts)
		}
		return below(h.Home(), append([]string{".config"}, parts...))
	}
}

func below(dir string, parts []string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// The scopes: for the user wherever he works, or for the project in the working directory.
const (
	ScopeUser    = "user"
	ScopeProject = "project"
)

// Scopes lists them.
func Scopes() []string { return []string{ScopeUser, ScopeProject} }

// Format is how a client writes its configuration.
type Format string

// The formats. JSONC has comments and trailing commas.
const (
	JSON  Format = "json"
	JSONC Format = "jsonc"
	TOML  Format = "toml"
)

// Client is an MCP client that starts servers by an entry in a file of its own.
type Client struct {
	Name string
	// user gives the file for the user, project the one inside a project; nil where the client has none.
	user    func(Host) string
	project []string
	Format  Format
	// Key holds the entries of all servers.
	Key string
	// typed clients want the transport said; timeouts are the fields that let a call last as long as a whole capture.
	typed    bool
	timeouts []timeout
	// command is the client's own way to add a server for the user, followed by the program; nil where it has none.
	command []string
}

// timeout is a field of an entry, in the unit of the client.
type timeout struct {
	name  string
	value int
}

// wholeCaptureS is longer than a run may take by default (1,200 s).
const wholeCaptureS = 1800

// clients is the table. The paths, keys and time limits are those of the clients' documentation as of late 2026; Codex gives a server 10 s to
// start unless told otherwise, and a call 300 s.
var clients = []Client{
	{Name: "claude-code", user: home(".claude.json"), project: []string{".mcp.json"}, Format: JSON, Key: "mcpServers", typed: true,
		timeouts: []timeout{{"timeout", wholeCaptureS * 1000}}, command: []string{"claude", "mcp", "add", "--scope", ScopeUser, ServerName, "--"}},
	{Name: "claude-desktop", user: settings("Claude", "claude_desktop_config.json"), Format: JSON, Key: "mcpServers"},
	{Name: "cursor", user: home(".cursor", "mcp.json"), project: []string{".cursor", "mcp.json"}, Format: JSON, Key: "mcpServers"},
	{Name: "vscode", user: settings("Code", "User", "mcp.json"), project: []string{".vscode", "mcp.json"}, Format: JSONC, Key: "servers", typed: true},
	{Name: "codex", user: codexFile, Format: TOML, Key: "mcp_servers", timeouts: []timeout{{"startup_timeout_sec", 20}, {"tool_timeout_sec", wholeCaptureS}},
		command: []string{"codex", "mcp", "add", ServerName, "--"}},
}

func codexFile(h Host) string {
	if d := h.Getenv("CODEX_HOME"); d != "" {
		return filepath.Join(d, "config.toml")
	}
	return home(".codex", "config.toml")(h)
}

// Names gives the names of the clients.
func Names() []string {
	var out []string
	for _, c := range clients {
		out = append(out, c.Name)
	}
	return out
}

// Find gives a client by name. BAD_ARGS with the names that there are.
func Find(name string) (Client, error) {
	if i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name }); i >= 0 {
		return clients[i], nil
	}
	message := fmt.Sprintf("there is no client %.100q", name)
	if name == "" {
		message = "--client is missing"
	} else if meant := near.Nearest(name, Names()); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	return Client{}, envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  message,
		Evidence: envelope.Evidence{Field: "--client", Value: name, Allowed: strings.Join(Names(), ", "), ValidNames: Names()},
	})
}

// Scopes gives the scopes for which the client has a file.
func (c Client) Scopes() []string {
	if c.project == nil {
		return []string{ScopeUser}
	}
	return Scopes()
}

// File gives the client's file. BAD_ARGS for a scope that it has not, and where the environment names no home directory.
func (c Client) File(h Host, scope string) (string, error) {
	if !slices.Contains(c.Scopes(), scope) {
		allowed := strings.Join(c.Scopes(), ", ")
		return "", envelope.Build(envelope.BadArgs, envelope.Facts{
			Message:  fmt.Sprintf("%s has no file for the scope %.100q; allowed: %s", c.Name, scope, allowed),
			Evidence: envelope.Evidence{Field: "--scope", Value: scope, Allowed: allowed, ValidNames: c.Scopes()},
		})
	}
	if scope == ScopeProject {
		return below(h.Dir, c.project), nil
	}
	if file := c.user(h); file != "" {
		return file, nil
	}
	return "", envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("the file of %s cannot be found: the environment names no home directory", c.Name),
		Evidence: envelope.Evidence{Field: "--scope", Value: scope, Allowed: "an environment with HOME (on Windows USERPROFILE and APPDATA)"},
	})
}
