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

// This file requests messages and receives them. pull requests as many as there is room for (wanted); receive makes a
// Delivery of a message, or reads a status of the server (status); keepPulling repeats pulls that the server no longer
// knows.

// Timing of pulls: a pull lives for pullExpiry at the server, which sends a status at least every
// heartbeat while it has no message. A new leader of the consumer does not know the pulls of the one
// before, so the heartbeat decides how long turns wait after an election: two to three of them.
const (
	pullExpiry = 30 * time.Second
	heartbeat  = 2 * time.Second
)

type pullRequest struct {
	Batch     int           `json:"batch"`
	Expires   time.Duration `json:"expires"` // nanoseconds
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// pull requests as many messages as there is room for, if that is worth a request. With renew the server has
// forgotten all earlier requests. Nothing is requested while the connection is lost: the client would send the
// request first when it reconnects, and the messages would arrive before the server has answered a ping, and be
// taken for old ones.
func (in *Inbox) pull(renew bool) {
	if !in.link.IsConnected() || in.cut.Load() && !renew {
		return
	}
	in.mu.Lock()
	if renew {
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
		err = in.link.PublishRequest(in.nextMsg, in.inbox, body)
	}
	if err != nil {
		in.o.Logger.Debug("pull failed; it is retried", "err", err)
		in.expired(n)
	}
}

// wanted is the size of the next pull: the room for messages, once it is a quarter of the
// capacity or no other pull is open. in.mu is held.
func (in *Inbox) wanted() int {
	capacity := in.o.Slots
	if in.handlingTime.fast() {
		capacity *= 2
	}
	in.outstanding.expire(in.now())
	outstanding := in.outstanding.total()
	room := capacity - (len(in.held) - in.released - len(in.delayed)) - outstanding
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

// receive is called by the subscription for each message and status. It returns the delivery that it accepted, if
// any: it waits for a handler, or has one already.
func (in *Inbox) receive(m *nats.Msg) *Delivery {
	since := in.arrived.receive()
	// A status of the server has no reply subject. A message of the stream always has one, whatever
	// headers its producer has set.
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
	in.lastHeard.Store(int64(in.now()))
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
	refused, dropped := in.draining.Load(), false
	switch {
	case twice:
		held.again(m.Reply, since) // under mu: the lease that it renews may be about to expire
	case refused:
	case !in.queue.push(d): // a server that has not forgotten earlier pulls sends more than there is room for
		refused = true
	default:
		in.held[d.Seq] = d
		dropped = in.dispatch()
	}
	in.mu.Unlock()
	switch {
	case twice:
		d.cancel(nil)
		in.o.Logger.Debug("redelivered while it runs here; left alone", "seq", d.Seq)
		in.pull(false)
		return nil
	case refused:
		d.Nak(0)
		return nil
	case dropped:
		in.pull(false)
	}
	return d
}

// noResponders is the status of a request that no server answers.
const noResponders = "503"

// status handles a status that the server sends about a pull.
func (in *Inbox) status(code string, h nats.Header) {
	if code == noResponders {
		// The consumer has no leader now: one is being elected, or the consumer is gone. keepPulling
		// checks it and pulls again, as the server has not been heard.
		in.expired(1 << 30)
		return
	}
	if text := h.Get("Description"); code == "409" && (text == "Consumer Deleted" || text == "Consumer is push based") {
		select {
		case in.verify <- struct{}{}: // keepPulling asks the server: clients can forge a status
		default:
		}
		return
	}
	in.lastHeard.Store(int64(in.now()))
	if code == "100" { // heartbeat
		return
	}
	// The end of a pull has the number of messages that it did not deliver.
	if n, err := strconv.Atoi(h.Get("Nats-Pending-Messages")); err == nil {
		in.expired(n)
	}
	in.pull(false)
}

// settled forgets a message.
func (in *Inbox) settled(d *Delivery) {
	in.mu.Lock()
	if in.held[d.Seq] == d {
		in.handled(d)
		delete(in.held, d.Seq)
	}
	in.mu.Unlock()
	in.pull(false)
}

// handled records that a handler has settled its message. in.mu is held.
func (in *Inbox) handled(d *Delivery) {
	in.reacquire(d)
	if !d.wasReleased { // not how long answers and delays take
		in.handlingTime.add(in.now() - d.start)
	}
	d.wasReleased = true
}

// keepPulling keeps pulls open, and reads the configuration of the consumer again, until done.
func (in *Inbox) keepPulling(done <-chan struct{}, status <-chan nats.Status) {
	again := time.NewTicker(in.o.Reread)
	defer again.Stop()
	watch := time.NewTicker(heartbeat)
	defer watch.Stop()
	verify := in.verify // nil after a check, until the next watch: forged statuses cannot cause more checks
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
				in.lastHeard.Store(int64(in.now()))
				in.probe() // what is pulled now arrives after the answer
				in.cut.Store(false)
				in.pull(true)
				// The ack wait may have been lowered meanwhile: heartbeats would be late until the next reread.
				if err := in.check(context.Background()); err != nil {
					in.fail(err)
				}
			}
		case <-again.C:
			if err := in.check(context.Background()); err != nil {
				in.fail(err)
			}
		case <-verify:
			verify = nil
			if err := in.check(context.Background()); err != nil {
				in.fail(err)
				continue
			}
			if in.presence.MaybeGone() {
				continue // the next watch decides
			}
			in.o.Logger.Warn("a status reports that the consumer is gone, but the server does not confirm it: ignored", "consumer", in.o.Consumer)
		case <-watch.C:
			verify = in.verify
			if silent := in.now() - time.Duration(in.lastHeard.Load()); !in.presence.MaybeGone() && silent <= 2*heartbeat || in.draining.Load() {
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
