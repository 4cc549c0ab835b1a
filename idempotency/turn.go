package idempotency

import (
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

// Turn has all records of one call, as one read of the leader shows them. It explains the result of a create; it decides
// nothing.
type Turn struct {
	Key      subjects.Key
	Claim    *Record  // nil when the turn is not claimed (or the read was stale)
	Response *Record  // nil while the turn has not ended
	Cancel   *Record  // nil unless a cancel was requested
	Epoch    int      // newest epoch, 0 when unclaimed
	Lease    Lease    // lease of the newest epoch
	Records  []Record // the records of the current generation, in the order of their sequences

	questions map[string]*QuestionState // by the token of the id, nil when nothing was asked
	dismissed map[string]*Record
	parks     []*Record // of all epochs
	corrupt   bool
	oversized bool
}

// newTurn sorts the records of a call, which are in the order of their sequences.
func newTurn(key subjects.Key, records []Record) *Turn {
	records = currentRecords(records)
	t := &Turn{Key: key, Records: records}
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
		case events.RecordCall, events.RecordResponse, events.RecordCancel:
			if k.ID == "" && !k.Private { // no rule creates others
				t.noteEvent(k.Kind, r)
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
		case events.RecordAsk, events.RecordAnswer, events.RecordAck, events.RecordTaken:
			t.question(k.ID).note(k.Kind, r)
		case events.RecordDismiss:
			if t.dismissed == nil {
				t.dismissed = map[string]*Record{}
			}
			t.dismissed[k.ID] = r
		}
	}
	return t
}

// noteEvent notes a record of which a turn has one.
func (t *Turn) noteEvent(kind string, r *Record) {
	switch kind {
	case events.RecordCall:
		t.Claim = r
		t.own(1, r)
	case events.RecordResponse:
		t.Response = r
	case events.RecordCancel:
		t.Cancel = r
	}
}

// own notes that r holds the lease of an epoch.
func (t *Turn) own(epoch int, r *Record) {
	if epoch > t.Epoch {
		t.Epoch, t.Lease = epoch, r.Meta.Lease
	}
}

// Has reports whether a public record of the call belongs to the current generation of its key.
func (t *Turn) Has(r *Record) bool {
	if isKind(events.RecordCancel)(*r) {
		return t.Cancel != nil && t.Cancel.Seq == r.Seq
	}
	return !r.Former(generationOf(t.Claim))
}

// hasOpenQuestion reports whether a question of the turn is still displayed: no ack has closed it.
func (t *Turn) hasOpenQuestion() bool {
	for _, q := range t.questions {
		if q.Ask != nil && q.Ack == nil {
			return true
		}
	}
	return false
}

// QuestionState has the records of one question of a turn.
type QuestionState struct {
	Token     string  // of its id, the last token of its records
	Ask       *Record // nil when only records that follow it were read
	Answer    *Record // what decided it, private; nil while it is open
	Ack       *Record // the public event of that; may be missing for a while
	Taken     *Record // the run that has received the answer
	Dismissed *Record // it is no longer displayed
}

// Outcome returns how the question was decided. If the decision cannot be read, it is not [Open] and none of the named
// outcomes.
func (q *QuestionState) Outcome() Outcome {
	switch {
	case q.Answer == nil:
		return Open
	case q.Answer.Err != nil:
		return Outcome("unreadable")
	default:
		return Outcome(q.Answer.Meta.Outcome)
	}
}

// Question returns the state of a question, by its id. It reports false when the turn has no record of it.
func (t *Turn) Question(id string) (QuestionState, bool) {
	token := subjects.Token(id)
	q := t.questions[token]
	if q == nil {
		return QuestionState{}, false
	}
	return t.questionState(token, q), true
}

func (t *Turn) questionState(token string, q *QuestionState) QuestionState {
	state := *q
	state.Token, state.Dismissed = token, t.dismissed[token]
	return state
}

// Questions returns all questions that the turn has asked, in the order in which they were
// stored.
func (t *Turn) Questions() []QuestionState {
	var all []QuestionState
	for n := range t.Records {
		r := &t.Records[n]
		if k, ok := subjects.ParseKey(r.Key); ok && k.Kind == events.RecordAsk && !k.Private {
			all = append(all, t.questionState(k.ID, t.questions[k.ID]))
		}
	}
	return all
}

// note adds a record of the question.
func (q *QuestionState) note(kind string, r *Record) {
	switch kind {
	case events.RecordAsk:
		q.Ask = r
	case events.RecordAnswer:
		q.Answer = r
	case events.RecordAck:
		q.Ack = r
	case events.RecordTaken:
		q.Taken = r
	}
}

// question returns the state of a question, by the token of its id, to add a record to it.
func (t *Turn) question(id string) *QuestionState {
	q := t.questions[id]
	if q == nil {
		if t.questions == nil {
			t.questions = map[string]*QuestionState{}
		}
		q = &QuestionState{}
		t.questions[id] = q
	}
	return q
}

// Kept has what counts against the bounds of a call: the tokens of the ids of its records, by kind.
type Kept struct {
	Questions, Surfaces, Steps map[string]bool
}

// Kept returns what earlier runs have stored. A nil turn has nothing.
func (t *Turn) Kept() *Kept {
	k := &Kept{Questions: map[string]bool{}, Surfaces: map[string]bool{}, Steps: map[string]bool{}}
	if t == nil {
		return k
	}
	for i := range t.Records {
		r, _ := subjects.ParseKey(t.Records[i].Key)
		switch r.Kind {
		case events.RecordAsk:
			k.Questions[r.ID] = true
		case events.RecordShow:
			k.Surfaces[r.ID] = true
		case events.RecordStep:
			k.Steps[r.ID] = true
		}
	}
	return k
}

// Corrupt reports whether a record of the turn cannot be read: such a turn is never run.
func (t *Turn) Corrupt() bool { return t.corrupt }

// Oversized reports whether the turn has more records than one read returns, and Records only those that
// are needed to end it. Such a turn is never run: it ends as too_large.
func (t *Turn) Oversized() bool { return t.oversized }

// isKind returns a test for records of a kind.
func isKind(kind string) func(Record) bool {
	return func(r Record) bool {
		k, ok := subjects.ParseKey(r.Key)
		return ok && k.Kind == kind
	}
}
