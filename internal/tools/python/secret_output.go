package python

import (
	"slices"

	"github.com/oneturn/oneturn/internal/redact"
)

// maxSecretCalls is for how many ended calls with secret answers the output of a process is searched: a
// thread, or a variable of the module, may outlive its call. The output of a process with more such
// calls is withheld; it takes no new calls and ends with its last one.
const maxSecretCalls = 64

// watchSecrets records that a call has got a secret answer, if it has, before its process can print it.
func (c *child) watchSecrets(p *pending) {
	if !p.secrets.Active() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*pending
	if old := c.secretCalls.Load(); old != nil {
		all = *old
	}
	if slices.Contains(all, p) {
		return
	}
	all = append(slices.Clone(all), p)
	for ended := len(all) - maxSecretCalls; ended > 0; ended-- { // the oldest that has ended; none that runs
		i := slices.IndexFunc(all, func(p *pending) bool { return !c.has(p) })
		if i < 0 {
			break
		}
		all = slices.Delete(all, i, i+1)
		if !c.withheld.Swap(true) {
			c.log.Warn("a Python process got more secret answers than its output is searched for: its output is withheld, and it is replaced", "calls", maxSecretCalls)
		}
	}
	c.secretCalls.Store(&all)
}

// scrub redacts the secrets of all calls of the process in a line: which call has printed a line is not
// always known.
func (c *child) scrub(line string, cut bool) string {
	all := c.secretCalls.Load()
	switch {
	case all == nil || line == "":
		return line
	case c.withheld.Load():
		return redact.Replacement
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
