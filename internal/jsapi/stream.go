package jsapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// InfoPage is what the leader of a stream reports about it, with one page of its subjects.
type InfoPage struct {
	refusal

	Created time.Time              `json:"created"`
	Now     time.Time              `json:"ts"` // by the clock of the server
	Config  jetstream.StreamConfig `json:"config"`
	State   jetstream.StreamState  `json:"state"`
	Total   int                    `json:"total"` // subjects that match the filter, on all pages
}

// Info returns the configuration and the state of a stream, with the number of messages of each subject that a filter
// matches, from an offset on: the server lists 100,000 subjects in a reply, in their order. Without a filter it lists
// none.
func Info(ctx context.Context, nc *nats.Conn, stream, filter string, offset int) (*InfoPage, error) {
	page := &InfoPage{}
	ask := struct {
		Filter string `json:"subjects_filter,omitempty"`
		Offset int    `json:"offset,omitempty"`
	}{filter, offset}
	if err := request(ctx, nc, "STREAM.INFO."+stream, ask, page); err != nil {
		return nil, fmt.Errorf("read the state of stream %s: %w", stream, err)
	}
	return page, nil
}

// Delete overwrites a message in the file of its stream, which an acknowledgement does not do: the bytes of an
// acknowledged message stay there until the server compacts the file. An absent message is not an
// error.
func Delete(ctx context.Context, nc *nats.Conn, stream string, seq uint64) error {
	err := request(ctx, nc, "STREAM.MSG.DELETE."+stream, Get{Seq: seq}, &refusal{})
	switch code := Code(err); {
	case err == nil, code == jetstream.JSErrCodeMessageNotFound, code == sequenceNotFound:
		return nil
	case code == messageDeleteFailed && strings.Contains(err.Error(), "message not found"):
		return nil
	}
	return fmt.Errorf("erase message %d of %s: %w", seq, stream, err)
}

// Purge removes the messages of a stream whose subjects a filter matches.
func Purge(ctx context.Context, nc *nats.Conn, stream, filter string) error {
	ask := struct {
		Filter string `json:"filter"`
	}{filter}
	if err := request(ctx, nc, "STREAM.PURGE."+stream, ask, &refusal{}); err != nil {
		return fmt.Errorf("purge %s of stream %s: %w", filter, stream, err)
	}
	return nil
}
