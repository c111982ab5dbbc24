package wire

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Session is what the server knows of the client at the other end. Nothing that outlives the connection hangs on it.
type Session struct {
	id            string
	notifications chan mcp.JSONRPCNotification
	// flushes asks the pump to send all that waits, and to close the channel that it is given.
	flushes chan chan struct{}
	stopped chan struct{}

	mu          sync.Mutex
	initialized bool
	level       mcp.LoggingLevel
	version     string
	client      mcp.Implementation
	caps        mcp.ClientCapabilities
	// subscribed are the URIs of resources/subscribe (before 2026-07-28), listeners the open subscriptions/listen.
	subscribed map[string]bool
	listeners  map[*Listener]mcp.SubscriptionFilter
	// pending are the URIs of which a change waits in notifications.
	pending map[string]bool

	// subscribing makes looking for a subscription and making it one step; it is taken before mu.
	subscribing sync.Mutex
	watch       Watch
}

// Watch looks after the resources that a session is subscribed to. Its calls do not wait for anything.
type Watch interface {
	// Add asks once more to be told of a URI's changes. It fails where the URI names nothing that can be watched, and where too much is
	// watched already.
	Add(uri string) error
	// Remove takes one Add back.
	Remove(uri string)
	// Close ends them all.
	Close()
}

// The optional interfaces of the library that the session answers to.
var (
	_ server.SessionWithLogging                  = (*Session)(nil)
	_ server.SessionWithClientInfo               = (*Session)(nil)
	_ server.SessionWithProtocolVersion          = (*Session)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*Session)(nil)
	_ server.SessionWithSubscriptionFilter       = (*Session)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*Listener)(nil)
	_ server.SessionWithSubscriptionFilter       = (*Listener)(nil)
)

// NewSession makes a session whose id begins with the transport's name.
func NewSession(transport string) *Session {
	return &Session{
		id: transport + "-" + rand.Text(), notifications: make(chan mcp.JSONRPCNotification, 256),
		flushes: make(chan chan struct{}), stopped: make(chan struct{}),
		// "error" is what the library's own stdio session starts with.
		level: mcp.LoggingLevelError, subscribed: map[string]bool{}, listeners: map[*Listener]mcp.SubscriptionFilter{}, pending: map[string]bool{},
	}
}

// SessionID implements server.ClientSession.
func (s *Session) SessionID() string { return s.id }

// NotificationChannel implements server.ClientSession.
func (s *Session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

// Initialize implements server.ClientSession.
func (s *Session) Initialize() { s.locked(func() { s.initialized = true }) }

// Initialized implements server.ClientSession.
func (s *Session) Initialized() (is bool) { s.locked(func() { is = s.initialized }); return is }

// SetLogLevel implements server.SessionWithLogging.
func (s *Session) SetLogLevel(level mcp.LoggingLevel) { s.locked(func() { s.level = level }) }

// GetLogLevel implements server.SessionWithLogging.
func (s *Session) GetLogLevel() (level mcp.LoggingLevel) {
	s.locked(func() { level = s.level })
	return level
}

// SetProtocolVersion records what initialize agreed on.
func (s *Session) SetProtocolVersion(version string) { s.locked(func() { s.version = version }) }

// ProtocolVersion implements server.SessionWithProtocolVersion.
func (s *Session) ProtocolVersion() (version string) {
	s.locked(func() { version = s.version })
	return version
}

// SetClientInfo implements server.SessionWithClientInfo.
func (s *Session) SetClientInfo(client mcp.Implementation) { s.locked(func() { s.client = client }) }

// GetClientInfo implements server.SessionWithClientInfo.
func (s *Session) GetClientInfo() (client mcp.Implementation) {
	s.locked(func() { client = s.client })
	return client
}

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *Session) SetClientCapabilities(caps mcp.ClientCapabilities) {
	s.locked(func() { s.caps = caps })
}

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *Session) GetClientCapabilities() (caps mcp.ClientCapabilities) {
	s.locked(func() { caps = s.caps })
	return caps
}

// maxSubscriptions bounds what a client can make the session remember, whatever looks after it.
const maxSubscriptions = 10_000

// SetWatch gives the session what looks after its subscriptions from now on; what did before is closed.
func (s *Session) SetWatch(w Watch) {
	s.subscribing.Lock()
	before := s.watch
	s.watch = w
	s.subscribing.Unlock()
	if before != nil {
		before.Close()
	}
}

// Updated queues that a resource has changed. It says false where the queue is full; a change of the same resource that still waits
// there is one with this.
func (s *Session) Updated(uri string) bool {
	waits := false
	s.locked(func() { waits, s.pending[uri] = s.pending[uri], true })
	if waits {
		return true
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = mcp.MethodNotificationResourceUpdated
	n.Params.AdditionalFields = map[string]any{"uri": uri}
	select {
	case s.notifications <- n:
		return true
	default:
		s.locked(func() { delete(s.pending, uri) })
		return false
	}
}

// SubscribeToResourceErr implements server.SessionWithResourceSubscriptionsErr.
func (s *Session) SubscribeToResourceErr(uri string) error {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	known, many := false, false
	s.locked(func() { known, many = s.subscribed[uri], len(s.subscribed) >= maxSubscriptions })
	if known {
		return nil
	}
	if many {
		return &Error{Code: mcp.INVALID_PARAMS, Message: "too many subscriptions"}
	}
	if err := s.addWatch(uri); err != nil {
		return err
	}
	s.locked(func() { s.subscribed[uri] = true })
	return nil
}

func (s *Session) addWatch(uri string) error {
	if s.watch == nil {
		return nil
	}
	return s.watch.Add(uri)
}

// SubscribeToResource implements server.SessionWithResourceSubscriptions.
func (s *Session) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource implements server.SessionWithResourceSubscriptions.
func (s *Session) UnsubscribeFromResource(uri string) {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	known := false
	s.locked(func() { known = s.subscribed[uri]; delete(s.subscribed, uri) })
	if known && s.watch != nil {
		s.watch.Remove(uri)
	}
}

// SubscribedResources gives the URIs of both eras' subscriptions.
func (s *Session) SubscribedResources() (uris []string) {
	s.locked(func() {
		all := maps.Clone(s.subscribed)
		for _, filter := range s.listeners {
			for _, uri := range filter.ResourceSubscriptions {
				all[uri] = true
			}
		}
		uris = slices.Sorted(maps.Keys(all))
	})
	return uris
}

// IsSubscribedToResource implements server.SessionWithResourceSubscriptions.
func (s *Session) IsSubscribedToResource(uri string) bool {
	return slices.Contains(s.SubscribedResources(), uri)
}

// SetSubscriptionFilter is for listeners; the session itself has no filter.
func (s *Session) SetSubscriptionFilter(mcp.SubscriptionFilter) {}

// SubscriptionFilter gives the union of the open listeners' filters.
func (s *Session) SubscriptionFilter() (union mcp.SubscriptionFilter, active bool) {
	s.locked(func() {
		for _, f := range s.listeners {
			active = true
			union.ToolsListChanged = union.ToolsListChanged || f.ToolsListChanged
			union.PromptsListChanged = union.PromptsListChanged || f.PromptsListChanged
			union.ResourcesListChanged = union.ResourcesListChanged || f.ResourcesListChanged
		}
	})
	return union, active
}

func (s *Session) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Pump writes notifications until stop.
func (s *Session) Pump(stop <-chan struct{}, write func(mcp.JSONRPCNotification)) {
	defer close(s.stopped)
	send := func(n mcp.JSONRPCNotification) {
		for _, copied := range s.Address(n) {
			write(copied)
		}
	}
	for {
		select {
		case n := <-s.notifications:
			send(n)
		case done := <-s.flushes:
			for more := true; more; {
				select {
				case n := <-s.notifications:
					send(n)
				default:
					more = false
				}
			}
			close(done)
		case <-stop:
			return
		}
	}
}

// Flush returns when every notification that was queued before is written: a reply must not overtake them. The pump itself
// does it, so that none is in its hand meanwhile; an empty queue alone would not show that.
func (s *Session) Flush() {
	done := make(chan struct{})
	select {
	case s.flushes <- done:
	case <-s.stopped:
		return
	}
	select {
	case <-done:
	case <-s.stopped:
	}
}

// Notifications is the queue that the server writes to; transports that do not use Pump read it, and send what Address gives.
func (s *Session) Notifications() <-chan mcp.JSONRPCNotification { return s.notifications }

// Address makes the copies of a notification that its readers expect: since 2026-07-28 one for each open listener that
// asked for it, marked with the listener's id; before, one without a mark.
func (s *Session) Address(n mcp.JSONRPCNotification) []mcp.JSONRPCNotification {
	wants := listChanged[n.Method]
	uri, _ := n.Params.AdditionalFields["uri"].(string)
	if n.Method == mcp.MethodNotificationResourceUpdated {
		wants = func(f mcp.SubscriptionFilter) bool { return slices.Contains(f.ResourceSubscriptions, uri) }
	}
	if wants == nil {
		return []mcp.JSONRPCNotification{n}
	}
	var out []mcp.JSONRPCNotification
	s.locked(func() {
		if n.Method == mcp.MethodNotificationResourceUpdated {
			delete(s.pending, uri)
		}
		for l, filter := range s.listeners {
			if wants(filter) {
				out = append(out, marked(n, l.ID))
			}
		}
		legacy := len(s.listeners) == 0
		if n.Method == mcp.MethodNotificationResourceUpdated {
			legacy = s.subscribed[uri] // not what was unsubscribed while it waited
		}
		if legacy {
			out = append(out, n)
		}
	})
	return out
}

var listChanged = map[string]func(mcp.SubscriptionFilter) bool{
	mcp.MethodNotificationToolsListChanged:     func(f mcp.SubscriptionFilter) bool { return f.ToolsListChanged },
	mcp.MethodNotificationPromptsListChanged:   func(f mcp.SubscriptionFilter) bool { return f.PromptsListChanged },
	mcp.MethodNotificationResourcesListChanged: func(f mcp.SubscriptionFilter) bool { return f.ResourcesListChanged },
}

func marked(n mcp.JSONRPCNotification, id json.RawMessage) mcp.JSONRPCNotification {
	meta := maps.Clone(n.Params.Meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[mcp.MetaKeySubscriptionID] = id
	n.Params.Meta = meta
	return n
}

// Listener is the session as one subscriptions/listen request sees it: its filter and its URIs live as long as it does.
// Several may be open at once, which the library's one filter per session does not foresee.
type Listener struct {
	*Session
	ID json.RawMessage
}

// SetSubscriptionFilter records what this request asked for; the zero filter ends it.
func (l *Listener) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	l.locked(func() {
		if filter.IsEmpty() {
			delete(l.listeners, l)
			return
		}
		filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions[:min(len(filter.ResourceSubscriptions), maxSubscriptions)])
		l.listeners[l] = filter
	})
}

// SubscribeToResourceErr watches one of the URIs, which are part of the filter.
func (l *Listener) SubscribeToResourceErr(uri string) error {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	return l.addWatch(uri)
}

// SubscribeToResource is SubscribeToResourceErr for servers that ask no error.
func (l *Listener) SubscribeToResource(uri string) { _ = l.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource ends the watch; the filter ends with the request.
func (l *Listener) UnsubscribeFromResource(uri string) {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	if l.watch != nil {
		l.watch.Remove(uri)
	}
}
