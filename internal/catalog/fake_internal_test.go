package catalog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

// fake is a bucket in memory, whose records expire as on a server.
type fake struct {
	mu            sync.Mutex
	stored        []entry
	seq           uint64
	reads, writes int
	err           error // of reads
}

func (f *fake) read(context.Context) (contents, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.err != nil {
		return contents{}, f.err
	}
	f.stored = slices.DeleteFunc(f.stored, func(e entry) bool { return time.Since(e.time) >= TTL })
	return contents{time.Now(), slices.Clone(f.stored)}, nil
}

func (f *fake) write(_ context.Context, subject string, data []byte, seq uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var have uint64
	at := slices.IndexFunc(f.stored, func(e entry) bool { return e.subject == subject })
	if at >= 0 {
		have = f.stored[at].seq
	}
	if have != seq {
		return errTaken
	}
	if at >= 0 {
		f.stored = slices.Delete(f.stored, at, at+1)
	}
	f.seq++
	f.writes++
	f.stored = append(f.stored, entry{subject, f.seq, time.Now(), data})
	return nil
}

func (f *fake) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// counts returns how often was read and written.
func (f *fake) counts() (reads, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads, f.writes
}

// lines is a log as text.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func space(t *testing.T) subjects.Space {
	t.Helper()
	s, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return s
}

// pass lets time pass on the clock of a synctest bubble.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	require.NoError(t, pause.For(t.Context(), d))
	synctest.Wait()
}

var errAway = errors.New("the server is away")
