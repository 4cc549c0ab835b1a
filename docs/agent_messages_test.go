package docs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// eventRow is what the table of the page has of an event.
func eventRow(t *testing.T, body []byte) string {
	t.Helper()
	var e struct {
		Type string `json:"type"`
		Data struct {
			MessageID string `json:"message_id"`
			Turn      string `json:"turn"`
			Content   string `json:"content"`
			Hidden    bool   `json:"ui_hidden"`
			Variable  string `json:"variable"`
			Value     any    `json:"value"`
			To        string `json:"to"`
			Rule      int    `json:"rule"`
			Tool      string `json:"tool_name"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(body, &e))
	d, of, what := e.Data, e.Data.MessageID, e.Data.Content
	switch e.Type {
	case "chat." + events.KindText:
		if d.Hidden {
			what += ", `ui_hidden`"
		}
	case "chat." + events.KindContextUpdate:
		what = fmt.Sprintf("%s = %v", d.Variable, d.Value)
	case "chat." + events.KindHandoff:
		what = fmt.Sprintf("to %s, rule %d", d.To, d.Rule)
	case "chat." + events.KindToolCall:
		of, what = d.Turn, d.Tool
	case "chat." + events.KindToolResponse:
		of = d.Turn
	}
	return fmt.Sprintf("| `%s` | %s | %s |", e.Type, of, what)
}

func TestMessagesOfThePageBecomeTheEventsThatItShows(t *testing.T) {
	t.Parallel()
	const page = "agent-messages.md"
	s := oneturntest.NewServer(t)
	serveOn(t, s, oneturn.Config{Workflows: folderOf(t, page)})
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	live, err := nc.SubscribeSync(space.EventsOfChat("default", "shop"))
	require.NoError(t, err)

	var rows []string
	for line := range strings.Lines(fenced(t, page, "jsonl")[0].text) {
		var m struct {
			Kind string `json:"kind"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		_, err := js.Publish(t.Context(), space.In("default", m.Kind, "default", "Interviews", "shop"), []byte(line))
		require.NoError(t, err)
		for handedOff := false; !handedOff; {
			event, err := live.NextMsg(20 * time.Second)
			require.NoError(t, err, "the handoff of %s", line)
			rows = append(rows, eventRow(t, event.Data))
			handedOff = strings.Contains(rows[len(rows)-1], events.KindHandoff)
		}
	}
	_, shown, ok := strings.Cut(text(t, page), "| event | of | |\n|---|---|---|\n")
	require.True(t, ok)
	shown, _, _ = strings.Cut(shown, "\n\n")
	require.Equal(t, shown, strings.Join(rows, "\n"))
}
