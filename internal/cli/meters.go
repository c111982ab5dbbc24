package cli

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/internal/httpd"
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
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flyprof_http_requests_total", Help: "Requests by endpoint, verb and status."}, []string{"endpoint", "method", "status"}),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flyprof_tool_calls_total", Help: "Tool calls by tool and catalogue code; the code of a success is OK."}, []string{"tool", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "flyprof_tool_call_seconds", Help: "Duration of tool calls, waiting for runs included.",
			Buckets: []float64{.005, .025, .1, .5, 2, 10, 60, 300, 1200}}, []string{"tool"}),
	}
	mine := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "flyprof_runs_supervised", Help: "Runs whose supervisor this server started and that has not ended."}, func() float64 { return float64(a.spawner.Live()) })
	m.registry.MustRegister(m.requests, m.calls, m.seconds, mine, newRunStates(a.service.Store), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// watch adds what the handler itself knows.
func (m *meters) watch(h *httpd.Handler) {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(
		gauge("flyprof_http_requests_in_flight", "Requests to the MCP endpoint that are worked on.", h.InFlight),
		gauge("flyprof_http_sessions", "Sessions that have not ended; clients from 2026-07-28 on have none.", h.Sessions),
	)
}

// request counts a request; the verb is one of those that are served.
func (m *meters) request(endpoint, method string, status int) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(endpoint, method, strconv.Itoa(status)).Inc()
}

// call counts a tool call.
func (m *meters) call(tool string, code envelope.Code, took time.Duration) {
	if code == "" {
		code = "OK"
	}
	m.calls.WithLabelValues(tool, string(code)).Inc()
	m.seconds.WithLabelValues(tool).Observe(took.Seconds())
}
