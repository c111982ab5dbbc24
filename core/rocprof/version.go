package rocprof

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Version is what `rocprofv3 --version` says of itself.
type Version struct {
	// SDK is the version of rocprofiler-sdk such as "1.1.0". It does not tell ROCm 7.1 from 7.2; ROCm does.
	SDK string
	// ROCm is the version of the ROCm release such as "7.2.0"; empty where the output has none.
	ROCm string
	// GitRevision is the commit that was built; empty where the output has none.
	GitRevision string
	// HasATT says that this SDK (1.0.0 or later) has thread trace. The help text is the proof (ParseHelp), this a hint.
	HasATT bool
	// HasVersion says that a version was printed at all. The option came with ROCm 7.0.
	HasVersion bool
	// Raw is the output without colours, at most 4 KiB.
	Raw string
}

const (
	maxVersionBytes = 64 << 10
	maxRawVersion   = 4 << 10
	maxHelpBytes    = 1 << 20
	maxHelpOptions  = 2000
)

// versionLine is one of the nine lines `    {key:>16}: value`.
var versionLine = regexp.MustCompile(`^\s*(version|git_revision|rocm_version)\s*:\s*(\S.{0,199})$`)

// ParseVersion reads the nine-line output of --version. Noise around it (warnings, colours, other programs' output) is passed
// over; the first value of a key counts. The error says that no version line was found.
func ParseVersion(out []byte) (Version, error) {
	text := StripANSI(strings.ToValidUTF8(string(out[:min(len(out), maxVersionBytes)]), "\uFFFD"))
	v := Version{Raw: strings.TrimSpace(cutBytes(text, maxRawVersion))}
	into := map[string]*string{"version": &v.SDK, "git_revision": &v.GitRevision, "rocm_version": &v.ROCm}
	for line := range strings.Lines(text) {
		m := versionLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		if field := into[m[1]]; *field == "" {
			*field = strings.TrimSpace(m[2])
		}
	}
	if v.SDK == "" {
		return v, errors.New("no line \"version: ...\" in the output of rocprofv3 --version")
	}
	v.HasVersion = true
	major, _, _ := strings.Cut(v.SDK, ".")
	n, err := strconv.Atoi(major)
	v.HasATT = err == nil && n >= 1
	return v, nil
}

// Options are the long options that a help text defines.
type Options struct{ names []string }

var (
	longOption  = regexp.MustCompile(`--[a-zA-Z][a-zA-Z0-9-]*`)
	usageOption = regexp.MustCompile(`\[(--[a-zA-Z][a-zA-Z0-9-]*)`)
	description = regexp.MustCompile(`\S\s{2,}\S`)
)

// ParseHelp finds the long options that argparse's help text defines: those of the usage brackets and those that begin an
// entry. One that is only mentioned in a description does not count, so an old rocprofv3 that speaks of an option without
// having it is not believed.
func ParseHelp(out []byte) Options {
	text := StripANSI(strings.ToValidUTF8(string(out[:min(len(out), maxHelpBytes)]), "\uFFFD"))
	var names []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, m := range usageOption.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1])
		}
		if strings.HasPrefix(line, "-") {
			if at := description.FindStringIndex(line); at != nil {
				line = line[:at[0]+1]
			}
			names = append(names, longOption.FindAllString(line, -1)...)
		}
		if len(names) > maxHelpOptions {
			break
		}
	}
	slices.Sort(names)
	return Options{names: slices.Compact(names)}
}

// Has says whether the option is there; name with its dashes, such as "--att".
func (o Options) Has(name string) bool {
	_, found := slices.BinarySearch(o.names, name)
	return found
}

// Names are all options, sorted.
func (o Options) Names() []string { return slices.Clone(o.names) }
