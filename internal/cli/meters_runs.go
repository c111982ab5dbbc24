package cli

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyprof/flyprof-mcp/core/runs"
)

// runStates counts the runs of the runs directory by state, of all servers. A run that has ended is read once.
type runStates struct {
	store *runs.Store
	desc  *prometheus.Desc

	mu    sync.Mutex
	ended map[string]runs.State
}

func newRunStates(store *runs.Store) *runStates {
	return &runStates{store: store, ended: map[string]runs.State{},
		desc: prometheus.NewDesc("flyprof_runs", "Runs of the runs directory by state, of all servers.", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *runStates) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector. Runs whose record cannot be read are left out.
func (c *runStates) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids, err := c.store.IDs()
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.desc, err)
		return
	}
	count := map[runs.State]int{runs.Queued: 0, runs.Running: 0, runs.Done: 0, runs.Failed: 0, runs.Cancelled: 0, runs.Interrupted: 0}
	ended := map[string]runs.State{} // made anew, so that removed runs are forgotten
	for _, id := range ids {
		state, known := c.ended[id]
		if !known {
			r, err := c.store.Load(id)
			if err != nil {
				continue
			}
			state = r.State
		}
		if _, is := count[state]; !is {
			continue
		}
		count[state]++
		if state.Ended() {
			ended[id] = state
		}
	}
	c.ended = ended
	for state, n := range count {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), string(state))
	}
}
