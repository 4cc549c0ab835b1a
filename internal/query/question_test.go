package query_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// The request API reads the records that may have ended a question by their names, turnctl reads the turn.
func TestStateOfAQuestionIsTheSameForEveryReader(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	reader := query.New(nc, space, kvstore.Read(nc, space), nil)
	decided := func(outcome idempotency.Outcome) idempotency.Meta { return idempotency.Meta{Outcome: string(outcome)} }
	for turn, c := range map[string]struct {
		records func(k subjects.Key) []idempotency.Record
		want    api.QuestionState
	}{
		"open": {func(subjects.Key) []idempotency.Record { return nil }, api.Open},
		"answered": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Private("answer", "1"), Meta: decided(idempotency.Answered)}}
		}, api.Answered},
		"expired": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Public("ack", "1"), Meta: decided(idempotency.Expired)}}
		}, api.Expired},
		"closed": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Public("tool_response")}}
		}, api.Closed},
		"cancelled": {func(k subjects.Key) []idempotency.Record { return []idempotency.Record{{Key: k.Public("cancel")}} }, api.Cancelled},
		"of no known outcome": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Private("answer", "1"), Meta: decided("other")}}
		}, api.Unreadable},
		"unreadable": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Private("answer", "1"), Seq: 1}}
		}, api.Unreadable},
		"open though a damaged ack": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Public("ack", "1"), Seq: 1}}
		}, api.Open},
		"open though a damaged cancel": {func(k subjects.Key) []idempotency.Record {
			return []idempotency.Record{{Key: k.Public("cancel"), Seq: 1}}
		}, api.Open},
	} {
		id := events.TurnID{App: "app", Chat: "chat", Turn: turn}
		key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
		ask, err := events.Encode(events.KindToolCall, &events.ToolCall{
			Kind: events.KindToolCall, AppID: "app", ChatID: "chat", Turn: turn, ToolCallID: turn + "/1", Answer: &events.AnswerTo{Subject: "s"},
		}, time.Now())
		require.NoError(t, err)
		create := func(r idempotency.Record) {
			r.Meta.Owner, r.Meta.Nonce, r.Meta.Epoch = "w", "n", 1
			if r.Data == nil {
				r.Data = []byte("{}")
			}
			_, err := kv.Create(t.Context(), r)
			require.NoError(t, err)
		}
		create(idempotency.Record{Key: key.Public("tool_call")})
		create(idempotency.Record{Key: key.Public("ask", "1"), Data: ask})
		for _, r := range c.records(key) {
			if r.Seq > 0 { // a record without a writer
				_, err := nc.Request(space.JournalSubject(r.Key), nil, 5*time.Second)
				require.NoError(t, err)
				continue
			}
			create(r)
		}

		q, err := reader.Question(t.Context(), "app", "chat", "", turn+"/1")
		require.NoError(t, err)
		require.Equal(t, c.want, q.State, turn)
		page, err := reader.Questions(t.Context(), "app", "chat", q.Sequence)
		require.NoError(t, err)
		open := len(page.Questions) > 0 && page.Questions[0].ToolCallID == q.ToolCallID
		require.Equal(t, c.want == api.Open, open, turn)
		read, err := idempotency.Load(t.Context(), kv, key)
		require.NoError(t, err)
		require.Equal(t, c.want, query.StateOf(read, &read.Questions()[0]), turn)
	}
}

func TestQuestionOfAnEarlierTurnUnderTheKeyIsClosed(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	key := subjects.TurnKey("app", "chat", "", "turn")
	ask, err := events.Encode(events.KindToolCall, &events.ToolCall{
		Kind: events.KindToolCall, AppID: "app", ChatID: "chat", Turn: "turn", ToolCallID: "turn/1", Answer: &events.AnswerTo{Subject: "s"},
	}, time.Now())
	require.NoError(t, err)
	for _, r := range []idempotency.Record{{Key: key.Public("ask", "1"), Data: ask}, {Key: key.Public("tool_call"), Data: []byte("{}")}} {
		r.Meta = idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}
		_, err := kv.Create(t.Context(), r)
		require.NoError(t, err)
	}
	q, err := query.New(nc, space, kv, nil).Question(t.Context(), "app", "chat", "", "turn/1")
	require.NoError(t, err)
	require.Equal(t, api.Closed, q.State)
}

func TestQuestionOfAStepIsFoundByItsIDAndEndsWithItsStepOrItsTurn(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	reader := query.New(nc, space, kv, nil)
	for turn, c := range map[string]struct {
		run     string
		records func(turn, step subjects.Key) []string
		outcome idempotency.Outcome
		want    api.QuestionState
	}{
		"open":           {"", func(_, _ subjects.Key) []string { return nil }, "", api.Open},
		"with-run":       {"r1", func(_, _ subjects.Key) []string { return nil }, "", api.Open},
		"step-ended":     {"", func(_, s subjects.Key) []string { return []string{s.Public("tool_response")} }, "", api.Closed},
		"turn-ended":     {"", func(t, _ subjects.Key) []string { return []string{t.Public("tool_response")} }, "", api.Closed},
		"turn-cancelled": {"", func(t, _ subjects.Key) []string { return []string{t.Public("cancel")} }, "", api.Cancelled},
		"answered":       {"", func(_, s subjects.Key) []string { return []string{s.Private("answer", "1")} }, idempotency.Answered, api.Answered},
		"another-step": {"", func(t, _ subjects.Key) []string {
			return []string{t.WithCall(subjects.CallOf("other")).Private("answer", "1")}
		}, idempotency.Answered, api.Open},
	} {
		key := subjects.TurnKey("app", "chat", c.run, turn)
		step := key.WithCall(subjects.CallOf("fan[1]"))
		callID := events.CallID(events.TurnID{App: "app", Chat: "chat", Run: c.run, Turn: turn}, key.Turn)
		id := events.QuestionID(events.StepID(callID, "fan[1]"), "1")
		create := func(name string, outcome idempotency.Outcome, e *events.ToolCall) {
			body := []byte("{}")
			if e != nil {
				e.AppID, e.ChatID, e.RunID, e.Turn, e.WorkflowName = "app", "chat", c.run, turn, "WF"
				var err error
				body, err = events.Encode(events.KindToolCall, e, time.Now())
				require.NoError(t, err)
			}
			_, err := kv.Create(t.Context(), idempotency.Record{Key: name, Data: body, Meta: idempotency.Meta{
				Owner: "w", Nonce: "n", Epoch: 1, Effect: string(events.EffectProgram), Outcome: string(outcome),
			}})
			require.NoError(t, err)
		}
		create(key.Public("tool_call"), "", &events.ToolCall{ToolCallID: callID})
		q, err := reader.Question(t.Context(), "app", "chat", "", id)
		require.NoError(t, err, turn)
		require.NotNil(t, q, turn)
		require.Equal(t, api.NotAsked, q.State, turn)
		create(step.Public("ask", "1"), "", &events.ToolCall{ToolCallID: id, Answer: &events.AnswerTo{Subject: "s"}})
		for _, name := range c.records(key, step) {
			create(name, c.outcome, nil)
		}
		q, err = reader.Question(t.Context(), "app", "chat", "", id)
		require.NoError(t, err, turn)
		require.NotNil(t, q, turn)
		require.Equal(t, c.want, q.State, turn)
		page, err := reader.Questions(t.Context(), "app", "chat", q.Sequence)
		require.NoError(t, err)
		require.Equal(t, c.want == api.Open, len(page.Questions) > 0 && page.Questions[0].ToolCallID == id, turn)
	}
	// A turn that is not a program has no steps.
	_, err := kv.Create(t.Context(), idempotency.Record{Key: subjects.TurnKey("app", "chat", "", "single").Public("tool_call"), Data: []byte("{}"), Meta: idempotency.Meta{
		Owner: "w", Nonce: "n", Epoch: 1, Effect: "replay",
	}})
	require.NoError(t, err)
	q, err := reader.Question(t.Context(), "app", "chat", "", "single#0/1")
	require.NoError(t, err)
	require.Nil(t, q)
}
