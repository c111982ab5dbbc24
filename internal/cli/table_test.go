package cli

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, naïve and 日本":                 "plain text, naïve and 日本",
		"\x1b[31mred\x1b[0m":                       "red",
		"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y": "xy",
		"\x1bPq#0\x1b\\z":                          "z",
		"\x1bc\x1b(B\x1b7gone":                     "gone",
		"\u009b31mred":                             "red",
		"two\nlines\tand\r\n":                      "two lines and ",
		"bell\a back\b nul\x00":                    `bell\u0007 back\u0008 nul\u0000`,
		"unfinished \x1b[3":                        `unfinished \u001b[3`,
		"unfinished \x1b]0;title":                  `unfinished \u001b]0;title`,
		"turned \u202egnp.exe":                     `turned \u202egnp.exe`,
		"no \xff utf-8":                            `no \xff utf-8`,
	} {
		if got := plain(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// printable says that a text can be shown on any terminal: lines of printing characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"", "\x1b[31mred", "\x1b\x1b[[0m", "\u009b\u009b", "\xff\xfe", "\u2028\u202e", "\x1b]\x1b]\x07"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := plain(s); !printable(got) || strings.Contains(got, "\n") || plain(got) != got {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

// hostile is an envelope whose every text tries to steer the terminal and to leave its line.
func hostile(t testing.TB, raw string) json.RawMessage {
	root, err := jsontree.Parse([]byte(raw), jsontree.Limits{Bytes: len(raw), Depth: 50})
	if err != nil {
		t.Fatal(err)
	}
	var spoil func(n *jsontree.Node)
	spoil = func(n *jsontree.Node) {
		if n.Kind == jsontree.String {
			n.Text += "\x1b[2J\u202e\r\nerror fake: \x9b\x00\t'; rm -rf /"
		}
		for _, item := range n.Items {
			spoil(item)
		}
		for _, m := range n.Members {
			if m.Name != "base64" {
				spoil(m.Value)
			}
		}
	}
	spoil(root)
	return root.Bytes()
}

// samples has data for each view.
var samples = map[request.Verb]string{
	request.VerbDoctor:  `{"verdict":"not-ready","blockers":["NO_GPU"],"checks":[{"id":"gpu","ok":false,"state":"fail","looked_at":[],"found":"none","do":"get one","code":"NO_GPU"},{"id":"space","ok":true,"state":"warn","looked_at":[],"found":"little","do":"free some"}],"gpus":[],"simulated":true,"runs_dir":"/r"}`,
	request.VerbList:    `{"worktree":"/w","kernels":[{"kernel":"softmax","recipe_source":"registry","category":"reduction","test_file":"t.py","runner":"script","runnable":true,"symbols":["softmax_kernel_*"],"shape":{"bound":"env","form":"M,N"}}],"total":2,"offset":0,"files_read":1}`,
	request.VerbTile:    `{"kernel":"gemm","category":"gemm","problem":{"shape":"M=8,N=8,K=8","dims":[],"dtype":"bf16","out_dtype":"bf16","operator":"gemm"},"arch":"gfx950","product":"MI350X","recommended":{"bm":256,"bn":128,"bk":64,"regime":"compute-bound","why":"it fits"},"alternatives":[{"bm":64,"relative_cost":1.25}],"evaluated":{"bm":16,"source":"given"},"roofline":{},"decided_by":"","lds_bytes":0,"vgpr_estimate":56,"threads":256,"occupancy":{"waves_per_cu":32,"limiter":"vgpr"},"grid":{"workgroups":8,"tail_verdict":"exact-fit","att":{"verdict":"unlikely","basis":"","target_cu":1,"shader_engine_mask":"0xf","mask_why":"","leading_dim":"M","min_leading_dim":64}}}`,
	request.VerbCapture: `{"run_id":"softmax-1","state":"failed","phase":"att:big","elapsed_s":2.5,"estimate_s":40,"log_tail":["a log line"],"repeated":true,"kernel":"softmax_kernel_0","recipe_kernel":"softmax","calls":3,"avg_ns":31174.3,"tags":{"big":{"state":"done","waves":4,"ins":9,"mapped_pct":99.5,"arch_vgpr":64,"accum_vgpr":0,"grid":{"workgroups":8,"source":"measured"},"kept_dir":"att/big/x","capture_rc":0},"small":{"state":"failed","error":{"code":"EMPTY_ATT","message":"none"},"waves":0,"ins":0,"capture_rc":0}},"pmc":[{"counters":["SQ_WAVES"],"values":[{"name":"SQ_WAVES","value":16384,"dispatches":1}]},{"counters":["X"],"error":{"code":"PROFILER_CRASHED","message":"died"}}],"checks":[{"id":"mapped_pct","pass":true,"value":"99.5","want":"> 90"},{"id":"match_confidence","pass":false,"value":"heuristic","want":"exact or fuzzy"}]}`,
	request.VerbTriage:  `{"source":"path","code":"EMPTY_ATT","summary":"nothing","causes":[{"cause":"small grid","confidence":"high","evidence":["8 workgroups"],"do":"enlarge"}],"caveats":[{"id":"WAVES_CUT","message":"cut"}],"directory":{"path":"/x","att_files":1,"header_only":0,"dispatches":[{"dir":"ui_output_agent_1_dispatch_2","state":"kept","kernels":["k"],"waves":3,"ins":4,"mapped_pct":50}]}}`,
	request.VerbRead:    `{"uri":"flyprof://logs/x/y","mime_type":"text/plain","text":"first line\n\tsecond line","offset":0,"next_offset":9,"size":99,"entries":[{"uri":"flyprof://runs","name":"runs","description":"index","mime_type":"text/plain"}],"base64":"AAEC"}`,

	request.VerbBubbles:  `{"run_id":"k-1","tag":"big","simulated":true,"trace":{"path":"ui_output_agent_1_dispatch_2","kernel":"k_0","codeobj":1,"ins":9,"mapped":9,"waves":4,"waves_read":4},"totals":{"hitcount":9,"latency":900,"stall":800,"idle":7,"issue":100,"stall_pct":88.2},"stalls":[{"kind":"vmcnt","stall":800,"stall_pct":100,"on":[{"class":"vmem_load","stall":790},{"class":"","stall":10}]}],"mix":[],"hot":[{"code_line":22,"address":"0x1","isa":"s_waitcnt vmcnt(3)","class":"wait","hitcount":256,"latency":900,"stall":800,"idle":7,"stall_pct":23.44,"place":"k.py:17"}],"hot_total":1,"lines":[{"file":"k.py","line":17,"ins":4,"hitcount":9,"latency":900,"stall":800,"idle":7,"stall_pct":28.5,"top_kind":"vmcnt","text":"\trow = load()"}],"lines_total":1}`,
	request.VerbMap:      `{"tag":"big","simulated":true,"trace":{"path":"ui_output_agent_1_dispatch_2","kernel":"k_0","codeobj":1,"ins":9,"mapped":9,"waves":4,"waves_read":4},"total":1,"totals":{"hitcount":9,"latency":900,"stall":800,"idle":7},"stall_pct":12.5,"instructions":[{"code_line":22,"address":"0x1","isa":"s_waitcnt vmcnt(3)","class":"wait","hitcount":256,"latency":900,"stall":800,"idle":7,"stall_pct":23.44,"place":"k.py:17"}],"lines":[{"file":"k.py","line":17,"ins":4,"hitcount":9,"latency":900,"stall":800,"idle":7,"stall_pct":28.5,"top_kind":"vmcnt","text":"\trow = load()"}],"lines_total":1,"files":[],"files_total":0}`,
	request.VerbCounters: `{"run_id":"k-1","kernel":"k_0","dispatches":3,"values":[{"name":"SQ_WAVES","value":16384,"dispatches":1,"suspect":true}],"metrics":[{"id":"l2_hit_pct","says":"requests that hit","unit":"percent","value":60.5},{"id":"memory_pct","says":"of the peak","unit":"percent","missing":["TCC_HIT"],"why":"unknown"}],"bound":{"kind":"bandwidth","basis":"it is busy"}}`,
	request.VerbReport:   `{"simulated":true,"trace":{"path":"ui","codeobj":1,"ins":1,"mapped":1,"waves":1,"waves_read":1},"bound":{"kind":"memory_latency","basis":"waves waited"},"optimal":false,"optimal_basis":"2 findings","findings":[{"rule":"prefetch","title":"Loads are waited for","severity":"high","value":41.5,"unit":"%","threshold":25,"evidence":"e","advice":"prefetch","source":"s","where":[{"code_line":7,"isa":"s_waitcnt vmcnt(0)","stall":99,"place":"k.py:3"}]}],"passed":["barriers"],"not_applied":[{"rule":"l2","why":"no counters"}]}`,
	request.VerbDiff:     `{"before_origin":{},"after_origin":{"simulated":true},"before":{},"after":{},"alike":false,"differences":[{"what":"shape","before":"8,8","after":"9,9","matters":true}],"verdict":"faster","basis":"half the cycles","waves":{"before":100,"after":50,"delta":-50,"pct":-50},"hitcount":{"before":100,"after":50,"delta":-50,"pct":-50},"latency":{"before":100,"after":50,"delta":-50,"pct":-50},"stall":{"before":100,"after":50,"delta":-50,"pct":-50},"idle":{"before":100,"after":50,"delta":-50,"pct":-50},"bounds":[],"stalls":[{"name":"vmcnt","became":"shrank","before":100,"after":50,"delta":-50,"pct":-50}],"classes":[],"lines":[],"stalls_total":1,"classes_total":0,"lines_total":0}`,

	"other": `{"kernels":[{"name":"a","figures":[1,2.5]}],"flag":true,"none":null,"empty":{}}`,
}

const failureSample = `"error":{"code":"EMPTY_ATT","class":"empty","exitCode":66,"message":"no trace","help":"enlarge","evidence":{"field":"shape","value":"8,8","allowed":"more"},"available":[{"iter_range":"1","launches":3}],"candidates":[{"kernel":"k_0","calls":2,"why":"launched"}],"log_tail":["the log"],"retry":{"allowed":false,"used":0,"budget":0},"next_actions":[{"action":"call_tool","argv":["flyprof-mcp","capture","k","--shape","it's M=8"],"reason":"a larger shape"},{"action":"stop","reason":"or stop"}]}`

// sample makes an envelope of a view's data.
func sample(verb request.Verb, failed bool) string {
	rest := `"next_actions":[{"action":"call_tool","argv":["flyprof-mcp","list"],"reason":"go on"}]`
	if failed {
		rest = failureSample
	}
	return `{"ok":` + map[bool]string{true: "false", false: "true"}[failed] + `,"command":"x","data":` + samples[verb] + `,"warnings":[{"code":"LOW","message":"low"}],"truncated":{"field":"data.kernels","shown":1,"total":2,"read_on":"offset 1"},` + rest + `}`
}

func TestTables(t *testing.T) {
	t.Parallel()
	for verb, says := range map[request.Verb][]string{
		request.VerbDoctor:   {"doctor: not-ready: NO_GPU", "FAIL     gpu    NO_GPU  none", "gpu: get one", "space: free some", "SIMULATED"},
		request.VerbList:     {"2 kernels of /w", "softmax  reduction  registry  yes       M,N    softmax_kernel_*"},
		request.VerbTile:     {"recommended  256  128  64  1\n", "alternative  64            1.25", "given        16\n", "regime     compute-bound", "0 bytes a workgroup", "likely from M=64"},
		request.VerbCapture:  {"run softmax-1: failed, att:big", "3, 31.174 us each", "big    done    8           4      9    99.5        64+0", "EMPTY_ATT: none", "1     SQ_WAVES  16384", "PROFILER_CRASHED: died", "ok    mapped_pct", "FAIL  match_confidence", "  a log line", "earlier failure"},
		request.VerbTriage:   {"triage of the path: EMPTY_ATT nothing", "high        small grid  enlarge", "evidence: 8 workgroups", "ui_output_agent_1_dispatch_2  kept", "WAVES_CUT: cut"},
		request.VerbRead:     {"flyprof://runs  index", "first line\n        second line\n", "3 bytes of text/plain", "(up to 9 of 99)"},
		request.VerbBubbles:  {"k_0, run k-1, tag big: 4 waves", "vmcnt      800    100.0  vmem_load 790, unknown 10", "22    s_waitcnt vmcnt(3)  wait   256       900      800    23.4  7     k.py:17", "k.py:17  4    800    28.5  vmcnt      row = load()", "stall 800 (88.2 %)", "SIMULATED"},
		request.VerbMap:      {"1 instructions fit: stall 800 (12.5 %)", "s_waitcnt vmcnt(3)", "k.py:17  4"},
		request.VerbCounters: {"k_0: 3 dispatches", "bound: bandwidth; it is busy", "l2_hit_pct  60.5   percent", "needs TCC_HIT unknown", "SQ_WAVES  16384  1           suspect"},
		request.VerbReport:   {"bound: memory_latency: waves waited", "high      Loads are waited for  41.5 %  prefetch", "prefetch  s_waitcnt vmcnt(0)  k.py:3  99", "l2           no counters", "SIMULATED"},
		request.VerbDiff:     {"faster: half the cycles", "shape      8,8     9,9    figures cannot be compared", "stall     100     50     -50    -50.0", "vmcnt            shrank  100     50     -50    -50.0", "SIMULATED"},
		"other":              {"kernels[0].figures[1]  2.5", "flag                   true"},
	} {
		for _, failed := range []bool{false, true} {
			var out bytes.Buffer
			if err := writeTable(&out, verb, json.RawMessage(sample(verb, failed)), false); err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(says), "warning LOW: low", "data.kernels: 1 of 2 are shown; offset 1")
			if failed {
				want = append(want, "error x: EMPTY_ATT: no trace\nenlarge\n", "field    shape", "k_0        2      launched", "  the log", `      flyprof-mcp capture k --shape "it's M=8"`, "  - stop: or stop")
			} else {
				want = append(want, "Next:\n  - go on\n      flyprof-mcp list\n")
			}
			for _, text := range want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%s: no %q in\n%s", verb, text, out.String())
				}
			}
		}
	}
}

// TestHostileTables: no text of a log or a symbol reaches the terminal as anything but characters on its own line.
func TestHostileTables(t *testing.T) {
	t.Parallel()
	for verb := range samples {
		for _, failed := range []bool{false, true} {
			for _, coloured := range []bool{false, true} {
				var out bytes.Buffer
				if err := writeTable(&out, verb, hostile(t, sample(verb, failed)), coloured); err != nil {
					t.Fatal(err)
				}
				text := out.String()
				for code := range map[string]bool{"31": true, "32": true, "33": true, "0": true} {
					if coloured {
						text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
					}
				}
				if !printable(text) {
					t.Errorf("%s: %q", verb, text)
				}
				// The text of a read page has lines of its own; nothing else has.
				if verb != request.VerbRead && strings.Contains(text, "\nerror fake") {
					t.Errorf("%s: a text begins a line of its own: %s", verb, text)
				}
			}
		}
	}
}

// TestColours: marks are painted where colours are wanted, and columns stay where they are.
func TestColours(t *testing.T) {
	t.Parallel()
	var without, with bytes.Buffer
	raw := json.RawMessage(sample(request.VerbDoctor, true))
	for out, coloured := range map[*bytes.Buffer]bool{&without: false, &with: true} {
		if err := writeTable(out, request.VerbDoctor, raw, coloured); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(without.String(), "\x1b") || !strings.Contains(with.String(), "\x1b[31mFAIL\x1b[0m ") {
		t.Errorf("%q\n%q", without.String(), with.String())
	}
	if got := escapes.ReplaceAllString(with.String(), ""); got != without.String() {
		t.Errorf("colours change the text:\n%s\n%s", got, without.String())
	}
}

// TestShell: a shell reads the words that were written, whatever is in them.
func TestShell(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	argv := []string{"flyprof-mcp", "capture", "it's", `a"b`, "$(touch x)", "`touch x`", "a b", "", "*", "~", "M=8,N=8", "new\nline", "\x1b[31m", "x\\y", "!!", "-", "#c", "ümläut", "\u202e"}
	line := shell(argv)
	if !printable(line) || strings.Contains(line, "\n") {
		t.Errorf("%q", line)
	}
	out, err := exec.Command(bash, "-c", `eval "set -- $1"; printf '%s\0' "$@"`, "-", line).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, argv) {
		t.Errorf("%q\nbecomes %q\nand should be %q", line, got, argv)
	}
}

func FuzzTable(f *testing.F) {
	for verb := range samples {
		f.Add(string(verb), sample(verb, false))
		f.Add(string(verb), sample(verb, true))
	}
	f.Fuzz(func(t *testing.T, verb, raw string) {
		var out bytes.Buffer
		if err := writeTable(&out, request.Verb(verb), json.RawMessage(raw), false); err == nil && !printable(out.String()) {
			t.Errorf("%q", out.String())
		}
	})
}
