package display_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
)

// The runs of a chat apply the same decoded events at the same time: each client gets what it would get alone.
func TestChatsThatShareEventsDisplayWhatTheirClientsNeed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := random(rt)
		h.call("p", nil)
		for percent := range 3 {
			h.add(events.KindToolProgress, &events.ToolProgress{ToolCallID: "p", Corr: "p", ProgressPercent: events.Percent(float64(percent)), StatusMessage: "works"})
		}
		h.respond("p", false)
		h.add(events.KindStructuredOutput, map[string]any{"message_id": "m", "agent": "A", "success": true, "payload": map[string]any{"a": "b"}})
		h.requireShared()
	})
}

func TestChatWithoutRoomForArgumentsSharesTheEventAllTheSame(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.call("t/1", func(e *events.ToolCall) {
		e.InteractionType, e.AwaitingResponse, e.Answer = events.InteractionUITool, true, &events.AnswerTo{}
		e.Payload = events.ToolCallPayload{Shown: map[string]any{"text": strings.Repeat("x", display.MaxBytes)}}
	})
	h.requireShared()
	require.Contains(t, strings.Join(rendered(&display.View{}, h.decoded()), "\n"), "$omitted")
}

// requireShared checks that clients whose chats share the events get what they get from chats that do not.
func (h *history) requireShared() {
	shared, views := h.decoded(), h.views()
	together := make([][]string, len(views))
	var running sync.WaitGroup
	for i, view := range views {
		running.Go(func() { together[i] = rendered(view, shared) })
	}
	running.Wait()
	for i, view := range h.views() {
		require.Equal(h.tb, rendered(view, h.decoded()), together[i], "client %d", i)
	}
}

func (h *history) decoded() (all []*display.Event) {
	for _, data := range h.events {
		e, err := display.Decode(data)
		require.NoError(h.tb, err)
		all = append(all, e)
	}
	return all
}

// views are the clients of a chat: one without anything, one that has tools, and one that has sent messages and answers.
func (h *history) views() []*display.View {
	known, answers := map[string]bool{}, map[string]agui.Message{}
	for i := range len(h.events) {
		known[fmt.Sprintf("x%d", i)] = true
	}
	for id := range h.calls {
		answers[id] = agui.ToolMessage("own_"+id, id, "{}")
	}
	return []*display.View{{}, {Tools: map[string]bool{"Form": true}}, {Known: known, Answers: answers}}
}

// rendered is what a client gets, as JSON.
func rendered(view *display.View, all []*display.Event) (out []string) {
	chat := display.New()
	for i, e := range all {
		for _, sent := range view.Render(chat, chat.Apply(uint64(i+1), e)) {
			data, err := sent.MarshalJSON()
			if err != nil {
				data = []byte(err.Error())
			}
			out = append(out, string(data))
		}
	}
	return out
}
