package idempotency

import (
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Kept is what a call has in the journal of that which is bounded: the tokens of its ids, by kind.
type Kept struct {
	Questions, Surfaces, Steps map[string]bool
}

// Kept returns what the runs before have stored. A nil turn has nothing.
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
