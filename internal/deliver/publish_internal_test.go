package deliver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// errLost stands for an acknowledgement that does not arrive.
var errLost = errors.New("lost")

// publishing publishes to a stream whose replies are given in order, the last one again and again. It returns when attempts began.
func publishing(ctx context.Context, replies ...error) (ack *jetstream.PubAck, began []time.Duration, err error) {
	start := time.Now()
	ack, err = untilAcknowledged(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		began = append(began, time.Since(start))
		reply := replies[min(len(began), len(replies))-1]
		switch {
		case reply == nil:
			return &jetstream.PubAck{Sequence: uint64(len(began))}, nil
		case !errors.Is(reply, errLost):
			return nil, reply
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}, func(context.Context) {})
	return ack, began, err
}

func seconds(n ...int) (all []time.Duration) {
	for _, s := range n {
		all = append(all, time.Duration(s)*time.Second)
	}
	return all
}

func TestMessageIsPublishedAgainUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ack, began, err := publishing(ctx, errLost, errLost, errLost, errLost, nats.ErrReconnectBufExceeded, nil)
		require.NoError(t, err)
		require.Equal(t, uint64(6), ack.Sequence)
		require.Equal(t, seconds(0, 3, 9, 21, 33, 33), began)
	})
}

func TestMessageThatIsNeverAcknowledgedHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		unknown := func(ctx context.Context, attempts []time.Duration, ends time.Duration) {
			start := time.Now()
			_, began, err := publishing(ctx, errLost)
			require.ErrorIs(t, err, ErrNotAcknowledged)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, attempts, began)
			require.Equal(t, ends, time.Since(start))
		}
		unknown(ctx, seconds(0, 3), 5*time.Second)
		unknown(context.WithoutCancel(ctx), seconds(0, 3, 9), 15*time.Second) // no deadline
	})
}

func TestRefusalIsReturnedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := &jetstream.APIError{Code: 503, ErrorCode: 10077}
		for _, refusal := range []error{full, jetstream.ErrNoStreamResponse, nats.ErrMaxPayload, nats.ErrReconnectBufExceeded, nats.ErrConnectionDraining} {
			_, began, err := publishing(t.Context(), refusal)
			require.ErrorIs(t, err, refusal)
			require.NotErrorIs(t, err, ErrNotAcknowledged)
			require.Equal(t, seconds(0), began)
		}
		_, began, err := publishing(t.Context(), errLost, full)
		require.ErrorIs(t, err, full)
		require.ErrorIs(t, err, ErrNotAcknowledged, "the first one may be stored")
		require.Equal(t, seconds(0, 3), began)
		_, _, err = publishing(t.Context(), nats.ErrConnectionClosed)
		require.ErrorIs(t, err, ErrNotAcknowledged, "the connection was closed while the acknowledgement was on its way")
	})
}

// Without this, each attempt would put another copy into the buffer of the connection.
func TestNothingIsPublishedAgainWithoutAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		sent := 0
		_, err := untilAcknowledged(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
			sent++
			<-ctx.Done()
			return nil, ctx.Err()
		}, func(ctx context.Context) { <-ctx.Done() }) // there is none again
		require.ErrorIs(t, err, ErrNotAcknowledged)
		require.Equal(t, 1, sent)
	})
}

func TestNothingIsPublishedForAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, began, err := publishing(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrNotAcknowledged)
	require.Empty(t, began)
}
