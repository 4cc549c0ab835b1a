// Package storetest is the conformance suite of [idempotency.Store]: what a journal may rely
// on, whatever holds it.
package storetest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Run runs the suite on stores that newStore makes, a new one for each test.
func Run(t *testing.T, newStore func(t *testing.T) idempotency.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, idempotency.Store){
		"CreateStoresOnceAndNamesTheRecordInTheWay": createOnce,
		"OneOfManyRacingCreatesWins":                race,
		"RecordIsReplacedByItsSequenceOnly":         replace,
		"ReadsReturnWhatWasStored":                  roundTrip,
		"FilterFindsTheLastRecordThatMatches":       lastOfMany,
		"ScanSeesOneCallInOrderOnly":                scan,
		"EndedContextCreatesNothingItReports":       cancelled,
		"ErasedRecordRemainsWithoutItsData":         erase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newStore(t))
		})
	}
}

func record(key, nonce string) idempotency.Record {
	return idempotency.Record{
		Key: key,
		Meta: idempotency.Meta{
			Owner: "w1", Nonce: nonce, Epoch: 1, Lease: idempotency.Lease{Stream: "IN", Seq: 7, Delivery: 2},
			Effect: "keyed", Digest: "d1", Fingerprint: "f1", Outcome: "no_binding", Pool: "gpu",
			Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
		Data: []byte(`{"type":"chat.tool_call"}`),
	}
}

func createOnce(t *testing.T, s idempotency.Store) {
	key := subjects.TurnKey("a", "c", "", "t").Public("tool_call")
	seq, err := s.Create(t.Context(), record(key, "n1"))
	require.NoError(t, err)
	require.NotZero(t, seq)
	for range 2 {
		_, err = s.Create(t.Context(), record(key, "n2"))
		var exists *idempotency.ExistsError
		require.ErrorAs(t, err, &exists)
		require.Equal(t, seq, exists.Seq)
	}
}

func race(t *testing.T, s idempotency.Store) {
	const turns, rivals = 20, 8
	for n := range turns {
		key := subjects.TurnKey("a", "c", "", strconv.Itoa(n)).Public("tool_call")
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			wins []uint64
			lost []uint64
		)
		for i := range rivals {
			wg.Go(func() {
				for {
					seq, err := s.Create(t.Context(), record(key, strconv.Itoa(i)))
					if errors.Is(err, idempotency.ErrUndecided) {
						continue
					}
					mu.Lock()
					defer mu.Unlock()
					var exists *idempotency.ExistsError
					switch {
					case err == nil:
						wins = append(wins, seq)
					case errors.As(err, &exists):
						lost = append(lost, exists.Seq)
					default:
						t.Errorf("create: %v", err)
					}
					return
				}
			})
		}
		wg.Wait()
		require.Len(t, wins, 1)
		require.Len(t, lost, rivals-1)
		for _, seq := range lost {
			require.Equal(t, wins[0], seq)
		}
	}
}

func replace(t *testing.T, s idempotency.Store) {
	k := subjects.TurnKey("a", "c", "", "t")
	old := record(k.Public("tool_response"), "n1")
	seq, err := s.Create(t.Context(), old)
	require.NoError(t, err)
	next := record(old.Key, "n2")
	var exists *idempotency.ExistsError
	next.Seq = seq + 1
	_, err = s.Create(t.Context(), next)
	require.ErrorAs(t, err, &exists)
	require.Equal(t, seq, exists.Seq)

	next.Seq = seq
	replaced, err := s.Create(t.Context(), next)
	require.NoError(t, err)
	require.Greater(t, replaced, seq)
	_, err = s.At(t.Context(), seq)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	all, err := s.Scan(t.Context(), k, nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, replaced, all[0].Seq)
	require.Equal(t, "n2", all[0].Meta.Nonce)
	_, err = s.Create(t.Context(), next)
	require.ErrorAs(t, err, &exists)
	require.Equal(t, replaced, exists.Seq)

	next = record(k.Public("tool_call"), "n3")
	next.Seq = seq
	_, err = s.Create(t.Context(), next)
	require.ErrorAs(t, err, &exists)
	require.Zero(t, exists.Seq, "there is none")
	next.Seq = 0
	_, err = s.Create(t.Context(), next)
	require.NoError(t, err)
}

func roundTrip(t *testing.T, s idempotency.Store) {
	want := record(subjects.TurnKey("a", "c", "r", "t.*>").Public("tool_call"), "n1")
	seq, err := s.Create(t.Context(), want)
	require.NoError(t, err)
	for _, read := range []func() (idempotency.Record, error){
		func() (idempotency.Record, error) { return s.At(t.Context(), seq) },
		func() (idempotency.Record, error) { return s.Last(t.Context(), want.Key) },
	} {
		got, err := read()
		require.NoError(t, err)
		require.NoError(t, got.Err)
		require.Equal(t, seq, got.Seq)
		require.False(t, got.Time.IsZero())
		got.Seq, got.Time = 0, want.Time
		require.Equal(t, want, got)
	}
	_, err = s.At(t.Context(), seq+10)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	_, err = s.Last(t.Context(), subjects.TurnKey("a", "c", "r", "other").Public("tool_call"))
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

// lastOfMany: a filter whose last token is any finds the last record that matches.
func lastOfMany(t *testing.T, s idempotency.Store) {
	k := subjects.TurnKey("a", "c", "", "t")
	filter := k.Private("takeover", idempotency.AnyToken)
	_, err := s.Create(t.Context(), record(k.Public("tool_call"), "n1"))
	require.NoError(t, err)
	_, err = s.Last(t.Context(), filter)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	var last uint64
	for _, n := range []string{"2", "10", "9"} {
		last, err = s.Create(t.Context(), record(k.Private("takeover", n), "n"+n))
		require.NoError(t, err)
	}
	for _, other := range []string{k.Private("park", "9"), k.Public("takeover", "11"), subjects.TurnKey("a", "c", "", "t2").Private("takeover", "3")} {
		_, err = s.Create(t.Context(), record(other, "n"))
		require.NoError(t, err)
	}
	got, err := s.Last(t.Context(), filter)
	require.NoError(t, err)
	require.Equal(t, last, got.Seq)
	require.Equal(t, k.Private("takeover", "9"), got.Key)
}

func scan(t *testing.T, s idempotency.Store) {
	k := subjects.TurnKey("a", "c", "", "t")
	other := subjects.TurnKey("a", "c", "", "t2")
	keys := []string{
		k.Public("tool_call"), other.Public("tool_call"), k.Private("park", "1"), k.Private("takeover", "2"),
		other.Public("tool_response"), k.Public("tool_response"),
	}
	seqs := map[string]uint64{}
	for _, key := range keys {
		seq, err := s.Create(t.Context(), record(key, "n"))
		require.NoError(t, err)
		seqs[key] = seq
	}
	records, err := s.Scan(t.Context(), k, nil)
	require.NoError(t, err)
	got := make([]string, 0, len(records))
	for _, r := range records {
		require.Equal(t, seqs[r.Key], r.Seq)
		got = append(got, r.Key)
	}
	require.Equal(t, []string{keys[0], keys[2], keys[3], keys[5]}, got)
	records, err = s.Scan(t.Context(), subjects.TurnKey("a", "c", "", "nobody"), nil)
	require.NoError(t, err)
	require.Empty(t, records)
}

func erase(t *testing.T, s idempotency.Store) {
	k := subjects.TurnKey("a", "c", "", "t")
	want := record(k.Private("answer", "1"), "n1")
	want.Meta.Secret = idempotency.Sealed
	seq, err := s.Create(t.Context(), want)
	require.NoError(t, err)
	old, err := s.At(t.Context(), seq)
	require.NoError(t, err)
	require.Equal(t, idempotency.Sealed, old.Meta.Secret)
	for range 2 { // a second time changes nothing
		require.NoError(t, s.Erase(t.Context(), old))
	}
	_, err = s.At(t.Context(), seq)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
	got, err := s.Last(t.Context(), want.Key)
	require.NoError(t, err)
	require.NoError(t, got.Err)
	require.Empty(t, got.Data)
	want.Meta.Secret = idempotency.Erased
	require.Equal(t, want.Meta, got.Meta)
	all, err := s.Scan(t.Context(), k, nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	var exists *idempotency.ExistsError
	_, err = s.Create(t.Context(), want)
	require.ErrorAs(t, err, &exists)
	require.Equal(t, got.Seq, exists.Seq)
}

func cancelled(t *testing.T, s idempotency.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, record(subjects.TurnKey("a", "c", "", "t").Public("tool_call"), "n"))
	require.ErrorIs(t, err, context.Canceled)
}
