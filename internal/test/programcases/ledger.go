package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Ledger is the file in which tools record that they were entered and left. One write appends one line, so
// what a process has recorded survives its SIGKILL.
type Ledger struct {
	mu      sync.Mutex
	file    *os.File
	entered map[string]int // by tool, runs in earlier processes included
	lines   int
}

// ledgerLine is a line of a ledger: an entry with its data, or with To alone the end of one.
type ledgerLine struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool,omitempty"`
	Call  string          `json:"call,omitempty"` // tool_call_id
	Args  json.RawMessage `json:"args,omitempty"`
	Key   string          `json:"key,omitempty"`
	Token uint64          `json:"token,omitempty"`
	Epoch int             `json:"epoch,omitempty"`
	From  time.Time       `json:"from,omitzero"`
	To    time.Time       `json:"to,omitzero"`

	Attempt int  `json:"attempt,omitempty"`
	Stopped bool `json:"stopped,omitempty"` // the end of an entry whose tool was stopped: the turn was parked, for example
}

// openLedger opens the file at path, which is created if it does not exist.
func openLedger(path string) (*Ledger, error) {
	earlier, err := readLedger(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller names it
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	l := &Ledger{file: file, entered: map[string]int{}}
	for _, line := range earlier {
		l.entered[line.Tool]++
	}
	return l, nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() } //nolint:wrapcheck // it names the file

// enter records that a tool was entered and returns how often it has been, this time included. Left records
// the end of this run of the tool.
func (l *Ledger) enter(line ledgerLine) (n int, left func(stopped bool), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines++
	line.ID, line.From = fmt.Sprintf("%d-%d", os.Getpid(), l.lines), time.Now()
	if err := l.write(&line); err != nil {
		return 0, nil, err
	}
	l.entered[line.Tool]++
	return l.entered[line.Tool], func(stopped bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.write(&ledgerLine{ID: line.ID, To: time.Now(), Stopped: stopped}) // without it the tool counts as still running
	}, nil
}

func (l *Ledger) write(line *ledgerLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	if _, err := l.file.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

// readLedger returns the entries in a ledger, in the order in which they were recorded; none if there is no file.
func readLedger(path string) ([]ledgerLine, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the caller names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var entries []ledgerLine
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		var line ledgerLine
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		if !line.From.IsZero() {
			entries = append(entries, line)
			continue
		}
		if i := slices.IndexFunc(entries, func(e ledgerLine) bool { return e.ID == line.ID }); i >= 0 {
			entries[i].To, entries[i].Stopped = line.To, line.Stopped
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return entries, nil
}
