// Package defaults holds the defaults that several packages share: workers and publishers rely on the
// bounds that a server was provisioned with, and the help of the commands names them. Package config
// repeats them in the tags of its settings; its tests compare both.
package defaults

import "time"

// Bounds of turns and messages.
const (
	MaxTurnLife = 7 * 24 * time.Hour // a turn that is open for longer ends as expired
	MaxEventAge = 24 * time.Hour     // an inbound message that is older ends as too old
	Retention   = 9 * 24 * time.Hour // of the journal: more than both together
	AckWait     = 30 * time.Second   // a worker that is silent for longer loses its turns
)

// Workers.
const (
	Slots        = 256              // turns that a worker handles at the same time
	ToolTimeout  = time.Minute      // one attempt of a tool
	BindingGrace = 30 * time.Second // an unknown tool may still be loaded
	ParkAfter    = 10 * time.Second // a tool that waits for a person is parked
	SweepEvery   = 5 * time.Minute
	SoftStop     = 25 * time.Second // running turns may continue after a signal
)

// Streams and buckets; sizes in bytes, -1 for no limit.
const (
	DeadAge       = 30 * 24 * time.Hour
	ContextAge    = 90 * 24 * time.Hour
	InMaxBytes    = 512 << 20
	DeadMaxBytes  = 128 << 20
	BlobsMaxBytes = -1
)
