package sim

// Fault is something that goes wrong in a schedule.
type Fault string

// The faults. Each schedule draws which of them it may meet, so that rare combinations get
// separate schedules.
const (
	Crash         Fault = "crash"           // a worker is killed; what it was sending may still arrive
	Pause         Fault = "pause"           // a worker stands still, its leases lapse, it continues later
	Drain         Fault = "drain"           // a worker is asked to stop and started again
	Deploy        Fault = "deploy"          // a worker restarts with other manifests
	LostBeats     Fault = "lost beats"      // a message is delivered again while its owner is well: heartbeats are lost
	AckWait       Fault = "ack wait"        // an operator changes the ack wait
	LateArrival   Fault = "late arrival"    // what the queue sends to a worker lies in the buffers of the connection
	CutOff        Fault = "cut off"         // a worker continues, and neither its heartbeats nor its acknowledgements arrive
	UnknownNow    Fault = "unknown, stored" // a write has no answer and is stored
	UnknownLater  Fault = "unknown, later"  // a write has no answer and is stored at some later time
	UnknownNever  Fault = "unknown, never"  // a write has no answer and is never stored
	Undecided     Fault = "undecided"       // a rival write is in flight (server error 10164)
	FailedRead    Fault = "failed read"     // a read has no answer
	StaleRead     Fault = "stale read"      // a read gives the journal as it was before
	StaleSweep    Fault = "stale sweep"     // the same, to a sweep
	OldLeader     Fault = "old leader"      // reads after a takeover are answered by a leader that was replaced
	LostAck       Fault = "lost ack"        // an acknowledgement does not arrive
	LateAck       Fault = "late ack"        // an acknowledgement arrives at some later time
	LostLive      Fault = "lost live copy"  // the live copy of a cancel is not seen
	ForgedLive    Fault = "forged copy"     // a client publishes the live copy of a cancel that does not exist
	LostDead      Fault = "lost letter"     // a dead letter cannot be stored
	LostSchedule  Fault = "lost schedule"   // the end of a question's time may not be scheduled
	FailedMerge   Fault = "failed merge"    // context variables cannot be stored
	Purge         Fault = "purge"           // the message of a claimed turn vanishes; a sweep has to find the turn
	FullStore     Fault = "full store"      // the store is nearly full for a while: no new turns are claimed
	ForgottenNums Fault = "forgotten count" // the server forgets a delivery number
)

// Faults returns all kinds of faults.
func Faults() []Fault {
	return []Fault{
		Crash, Pause, Drain, Deploy, LostBeats, AckWait, LateArrival, CutOff, UnknownNow, UnknownLater, UnknownNever, Undecided,
		FailedRead, StaleRead, StaleSweep, OldLeader, LostAck, LateAck, LostLive, ForgedLive, LostDead, LostSchedule, FailedMerge, Purge, FullStore, ForgottenNums,
	}
}

// faults is what may still go wrong in a schedule.
type faults struct {
	on     map[Fault]bool
	struck map[Fault]int
	budget int
}

// newFaults draws the faults of a schedule: one in eight is calm, the others meet about half
// of the kinds. Stale reads are rare: the leader of a real store gives none.
func (w *world) newFaults() faults {
	f := faults{on: map[Fault]bool{}, struck: map[Fault]int{}}
	if w.chance(1, 8) {
		return f
	}
	f.budget = 1 + w.rng.IntN(12)
	for _, kind := range Faults() {
		f.on[kind] = w.chance(1, 2)
	}
	f.on[StaleRead] = w.chance(1, 10)
	return f
}

// strike decides whether a fault that can happen now does, one in n times.
func (w *world) strike(kind Fault, n int) bool {
	if w.faults.budget <= 0 || !w.faults.on[kind] || !w.chance(1, n) {
		return false
	}
	w.faults.budget--
	w.faults.struck[kind]++
	return true
}

// misleads decides whether a read of a sweep is stale, one in n times. Most of these reads come when the faults of the schedule are used
// up, so it does not count among them.
func (w *world) misleads(n int) bool {
	if w.healed || !w.faults.on[StaleSweep] || !w.chance(1, n) {
		return false
	}
	w.faults.struck[StaleSweep]++
	return true
}
