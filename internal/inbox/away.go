package inbox

// maxAway bounds how many deliveries may be away at once.
const maxAway = 1 << 16

// Release frees the slot of a handler that only waits, for a person for example, until [Delivery.Reacquire]: its
// slot is another message's meanwhile. Heartbeats go on. Both do nothing when they are called
// twice.
func (d *Delivery) Release() {
	if d.in.leave(d) {
		d.in.pull(false)
	}
}

func (in *Inbox) leave(d *Delivery) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if d.away || in.held[d.Seq] != d || in.away >= maxAway {
		return false
	}
	d.away, d.wasAway = true, true
	in.away++
	in.substitute()
	return true
}

// Reacquire reports that the handler continues. It does so immediately: an inbox whose slots are all taken
// again takes no more messages until there are as many handlers as slots.
func (d *Delivery) Reacquire() {
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	d.in.back(d)
}

func (in *Inbox) back(d *Delivery) {
	if !d.away {
		return
	}
	d.away = false
	in.away--
	in.spare <- struct{}{} // there is room for as many as are away
}

// substitute lets somebody else have the slot of a delivery that is away: a handler that has
// not yet noticed that it is one too many, or a new one.
func (in *Inbox) substitute() {
	select {
	case <-in.spare:
	default:
		in.spawn() // the one that waits is counted, so nobody has seen the last of them
	}
}

// work handles messages until the queue is closed, or there is a handler too many.
func (in *Inbox) work() {
	for {
		select {
		case <-in.spare:
			return
		default:
		}
		select {
		case <-in.spare:
			return
		case d, ok := <-in.queue:
			if !ok {
				return
			}
			if in.handOut(d) {
				in.o.Handle(in.handling, d)
			}
		}
	}
}

// handOut hands a delivery to a handler, unless it was lost before, or is given back because of a drain. It looks at the
// time itself: after a pause of the process a handler may run before [Inbox.lapses] does.
func (in *Inbox) handOut(d *Delivery) bool {
	if in.draining.Load() {
		d.Nak(0)
		return false
	}
	in.mu.Lock()
	lost := in.held[d.Seq] != d
	if !lost && d.own.Lost(in.now(), in.wait()) {
		d.cancel(ErrLeaseLost)
		delete(in.held, d.Seq)
		lost = true
	}
	d.begun = !lost
	in.mu.Unlock()
	if lost {
		in.pull(false) // its room is free
	}
	return !lost
}
