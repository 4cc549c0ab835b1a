package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/throttle"
)

// The times of the keys of an issuer.
const (
	keysFresh   = 10 * time.Minute // then they are read again, while tokens are still checked with them
	keysUsable  = 24 * time.Hour   // how long they are used when they cannot be read
	readPause   = 30 * time.Second // between reads because of a key that is not known
	firstRetry  = time.Second      // after a read that failed; doubled each time up to readPause
	unreadPause = time.Second / 10 // between reads for tokens while no keys were ever read: all users wait for them
	readTimeout = 5 * time.Second
)

// keyCache holds the published keys of an issuer. Reads are shared: a token waits for one only if its key is not known, and
// tokens with known keys never do.
type keyCache struct {
	source *keySource
	now    func() time.Time
	log    *slog.Logger

	ctx    context.Context //nolint:containedctx // the life of the cache: reads outlive the request that starts them
	cancel context.CancelFunc

	running sync.WaitGroup // the read
	lines   throttle.Lines // of the log

	mu       sync.Mutex
	keys     map[string][]publicKey // by kid; nil before the first read
	read     time.Time              // when they were read
	tried    time.Time              // when the last read began or, if it failed, ended
	failures int                    // reads that have failed since
	failed   error                  // of the last one of them
	reading  chan struct{}          // closed when the read that is running ends; nil if there is none
}

func newKeyCache(source *keySource, now func() time.Time, log *slog.Logger) *keyCache {
	ctx, cancel := context.WithCancel(context.Background())
	return &keyCache{source: source, now: now, log: log, ctx: ctx, cancel: cancel}
}

// close ends the read that is running, and waits for it.
func (c *keyCache) close() {
	c.mu.Lock()
	c.cancel() // no other one begins
	c.mu.Unlock()
	c.running.Wait()
}

// find returns the keys with an id. It waits for a read of all keys if it knows none and a read is due.
func (c *keyCache) find(ctx context.Context, kid string) ([]publicKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := c.known(kid)
	pause := c.pause()
	if c.keys == nil {
		pause = unreadPause
	}
	if now := c.now(); c.reading == nil && c.due(now, keys != nil, pause) {
		c.begin(now)
	}
	if reading := c.reading; keys == nil && reading != nil {
		c.mu.Unlock()
		err := waitFor(ctx, reading)
		c.mu.Lock()
		if err != nil {
			return nil, &Error{Code: CodeUnavailable, Msg: "the token could not be checked: try again", RetryAfter: time.Second, Err: err}
		}
		keys = c.known(kid)
	}
	if keys == nil {
		return nil, c.unknown()
	}
	return keys, nil
}

// ready reports why no token can be checked, nil since keys were read. It starts a read that is due.
func (c *keyCache) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys != nil {
		return nil
	}
	if now := c.now(); c.reading == nil && c.due(now, false, c.pause()) {
		c.begin(now)
	}
	if c.failed != nil {
		return fmt.Errorf("the keys of tokens could not be read yet: %w", c.failed)
	}
	return errKeysUnread
}

var errKeysUnread = errors.New("the keys of tokens are not read yet")

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// known returns the keys with an id, unless they are too old to be used.
func (c *keyCache) known(kid string) []publicKey {
	if c.now().Sub(c.read) >= keysUsable {
		return nil
	}
	return c.keys[kid]
}

// due reports whether the keys must be read: they are old or a key is not known, and the last read was a pause ago.
func (c *keyCache) due(now time.Time, known bool, pause time.Duration) bool {
	if c.ctx.Err() != nil || known && now.Sub(c.read) < keysFresh {
		return false
	}
	return c.tried.IsZero() || now.Sub(c.tried) >= pause
}

// pause is how long after the last read the next one may begin, unless users wait for the first keys.
func (c *keyCache) pause() time.Duration {
	if c.failures == 0 {
		return readPause
	}
	return min(firstRetry<<min(c.failures-1, 10), readPause)
}

// unknown is the refusal of a token whose key is not known: the token is invalid if the keys were read, and may be valid if
// they could not be.
func (c *keyCache) unknown() error {
	if c.failures == 0 && c.keys != nil && c.ctx.Err() == nil {
		return invalid(ReasonKey, "the key that signed the token is not known")
	}
	wait := firstRetry
	if c.keys != nil {
		wait = max(c.pause()-c.now().Sub(c.tried), firstRetry)
	}
	return &Error{Code: CodeUnavailable, Msg: "the token cannot be checked now, since the keys of its issuer cannot be read: try again", RetryAfter: wait}
}

// begin starts a read.
func (c *keyCache) begin(now time.Time) {
	done := make(chan struct{})
	c.tried, c.reading = now, done
	c.running.Go(func() { c.fetch(done) })
}

// fetch reads the keys. Tokens do not wait for its log.
func (c *keyCache) fetch(done chan struct{}) {
	ctx, cancel := context.WithTimeout(c.ctx, readTimeout)
	defer cancel()
	keys, skipped, err := c.source.read(ctx)
	failures, pause := c.finish(keys, err)
	close(done)
	if err != nil {
		c.lines.Log(c.ctx, c.log, c.now(), "keys", "", throttle.Several, slog.LevelWarn, "keys of tokens cannot be read", "error", err, "retry_in", pause, "failures", failures)
		return
	}
	c.log.InfoContext(ctx, "keys of tokens were read", "keys", len(keys), "skipped", skipped)
}

func (c *keyCache) finish(keys map[string][]publicKey, err error) (failures int, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = nil
	now := c.now()
	if err != nil {
		c.tried = now
		c.failures++
		c.failed = err
	} else {
		c.keys, c.read, c.failures = keys, now, 0
	}
	return c.failures, c.pause()
}
