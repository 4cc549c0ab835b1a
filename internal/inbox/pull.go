package inbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/throttle"
)

// Timing of pulls: a pull lives for pullExpiry at the server, which speaks up at least every
// heartbeat while it has nothing to send. A new leader of the consumer knows nothing of the
// pulls before it, so the heartbeat says how long turns wait after an election: two to three.
const (
	pullExpiry = 30 * time.Second
	heartbeat  = 2 * time.Second
)

type pullRequest struct {
	Batch     int           `json:"batch"`
	Expires   time.Duration `json:"expires"` // nanoseconds
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// pull asks for as many messages as there is room for, if that is worth a request. Anew says
// that the server has forgotten all earlier requests. Nothing is asked for while the connection is away:
// the client would send the request first of all when it is back, and the messages that it brings would
// arrive before the server has answered a ping, and be taken for old ones.
func (in *Inbox) pull(anew bool) {
	if !in.link.IsConnected() || in.cut.Load() && !anew {
		return
	}
	in.mu.Lock()
	if anew {
		in.outstanding = pulls{}
	}
	n := in.wanted()
	if in.draining.Load() || n <= 0 {
		in.mu.Unlock()
		return
	}
	in.outstanding.add(n, in.now())
	in.mu.Unlock()
	body, err := json.Marshal(pullRequest{n, pullExpiry, heartbeat})
	if err == nil {
		err = in.link.PublishRequest(in.next, in.inbox, body)
	}
	if err != nil {
		in.o.Logger.Debug("pull failed; it is tried again", "err", err)
		in.expired(n)
	}
}

// wanted is the size of the next pull: the room for messages, once it is a quarter of the
// whole or nothing else is on its way.
func (in *Inbox) wanted() int {
	capacity := in.o.Slots
	if in.pace.fast() {
		capacity *= 2
	}
	in.outstanding.lapse(in.now())
	outstanding := in.outstanding.total()
	room := capacity - (len(in.held) - in.away - len(in.resting)) - outstanding
	if room*4 < capacity && outstanding > 0 {
		return 0
	}
	return room
}

func (in *Inbox) expired(n int) {
	in.mu.Lock()
	in.outstanding.took(n)
	in.mu.Unlock()
}

// receive is called by the subscription for each message and status. It returns what waits for a
// handler now, if anything.
func (in *Inbox) receive(m *nats.Msg) *Delivery {
	since := in.arrived.receive()
	// The server's word has no reply subject. A message of the stream always has one, whatever
	// headers its producer wrote.
	if m.Reply == "" && len(m.Data) == 0 && m.Header != nil {
		if status := m.Header.Get("Status"); status != "" {
			in.status(status, m.Header)
			return nil
		}
	}
	meta, err := m.Metadata()
	if err != nil || meta.Stream != in.o.Stream || meta.Consumer != in.o.Consumer {
		in.lines.Log(context.Background(), in.o.Logger, time.Now(), "dropped", "", throttle.Several, slog.LevelWarn,
			"dropped: not a delivery of the consumer", "consumer", in.o.Consumer, "subject", m.Subject, "err", err)
		return nil
	}
	in.word.Store(int64(in.now()))
	d := &Delivery{
		Msg: m, Stream: meta.Stream, Seq: meta.Sequence.Stream, Delivered: meta.NumDelivered, Stored: meta.Timestamp,
		in: in, start: in.now(),
	}
	d.reply.Store(&m.Reply)
	d.own.Receive(since)
	d.held, d.cancel = context.WithCancelCause(context.Background())
	in.mu.Lock()
	in.outstanding.took(1)
	held, twice := in.held[d.Seq]
	refused := in.draining.Load()
	if !twice && !refused {
		select {
		case in.queue <- d:
			in.held[d.Seq] = d
		default: // a server that forgot no pull sends more than there is room for
			refused = true
		}
	}
	in.mu.Unlock()
	switch {
	case twice:
		d.cancel(nil)
		held.again(m.Reply, since)
		in.o.Logger.Debug("redelivered while it runs here; left alone", "seq", d.Seq)
		in.pull(false)
		return nil
	case refused:
		d.Nak(0)
		return nil
	}
	return d
}

// noResponders is the status of a request that nobody serves.
const noResponders = "503"

// status handles what the server says about a pull.
func (in *Inbox) status(code string, h nats.Header) {
	if code == noResponders {
		// Nobody serves the consumer now: a leader is being elected, or it is gone. That is
		// no word from it, so tend looks and tries again.
		in.expired(1 << 30)
		return
	}
	if text := h.Get("Description"); code == "409" && (text == "Consumer Deleted" || text == "Consumer is push based") {
		select {
		case in.doubt <- struct{}{}: // tend asks the server before it believes it
		default:
		}
		return
	}
	in.word.Store(int64(in.now()))
	if code == "100" { // heartbeat
		return
	}
	// A pull that ended says how much of it was not delivered.
	if n, err := strconv.Atoi(h.Get("Nats-Pending-Messages")); err == nil {
		in.expired(n)
	}
	in.pull(false)
}

// settled takes a message out of the books.
func (in *Inbox) settled(d *Delivery) {
	in.mu.Lock()
	if in.held[d.Seq] == d {
		in.handled(d)
		delete(in.held, d.Seq)
	}
	in.mu.Unlock()
	in.pull(false)
}

// handled notes that a handler has come to an end.
func (in *Inbox) handled(d *Delivery) {
	in.back(d)
	if !d.wasAway { // how long people take, or a message rests, says nothing about tools
		in.pace.note(in.now() - d.start)
	}
	d.wasAway = true
}

// tend keeps pulls alive, and knows the ack wait.
func (in *Inbox) tend(done <-chan struct{}, status <-chan nats.Status) {
	again := time.NewTicker(in.o.Reread)
	defer again.Stop()
	watch := time.NewTicker(heartbeat)
	defer watch.Stop()
	doubt := in.doubt // nil after a look, until the next watch: statuses cannot make it look all the time
	for {
		select {
		case <-done:
			return
		case s := <-status:
			switch s {
			case nats.RECONNECTING:
				in.cut.Store(true)
			case nats.CLOSED:
				in.fail(in.closed())
				status = nil
			default:
				in.word.Store(int64(in.now()))
				in.probe() // what is pulled now arrives after the answer
				in.cut.Store(false)
				in.pull(true)
			}
		case <-again.C:
			if err := in.check(context.Background()); err != nil {
				in.fail(err)
			}
		case <-doubt:
			doubt = nil
			if err := in.check(context.Background()); err != nil {
				in.fail(err)
				continue
			}
			if in.there.Suspect() {
				continue // the next watch decides
			}
			in.o.Logger.Warn("a status reports that the consumer is gone, but the server does not confirm it: ignored", "consumer", in.o.Consumer)
		case <-watch.C:
			doubt = in.doubt
			if silent := in.now() - time.Duration(in.word.Load()); !in.there.Suspect() && silent <= 2*heartbeat || in.draining.Load() {
				in.pull(false)
				continue
			}
			if err := in.check(context.Background()); err != nil {
				in.fail(err)
				continue
			}
			in.pull(true)
		}
	}
}
