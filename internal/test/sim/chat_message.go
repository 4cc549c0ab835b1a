package sim

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Messages of agents and users: what the publisher sends, and what the sender of each wants. Some make a turn, which is one of the
// turns of the world like any other.

// conversations is how many schedules there are for one in which agents and users send messages.
const conversations = 4

// chatMessage is a message of an agent or a user.
type chatMessage struct {
	event        events.AgentMessage
	key          subjects.Key
	turn         *turn   // that it makes; of one that makes none a turn that has no records
	turns        []*turn // this one first, and the turns of its corrections
	purged       bool    // its inbound message vanished
	sawStaleRead int     // reads of it that gave the journal as it was before
}

// isConversation reports whether agents and users send messages in the schedule of a seed. It draws nothing from the random source
// of the schedule, so that the other schedules are what they are without messages.
func isConversation(seed uint64) bool {
	return rand.New(rand.NewPCG(seed, 0x6d65737361676573)).IntN(conversations) == 0
}

// planMessages draws the messages of a conversation, and what else is sent about them.
func (w *world) planMessages() {
	for i := range 1 + w.rng.IntN(4) {
		c := w.newChatMessage(i)
		w.conversation = append(w.conversation, c)
		w.unsent = append(w.unsent, w.newMessageOf(c, c.event.Content, 1))
		for w.chance(1, 3) {
			w.unsent = append(w.unsent, w.newMessageOf(c, c.event.Content, 1))
		}
		if w.chance(1, 6) {
			w.unsent = append(w.unsent, w.newMessageOf(c, `{"v": 2}`, 2))
		}
		for w.chance(1, 6) {
			w.unsent = append(w.unsent, w.newResumeOf(c))
		}
		if t := c.turn; t.by != nil {
			w.turns = append(w.turns, t)
			w.wantAround(t)
			if w.chance(1, 12) { // its producer has used the key of its correction
				w.turns = append(w.turns, c.turns[1])
				w.unsent = append(w.unsent, w.newTurnMessage(c.turns[1], 1, 0))
			}
		}
	}
}

// wantAround draws what is sent about the turn of a message by others: the same turn as an event, other data, a cancel, resumes.
func (w *world) wantAround(t *turn) {
	if w.chance(1, 6) {
		w.unsent = append(w.unsent, w.newTurnMessage(t, 1, 0))
	}
	if w.chance(1, 10) {
		w.unsent = append(w.unsent, w.newTurnMessage(t, 2, 0))
	}
	if w.chance(1, 6) {
		w.unsent = append(w.unsent, w.newCancelMessage(t))
	}
	w.planAnswers(t)
	for w.chance(1, 8) {
		w.unsent = append(w.unsent, w.newResumeMessage(t))
	}
}

// newChatMessage draws a message.
func (w *world) newChatMessage(i int) *chatMessage {
	c := &chatMessage{event: events.AgentMessage{
		TurnID: events.TurnID{App: app, Chat: chat}, ID: "m" + strconv.Itoa(i+1), Workflow: workflow,
	}}
	c.event.Turn = c.event.ID
	if w.chance(1, 2) {
		c.event.TurnSequence = int64(i + 1)
	}
	if w.chance(1, 8) {
		c.event.Run = "again"
	}
	texts := []string{token, token, "What shall I build?"}
	switch w.rng.IntN(6) {
	case 0, 1:
		c.event.Agent = talker
	case 2:
		c.event.Agent, c.event.User = events.AgentUser, true
	case 3:
		c.event.Agent, texts = critic, outputs()
	default:
		c.event.Agent, texts = builder(effects()[w.rng.IntN(len(effects()))]), outputs()
	}
	c.event.Content = texts[w.rng.IntN(len(texts))]
	c.key = subjects.MessageKey(app, chat, c.event.Run, c.event.ID)
	c.turn = &turn{id: c.event.TurnID, key: c.key, agent: c.event.Agent, model: buildModel, pool: w.pools[w.rng.IntN(len(w.pools))], absent: true}
	c.turns = []*turn{c.turn}
	if isBuilder(c.event.Agent) {
		c.turn.absent, c.turn.by = false, c
		c.turn.key = subjects.TurnKey(app, chat, c.event.Run, c.event.Turn)
		c.turn.script = w.newScript()
		w.newCorrections(c)
	}
	return c
}

// outputs are what agents write that have a model.
func outputs() []string {
	return []string{
		`{"v": 1}`, `{"v": 1} ` + token, "Here it is: {'v': 1,}", `{"v": 1`, `{"v": "x"}`, `{"w": 1}`, token, "I would rather talk.",
	}
}

// newMessageOf is an inbound message with some content under the id of a message.
func (w *world) newMessageOf(c *chatMessage, content any, data int) *message {
	e := c.event
	e.Content = content
	body, err := events.EncodeMessage(&e, w.now)
	if err != nil {
		panic(err) // our own event
	}
	sum, err := e.Fingerprint()
	if err != nil {
		panic(err) // likewise
	}
	return &message{
		w: w, turn: c.turn, chat: c, content: hex.EncodeToString(sum[:]), sent: &e, pool: c.turn.pool, kind: e.InboundKind(), data: data, body: body,
		subject: w.sim.space.In(c.turn.pool, e.InboundKind(), app, workflow, chat), header: nats.Header{},
	}
}

// newResumeOf is a resume of a message.
func (w *world) newResumeOf(c *chatMessage) *message {
	body, err := events.EncodeResume(&events.Resume{
		TurnID: events.TurnID{App: app, Chat: chat, Run: c.event.Run}, Workflow: workflow, Key: c.key.String(), Message: true,
	}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	return &message{
		w: w, turn: c.turn, chat: c, pool: c.turn.pool, kind: events.KindResume, body: body,
		subject: w.sim.space.In(c.turn.pool, events.KindResume, app, workflow, chat),
	}
}

// chatMessageOf returns the message with a journal key, nil if there is none.
func (w *world) chatMessageOf(key string) *chatMessage {
	for _, c := range w.conversation {
		if c.key.String() == key {
			return c
		}
	}
	return nil
}

// judge is what the decider of handoffs does.
func (l tool) judge() (json.RawMessage, error) {
	for range l.w.rng.IntN(3) {
		l.w.active.yield("in the decider")
	}
	l.w.judged++
	if l.w.chance(1, 8) {
		return nil, errNo
	}
	return json.RawMessage([]string{`{"holds":true}`, `{"holds":false}`, `"perhaps"`}[l.w.rng.IntN(3)]), nil
}
