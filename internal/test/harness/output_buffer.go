package harness

import (
	"bytes"
	"sync"
)

// Output is what a logger or a process writes, to be read while it is written. The zero value
// is empty; it is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer]. It never fails.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b) //nolint:wrapcheck // a buffer in memory takes everything
}

// String returns all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
