package oneturntest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/oneturn/oneturn/tool"
)

// Phases of a [LedgerEntry].
const (
	PhaseEnter    = "enter"
	PhaseExit     = "exit"
	PhaseAsk      = "ask"      // about to ask
	PhaseAnswered = "answered" // the tool got the answer: the code after it begins
	PhaseStep     = "step"     // a step was entered
)

// Ledger records tool runs independently of NATS: a tool appends a line to a file when it is
// entered and another before it returns. A process that is killed in between leaves only the
// first line.
type Ledger struct{ f *os.File }

// LedgerEntry is one line of a [Ledger].
type LedgerEntry struct {
	Phase string `json:"phase"`          // PhaseEnter and so on
	Name  string `json:"name,omitempty"` // of the question, its id in the call, or of the step
	App   string `json:"app"`
	Chat  string `json:"chat"`
	Run   string `json:"run,omitempty"`
	Turn  string `json:"turn"`
	Call  string `json:"call,omitempty"` // tool_call_id of the call; "" is the turn's own call, not a step of a program
	Key   string `json:"key"`            // idempotency key
	Token uint64 `json:"token"`          // fencing token
	Epoch int    `json:"epoch"`
	// Attempt is from 2 on if the same run of the tool is tried again after an error that it marked as retryable.
	Attempt int   `json:"attempt,omitempty"`
	PID     int   `json:"pid"`
	UnixNS  int64 `json:"ns"`
}

// OpenLedger opens or creates a ledger. Any number of processes may append to one file.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{f}, nil
}

// Close closes the file.
func (l *Ledger) Close() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// Enter records that the tool of a call was entered.
func (l *Ledger) Enter(call tool.CallInfo) error { return l.write(PhaseEnter, "", call) }

// Exit records that the tool of a call is about to return.
func (l *Ledger) Exit(call tool.CallInfo) error { return l.write(PhaseExit, "", call) }

// Ask records that the tool is about to ask a question: its name or, without one, its number.
func (l *Ledger) Ask(call tool.CallInfo, question string) error {
	return l.write(PhaseAsk, question, call)
}

// Answered records that the tool got the answer to a question, or that the question expired.
func (l *Ledger) Answered(call tool.CallInfo, question string) error {
	return l.write(PhaseAnswered, question, call)
}

// Step records, inside the step, that it was entered.
func (l *Ledger) Step(call tool.CallInfo, name string) error { return l.write(PhaseStep, name, call) }

func (l *Ledger) write(phase, name string, call tool.CallInfo) error {
	line, err := json.Marshal(LedgerEntry{
		Phase: phase, Name: name, App: call.App, Chat: call.Chat, Run: call.Run, Turn: call.Turn, Call: call.CallID,
		Key: call.IdempotencyKey, Token: call.FencingToken, Epoch: call.Epoch, Attempt: call.Attempt, PID: os.Getpid(), UnixNS: time.Now().UnixNano(),
	})
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if _, err := l.f.Write(append(line, '\n')); err != nil { // one write: lines never mix
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// ReadLedger returns the lines of a ledger; none when the file does not exist. A last line
// that a killed process left unfinished is ignored.
func ReadLedger(path string) ([]LedgerEntry, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer f.Close()
	var entries []LedgerEntry
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var e LedgerEntry
		if json.Unmarshal(scan.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
