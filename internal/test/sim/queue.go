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

// The inbound stream and its consumer as JetStream has them: messages, deliveries, leases, settling. plan draws what
// the publisher sends.

const (
	stream = "ONETURN_IN"
	app    = "app"
	// replyPrefix and the sequence of an answer are where its result goes.
	replyPrefix = "_INBOX.sim."
	chat        = "chat"
)

// turn is one turn that the publisher wants.
type turn struct {
	id           events.TurnID
	key          subjects.Key
	agent        string
	model        string  // its agent has a tool for each
	pool         string  // whose workers run it
	script       *script // what its tool asks, nil when it asks nothing
	program      *program
	calls        []*call      // of its program and those nested in it
	purged       bool         // one of its messages vanished
	by           *chatMessage // that makes it, nil for a turn that is published as such
	absent       bool         // it stands for a message that makes none, and has no records
	left         bool         // its tool has continued without an answer
	sawStaleRead int          // reads of it that gave the journal as it was before
	// from and until are how many records the journal had before the generation of the turn, and at its end;
	// 0 for the end stands for later.
	from, until uint64
}

// message is one message of the work queue. As in JetStream, an acknowledgement settles it
// whichever delivery it is for, and a nak requeues it even when another worker holds it.
type message struct {
	w           *world
	turn        *turn
	pool        string
	kind        string
	data        int // which of the turn's data it carries
	fingerprint string
	subject     string
	header      nats.Header
	body        []byte
	age         time.Duration // how old it is when it is published
	answer      *answer       // of answers and expiries
	chat        *chatMessage  // of messages of agents and users, and of resumes of them
	sent        *events.AgentMessage
	content     string // fingerprint of the content of a message of an agent or a user

	seq            uint64
	stored         time.Time
	first          time.Time // when it was stored before it was deferred
	delivered      uint64
	last           idempotency.Lease // its newest delivery, as it was received
	leased         bool
	touched        time.Time // when it was delivered, or kept in progress
	holder         *thread   // the delivery that keeps it in progress, nil for none
	ready          time.Time // not delivered before
	settled        bool
	purged         bool // it vanished without being settled
	deferred       bool // it comes again as another one
	late           bool // what settled it was meant for an earlier delivery
	refusedForRoom bool // it is a dead letter because it could neither be claimed nor wait while the store was nearly full
	copies         []*message
	reported       bool      // the sender of the answer has its result
	sweep          *sweeping // that published it, if it was one
}

func (m *message) String() string { return fmt.Sprintf("#%d/%d", m.seq, m.delivered) }

// plan draws the turns and what the publisher sends for them: each once, sometimes again
// under another sequence, sometimes with other data, sometimes a cancel.
func (w *world) plan() {
	all := effects()
	n := 1 + w.rng.IntN(3)
	if isConversation(w.seed) {
		n = min(n, 2)
		w.planMessages()
	}
	for i := range n {
		id := events.TurnID{App: app, Chat: chat, Turn: "t" + strconv.Itoa(i+1)}
		t := &turn{id: id, key: subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn), agent: string(all[w.rng.IntN(len(all))])}
		t.model, t.pool = models()[w.rng.IntN(len(models()))], w.pools[w.rng.IntN(len(w.pools))]
		if t.script = w.newScript(); t.script != nil && w.chance(1, 3) {
			t.agent = string(bindings.EffectReplay) // the usual one of tools that ask, and the hardest
		}
		if t.program = w.newProgram(); t.program != nil {
			t.agent, t.model, t.script, t.calls = t.program.kind, "", nil, t.program.all()
		}
		w.turns = append(w.turns, t)
		w.want(t)
	}
}

// want draws what the publisher sends for a turn.
func (w *world) want(t *turn) {
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
	for w.chance(1, 6) { // any client may send a resume, sweeps do
		w.unsent = append(w.unsent, w.newResumeMessage(t))
	}
}

func (w *world) newTurnMessage(t *turn, data int, age time.Duration) *message {
	event := &events.StructuredOutputReady{
		TurnID: t.id, Workflow: workflow, Agent: t.agent, Model: t.model, AutoToolMode: true,
		Data: map[string]any{"v": json.Number(strconv.Itoa(data))},
	}
	if t.program != nil {
		event.Data = t.program.data(data)
	}
	body, err := events.EncodeTurn(event, w.now)
	if err != nil {
		panic(err) // our own event
	}
	fingerprint := events.Fingerprint(event)
	return &message{
		w: w, turn: t, pool: t.pool, kind: events.KindStructuredOutputReady, data: data, body: body, age: age,
		fingerprint: hex.EncodeToString(fingerprint[:]),
		subject:     w.sim.space.In(t.pool, events.KindStructuredOutputReady, app, workflow, chat),
		header:      nats.Header{nats.MsgIdHdr: {events.MsgID(events.KindStructuredOutputReady, t.id, fingerprint)}},
	}
}

func (w *world) newCancelMessage(t *turn) *message {
	body, err := events.EncodeCancel(&events.Cancel{TurnID: t.id, Workflow: workflow}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	pool := w.pools[w.rng.IntN(len(w.pools))] // any will do
	return &message{
		w: w, turn: t, pool: pool, kind: events.KindCancel, body: body,
		subject: w.sim.space.In(pool, events.KindCancel, app, workflow, chat),
	}
}

func (w *world) newResumeMessage(t *turn) *message {
	body, err := events.EncodeResume(&events.Resume{TurnID: t.id, Workflow: workflow}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	return &message{
		w: w, turn: t, pool: t.pool, kind: events.KindResume, body: body,
		subject: w.sim.space.In(t.pool, events.KindResume, app, workflow, chat),
	}
}

func (w *world) newAnswerMessage(t *turn, a *answer) *message {
	body, err := events.EncodeAnswer(&events.ToolCallResponse{
		TurnID: t.id, Workflow: workflow, ToolCallID: t.questionID(a.id), Value: strings.Trim(a.value, `"`),
	}, w.now)
	if err != nil {
		panic(err) // our own event
	}
	pool := t.pool
	if w.chance(1, 16) { // the sender does not read the event of the question
		pool = w.pools[w.rng.IntN(len(w.pools))]
	}
	return &message{
		w: w, turn: t, pool: pool, kind: events.KindToolCallResponse, answer: a, body: body,
		subject: w.sim.space.In(pool, events.KindToolCallResponse, app, workflow, chat),
		header:  nats.Header{},
	}
}

func (w *world) newExpiryMessage(t *turn, e *events.Expire) *message {
	body, err := events.EncodeExpire(e, w.now)
	if err != nil {
		panic(err) // our own event
	}
	return &message{
		w: w, turn: t, pool: t.pool, kind: events.KindExpire, answer: &answer{id: t.askOf(e), outcome: idempotency.Expired}, body: body,
		subject: w.sim.space.In(t.pool, events.KindExpire, app, workflow, chat),
	}
}

// publish stores one of the messages that have not been sent.
func (w *world) publish(o option) {
	m := w.unsent[o.i]
	w.unsent = append(w.unsent[:o.i], w.unsent[o.i+1:]...)
	w.enqueue(m)
}

// enqueue stores a message in the inbound stream.
func (w *world) enqueue(m *message) {
	w.queue = append(w.queue, m)
	m.seq, m.stored = uint64(len(w.queue)), w.now.Add(-m.age)
	if m.first.IsZero() {
		m.first = m.stored
	}
	if m.kind == events.KindToolCallResponse {
		m.header.Set(subjects.HeaderReply, replyPrefix+strconv.FormatUint(m.seq, 10))
	}
	if m.kind == events.KindCancel {
		w.announce(func(p *process) { p.handlers.HandleCancelCopy(m.subject, m.body) })
	}
	w.tracef("published #%d: %s of %s (%s), data %d", m.seq, m.kind, m.turn.id.Turn, m.turn.agent, m.data)
}

func (m *message) lease() idempotency.Lease {
	return idempotency.Lease{Stream: stream, Seq: m.seq, Delivery: m.delivered}
}

// lapse ends the lease, a while after the ack wait: the message will be delivered again.
func (m *message) lapse() {
	m.w.pass(max(0, m.touched.Add(m.w.ackWait).Sub(m.w.now)) + time.Duration(1+m.w.rng.Int64N(int64(usualAckWait))))
	if !m.lapsed() {
		m.w.poll() // its worker continues in time: what waits in memory looks again meanwhile
		return
	}
	m.w.tracef("the lease of %s lapses", m)
	if t := m.holder; t != nil && t.p.beats() && !t.p.cut && !t.overdue() && m.w.patience() == m.w.ackWait {
		m.w.violatef("%s: the lease of %s lapses, though %s is well", m.turn.id.Turn, m, t.p.name)
	}
	m.release()
}

// lapsed reports whether an ack wait has passed since the message was delivered, or kept in progress.
func (m *message) lapsed() bool { return m.leased && m.w.now.Sub(m.touched) > m.w.ackWait }

// lost ends the lease of a message whose heartbeats do not arrive, though its worker is well.
func (m *message) lost() {
	m.w.tracef("no heartbeats of %s arrive", m)
	m.w.pass(time.Duration(1 + m.w.rng.Int64N(int64(usualAckWait))))
	if m.leased {
		m.release()
	}
}

func (m *message) release() {
	m.w.hit(m.last)
	if m.holder != nil {
		m.w.hit(m.holder.lease)
		m.holder.lapsed = true
	}
	m.leased, m.holder = false, nil
}

// ack settles the message at the server. The worker decided so when the journal had that many
// records.
func (m *message) ack(by *thread, known int) {
	if !m.settled {
		m.w.checkDeferred(m, by)
		m.late = by.lease != m.last || m.holder != nil && m.holder != by // the server may have forgotten a number
		if m.late && !m.deferred {                                       // it comes a whole ack wait late, and takes the message from its next owner
			m.w.hit(m.last)
			if m.holder != nil && m.holder != by {
				m.w.hit(m.holder.lease)
			}
		}
		m.settled, m.leased, m.holder = true, false, nil
		m.w.checkSettled(m, by, known)
	}
}

// purge removes the message, as an operator or a lost disk can.
func (m *message) purge() {
	m.w.pass(2 * usualAckWait) // so that a sweep does not find its turn too young
	m.w.tracef("%s vanishes", m)
	if m.chat != nil {
		m.chat.purged = true
	}
	for _, t := range m.turnsOf() {
		t.purged = true
	}
	m.release()
	m.settled, m.purged = true, true
}

// nak requeues the message after the delay, whichever worker holds it. By is the delivery that sent it, late
// when it was lost by then: another delivery may not count that as a fault.
func (m *message) nak(by *thread, late bool, delay time.Duration) {
	if !m.settled && m.leased {
		if m.holder != nil {
			m.holder.lapsed = true
		}
		switch {
		case m.holder == by:
		case !late:
			m.w.hit(m.last)
		case m.holder != nil:
			m.w.violatef("%s: a delivery that %s had lost gives %s back, which %s holds", m.turn.id.Turn, by.p.name, m, m.holder.p.name)
		}
		m.leased, m.holder = false, nil
		m.ready = m.w.now.Add(delay)
	}
}

// anyLeased returns one of the messages that workers hold, or nil. Half of the time it is one of a turn
// that is about to be claimed, or that is deferred and about to be acknowledged, if there is one.
func (w *world) anyLeased() *message {
	var leased, unclaimed []*message
	for _, m := range w.queue {
		if !m.leased {
			continue
		}
		leased = append(leased, m)
		if m.deferred || m.kind == events.KindStructuredOutputReady && w.store.keys[m.turn.key.Public(events.KindToolCall)] == 0 {
			unclaimed = append(unclaimed, m)
		}
	}
	if len(unclaimed) > 0 && w.chance(1, 2) {
		leased = unclaimed
	}
	if len(leased) == 0 {
		return nil
	}
	return leased[w.rng.IntN(len(leased))]
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
