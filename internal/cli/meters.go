package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

// meters count what a server over HTTP does. No label has a value of a client's choosing.
type meters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMeters(a *app) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flyprof_http_requests_total", Help: "Requests to the MCP endpoint by verb and status."}, []string{"method", "status"}),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flyprof_tool_calls_total", Help: "Tool calls by tool and catalogue code; the code of a success is OK."}, []string{"tool", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "flyprof_tool_call_seconds", Help: "Duration of tool calls, waiting for runs included.",
			Buckets: []float64{.005, .025, .1, .5, 2, 10, 60, 300, 1200}}, []string{"tool"}),
	}
	active := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "flyprof_runs_active", Help: "Runs of the runs directory that have not ended, of all servers."}, func() float64 {
		list, err := os.ReadDir(filepath.Join(a.service.Store.Dir(), ".active"))
		if err != nil {
			return 0
		}
		return float64(len(list))
	})
	mine := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "flyprof_runs_supervised", Help: "Runs whose supervisor this server started and that has not ended."}, func() float64 { return float64(a.spawner.Live()) })
	m.registry.MustRegister(m.requests, m.calls, m.seconds, active, mine, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// request counts a request; the verb is one of those that are served.
func (m *meters) request(method string, status int) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
}

// call counts a tool call.
func (m *meters) call(tool string, code envelope.Code, took time.Duration) {
	if code == "" {
		code = "OK"
	}
	m.calls.WithLabelValues(tool, string(code)).Inc()
	m.seconds.WithLabelValues(tool).Observe(took.Seconds())
}
