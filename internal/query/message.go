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
		text, err := events.ReadText(record.Event)
		if err != nil {
			continue
		}
		record.TurnFingerprint = text.TurnFingerprint()
		if record.Due != idempotency.DueTurn { // before a handoff nothing is noted: the handoff shows that the turn is over
			continue
		}
		note, err := r.store.Last(ctx, message.Private(events.RecordTurn))
		switch {
		case errors.Is(err, idempotency.ErrNotFound):
		case err != nil:
			return err
		case note.Former(record.Sequence) || note.Meta.Outcome != idempotency.NoTurn:
		default: // it has records all the same if an event of the producer has claimed it
			turn := subjects.TurnKey("", text.ChatID, text.RunID, text.Turn)
			turn.App = message.App
			claims, err := r.store.LastOf(ctx, []string{
				turn.Public(events.RecordCall), turn.Reuse(text.RunID, text.Turn, record.TurnFingerprint).Public(events.RecordCall),
			})
			if err != nil {
				return err
			}
			if claims[0] == nil && claims[1] == nil {
				record.Due = idempotency.DueNothing
			}
		}
	}
	return nil
}
