package rocprof

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nine is the output of --version as rocprofv3.py formats it, a key to 16 columns.
const nine = `             version: 1.1.0
        git_revision: 0123456789abcdef0123456789abcdef01234567
        library_arch: x86_64-linux-gnu
         system_name: Linux
    system_processor: x86_64
      system_version: 6.8.0-60-generic
         compiler_id: GNU
    compiler_version: 11.4.0
        rocm_version: 7.2.0
`

func TestParseVersion(t *testing.T) {
	for _, c := range []struct {
		name, out, sdk, rocm, git string
		att                       bool
		err                       bool
	}{
		{name: "nine lines", out: nine, sdk: "1.1.0", rocm: "7.2.0", git: "0123456789abcdef0123456789abcdef01234567", att: true},
		{name: "CRLF", out: strings.ReplaceAll(nine, "\n", "\r\n"), sdk: "1.1.0", rocm: "7.2.0", git: "0123456789abcdef0123456789abcdef01234567", att: true},
		{name: "colours and noise", out: "W0727 tool.cpp:1] version: not this one is it\n\x1b[1m             version: 1.3.2\x1b[0m\nmore\n", sdk: "1.3.2", att: true},
		{name: "before thread trace", out: "    version: 0.6.0\n", sdk: "0.6.0"},
		{name: "the first counts", out: "version: 1.0.0\nversion: 9.9.9\n", sdk: "1.0.0", att: true},
		{name: "not a number", out: "version: unknown\n", sdk: "unknown"},
		{name: "argparse of 6.4", out: "usage: rocprofv3 [-h] ...\nrocprofv3: error: unrecognized arguments: --version\n", err: true},
		{name: "other keys only", out: "  system_version: 6.8\n  compiler_version: 11\n", err: true},
		{name: "empty", err: true},
		{name: "invalid text", out: "\xff\xfe\x00version: 1.0\n", err: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ParseVersion([]byte(c.out))
			if (err != nil) != c.err || v.HasVersion == c.err {
				t.Errorf("error %v, HasVersion %v", err, v.HasVersion)
			}
			if v.SDK != c.sdk || v.ROCm != c.rocm || v.GitRevision != c.git || v.HasATT != c.att {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestParseVersionKeepsLittle(t *testing.T) {
	v, err := ParseVersion([]byte("version: 1.0.0\n" + strings.Repeat("é", 1<<20)))
	if err != nil || len(v.Raw) > maxRawVersion {
		t.Errorf("%d bytes kept, error %v", len(v.Raw), err)
	}
}

func TestRecordedVersion(t *testing.T) {
	out, err := io.ReadAll(capture(t, "logs", "rocprofv3_version_1.3.2.txt"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseVersion(out)
	if err != nil || v.SDK != "1.3.2" || v.ROCm != "7.14.0" || v.GitRevision != "2b22ab0195cc1461cd9abf3b969e9dd7c10af350" || !v.HasATT {
		t.Errorf("%+v, error %v", v, err)
	}
}

// Two help texts in argparse's layout: one that speaks of thread trace without having it, one that has it.
const (
	oldHelp = `usage: rocprofv3 [-h] [--version] [--kernel-trace [BOOL]]
                 [-i INPUT] [--pc-sampling-method {stochastic,host_trap}]

rocprofv3: ROCProfilerV3 Run Script. A later version has --att for thread trace

options:
  -h, --help            show this help message and exit

I/O options:
  -i INPUT, --input INPUT
                        Input file for counter collection; see --att-library-path in the manual
  -o OUTPUT_FILE, --output-file OUTPUT_FILE
                        For the output file name  --never
`
	newHelp = `usage: rocprofv3 [-h] [-i INPUT] [--att [BOOL]]
options:
  --att [BOOL], --advanced-thread-trace [BOOL]
                        Enable thread trace
  --att-gpu-index ATT_GPU_INDEX
                        Comma separated list
  -f {csv,json} [{csv,json} ...], --output-format {csv,json} [{csv,json} ...]
                        For adding output format
`
)

func TestParseHelp(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"old", oldHelp, []string{"--help", "--input", "--kernel-trace", "--output-file", "--pc-sampling-method", "--version"}},
		{"new", newHelp, []string{"--advanced-thread-trace", "--att", "--att-gpu-index", "--output-format"}},
		{"coloured", "\x1b[1m  --att\x1b[0m   Enable\n", []string{"--att"}},
		{"python's error", "Traceback (most recent call last):\n  File \"rocprofv3\"\n", nil},
		{"empty", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ParseHelp([]byte(c.text))
			if diff := cmp.Diff(c.want, o.Names()); diff != "" {
				t.Error(diff)
			}
			if o.Has("--att") != slices.Contains(c.want, "--att") || o.Has("--at") {
				t.Error("Has disagrees with Names")
			}
		})
	}
}

func TestStripANSI(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m": "red", "\x1b]0;title\x07text": "text", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link", "\x1b(Bplain": "plain", "no escapes": "no escapes",
		"\x1b[2K\x1b[1Gline": "line",
	} {
		if got := StripANSI(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
