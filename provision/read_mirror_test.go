package provision_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

func TestReadMirrorHasTheRecordsOfTheJournal(t *testing.T) {
	t.Parallel()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(oneturntest.NewServer(t).Connect())
	require.NoError(t, err)
	without, err := provision.New(provision.Options{})
	require.NoError(t, err)
	with, err := provision.New(provision.Options{ReadMirror: true})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, without)
	require.NoError(t, err)
	findings, err := provision.Check(t.Context(), js, with)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, "run turnctl provision --read-mirror", findings[0].Fix)

	subject := space.JournalSubject("e.app.chat.0-t.0.tool_call")
	_, err = js.Publish(t.Context(), subject, []byte("first"))
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, with)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), subject, []byte("its successor"))
	require.NoError(t, err)
	mirror, err := js.Stream(t.Context(), space.TurnsMirror())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := mirror.Info(t.Context())
		return err == nil && info.State.LastSeq == 2 && info.State.Msgs == 1
	}, 10*time.Second, time.Millisecond, "it forgets a record that was replaced")
	m, err := mirror.GetMsg(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, "its successor", string(m.Data))

	changes, err := provision.Apply(t.Context(), js, with)
	require.NoError(t, err)
	for _, c := range changes {
		require.Equal(t, provision.Unchanged, c.Action, c.Object)
	}
	changes, err = provision.Apply(t.Context(), js, without)
	require.NoError(t, err, "a plan without one leaves it alone")
	require.Len(t, changes, len(without.Streams)+len(without.Consumers))

	longer, err := provision.New(provision.Options{ReadMirror: true, Retention: provision.DefaultRetention + time.Hour})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, longer)
	require.NoError(t, err)
	info, err := mirror.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, provision.DefaultRetention+time.Hour, info.Config.MaxAge, "it forgets nothing before the journal does")
}

func TestReadMirrorOfAnotherJournalIsRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(oneturntest.NewServer(t).Connect())
	require.NoError(t, err)
	plan, err := provision.New(provision.Options{ReadMirror: true})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), space.TurnsStream()))
	require.NoError(t, js.DeleteStream(t.Context(), space.InStream()))
	again, err := provision.New(provision.Options{})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, again)
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.ErrorIs(t, err, provision.ErrRefused)
	require.ErrorContains(t, err, "delete it with the nats command")
}

func TestReadMirrorIsPlacedByTags(t *testing.T) {
	t.Parallel()
	plan, err := provision.New(provision.Options{ReadMirror: true, ReadMirrorTags: []string{"az:b"}, Replicas: 3})
	require.NoError(t, err)
	mirror := plan.Streams[len(plan.Streams)-1]
	require.Equal(t, "ONETURN_TURNS_MIRROR", mirror.Name)
	require.Equal(t, []string{"az:b"}, mirror.Placement.Tags)
	require.Equal(t, 1, mirror.Replicas)
	_, err = provision.New(provision.Options{ReadMirrorTags: []string{"az:b"}})
	require.ErrorContains(t, err, "--read-mirror-tags")
}
