// Package httpd serves MCP over Streamable HTTP: sessions for clients that initialize (up to 2025-11-25), stateless requests from
// 2026-07-28 on, both at one endpoint.
//
// It drives MCPServer.HandleMessage with a handler of its own, for what the library's HTTP server does not hold: progress is delivered,
// in order and before the result; an ended session is gone; nothing is read without bounds; a call that was cancelled gets no reply. Host
// and Origin are checked against lists and a bearer token is asked for before anything else is looked at.
package httpd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"golang.org/x/net/netutil"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// Endpoint is the path of MCP; Health answers without a token and says nothing but that the server is there; Metrics is in Prometheus'
// text format.
const (
	Endpoint = "/mcp"
	Health   = "/healthz"
	Metrics  = "/metrics"
)

// Options of New; what is zero has the default.
type Options struct {
	// Token is what requests must bear. It may not be empty, but for tests of others.
	Token string
	// NoToken switches the check off, for conformance suites that send none; never on a server that can start processes.
	NoToken bool
	// Hosts are names that the Host and Origin headers may have besides localhost and its addresses; Origins are further origins in full.
	Hosts, Origins []string
	Intercept      wire.Intercept
	Log            *slog.Logger
	// MaxBody is the longest message in bytes; default 8 MiB.
	MaxBody int64
	// MaxSessions bounds the sessions, default 1,000; IdleSession is how long one may be unused, default 1 hour.
	MaxSessions int
	IdleSession time.Duration
	// MaxInFlight bounds the requests that are worked on at once, default 1,000; MaxInFlightBytes their messages together, default 64 MiB.
	MaxInFlight      int
	MaxInFlightBytes int64
	// KeepAlive is the time between two comments on a stream on which nothing else is sent; default 15 s.
	KeepAlive time.Duration
	// HeaderTimeout is how long a client may take for its headers, default 10 s; BodyTimeout for all of a request, default 60 s.
	HeaderTimeout, BodyTimeout time.Duration
	// WriteTimeout is how long a client may leave one write unread, default 60 s. A stream lasts as long as its call.
	WriteTimeout time.Duration
	// Grace is how long requests in flight may go on after the end; default 300 ms.
	Grace time.Duration
	// Metrics answers Metrics; nil for 404. Observe is told of each request, those that are refused too: endpoint is one of the constants
	// above, or "other". nil for none.
	Metrics http.Handler
	Observe func(endpoint, httpMethod string, status int)
}

func (o Options) filled() Options {
	set := func(v *int, n int) {
		if *v <= 0 {
			*v = n
		}
	}
	set(&o.MaxSessions, 1000)
	set(&o.MaxInFlight, 1000)
	if o.MaxBody <= 0 {
		o.MaxBody = 8 << 20
	}
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = 64 << 20
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&o.IdleSession, time.Hour}, {&o.KeepAlive, 15 * time.Second}, {&o.HeaderTimeout, 10 * time.Second}, {&o.BodyTimeout, time.Minute},
		{&o.WriteTimeout, time.Minute}, {&o.Grace, 300 * time.Millisecond},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// Handler is the whole HTTP service.
type Handler struct {
	Options
	answer   wire.Answerer
	srv      *server.MCPServer
	sessions *sessions
	slots    chan struct{}
	bytes    atomic.Int64
	token    [sha256.Size]byte
	mux      *http.ServeMux
	// ending is cancelled when the service ends: streams close and calls stop waiting.
	ending context.Context
	end    context.CancelCauseFunc
}

// errEnding is the cause of what ends with the service.
var errEnding = errors.New("the server ends")

// New makes the handler. It panics without a token: a server without one must be asked for by name.
func New(srv *server.MCPServer, o Options) *Handler {
	o = o.filled()
	if o.Token == "" && !o.NoToken {
		panic("httpd: no token")
	}
	h := &Handler{
		Options: o, answer: wire.Answerer{Server: srv, Intercept: o.Intercept, Log: o.Log}, srv: srv, slots: make(chan struct{}, o.MaxInFlight),
		token: sha256.Sum256([]byte(o.Token)), mux: http.NewServeMux(),
	}
	h.sessions = newSessions(srv, o.MaxSessions, o.IdleSession)
	h.ending, h.end = context.WithCancelCause(context.Background())
	h.mux.HandleFunc("GET "+Health, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	h.mux.Handle(Endpoint, h.authorized(http.HandlerFunc(h.endpoint)))
	if o.Metrics != nil {
		h.mux.Handle("GET "+Metrics, h.authorized(o.Metrics))
	}
	return h
}

// ServeHTTP checks where a request says that it comes from, before anything of it is used.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	counted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	if h.Observe != nil {
		defer func() { h.Observe(endpointOf(r.URL.Path), r.Method, counted.status) }()
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	switch {
	case !h.knownHost(r.Host):
		refuse(counted, http.StatusForbidden, fmt.Sprintf("the Host %.100q is not allowed: --http-allow-host names further ones", r.Host))
	case !h.knownOrigin(r.Header.Values("Origin")):
		refuse(counted, http.StatusForbidden, fmt.Sprintf("the Origin %.100q is not allowed: --http-allow-origin names further ones", r.Header.Get("Origin")))
	default:
		h.mux.ServeHTTP(counted, r)
	}
}

func endpointOf(path string) string {
	switch path {
	case Endpoint, Health, Metrics:
		return path
	}
	return "other"
}

// InFlight is the number of requests that are worked on.
func (h *Handler) InFlight() int { return len(h.slots) }

// Sessions is the number of sessions that have not ended.
func (h *Handler) Sessions() int { return len(h.sessions.list()) }

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.Error(w, why, status)
}

// knownHost compares the name without its port. A page of another name that was bound to a loopback address (DNS rebinding) has that
// other name here.
func (h *Handler) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" {
		return true
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	for _, allowed := range h.Hosts {
		if strings.EqualFold(host, strings.Trim(allowed, "[]")) {
			return true
		}
	}
	return false
}

// knownOrigin: programs send no Origin, and browsers send the page's.
func (h *Handler) knownOrigin(origins []string) bool {
	for _, origin := range origins {
		_, host, ok := strings.Cut(origin, "://")
		known := ok && host != "" && !strings.ContainsAny(host, "/@") && h.knownHost(host)
		for _, allowed := range h.Origins {
			known = known || strings.EqualFold(origin, strings.TrimRight(allowed, "/"))
		}
		if !known {
			return false
		}
	}
	return true
}

// authorized asks for the token. Both sides are hashed, so that the comparison takes the same time whatever they are.
func (h *Handler) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !h.NoToken && (subtle.ConstantTimeCompare(given[:], h.token[:]) != 1 || !strings.EqualFold(scheme, "Bearer")) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="flyprof-mcp"`)
			refuse(w, http.StatusUnauthorized, "a bearer token is needed: see --http-token-file and FLYPROF_HTTP_TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// endpoint sorts the requests to MCP by their verb.
func (h *Handler) endpoint(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r)
	case isModern(r.Header.Get(headerVersion)):
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, r.Method+" is no part of this protocol version: messages to the client come by subscriptions/listen")
	case r.Method == http.MethodGet:
		h.get(w, r)
	case r.Method == http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "GET, POST and DELETE are served")
	}
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the flusher.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Limits of the connection itself. Those on reading and writing are in the options; they are lifted while a call is worked on.
const (
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// maxConnections leaves room for every request in flight, every session's stream and as many idle connections.
	maxConnections = 3000
)

// unhurried lifts the limits on reading and writing: the message is read, and its call or stream may last. Each write has its own limit.
func unhurried(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
}

// Serve answers on the listener until ctx ends, then ends sessions and calls within about a second. With a certificate it speaks TLS 1.2
// or later. It returns nil when ctx ended it.
func (h *Handler) Serve(ctx context.Context, l net.Listener, certFile, keyFile string) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: h.HeaderTimeout, ReadTimeout: h.BodyTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		DisableGeneralOptionsHandler: true, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
	}
	l = netutil.LimitListener(l, maxConnections)
	stop := h.sessions.sweepAlways()
	defer stop()
	failed := make(chan error, 1)
	go func() {
		if certFile != "" {
			failed <- s.ServeTLS(l, certFile, keyFile)
			return
		}
		failed <- s.Serve(l)
	}()
	select {
	case err := <-failed:
		h.end(errEnding)
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	time.AfterFunc(h.Grace, func() { h.end(errEnding) })
	limit, cancel := context.WithTimeout(context.Background(), 3*h.Grace)
	defer cancel()
	h.sessions.closeStreams()
	if err := s.Shutdown(limit); err != nil {
		_ = s.Close()
	}
	h.end(errEnding)
	h.sessions.endAll()
	return nil
}
