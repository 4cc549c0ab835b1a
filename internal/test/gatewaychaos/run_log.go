package gatewaychaos

import (
	"slices"
)

// RunLog is what one stream of AG-UI showed: a snapshot of its chat, and what was stored later.
type RunLog struct {
	Name     string // for violations
	Chat     string
	Own      []string // ids of messages of the user and of results that the client sent with the run
	Snapshot []Item
	Cursor   uint64  // sequence up to which the snapshot goes, 0 without one
	Bursts   []Burst // in the order in which they came
	Through  uint64  // sequence up to which it has to have shown everything, 0 if it may have ended anywhere

	Broken []string // rules of the protocol that it broke
}

// Burst is what a stream showed of one record.
type Burst struct {
	Sequence uint64
	Items    []Item
}

// Check compares the log with the journal.
func (l *RunLog) Check(j *Journal, v *Verdict) {
	records := j.Records(l.Chat)
	d := differences{texts: slices.Clone(l.Broken)}
	l.checkSnapshot(records, &d)
	last := l.Cursor
	for _, b := range l.Bursts {
		if j.ChatOf(b.Sequence) != l.Chat {
			d.addf("showed record %d of chat %q", b.Sequence, j.ChatOf(b.Sequence))
		}
		if b.Sequence <= last {
			d.addf("showed record %d again, or late: it was at %d", b.Sequence, last)
		}
		last = max(last, b.Sequence)
	}
	l.checkBursts(records, last, &d)
	for _, r := range records {
		if r.Sequence > last && r.Sequence <= l.Through && len(r.Items) > 0 {
			d.addf("did not show record %d, %s, at its end", r.Sequence, r.Kind)
		}
	}
	if len(d.texts) > 0 {
		v.Brokenf("G2", "%s, chat %s, cursor %d: %s", l.Name, l.Chat, l.Cursor, d.String())
	}
}

// checkSnapshot compares the snapshot with the chat up to its cursor. Messages of the run that are not stored yet come last.
func (l *RunLog) checkSnapshot(records []Record, d *differences) {
	var want []Item
	for _, r := range records {
		if r.Sequence <= l.Cursor {
			want = fold(want, r.Items)
		}
	}
	got := slices.DeleteFunc(slices.Clone(l.Snapshot), func(i Item) bool { // a result that the client has stands for one that is not read yet
		return i.Kind == itemResult && slices.Contains(l.Own, i.ID) && !slices.ContainsFunc(want, i.same)
	})
	for len(got) > len(want) && got[len(got)-1].Kind == itemUser && slices.Contains(l.Own, got[len(got)-1].ID) {
		got = got[:len(got)-1]
	}
	compare("the snapshot", want, got, d)
}

// checkBursts compares what was shown of each record with the chat.
func (l *RunLog) checkBursts(records []Record, last uint64, d *differences) {
	var want, got []Item
	for _, r := range records {
		if r.Sequence > l.Cursor && r.Sequence <= last {
			want = append(want, l.notOwn(r.Items)...)
		}
	}
	for _, b := range l.Bursts {
		got = append(got, l.notOwn(b.Items)...)
		at, found := slices.BinarySearchFunc(records, b.Sequence, func(r Record, s uint64) int { return int(int64(r.Sequence) - int64(s)) })
		if !found {
			continue
		}
		compare("a burst", l.notOwn(records[at].Items), l.notOwn(b.Items), d)
	}
	compare("the stream", want, got, d)
}

// notOwn returns items without the messages and results that the client has sent, which a stream need not send back.
func (l *RunLog) notOwn(items []Item) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return slices.Contains(l.Own, i.ID) })
}

// compare reports where lists of items differ first.
func compare(where string, want, got []Item, d *differences) {
	for n := range max(len(want), len(got)) {
		switch {
		case n >= len(got):
			d.addf("%s lacks %s", where, want[n])
		case n >= len(want):
			d.addf("%s has %s, which is too much", where, got[n])
		case !want[n].same(got[n]) && want[n].String() == got[n].String():
			d.addf("%s has %s with another content", where, got[n])
		case !want[n].same(got[n]):
			d.addf("%s has %s in place of %s", where, got[n], want[n])
		default:
			continue
		}
		return
	}
}
