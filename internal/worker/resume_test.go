package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

func TestResumeFromAnySenderDoesNothingToATurnThatRuns(t *testing.T) {
	t.Parallel()
	s := server(t)
	entered, release := make(chan struct{}, 4), make(chan struct{})
	slow := func(context.Context, greeting) (greeted, error) {
		entered <- struct{}{}
		<-release
		return greeted{Status: "success", Message: "done"}, nil
	}
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", slow, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})}})
	c := client(t, s)
	one := turn("t", map[string]any{"name": "Ada"})
	publish(t, c, one)
	<-entered
	o := newOrphan(t, s, "t", "")
	body, err := events.EncodeResume(&events.Resume{TurnID: events.TurnID(one.TurnID), Workflow: "Hello"}, time.Now())
	require.NoError(t, err)
	ack, err := o.js.Publish(t.Context(), o.space.In("default", "resume", "app", "Hello", "chat 1"), body)
	require.NoError(t, err)
	in, err := o.js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := in.GetMsg(t.Context(), ack.Sequence)
		return err != nil
	}, 10*time.Second, 5*time.Millisecond, "the resume is settled while the tool runs")
	close(release)
	require.True(t, await(t, c, one.TurnID).Success)
	require.Empty(t, entered)
}

func TestResumeGoesToThePoolThatClaimedTheTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	o.meta[idempotency.HeaderPool] = "gpu"
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	in, err := o.js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		m, err := in.GetLastMsgForSubject(t.Context(), o.space.In("gpu", "resume", "app", "Hello", "chat 1"))
		if err != nil {
			return false
		}
		event, err := events.Parse(m.Data)
		return err == nil && event.Kind == events.KindResume
	}, 20*time.Second, 20*time.Millisecond)
}

func TestTurnWhoseKeyWasUsedBeforeIsResumedUnderItsOwnName(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	o.key.Turn = subjects.ReusedTurnToken("", "t", o.meta[idempotency.HeaderFingerprint][:16])
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	r := o.response(t)
	require.True(t, r.Success)
	require.Equal(t, "t", r.Turn)
	require.Equal(t, events.QualifiedCallID("t", o.key.Turn), r.ToolCallID)
}

// TestCancelStopsTheToolOfATurnThatWasResumed: each of two, by its own name.
func TestCancelStopsTheToolOfATurnThatWasResumed(t *testing.T) {
	t.Parallel()
	s := server(t)
	entered := make(chan string, 4)
	hang := func(ctx context.Context, _ greeting) (greeted, error) {
		entered <- tool.Info(ctx).Turn
		<-ctx.Done()
		return greeted{}, ctx.Err()
	}
	one, two := newOrphan(t, s, "one", "idempotent"), newOrphan(t, s, "two", "idempotent")
	one.store(t)
	two.store(t)
	start(t, s, oneturn.Config{SweepEvery: soon, Tools: []oneturn.Tool{
		oneturn.NewTool("greet", hang, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: oneturn.Idempotent}),
	}})
	require.ElementsMatch(t, []string{"one", "two"}, []string{<-entered, <-entered})
	c := client(t, s)
	for _, o := range []*orphan{one, two} {
		_, err := c.Cancel(t.Context(), &oneturn.Cancel{TurnID: o.id, Workflow: "Hello"})
		require.NoError(t, err)
		require.Equal(t, events.CodeCancelled, o.response(t).Code)
	}
	require.Empty(t, entered)
}

func TestHostileDueAndResumeMessagesAreDeadLettersAndSweepsContinue(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	publish := func(subject, body string) {
		_, err := o.js.Publish(t.Context(), subject, []byte(body))
		require.NoError(t, err)
	}
	due := []string{ // a sweep that is due has no content that is read
		``, `null`, `[]`, `{"from":-1,"open":[]}`, `{"from":1e3,"open":[]}`, `{"open":[]}`, `{"from":0,"open":{}}`, `{"from":0,"open":[{"key":"a.*.b.0","seq":1}]}`,
		`{"from":0,"open":[{"key":"a.b.c.0"}]}`, `{"from":0,"open":[],"from":1}`,
		`{"from":0,"open":[` + strings.Repeat(`{"key":"a.b.c.0","seq":1},`, 10_000) + `{"key":"a.b.c.0","seq":1}]}`,
	}
	for _, body := range due {
		publish(o.space.SweepDue(), body)
	}
	publish("oneturn.due.nothing", `{}`)
	resume := o.space.In("default", "resume", "app", "Hello", "chat 1")
	bodies := []string{
		`{`, `{"kind":"resume"}`, `{"kind":"resume","key":"a.b"}`, `{"kind":"resume","key":"app.other.0-t.0"}`,
		`{"kind":"resume","key":"app.=2Dx.0-t.0"}`, `{"kind":"resume","key":"` + o.key.App + "." + o.key.Chat + "." + o.key.Turn + `.1"}`,
		`{"kind":"resume","app_id":"evil","chat_id":"chat 1","turn":"t","workflow_name":"Hello"}`,
		`{"kind":"resume","app_id":"app","chat_id":"chat 1","turn":"t","workflow_name":"Other"}`,
	}
	for _, body := range bodies {
		publish(resume, body)
	}
	// These name turns that need nothing.
	publish(resume, `{"kind":"resume","app_id":"app","chat_id":"chat 1","turn":"none","workflow_name":"Hello"}`)
	publish(o.space.SweepDue(), `{"from":18446744073709551615,"open":[{"key":"a.b.c.0","seq":9}]}`) // of another journal
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	require.True(t, o.response(t).Success)
	requireDrained(t, s)
	dead, err := o.js.Stream(t.Context(), "ONETURN_DEAD")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := dead.Info(t.Context())
		return err == nil && info.State.Msgs == uint64(1+len(bodies))
	}, 10*time.Second, 10*time.Millisecond)
}
