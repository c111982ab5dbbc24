package cli

import "runtime/debug"

// released is the version of a release, as the linker gave it to the main package.
var released = ""

// version is the release, or the commit that was built.
func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if len(revision) > 12 {
		return "devel-" + revision[:12] + dirty
	}
	return "devel"
}
