package resources

import (
	"context"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// MaxSubscriptions bounds what one client may watch.
const MaxSubscriptions = 100

// watchEvery is the time between two looks: a log that grows all the time is told of once in it.
const watchEvery = time.Second

// Subscriber is a session as the watcher needs it.
type Subscriber interface {
	// SubscribedResources are the URIs to watch now; NotificationChannel takes what is to be told.
	SubscribedResources() []string
	NotificationChannel() chan<- mcp.JSONRPCNotification
}

// Watch tells a client of changes of the resources that it subscribed to, until ctx ends: the state of a run, and its logs. It looks at
// sizes and times of files; what cannot be looked at counts as unchanged.
func (s *Source) Watch(ctx context.Context, client Subscriber) {
	s.watch(ctx, client, time.NewTicker(watchEvery))
}

func (s *Source) watch(ctx context.Context, client Subscriber, tick *time.Ticker) {
	defer tick.Stop()
	last := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := map[string]string{}
		for _, uri := range client.SubscribedResources() {
			if len(now) >= MaxSubscriptions {
				break
			}
			now[uri] = s.stamp(uri)
			if before, seen := last[uri]; seen && before != now[uri] {
				n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: mcp.MethodNotificationResourceUpdated}}
				n.Params.AdditionalFields = map[string]any{"uri": uri}
				select {
				case client.NotificationChannel() <- n:
				case <-ctx.Done():
					return
				}
			}
		}
		last = now
	}
}

// stamp changes when the resource does.
func (s *Source) stamp(uri string) string {
	t, err := s.parse(uri)
	if err != nil {
		return ""
	}
	var names []string
	switch t.kind {
	case "run":
		names = []string{"run.json", "progress.json", "result.json"}
	case "file":
		names = []string{t.path}
	case "log":
		names = []string{"logs/" + t.path}
	case "runs":
		ids, err := s.Store.IDs()
		return fmt.Sprint(len(ids), ids[:min(len(ids), 1)], err)
	}
	stamp := ""
	for _, name := range names {
		f, info, err := s.Store.OpenFile(t.id, name)
		if err != nil {
			stamp += "-;"
			continue
		}
		stamp += fmt.Sprintf("%d %d;", info.Size(), info.ModTime().UnixNano())
		f.Close()
	}
	return stamp
}
