package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/capture"
	"github.com/flyprof/flyprof-mcp/core/doctor"
	"github.com/flyprof/flyprof-mcp/core/request"
	"github.com/flyprof/flyprof-mcp/core/tile"
	"github.com/flyprof/flyprof-mcp/core/triage"
	"github.com/flyprof/flyprof-mcp/schemas/jsontree"
	"github.com/flyprof/flyprof-mcp/tools"
)

// views shows the data of each verb to people.
var views = map[request.Verb]func(*sheet, json.RawMessage) error{
	request.VerbDoctor:  view(doctorView),
	request.VerbList:    view(listView),
	request.VerbTile:    view(tileView),
	request.VerbCapture: view(captureView),
	request.VerbStatus:  view(captureView),
	request.VerbCancel:  view(captureView),
	request.VerbTriage:  view(triageView),
	request.VerbRead:    view(readView),

	request.VerbBubbles:  view(bubblesView),
	request.VerbMap:      view(mapView),
	request.VerbCounters: view(countersView),
	request.VerbDiff:     view(diffView),
	request.VerbReport:   view(reportView),
	configVerb:           view(settingsView),
	installVerb:          view(installView),
	skillsList:           view(skillsView),
	skillsInstall:        view(skillsInstalledView),
}

func view[D any](show func(*sheet, D)) func(*sheet, json.RawMessage) error {
	return func(s *sheet, raw json.RawMessage) error {
		var data D
		if err := json.Unmarshal(raw, &data); err != nil {
			return err
		}
		show(s, data)
		return nil
	}
}

func doctorView(s *sheet, d doctor.Data) {
	title := "doctor: " + d.Verdict
	for i, code := range d.Blockers {
		title += map[bool]string{true: ": ", false: ", "}[i == 0] + string(code)
	}
	s.linef("%s", title)
	s.simulated(d.Simulated)
	marks := map[string]string{doctor.StateOK: markOK, doctor.StateFail: markFail, doctor.StateWarn: markWarn, doctor.StateSkipped: "-"}
	var rows [][]string
	for _, c := range d.Checks {
		rows = append(rows, []string{marks[c.State], c.ID, string(c.Code), c.Found})
	}
	s.rows([]string{"", "CHECK", "CODE", "FOUND"}, rows)
	for _, c := range d.Checks {
		if c.Do != "" && c.State != doctor.StateOK {
			s.linef("%s: %s", c.ID, c.Do)
		}
	}
}

func (s *sheet) simulated(yes bool) {
	if yes {
		s.linef("%s SIMULATED GPU: every figure is invented", markWarn)
	}
}

func listView(s *sheet, d tools.ListData) {
	s.linef("%d kernels of %s", d.Total, d.Worktree)
	var rows [][]string
	for _, k := range d.Kernels {
		rows = append(rows, []string{k.Kernel, k.Category, k.RecipeSource, map[bool]string{true: "yes", false: "no"}[k.Runnable], k.Shape.Form, strings.Join(k.Symbols, " "), k.Why})
	}
	s.rows([]string{"KERNEL", "CATEGORY", "RECIPE", "RUNNABLE", "SHAPE", "SYMBOLS", "WHY"}, rows)
}

func tileView(s *sheet, d tile.Data) {
	s.linef("%s (%s) %s on %s", d.Kernel, d.Category, d.Problem.Shape, strings.TrimSpace(d.Product+" "+d.Arch))
	rows := [][]string{tileRow("recommended", d.Recommended.Tile, "1")}
	for _, a := range d.Alternatives {
		rows = append(rows, tileRow("alternative", a.Tile, decimal(a.RelativeCost)))
	}
	if d.Evaluated.Source == "given" {
		rows = append(rows, tileRow("given", d.Evaluated.Tile, ""))
	}
	s.rows([]string{"TILE", "BM", "BN", "BK", "BUFFERS", "KV_SPLITS", "COST"}, rows)
	list := [][2]string{{"regime", d.Recommended.Regime}, {"why", d.Recommended.Why}, {"LDS", fmt.Sprintf("%d bytes a workgroup", d.LDSBytes)}, {"VGPRs", fmt.Sprintf("%d a lane (estimated)", d.VGPREstimate)}}
	if o := d.Occupancy; o != nil {
		list = append(list, [2]string{"occupancy", fmt.Sprintf("%d waves a CU, limited by %s", o.WavesPerCU, o.Limiter)})
	}
	list = append(list, [2]string{"grid", fmt.Sprintf("%d workgroups: %s", d.Grid.Workgroups, d.Grid.TailVerdict)})
	if a := d.Grid.ATT; a != nil {
		text := "a trace that holds waves is " + a.Verdict
		if a.MinLeadingDim > 0 {
			text += fmt.Sprintf(" (likely from %s=%d)", a.LeadingDim, a.MinLeadingDim)
		}
		list = append(list, [2]string{"trace", text})
	}
	s.pairs(list)
}

func tileRow(what string, t tile.Tile, cost string) []string {
	return []string{what, count(t.BM), count(t.BN), count(t.BK), count(t.Buffers), count(t.KVSplits), cost}
}

func captureView(s *sheet, d capture.Data) {
	title := fmt.Sprintf("run %s: %s", d.RunID, d.State)
	if d.Phase != "" {
		title += ", " + d.Phase
	}
	s.linef("%s", title)
	s.simulated(d.Provenance != nil && d.Provenance.Simulated)
	if d.Repeated {
		s.linef("%s an earlier failure is answered again: nothing was run", markWarn)
	}
	list := [][2]string{{"kernel", d.Kernel}, {"asked for", d.RecipeKernel}, {"match", d.MatchConfidence}, {"command", d.Invocation}, {"launch", d.IterRange}, {"group", d.Group}}
	if d.Calls > 0 {
		list = append(list, [2]string{"calls", fmt.Sprintf("%d, %s us each", d.Calls, decimal(d.AvgNS/1e3))})
	}
	if d.ElapsedS > 0 {
		text := decimal(d.ElapsedS) + " s"
		if !d.State.Ended() && d.EstimateS > 0 {
			text += fmt.Sprintf(" of about %d s", d.EstimateS)
		}
		list = append(list, [2]string{"elapsed", text})
	}
	s.pairs(list)
	s.rows([]string{"TAG", "STATE", "SHAPE", "WORKGROUPS", "WAVES", "INS", "MAPPED_PCT", "VGPR", "WAVES_PER_CU", "TOP_STALL", "KEPT_DIR", "WHY"}, slices.Concat(tagRow("big", d.Tags.Big), tagRow("small", d.Tags.Small)))
	var rows [][]string
	for i, p := range d.PMC {
		for _, v := range p.Values {
			rows = append(rows, []string{count(i + 1), v.Name, decimal(v.Value), count(v.Dispatches)})
		}
		if p.Error != nil {
			s.linef("%s counters %s: %s: %s", markWarn, strings.Join(p.Counters, " "), p.Error.Code, p.Error.Message)
		}
	}
	s.rows([]string{"PASS", "COUNTER", "VALUE", "DISPATCHES"}, rows)
	rows = nil
	for _, c := range d.Checks {
		rows = append(rows, []string{map[bool]string{true: markOK, false: markFail}[c.Pass], c.ID, c.Value, c.Want})
	}
	s.rows([]string{"", "CHECK", "VALUE", "WANT"}, rows)
	for _, line := range d.LogTail {
		s.linef("  %s", line)
	}
}

func tagRow(name string, t *capture.Tag) [][]string {
	if t == nil {
		return nil
	}
	row := []string{name, t.State, t.Shape, "", count(t.Waves), count(t.Ins), "", "", count(t.OccupancyWavesPerCU), t.TopStallType, t.KeptDir, t.Why}
	if t.Grid != nil {
		row[3] = count(t.Grid.Workgroups)
	}
	if t.MappedPct != nil {
		row[6] = decimal(*t.MappedPct)
	}
	if t.ArchVGPR != nil && t.AccumVGPR != nil {
		row[7] = fmt.Sprintf("%d+%d", *t.ArchVGPR, *t.AccumVGPR)
	}
	if t.Error != nil {
		row[11] = fmt.Sprintf("%s: %s", t.Error.Code, t.Error.Message)
	}
	return [][]string{row}
}

func triageView(s *sheet, d triage.Data) {
	s.linef("triage of the %s: %s %s", d.Source, d.Code, d.Summary)
	var rows [][]string
	for _, c := range d.Causes {
		rows = append(rows, []string{string(c.Confidence), c.Cause, c.Do})
	}
	s.rows([]string{"CONFIDENCE", "CAUSE", "DO"}, rows)
	for _, c := range d.Causes {
		for _, e := range c.Evidence {
			s.linef("  evidence: %s", e)
		}
	}
	if dir := d.Directory; dir != nil {
		rows = nil
		for _, x := range dir.Dispatches {
			mapped := ""
			if x.MappedPct != nil {
				mapped = decimal(*x.MappedPct)
			}
			rows = append(rows, []string{x.Dir, x.State, count(x.Waves), count(x.Ins), mapped, x.TopStall, strings.Join(x.Kernels, " "), x.What})
		}
		s.rows([]string{"DISPATCH", "STATE", "WAVES", "INS", "MAPPED_PCT", "TOP_STALL", "KERNELS", "WHAT"}, rows)
	}
	for _, c := range d.Caveats {
		s.linef("%s %s: %s", markWarn, c.ID, c.Message)
	}
}

func readView(s *sheet, d tools.ReadData) {
	var rows [][]string
	for _, e := range d.Entries {
		rows = append(rows, []string{e.URI, e.Description})
	}
	s.rows([]string{"URI", "WHAT"}, rows)
	s.text(d.Text)
	if len(d.Base64) > 0 {
		s.linef("%d bytes of %s that are no text; -f json has them in base64", len(d.Base64), d.MIMEType)
	}
	if d.NextOffset > 0 {
		s.linef("(up to %d of %d)", d.NextOffset, d.Size)
	}
}

// anyView shows data of which nothing is known: one line for each value, named by its path.
func anyView(s *sheet, raw json.RawMessage) error {
	root, err := jsontree.Parse(raw, jsontree.Limits{Bytes: len(raw), Depth: 100})
	if err != nil {
		return err
	}
	var list [][2]string
	var walk func(path string, n *jsontree.Node)
	walk = func(path string, n *jsontree.Node) {
		for i, item := range n.Items {
			walk(fmt.Sprintf("%s[%d]", path, i), item)
		}
		for _, m := range n.Members {
			walk(strings.TrimPrefix(path+"."+m.Name, "."), m.Value)
		}
		if len(n.Items)+len(n.Members) == 0 {
			list = append(list, [2]string{path, n.Text})
		}
	}
	walk("", root)
	s.pairs(list)
	return nil
}

// count writes a number of things; nothing for none.
func count[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// decimal writes a figure with at most three decimals.
func decimal(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 3, 64), "0"), ".")
}
