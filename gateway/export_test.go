package gateway

import "github.com/oneturn/oneturn/gateway/auth"

// UseUpMemory takes the whole share that a user has of the memory of snapshots.
func (g *Gateway) UseUpMemory(app, user string) (free func()) {
	r := g.memory.try(auth.Target{App: app, User: user}, g.memory.most)
	if r == nil {
		panic("the share is in use")
	}
	return r.free
}
