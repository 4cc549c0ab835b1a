package retry

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Value returns a value that a record of a kind holds, out of its blob if it is in one. Key is the one of the call.
type Value func(key subjects.Key, kind string, stored any) (any, error)

// FromTurn returns a turn as it was read from the journal. It fails with code too_large if the turn has more records than one read returns,
// and with state_corrupt if one cannot be read. Value may be nil for a turn that is not to be retried: its programs are not read then.
func FromTurn(t *idempotency.Turn, value Value) (*Past, error) {
	if t.Oversized() {
		return nil, &events.Error{Code: events.CodeTooLarge, Op: "retry", Msg: "the turn has more records than one read returns: it cannot be retried"}
	}
	records := make([]Record, 0, len(t.Records))
	for i := range t.Records {
		r := &t.Records[i]
		k, ok := subjects.ParseKey(r.Key)
		switch {
		case !ok || k.Private || k.ID != "":
		case r.Err != nil:
			return nil, &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: fmt.Sprintf("record %.200q of the turn to retry cannot be read", r.Key), Err: r.Err}
		default:
			records = append(records, Record{Kind: k.Kind, Seq: r.Seq, Event: r.Data})
		}
	}
	if value == nil {
		return Read(records, nil)
	}
	return Read(records, func(call, kind string, stored any) (any, error) {
		return value(t.Key.WithCall(subjects.CallOf(call)), kind, stored)
	})
}
