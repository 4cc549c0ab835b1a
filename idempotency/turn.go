package idempotency

import (
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// How a park record ended an epoch: the first one to be created decides.
const (
	ParkParked = "parked" // the owner has let go until an answer comes
	ParkWoken  = "woken"  // an answer, expiry or cancel was stored while the owner held the turn
	ParkSealed = "sealed" // another worker takes the turn over
)

// Turn is all that the journal holds of one call, as one leader read saw it. It informs; only
// a create decides.
type Turn struct {
	Key      subjects.Key
	Claim    *Record  // nil when the turn is not claimed (or the read was stale)
	Response *Record  // nil while the turn has not ended
	Cancel   *Record  // nil unless somebody asked for the end
	Epoch    int      // newest epoch, 0 when unclaimed
	Lease    Lease    // lease of the newest epoch
	Records  []Record // all of it in the order of sequences, without what is left of a former life of the key

	questions map[string]*asked // by id, nil when nothing was asked
	dismissed map[string]*Record
	parks     []*Record // those of all epochs
	corrupt   bool
	crowded   bool
}

func newTurn(key subjects.Key, records []Record) *Turn {
	records = ofThisLife(records)
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
		case events.RecordCall:
			t.Claim = r
			t.own(1, r)
		case events.RecordResponse:
			t.Response = r
		case events.RecordCancel:
			t.Cancel = r
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

// own notes that r holds the lease of an epoch.
func (t *Turn) own(epoch int, r *Record) {
	if epoch > t.Epoch {
		t.Epoch, t.Lease = epoch, r.Meta.Lease
	}
}
