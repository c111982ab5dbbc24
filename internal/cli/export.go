package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flyprof/flyprof-mcp/core/artifact"
	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/export"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// exported is the data of the verb's envelope.
type exported struct {
	File   string        `json:"file"`
	Bytes  int64         `json:"bytes"`
	Format export.Format `json:"format"`
	Trace  string        `json:"trace"`
	Kernel string        `json:"kernel,omitempty"`
}

// exportCommand writes a trace as a file of another form. It is no MCP tool: clients read the same as a resource.
func (c *caller) exportCommand() *cobra.Command {
	var format, tag, file string
	var force bool
	names := make([]string, len(export.Formats))
	for i, f := range export.Formats {
		names[i] = string(f.Format)
	}
	cmd := &cobra.Command{
		Use: "export RUN", Short: "Write a trace as a pprof profile, a Perfetto timeline or CSV", Args: cobra.ExactArgs(1),
		Long: "RUN is a run_id, or a directory that holds a trace. Open a profile with `go tool pprof -http=: FILE` (a flame graph by source line; -source_path for the " +
			"source), a timeline at ui.perfetto.dev.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, closer, err := c.flags.open()
			if err != nil {
				return err
			}
			defer closer.Close()
			data, err := a.export(cmd.Context(), args[0], tag, export.Format(format), file, force, c.out)
			if err != nil || file == "-" {
				return err
			}
			raw, err := jsontree.Marshal(envelope.NewWire("export", envelope.Reply[exported]{Data: &data}, nil, tools.CommandLine(c.program.Name, c.flags.given())))
			if err != nil {
				return err
			}
			return c.out.print(formatJSON, "", raw)
		},
	}
	cmd.Flags().StringVar(&format, "format", string(export.Pprof), strings.Join(names, ", "))
	cmd.Flags().StringVar(&tag, "tag", "", "which trace of the run: big or small; default big where there is one")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write, - for standard output; default a name from the trace in the working directory")
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	cmd.ValidArgsFunction = firstOnly(c.runIDs)
	offerFor(cmd, "format", fixed(names...))
	offerFor(cmd, "tag", fixed("big", "small"))
	return cmd
}

// finder looks for traces where this server may read.
func (a *app) finder() artifact.Finder {
	return artifact.Finder{Store: a.service.Store, Resolve: a.resolve}
}

// export writes the trace of a run or directory. A file is whole or not there.
func (a *app) export(ctx context.Context, name, tag string, format export.Format, file string, force bool, stdout io.Writer) (exported, error) {
	runID, path := name, ""
	if !runs.ValidID(name) {
		runID, path = "", name
		if abs, err := filepath.Abs(name); err == nil {
			path = abs
		}
	}
	finder := a.finder()
	finder.Resolve = func(_, path string) (string, error) { return path, nil } // the user's own command: whatever the user may read
	t, err := finder.Find(ctx, runID, path, tag)
	if err != nil {
		return exported{}, err
	}
	about := aboutOf(t)
	if file == "-" {
		return exported{}, export.Write(ctx, stdout, t.Dir, format, about)
	}
	if file == "" {
		file = filepath.Base(t.Dir) + endingOf(format)
	}
	out := exported{File: file, Format: format, Trace: t.Name, Kernel: t.Kernel}
	if _, err := os.Lstat(file); err == nil && !force {
		return out, envelope.Build(envelope.BadArgs, envelope.Facts{
			Message: fmt.Sprintf("%s is there already", file), Help: "Give another name with -o, or --force to write over it.",
			Evidence: envelope.Evidence{Field: "--output", Value: file, Allowed: "a file that is not there, or --force"},
		})
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, unwritable(file, err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".flyprof-export-*")
	if err != nil {
		return out, unwritable(file, err)
	}
	defer os.Remove(f.Name())
	err = export.Write(ctx, f, t.Dir, format, about)
	out.Bytes, _ = f.Seek(0, io.SeekCurrent)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return out, err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return out, unwritable(file, err)
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return out, unwritable(file, err)
	}
	return out, nil
}

func aboutOf(t artifact.Trace) export.About {
	return export.About{Kernel: t.Kernel, Run: t.RunID, Arch: t.Arch, Simulated: t.Simulated}
}

func endingOf(format export.Format) string {
	for _, f := range export.Formats {
		if f.Format == format {
			return f.Ending
		}
	}
	return ""
}

func unwritable(file string, err error) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{Message: fmt.Sprintf("%s cannot be written: %v", file, err), Evidence: envelope.Evidence{Field: "--output", Value: file, Allowed: "a file in a directory that can be written"}})
}
