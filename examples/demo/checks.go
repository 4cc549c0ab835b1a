// checks.go reads the evidence: the ledger file, events as a subscriber sees them, and the
// workers' metrics. None of them depends on what the journal of the turns reports.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
)

// Variables that name the ledger for the tools of the examples.
const (
	helloLedger  = "HELLO_LEDGER"
	studioLedger = "STUDIO_LEDGER"
	tripLedger   = "TRIP_LEDGER"
)

// ledger is the path of the file to which the tools add a line for each run.
type ledger string

// run is one line of the ledger.
type run struct {
	Tool   string `json:"tool"`
	What   string `json:"what"` // the step that a tool with questions has reached, "" for other tools
	Turn   string `json:"turn"`
	Epoch  int    `json:"epoch"`  // 1 for the first owner of the turn
	Worker int    `json:"worker"` // process id of the worker
}

// of returns the runs of a turn. A line that is being written is left for later.
func (l ledger) of(turn string) ([]run, error) {
	text, err := os.ReadFile(string(l))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var runs []run
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var r run
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		if r.Turn == turn {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// wait returns the first run of a turn.
func (l ledger) wait(ctx context.Context, turn string) (run, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		runs, err := l.of(turn)
		if err != nil {
			return run{}, err
		}
		if len(runs) > 0 {
			return runs[0], nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return run{}, fmt.Errorf("no run of turn %s in the ledger: %w", turn, context.Cause(ctx))
		}
	}
}

// tally counts events. The zero value counts the events of each turn.
type tally struct {
	key func(data map[string]any) string // what counts together, "" for what does not count; nil = the turn

	mu sync.Mutex
	n  map[string]int // by key
}

// event counts one event. An event without a turn is counted too, so that a check fails.
func (t *tally) event(body []byte) {
	turn := "without a turn"
	if m, err := events.Parse(body); err == nil {
		if t.key != nil {
			turn = t.key(m.Data)
		} else if name, ok := m.Data["turn"].(string); ok {
			turn = name
		}
	}
	if turn == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[turn]++
}

// settle is how long a tally may take to see what has been sent.
const settle = 2 * time.Second

// wait returns the counts once events of so many keys were seen, or after settle.
func (t *tally) wait(ctx context.Context, keys int) map[string]int {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		counts := maps.Clone(t.n)
		t.mu.Unlock()
		if len(counts) >= keys {
			return counts
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return counts
		}
	}
}

// scrape reads a metric without labels from a worker's /metrics.
func scrape(ctx context.Context, base, name string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("scrape %s: %w", base, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("scrape %s: %w", base, err)
	}
	defer resp.Body.Close()
	return metric(io.LimitReader(resp.Body, 8<<20), name)
}

// metric finds a metric without labels in Prometheus' text format.
func metric(text io.Reader, name string) (int, error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), name+" ")
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		return int(n), nil
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("metric %s: %w", name, err)
	}
	return 0, fmt.Errorf("metric %s not found", name)
}
