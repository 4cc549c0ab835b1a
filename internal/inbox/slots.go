package inbox

// This file decides which delivery has a slot. Handlers run on demand: a goroutine begins with the delivery that finds a
// free slot, takes further ones while they wait, and ends. An idle inbox has none. All of it is guarded by Inbox.mu.
//
//	receive, Release, the end of a handler → dispatch → next → serve
//
// While a delivery waits in the queue, busy is at least Slots, or the inbox drains.

// maxReleased bounds how many deliveries may have released their slot at the same time.
const maxReleased = 1 << 16

// queue holds the deliveries that wait for a slot, in the order in which they arrived. It is a ring of fixed size.
type queue struct {
	ring     []*Delivery
	first, n int
}

// push appends a delivery, and reports false if the queue is full.
func (q *queue) push(d *Delivery) bool {
	if q.n == len(q.ring) {
		return false
	}
	q.ring[(q.first+q.n)%len(q.ring)] = d
	q.n++
	return true
}

// pop removes the oldest delivery; nil if there is none.
func (q *queue) pop() *Delivery {
	if q.n == 0 {
		return nil
	}
	d := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return d
}

// dispatch starts handlers for deliveries that wait, as long as slots are free. It reports whether it dropped a
// delivery: its room is free, so the caller pulls once it has unlocked mu.
func (in *Inbox) dispatch() (dropped bool) {
	if in.start == nil { // the caller of Steps starts them
		return false
	}
	for in.busy < in.o.Slots {
		d, lost := in.next()
		dropped = dropped || lost
		if d == nil {
			break
		}
		in.busy++
		in.start(d)
	}
	return dropped
}

// next returns the oldest delivery that waits, which has begun then, or nil, and reports whether it dropped others. It
// drops those whose lease is lost, and checks that itself: after a pause of the process a handler may run before
// expireLeases does. In a drain none begins: nakAll returns what waits to the server.
func (in *Inbox) next() (d *Delivery, dropped bool) {
	if in.draining.Load() {
		return nil, false
	}
	for d = in.queue.pop(); d != nil; d = in.queue.pop() {
		switch {
		case in.held[d.Seq] != d: // expired while it waited
		case d.own.Lost(in.now(), in.ackWait()):
			d.cancel(ErrLeaseLost)
			delete(in.held, d.Seq)
		default:
			d.begun = true
			return d, dropped
		}
		dropped = true
	}
	return nil, dropped
}

// spawn starts a goroutine that handles a delivery. mu is held and the inbox does not drain, so that drain does not miss
// it.
func (in *Inbox) spawn(d *Delivery) {
	in.handlers.Add(1)
	go in.serve(d)
}

// serve handles a delivery, and further ones while there are any and a slot for them.
func (in *Inbox) serve(d *Delivery) {
	defer in.handlers.Done()
	for d != nil {
		in.o.Handle(in.handling, d)
		d = in.another(d)
	}
}

// another ends the handling of a delivery and returns the next one for the same goroutine, or nil.
func (in *Inbox) another(d *Delivery) (next *Delivery) {
	in.mu.Lock()
	d.returned = true
	if !d.released {
		in.busy--
	}
	dropped := false
	if in.busy < in.o.Slots { // not if others have taken their slots again meanwhile
		if next, dropped = in.next(); next != nil {
			in.busy++
		}
	}
	in.mu.Unlock()
	if dropped {
		in.pull(false)
	}
	return next
}

// Release frees the slot of a handler that only waits, for an answer for example, until [Delivery.Reacquire]: another
// message is handled meanwhile. Heartbeats continue. Both do nothing when they are called twice.
func (d *Delivery) Release() {
	if d.in.release(d) {
		d.in.pull(false)
	}
}

func (in *Inbox) release(d *Delivery) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if d.released || d.returned || in.held[d.Seq] != d || in.released >= maxReleased {
		return false
	}
	d.released, d.wasReleased = true, true
	in.released++
	in.busy--
	in.dispatch()
	return true
}

// Reacquire takes a slot again. It does not wait for one: if all are taken there are more handlers than slots, and no
// further message is handled until enough of them have ended.
func (d *Delivery) Reacquire() {
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	d.in.reacquire(d)
}

func (in *Inbox) reacquire(d *Delivery) {
	if !d.released {
		return
	}
	d.released = false
	in.released--
	if !d.returned {
		in.busy++
	}
}
