package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/subjects"
)

// State is where the sweeps of a journal are. The open turns that they know are a queue of
// pages: a sweep checks the oldest page first, and appends what stays open after the newest, so that no
// turn waits for others forever. The zero value is a sweep of the whole journal.
type State struct {
	From  uint64 `json:"from"`            // first sequence of the journal that was not read
	First uint64 `json:"first,omitempty"` // oldest page
	Next  uint64 `json:"next,omitempty"`  // that will be written next
	Open  int    `json:"open,omitempty"`  // turns in all pages
}

// OpenTurn is a turn that had no response when a sweep last checked it, and why nothing had to be done.
// One read shows whether that still holds.
type OpenTurn struct {
	Key string `json:"key"` // <app>.<chat>.<turn>.<call>
	Seq uint64 `json:"seq"` // of its claim
	At  int64  `json:"at"`  // time of its claim, Unix seconds by the server's clock; 0 if it is not known

	Newest uint64 `json:"newest,omitempty"` // sequence of the newest record after the claim that a sweep has seen: a read that lacks it is stale
	Parked uint64 `json:"parked,omitempty"` // it is parked, and this is the sequence of its newest record
	Held   uint64 `json:"held,omitempty"`   // sequence of the message that holds it
	Stream string `json:"stream,omitempty"` // of that message
	Resume uint64 `json:"resume,omitempty"` // sequence of the last resume in the inbound stream
	// Message is set if it is a message of an agent or a user, from which not all has followed.
	Message bool `json:"message,omitempty"`
	// Of is the key of the turn that a message waits for, "" if it waits for none.
	Of string `json:"of,omitempty"`
	// Secret is set if the turn has sealed records, which are to be erased when it has ended.
	Secret bool `json:"secret,omitempty"`
}

// claim returns the sequence of the claim, 0 if it is not known.
func (o *OpenTurn) claim() uint64 {
	if o.At == 0 {
		return 0
	}
	return o.Seq
}

// parked reports whether the turn was parked when its newest record was read, which a stale read does not show.
func (o *OpenTurn) parked() bool { return o.Parked > 0 && o.Parked >= o.Newest }

// age is the time since the claim, and whether it is known.
func (o *OpenTurn) age(now time.Time) (time.Duration, bool) {
	return now.Sub(time.Unix(o.At, 0)), o.At != 0
}

// note records what was found, for the next check.
func (o *OpenTurn) note(f *Finding, resume uint64) {
	o.Parked, o.Held, o.Stream, o.Of, o.Resume = 0, 0, "", "", resume
	if o.At == 0 && f.Turn != nil && f.Turn.Claim != nil {
		o.Seq, o.At = f.Turn.Claim.Seq, f.Turn.Claim.Time.Unix()
	}
	switch {
	case f.Of != subjects.Key{}:
		o.Of = f.Of.String()
	case f.Text != nil && f.Condition == TurnHeld:
		o.Held, o.Stream = f.Text.Meta.Lease.Seq, f.Text.Meta.Lease.Stream
	case f.Turn == nil:
	case f.Condition == TurnParked:
		for _, r := range f.Turn.Records {
			o.Parked = max(o.Parked, r.Seq)
		}
		o.Newest = max(o.Newest, o.Parked)
	case f.Condition == TurnHeld:
		o.Held, o.Stream = f.Turn.Lease.Seq, f.Turn.Lease.Stream
	}
}

// Page is some open turns.
type Page struct {
	// Known is the first sequence of the journal that had not been read when they were checked:
	// their newer records have this sequence or a later one.
	Known uint64     `json:"known"`
	Turns []OpenTurn `json:"turns"`
}

// decodePage reads a page of open turns.
func decodePage(data []byte) (Page, error) {
	var page Page
	if err := json.Unmarshal(data, &page); err != nil {
		return Page{}, fmt.Errorf("%w: decode it: %w", errPageLost, err)
	}
	for i := range page.Turns {
		if _, ok := subjects.ParseCall(page.Turns[i].Key); !ok {
			return Page{}, fmt.Errorf("%w: %d is not a turn", errPageLost, i)
		}
	}
	return page, nil
}

// errPageLost is the error of a page that is gone or cannot be decoded. The journal can be read again.
var errPageLost = errors.New("a page of open turns is lost")
