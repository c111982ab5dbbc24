package rocprof

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

func seedFixtures(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "csv", "*.csv"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("")
	f.Add("\xef\xbb\xbf")
	f.Add("a\"b,\"c\n\n\r\n\"")
}

func FuzzKernelTrace(f *testing.F) {
	seedFixtures(f)
	f.Add(traceHeader + "1,2,k,3,4,5,6,7,9223372036854775807,9223372036854775807,10\n2,2,k,3")
	f.Fuzz(func(t *testing.T, text string) {
		launches, _ := ReadKernelTrace(strings.NewReader(text))
		inv := NewInventory(launches)
		calls := 0
		for _, k := range inv.Kernels() {
			calls += k.Calls
			launchesOfGroups := 0
			for _, g := range inv.Groups(k.Name) {
				launchesOfGroups += g.Launches
				if g.Workgroups < 1 || g.TotalNS < 0 || g.MinNS > g.MaxNS || g.Ordinals.At(1) < 1 {
					t.Errorf("group %+v", g)
				}
				if c, err := inv.ChooseLaunch(k.Name, g.ID, ""); err != nil || c.Group.ID != g.ID || !g.Ordinals.Contains(c.Ordinal) {
					t.Errorf("group %s of %q chooses %+v, error %v", g.ID, k.Name, c, err)
				}
			}
			if launchesOfGroups != k.Calls || k.Groups != len(inv.Groups(k.Name)) {
				t.Errorf("%q: %d calls, %d in groups", k.Name, k.Calls, launchesOfGroups)
			}
		}
		if calls != len(launches) {
			t.Errorf("%d launches, %d in the inventory", len(launches), calls)
		}
		AgentOf([]Agent{{Logical: 2}, {Logical: 3, Index: 1}}, launches)
	})
}

func FuzzKernelStats(f *testing.F) {
	f.Add("\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n\"k\",1,2,2.0,1e2,2,2,nan\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, _ := ReadKernelStats(strings.NewReader(text))
		for _, r := range rows {
			if r.Calls < 0 || r.TotalNS < 0 || r.AvgNS != r.AvgNS || r.AvgNS-r.AvgNS != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzCounters(f *testing.F) {
	f.Add("Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,C,1.5\n2,k,C,0x1p-2\n3,k,C,-inf\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, _ := ReadCounters(strings.NewReader(text))
		for _, r := range rows {
			if r.Value-r.Value != 0 || !r.HasValue && r.Value != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzAgentInfo(f *testing.F) {
	f.Add("Node_Id,Logical_Node_Id,Agent_Type,Num_Xcc,Cu_Count,Array_Count,Simd_Arrays_Per_Engine,Location_Id,Domain,Name,Product_Name\n2,2,GPU,8,256,32,0,29952,0,gfx950,AMD Instinct MI350X\n", "Agent 2")
	f.Add("Node_Id,Agent_Type,Cu_Count,Name\n9,GPU,1,g\n", "GPU 0")
	f.Fuzz(func(t *testing.T, text, name string) {
		agents, _ := ReadAgentInfo(strings.NewReader(text))
		bdf := regexp.MustCompile(`^$|^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
		for i, a := range agents {
			if a.Index != i || a.CUs < 0 || a.ShaderEngines < 0 || !bdf.MatchString(a.BDF()) {
				t.Errorf("%+v at %q", a, a.BDF())
			}
		}
		if a, ok := AgentOf(agents, []Launch{{Agent: name}}); ok && !containsAgent(agents, a) {
			t.Errorf("%q gives %+v, which is none of them", name, a)
		}
	})
}

func containsAgent(agents []Agent, a Agent) bool {
	for _, b := range agents {
		if a == b {
			return true
		}
	}
	return false
}

func FuzzIterRange(f *testing.F) {
	for _, text := range []string{"8", "[6, [8-8]]", "1-64", "0", "5-", "99999999999999999999", "1-3,2-5", "007", " [ ] , "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseIterRange(text)
		if err != nil {
			if e := envelope.As(err); e.Code != envelope.BadArgs || !utf8.ValidString(e.Message) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		checkIterSet(t, text, s)
	})
}

func FuzzVersionAndHelp(f *testing.F) {
	f.Add([]byte(nine))
	f.Add([]byte(oldHelp))
	f.Add([]byte(newHelp))
	f.Add([]byte("\x1b[\x1b]8;;\x1b(\xff version: \xf0"))
	f.Fuzz(func(t *testing.T, out []byte) {
		v, err := ParseVersion(out)
		if (err == nil) != v.HasVersion || v.HasVersion && v.SDK == "" || len(v.Raw) > maxRawVersion || !utf8.ValidString(v.SDK+v.Raw) {
			t.Errorf("%+v, error %v", v, err)
		}
		for _, name := range ParseHelp(out).Names() {
			if !strings.HasPrefix(name, "--") || !ParseHelp(out).Has(name) {
				t.Errorf("option %q", name)
			}
		}
	})
}

func FuzzKernelRegex(f *testing.F) {
	for _, name := range kernelNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		pattern, err := KernelRegex(name)
		if err != nil {
			return
		}
		checkECMAScript(t, name, pattern)
		if re, err := regexp.Compile(pattern); err != nil || !re.MatchString(name) || re.MatchString("x"+name) || re.MatchString(name+"x") {
			t.Errorf("%q: %q, error %v", name, pattern, err)
		}
	})
}

// FuzzOutputs makes files of hostile names: whatever is found is a path below the directory.
func FuzzOutputs(f *testing.F) {
	f.Add("out_kernel_trace.csv\x00a/1_shader_engine_0_2.att\x00ui_output_agent_1_dispatch_2/x")
	f.Add("_code_object_id_9.out\x00ui_output_agent_999999999999999999_dispatch_0/\x001_shader_engine_9999_999999999999999999.att")
	f.Fuzz(func(t *testing.T, names string) {
		dir := t.TempDir()
		for _, name := range strings.SplitN(names, "\x00", 6) {
			if path := filepath.Join(dir, filepath.FromSlash(name)); filepath.IsLocal(filepath.FromSlash(name)) && len(name) < 200 && os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, nil, 0o644) // a name that the file system refuses is none
			}
		}
		got, err := FindOutputs(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := append(append(append([]string{}, got.UIDirs...), got.KernelTraces...), got.CodeObjects...)
		for _, a := range got.ATTFiles {
			all = append(all, a.Path)
		}
		for _, path := range all {
			if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%q is not below the directory", path)
			}
		}
	})
}

func FuzzEnvironment(f *testing.F) {
	f.Add("PATH=/a\nLD_PRELOAD=x\n=C:=\nA", "HOME=/h\nB=1", "PATH")
	f.Fuzz(func(t *testing.T, inherited, set, unset string) {
		in := strings.Split(inherited, "\n")
		got := Environment(in, strings.Split(set, "\n"), strings.Split(unset, "\n"))
		seen := map[string]bool{}
		for _, kv := range got {
			name, _, ok := strings.Cut(kv, "=")
			if !ok || name == "" || seen[envKey(name)] || strings.Contains(kv, "\x00") {
				t.Errorf("%q in %q", kv, got)
			}
			seen[envKey(name)] = true
		}
		EnvDelta(in, got, strings.Split(unset, "\n"))
		CodegenEnv(got)
	})
}
