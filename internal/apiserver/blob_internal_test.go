package apiserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/internal/store"
)

// staleServer reads streams from a replica that has no message from a sequence on.
type staleServer struct {
	jetstream.JetStream

	from uint64
}

func (s staleServer) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := s.JetStream.Stream(ctx, name)
	return staleStream{stream, s.from}, err
}

type staleStream struct {
	jetstream.Stream

	from uint64
}

func (s staleStream) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	return s.seen(s.Stream.GetMsg(ctx, seq, opts...))
}

func (s staleStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return s.seen(s.Stream.GetLastMsgForSubject(ctx, subject))
}

func (s staleStream) seen(m *jetstream.RawStreamMsg, err error) (*jetstream.RawStreamMsg, error) {
	if err == nil && m.Sequence >= s.from {
		return nil, jetstream.ErrMsgNotFound
	}
	return m, err
}

// F15: a blob is served whole, or refused, by a worker whose reads come from a node that lags.
func TestBlobIsServedWholeThoughAReplicaLags(t *testing.T) {
	t.Parallel()
	_, nc, space := provisioned(t)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	bucket, err := js.ObjectStore(t.Context(), space.BlobsBucket())
	require.NoError(t, err)
	name := "app.c.0-t.0.tool_response.0123456789abcdef"
	text := strings.Repeat("0123456789abcdef", 90_000)
	_, err = bucket.PutString(t.Context(), name, text)
	require.NoError(t, err)
	for _, from := range []uint64{1, 2, 5, 1000} { // nothing, one chunk, some chunks, all
		a := &Server{js: staleServer{js, from}, Options: Options{Space: space}, most: pageBytes}
		var got []byte
		for next := uint64(0); ; {
			request, err := json.Marshal(api.BlobRequest{Blob: name, From: next})
			require.NoError(t, err)
			answer, err := a.blob(t.Context(), "app", request)
			require.NoError(t, err)
			p, ok := answer.(*store.Piece)
			require.True(t, ok)
			got = append(got, p.Data...)
			if next = p.Next; next == 0 {
				break
			}
		}
		require.Len(t, got, len(text), "from %d on", from)
		require.Equal(t, text, string(got))
	}
}

func TestBlobsOfEveryPublicEventAreServed(t *testing.T) {
	t.Parallel()
	for key, public := range map[string]bool{
		"app.c.0-t.0.tool_call": true, "app.c.0-t.s_1.tool_response": true, "app.c.0-t.0.ask.1": true,
		"app.c.0-t.0.program": true, "app.c.0-t.0.result": true, "app.c.message-0-m.0.text": true, "app.c.message-0-m.0.structured_output": true,
		"app.c.0-t.0.park.1": false, "app.c.0-t.0.step.1": false, "beta.c.0-t.0.program": false, "dead.12": false,
	} {
		require.Equal(t, public, isPublicBlob("app", key+".0123456789abcdef"), key)
	}
}
