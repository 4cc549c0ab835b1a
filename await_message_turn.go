package oneturn

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// The turn of a message, as the wait for the message sees it: its key, the fingerprint of its data, its response.

// asTurn is the name of the message in the options of a client.
func (id *MessageID) asTurn() TurnID {
	return TurnID{App: id.App, Chat: id.Chat, Run: id.Run, Turn: id.Message}
}

// ofTurn is the identity of the turn that the message makes, or of its last correction.
func (w *messageWait) ofTurn() TurnID {
	return TurnID{App: w.id.App, Chat: w.id.Chat, Run: w.id.Run, Turn: w.out.Text.CorrectedTurn(w.corrections)}
}

// ended takes the response of the turn, unless a correction follows.
func (w *messageWait) ended(r *Response) {
	if r.Correcting && w.corrections < w.out.Text.Corrections {
		w.corrections++
		w.data = new(string) // the reply to a correction is not among the records of the message
		return
	}
	w.out.Response = r
}

// awaitTurn begins to wait for the response of the turn, once it is known that the message makes one.
func (w *messageWait) awaitTurn(ctx context.Context) error {
	if !w.follows("turn") || w.turn != nil || w.out.Response != nil {
		return nil
	}
	data, err := w.dataOfTurn(ctx)
	if err != nil {
		return err
	}
	turn, end := w.ofTurn(), make(chan turnEnd, 1)
	w.turn = end
	w.turns.Go(func() {
		response, err := w.c.await(ctx, turn, data)
		end <- turnEnd{response, err}
	})
	return nil
}

// dataOfTurn returns the fingerprint of the data of the turn: the object in the message, or its content if that has none. It is "" if any
// will do, because the data is gone.
func (w *messageWait) dataOfTurn(ctx context.Context) (string, error) {
	if w.data != nil {
		return *w.data, nil
	}
	t := *w.out.Text
	data := &t.StructuredOutput
	if t.Unread != nil {
		data = &t.Content
	}
	if blob, ok := events.BlobOf(*data); ok {
		text, err := w.c.Blob(ctx, BlobID{App: w.id.App, Blob: blob})
		if err == nil {
			*data, err = events.Decode(text)
		}
		if err != nil && !errors.Is(err, errAPI) { // else it is gone
			return "", err
		}
	}
	w.data = new(string)
	*w.data = t.TurnFingerprint()
	return *w.data, nil
}

// follows reports whether a turn or a handoff follows from the message.
func (w *messageWait) follows(what string) bool {
	return slices.Contains(strings.Split(w.due, ","), what)
}

// done reports whether all that follows from the message was read.
func (w *messageWait) done() bool {
	switch t := w.out.Text; {
	case t == nil:
		return false
	case w.follows("handoff") && w.out.Handoff == nil:
		return false
	case w.follows("turn"):
		return w.out.Response != nil || w.out.Handoff != nil // it has no response if its workflow sends none to failures
	default:
		return t.Turn != "" || t.Model == "" || t.StructuredOutput == nil && t.Unread == nil || w.out.Output != nil
	}
}
