package python

import "slices"

// maxConfidants is how many ended calls that were handed secrets a process is watched for: a
// thread, or a variable of the module, may outlive its call.
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
	}
	c.confidants.Store(&all)
}

// scrub blots the secrets of all calls of the process out of a line: a line cannot always be told
// to belong to one.
func (c *child) scrub(line string, cut bool) string {
	all := c.confidants.Load()
	if all == nil {
		return line
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
