package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/near"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/internal/install"
	"github.com/flyprof/flyprof-mcp/skills"
)

const (
	skillsList    request.Verb = "skills list"
	skillsInstall request.Verb = "skills install"
)

// skillsData is what skills list answers.
type skillsData struct {
	Skills []skillData `json:"skills"`
}

type skillData struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Files       []string `json:"files"`
}

// skillsInstalled is what skills install answers.
type skillsInstalled struct {
	Dir   string              `json:"dir"`
	Files []install.SkillFile `json:"files"`
}

func (c *caller) skillsCommand() *cobra.Command {
	subs := []string{"install", "list"}
	cmd := &cobra.Command{
		Use: "skills", Short: "List or install the Agent Skills that come with this program", ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			meant := near.Nearest(args[0], subs)
			return misuse{repaired: c.repair(args[0], meant), err: envelope.Build(envelope.BadArgs, envelope.Facts{
				Message: "there is no skills " + quoted(args[:1]) + isNear(meant), Help: seeHelp(cmd),
				Evidence: envelope.Evidence{Field: "verb", Value: args[0], Allowed: "install or list", ValidNames: subs},
			})}
		},
	}
	cmd.AddCommand(c.skillsListCommand(), c.skillsInstallCommand())
	return cmd
}

func (c *caller) skillsListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "list", Short: "List the skills", Args: cobra.NoArgs, ValidArgsFunction: noFiles,
		RunE: func(*cobra.Command, []string) error {
			if err := c.checkFormat(format); err != nil {
				return err
			}
			data := skillsData{}
			for _, s := range skills.Skills() {
				row := skillData{Name: s.Name, Description: s.Description}
				for _, f := range s.Files {
					row.Files = append(row.Files, f.Path)
				}
				data.Skills = append(data.Skills, row)
			}
			return reply(c, skillsList, format, envelope.Reply[skillsData]{Data: &data}, nil)
		},
	}
	addFormat(cmd, &format, formatJSON)
	return cmd
}

func (c *caller) skillsInstallCommand() *cobra.Command {
	var format, dir string
	var user, force bool
	cmd := &cobra.Command{
		Use: "install", Short: "Copy the skills to where an agent finds them", Args: cobra.NoArgs, ValidArgsFunction: noFiles,
		Long: "Copies the skills into .claude/skills of the working directory, of the home directory (--user), or into another directory (--dir).\nFiles that are as they were installed are brought up to date; those that somebody changed are named, and replaced with --force only.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkFormat(format); err != nil {
				return err
			}
			host, err := thisHost()
			if err != nil {
				return err
			}
			base, below, err := skillsDir(host, dir, user)
			if err != nil {
				return err
			}
			data := skillsInstalled{Dir: filepath.Join(base, filepath.FromSlash(below))}
			data.Files, err = install.Skills(base, below, skills.Skills(), force)
			return reply(c, skillsInstall, format, envelope.Reply[skillsInstalled]{Data: &data}, err)
		},
	}
	set := cmd.Flags()
	set.StringVar(&dir, "dir", "", "directory of the skills, each in a folder of its name (default .claude/skills of the working directory)")
	set.BoolVar(&user, "user", false, "use .claude/skills of the home directory")
	set.BoolVar(&force, "force", false, "replace files that somebody changed")
	addFormat(cmd, &format, formatJSON)
	offerFor(cmd, "dir", directories)
	return cmd
}

// skillsDir gives the directory that no link may lead out of, and the folder of the skills below it. A directory that is named is the
// folder itself: where it lies is the user's choice, links included.
func skillsDir(h install.Host, dir string, user bool) (base, below string, err error) {
	bad := func(field, value, allowed string, err error) (string, string, error) {
		return "", "", envelope.Build(envelope.BadArgs, envelope.Facts{Message: field + ": " + err.Error(), Evidence: envelope.Evidence{Field: field, Value: value, Allowed: allowed}})
	}
	switch {
	case dir != "" && user:
		return bad("--user", "true", "one of --dir and --user", errors.New("--dir and --user name two places"))
	case dir != "":
		if dir, err = filepath.Abs(dir); err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return bad("--dir", dir, "a directory that can be written", err)
		}
		return dir, ".", nil
	case user && h.Home() == "":
		return bad("--user", "true", "an environment that names a home directory", errors.New("there is no home directory"))
	case user:
		return h.Home(), install.SkillsDir, nil
	}
	return h.Dir, install.SkillsDir, nil
}

func skillsView(s *sheet, d skillsData) {
	for i, skill := range d.Skills {
		if i > 0 {
			s.section()
		}
		s.linef("%s", skill.Name)
		s.linef("  %s", skill.Description)
	}
}

func skillsInstalledView(s *sheet, d skillsInstalled) {
	s.linef("skills in %s", d.Dir)
	var rows [][]string
	for _, f := range d.Files {
		rows = append(rows, []string{f.State, f.Path, f.Why})
	}
	s.rows([]string{"STATE", "FILE", "WHY"}, rows)
}
