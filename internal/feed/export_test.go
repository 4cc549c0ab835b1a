package feed

// Queued is how many bytes of events wait in the queue of a follower.
func Queued(w *Follower) int {
	w.feeds.mu.Lock()
	defer w.feeds.mu.Unlock()
	return w.size
}
