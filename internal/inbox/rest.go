package inbox

import "time"

// Bounds of messages that rest.
const (
	maxResting = 4096
	restShare  = 4 // of the ack wait: what has to wait for longer rests at the server
)

// rest keeps a message that is given back for a short time until then, and reports whether it does. It takes
// no slot. The server could do that by itself, but it sets the timer for all that it has to deliver again
// anew with each such message: hundreds a second hold that timer up, those of workers that died
// wait with them, and then all come at the same moment.
func (d *Delivery) rest(delay time.Duration) bool {
	if !d.in.keep(d, delay) {
		return false
	}
	d.cancel(nil)
	d.in.pull(false)
	return true
}

func (in *Inbox) keep(d *Delivery, delay time.Duration) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.rests || delay <= 0 || delay > in.wait()/restShare || len(in.resting) >= maxResting || in.held[d.Seq] != d || in.draining.Load() {
		return false
	}
	in.handled(d)
	in.resting[d] = time.AfterFunc(delay, func() { in.rested(d) })
	return true
}

// rested gives a message back whose time is over, unless a drain has.
func (in *Inbox) rested(d *Delivery) {
	in.mu.Lock()
	_, rests := in.resting[d]
	delete(in.resting, d)
	in.mu.Unlock()
	if rests {
		d.Nak(0)
	}
}

// restless gives all that rest back at once.
func (in *Inbox) restless() {
	in.mu.Lock()
	resting := in.resting
	in.resting = map[*Delivery]*time.Timer{}
	in.mu.Unlock()
	for d, timer := range resting {
		timer.Stop()
		d.Nak(0)
	}
}
