package query

import (
	"context"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// historyBytes is how many bytes of events a page of a history holds, unless its first event alone has more.
const historyBytes = 256 << 10

// HistoryPage has the public records of a chat after a sequence, in the order of their sequences.
type HistoryPage struct {
	Records []idempotency.Record // damaged ones too, see [idempotency.Record.Damaged]
	Through uint64               // no record up to this sequence is missing
}

// History returns the first public records of a chat, an id, whose sequences are greater than after and not greater than upTo, limit
// records at most. The page ends at Through, which is upTo after the last page. A record that was replaced since is not in it: its
// successor has a greater sequence.
func (r *Reader) History(ctx context.Context, app, chat string, after, upTo uint64, limit int) (*HistoryPage, error) {
	page := &HistoryPage{Through: max(after, upTo)}
	size := 0
	err := r.each(ctx, app, subjects.ChatRecords(app, chat), after+1, func(rec *idempotency.Record, _ bool) (bool, error) {
		size += len(rec.Data)
		switch n := len(page.Records); {
		case rec.Seq > upTo:
			return false, nil
		case n > 0 && (n >= limit || size > historyBytes):
			page.Through = page.Records[n-1].Seq
			return false, nil
		}
		page.Records = append(page.Records, *rec)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
