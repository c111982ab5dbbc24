package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = mcp.HeaderProtocolVersion
	typeJSON      = "application/json"
	typeStream    = "text/event-stream"
)

func isModern(version string) bool { return mcp.IsModernProtocol(version) }

// post takes one message.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != typeJSON {
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type must be "+typeJSON)
		return
	}
	if !accepts(r, typeJSON) && !accepts(r, typeStream) {
		refuse(w, http.StatusNotAcceptable, "the Accept header must name "+typeJSON+" and "+typeStream)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many requests in flight")
		return
	}
	free, ok := h.reserve(r.ContentLength)
	if !ok {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the messages in flight are too long together")
		return
	}
	defer free()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		h.writeFrame(w, http.StatusRequestEntityTooLarge, wire.Failure(nil, mcp.INVALID_REQUEST, "the message is too long"))
		return
	case err != nil:
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(nil, mcp.PARSE_ERROR, "the message cannot be read"))
		return
	}
	unhurried(w)
	m, fault := wire.Parse(body)
	if fault != nil {
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(m.ID, fault.Code, fault.Message))
		return
	}
	if version := metaVersion(m); isModern(version) || isModern(r.Header.Get(headerVersion)) {
		h.modern(w, r, body, m, version)
		return
	}
	h.legacy(w, r, body, m)
}

// reserve takes room for a message of n bytes, or of the most there may be where its length is not said.
func (h *Handler) reserve(n int64) (free func(), ok bool) {
	if n < 0 || n > h.MaxBody {
		n = h.MaxBody
	}
	if h.bytes.Add(n) > max(h.MaxInFlightBytes, n) {
		h.bytes.Add(-n)
		return nil, false
	}
	return func() { h.bytes.Add(-n) }, true
}

// accepts says whether the client takes a media type; a missing header takes all.
func accepts(r *http.Request, kind string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(kind, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		got, _, err := mime.ParseMediaType(part)
		if err == nil && (got == kind || got == "*/*" || got == family+"/*") {
			return true
		}
	}
	return false
}

// metaVersion is the protocol version that a message itself names, from 2026-07-28 on.
func metaVersion(m wire.Message) string {
	var p struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	return p.Meta.Version
}

// legacy serves the era of sessions.
func (h *Handler) legacy(w http.ResponseWriter, r *http.Request, body []byte, m wire.Message) {
	if m.Kind == wire.Request && m.Method == string(mcp.MethodInitialize) {
		h.initialize(w, r, body, m)
		return
	}
	if version := r.Header.Get(headerVersion); version != "" && !mcp.IsValidProtocolVersion(version) {
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(m.ID, mcp.INVALID_REQUEST, "the protocol version of the header is not served"))
		return
	}
	s := h.session(w, r, m.ID)
	if s == nil {
		return
	}
	s.enter()
	defer s.leave()
	switch {
	case m.Kind == wire.Notification && m.Method == string(mcp.MethodNotificationCancelled):
		s.cancelCall(m.Params)
		w.WriteHeader(http.StatusAccepted)
	case m.Kind == wire.Notification:
		h.answer.Answer(h.srv.WithContext(r.Context(), s), body, m)
		w.WriteHeader(http.StatusAccepted)
	case m.Kind == wire.Reply: // this server asks nothing of clients
		w.WriteHeader(http.StatusAccepted)
	default:
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		c := &call{cancel: cancel}
		if !s.addCall(m.ID, c) {
			h.writeFrame(w, http.StatusOK, wire.Failure(m.ID, mcp.INVALID_REQUEST, "a request with this id is in flight"))
			return
		}
		defer s.dropCall(m.ID)
		defer context.AfterFunc(s.gone, func() { cancel(errors.New("the session was ended")) })()
		h.run(ctx, w, r, s.Session, c, body, m)
	}
}

// session finds the session of a request, and answers where there is none: 400 without an id, 404 for one that is not or no more.
func (h *Handler) session(w http.ResponseWriter, r *http.Request, id json.RawMessage) *session {
	name := r.Header.Get(headerSession)
	if name == "" {
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(id, mcp.INVALID_REQUEST, "the "+headerSession+" header is missing: initialize gives one"))
		return nil
	}
	s := h.sessions.find(name)
	if s == nil {
		h.writeFrame(w, http.StatusNotFound, wire.Failure(id, mcp.INVALID_REQUEST, "there is no such session, or it has ended: initialize again"))
	}
	return s
}

// initialize opens a session, which is the client's as soon as the answer is good.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, body []byte, m wire.Message) {
	s := h.sessions.create()
	if s == nil {
		w.Header().Set("Retry-After", "60")
		h.writeFrame(w, http.StatusServiceUnavailable, wire.Failure(m.ID, mcp.INTERNAL_ERROR, "too many sessions are open"))
		return
	}
	s.Initialize()
	s.enter()
	frame := h.answer.Answer(h.srv.WithContext(r.Context(), s), body, m)
	s.leave()
	if frame.Error != nil {
		h.sessions.remove(s.SessionID())
	} else {
		w.Header().Set(headerSession, s.SessionID())
	}
	h.writeFrame(w, http.StatusOK, frame)
}

// modern serves requests without a session, from 2026-07-28 on. The headers must say what the body says.
func (h *Handler) modern(w http.ResponseWriter, r *http.Request, body []byte, m wire.Message, version string) {
	if code, why := h.mismatch(r, m, version); why != "" {
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(m.ID, code, why))
		return
	}
	s := wire.NewSession("http")
	s.Initialize()
	switch m.Kind {
	case wire.Reply:
		h.writeFrame(w, http.StatusBadRequest, wire.Failure(m.ID, mcp.INVALID_REQUEST, "this server asks nothing of clients"))
	case wire.Notification: // a call is cancelled by closing its stream
		w.WriteHeader(http.StatusAccepted)
	default:
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		h.run(ctx, w, r, s, &call{cancel: cancel}, body, m)
	}
}

// mismatch tells what of the headers does not fit the message, with the code for it.
func (h *Handler) mismatch(r *http.Request, m wire.Message, version string) (code int, why string) {
	header := r.Header.Get(headerVersion)
	switch {
	case r.Header.Get(mcp.HeaderLastEventID) != "":
		return mcp.HEADER_MISMATCH, "streams cannot be resumed: send the request again with a new id"
	case header == "":
		return mcp.HEADER_MISMATCH, headerVersion + " is missing"
	case version == "" && m.Kind == wire.Request:
		return mcp.INVALID_PARAMS, "_meta " + mcp.MetaKeyProtocolVersion + " is missing"
	case version != "" && header != version:
		return mcp.HEADER_MISMATCH, headerVersion + " and the message's _meta name different protocol versions"
	case m.Kind != wire.Request:
		return 0, ""
	}
	if err := mcp.ValidateStandardHeaders(r.Header.Get, version, mcp.MCPMethod(m.Method), m.Params); err != nil {
		return mcp.HEADER_MISMATCH, err.Error()
	}
	if m.Method != string(mcp.MethodToolsCall) {
		return 0, ""
	}
	var p struct{ Name string }
	_ = json.Unmarshal(m.Params, &p)
	if tool := h.srv.GetTool(p.Name); tool != nil {
		lookup := func(name string) (string, bool) {
			v := r.Header.Values(name)
			return strings.Join(v[:min(len(v), 1)], ""), len(v) > 0
		}
		if err := mcp.ValidateParamHeadersLookup(lookup, &tool.Tool, m.Params); err != nil {
			return mcp.HEADER_MISMATCH, err.Error()
		}
	}
	return 0, ""
}

// run works on one request. What the server says meanwhile makes the response a stream; a single reply is plain JSON.
func (h *Handler) run(ctx context.Context, w http.ResponseWriter, r *http.Request, s *wire.Session, c *call, body []byte, m wire.Message) {
	defer context.AfterFunc(h.ending, func() { c.cancel(errEnding) })()
	out := h.newStream(w, accepts(r, typeStream), c.isMuted)
	defer out.close()
	request := &scoped{Session: s, queue: make(chan mcp.JSONRPCNotification, 256)}
	ctx = h.srv.WithContext(ctx, request)
	listen := m.Method == string(mcp.MethodSubscriptionsListen)
	if listen {
		if err := h.srv.RegisterSession(ctx, s); err != nil {
			h.writeFrame(w, http.StatusOK, wire.Failure(m.ID, mcp.INTERNAL_ERROR, "the subscription cannot be opened"))
			return
		}
		defer h.srv.UnregisterSession(context.WithoutCancel(ctx), s.SessionID())
		ctx = h.srv.WithContext(ctx, &wire.Listener{Session: s, ID: m.ID})
	}
	if token := wire.ProgressToken(m); token != nil {
		ctx = wire.WithProgress(ctx, wire.Reporter(token, out.event))
	}
	stop := out.pump(request.queue, s, listen)
	frame := h.answer.Answer(ctx, body, m)
	stop()
	if c.isMuted() {
		out.end()
		return
	}
	status := http.StatusOK
	if isModern(r.Header.Get(headerVersion)) && frame.Error != nil {
		status = statusOf(frame.Error.Code)
	}
	out.reply(status, frame)
}

// statusOf is the HTTP status of a JSON-RPC error from 2026-07-28 on.
func statusOf(code int) int {
	switch code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION, mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// get streams what the server says outside of requests, one stream for each session.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if !accepts(r, typeStream) {
		refuse(w, http.StatusNotAcceptable, "the Accept header must name "+typeStream)
		return
	}
	s := h.session(w, r, nil)
	if s == nil {
		return
	}
	if !s.takeStream() {
		refuse(w, http.StatusConflict, "this session has a stream already")
		return
	}
	defer s.releaseStream()
	s.enter()
	defer s.leave()
	unhurried(w)
	out := h.newStream(w, true, func() bool { return false })
	defer out.close()
	out.open()
	for {
		select {
		case n := <-s.Notifications():
			out.notify(s.Session, n)
		case <-s.noStreams.Done():
			return
		case <-r.Context().Done():
			return
		case <-h.ending.Done():
			return
		}
	}
}

// delete ends a session at the client's wish.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	s := h.session(w, r, nil)
	if s == nil {
		return
	}
	h.sessions.remove(s.SessionID())
	w.WriteHeader(http.StatusNoContent)
}

var _ server.ClientSession = (*scoped)(nil)
