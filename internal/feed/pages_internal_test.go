package feed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// shelf is what followers read pages from: each page takes a second.
type shelf struct {
	pages  pages
	places *places
	reads  atomic.Int64
	busy   map[string]bool // users that may not search
}

func (s *shelf) get(ctx context.Context, user string) (*query.HistoryPage, error) {
	take := func(ctx context.Context, begun <-chan struct{}) (func(), error) {
		return s.places.take(ctx, begun, "tenant", user)
	}
	return s.pages.get(ctx, "page", user, take, func() (*query.HistoryPage, error) {
		s.reads.Add(1)
		<-time.After(time.Second)
		if s.busy[user] {
			return nil, &searchbudget.BusyError{After: time.Minute, User: true}
		}
		return &query.HistoryPage{Through: 7}, nil
	})
}

func TestFollowersOfOnePageShareItsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{places: newPlaces(4)}
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() {
				page, err := s.get(t.Context(), []string{"ada", "bob", ""}[n%3])
				require.NoError(t, err)
				require.EqualValues(t, 7, page.Through)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, s.reads.Load())
		require.Empty(t, s.pages.reads)
		synctest.Wait() // the place of the read
		require.Empty(t, s.places.shares)
	})
}

func TestPageWaitsForThePlaceOfNoOtherUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{places: newPlaces(4)}
		free, err := s.places.take(t.Context(), nil, "tenant", "ada") // her only one
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { // she is the first one that needs the page
			page, err := s.get(ctx, "ada")
			require.NoError(t, err)
			require.NotNil(t, page)
		})
		synctest.Wait()
		page, err := s.get(ctx, "bob")
		require.NoError(t, err)
		require.NotNil(t, page)
		all.Wait()
		require.EqualValues(t, 1, s.reads.Load(), "she gets what he has read")
		free()
		synctest.Wait()
		require.Empty(t, s.places.shares)
	})
}

func TestPageOfAFollowerThatLeftIsReadForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{places: newPlaces(4)}
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := s.get(ctx, "ada")
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		all.Go(func() {
			_, err := s.get(t.Context(), "bob")
			require.NoError(t, err)
		})
		synctest.Wait()
		leave()
		all.Wait()
		require.EqualValues(t, 1, s.reads.Load())
	})
}

func TestUserThatMayNotSearchKeepsThePageFromNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{places: newPlaces(4), busy: map[string]bool{"ada": true}}
		var all sync.WaitGroup
		all.Go(func() {
			var busy *searchbudget.BusyError
			_, err := s.get(t.Context(), "ada")
			require.ErrorAs(t, err, &busy)
		})
		synctest.Wait()
		_, err := s.get(t.Context(), "bob")
		require.NoError(t, err)
		all.Wait()
	})
}
