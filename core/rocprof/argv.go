package rocprof

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

const (
	maxPathBytes = 4096
	maxNameBytes = 200
)

// outputKeys are the keys that a name may hold on purpose; rocprofv3 replaces them (source/lib/output/output_key.cpp).
var outputKeys = []string{"%pid%", "%rank%"}

// DiscoverArgs gives the arguments of rocprofv3, before `--` and the workload, that list every launch: a kernel trace and its
// statistics as CSV files `<dir>/<name>_kernel_trace.csv` and so on. The format is always named: from 7.0 on the default is a
// database, and no CSV comes without a word. Put %pid% into name where the workload has children that launch kernels, since
// they overwrite each other's files otherwise.
//
// Errors: BAD_ARGS for a dir that is not absolute or that rocprofv3 would rewrite, and for a name that is no plain name.
func DiscoverArgs(dir, name string) ([]string, error) {
	if err := checkOutput(dir, name); err != nil {
		return nil, err
	}
	return []string{"--kernel-trace", "--stats", "-f", "csv", "-d", dir, "-o", name}, nil
}

func checkOutput(dir, name string) error {
	if err := checkDir("output directory", dir); err != nil {
		return err
	}
	plain := name
	for _, key := range outputKeys {
		plain = strings.ReplaceAll(plain, key, "")
	}
	if name == "" || len(name) > maxNameBytes || strings.ContainsAny(plain, `/\%{}$:`) || strings.HasPrefix(name, ".") || hasControl(name) {
		return badArg("output file", name, "a plain file name; of rocprofv3's keys only "+strings.Join(outputKeys, " and "))
	}
	return nil
}

// checkDir refuses what rocprofv3 would not take as it stands: it substitutes %key%, {key} and $ENV{} in paths
// (output_key.cpp, format_path.cpp), and opens its trace files again at exit relative to a working directory that the
// workload may have changed (tool.cpp).
func checkDir(field, dir string) error {
	switch {
	case dir == "" || !filepath.IsAbs(dir):
		return badArg(field, dir, "an absolute path: rocprofv3 opens its files again at exit, after the test may have changed its directory")
	case len(dir) > maxPathBytes:
		return badArg(field, cutBytes(dir, 200)+"...", fmt.Sprintf("a path of at most %d bytes", maxPathBytes))
	case strings.ContainsAny(dir, "%{}$"):
		return badArg(field, dir, "a path without % { } $, which rocprofv3 substitutes; --runs-dir (FLYPROF_RUNS_DIR) decides where runs are kept")
	case hasControl(dir):
		return badArg(field, dir, "a path without control characters")
	}
	return nil
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// badArg is BAD_ARGS: the field, the value that was given, and what is allowed.
func badArg(field, value, allowed string) error {
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  fmt.Sprintf("%s is %q; allowed: %s", field, value, allowed),
		Evidence: envelope.Evidence{Field: field, Value: value, Allowed: allowed},
	})
}
