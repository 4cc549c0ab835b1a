package engine_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/internal/engine"
)

func key(i int) engine.CacheKey {
	var k engine.CacheKey
	copy(k[:], strconv.Itoa(i))
	return k
}

func TestCacheForgetsWhatIsTooOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := engine.NewLRU(0)
		c.Put(key(1), json.RawMessage(`1`), time.Minute)
		c.Put(key(2), json.RawMessage(`2`), 0)
		<-time.After(time.Minute - 1)
		v, ok := c.Get(key(1))
		require.True(t, ok)
		require.JSONEq(t, `1`, string(v))
		_, ok = c.Get(key(2))
		require.False(t, ok)
		<-time.After(1)
		_, ok = c.Get(key(1))
		require.False(t, ok)
		results, bytes := c.Size()
		require.Zero(t, results)
		require.Zero(t, bytes)
	})
}

func TestCacheMakesRoomWithWhatWasUsedLeastRecently(t *testing.T) {
	t.Parallel()
	c := engine.NewLRU(10_000)
	value := json.RawMessage(strings.Repeat("1", 744)) // takes 1000 bytes
	for i := range 10 {
		c.Put(key(i), value, time.Hour)
	}
	_, ok := c.Get(key(0))
	require.True(t, ok)
	c.Put(key(10), value, time.Hour)
	_, ok = c.Get(key(0))
	require.True(t, ok)
	_, ok = c.Get(key(1))
	require.False(t, ok)
	c.Put(key(0), json.RawMessage(strings.Repeat("1", 2000)), time.Hour)
	_, ok = c.Get(key(0))
	require.False(t, ok, "one that is an eighth of the cache is not kept, nor is the result that it would replace")
	c = engine.NewLRU(-1)
	c.Put(key(0), value, time.Hour)
	_, ok = c.Get(key(0))
	require.False(t, ok)
}

func TestCacheStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20_000).Draw(t, "most")
		c, values := engine.NewLRU(most), map[int]string{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, 30).Draw(t, "key")
			if rapid.Bool().Draw(t, "put") {
				values[i] = strings.Repeat("1", rapid.IntRange(0, 4000).Draw(t, "size"))
				c.Put(key(i), json.RawMessage(values[i]), time.Hour)
			}
			if v, ok := c.Get(key(i)); ok {
				require.Equal(t, values[i], string(v))
			}
			results, bytes := c.Size()
			require.LessOrEqual(t, bytes, most)
			require.GreaterOrEqual(t, bytes, results*256)
		}
	})
}
