package retry

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// RecordsOf returns the public records of a turn. It fails with code state_corrupt if one cannot be read.
func RecordsOf(t *idempotency.Turn) ([]Record, error) {
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
	return records, nil
}
