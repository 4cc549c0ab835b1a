package kvstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
)

// Erase implements [idempotency.Store]. The bucket keeps one message a key, so what is published in a
// record's place removes it; if another writer was first, it is removed as well.
func (s *Store) Erase(ctx context.Context, r idempotency.Record) error {
	gone := r.Erased()
	m := &nats.Msg{Subject: s.space.JournalSubject(r.Key), Header: nats.Header{}}
	gone.Meta.Headers(func(_ int, name, value string) {
		if value != "" {
			m.Header[name] = []string{value}
		}
	})
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(r.Seq, 10))
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return fmt.Errorf("journal: erase %s: %w", r.Key, err)
	}
	switch ack, err := parseAck(reply); {
	case err != nil:
		return fmt.Errorf("journal: erase %s: %w", r.Key, err)
	case ack.code != 0 && ack.code != jetstream.JSErrCodeStreamWrongLastSequence:
		return fmt.Errorf("journal: erase %s: server error %d: %s", r.Key, ack.code, ack.text)
	}
	return nil
}
