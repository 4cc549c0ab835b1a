package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A batch of direct gets (NATS 2.11) reads the last message of each subject that filters match, in the order of their sequences. Any
// server with a copy of the stream answers, also one that lags. It reads under the lock of the stream's store: where it has to load a
// part of the stream that the server does not have in memory, writes of that copy wait. Subjects without wildcards are cheaper: if a
// subject that a wildcard matches is first written during the request, the server looks for an older message of it in the whole stream.

// Errors of [LastMessages].
var (
	ErrTooManySubjects = errors.New("the filters match over 1024 subjects")
	ErrNoDirect        = errors.New("no server answers direct reads of the stream")

	errIncomplete = errors.New("messages of the reply are missing")
)

// Last selects messages for [LastMessages].
type Last struct {
	Filters []string // subjects, with or without wildcards
	From    uint64   // sequence of the first message, 0 for all
	Most    int      // messages
	Bytes   int      // after which the reply ends
}

// LastPage is a reply of [LastMessages].
type LastPage struct {
	Messages []LastMessage
	More     bool   // the reply ends before the last message
	UpTo     uint64 // last sequence of the copy that has answered; 0 if it has no message of the subjects
}

// LastMessage is one of its messages.
type LastMessage struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  nats.Header
	Data    []byte
}

// LastMessages returns a page of the last messages of subjects. It fails with [ErrTooManySubjects], and with [ErrNoDirect] if there is
// no such stream. It ends after [Timeout].
func LastMessages(ctx context.Context, nc *nats.Conn, stream string, get Last) (*LastPage, error) {
	body := struct {
		Filters []string `json:"multi_last"`
		From    uint64   `json:"seq,omitempty"`
		Most    int      `json:"batch,omitempty"`
		Bytes   int      `json:"max_bytes,omitempty"`
	}{get.Filters, get.From, get.Most, get.Bytes}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	replies, err := nc.SubscribeSync(nc.NewRespInbox())
	if err != nil {
		return nil, fmt.Errorf("read from stream %s: %w", stream, err)
	}
	defer func() { _ = replies.Unsubscribe() }() // fails only on a closed connection
	if err = nc.PublishRequest("$JS.API.DIRECT.GET."+stream, replies.Subject, data); err != nil {
		return nil, fmt.Errorf("read from stream %s: %w", stream, err)
	}
	page := &LastPage{}
	for last := uint64(0); ; {
		m, err := replies.NextMsgWithContext(ctx)
		if err == nil && m.Header.Get("Status") == "" {
			last, err = page.add(m, last)
		} else if err == nil {
			err = page.end(m, last)
			if err == nil {
				return page, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read from stream %s: %w", stream, err)
		}
	}
}

// add appends a message and returns its sequence. Each names the one before: a reply that lost one is not used.
func (p *LastPage) add(m *nats.Msg, last uint64) (uint64, error) {
	before, err1 := strconv.ParseUint(m.Header.Get("Nats-Last-Sequence"), 10, 64)
	seq, err2 := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	at, err3 := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	if err := errors.Join(err1, err2, err3); err != nil || before != last {
		return last, errIncomplete // or its headers cannot be decoded
	}
	p.Messages = append(p.Messages, LastMessage{Subject: m.Header.Get("Nats-Subject"), Seq: seq, Time: at, Header: m.Header, Data: m.Data})
	return seq, nil
}

// end reads the message that ends a reply.
func (p *LastPage) end(m *nats.Msg, last uint64) error {
	switch status := m.Header.Get("Status"); {
	case status == "404" && m.Header.Get("Description") == "No Results":
		return nil
	case status == "503":
		return ErrNoDirect
	case status == "413":
		return ErrTooManySubjects
	case status != "204":
		return &jetstream.APIError{Description: status + " " + m.Header.Get("Description")}
	}
	sent, err1 := strconv.ParseUint(m.Header.Get("Nats-Last-Sequence"), 10, 64)
	pending, err2 := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
	upTo, err3 := strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
	if errors.Join(err1, err2, err3) != nil || sent != last {
		return errIncomplete
	}
	p.More, p.UpTo = pending > 0, upTo
	return nil
}
