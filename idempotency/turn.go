package idempotency

import (
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A Turn is what one read shows of a turn: its claim, response and cancel, the newest epoch and its lease, the questions and
// how each epoch ended. The rules in the other files ask it; a Turn never changes after it was read.

// How a park record ended an epoch: the first one to be created decides.
const (
	ParkParked = "parked" // the owner has released the turn until a question is decided
	ParkWoken  = "woken"  // an answer, expiry or cancel was stored while the owner held the turn
	ParkSealed = "sealed" // another worker takes the turn over
)

// Turn has all records of a turn, as one read of the leader shows them. It explains the result of a create; it decides
// nothing. A turn that is one call has the embedded [Call] alone; each step of a program is a separate call.
type Turn struct {
	Call             // the turn's own call
	Claim   *Record  // nil when the turn is not claimed (or the read was stale)
	Cancel  *Record  // nil unless a cancel was requested
	Epoch   int      // newest epoch, 0 when unclaimed
	Lease   Lease    // lease of the newest epoch
	Records []Record // the records of the current generation, in the order of their sequences

	calls     map[string]*Call // of steps, by their call token, nil without any
	parks     []*Record        // of all epochs
	corrupt   bool
	oversized bool
}

// newTurn sorts the records of a turn, which are in the order of their sequences.
func newTurn(key subjects.Key, records []Record) *Turn {
	records = currentRecords(records)
	t := &Turn{Call: Call{Key: key.OfTurn()}, Records: records}
	for i := range records {
		r := &records[i]
		k, ok := subjects.ParseKey(r.Key)
		if !ok {
			continue
		}
		if r.Err != nil {
			t.corrupt = true
		}
		switch k.Kind {
		case events.RecordCall, events.RecordResponse, events.RecordCancel, events.RecordProgram, events.RecordResult:
			if k.ID == "" && !k.Private { // no rule creates others
				t.noteEvent(k, r)
			}
		case events.RecordTakeover:
			n, err := strconv.Atoi(k.ID)
			if err != nil {
				t.corrupt = true
				continue
			}
			t.own(n, r)
		case events.RecordPark:
			t.parks = append(t.parks, r)
		default:
			t.call(k.Call).note(k, r)
		}
	}
	return t
}

// noteEvent notes a record of which a call has one.
func (t *Turn) noteEvent(k subjects.Record, r *Record) {
	switch c := t.call(k.Call); k.Kind {
	case events.RecordCall:
		c.Called = r
		if c == &t.Call {
			t.Claim = r
			t.own(1, r)
		}
	case events.RecordResponse:
		c.Response = r
	case events.RecordCancel:
		t.Cancel = r
	case events.RecordProgram:
		c.Program = r
	case events.RecordResult:
		c.Result = r
	}
}

// own notes that r holds the lease of an epoch.
func (t *Turn) own(epoch int, r *Record) {
	if epoch > t.Epoch {
		t.Epoch, t.Lease = epoch, r.Meta.Lease
	}
}

// Newest returns the sequence of the newest record of the turn that was read, 0 if it has none.
func (t *Turn) Newest() uint64 {
	if t == nil || len(t.Records) == 0 {
		return 0
	}
	return t.Records[len(t.Records)-1].Seq
}

// Has reports whether a public record of the call belongs to the current generation of its key.
func (t *Turn) Has(r *Record) bool {
	if isCancel(*r) {
		return t.Cancel != nil && t.Cancel.Seq == r.Seq
	}
	return !r.Former(generationOf(t.Claim))
}

// hasOpenQuestion reports whether a question of the turn is still displayed: no ack has closed it.
func (t *Turn) hasOpenQuestion() bool {
	return slices.ContainsFunc(t.Questions(), func(q QuestionState) bool { return q.Ack == nil })
}

// Corrupt reports whether a record of the turn cannot be read: such a turn is never run.
func (t *Turn) Corrupt() bool { return t.corrupt }

// Oversized reports whether the turn has more records than one read returns, and Records only those that
// are needed to end it. Such a turn is never run: it ends as too_large.
func (t *Turn) Oversized() bool { return t.oversized }

// isCancel reports whether a record is the cancel of a turn.
func isCancel(r Record) bool { return isOfTurn(events.RecordCancel)(r) }

// isOfTurn returns a test for records of a kind that the turn's own call has.
func isOfTurn(kind string) func(Record) bool {
	return func(r Record) bool {
		k, ok := subjects.ParseKey(r.Key)
		return ok && k.Kind == kind && k.Call == subjects.SingleCall
	}
}
