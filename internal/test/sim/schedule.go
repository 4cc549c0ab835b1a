package sim

import (
	"time"
)

// The scheduler: while something can happen, act draws one of the options and lets it happen. After the faults of the
// schedule are used up, heal lets everything drain.

// option is one thing that can happen next.
type option struct {
	do func(*world, option)
	p  *process
	t  *thread
	x  *fiber
	m  *message
	i  int
}

// schedule runs the world until nothing is left to happen.
func (w *world) schedule() {
	for ; len(w.violations) == 0; w.steps++ {
		w.pass(time.Duration(w.rng.IntN(40)) * time.Millisecond)
		switch {
		case w.steps-w.begun >= maxSteps:
			w.violatef("the queue does not drain: %s", w.leftovers())
			return
		case !w.healed && w.steps-w.begun >= faultSteps:
			w.heal()
		case !w.healed && w.chance(1, 8) && w.fault():
			continue
		}
		if w.act() {
			continue
		}
		switch {
		case !w.healed:
			w.heal()
		case w.asleep(), w.poll(), w.timers():
		case !w.sweep() && !w.liveAgain():
			return
		}
	}
}

// heal ends all faults: what stands still continues, and nothing new goes wrong.
func (w *world) heal() {
	w.tracef("everything heals")
	w.healed, w.full = true, false
	w.faults.budget = 0
	for _, p := range w.processes {
		p.paused, p.cut = false, false
		for p.reads() {
			p.read()
		}
	}
	// A claimed turn waits for a worker that knows its workflow: one of each pool gets the usual manifests.
	for i := range w.pools { // the first of each pool
		p := w.processes[i]
		p.manifest = w.sim.manifests[0]
		p.had = append(p.had, p.manifest)
	}
}

// oftenTheSweeper returns, half of the time, the worker that sweeps instead of p.
func (w *world) oftenTheSweeper(p *process) *process {
	if x := w.swept.running; x != nil && !x.over && w.chance(1, 2) {
		return x.p
	}
	return p
}

// fault lets something happen to a worker or a message, and reports whether it did.
func (w *world) fault() bool {
	p := w.processes[w.rng.IntN(len(w.processes))]
	m := w.anyLeased()
	switch w.rng.IntN(10) {
	case 0:
		if p.up && w.strike(Crash, 1) {
			p.crash()
			return true
		}
	case 1:
		if p = w.oftenTheSweeper(p); p.up && !p.paused && w.strike(Pause, 1) {
			p.pause()
			return true
		}
	case 2:
		if p.up && !p.draining && w.strike(Drain, 1) {
			p.drain()
			return true
		}
	case 3:
		if m != nil && m.holder != nil && w.strike(LostBeats, 1) {
			m.lost()
			return true
		}
	case 4:
		if m != nil && m.delivered > 0 && w.strike(ForgottenNums, 1) {
			m.delivered--
			w.tracef("the server forgets a delivery of %s", m)
			return true
		}
	case 5:
		if m != nil && w.mayVanish(m) && w.strike(Purge, 2) {
			m.purge()
			return true
		}
	case 6:
		switch {
		case w.full:
			w.tracef("the store has room")
			w.full = false
			return true
		case w.strike(FullStore, 1):
			w.tracef("the store is nearly full")
			w.full, w.fullSince = true, w.now
			return true
		}
	case 7:
		if w.strike(ForgedLive, 1) {
			key := w.turns[w.rng.IntN(len(w.turns))].key
			w.tracef("a live copy of a cancel is forged")
			w.announce(func(p *process) { p.handlers.CancelSeen(key) })
			return true
		}
	case 8:
		if w.strike(AckWait, 1) {
			w.changeAckWait()
			return true
		}
	case 9:
		if p.up && !p.cut && w.strike(CutOff, 1) {
			w.tracef("%s is cut off from the queue", p.name)
			p.cut = true
			return true
		}
	}
	return false
}

// act draws one of all the things that can happen and lets it happen. It reports false when
// nothing can.
func (w *world) act() bool {
	w.ring()
	if m := w.losing; m != nil {
		w.losing = nil
		m.lost()
	}
	if x := w.runner; x != nil && w.burst > 0 && x.runnable() && x.p.up && !x.p.paused {
		w.burst--
		x.p.step(x)
		return true
	}
	w.options = w.options[:0]
	add := func(o option) { w.options = append(w.options, o) }
	for _, p := range w.processes {
		w.processOptions(p, add)
	}
	var wait time.Time
	for _, m := range w.queue {
		switch {
		case m.settled:
		case m.leased:
			if h := m.holder; m.lapsed() || h == nil || (h.p.paused || h.p.late || h.p.cut) && w.chance(1, 4) {
				add(option{do: func(_ *world, o option) { o.m.lapse() }, m: m})
			}
		case m.ready.After(w.now):
			if wait.IsZero() || m.ready.Before(wait) {
				wait = m.ready
			}
		default:
			for _, p := range w.processes {
				if p.pool == m.pool && p.asks() {
					add(option{do: func(_ *world, o option) { o.p.receive(o.m) }, m: m, p: p})
				}
			}
		}
	}
	if len(w.unsent) > 0 {
		add(option{do: (*world).publish, i: w.rng.IntN(len(w.unsent))})
	}
	if len(w.flying) > 0 {
		add(option{do: (*world).arrive, i: w.rng.IntN(len(w.flying))})
	}
	if len(w.notices) > 0 {
		add(option{do: (*world).notify, i: w.rng.IntN(len(w.notices))})
	}
	if len(w.options) == 0 {
		if wait.IsZero() {
			return false
		}
		w.pass(wait.Sub(w.now))
		return true
	}
	o := w.options[w.rng.IntN(len(w.options))]
	o.do(w, o)
	return true
}

// run lets a thread continue, in half of the schedules for several steps while all others stand
// still.
func (w *world) run(o option) {
	if w.bursts {
		w.runner, w.burst = o.x, w.rng.IntN(maxBurst)
	}
	o.x.p.step(o.x)
}

// processOptions adds what a worker can do.
func (w *world) processOptions(p *process, add func(option)) {
	switch {
	case !p.up:
		add(option{do: (*world).restart, p: p})
	case p.paused:
		if w.chance(1, 4) {
			add(option{do: func(w *world, o option) { o.p.paused = false; w.tracef("%s continues", o.p.name) }, p: p})
		}
	default:
		if p.late {
			add(option{do: func(_ *world, o option) { o.p.tick() }, p: p})
		}
		if p.cut && w.chance(1, 8) {
			add(option{do: func(w *world, o option) { o.p.cut = false; w.tracef("%s reaches the queue again", o.p.name) }, p: p})
		}
		if !w.healed && !p.draining && w.maySweep() && w.chance(1, w.sweepRarely()) {
			add(option{do: func(_ *world, o option) { o.p.sweep() }, p: p})
		}
		if p.reads() {
			add(option{do: func(_ *world, o option) { o.p.read() }, p: p})
		}
		if p.busy() < slots && p.waiting() {
			add(option{do: func(_ *world, o option) { o.p.begin() }, p: p})
		}
		for _, x := range p.fibers {
			if x.runnable() {
				add(option{do: (*world).run, x: x})
			}
		}
		for _, t := range p.threads {
			w.threadOptions(t, add)
		}
		switch {
		case p.draining && len(p.threads) == 0 && len(p.fibers) == 0:
			add(option{do: func(_ *world, o option) { o.p.end() }, p: p})
		case p.draining && p.ctx.Err() == nil:
			add(option{do: func(_ *world, o option) { o.p.softStop() }, p: p})
		}
	}
}

// threadOptions adds what can happen to a delivery: something in it continues, a timer ends, a run
// that waits for an answer reads it without being notified, or waits no longer.
func (w *world) threadOptions(t *thread, add func(option)) {
	parks := false
	for i, x := range t.timers {
		if parks = parks || x.due(); x.due() && (w.healed || w.chance(1, 2)) {
			add(option{do: func(_ *world, o option) { o.t.timers[o.i].fire() }, t: t, i: i})
		}
	}
	for _, x := range t.fibers {
		switch {
		case x.runnable():
			add(option{do: (*world).run, x: x})
		case x.leave != nil && x.idle != nil && w.chance(1, 4):
			add(option{do: func(_ *world, o option) { o.x.leave() }, x: x})
		case x.idle != nil && (parks || !w.healed) && w.chance(1, 8):
			add(option{do: func(_ *world, o option) { o.x.idle() }, x: x})
		}
	}
}

func (w *world) restart(o option) {
	next := o.p.manifest
	if w.strike(Deploy, 2) {
		next = w.manifest(true)
	}
	o.p.start(next)
}

func (w *world) arrive(o option) {
	f := w.flying[o.i]
	w.flying = append(w.flying[:o.i], w.flying[o.i+1:]...)
	w.tracef("something arrives late")
	f()
}

func (w *world) notify(o option) {
	n := w.notices[o.i]
	w.notices = append(w.notices[:o.i], w.notices[o.i+1:]...)
	if n.p.up && n.p.life == n.life {
		w.tracef("%s sees a live copy", n.p.name)
		w.start(n.p, nil, func(*fiber) { n.see(n.p) })
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
