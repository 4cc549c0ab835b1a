package store

import "context"

// Documents is where [variables.Variables] are stored: a document a chat, replaced by compare-and-set.
type Documents interface {
	// Read returns the document under a key and its revision, as the leader knows them. It is nil
	// when there is none (any more).
	Read(ctx context.Context, key string) (data []byte, revision uint64, err error)
	// Write replaces the document of a revision and returns the new revision. With
	// [jetstream.ErrKeyExists] another revision is there.
	Write(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
	// Name is the bucket, for messages.
	Name() string
	// Limit is the largest document in bytes.
	Limit() int
}
