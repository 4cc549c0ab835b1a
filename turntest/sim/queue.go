package sim

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

const (
	stream = "ONETURN_IN"
	app    = "app"
	chat   = "chat"
)

// turn is one turn that the publisher wants.
type turn struct {
	id     events.TurnID
	key    subjects.Key
	agent  string
	script *script // what its tool asks, nil when it asks nothing
	purged bool    // one of its messages vanished
}

// message is one message of the work queue. As in JetStream, an acknowledgement settles it
// whichever delivery it is for, and a nak gives it back even when somebody else holds it.
type message struct {
	w           *world
	turn        *turn
	kind        string
	data        int // which of the turn's data it carries
	fingerprint string
	subject     string
	header      nats.Header
	body        []byte
	age         time.Duration // how old it is when it is published
	answer      *answer       // of answers and expiries

	seq       uint64
	stored    time.Time
	delivered uint64
	leased    bool
	holder    *thread   // who keeps it in progress, nil when nobody does
	ready     time.Time // not delivered before
	settled   bool
	purged    bool // settled by nobody: it vanished
}

func (m *message) String() string { return fmt.Sprintf("#%d/%d", m.seq, m.delivered) }

// plan draws the turns and what the publisher sends for them: each once, sometimes again
// under another sequence, sometimes with other data, sometimes a cancel.
func (w *world) plan() {
	all := effects()
	for i := range 1 + w.rng.IntN(3) {
		id := events.TurnID{App: app, Chat: chat, Turn: "t" + strconv.Itoa(i+1)}
		t := &turn{id: id, key: subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn), agent: string(all[w.rng.IntN(len(all))])}
		if t.script = w.newScript(); t.script != nil && w.chance(1, 3) {
			t.agent = string(bindings.EffectReplay) // the usual one of tools that ask, and the hardest
		}
		w.turns = append(w.turns, t)
		var age time.Duration
		if w.chance(1, 12) { // at the limit, where clocks that differ disagree
			age = maxEventAge + time.Duration(w.rng.IntN(20)-10)*time.Second
		}
		w.unsent = append(w.unsent, w.newTurnMessage(t, 1, age))
		for range w.rng.IntN(5) - 2 {
			w.unsent = append(w.unsent, w.newTurnMessage(t, 1, age))
		}
		if w.chance(1, 6) {
			w.unsent = append(w.unsent, w.newTurnMessage(t, 2, age))
		}
		if w.chance(1, 4) {
			w.unsent = append(w.unsent, w.newCancelMessage(t))
		}
		w.planAnswers(t)
		for w.chance(1, 6) { // anybody may ask for a resume, sweeps do
			w.unsent = append(w.unsent, w.newResumeMessage(t))
		}
	}
}

func (w *world) newTurnMessage(t *turn, data int, age time.Duration) *message {
	event := &events.StructuredOutputReady{
		TurnID: t.id, Workflow: workflow, Agent: t.agent, Model: "Model", AutoToolMode: true,
		Data: map[string]any{"v": json.Number(strconv.Itoa(data))},
	}
	body, err := events.EncodeTurn(event, w.now)
	if err != nil {
		panic(err) // our own event
	}
	fingerprint := events.Fingerprint(event)
	return &message{
		w: w, turn: t, kind: events.KindStructuredOutputReady, data: data, body: body, age: age,
		fingerprint: hex.EncodeToString(fingerprint[:]),
		subject:     w.sim.space.In("default", events.KindStructuredOutputReady, app, workflow, chat),
		header:      nats.Header{nats.MsgIdHdr: {events.MsgID(events.KindStructuredOutputReady, t.id, fingerprint)}},
	}
}

func (w *world) newCancelMessage(t *turn) *message {
	body, err := events.EncodeCancel(&events.Cancel{TurnID: t.id, Workflow: workflow}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	return &message{
		w: w, turn: t, kind: events.KindCancel, body: body,
		subject: w.sim.space.In("default", events.KindCancel, app, workflow, chat),
	}
}

func (w *world) newResumeMessage(t *turn) *message {
	body, err := events.EncodeResume(&events.Resume{TurnID: t.id, Workflow: workflow}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	return &message{
		w: w, turn: t, kind: events.KindResume, body: body,
		subject: w.sim.space.In("default", events.KindResume, app, workflow, chat),
	}
}

// publish stores one of the messages that have not been sent.
func (w *world) publish(o option) {
	m := w.unsent[o.i]
	w.unsent = append(w.unsent[:o.i], w.unsent[o.i+1:]...)
	w.queue = append(w.queue, m)
	m.seq, m.stored = uint64(len(w.queue)), w.now.Add(-m.age)
	w.tracef("published #%d: %s of %s (%s), data %d", m.seq, m.kind, m.turn.id.Turn, m.turn.agent, m.data)
}

func (m *message) lease() idempotency.Lease {
	return idempotency.Lease{Stream: stream, Seq: m.seq, Delivery: m.delivered}
}

// lapse ends the lease: the message will be delivered again.
func (m *message) lapse() {
	m.w.tracef("the lease of %s lapses", m)
	m.w.now = m.w.now.Add(time.Duration(m.w.rng.Int64N(int64(ackWait))))
	m.release()
}

func (m *message) release() {
	m.w.hit(m.lease())
	if m.holder != nil {
		m.w.hit(m.holder.lease)
		m.holder.lapsed = true
	}
	m.leased, m.holder = false, nil
}

// ack settles the message at the server. The worker decided so when the journal had that many
// records.
func (m *message) ack(known int) {
	if !m.settled {
		m.settled, m.leased, m.holder = true, false, nil
		m.w.checkSettled(m, known)
	}
}

// purge removes the message, as an operator or a lost disk can.
func (m *message) purge() {
	m.w.tracef("%s vanishes", m)
	m.turn.purged = true
	m.release()
	m.settled, m.purged = true, true
}

// nak gives the message back after the delay.
func (m *message) nak(delay time.Duration) {
	if !m.settled && m.leased {
		m.release()
		m.ready = m.w.now.Add(delay)
	}
}

// anyLeased returns one of the messages that workers hold, or nil.
func (w *world) anyLeased() *message {
	if len(w.queue) == 0 {
		return nil
	}
	if m := w.queue[w.rng.IntN(len(w.queue))]; m.leased {
		return m
	}
	return nil
}

// leftovers names what is in the queue.
func (w *world) leftovers() string {
	var names []string
	for _, m := range w.queue {
		if !m.settled {
			names = append(names, m.String())
		}
	}
	return strings.Join(names, " ")
}
