package jsapi_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestFindReturnsWhereAMessageIs(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	for _, subject := range []string{"s.a.1", "s.b.1", "s.a.2", "s.b.2", "s.a.3"} {
		_, err = js.Publish(t.Context(), subject, nil)
		require.NoError(t, err)
	}
	for _, x := range []struct {
		get  jsapi.Get
		want uint64
	}{
		{jsapi.Get{Seq: 2}, 2}, {jsapi.Get{Last: "s.b.*"}, 4}, {jsapi.Get{Last: "s.a.1"}, 1}, {jsapi.Get{Seq: 1, Next: "s.b.>"}, 2}, {jsapi.Get{Seq: 4, Next: "s.a.>"}, 5},
	} {
		seq, err := jsapi.Find(t.Context(), nc, "S", x.get)
		require.NoError(t, err)
		require.Equal(t, x.want, seq, "%+v", x.get)
	}
	for _, get := range []jsapi.Get{{Seq: 9}, {Last: "s.c"}, {Seq: 5, Next: "s.b.>"}} {
		_, err = jsapi.Find(t.Context(), nc, "S", get)
		require.ErrorIs(t, err, jetstream.ErrMsgNotFound, "%+v", get)
	}
	_, err = jsapi.Find(t.Context(), nc, "NONE", jsapi.Get{Seq: 1})
	require.ErrorIs(t, err, jsapi.ErrNoDirect)
}
