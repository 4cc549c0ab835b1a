package handlers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/subjects"
)

// claims claims a turn as a worker does, and returns its key.
func (k *kit) claims(a *asker, seq uint64, key subjects.Key, id events.TurnID) subjects.Key {
	k.t.Helper()
	_, err := a.journal.Claim(k.t.Context(), idempotency.Claim{
		Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: 1}, Event: k.claimEventOf(id), Effect: "replay",
	})
	require.NoError(k.t, err)
	return key
}

func (k *kit) claimEventOf(id events.TurnID) []byte {
	k.t.Helper()
	data, err := events.Encode(events.KindToolCall, &events.ToolCall{
		Kind: events.KindToolCall, AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, WorkflowName: "WF", Agent: "A", ToolName: "t",
	}, time.Now())
	require.NoError(k.t, err)
	return data
}

func (k *kit) cancelByCall(run, callID string) *mail {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{
		"kind": "cancel", "app_id": "app", "chat_id": "chat", "run_id": run, "workflow_name": "WF", "tool_call_id": callID,
	})
	require.NoError(k.t, err)
	return k.mail(2, events.KindCancel, body)
}

func (k *kit) requireCancelled(want bool, keys ...subjects.Key) {
	k.t.Helper()
	for _, key := range keys {
		held, err := k.Journal.Load(k.t.Context(), key)
		require.NoError(k.t, err)
		require.Equal(k.t, want, held.Cancel != nil, key.String())
	}
}

func TestCancelByAnIDOfAUsedKeyCancelsThatTurnAndNoOther(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "run-1"} {
		for _, turn := range []string{"turn", "a/b"} {
			for name, suffix := range map[string]string{"call": "", "question that is not asked yet": "/1", "surface": "/s:plan"} {
				for _, live := range []bool{false, true} {
					t.Run(fmt.Sprint(turn, run, name, live), func(t *testing.T) {
						t.Parallel()
						k := newKit(t, toolFunc(nothing))
						id := events.TurnID{App: "app", Chat: "chat", Run: run, Turn: turn}
						first, other := k.asker(turn, run), k.asker("a", run)
						again := k.claims(first, 9, first.key.Reuse(run, turn, "0123456789abcdef"), id)
						callID := events.QualifiedCallID(turn, again.Turn)
						k.lists(func(filter string) ([]subjects.Record, error) {
							if filter == first.key.ReuseNotes() {
								return []subjects.Record{{Key: first.key, ID: "0123456789abcdef"}}, nil
							}
							return nil, nil
						})
						m := k.cancelByCall(run, callID+suffix)
						if live {
							k.HandleCancelCopy(m.Subject, m.Data)
						} else {
							require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
						}
						k.requireCancelled(true, again)
						k.requireCancelled(false, first.key, other.key)
					})
				}
			}
		}
	}
}

func TestCancelByAnIDOfATurnWithARunThatItDoesNotNameCancelsThatTurn(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/1", "/s:plan"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			id := events.TurnID{App: "app", Chat: "chat", Run: "run-1", Turn: "turn"}
			other := k.asker("turn", "")
			key := k.claims(other, 9, subjects.TurnKey("app", "chat", "run-1", "turn"), id)
			k.finds(nil, other.key, key)
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.cancelByCall("", events.CallID(id, key.Turn)+suffix).Message).Do)
			k.requireCancelled(true, key)
			k.requireCancelled(false, other.key)
			held, err := k.Journal.Load(t.Context(), key)
			require.NoError(t, err)
			var e events.ToolCallCancel
			body, err := events.Parse(held.Cancel.Data)
			require.NoError(t, err)
			require.NoError(t, body.As(&e))
			require.Equal(t, "run-1", e.RunID)
		})
	}
}

// Where a chat has too many turns to look at, those with such a step or question are left.
func TestCancelByAnIDOfAStepFindsItsTurnAmongTooManyTurns(t *testing.T) {
	t.Parallel()
	for suffix, filter := range map[string]string{
		"#1": "e.app.chat.*.s_1.tool_call", "#1/sure": "e.app.chat.*.s_1.ask.sure", "#1#0/1": "e.app.chat.*.s_1=230.ask.1", "#~approve/1": "e.app.chat.*.approve.ask.1",
	} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			id := events.TurnID{App: "app", Chat: "chat", Run: "run-1", Turn: "turn"}
			other := k.asker("turn", "")
			key := k.claims(other, 9, subjects.TurnKey("app", "chat", "run-1", "turn"), id)
			k.lists(func(of string) ([]subjects.Record, error) {
				switch {
				case of == filter:
					return []subjects.Record{{Key: other.key}, {Key: key.WithCall("s_1")}}, nil
				case strings.HasPrefix(of, "e.app.chat.*.0."):
					return nil, idempotency.ErrTooMany
				}
				return nil, nil
			})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.cancelByCall("", events.CallID(id, key.Turn)+suffix).Message).Do)
			k.requireCancelled(true, key)
			k.requireCancelled(false, other.key)
		})
	}
}

// A chat with too many turns to look at fails the search, and no other turn is taken for the one that is meant.
func TestCancelWhoseTurnCannotBeSearchedForIsADeadLetter(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/s:plan"} {
		k := newKit(t, toolFunc(nothing))
		k.finds(idempotency.ErrTooMany)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), aged(k.cancelByCall("", "turn@01234567"+suffix)).Message).Do)
		k.requireCancelled(false, subjects.TurnKey("app", "chat", "", "turn@01234567"+suffix))
		dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
		require.NoError(t, err)
		require.EqualValues(t, 1, dead.CachedInfo().State.Msgs)
	}
}

// The event from which the id is taken may be read before a lagging worker knows the claim.
func TestCancelByAnIDOfNoTurnWaitsForItsTurnAndCancelsNoOther(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "run-1"} {
		k := newKit(t, toolFunc(nothing))
		first := k.asker("turn", run)
		m := k.cancelByCall(run, "turn@01234567")
		require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), aged(m).Message).Do)
		k.requireCancelled(false, first.key)
		dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
		require.NoError(t, err)
		if run != "" {
			require.EqualValues(t, 1, dead.CachedInfo().State.Msgs, "no turn with a run can have the id later")
			continue
		}
		k.requireCancelled(true, subjects.TurnKey("app", "chat", "", "turn@01234567"))
	}
}

// A search may wait for the budget of its tenant; what leads to a claimed turn without one does not.
func TestCancelOfAClaimedTurnWhoseKeyLooksLikeTheIDOfAReusedOneIsNotSearchedFor(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("job@deadbeef", "")
	k.finds(&searchbudget.BusyError{After: time.Minute})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.cancelByCall("", "job@deadbeef").Message).Do)
	k.requireCancelled(true, a.key)
}
