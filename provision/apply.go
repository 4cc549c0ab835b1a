package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// [Apply] reads the state of the server, refuses all that would lose records before it changes anything, then
// creates and updates streams and consumers one by one.

// Action is what [Apply] did with one object.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
)

// Change is one thing that [Apply] did or found in order.
type Change struct {
	Object  string   `json:"object"` // "stream ONETURN_IN", "consumer ONETURN_IN/workers-default"
	Action  Action   `json:"action"`
	Details []string `json:"details,omitempty"` // of an update: "ack_wait 30s → 1m0s"
}

// ErrRefused means that a change would lose records or weaken the promise. Nothing was changed.
var ErrRefused = errors.New("refused")

// Apply creates and updates what is planned and is idempotent: a second run changes nothing.
// Settings outside the plan (placement, compression, metadata) stay as they are. Before any
// change it refuses, with all reasons together and [ErrRefused], what would lose records:
// other storage or retention policy, a shorter age, fewer replicas, a subject less, a journal
// that was lost, and an ack wait that is lowered while workers run. If the server fails in between, the changes so far are returned with
// the error; run it again.
func Apply(ctx context.Context, js jetstream.JetStream, plan Plan) ([]Change, error) {
	if err := CheckServer(js.Conn()); err != nil {
		return nil, err
	}
	found, err := readState(ctx, js, plan)
	if err != nil {
		return nil, err
	}
	if err := found.refusals(); err != nil {
		return nil, err
	}
	var changes []Change
	for _, s := range found.streams {
		change, err := s.apply(ctx, js)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	for _, c := range found.consumers {
		change, err := c.apply(ctx, js)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// refusals joins every reason not to touch anything.
func (s state) refusals() error {
	var errs []error
	if s.journalLost() {
		errs = append(errs, fmt.Errorf("provision: %w: the journal %s is gone while %s is there; a new journal has forgotten every turn and would run their duplicates again. "+
			"Restore it from a backup, or delete %s too and start again", ErrRefused, s.plan.journal, s.plan.inbound, s.plan.inbound))
	}
	if s.mirrorOutdated() {
		errs = append(errs, fmt.Errorf("provision: %w: the read mirror %s is older than the journal %s and has the records of another one, so it is not used: "+
			"delete it with the nats command, then provision again", ErrRefused, s.plan.mirror, s.plan.journal))
	}
	for _, x := range s.streams {
		errs = append(errs, refuse(x.object(), x.diffs)...)
	}
	for _, x := range s.consumers {
		errs = append(errs, refuse(x.object(), x.diffs)...)
	}
	return errors.Join(errs...)
}

// refuse turns the forbidden differences of one object into errors.
func refuse(object string, diffs []difference) []error {
	var errs []error
	for _, d := range diffs {
		if !d.refused {
			continue
		}
		if d.why != "" {
			errs = append(errs, fmt.Errorf("provision: %s: %s: %w: %s", object, d, ErrRefused, d.why))
			continue
		}
		errs = append(errs, fmt.Errorf("provision: %s: %s: %w: this loses records or safety; "+
			"keep %s, or if it is meant change the %s by hand with the nats command first", object, d, ErrRefused, d.have, kindOf(object)))
	}
	return errs
}

// kindOf returns the first word of an object's name.
func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	return kind
}

// apply creates or updates one stream.
func (s streamState) apply(ctx context.Context, js jetstream.JetStream) (Change, error) {
	change := Change{Object: s.object(), Action: Unchanged}
	var err error
	switch {
	case s.have == nil:
		change.Action = Created
		_, err = js.CreateStream(ctx, s.want)
	case len(s.diffs) > 0:
		change.Action, change.Details = Updated, details(s.diffs)
		_, err = js.UpdateStream(ctx, merge(streamSettings, *s.have, s.want))
	}
	if err != nil {
		return Change{}, fmt.Errorf("provision: %s not %s: %w", change.Object, change.Action, explain(err))
	}
	return change, nil
}

// apply creates or updates one consumer.
func (c consumerState) apply(ctx context.Context, js jetstream.JetStream) (Change, error) {
	change := Change{Object: c.object(), Action: Unchanged}
	var err error
	switch {
	case c.have == nil:
		change.Action = Created
		_, err = js.CreateConsumer(ctx, c.stream, c.want)
	case len(changeable(c.diffs)) > 0:
		change.Action, change.Details = Updated, details(changeable(c.diffs))
		_, err = js.UpdateConsumer(ctx, c.stream, merge(consumerSettings, *c.have, c.want))
	}
	if err != nil {
		return Change{}, fmt.Errorf("provision: %s not %s: %w", change.Object, change.Action, explain(err))
	}
	return change, nil
}

// changeable are the differences that an update takes away.
func changeable(diffs []difference) []difference {
	return slices.DeleteFunc(slices.Clone(diffs), func(d difference) bool { return d.rule == initial })
}

func details(diffs []difference) []string {
	out := make([]string, len(diffs))
	for i, d := range diffs {
		out[i] = d.String()
	}
	return out
}
