package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of what one sweep hands to the next.
const (
	maxCarried      = 10_000
	maxCarriedBytes = 256 << 10
)

// SweepState is what one sweep hands to the next: it travels in the schedule of the next one.
// The zero value is a sweep of the whole journal.
type SweepState struct {
	From uint64      `json:"from"`           // first sequence of the journal that was not read
	Open []OpenClaim `json:"open,omitempty"` // turns before it that were open
}

// OpenClaim is a turn that was open when a sweep last looked.
type OpenClaim struct {
	Key string `json:"key"` // <app>.<chat>.<turn>.<call>
	Seq uint64 `json:"seq"` // of its claim
	// Secret says that something is sealed of it, to be erased when it has ended.
	Secret bool `json:"secret,omitempty"`
}

// carry takes over the oldest open claims, as many as one message holds. The rest are read
// again: the next sweep begins at the first of them.
func (s *SweepState) carry(open []openClaim) {
	size := 0
	s.Open = make([]OpenClaim, 0, min(len(open), maxCarried))
	for _, c := range open {
		key := c.key.String()
		size += len(key) + len(`{"key":"","seq":18446744073709551615,"secret":true},`)
		if len(s.Open) == maxCarried || size > maxCarriedBytes {
			s.From = min(s.From, c.seq)
			return
		}
		s.Open = append(s.Open, OpenClaim{Key: key, Seq: c.seq, Secret: c.secret})
	}
}

func (s *SweepState) claims() map[subjects.Key]openClaim {
	claims := make(map[subjects.Key]openClaim, len(s.Open))
	for _, c := range s.Open {
		if key, ok := subjects.ParseCall(c.Key); ok {
			claims[key] = openClaim{key: key, seq: c.Seq, secret: c.Secret}
		}
	}
	return claims
}

// Encode writes the state as JSON.
func (s *SweepState) Encode() []byte {
	return jsonOf(s)
}

// DecodeSweepState reads a state, and refuses what no sweep has written.
func DecodeSweepState(data []byte) (SweepState, error) {
	const op = "decode the state of a sweep"
	bad := func(format string, args ...any) (SweepState, error) {
		return SweepState{}, &events.Error{Code: events.CodeBadArgs, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	tree, err := events.Decode(data)
	if err != nil {
		return SweepState{}, &events.Error{Code: events.CodeBadArgs, Op: op, Err: err}
	}
	top, ok := tree.(map[string]any)
	if !ok {
		return bad("it is no object")
	}
	var s SweepState
	if s.From, ok = sequence(top["from"]); !ok {
		return bad("from is no sequence")
	}
	open, ok := top["open"].([]any)
	if !ok && top["open"] != nil || len(open) > maxCarried {
		return bad("open is no list of at most %d turns", maxCarried)
	}
	s.Open = make([]OpenClaim, len(open))
	for i, v := range open {
		entry, _ := v.(map[string]any)
		c := OpenClaim{}
		c.Key, _ = entry["key"].(string)
		c.Secret, _ = entry["secret"].(bool)
		c.Seq, ok = sequence(entry["seq"])
		if _, isKey := subjects.ParseCall(c.Key); !ok || !isKey {
			return bad("open/%d is no turn", i)
		}
		s.Open[i] = c
	}
	return s, nil
}

func sequence(v any) (uint64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(n.String(), 10, 64)
	return seq, err == nil
}

// leaderRead asks the leader of a stream for a message and returns its sequence, or
// [idempotency.ErrNotFound].
func leaderRead(ctx context.Context, nc *nats.Conn, stream, request string) (uint64, error) {
	m, err := leaderMessage(ctx, nc, stream, request)
	if err != nil {
		return 0, err
	}
	return m.Seq, nil
}
