package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestsOfAChatWithoutOwnerShareReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o ownerReads
		var mu sync.Mutex
		reads, running, most := map[string]int{}, map[string]int{}, 0
		var all sync.WaitGroup
		for n := range 1_000 {
			key := chatKey{"app", []string{"a", "b"}[n%2]}
			all.Go(func() {
				user, err := o.of(t.Context(), key, func(context.Context) (string, error) {
					mu.Lock()
					reads[key.chat]++
					running[key.chat]++
					most = max(most, running[key.chat])
					mu.Unlock()
					<-time.After(time.Second)
					mu.Lock()
					defer mu.Unlock()
					running[key.chat]--
					return "of " + key.chat, nil
				})
				require.NoError(t, err)
				require.Equal(t, "of "+key.chat, user)
			})
		}
		all.Wait()
		require.Equal(t, 1, most)
		require.LessOrEqual(t, reads["a"], 2, "one that some came too late for, and one for all of those")
		require.LessOrEqual(t, reads["b"], 2)
		require.Empty(t, o.chats)
	})
}

func TestRequestTakesNoReadThatBeganBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o ownerReads
		stored := ""
		read := func(context.Context) (string, error) {
			found := stored
			<-time.After(time.Second)
			return found, t.Context().Err()
		}
		var first sync.WaitGroup
		first.Go(func() { _, _ = o.of(t.Context(), chatKey{"app", "c"}, read) })
		synctest.Wait()
		stored = "ada"
		user, err := o.of(t.Context(), chatKey{"app", "c"}, read)
		require.NoError(t, err)
		require.Equal(t, "ada", user, "the chat had its owner when it was asked")
		first.Wait()
	})
}

func TestRequestThatLeavesEndsTheReadOfNoOther(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var o ownerReads
			key := chatKey{"app", "c"}
			read := func(ctx context.Context) (string, error) {
				select {
				case <-time.After(time.Second):
					return "ada", nil
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}
			var all sync.WaitGroup
			if !begun { // the one that leaves waits for the end of this
				all.Go(func() { _, _ = o.of(t.Context(), key, read) })
				synctest.Wait()
			}
			left := errors.New("left")
			ctx, leave := context.WithCancelCause(t.Context())
			all.Go(func() {
				_, err := o.of(ctx, key, read)
				require.ErrorIs(t, err, left)
			})
			synctest.Wait()
			all.Go(func() {
				user, err := o.of(t.Context(), key, read)
				require.NoError(t, err)
				require.Equal(t, "ada", user)
			})
			synctest.Wait()
			leave(left)
			all.Wait()
			require.Empty(t, o.chats)
		})
	}
}
