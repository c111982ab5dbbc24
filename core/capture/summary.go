package capture

import "github.com/flyprof/flyprof-mcp/core/envelope"

// Summary is capture.json: the bundle as the public flyprof names it, so that either tool reads the other's.
type Summary struct {
	Data
	Shape             string                          `json:"shape,omitempty"`
	DispatchInventory map[string][]envelope.Inventory `json:"dispatch_inventory"`
	PMCCSV            []string                        `json:"pmc_csv"`
	Warnings          []envelope.Warning              `json:"warnings"`
}

// writeSummary writes capture.json. The inventory stands there per tag, once.
func (d *driver) writeSummary() error {
	s := Summary{Data: d.data, Shape: d.plan.Invocation.Shape, DispatchInventory: map[string][]envelope.Inventory{}, PMCCSV: []string{}, Warnings: d.warnings}
	for _, pass := range d.data.PMC {
		s.PMCCSV = append(s.PMCCSV, pass.CSV...)
	}
	for name, tag := range map[string]*Tag{"small": s.Tags.Small, "big": s.Tags.Big} {
		if tag != nil {
			s.DispatchInventory[name] = append([]envelope.Inventory{}, tag.DispatchInventory...)
		}
	}
	return d.store.WriteJSON(d.run.ID, "capture.json", s)
}
