package query

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// addTurn adds to the text of a message, if a page has it, what is known of the turn that the message makes: its data, and
// whether it will never have records.
func (r *Reader) addTurn(ctx context.Context, page *api.Page, message subjects.Key) error {
	for i := range page.Records {
		record := &page.Records[i]
		if record.Kind != events.RecordText {
			continue
		}
		if text, err := events.ReadText(record.Event); err == nil {
			record.TurnFingerprint = text.TurnFingerprint()
		}
		if record.Due != idempotency.DueTurn { // before a handoff nothing is noted: the handoff shows that the turn is over
			continue
		}
		note, err := r.store.Last(ctx, message.Private(events.RecordTurn))
		switch {
		case errors.Is(err, idempotency.ErrNotFound):
		case err != nil:
			return err
		case !note.Former(record.Sequence) && note.Meta.Outcome == idempotency.NoTurn:
			record.Due = idempotency.DueNothing
		}
	}
	return nil
}
