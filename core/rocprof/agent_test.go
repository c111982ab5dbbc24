package rocprof

import (
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/soc"
	"github.com/google/go-cmp/cmp"
)

func TestReadAgentInfo(t *testing.T) {
	const header = "Node_Id,Logical_Node_Id,Agent_Type,Simd_Per_Cu,Num_Xcc,Cu_Count,Array_Count,Num_Shader_Banks,Simd_Arrays_Per_Engine,Cu_Per_Simd_Array,Location_Id,Domain,Name,Product_Name\n"
	for _, c := range []struct {
		name, text string
		want       []Agent
		err        string
	}{
		{name: "CPU left out", text: header + "0,0,CPU,0,1,64,0,0,0,0,0,0,AMD EPYC,AMD EPYC\n"},
		{name: "RDNA: two arrays an engine", text: header + "1,1,GPU,2,1,64,8,4,2,8,3072,0,gfx1201,AMD Radeon RX 9070 XT\n",
			want: []Agent{{Node: 1, Logical: 1, Name: "gfx1201", Product: "AMD Radeon RX 9070 XT", CUs: 64, XCCs: 1, ShaderEngines: 4, PhysicalCUsPerArray: 8, SIMDsPerCU: 2, Location: 3072}}},
		{name: "a container that sees node 5 as its first GPU", text: header + "0,0,CPU,0,1,64,0,0,0,0,0,0,x,x\n5,1,GPU,4,8,256,32,32,1,9,5376,1,gfx950,AMD Instinct MI350X\n",
			want: []Agent{{Node: 5, Logical: 1, Name: "gfx950", Product: "AMD Instinct MI350X", CUs: 256, XCCs: 8, ShaderEngines: 32, PhysicalCUsPerArray: 9, SIMDsPerCU: 4, Location: 5376, Domain: 1}}},
		{name: "without the optional columns", text: "Node_Id,Agent_Type,Cu_Count,Name\n2,GPU,304,gfx942\n", want: []Agent{{Node: 2, Logical: 2, Name: "gfx942", CUs: 304}}},
		{name: "absurd", text: "Node_Id,Agent_Type,Cu_Count,Name\n2,GPU,99999999999,gfx942\n", err: "Cu_Count is 99999999999"},
		{name: "a word", text: "Node_Id,Agent_Type,Cu_Count,Name\n2,GPU,many,gfx942\n", err: `Cu_Count is "many"`},
		{name: "another file", text: "Name,Calls\nk,1\n", err: "lacks Node_Id, Agent_Type, Cu_Count"},
		{name: "empty file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadAgentInfo(strings.NewReader(c.text))
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBDF(t *testing.T) {
	for _, c := range []struct {
		domain, location int64
		want             string
	}{
		{0, 0x7500, "0000:75:00.0"},
		{1, 0x0501, "0001:05:00.1"}, // the second partition of a GPU
		{0x10000, 0xf5ff, "10000:f5:1f.7"},
		{0, 0, ""}, {0, -5, ""}, {-1, 0x7500, ""}, {0, 0x10000, ""},
	} {
		if got := (Agent{Domain: c.domain, Location: c.location}).BDF(); got != c.want {
			t.Errorf("domain %#x location %#x: %q, want %q", c.domain, c.location, got, c.want)
		}
	}
}

func TestAgentOf(t *testing.T) {
	// Two GPUs of a container whose nodes 4 and 7 are its nodes 2 and 4.
	agents := []Agent{{Node: 4, Logical: 2, Index: 0, Name: "gfx942"}, {Node: 7, Logical: 4, Index: 1, Name: "gfx950"}}
	ran := func(names ...string) []Launch {
		var out []Launch
		for _, n := range names {
			out = append(out, Launch{Agent: n})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		agents   []Agent
		launches []Launch
		want     string
	}{
		{"bare number", agents, ran("2"), "gfx942"},
		{"Agent N", agents, ran("Agent 4"), "gfx950"},
		{"the driver's node", agents, ran("Agent 7"), "gfx950"},
		{"type-relative", agents, ran("GPU 1"), "gfx950"},
		{"most launches", agents, ran("Agent 2", "Agent 4", "Agent 4"), "gfx950"},
		{"a CPU", agents, ran("CPU 0"), ""},
		{"no such agent", agents, ran("Agent 9"), ""},
		{"not a number", agents, ran("Agent x"), ""},
		{"launches do not say, two GPUs", agents, ran(""), ""},
		{"launches do not say, one GPU", agents[1:], ran(""), "gfx950"},
		{"one GPU in the files of two processes", []Agent{agents[0], agents[0]}, nil, "gfx942"},
		{"nothing", nil, nil, ""},
		{"no agents", nil, ran("Agent 2"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := AgentOf(c.agents, c.launches)
			if got.Name != c.want || ok != (c.want != "") {
				t.Errorf("%q %v, want %q", got.Name, ok, c.want)
			}
		})
	}
}

func TestRecordedAgents(t *testing.T) {
	for _, c := range []struct {
		dir, agents, trace string
		gpus               int
		want               Agent
		bdf                string
		ses, sesPerXCD     int
	}{
		{"rocm7.2_gfx950/vec_add", "discover_agent_info.csv", "discover_kernel_trace.csv", 8, Agent{
			Node: 2, Logical: 2, Name: "gfx950", Product: "AMD Instinct MI350X", CUs: 256, XCCs: 8, ShaderEngines: 32, PhysicalCUsPerArray: 9,
			SIMDsPerCU: 4, WavesPerSIMD: 8, WaveSize: 64, LDSKiB: 160, ClockMHz: 2200, DeviceID: 0x75a0, GPUID: 12605, Location: 0x7500,
		}, "0000:75:00.0", 32, 4},
		{"rocm6.4_gfx942_older_columns", "66960_agent_info.csv", "66960_kernel_trace.csv", 8, Agent{
			Node: 2, Logical: 2, Name: "gfx942", Product: "AMD Instinct MI325X", CUs: 304, XCCs: 8, ShaderEngines: 32, PhysicalCUsPerArray: 10,
			SIMDsPerCU: 4, WavesPerSIMD: 8, WaveSize: 64, LDSKiB: 64, ClockMHz: 2100, DeviceID: 0x74a5, GPUID: 9091, Location: 0x7500,
		}, "0000:75:00.0", 32, 4},
	} {
		t.Run(c.dir, func(t *testing.T) {
			agents, err := ReadAgentInfo(capture(t, "csv", c.dir, c.agents))
			if err != nil || len(agents) != c.gpus {
				t.Fatalf("%d GPUs, error %v", len(agents), err)
			}
			if last := agents[len(agents)-1]; last.Index != c.gpus-1 || last.BDF() != "0000:95:00.0" {
				t.Errorf("the last is index %d at %s", last.Index, last.BDF())
			}
			launches, err := ReadKernelTrace(capture(t, "csv", c.dir, c.trace))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := AgentOf(agents, launches)
			if diff := cmp.Diff(c.want, got); diff != "" || !ok {
				t.Error(ok, diff)
			}
			if got.BDF() != c.bdf {
				t.Errorf("BDF %s, want %s", got.BDF(), c.bdf)
			}
			figures, ok := soc.For(got.Name, got.Product)
			figures = figures.WithTopology(got.CUs, got.XCCs, got.ShaderEngines)
			if !ok || figures.CUs != c.want.CUs || figures.SEs() != c.ses || figures.SEsPerXCD != c.sesPerXCD {
				t.Errorf("as a topology: %v, %d CUs, %d SEs, %d an XCD", ok, figures.CUs, figures.SEs(), figures.SEsPerXCD)
			}
		})
	}
}
