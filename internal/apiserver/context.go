package apiserver

// The verb context: the document of a chat, read from the leader, over the start values of its workflow. What is not merged yet
// is read as if it were; nothing is written.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// decidedMessages is how many messages a reply has at most.
const decidedMessages = 16

// errContextCorrupt is the error of a document that cannot be decoded. The details are in the log of the worker.
var errContextCorrupt = errors.New("state_corrupt: the stored context variables of the chat cannot be read: see the log of the worker")

// context reads the context variables of a chat.
func (s *Server) context(ctx context.Context, app string, body []byte) (any, error) {
	var q api.ContextRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","workflow_name":"…"?}`, errBadRequest)
	}
	facts, err := s.Reader.ChatFacts(ctx, app, q.Chat)
	if err != nil {
		return nil, err
	}
	workflow := cmp.Or(q.Workflow, facts.Workflow)
	set := s.Bindings()
	start := set.StartValues(workflow, &bindings.Chat{App: facts.App, ID: q.Chat, Workflow: workflow, User: facts.User})
	state, err := s.Variables.State(ctx, app, q.Chat, start)
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		s.Logger.Error("context variables cannot be read", "app", app, "chat", events.Clip(q.Chat), "err", events.LogText(err))
		return nil, errContextCorrupt
	case err != nil:
		return nil, err
	}
	reply := &api.Context{
		Chat: q.Chat, Workflow: workflow, Revision: state.Revision, Variables: map[string]json.RawMessage{}, Set: state.Written,
		LastSpeaker: state.Speaker, Run: state.Run, TurnSequence: state.Sequence, Messages: decidedIn(state),
	}
	for _, v := range set.Variables(workflow) {
		if _, stored := state.Written[v.Name]; !stored && v.Private() {
			delete(state.Values, v.Name)
			reply.Private = append(reply.Private, v.Name)
		}
	}
	slices.Sort(reply.Private)
	return reply, s.fit(reply, state.Values)
}

// decidedIn returns the newest messages of a chat.
func decidedIn(state *variables.State) []api.DecidedMessage {
	newest := state.Decided[max(0, len(state.Decided)-decidedMessages):]
	list := make([]api.DecidedMessage, 0, len(newest))
	for _, d := range newest {
		m := api.DecidedMessage{Sequence: d.Seq, OutOfOrder: d.OutOfOrder, Refused: d.Refused, Changed: d.Changed(), Handoff: d.Handoff}
		if run, id, ok := subjects.ParseMessageToken(d.Message); ok {
			m.ID, m.Run = id, run
		}
		list = append(list, m)
	}
	return list
}

// fit adds values to a reply, the smallest first, as far as there is room.
func (s *Server) fit(reply *api.Context, values map[string]any) error {
	texts := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		text, err := events.AppendJSON(nil, value)
		if err != nil {
			return fmt.Errorf("context variable %.80q: %w", name, err)
		}
		texts[name] = text
	}
	names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(texts[a]), len(texts[b])), cmp.Compare(a, b))
	})
	room := s.most - len(encode(reply))
	for _, name := range names {
		const marks = 16 // quotes, colon, comma and, of an omitted one, its size
		size := len(texts[name])
		if needs := len(encode(name)) + size + marks; needs <= room {
			room -= needs
			reply.Variables[name] = texts[name]
			continue
		}
		if reply.Omitted == nil {
			reply.Omitted = map[string]int{}
		}
		reply.Omitted[name] = size
		room -= len(encode(name)) + marks
	}
	return nil
}
