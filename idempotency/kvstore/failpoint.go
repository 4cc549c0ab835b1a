package kvstore

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/subjects"
)

// createAtFailpoint is a create whose request or acknowledgement a test may drop. Released
// builds never call it.
func createAtFailpoint(ctx context.Context, s *Store, r idempotency.Record) (uint64, error) {
	key, _ := subjects.ParseKey(r.Key)
	point := map[string]string{
		events.RecordCall: failpoint.Claim, events.RecordResponse: failpoint.Finish, events.RecordPark: failpoint.Seal,
		events.RecordTakeover: failpoint.Takeover, events.RecordAsk: failpoint.Ask, events.RecordAnswer: failpoint.Answer,
		events.RecordAck: failpoint.Closed, events.RecordTaken: failpoint.Taken, events.RecordStep: failpoint.Step,
		events.RecordShow: failpoint.Show, events.RecordProgram: failpoint.Program, events.RecordResult: failpoint.Result,
		events.RecordText: failpoint.Text, events.RecordContextUpdate: failpoint.Update,
		events.RecordStructuredOutput: failpoint.Output, events.RecordHandoff: failpoint.Handoff,
	}[key.Kind]
	switch {
	case key.Kind == events.RecordCall && key.Call != subjects.SingleCall:
		point = failpoint.StepCall
	case key.Kind == events.RecordResponse && key.Call != subjects.SingleCall:
		point = failpoint.StepResponse
	case key.Kind == events.RecordPark && r.Meta.Outcome == idempotency.ParkParked:
		point = failpoint.Park
	case key.Kind == events.RecordPark && r.Meta.Outcome == idempotency.ParkWoken:
		point = failpoint.Wake
	}
	if err := failpoint.Before(point); err != nil {
		return 0, err
	}
	seq, err := s.create(ctx, r)
	if err == nil {
		failpoint.Hit(point, r.Meta.Effect, key.String()) // stored, and the writer does not know yet
		err = failpoint.After(point)
	}
	return seq, err
}
