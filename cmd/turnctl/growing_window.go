package main

import "github.com/nats-io/nats.go/jetstream"

const (
	firstWindow  = 1024 // records of the first window
	windowGrowth = 8    // factor by which each further window is larger
)

// backwards reads the newest records of a stream in windows that all end at its last record and begin earlier
// each time, so that the cost depends on what is asked for and not on what is stored. Read reports whether a
// window had enough. Covers reports whether a window from a sequence on includes everything that may be listed,
// for example by age; it may be nil. With all, the only window is the whole stream.
func backwards(state *jetstream.StreamState, all bool, covers func(from uint64) (bool, error), read func(from, to uint64) (enough bool, err error)) error {
	for size := uint64(firstWindow); ; size *= windowGrowth {
		from := state.FirstSeq
		if !all && state.LastSeq >= from+size {
			from = state.LastSeq + 1 - size
		}
		whole := from <= state.FirstSeq
		if !whole && covers != nil {
			var err error
			if whole, err = covers(from); err != nil {
				return err
			}
		}
		if enough, err := read(from, state.LastSeq); err != nil || whole || enough {
			return err
		}
	}
}
