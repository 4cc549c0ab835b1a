package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"
)

// tokenCheck is how often the file of tokens is read, when tokens come or connections are open.
const tokenCheck = time.Second

// StaticConfig configures [OpenTokens].
type StaticConfig struct {
	Path string // the file

	Now func() time.Time // default [time.Now]
	Log *slog.Logger     // default: none
}

// StaticTokens authenticates tokens of a file, which has their hashes. It is a list in YAML or JSON:
//
//   - sha256: 9f86d0…             # required, see [HashToken]
//     app: acme                   # required, the tenant or a list
//     user: ada                   # the user, or service: NAME of a program that may name any user
//     roles: operator             # optional, or a list; see [Role]
//     workflows: Generator        # optional, the only one that may be used, or a list
//     chats: c1                   # optional, the only one that may be used, or a list
//     expires: 2027-01-31         # optional, RFC 3339 or a date (UTC); never without it
//
// The file is read again at most once a second, when tokens come and while connections are open, and by [StaticTokens.Reload]. A file that cannot be
// read or has an error changes nothing, so that a mistake does not refuse all tokens. Connections of a token that is
// removed or changed end ([Identity.Context]).
type StaticTokens struct {
	cfg StaticConfig

	reading sync.Mutex // one read of the file at a time
	sum     [sha256.Size]byte
	problem string // the last one that was logged

	mu      sync.RWMutex
	entries []*tokenEntry
	checked time.Time

	watching sync.Mutex
	watchers int           // connections that are open
	unwatch  chan struct{} // closed when the last of them has ended
}

// tokenEntry is a token in use.
type tokenEntry struct {
	staticToken

	revoked context.Context //nolint:containedctx // ends when the entry is removed
	revoke  context.CancelCauseFunc
}

// OpenTokens reads a file of tokens. An error is about the file, a [*diag.Error] if it has mistakes.
func OpenTokens(cfg StaticConfig) (*StaticTokens, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &StaticTokens{cfg: cfg}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Authenticate implements [Authenticator]. All hashes are compared, each in constant time.
func (s *StaticTokens) Authenticate(_ context.Context, r Request) (*Identity, error) {
	switch {
	case r.Token == "":
		return nil, missing()
	case len(r.Token) > MaxToken:
		return nil, invalid(ReasonMalformed, "the token is too large")
	}
	s.refresh()
	sum := sha256.Sum256([]byte(r.Token))
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found *tokenEntry
	for _, e := range s.entries {
		if subtle.ConstantTimeCompare(e.hash[:], sum[:]) == 1 {
			found = e
		}
	}
	switch {
	case found == nil:
		return nil, invalid(ReasonUnknown, "the token is not known")
	case !found.expires.IsZero() && !s.cfg.Now().Before(found.expires):
		return nil, expired()
	}
	return &Identity{
		Apps: slices.Clone(found.apps), User: found.user, Chats: slices.Clone(found.chats), Workflows: slices.Clone(found.workflows),
		Roles: slices.Clone(found.roles), Expires: found.expires, revoked: found.revoked, watch: s.watch,
	}, nil
}

// refresh reads the file if the last read was some time ago. Tokens do not wait for the read of another one.
func (s *StaticTokens) refresh() {
	s.mu.RLock()
	due := s.cfg.Now().Sub(s.checked).Abs() >= tokenCheck // a clock that was set back does not stop it
	s.mu.RUnlock()
	if due && s.reading.TryLock() {
		defer s.reading.Unlock()
		_ = s.reload() // it is logged
	}
}

// watch has the file read while a connection is open, also if no token comes.
func (s *StaticTokens) watch() (stop func()) {
	s.watching.Lock()
	defer s.watching.Unlock()
	if s.watchers++; s.watchers == 1 {
		s.unwatch = make(chan struct{})
		go s.refreshUntil(s.unwatch) // ends with the last connection
	}
	return sync.OnceFunc(func() {
		s.watching.Lock()
		defer s.watching.Unlock()
		if s.watchers--; s.watchers == 0 {
			close(s.unwatch)
		}
	})
}

func (s *StaticTokens) refreshUntil(end <-chan struct{}) {
	tick := time.NewTicker(tokenCheck)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			s.refresh()
		}
	}
}

// Reload reads the file now. With an error, the tokens are the ones before.
func (s *StaticTokens) Reload() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.problem = ""
	return s.reload()
}

func (s *StaticTokens) reload() error {
	changed, err := s.load()
	s.mu.Lock()
	s.checked = s.cfg.Now()
	count := len(s.entries)
	s.mu.Unlock()
	switch {
	case err == nil:
		s.problem = ""
		if changed {
			s.cfg.Log.Info("tokens were read", "tokens", count)
		}
	case s.sum == [sha256.Size]byte{}: // the first read: the error is returned
	case err.Error() != s.problem:
		s.problem = err.Error()
		s.cfg.Log.Error("tokens cannot be read: the ones before remain valid", "error", err, "tokens", count)
	}
	return err
}

// load reads the file, and replaces the tokens if its content is not the one of the last read.
func (s *StaticTokens) load() (changed bool, err error) {
	data, err := readFile(s.cfg.Path)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(data)
	if sum == s.sum {
		return false, nil
	}
	tokens, err := parseTokens(s.cfg.Path, data)
	if err != nil {
		return false, err
	}
	s.sum = sum
	s.replace(tokens)
	return true, nil
}

func newTokenEntry(t staticToken) *tokenEntry {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &tokenEntry{t, ctx, cancel}
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the tokens: %w", err)
	case len(data) > maxTokenFile:
		return nil, fmt.Errorf("read the tokens: %s has more than %d bytes: use the tokens of an issuer", path, maxTokenFile)
	}
	return data, nil
}

// replace uses other tokens. An entry that is the same as before is kept, with its connections.
func (s *StaticTokens) replace(tokens []staticToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[[sha256.Size]byte]*tokenEntry{}
	for _, e := range s.entries {
		before[e.hash] = e
	}
	entries := make([]*tokenEntry, 0, len(tokens))
	for _, t := range tokens {
		e := before[t.hash]
		if e != nil && reflect.DeepEqual(e.staticToken, t) {
			delete(before, t.hash)
		} else {
			e = newTokenEntry(t)
		}
		entries = append(entries, e)
	}
	for _, e := range before {
		e.revoke(invalid(ReasonUnknown, "the token was revoked"))
	}
	s.entries = entries
}
