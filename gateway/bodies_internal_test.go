package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/gateway/auth"
)

// manyKeys is a document of half a megabyte whose values take many times as much.
func manyKeys() []byte { return []byte("[" + strings.Repeat(`{"":0},`, 50_000) + "0]") }

// decodeMany decodes a document for several users of the tenant app at the same time, each time for a while, and returns how many were decoded at
// most at the same time and how many were refused.
func decodeMany(b *bodies, users, each int, document []byte, takes time.Duration) (most, refused int64) {
	var now, peak, failed atomic.Int64
	var all errgroup.Group
	for i := range users * each {
		all.Go(func() error {
			h := &held{b: b, of: auth.Target{App: "app", User: string(rune('a' + i%users))}}
			defer h.free()
			err := h.decode(context.Background(), document, func() error {
				defer now.Add(-1)
				for n := now.Add(1); n > peak.Load(); {
					peak.Store(n)
				}
				<-time.After(takes) // in simulated time
				return nil
			})
			if err != nil {
				failed.Add(1)
			}
			return err
		})
	}
	_ = all.Wait() // the errors are counted
	return peak.Load(), failed.Load()
}

func TestLargeBodiesAreDecodedAFewAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBodies()
		b.places = newShares(4, 2, 1)
		most, refused := decodeMany(b, 1, 40, manyKeys(), 10*time.Millisecond)
		require.Zero(t, refused, "they wait")
		require.EqualValues(t, 1, most, "of one user")
		most, refused = decodeMany(b, 8, 10, manyKeys(), 10*time.Millisecond)
		require.Zero(t, refused)
		require.EqualValues(t, 2, most, "of one tenant")
		most, _ = decodeMany(b, 8, 10, []byte(`{"a":1}`), time.Millisecond)
		require.EqualValues(t, 80, most, "small ones do not wait")
		require.Empty(t, b.places.of)
		require.Empty(t, b.decoded.of)
	})
}

func TestBodiesBeyondTheShareOfTheirUserAreRefusedAndDelayNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, document := newBodies(), manyKeys()
		share := b.decoded.perUser / weight(document)
		flood := make(chan int64)
		begun := time.Now()
		b.places = newShares(1000, 1000, 1000)
		go func() {
			_, refused := decodeMany(b, 1, 40, document, time.Minute)
			flood <- refused
		}()
		synctest.Wait()
		require.LessOrEqual(t, b.decoded.used, b.decoded.perUser)
		require.Greater(t, b.decoded.used, b.decoded.perUser-weight(document))
		for _, other := range []auth.Target{{App: "app", User: "z"}, {App: "other", User: "a"}} {
			h := &held{b: b, of: other}
			require.NoError(t, h.decode(t.Context(), document, func() error { return nil }))
			h.free()
		}
		require.Zero(t, time.Since(begun), "others wait for it")
		h := &held{b: b, of: auth.Target{App: "app", User: "a"}}
		var refused *refusedError
		require.ErrorAs(t, h.decode(t.Context(), document, func() error { return errors.New("read") }), &refused)
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		require.Positive(t, refused.retry)
		require.Equal(t, bodyPatience, time.Since(begun))
		require.EqualValues(t, 40-share, <-flood)
		require.Zero(t, b.decoded.used)
	})
}

func TestRoomOfABodyIsFreedWithTheParts(t *testing.T) {
	t.Parallel()
	b := newBodies()
	h := &held{b: b, of: auth.Target{App: "app", User: "a"}}
	require.NoError(t, h.arrive(t.Context(), 1000))
	document := bytes.Repeat([]byte(","), 1000)
	for range 2 { // an envelope, and what is in it
		require.NoError(t, h.decode(t.Context(), document, func() error { return nil }))
	}
	require.Equal(t, 1000, b.arriving.used)
	require.Equal(t, weight(document), b.decoded.used)
	h.keep(10)
	require.Zero(t, b.arriving.used)
	require.Equal(t, 10, b.decoded.used)
	h.free()
	h.free()
	require.Zero(t, b.decoded.used)
	require.NoError(t, new(held).decode(t.Context(), document, func() error { return nil }), "a request without a body")
}
