package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
)

func ids(l questionList) []string {
	found := []string{}
	for _, q := range l.Questions {
		found = append(found, q.ToolCallID)
	}
	return found
}

func TestQuestionsLsListsOpenQuestions(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	one, two, three := turnID("chat 1", "", "t1"), turnID("chat 1", "r", "t2"), turnID("chat 2", "", "t1")
	a.ask(one, "1")
	first := a.ask(one, "2", until(time.Now().Add(30*time.Minute)))
	second := a.ask(two, "approval", until(time.Now().Add(10*time.Minute)))
	third := a.ask(three, "1", func(q *events.ToolCall) { q.WorkflowName = "Other" })
	a.answer(one, "1")
	a.publish(t, turnID("chat 3", "", "t1"), "Ada")

	require.Equal(t, `asked chat tool_call_id workflow tool user expires
TIME chat 1 t1/2 Hello approve ada TIME
TIME chat 1 `+second+` Hello approve ada TIME
TIME chat 2 t1/1 Other approve ada -
`, normal(ok(t, a.Server, "questions", "ls")))
	list := func(args ...string) []string {
		return ids(decode[questionList](t, a.Server, append([]string{"questions", "ls"}, args...)...))
	}
	require.Equal(t, []string{first, second, third}, list())
	_, doctor, _ := turnctl(t, a.Server, "doctor")
	require.Contains(t, normal(doctor), "info questions 4 questions with a time limit that has not passed, answered ones included: list")
	require.Equal(t, []string{first, second}, list("--chat", "chat 1"))
	require.Equal(t, []string{third}, list("--workflow", "Other"))
	require.Equal(t, []string{second, first}, list("--expiring", "1h"), "the soonest first")
	require.Equal(t, []string{second}, list("--expiring", "20m"))
	require.Equal(t, []string{third}, list("--limit", "1"))
	require.Equal(t, []string{second}, list("--limit", "1", "--expiring", "1h"))
	require.Empty(t, list("--app", "nobody"))
	require.Contains(t, ok(t, a.Server, "questions", "ls", "--limit", "1"), "there are more")
	require.Equal(t, "no open question in the last 7 days of chat none that expires within 1h: a running turn may not have asked yet, turnctl ls lists turns\n",
		ok(t, a.Server, "questions", "ls", "--chat", "none", "--expiring", "1h"))
}

func TestWaitsIsADeprecatedNameOfQuestions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code, stdout, stderr := turnctl(t, s, "waits", "ls")
	require.Equal(t, cli.OK, code)
	require.Equal(t, ok(t, s, "questions", "ls"), stdout)
	const notice = "turnctl: waits is deprecated and will be removed in the next release: use turnctl questions\n"
	require.Equal(t, notice, stderr)
	for _, args := range [][]string{{"waits"}, {"waits", "show"}, {"waits", "ls", "--bogus"}, {"waits", "nosuch"}} {
		_, _, stderr = turnctl(t, s, args...)
		require.Contains(t, stderr, notice, args)
		require.Greater(t, len(stderr), len(notice), "the error follows")
	}
	_, help, _ := turnctl(t, s, "waits", "--help")
	require.Contains(t, help, "Waits is the former name of turnctl questions and will be removed in the next release")
	require.NotContains(t, ok(t, s, "--help"), "waits")
}

func TestQuestionsLsFindsAnOldQuestionUnderManyNewRecords(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	asked := a.ask(turnID("c", "", "old"), "1")
	nc := a.Connect()
	for n := range firstWindow + 10 {
		require.NoError(t, nc.Publish(a.space.JournalSubject(fmt.Sprintf("e.default.other.t%d.0.ask.1", n)), []byte("{}")))
		require.NoError(t, nc.Publish(a.space.JournalSubject(fmt.Sprintf("e.default.other.t%d.0.tool_response", n)), []byte("{}")))
	}
	_, err := nc.Request(a.space.JournalSubject("e.default.other.last.0.tool_response"), []byte("{}"), 20*time.Second) // stored after all of them
	require.NoError(t, err)
	require.Equal(t, []string{asked}, ids(decode[questionList](t, a.Server, "questions", "ls")))
}

func TestQuestionsShowPrintsAllButTheAnswer(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	id := turnID("chat 1", "r", "t1")
	asked := a.ask(id, "1", until(time.Now().Add(time.Hour)), func(q *events.ToolCall) { q.Answer.Schema = map[string]any{"type": "object"} })
	a.park(id, "1")
	text := normal(ok(t, a.Server, "questions", "show", asked, "--payload"))
	require.Equal(t, `question `+asked+` of chat chat 1, app default
open, until TIME

 workflow Hello
 agent Greeter
 tool approve
 component Approval
 display artifact
 user ada
 asked TIME
 expires TIME
 shows 12 bytes
 answer to oneturn.in.default.tool_call_response.default.Hello.chat=201
 turn parked, turnctl show --key default.chat=201.1-rt1.0

shows:
 {
 "amount": 7
 }

schema of the answer:
 {
 "type": "object"
 }

to answer it: publisher answer 'chat 1' `+asked+` JSON
`, text)
	q := decode[shownQuestion](t, a.Server, "questions", "show", asked)
	require.Equal(t, api.Open, q.State)
	require.Nil(t, q.Shown)
	require.Equal(t, query.Parked, q.TurnState)

	a.answer(id, "1")
	q = decode[shownQuestion](t, a.Server, "questions", "show", asked)
	require.Equal(t, api.Answered, q.State)
	require.Equal(t, "ada", q.DecidedBy)
	require.NotZero(t, q.DecidedAt)
	require.Contains(t, ok(t, a.Server, "questions", "show", asked), "\nanswered by ada\n")
}

func TestQuestionsShowNamesTheFlagsThatSelectOneOfSeveralChats(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.ask(turnID("chat 1", "", "t1"), "1")
	a.ask(turnID("chat 2", "", "t1"), "1")
	code, _, stderr := turnctl(t, a.Server, "questions", "show", "t1/1")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "--app default --chat 'chat 2'")
	require.Equal(t, "chat 2", decode[shownQuestion](t, a.Server, "questions", "show", "t1/1", "--chat", "chat 2").Chat)
	require.Equal(t, "chat 2", decode[shownQuestion](t, a.Server, "questions", "show", "chat 2", "t1/1").Chat)
	for text, args := range map[string][]string{
		"questions show: TOOL_CALL_ID is missing: copy it from turnctl questions ls":                   {"show"},
		"questions expire: CHAT and TOOL_CALL_ID are accepted, and not a b c: copy them":               {"expire", "a", "b", "c"},
		"questions cancel: chat 'chat 1' and --chat 'chat 2' contradict each other: omit one":          {"cancel", "chat 1", "t1/1", "--chat", "chat 2"},
		`questions: invalid TOOL_CALL_ID "chat 1": use <tool_call_id of the call>/<question>, for exa`: {"show", "t1/1", "chat 1"},
	} {
		code, _, stderr = turnctl(t, a.Server, append([]string{"questions"}, args...)...)
		require.Equal(t, cli.Usage, code)
		require.Contains(t, stderr, text)
	}
	code, _, stderr = turnctl(t, a.Server, "questions", "show", "t1/2")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, `no such question: "t1/2" (expired questions are found with CHAT or --chat only)`)
	code, _, stderr = turnctl(t, a.Server, "questions", "show", "t1")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, `invalid TOOL_CALL_ID "t1"`)
}

func TestQuestionsExpireEndsTheTimeOfAQuestion(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	id := turnID("c", "", "t1")
	a.ask(id, "1", until(time.Now().Add(time.Hour)))
	a.ask(id, "2")
	require.Equal(t, "question t1/1 of chat c is expired\n", ok(t, a.Server, "questions", "expire", "c", "t1/1"))
	require.Equal(t, []string{"t1/2"}, ids(decode[questionList](t, a.Server, "questions", "ls")))
	require.True(t, decode[endedQuestion](t, a.Server, "questions", "expire", "t1/1").Done, "it is expired already")
	a.answer(id, "2")
	code, stdout, _ := turnctl(t, a.Server, "questions", "expire", "t1/2")
	require.Equal(t, cli.Failed, code)
	require.Equal(t, "question t1/2 of chat c is already answered\n", stdout)
}

func TestQuestionsCancelEndsTheTurn(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	for _, run := range []string{"", "r"} {
		id := turnID("c", run, "t1")
		asked := a.ask(id, "1")
		a.park(id, "1")
		require.Equal(t, "turn t1 of chat c is cancelled\n", ok(t, a.Server, "questions", "cancel", "c", asked, "--reason", "enough"))
	}
	require.Contains(t, ok(t, a.Server, "show", "c", "t1"), "cancelled  enough")
	require.Equal(t, "enough", decode[turnReport](t, a.Server, "show", "c", "t1").CancelReason)
	id := turnID("c", "", "t2")
	a.ask(id, "1")
	a.park(id, "1")
	e := decode[endedQuestion](t, a.Server, "questions", "cancel", "t2")
	require.True(t, e.Done)
	require.NotZero(t, e.Seq)
	require.Empty(t, ids(decode[questionList](t, a.Server, "questions", "ls")))
	require.Zero(t, decode[endedQuestion](t, a.Server, "questions", "cancel", "t2").Seq, "nothing is left to do")
	ended := turnID("c", "", "t3")
	a.ask(ended, "1")
	a.answer(ended, "1")
	event, err := events.AppendToolResponse(nil, &events.ToolResponse{AppID: ended.App, ChatID: "c", Turn: "t3", Status: events.StatusOK}, time.Now())
	require.NoError(t, err)
	_, err = a.journal.Finish(t.Context(), a.holds[ended], event)
	require.NoError(t, err)
	code, stdout, _ := turnctl(t, a.Server, "questions", "cancel", "t3")
	require.Equal(t, cli.Failed, code)
	require.Equal(t, "turn t3 of chat c is already ok\n", stdout)
	code, _, stderr := turnctl(t, a.Server, "questions", "cancel", "missing")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, `no turn "missing" with a question found`)
}

func TestShowListsQuestionsAndWhatATurnWaitsFor(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	id := turnID("c", "", "t1")
	a.ask(id, "1")
	a.ask(id, "2")
	a.ask(id, "approval", until(time.Now().Add(time.Hour)))
	a.answer(id, "1")
	require.NoError(t, a.journal.Take(t.Context(), a.holds[id], "1"))
	l := decode[turnReport](t, a.Server, "show", "c", "t1")
	require.Equal(t, query.Running, l.State)
	require.Contains(t, normal(ok(t, a.Server, "show", "c", "t1")), `
questions:
 tool_call_id asked tool user state
 t1/1 TIME approve ada answered by ada, taken in epoch 1
 t1/2 TIME approve ada open
 t1/approval TIME approve ada open, until TIME
`)
	require.Contains(t, l.Questions[1].Subject, "tool_call_response")
	a.park(id, "2", "approval")
	l = decode[turnReport](t, a.Server, "show", "c", "t1")
	require.Equal(t, "it waits for the answers to 2 questions, and no worker runs it", l.Meaning)
	require.False(t, l.Woken)
}

func TestQuestionsCancelEndsTheTurnThatAskedAndNoOtherWithAnIDLikeIt(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	job, part := turnID("c", "", "job"), turnID("c", "", "job/1")
	for _, id := range []oneturn.TurnID{job, part} {
		a.ask(id, "1")
		a.park(id, "1")
	}
	require.Equal(t, "turn job/1 of chat c is cancelled\n", ok(t, a.Server, "questions", "cancel", "job/1/1"))
	require.Equal(t, query.Parked, decode[turnReport](t, a.Server, "show", "c", "job").State)

	// The second data of a turn key runs under a separate key.
	const fingerprint = "0123456789abcdef"
	first, again := turnID("c", "", "t"), turnID("c", "", "t")
	a.ask(first, "1")
	a.park(first, "1")
	firstHold := a.holds[first]
	key := firstHold.Key.Reuse("", "t", fingerprint)
	call := events.QualifiedCallID("t", key.Turn)
	store, err := kvstore.Open(a.Connect(), a.space)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	_, err = store.Create(t.Context(), idempotency.Record{Key: firstHold.Key.ReuseNote(fingerprint), Data: []byte("{}")})
	require.NoError(t, err)
	event, err := events.Encode(events.KindToolCall, &events.ToolCall{
		AppID: again.App, ChatID: "c", Turn: "t", ID: call, ToolCallID: call, CallID: call, Corr: call, ToolName: "greet",
		Agent: "Greeter", WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
	}, time.Now())
	require.NoError(t, err)
	d, err := a.journal.Claim(t.Context(), idempotency.Claim{Key: key, Lease: a.lease(), Effect: "replay", Event: event, Fingerprint: fingerprint})
	require.NoError(t, err)
	a.holds[again] = d.Hold
	asked := a.ask(again, "1", func(q *events.ToolCall) {
		id := events.QuestionID(call, "1")
		q.ID, q.ToolCallID, q.CallID, q.Corr = id, id, id, id
	})
	a.park(again, "1")
	require.Equal(t, "turn t of chat c is cancelled\n", ok(t, a.Server, "questions", "cancel", asked))
	held, err := a.journal.Load(t.Context(), firstHold.Key)
	require.NoError(t, err)
	require.Nil(t, held.Response, "the first turn of the key still waits")
}
