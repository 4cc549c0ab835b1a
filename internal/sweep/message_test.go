package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// text stores the text of a message whose inbound message is gone; turn is the key of the turn that it makes, if any.
func (b *testSweep) text(id, turn, due string) subjects.Key {
	b.t.Helper()
	key := subjects.MessageKey("app", "chat", "", id)
	body, err := events.Encode(events.KindText, &events.Text{ID: id, MessageID: id, AppID: "app", ChatID: "chat", Agent: "A", WorkflowName: "WF", Content: "x", Turn: turn}, time.Now())
	require.NoError(b.t, err)
	_, err = idempotency.New(b.Store, "dead worker", idempotency.Options{}).ClaimMessage(b.t.Context(), idempotency.MessageClaim{
		Key: key, Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 4711, Delivery: 1}, Event: body, Fingerprint: "f", Due: due,
	})
	require.NoError(b.t, err)
	return key
}

func TestMessageWhoseWorkerHasDiedIsResumedUntilItsLastRecordIsStored(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.text("plain", "", idempotency.DueNothing)
	due := b.text("due", "", idempotency.DueHandoff)
	turn := b.text("turn", "t", idempotency.DueTurn)
	pages := sweep.NewMemoryPages()
	_, found := b.sweep(pages)
	require.ElementsMatch(t, []string{due.String(), turn.String()}, found)

	j := idempotency.New(b.Store, "w", idempotency.Options{})
	text, err := j.TextOf(t.Context(), due)
	require.NoError(t, err)
	_, err = j.Follow(t.Context(), &text, due, []byte(`{}`), events.RecordHandoff)
	require.NoError(t, err)
	_, err = j.Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "t"), Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 1, Delivery: 1}, Event: []byte(`{}`), Effect: "none", Fingerprint: "f", Message: turn.Turn,
	})
	require.NoError(t, err)
	_, found = b.sweep(pages)
	require.NotContains(t, found, due.String())
	require.NotContains(t, found, turn.String())
}

// TestMessageWhoseTurnAnEventHasClaimedIsResumedUntilItIsComplete: what precedes the claim of a turn may be missing if it is not its own.
func TestMessageWhoseTurnAnEventHasClaimedIsResumedUntilItIsComplete(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	message := b.text("m", "t", idempotency.DueTurn)
	j := idempotency.New(b.Store, "w", idempotency.Options{})
	_, err := j.Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "t"), Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 1, Delivery: 1}, Event: []byte(`{}`), Effect: "none", Fingerprint: "f",
	})
	require.NoError(t, err)
	pages := sweep.NewMemoryPages()
	_, found := b.sweep(pages)
	require.Contains(t, found, message.String())
	text, err := j.TextOf(t.Context(), message)
	require.NoError(t, err)
	require.NoError(t, j.NoteTurn(t.Context(), &text, message, idempotency.NoTurn))
	_, found = b.sweep(pages)
	require.NotContains(t, found, message.String())
}

func TestMessageWhoseTurnMayBeCorrectedIsNotForgottenWhileThatRuns(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	message := subjects.MessageKey("app", "chat", "", "m")
	body, err := events.Encode(events.KindText, &events.Text{
		ID: "m", MessageID: "m", AppID: "app", ChatID: "chat", Agent: "A", WorkflowName: "WF", Content: "x", Turn: "t", Corrections: 2,
	}, time.Now())
	require.NoError(t, err)
	j := idempotency.New(b.Store, "dead worker", idempotency.Options{})
	gone := idempotency.Lease{Stream: "ONETURN_IN", Seq: 4711, Delivery: 1}
	_, err = j.ClaimMessage(t.Context(), idempotency.MessageClaim{Key: message, Lease: gone, Event: body, Fingerprint: "f", Due: idempotency.DueTurn})
	require.NoError(t, err)
	d, err := j.Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "t"), Lease: gone, Event: []byte(`{}`), RejectCode: "validation_failed", Fingerprint: "f", Message: message.Turn,
	})
	require.NoError(t, err)
	pages := sweep.NewMemoryPages()
	_, found := b.sweep(pages)
	require.NotContains(t, found, message.String())
	body, err = events.Encode(events.KindToolResponse, &events.ToolResponse{ID: "t", AppID: "app", ChatID: "chat", Turn: "t", Correcting: true}, time.Now())
	require.NoError(t, err)
	_, err = j.Finish(t.Context(), d.Hold, body)
	require.NoError(t, err)
	_, found = b.sweep(pages)
	require.Contains(t, found, message.String(), "its correction is not claimed")
}

func TestResumeOfAMessageNamesIt(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	key := b.text("due", "", idempotency.DueHandoff)
	_, err := b.Run(t.Context(), sweep.NewMemoryPages(), later(), sweep.Scope{}, func(ctx context.Context, f sweep.Finding) (uint64, error) { return b.Resume(ctx, f) })
	require.NoError(t, err)
	stream, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	e, err := events.DecodeResume(m.Data)
	require.NoError(t, err)
	require.True(t, e.Message)
	require.Equal(t, key.String(), e.Key)
	require.Equal(t, "WF", e.Workflow)
}

func TestMessageWhoseCorrectionWasNotClaimedIsResumed(t *testing.T) {
	t.Parallel()
	for _, due := range []string{idempotency.DueTurn, idempotency.DueTurnHandoff} {
		b := newTestSweep(t)
		key := subjects.MessageKey("app", "chat", "", "m")
		body, err := events.Encode(events.KindText, &events.Text{
			ID: "m", MessageID: "m", AppID: "app", ChatID: "chat", Agent: "A", WorkflowName: "WF", Content: "x", Turn: "t", Corrections: 2,
		}, time.Now())
		require.NoError(t, err)
		j := idempotency.New(b.Store, "dead worker", idempotency.Options{})
		gone := idempotency.Lease{Stream: "ONETURN_IN", Seq: 4711, Delivery: 1}
		_, err = j.ClaimMessage(t.Context(), idempotency.MessageClaim{Key: key, Lease: gone, Event: body, Fingerprint: "f", Due: due})
		require.NoError(t, err)
		claim := func(turn string) idempotency.Hold {
			d, err := j.Claim(t.Context(), idempotency.Claim{
				Key: subjects.TurnKey("app", "chat", "", turn), Lease: gone, Event: []byte(`{}`), Effect: "none", Fingerprint: "f", Message: key.Turn,
			})
			require.NoError(t, err)
			return d.Hold
		}
		end := func(hold idempotency.Hold, turn string, correcting bool) {
			body, err := events.Encode(events.KindToolResponse, &events.ToolResponse{ID: turn, AppID: "app", ChatID: "chat", Turn: turn, Correcting: correcting}, time.Now())
			require.NoError(t, err)
			_, err = j.Finish(t.Context(), hold, body)
			require.NoError(t, err)
		}
		pages := sweep.NewMemoryPages()
		end(claim("t"), "t", true)
		_, found := b.sweep(pages)
		require.Contains(t, found, key.String())
		hold := claim("t~1")
		_, found = b.sweep(pages)
		require.NotContains(t, found, key.String(), "the sweep of the turn does the rest")
		end(hold, "t~1", false)
		_, found = b.sweep(pages)
		if due == idempotency.DueTurn {
			require.NotContains(t, found, key.String())
		} else {
			require.Contains(t, found, key.String(), "its handoff is missing")
		}
	}
}

func TestMessageWhoseTurnNeverRunsIsNotResumed(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	turn := b.text("turn", "t", idempotency.DueTurn)
	pages := sweep.NewMemoryPages()
	_, found := b.sweep(pages)
	require.Equal(t, []string{turn.String()}, found)
	j := idempotency.New(b.Store, "w", idempotency.Options{})
	text, err := j.TextOf(t.Context(), turn)
	require.NoError(t, err)
	require.NoError(t, j.NoteTurn(t.Context(), &text, turn, idempotency.NoTurn))
	for _, p := range []sweep.Pages{pages, sweep.NewMemoryPages()} {
		swept, found := b.sweep(p)
		require.Empty(t, found)
		require.Zero(t, swept.Open)
	}
}

func TestMessageThatWaitsForATurnIsResumedWhenThatHasEnded(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	message := b.text("m", "t", idempotency.DueTurnHandoff)
	j := idempotency.New(b.Store, "w", idempotency.Options{})
	event := idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "t"), Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 1, Delivery: 1}, Event: []byte(`{}`), Effect: "none", Fingerprint: "f",
	}
	d, err := j.Claim(t.Context(), event) // of an event, which does not know the message
	require.NoError(t, err)
	pages := sweep.NewMemoryPages()
	for range 2 {
		_, found := b.sweep(pages)
		require.NotContains(t, found, message.String())
	}
	_, err = j.Finish(t.Context(), d.Hold, []byte(`{}`))
	require.NoError(t, err)
	_, found := b.sweep(pages)
	require.Contains(t, found, message.String())
}
