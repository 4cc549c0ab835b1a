package limits

// Sizes is what a limiter keeps.
type Sizes struct{ Gates, Queues, Known int }

// Sizes returns what the limiter keeps.
func (l *Limiter) Sizes() Sizes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Sizes{len(l.gates), len(l.queues), l.known.Len()}
}
