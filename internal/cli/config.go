package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// The commands that set the program up. They are no tools: nothing of a server is needed for them.
const configVerb request.Verb = "config"

// settingsData is what the command config answers.
type settingsData struct {
	// File is the configuration file in force, empty where there is none; DefaultFile is where one is looked for unless it is named.
	File        string        `json:"file,omitempty"`
	DefaultFile string        `json:"default_file,omitempty"`
	Settings    []settingData `json:"settings"`
}

// settingData is one setting in force.
type settingData struct {
	Name string `json:"name"`
	// Value is as the environment would have it; Values are the parts of one that may have several.
	Value  string   `json:"value"`
	Values []string `json:"values,omitempty"`
	// Source is flag, environment, default, or FILE:LINE.
	Source string `json:"source"`
	Env    string `json:"env"`
	Flag   string `json:"flag,omitempty"`
}

func (c *caller) configCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: string(configVerb), Short: "Print the settings in force and where each is from", Args: cobra.NoArgs, ValidArgsFunction: noFiles,
		Long: "Prints the settings in force and where each is from: a flag, the environment, a line of the configuration file, or the default.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkFormat(format); err != nil {
				return err
			}
			settings, err := c.flags.resolve()
			if err != nil {
				return err
			}
			data := inForce(settings, os.Getenv)
			return reply(c, configVerb, format, envelope.Reply[settingsData]{Data: &data}, nil)
		},
	}
	addFormat(cmd, &format, formatJSON)
	return cmd
}

// inForce lists the settings, and of a secret only that it is there.
func inForce(c config.Config, getenv func(string) string) settingsData {
	data := settingsData{File: c.Config, DefaultFile: config.DefaultPath(getenv)}
	for _, s := range c.InForce() {
		row := settingData{Name: s.Flag, Source: s.From, Env: s.Env, Flag: "--" + s.Flag}
		row.Value = strings.Join(s.Values, string(filepath.ListSeparator))
		if s.Multi {
			row.Values = s.Values
		}
		data.Settings = append(data.Settings, row)
	}
	if getenv(tokenVar) != "" {
		data.Settings = append(data.Settings, settingData{Name: "http-token", Value: "(not shown)", Source: config.FromEnvironment, Env: tokenVar})
	}
	return data
}

func settingsView(s *sheet, d settingsData) {
	file := d.File
	if file == "" {
		file = "none"
		if d.DefaultFile != "" {
			file += " (there would be " + d.DefaultFile + ")"
		}
	}
	s.linef("configuration file: %s", file)
	var rows [][]string
	for _, row := range d.Settings {
		rows = append(rows, []string{row.Name, row.Value, row.Source, row.Env})
	}
	s.rows([]string{"SETTING", "VALUE", "SOURCE", "ENVIRONMENT"}, rows)
}

// reply prints the answer of a command that is no tool. The error is the exit code of one that failed.
func reply[D any](c *caller, verb request.Verb, format string, r envelope.Reply[D], err error) error {
	wire := envelope.NewWire(string(verb), r, err, tools.CommandLine(c.program.Name, c.flags.given()))
	raw, marshalErr := jsontree.Marshal(wire)
	if marshalErr != nil {
		return marshalErr
	}
	if err := c.out.print(format, verb, raw); err != nil {
		return err
	}
	if wire.Error != nil {
		return exited(wire.Error.ExitCode)
	}
	return nil
}
