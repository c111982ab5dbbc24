package capture

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Finder finds the programs that a capture starts, anew for each request: what is installed while a server runs is seen.
// It only looks at files.
type Finder struct {
	// Rocprofv3 and Python are the settings; empty to search.
	Rocprofv3, Python string
	// ATTLibraryPath are directories of the trace decoder.
	ATTLibraryPath []string
	Getenv         func(string) string
	// Simulated replaces the search: the stand-ins and their switches.
	Simulated *Tools
	// SimulatedGPUs is how many GPUs the simulated host has.
	SimulatedGPUs int
}

// Tools finds the programs for a worktree. Where there is no rocprofv3, Tools.Rocprofv3 is empty.
func (f Finder) Tools(root string) Tools {
	if f.Simulated != nil {
		return *f.Simulated
	}
	t := Tools{ATTLibraryPath: f.ATTLibraryPath}
	if path := firstProgram(f.RocprofPlaces()); path != "" {
		t.Rocprofv3 = []string{path}
	}
	if path := firstProgram(f.PythonPlaces(root)); path != "" {
		t.Python = []string{path}
	}
	return t
}

// RocprofPlaces are the paths where rocprofv3 is looked for, in their order: the setting alone when it is given, else PATH,
// $ROCM_PATH, $ROCM_HOME, /opt/rocm and the newest /opt/rocm-*, and the Python package of TheRock in a virtual environment.
func (f Finder) RocprofPlaces() []string {
	if f.Rocprofv3 != "" {
		return []string{f.Rocprofv3}
	}
	places := onPath(f.Getenv("PATH"), "rocprofv3")
	for _, root := range []string{f.Getenv("ROCM_PATH"), f.Getenv("ROCM_HOME"), "/opt/rocm"} {
		if filepath.IsAbs(root) {
			places = append(places, filepath.Join(root, "bin", "rocprofv3"))
		}
	}
	versions, _ := filepath.Glob("/opt/rocm-*/bin/rocprofv3")
	slices.Sort(versions)
	slices.Reverse(versions)
	return append(places, versions...)
}

// PythonPlaces are the paths where the interpreter is looked for: the setting alone when it is given, else $VIRTUAL_ENV, the
// worktree's .venv, /opt/venv, and python3 on PATH.
func (f Finder) PythonPlaces(root string) []string {
	if f.Python != "" {
		if filepath.Base(f.Python) == f.Python {
			return onPath(f.Getenv("PATH"), f.Python)
		}
		return []string{f.Python}
	}
	var places []string
	for _, venv := range []string{f.Getenv("VIRTUAL_ENV"), rooted(root, ".venv"), "/opt/venv"} {
		if filepath.IsAbs(venv) {
			places = append(places, filepath.Join(venv, "bin", "python3"), filepath.Join(venv, "bin", "python"))
		}
	}
	return append(places, onPath(f.Getenv("PATH"), "python3")...)
}

func rooted(root, name string) string {
	if root == "" {
		return ""
	}
	return filepath.Join(root, name)
}

// onPath gives the candidates of a program on PATH. Relative entries are passed over: the working directory of a server is
// the client's choice.
func onPath(path, name string) []string {
	var out []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

func firstProgram(places []string) string {
	for _, p := range places {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows") {
			return p
		}
	}
	return ""
}
