package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/oneturntest"
)

// Resources is what a process holds.
type Resources struct {
	Goroutines  int
	Descriptors int // open files and sockets
	Children    int // processes that it started and that have not ended
}

// Use returns what this process holds now, as /proc shows it; it fails where there is none.
func Use() (Resources, error) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return Resources{}, fmt.Errorf("resources: %w", err)
	}
	r := Resources{Goroutines: runtime.NumGoroutine(), Descriptors: len(open) - 1} // one is for the reading
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return Resources{}, fmt.Errorf("resources: %w", err)
	}
	for _, list := range lists {
		pids, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has just ended
		}
		r.Children += len(strings.Fields(string(pids)))
	}
	return r, nil
}

// Settled is invariant I10: it waits until this process holds no more than it did before, at
// most until ctx ends, and returns what it still does. Concurrent tests hold
// each other's: measure in one that runs alone.
func (before Resources) Settled(ctx context.Context) []oneturntest.Violation {
	const look = 20 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		now, err := Use()
		if err != nil {
			return []oneturntest.Violation{{Invariant: "I10", Text: err.Error()}}
		}
		over := before.over(now)
		if len(over) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return over
		}
	}
}

// over is what is held now beyond what was held before.
func (before Resources) over(now Resources) []oneturntest.Violation {
	var found []oneturntest.Violation
	for _, held := range []struct {
		what          string
		before, after int
	}{
		{"goroutines", before.Goroutines, now.Goroutines},
		{"descriptors", before.Descriptors, now.Descriptors},
		{"child processes", before.Children, now.Children},
	} {
		if held.after > held.before {
			found = append(found, oneturntest.Violation{Invariant: "I10", Text: fmt.Sprintf("%d %s, %d before", held.after, held.what, held.before)})
		}
	}
	return found
}

// Orphans is invariant I10 for processes of processes: it waits until no process but this one
// has the variable NAME=value in the environment it was started with, at most until ctx ends,
// and returns those that do. Give the variable to what a test starts.
func Orphans(ctx context.Context, variable string) []oneturntest.Violation {
	const look = 20 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		found := started(variable)
		if len(found) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return found
		}
	}
}

func started(variable string) []oneturntest.Violation {
	lists, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(lists) == 0 {
		return []oneturntest.Violation{{Invariant: "I10", Text: "processes cannot be listed: there is no /proc"}}
	}
	var found []oneturntest.Violation
	own := strconv.Itoa(os.Getpid())
	for _, list := range lists {
		pid := filepath.Base(filepath.Dir(list))
		environ, err := os.ReadFile(list) // of another process, or ended
		if err != nil || pid == own || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+variable+"\x00")) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(list), "comm")) // for the text only
		found = append(found, oneturntest.Violation{Invariant: "I10", Text: fmt.Sprintf("process %s (%s) still runs", pid, bytes.TrimSpace(name))})
	}
	return found
}
