//go:build unix

package harness

import "testing"

// links are the proxies between the servers of a cluster: any two try to connect to each other,
// so there is one for each way, whose connections carry bytes both ways.
type links map[pair]*Proxy

// pair is who connects, and to whom.
type pair struct{ from, to int }

// nowhere is the address that a server of a linked cluster reports to others. Servers pass
// addresses on to each other, and one that was true would lead around the proxies.
const nowhere = "127.0.0.1:1"

// newLinks starts the proxies to the route ports of servers.
func newLinks(t testing.TB, routes []string) links {
	t.Helper()
	l := links{}
	for to, addr := range routes {
		for from := range routes {
			if from != to {
				l[pair{from, to}] = NewProxy(t, addr)
			}
		}
	}
	return l
}

// of returns the routes of a server: the addresses of its proxies, and its own.
func (l links) of(from int, routes []string) []string {
	urls := make([]string, len(routes))
	for to := range routes {
		urls[to] = routes[to]
		if to != from {
			urls[to] = l[pair{from, to}].URL()
		}
	}
	return urls
}

// Cut holds back what a server of a linked cluster sends to another, one way, until Heal lets
// it arrive late. Neither side gets an error, as if the network lost it and tried again.
func (c *Cluster) Cut(from, to *Node) {
	c.t.Helper()
	c.links[pair{from.index, to.index}].Stall(Up)
	c.links[pair{to.index, from.index}].Stall(Down)
}

// Isolate cuts a server off from the others, both ways and without a word.
func (c *Cluster) Isolate(n *Node) {
	c.t.Helper()
	for _, other := range c.Others(n) {
		c.Cut(n, other)
		c.Cut(other, n)
	}
}

// Reject cuts a server off from the others so that all of them see it: connections break, and
// new ones end immediately.
func (c *Cluster) Reject(n *Node) {
	c.t.Helper()
	for _, other := range c.Others(n) {
		for _, p := range []*Proxy{c.links[pair{n.index, other.index}], c.links[pair{other.index, n.index}]} {
			p.Refuse(true)
			p.Reset()
		}
	}
}

// Heal restores all links.
func (c *Cluster) Heal() {
	for _, p := range c.links {
		p.Heal()
	}
}

// Others returns the servers besides one.
func (c *Cluster) Others(n *Node) []*Node {
	others := make([]*Node, 0, len(c.nodes))
	for _, other := range c.nodes {
		if other != n {
			others = append(others, other)
		}
	}
	return others
}
