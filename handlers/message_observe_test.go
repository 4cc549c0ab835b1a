package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/metrics"
)

func TestMetricsCountMessagesAndWhatFollowsFromThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages [][2]string // agents and contents; their ids are a, b, …
		want     []string
	}{
		"text": {[][2]string{{"Interviewer", "What shall I build?"}}, []string{
			"handoffs_total decided WF", "message_seconds", "messages_total agent_message text WF",
		}},
		"token": {[][2]string{{"Interviewer", "NEXT"}}, []string{
			"handoffs_total decided WF", "message_seconds", "messages_hidden_total WF", "messages_total agent_message text WF", "variable_changes_total message WF",
		}},
		"turn": {[][2]string{{"Architect", `{"title":"Shop",}`}}, []string{
			"handoffs_total decided WF", "message_repairs_total trailing_comma WF", "message_seconds", "messages_total agent_message turn WF",
		}},
		"unreadable": {[][2]string{{"Architect", `{"title":"Sho`}}, []string{
			"handoffs_total decided WF", "message_seconds", "messages_hidden_total WF", "messages_total agent_message unreadable WF",
		}},
		"structured output": {[][2]string{{"Critic", `{"title":"Shop"}`}}, []string{
			"handoffs_total no_rule WF", "message_seconds", "messages_total agent_message structured_output WF",
		}},
		"user": {[][2]string{{events.AgentUser, "A shop."}}, []string{
			"handoffs_total no_rule WF", "message_seconds", "messages_total user_message text WF",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newMessageKit(t, withHandoffs(), nothing)
			for i, m := range c.messages {
				k.deliver(string(rune('a'+i)), m[0], m[1])
			}
			require.Equal(t, c.want, k.messageSeries())
		})
	}
}

// messageSeries are the names and labels of the metrics of messages.
func (k *messageKit) messageSeries() []string {
	return k.series("oneturn_message", "oneturn_handoffs", "oneturn_variable_changes")
}

func TestMetricsCountAMessageThatComesAgain(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	m := k.deliver("m1", "Interviewer", "NEXT")
	k.handled(again(m))
	k.deliver("m1", "Interviewer", "STOP")
	require.Equal(t, []string{
		"handoffs_total decided WF", "message_seconds", "messages_hidden_total WF", "messages_total agent_message conflict WF",
		"messages_total agent_message duplicate WF", "messages_total agent_message text WF", "variable_changes_total message WF",
	}, k.messageSeries())
}

func TestHandoffOutOfOrderCountsAsUndecided(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.deliver("m2", "Interviewer", "Continue.", numbered(2))
	k.deliver("m1", "Interviewer", "NEXT", numbered(1))
	require.Equal(t, []string{"handoffs_total decided WF", "handoffs_total undecided WF"}, k.series("oneturn_handoffs"))
}

func TestNoTextOfAMessageBecomesALabel(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	evil := func(e *events.AgentMessage) { e.Run, e.UserID, e.FinishReason = "evil", "evil", "evil" }
	k.deliver("evil", "evil", "evil {evil: evil}", evil)
	k.deliver("evil2", "Architect", `{"title": "evil", "evil": "evil"}`, evil)
	m := k.writes("evil3", "evil", "evil", func(e *events.AgentMessage) { e.Workflow = "evil" })
	m.Subject, m.Stored = k.space.In("default", events.KindAgentMessage, "app", "evil", "chat"), m.Stored.Add(-k.BindingGrace*2)
	k.handled(m)
	families, err := k.registry.Gather()
	require.NoError(t, err)
	names := []string{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				require.NotContains(t, label.GetValue(), "evil", family.GetName())
				names = append(names, label.GetValue())
			}
		}
	}
	require.Contains(t, names, metrics.Other, "the workflow of the message that no manifest has")
}
