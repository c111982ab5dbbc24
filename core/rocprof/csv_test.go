package rocprof

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// capture opens a file of the recorded runs beside the repository.
func capture(t *testing.T, parts ...string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{recorded.Traces(t)}, parts...)...))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no recorded run beside the repository: %s", filepath.Join(parts...))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func fixture(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "csv", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestReadKernelTraceGenerations(t *testing.T) {
	const templated = "void scale<float, 4>(float*, int, std::array<char*, 2ul>)"
	seven := func(process string) []Launch {
		one := Launch{
			Kernel: templated, KernelID: 17, DispatchID: 1, Agent: "Agent 3", Process: process, QueueID: 1, StreamID: 2, ThreadID: 501,
			StartNS: 100, EndNS: 700, Grid: [3]int64{262144, 1, 1}, Workgroup: [3]int64{256, 1, 1},
			VGPR: 32, AccumVGPR: 4, SGPR: 48, HasRegisters: true, LDSBytes: 4096, Scratch: 16,
		}
		two := one
		two.DispatchID, two.StartNS, two.EndNS = 2, 1000, 1900
		return []Launch{one, two}
	}
	old := Launch{
		Kernel: "scale_rows_kernel_0", KernelID: 17, DispatchID: 2, Agent: "3", QueueID: 1, ThreadID: 501, StartNS: 1000, EndNS: 1900,
		Grid: [3]int64{1000, 6, 1}, Workgroup: [3]int64{64, 2, 1}, LDSBytes: 4096, Scratch: 16,
	}
	first := old
	first.DispatchID, first.StartNS, first.EndNS = 1, 100, 700
	const guid = "00001111-aaaa-7bbb-8ccc-222233334444"
	for name, want := range map[string][]Launch{
		"kernel_trace_6.4.csv":        {old, first},
		"kernel_trace_7.csv":          seven(""),
		"kernel_trace_7_crlf_bom.csv": seven(""),
		"kernel_trace_rocpd.csv":      seven(guid),
		"kernel_trace_rocpd_raw.csv":  seven(guid),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadKernelTrace(fixture(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const traceHeader = "Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n"

func TestReadKernelTraceForms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kernels    []string
		err        string
	}{
		{name: "empty file"},
		{name: "header only", text: traceHeader},
		{name: "blank lines", text: traceHeader + "\n\n1,2,k,3,4,5,6,7,8,9,10\n\n", kernels: []string{"k"}},
		{name: "columns in another order", text: "Kernel_Name,Extra,Grid_Size_Z,Grid_Size_Y,Grid_Size_X,Workgroup_Size_Z,Workgroup_Size_Y,Workgroup_Size_X,End_Timestamp,Start_Timestamp,Kernel_Id,Dispatch_Id\nk,?,1,1,1,1,1,1,2,1,1,1\n", kernels: []string{"k"}},
		{name: "doubled quotes", text: traceHeader + `1,2,"op""_x, y",3,4,5,6,7,8,9,10` + "\n", kernels: []string{`op"_x, y`}},
		{name: "quotes that were not doubled", text: traceHeader + `1,2,"op"_x",3,4,5,6,7,8,9,10` + "\n", kernels: []string{`op"_x`}},
		{name: "last row cut", text: traceHeader + "1,2,k,3,4,5,6,7,8,9,10\n2,2,k,3", kernels: []string{"k"}},
		{name: "last row cut inside a name", text: traceHeader + "1,2,k,3,4,5,6,7,8,9,10\n2,2,\"voi", kernels: []string{"k"}},
		{name: "no newline at the end", text: traceHeader + "1,2,k,3,4,5,6,7,8,9,10", kernels: []string{"k"}},
		{name: "other kinds", text: "Kind," + traceHeader + "MEMORY_COPY,1,2,copy,3,4,5,6,7,8,9,10\nKERNEL_DISPATCH,1,2,k,3,4,5,6,7,8,9,10\n", kernels: []string{"k"}},

		{name: "short row", text: traceHeader + "1,2,k,3\n2,2,k,3,4,5,6,7,8,9,10\n", err: "line 2: 4 fields and no End_Timestamp"},
		{name: "short last row that was ended", text: traceHeader + "1,2,k,3\n", err: "line 2: 4 fields"},
		{name: "not a number", text: traceHeader + "1,2,k,3,4,5,6,7,8,9,10\nx,2,k,3,4,5,6,7,8,9,10\n", kernels: []string{"k"}, err: `line 3: Dispatch_Id is "x"`},
		{name: "negative", text: traceHeader + "1,2,k,3,4,5,6,7,-8,9,10\n", err: `Grid_Size_X is "-8"`},
		{name: "empty required number", text: traceHeader + "1,,k,3,4,5,6,7,8,9,10\n", err: `Kernel_Id is ""`},
		{name: "too large", text: traceHeader + "1,2,k,3,4,5,6,7,99999999999999999999,9,10\n", err: `Grid_Size_X is "99999999999999999999"`},
		{name: "columns missing", text: "Kernel_Name,Kernel_Id\nk,1\n", err: "lacks Dispatch_Id, Start_Timestamp, End_Timestamp, Workgroup_Size_X"},
		{name: "another file", text: `{"jobs": []}`, err: `it has ["{\"jobs\": []}"]`},
		{name: "binary", text: "SQLite format 3\x00\x10\x00", err: "the header lacks"},
		{name: "too many columns", text: strings.Repeat("a,", 600) + "\n", err: "601 columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadKernelTrace(strings.NewReader(c.text))
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			var kernels []string
			for _, l := range got {
				kernels = append(kernels, l.Kernel)
			}
			if diff := cmp.Diff(c.kernels, kernels); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// endless gives the same text for ever.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	if n := len(p) / len(e.text); n > 0 {
		return copy(p, strings.Repeat(e.text, n)), nil
	}
	return copy(p, e.text), nil
}

func TestReadersAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, row, err string
		rows           int
		bytes          int64
	}{
		{"rows", "1,k\n", "more than 1000 rows", 1000, maxCSVBytes},
		{"bytes", "1,k\n", "the file is larger than", maxCSVRows, 1 << 20},
		{"a row without an end", "k", "the file is larger than", maxCSVRows, 1 << 20},
		{"a quoted field without an end", "\"1,k\n", "the file is larger than", maxCSVRows, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := io.MultiReader(strings.NewReader("A,B\n"), endless{c.row})
			table, err := openTable(in, []column{may("A")})
			if err != nil {
				t.Fatal(err)
			}
			table.maxRows, table.in.left = c.rows, c.bytes
			for more := true; more && err == nil; {
				more, err = table.next()
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestReadKernelStats(t *testing.T) {
	got, err := ReadKernelStats(strings.NewReader(`"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"
"a, b",9,839765,93307.222222,42.08,90481,103560,3982.388347
"once",1,766,766.000000,38.42,766,766,0.00000000e+00
`))
	want := []KernelStat{
		{Name: "a, b", Calls: 9, TotalNS: 839765, AvgNS: 93307.222222, Percent: 42.08, MinNS: 90481, MaxNS: 103560, StdDevNS: 3982.388347},
		{Name: "once", Calls: 1, TotalNS: 766, AvgNS: 766, Percent: 38.42, MinNS: 766, MaxNS: 766},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadCounters(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []CounterRow
		err        string
	}{
		{name: "2024: no kernel id, no timestamps", text: `"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","SGPR_Count","Counter_Name","Counter_Value"
1,4,1,1,9,9,1048576,"void add<float>(float*, int)",64,0,0,8,16,"SQ_WAVES",16384
`, want: []CounterRow{{Counter: "SQ_WAVES", Value: 16384, HasValue: true, Kernel: "void add<float>(float*, int)", DispatchID: 4, Agent: "1", GridItems: 1048576, WorkgroupItems: 64}}},
		{name: "7: forms of a value", text: `Correlation_Id,Dispatch_Id,Agent_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp
1,1,Agent 2,512,7,k,64,A,0.00000000e+00,10,20
1,1,Agent 2,512,7,k,64,B,1048578.000000,10,20
1,1,Agent 2,512,7,k,64,C,-nan,10,20
1,1,Agent 2,512,7,k,64,D,inf,10,20
1,1,Agent 2,512,7,k,64,E,,10,20
`, want: []CounterRow{
			{Counter: "A", Value: 0, HasValue: true, Kernel: "k", KernelID: 7, DispatchID: 1, Agent: "Agent 2", GridItems: 512, WorkgroupItems: 64, StartNS: 10, EndNS: 20},
			{Counter: "B", Value: 1048578, HasValue: true, Kernel: "k", KernelID: 7, DispatchID: 1, Agent: "Agent 2", GridItems: 512, WorkgroupItems: 64, StartNS: 10, EndNS: 20},
			{Counter: "C", Kernel: "k", KernelID: 7, DispatchID: 1, Agent: "Agent 2", GridItems: 512, WorkgroupItems: 64, StartNS: 10, EndNS: 20},
			{Counter: "D", Kernel: "k", KernelID: 7, DispatchID: 1, Agent: "Agent 2", GridItems: 512, WorkgroupItems: 64, StartNS: 10, EndNS: 20},
			{Counter: "E", Kernel: "k", KernelID: 7, DispatchID: 1, Agent: "Agent 2", GridItems: 512, WorkgroupItems: 64, StartNS: 10, EndNS: 20},
		}},
		{name: "empty file"},
		{name: "a word", text: "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,C,many\n", err: `line 2: Counter_Value is "many"`},
		{name: "beyond a float", text: "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,C,1e999\n", err: `Counter_Value is "1e999"`},
		{name: "no counters", text: "Dispatch_Id,Kernel_Name\n1,k\n", err: "lacks Counter_Name, Counter_Value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadCounters(strings.NewReader(c.text))
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEachCounterStops(t *testing.T) {
	stop := errors.New("enough")
	rows := 0
	err := EachCounter(strings.NewReader("Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,C,1\n2,k,C,2\n3,k,C,3\n"), func(c CounterRow) error {
		rows++
		if c.DispatchID == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || rows != 2 {
		t.Errorf("%d rows and error %v, want 2 and %v", rows, err, stop)
	}
}

// plain reads a CSV file into maps, as a check on the readers.
func plain(t *testing.T, r io.Reader) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		out = append(out, m)
	}
	return out
}

func TestRecordedKernelTraces(t *testing.T) {
	for _, c := range []struct {
		path      []string
		rows      int
		registers bool
	}{
		{[]string{"csv", "rocm6.4_gfx942_older_columns", "66960_kernel_trace.csv"}, 70, false},
		{[]string{"csv", "rocm7.2_gfx950", "flash_attn_func", "discover_kernel_trace.csv"}, 45, true},
		{[]string{"csv", "rocm7.2_gfx950", "rmsnorm", "discover_kernel_trace.csv"}, 129, true},
		{[]string{"csv", "rocm7.2_gfx950", "vec_add", "discover_kernel_trace.csv"}, 68, true},
		{[]string{"csv", "docs_2025-08", "kernel_trace.csv"}, 9, true},
		{[]string{"csv", "docs_2024-10", "kernel_trace.csv"}, 7, false},
	} {
		t.Run(filepath.Join(c.path...), func(t *testing.T) {
			got, err := ReadKernelTrace(capture(t, c.path...))
			if err != nil {
				t.Fatal(err)
			}
			want := plain(t, capture(t, c.path...))
			if len(got) != c.rows || len(want) != c.rows {
				t.Fatalf("%d launches, %d rows, want %d", len(got), len(want), c.rows)
			}
			for i, l := range got {
				w := want[i]
				text := func(n int64) string { return strconv.FormatInt(n, 10) }
				pairs := map[string]string{
					"Kernel_Name": l.Kernel, "Agent_Id": l.Agent, "Kernel_Id": text(l.KernelID), "Dispatch_Id": text(l.DispatchID),
					"Start_Timestamp": text(l.StartNS), "End_Timestamp": text(l.EndNS), "Grid_Size_X": text(l.Grid[0]), "Grid_Size_Y": text(l.Grid[1]),
					"Grid_Size_Z": text(l.Grid[2]), "Workgroup_Size_X": text(l.Workgroup[0]), "Workgroup_Size_Y": text(l.Workgroup[1]), "Workgroup_Size_Z": text(l.Workgroup[2]),
				}
				if c.registers {
					pairs["VGPR_Count"], pairs["Accum_VGPR_Count"], pairs["SGPR_Count"] = text(l.VGPR), text(l.AccumVGPR), text(l.SGPR)
					pairs["LDS_Block_Size"], pairs["Scratch_Size"], pairs["Stream_Id"] = text(l.LDSBytes), text(l.Scratch), text(l.StreamID)
				} else {
					pairs["Group_Segment_Size"], pairs["Private_Segment_Size"] = text(l.LDSBytes), text(l.Scratch)
				}
				for column, got := range pairs {
					if got != w[column] {
						t.Errorf("row %d: %s is %q, want %q", i+1, column, got, w[column])
					}
				}
				if l.HasRegisters != c.registers {
					t.Errorf("row %d: HasRegisters is %v", i+1, l.HasRegisters)
				}
			}
		})
	}
}

func TestRecordedStatsAndCounters(t *testing.T) {
	stats, err := ReadKernelStats(capture(t, "csv", "rocm7.2_gfx950", "vec_add", "discover_kernel_stats.csv"))
	if err != nil || len(stats) != 15 {
		t.Fatalf("%d rows, error %v", len(stats), err)
	}
	if diff := cmp.Diff(KernelStat{Name: "vecAddKernel_0", Calls: 24, TotalNS: 461564, AvgNS: 19231.833333, Percent: 39.91, MinNS: 18080, MaxNS: 22761, StdDevNS: 1524.226437}, stats[0]); diff != "" {
		t.Error(diff)
	}
	counters, err := ReadCounters(capture(t, "csv", "counters_gfx950", "lds_conflict_counter_collection.csv"))
	if err != nil || len(counters) != 142 {
		t.Fatalf("%d rows, error %v", len(counters), err)
	}
	sum := map[string]float64{}
	for _, c := range counters {
		sum[c.Counter] += c.Value
	}
	if diff := cmp.Diff(map[string]float64{"SQ_INSTS_LDS": 1, "SQ_LDS_BANK_CONFLICT": 1}, sum); diff != "" {
		t.Error(diff)
	}
	for _, path := range [][]string{
		{"csv", "docs_2024-10", "counter_collection.csv"}, {"csv", "docs_2025-08", "counter_collection.csv"},
		{"csv", "counters_gfx1201", "gl2c_714_profstd", "r_counter_collection.csv"}, {"csv", "counters_gfx1201", "gl2c_724", "r_counter_collection.csv"},
	} {
		rows, err := ReadCounters(capture(t, path...))
		if want := plain(t, capture(t, path...)); err != nil || len(rows) != len(want) {
			t.Errorf("%s: %d rows of %d, error %v", path, len(rows), len(want), err)
		}
	}
	if rows, err := ReadCounters(capture(t, "csv", "empty_file", "r_counter_collection.csv")); err != nil || rows != nil {
		t.Errorf("empty file: %v, error %v", rows, err)
	}
	if _, err := ReadKernelTrace(capture(t, "csv", "docs_2025-08", "rocpd-to-csv.csv")); err == nil || !strings.Contains(err.Error(), "Kernel_Name") {
		t.Errorf("a file of API calls: error %v, want one that names Kernel_Name", err)
	}
}
