package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// Servers holds the sessions with MCP servers that tools share: tools that name equal servers
// use the same ones. It is safe for concurrent use. The sessions of a server end with the last
// tool that uses it ([Tool.Close]).
type Servers struct {
	o Options

	mu   sync.Mutex
	all  map[string]*server
	past Stats // of servers that are not used any more
}

// NewServers returns sessions to share. It starts nothing: the first call of a tool does.
func NewServers(o Options) *Servers {
	return &Servers{o: o.withDefaults(), all: map[string]*server{}}
}

// join returns the server for one more tool.
func (s *Servers) join(to *target.MCPServer) *server {
	key, err := json.Marshal(to) //nolint:musttag // it is only compared
	if err != nil {              // plain data has a JSON form
		key = fmt.Appendf(nil, "%p", to)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[string(key)]
	if one == nil {
		one = newServer(string(key), to, s.o)
		s.all[string(key)] = one
	}
	one.tools++
	return one
}

// leave takes a tool from its server, whose sessions end with its last tool.
func (s *Servers) leave(ctx context.Context, one *server) error {
	s.mu.Lock()
	one.tools--
	last := one.tools == 0
	if last {
		delete(s.all, one.key)
		one.mu.Lock()
		s.past.Started += one.started
		s.past.Died += one.died
		one.mu.Unlock()
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	return one.close(ctx)
}

// Stats counts what servers have now and have had.
type Stats struct {
	Sessions int    // open now
	Started  uint64 // since the start
	Died     uint64 // connections that broke, processes that ended by themselves
}

// Stats returns the sum over all servers.
func (s *Servers) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.past
	for _, one := range s.all {
		one.mu.Lock()
		sum.Sessions += len(one.open)
		sum.Started += one.started
		sum.Died += one.died
		one.mu.Unlock()
	}
	return sum
}
