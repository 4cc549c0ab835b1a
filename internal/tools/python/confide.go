package python

import (
	"slices"

	"github.com/oneturn/oneturn/internal/secrets"
)

// maxConfidants is how many ended calls that were handed secrets a process is watched for: a
// thread, or a variable of the module, may outlive its call. A process that has had more shows
// nothing of its output any more, takes no new calls and ends with its last one.
const maxConfidants = 64

// confide notes that a call has been handed a secret, if it has, before its process can print it.
func (c *child) confide(p *pending) {
	if !p.secrets.Active() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*pending
	if old := c.confidants.Load(); old != nil {
		all = *old
	}
	if slices.Contains(all, p) {
		return
	}
	all = append(slices.Clone(all), p)
	for ended := len(all) - maxConfidants; ended > 0; ended-- { // the oldest that has ended; none of those that run
		i := slices.IndexFunc(all, func(p *pending) bool { return !c.has(p) })
		if i < 0 {
			break
		}
		all = slices.Delete(all, i, i+1)
		if !c.withheld.Swap(true) {
			c.log.Warn("a Python process has been handed more secrets than its output is searched for: its output is withheld, and it is replaced", "calls", maxConfidants)
		}
	}
	c.confidants.Store(&all)
}

// scrub blots the secrets of all calls of the process out of a line: a line cannot always be told
// to belong to one.
func (c *child) scrub(line string, cut bool) string {
	all := c.confidants.Load()
	switch {
	case all == nil || line == "":
		return line
	case c.withheld.Load():
		return secrets.Replacement
	}
	for _, p := range *all {
		if cut {
			line = p.secrets.Cut(line)
		} else {
			line = p.secrets.Text(line)
		}
	}
	return line
}
