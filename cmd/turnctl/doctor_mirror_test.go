package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

func TestDoctorReportsTheLagOfTheReadMirror(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	require.NotContains(t, ok(t, s, "doctor"), "  mirror ")
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	store := func(turn string) { claim(t, nc, subjects.TurnKey("default", "c", "", turn), turn) }
	store("t1")
	ok(t, s, "provision", "--read-mirror")
	require.Eventually(t, func() bool {
		return strings.Contains(ok(t, s, "doctor", "--read-mirror"), "ok       mirror      histories are read from ONETURN_TURNS_MIRROR, with a lag of 0 records")
	}, 20*time.Second, 20*time.Millisecond)

	mirror, err := js.Stream(t.Context(), space.TurnsMirror())
	require.NoError(t, err)
	cut := mirror.CachedInfo().Config
	cut.Mirror, cut.MirrorDirect = nil, false // it gets no records from now on
	_, err = js.UpdateStream(t.Context(), cut)
	require.NoError(t, err)
	require.Contains(t, normal(ok(t, s, "doctor")), "warning mirror ONETURN_TURNS_MIRROR is not a mirror of this journal")
}

func TestMirrorThatLacksTooMuchIsAWarning(t *testing.T) {
	t.Parallel()
	made := time.Unix(1_000, 0)
	journal := &jsapi.InfoPage{Created: made, Config: jetstream.StreamConfig{Name: "J"}, State: jetstream.StreamState{LastSeq: 20_000}}
	mirror := &jsapi.InfoPage{
		Created: made.Add(time.Second), Config: jetstream.StreamConfig{Mirror: &jetstream.StreamSource{Name: "J"}, AllowDirect: true, MaxMsgsPerSubject: 1},
	}
	for last, want := range map[uint64]diag.Severity{20_000: severityOK, 20_001: severityOK, 10_000: severityOK, 9_999: diag.SeverityWarning} {
		mirror.State.LastSeq = last
		require.Equal(t, want, mirrorCheckup("M", mirror, journal).Severity, last)
	}
	mirror.State.LastSeq = 9_999
	require.Equal(t, "M lacks the last 10001 records of the journal, more than 10000: histories are read from the journal", mirrorCheckup("M", mirror, journal).Message)
	journal.Created = mirror.Created.Add(time.Second)
	require.Contains(t, mirrorCheckup("M", mirror, journal).Message, "is not a mirror of this journal")
}
