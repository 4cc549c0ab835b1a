package embedded

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// maxConnections is how many connections one check reads.
const maxConnections = 10_000

// Subscribers returns how many connections, of the process itself or of others, subscribe to a
// subject that begins with prefix.
func (s *Server) Subscribers(prefix string) (n int, err error) {
	found, err := s.ns.Load().Connz(&server.ConnzOptions{Subscriptions: true, Limit: maxConnections})
	if err != nil {
		return 0, fmt.Errorf("embedded server: list connections: %w", err)
	}
	for _, c := range found.Conns {
		if slices.ContainsFunc(c.Subs, func(subject string) bool { return strings.HasPrefix(subject, prefix) }) {
			n++
		}
	}
	return n, nil
}
