package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// state is what the server has, next to what the plan wants.
type state struct {
	plan      Plan
	streams   []streamState
	consumers []consumerState
}

// streamState is one stream; have is nil if it is missing.
type streamState struct {
	want  jetstream.StreamConfig
	have  *jetstream.StreamConfig
	made  time.Time // zero if it is missing
	diffs []difference
}

// consumerState is one consumer; have is nil if it is missing.
type consumerState struct {
	stream string
	want   jetstream.ConsumerConfig
	have   *jetstream.ConsumerConfig
	diffs  []difference
}

func (s streamState) object() string   { return "stream " + s.want.Name }
func (c consumerState) object() string { return "consumer " + c.stream + "/" + c.want.Durable }

// readState reads everything the plan names and compares it.
func readState(ctx context.Context, js jetstream.JetStream, plan Plan) (state, error) {
	found := state{plan: plan}
	for _, want := range plan.Streams {
		s := streamState{want: want}
		stream, err := js.Stream(ctx, want.Name)
		switch {
		case err == nil:
			have := stream.CachedInfo().Config
			s.have, s.made, s.diffs = &have, stream.CachedInfo().Created, compare(streamSettings, &have, &want)
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return state{}, fmt.Errorf("provision: look at %s: %w", s.object(), explain(err))
		}
		found.streams = append(found.streams, s)
	}
	for _, want := range plan.Consumers {
		c := consumerState{stream: want.Stream, want: want.Config}
		consumer, err := js.Consumer(ctx, want.Stream, want.Config.Durable)
		switch {
		case err == nil:
			info := consumer.CachedInfo()
			have := info.Config
			c.have, c.diffs = &have, compare(consumerSettings, &have, &c.want)
			if have.AckWait > c.want.AckWait && plan.inUse(ctx, js.Conn(), info) {
				refuseChange(c.diffs, "ack_wait", "workers run, and would lose what they hold until they know of it; "+
					"stop them first and start them again afterwards, or keep --ack-wait "+have.AckWait.String())
			}
		case !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound):
			return state{}, fmt.Errorf("provision: look at %s: %w", c.object(), explain(err))
		}
		found.consumers = append(found.consumers, c)
	}
	return found, nil
}

// refuseChange marks the difference in a setting as one that must not be changed now.
func refuseChange(diffs []difference, setting, why string) {
	for i := range diffs {
		if d := &diffs[i]; d.setting == setting {
			d.refused, d.why = true, why
		}
	}
}

// stream returns the state of a stream of the plan.
func (s state) stream(name string) *jetstream.StreamConfig {
	for _, x := range s.streams {
		if x.want.Name == name {
			return x.have
		}
	}
	return nil
}

// mirrorOutdated reports that the read mirror is of a journal that does not exist any more.
func (s state) mirrorOutdated() bool {
	var journal, mirror time.Time
	for _, x := range s.streams {
		switch x.want.Name {
		case s.plan.journal:
			journal = x.made
		case s.plan.mirror:
			mirror = x.made
		}
	}
	return !mirror.IsZero() && !mirror.After(journal)
}

// journalLost reports that the inbound stream, which is always made later, is there and the
// journal is not.
func (s state) journalLost() bool {
	return s.stream(s.plan.journal) == nil && s.stream(s.plan.inbound) != nil
}
