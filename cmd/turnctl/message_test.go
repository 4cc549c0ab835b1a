package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

func TestShowPrintsAMessageAndWhatFollowsFromIt(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "next")
	text := ok(t, v.Server, "show", "c", "m1")
	require.Contains(t, text, "message m1 of chat c, app default\ncomplete: everything that follows from it is stored\n")
	require.Contains(t, normal(text), "\n agent Interviewer\n workflow Interviews\n people hidden from people\n")
	require.Equal(t, " next", lines(text, "content: 6 bytes"))
	require.Equal(t, " variable set to change\n done true record 2", lines(text, "context variables:"))
	require.Contains(t, text, "\nhandoff: Interviewer → Architect, condition, rule 0\n")

	m := decode[onlyMessage](t, v.Server, "show", "c", "m1").Message
	require.Equal(t, []any{"m1", "next", true, messageComplete}, []any{m.ID, m.Content, m.Hidden, m.State})
	require.Equal(t, uint64(2), m.Triggers[0].Seq)
	require.Equal(t, "Architect", *m.Handoff.To)
	require.Len(t, m.Records, 3)
	require.Equal(t, m.ID, decode[onlyMessage](t, v.Server, "show", "--key", m.Key).Message.ID)

	v.publish("m2", "Interviewer", "NEXT")
	require.Contains(t, ok(t, v.Server, "show", "c", "m2"), "none: it has the value already")
	require.NotContains(t, ok(t, v.Server, "questions", "ls"), "m1")
}

func TestShowPrintsAMessageBelowItsTurn(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Architect", "Here it is: {'title': 'Shop',}")
	text := ok(t, v.Server, "show", "c", "m1")
	require.Contains(t, text, "turn m1 of chat c, app default\nended: ")
	require.Contains(t, text, "\nmessage m1: everything that follows from it is stored\n")
	require.Contains(t, normal(text), "\n object of model Plan, 16 bytes\n repaired ")
	require.Regexp(t, `\n +around it +prose\n`, text)
	require.Equal(t, ` turn corrects tool state took
 m1 - draw ok N ms`, lines(text, "turns:"))

	l := decode[turnReport](t, v.Server, "show", "c", "m1", "--payload")
	require.Equal(t, "m1", l.Message.ID)
	require.JSONEq(t, `{"title": "Shop"}`, string(l.Message.Output.Value))
	require.Equal(t, query.Ended, l.Message.Turns[0].State)
	require.False(t, l.Message.Turns[0].OtherCause)
	only := decode[onlyMessage](t, v.Server, "show", "c", "m1", "--message").Message
	require.Nil(t, only.Output.Value, "objects are shown with --payload")
	require.Contains(t, ok(t, v.Server, "show", "c", "m1", "--message"), "\nturnctl show c m1 shows its turn\n")

	v.publish("m2", "Critic", "none of that")
	failed := decode[onlyMessage](t, v.Server, "show", "c", "m2").Message
	require.NotEmpty(t, failed.Unread)
	require.Equal(t, "validation_failed", string(failed.Failure))
}

func TestShowPrintsThatTheManifestsDoNotNameTheAgentOfAMessage(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviever", "What shall I build?")
	require.Regexp(t, `(?m)^ *warnings +unknown_agent$`, ok(t, v.Server, "show", "c", "m1", "--message"))
	require.Equal(t, []string{"unknown_agent"}, decode[onlyMessage](t, v.Server, "show", "c", "m1", "--message").Message.Warnings)
}

func TestLsListsMessages(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "What shall I  build?\nA shop?")
	v.publish("m2", "user", "A shop.")
	v.publish("m3", "Interviewer", "NEXT")
	v.publish("m4", "Architect", map[string]any{"title": "Shop", "agent_message": "A plan."})
	require.Equal(t, `time chat message agent turn next text
TIME c m1 Interviewer - user What shall I build? A shop?
TIME c m2 user - Interviewer A shop.
TIME c m3 Interviewer - Architect (hidden) NEXT
TIME c m4 Architect m4 - A plan.
`, regexp.MustCompile(`m4 Architect m4 \w+`).ReplaceAllString(normal(ok(t, v.Server, "ls", "--messages")), "m4 Architect m4 -"))
	l := decode[messageList](t, v.Server, "ls", "--messages", "--limit", "2", "--chat", "c")
	require.True(t, l.More)
	require.Equal(t, []string{"m3", "m4"}, []string{l.Messages[0].ID, l.Messages[1].ID})
	require.Len(t, decode[listing](t, v.Server, "ls").Turns, 1, "messages are not turns")
	require.Contains(t, ok(t, v.Server, "ls", "--messages", "--chat", "other"), "no message in the last ")
	code, _, stderr := turnctl(t, v.Server, "ls", "--messages", "--open")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "mutually exclusive")
}

func TestShowPrintsAChat(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "NEXT")
	v.publish("m2", "Architect", map[string]any{"title": "Shop"})
	text := normal(ok(t, v.Server, "show", "c"))
	require.Contains(t, text, "chat c, app default\n\ntime what id of state next text\nTIME message m1 Interviewer - Architect (hidden) NEXT\nTIME message m2 Architect - ")
	require.Contains(t, text, "\nTIME turn m2 Interviews/draw ok - N ms\n")
	require.Regexp(t, `\n variable record value\n done 1 true\n drawn \d+ 1\n`, text)
	require.Contains(t, text, "\nArchitect spoke last\n")
	l := decode[chatReport](t, v.Server, "show", "c")
	require.Len(t, l.Entries, 3)
	require.Equal(t, "Architect", l.Speaker)
	code, _, stderr := turnctl(t, v.Server, "show", "other")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "no turn, message or context variable of chat")
	code, _, stderr = turnctl(t, v.Server, "show", "c", "m9", "--message")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "turnctl ls --messages")
}

func TestShowPrintsWhyTheChangesOfAMessageAreLeftOut(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	full := map[string]any{}
	for i := range 4096 {
		full[strconv.Itoa(i)] = map[string]any{"value": 1, "written": 1}
	}
	body, err := json.Marshal(full)
	require.NoError(t, err)
	_, err = v.Connect().Request("$KV.ONETURN_CONTEXT."+subjects.ContextKey(events.DefaultApp, "c"), body, 5*time.Second)
	require.NoError(t, err)
	v.publish("m1", "Interviewer", "NEXT")
	require.Contains(t, strings.Join(strings.Fields(ok(t, v.Server, "show", "c", "m1")), " "), "done true none: left out, ")
	require.Contains(t, decode[onlyMessage](t, v.Server, "show", "c", "m1").Message.Refused, "4096")
	e := decode[explanation](t, v.Server, "handoff", "explain", "c", "m1", "--workflows", v.workflows)
	require.Contains(t, e.Notes[0], "no rule was tried: ")
}

func TestShowPrintsTheCorrectionsOfAMessage(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Drafter", `{"name": "Shop"}`)
	text := ok(t, v.Server, "show", "c", "m1")
	require.Equal(t, " turn corrects tool state took\n m1 - draft validation_failed N ms\n m1~1 m1 draft ok N ms", lines(text, "turns:"))
	require.Contains(t, lines(text, "models:"), "\n c1 correction 1 agent:fixer ok")
	corrected := decode[turnReport](t, v.Server, "show", "c", "m1~1")
	require.Equal(t, []string{"m1", "m1"}, []string{corrected.CorrectionOf, corrected.Message.ID})
	require.Equal(t, "user", *corrected.Message.Handoff.To)
}
