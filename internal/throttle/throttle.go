// Package throttle bounds lines of a log that others can cause as often as they like, by a message that
// is refused for example. Some are written in each minute, for each kind of line and each tenant, and
// the next one after that has the number of those that were not.
package throttle

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/excerpt"
)

// Bounds of [Lines].
const (
	// window is how long lines are counted before they may be written again.
	window = time.Minute
	// ofAll is how many times the lines of one tenant the lines of all tenants may be.
	ofAll = 10
	// maxKeys is how many kinds and tenants are counted separately. Any more tenants share what is left of a
	// kind, which is bounded for all of them.
	maxKeys = 4_096
)

// Several is how many lines of a kind a tenant may cause in a minute where one line is not enough.
const Several = 10

// Lines counts lines of a log. The zero value is usable, and safe for concurrent use.
type Lines struct {
	mu    sync.Mutex
	known map[key]*count
	swept time.Time
}

// key names lines that are counted together; an empty tenant stands for all.
type key struct{ kind, tenant string }

type count struct {
	since      time.Time
	lines      int // since then
	suppressed int // since the last line
}

// Log writes a line at its level if the tenant has caused fewer than most of this kind in the last
// minute, and at level debug otherwise. A line that follows some that were not written has their number as
// "suppressed". There should be few kinds; the tenant may come from outside.
func (l *Lines) Log(ctx context.Context, log *slog.Logger, now time.Time, kind, tenant string, most int, level slog.Level, msg string, args ...any) {
	suppressed, ok := l.take(kind, tenant, most, now)
	switch {
	case !ok:
		level = slog.LevelDebug
	case suppressed > 0:
		args = append(args, "suppressed", suppressed)
	}
	log.Log(ctx, level, msg, args...) //nolint:sloglint // it is a constant of the caller
}

// take counts a line, and reports whether it is to be written and how many before it were not.
func (l *Lines) take(kind, tenant string, most int, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.count(key{kind: kind}, now)
	one := all
	if k := (key{kind, tenant}); l.known[k] != nil || len(l.known) < maxKeys || l.sweep(now) {
		one = l.count(k, now)
	}
	if all.lines >= most*ofAll || one != all && one.lines >= most || tenant == "" && all.lines >= most {
		one.suppressed++
		return 0, false
	}
	all.lines++
	suppressed, all.suppressed = all.suppressed, 0 // of tenants that have no count
	if one != all {
		one.lines++
		suppressed, one.suppressed = suppressed+one.suppressed, 0
	}
	return suppressed, true
}

// count returns what is counted under a key.
func (l *Lines) count(k key, now time.Time) *count {
	c := l.known[k]
	if c == nil {
		if l.known == nil {
			l.known = map[key]*count{}
		}
		c = &count{since: now}
		l.known[k] = c
	}
	if !within(c.since, now) {
		c.since, c.lines = now, 0
	}
	return c
}

// within reports whether a time is in the window that began at since, or just before it: callers read the clock before they take the
// lock, so their times may come in another order. A clock that was set back begins a new window.
func within(since, now time.Time) bool { return now.Sub(since).Abs() < window }

// sweep forgets what is older than a window, once in each, and reports whether there is room. The
// numbers of a tenant's lines are added to the numbers of all.
func (l *Lines) sweep(now time.Time) bool {
	if within(l.swept, now) {
		return len(l.known) < maxKeys
	}
	l.swept = now
	for k, c := range l.known {
		if k.tenant == "" || within(c.since, now) {
			continue
		}
		if all := l.known[key{kind: k.kind}]; all != nil {
			all.suppressed += c.suppressed
		}
		delete(l.known, k)
	}
	return len(l.known) < maxKeys
}

// Cut bounds a subject or an id for the log, at 200 bytes.
func Cut(text string) string {
	const most = 200
	return excerpt.Of(text, most)
}
