package throttle_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/throttle"
)

// paper is a log with a clock.
type paper struct {
	throttle.Lines

	t     *testing.T
	text  bytes.Buffer
	now   time.Time
	level slog.Level
}

func (p *paper) write(n int, kind, tenant string) (lines int) {
	before := p.count()
	log := slog.New(slog.NewTextHandler(&p.text, &slog.HandlerOptions{Level: p.level}))
	for i := range n {
		p.Log(p.t.Context(), log, p.now, kind, tenant, throttle.Several, slog.LevelWarn, "refused", "i", i)
	}
	return p.count() - before
}

func (p *paper) count() int { return strings.Count(p.text.String(), "level=WARN") }

func newPaper(t *testing.T) *paper {
	t.Helper()
	return &paper{t: t, now: time.Unix(1_000_000, 0)}
}

func TestLineThatFollowsOthersHasTheirNumber(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	require.Equal(t, throttle.Several, p.write(1_000, "a", "acme"))
	require.NotContains(t, p.text.String(), "suppressed")
	p.now = p.now.Add(time.Minute)
	require.Equal(t, 1, p.write(1, "a", "acme"))
	require.Contains(t, p.text.String(), fmt.Sprintf("i=0 suppressed=%d\n", 1_000-throttle.Several))
	p.text.Reset()
	require.Equal(t, 1, p.write(1, "a", "acme"))
	require.NotContains(t, p.text.String(), "suppressed", "they are reported once")
}

func TestTenantsAndKindsHaveTheirOwnLines(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	p.write(1_000, "a", "acme")
	require.Equal(t, 3, p.write(3, "a", "beta"), "a tenant takes no lines of another")
	require.Equal(t, 3, p.write(3, "b", "acme"))
}

func TestLinesOfAllTenantsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	var first, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&first)
	lines := 0
	for i := range 200_000 {
		lines += p.write(1, "a", fmt.Sprint("tenant-that-does-not-exist-", i))
		if i%1_000 == 0 {
			p.text.Reset()
		}
	}
	require.Equal(t, 10*throttle.Several, lines)
	runtime.GC()
	runtime.ReadMemStats(&now)
	require.Less(t, int64(now.HeapAlloc)-int64(first.HeapAlloc), int64(4<<20))
	p.now = p.now.Add(time.Minute)
	require.Equal(t, 1, p.write(1, "a", "acme"))
	require.Contains(t, p.text.String(), "suppressed=", "nothing is lost when tenants are forgotten")
}

func TestAllLinesAreThereAtLevelDebug(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	p.level = slog.LevelDebug
	require.Equal(t, throttle.Several, p.write(100, "a", "acme"))
	require.Equal(t, 100, strings.Count(p.text.String(), "msg=refused"))
}

func TestClockThatIsPutBackStopsNoLines(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	p.write(1_000, "a", "acme")
	p.now = p.now.Add(-time.Hour)
	require.Equal(t, 1, p.write(1, "a", "acme"))
}

func TestLineWhoseTimeIsJustBeforeTheWindowIsCountedInIt(t *testing.T) {
	t.Parallel()
	p := newPaper(t)
	p.write(1_000, "a", "acme")
	p.now = p.now.Add(-time.Millisecond) // another goroutine has read the clock later and came first
	require.Zero(t, p.write(1, "a", "acme"))
}
