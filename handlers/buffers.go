package handlers

import "sync"

// buffers are used in turn by the events on their way to the journal, which keeps no bytes of
// a record that it has stored.
type buffers struct{ pool sync.Pool }

// maxBuffer is the capacity in bytes from which a buffer is left to the collector.
const maxBuffer = 64 << 10

func (b *buffers) get() *[]byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return buffer
	}
	return new([]byte)
}

func (b *buffers) put(buffer *[]byte) {
	if cap(*buffer) <= maxBuffer {
		b.pool.Put(buffer)
	}
}
