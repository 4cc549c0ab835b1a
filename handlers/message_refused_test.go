package handlers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// fillDocument leaves the variables of the chat no room for another one.
func (k *messageKit) fillDocument() {
	k.t.Helper()
	const limit, envelope = 512 << 10, 64
	d := variables.Delta{Set: map[string]any{"big": strings.Repeat("x", limit-envelope)}}
	require.NoError(k.t, k.Variables.Merge(k.t.Context(), "app", "chat", 1<<20, d))
}

// damageDocument makes the variables of the chat unreadable.
func (k *messageKit) damageDocument() {
	k.t.Helper()
	kv, err := k.js.KeyValue(k.t.Context(), k.space.ContextBucket())
	require.NoError(k.t, err)
	_, err = kv.Put(k.t.Context(), subjects.ContextKey("app", "chat"), []byte("{"))
	require.NoError(k.t, err)
}

// purgeBlobs deletes all blobs.
func (k *messageKit) purgeBlobs() {
	k.t.Helper()
	bucket, err := k.js.ObjectStore(k.t.Context(), k.space.BlobsBucket())
	require.NoError(k.t, err)
	blobs, err := bucket.List(k.t.Context())
	require.NoError(k.t, err)
	for _, blob := range blobs {
		require.NoError(k.t, bucket.Delete(k.t.Context(), blob.Name))
	}
}

func TestMessageContinuesWithoutChangesThatHaveNoRoom(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.fillDocument()
	m := k.deliver("m1", "Interviewer", "NEXT")
	k.handled(again(m))
	require.Equal(t, []string{"text", "handoff"}, k.kinds("m1"))
	handoff := k.of("m1", "handoff")
	require.Nil(t, handoff["to"])
	require.Equal(t, "too_large", handoff["code"])
	require.Contains(t, handoff["message"], "remove some, or make them smaller")
	require.Nil(t, k.variables()["interview_done"])

	k.deliver("m2", "Interviewer", "What shall I build?")
	require.Equal(t, "user", k.of("m2", "handoff")["to"], "what is decided for messages has separate room")
	k.deliver("m3", events.AgentUser, "A shop.")
	require.Equal(t, "Interviewer", k.of("m3", "handoff")["to"])
}

func TestTurnOfAMessageRunsAndHandsOffThoughVariablesHaveNoRoom(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.fillDocument()
	k.deliver("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Equal(t, "Interviewer", k.of("m1", "handoff")["to"])
}

func TestMessageContinuesThoughTheVariablesOfItsChatAreDamaged(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.damageDocument()
	k.deliver("m1", "Interviewer", "NEXT", numbered(1))
	k.deliver("m2", "Architect", `{"title":"Shop"}`, numbered(2))
	require.Equal(t, []string{"text", "handoff"}, k.kinds("m1"))
	require.Equal(t, true, k.responseOf("m2")["success"], "its tool reads no variables")
	for _, id := range []string{"m1", "m2"} {
		require.Nil(t, k.of(id, "handoff")["to"])
		require.Equal(t, "state_corrupt", k.of(id, "handoff")["code"])
	}
}

func TestTurnOfAnOutputThatIsGoneEndsAndHandsOff(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	m := k.writes("m1", "Architect", map[string]any{"title": strings.Repeat("x", 300<<10)})
	k.diesBefore("tool_call", m)
	k.purgeBlobs()
	k.handled(k.resumes("m1")) // a later delivery of the message has the output itself
	require.Equal(t, "interrupted", k.responseOf("m1")["code"])
	require.Equal(t, "Interviewer", k.of("m1", "handoff")["to"])
	require.Zero(t, k.entered.Load())
}

func TestClaimedTurnOfAnOutputThatIsGoneIsLeftToItsSweep(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	m := k.writes("m1", "Architect", map[string]any{"title": strings.Repeat("x", 300<<10)})
	k.diesBefore("tool_response", m)
	k.purgeBlobs()
	k.handled(k.resumes("m1"))
	require.Nil(t, k.of("m1", "handoff"), "the sweep of the turn does the rest")
	stream, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.Zero(t, stream.CachedInfo().State.Msgs)
}

func TestMessageIsDoneThoughARecordOfItCannotBeStored(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, nil })
	text := k.writes("m1", "Interviewer", "NEXT")
	k.diesBefore("context_update", text)
	damaged := k.store
	r, err := damaged.Last(t.Context(), subjects.MessageKey("app", "chat", "", "m1").Public("text"))
	require.NoError(t, err)
	r.Key, r.Seq, r.Time, r.Data = subjects.MessageKey("app", "chat", "", "m1").Public("context_update", subjects.Token("interview_done")), 0, time.Time{}, nil
	r.Err = context.DeadlineExceeded // whatever makes it unreadable
	_, err = damaged.Create(t.Context(), r)
	require.NoError(t, err)
	k.handled(again(text))
	require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
}

func TestMessageIsDoneThoughTheClaimOfItsTurnCanNeverBeStored(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.checkRecords(func(r *idempotency.Record) error {
		if strings.HasSuffix(r.Key, "."+events.RecordCall) {
			return idempotency.ErrRefused
		}
		return nil
	})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.writes("m1", "Architect", `{"title":"Shop"}`)).Do)
	require.Equal(t, []string{"too_large"}, k.deadReasons())
	require.NotNil(t, k.of("m1", "handoff"))
	require.Zero(t, k.entered.Load())
}
