package gateway

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/subjects"
)

// UseUpMemory takes the whole share that a user has of the memory of snapshots.
func (g *Gateway) UseUpMemory(app, user string) (free func()) {
	r := g.memory.try(auth.Target{App: app, User: user}, g.memory.most)
	if r == nil {
		panic("the share is in use")
	}
	return r.free
}

// Throttle has the searches of a tenant refused for some seconds.
func (g *Gateway) Throttle(app string) {
	g.current.Load().budget.Charge(context.Background(), subjects.Token(app), 1200*time.Millisecond)
}
