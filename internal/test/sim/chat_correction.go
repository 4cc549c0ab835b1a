package sim

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Corrections: the model that is asked when the output of an agent cannot be used, and the turns that its replies make.

const (
	corrector     = "corrector"
	correctorTool = "agent:" + corrector
)

// mostCorrections is how often the manifest that allows the most has an output corrected.
const mostCorrections = 3

// asked is a call of the model in the ledger, which no fault can touch.
type asked struct {
	c     *chatMessage
	n     int // which correction of the message it is
	by    *thread
	reply *reply // nil until the model has replied
}

// reply is what the model replies, and what is in it.
type reply struct {
	result  json.RawMessage
	content any // a text, or a value tree
	usage   tools.Usage
	fails   bool // it is none, but an error
	object  bool // it has an object
	final   bool // it was cut off
}

// newCorrections makes the turns that corrections of a message may make. They have no records until one is claimed.
func (w *world) newCorrections(c *chatMessage) {
	for n := range mostCorrections {
		t := *c.turn
		t.id.Turn += "~" + strconv.Itoa(n+1)
		t.key = subjects.TurnKey(app, chat, t.id.Run, t.id.Turn)
		if t.script != nil {
			t.script = w.newScript()
		}
		c.turns = append(c.turns, &t)
	}
}

// appears is called when a turn is claimed for a message. It draws what is sent about the turn of a correction.
func (w *world) appears(key subjects.Key) {
	for _, c := range w.conversation {
		for _, t := range c.turns {
			if t.key == key && w.turnOf(t.id.Turn) == nil {
				w.turns = append(w.turns, t)
				w.wantAround(t)
			}
		}
	}
}

// turnsOf are the turns that an inbound message may hold: the one that it is about, and if a message of an agent makes that, also the turns
// of its corrections.
func (m *message) turnsOf() []*turn {
	if m.turn.by == nil {
		return []*turn{m.turn}
	}
	return m.turn.by.turns
}

// correct is what the model does that corrects outputs.
func (l tool) correct(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
	w, x := l.w, l.w.active
	message, id, _ := strings.Cut(call.CallID, "#c")
	n, err := strconv.Atoi(id)
	c := w.chatMessageOf(subjects.MessageKey(app, chat, call.Turn.Run, message).String())
	if err != nil || c == nil {
		w.violatef("a model is asked for %s, which does not correct a message", call.CallID)
		return nil, errNo
	}
	a := &asked{c: c, n: n, by: x.t}
	w.checkAsking(a, call)
	w.models = append(w.models, a)
	w.tracef("  %s: the model is asked for correction %d of %s", x.p.name, n, message)
	for range w.rng.IntN(4) {
		x.yield("in the model")
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	a.reply = w.newReply(100 + len(w.models))
	w.tracef("  %s: the model replies %s", x.p.name, a.reply.result)
	if a.reply.fails {
		return nil, errNo
	}
	return a.reply.result, nil
}

// newReply draws a reply. V distinguishes its object from others.
func (w *world) newReply(v int) *reply {
	text := func(content, finish string) *reply {
		r := &reply{content: content, usage: tools.Usage{Prompt: v, Completion: 1}}
		r.result = mustJSON(tools.Completion{Content: content, FinishReason: finish, Usage: r.usage})
		return r
	}
	object := `{"v": ` + strconv.Itoa(v) + `}`
	switch w.rng.IntN(9) {
	case 0, 1:
		r := text("Better:\n"+object, "stop")
		r.object = true
		return r
	case 2: // a worker that has other manifests may accept no value, and one that is not a model reports no usage
		return &reply{result: json.RawMessage(object), content: map[string]any{"v": json.Number(strconv.Itoa(v))}, object: true}
	case 3, 4:
		r := text(`{"v": "x"}`, "stop")
		r.object = true
		return r
	case 5:
		return text("I cannot do that.", "stop")
	case 6:
		r := text(`{"v": 1`, "length")
		r.final = true
		return r
	case 7: // no object, and no text
		return &reply{result: json.RawMessage("7"), content: json.Number("7")}
	}
	if w.chance(1, 2) { // it cannot be read at all
		return &reply{result: json.RawMessage(`{"v": 1, "v": 2}`)}
	}
	return &reply{fails: true}
}

// replyTo returns the response to correction n of a message, nil if it is not stored, and what was read in it.
func (w *world) replyTo(c *chatMessage, n int) (*response, *events.Correction) {
	r := w.stored(c.key.WithCall("c" + strconv.Itoa(n)).Public(events.RecordResponse))
	if r == nil {
		return nil, nil
	}
	stored := w.response(r)
	if stored.Body.Code != "" {
		return &stored, nil
	}
	payload, err := events.Decode(stored.Body.Payload)
	read, errRead := events.ReadCorrection(payload)
	if err != nil || errRead != nil {
		w.violatef("%s: the reply to correction %d cannot be read", c.event.ID, n)
		return &stored, nil
	}
	return &stored, &read
}
