package gatewaychaos

import (
	"fmt"
	"slices"
)

// SocketLog is what one tab got: the stored events of its chat after a cursor, over however many WebSockets.
type SocketLog struct {
	Name    string // for violations
	Chat    string
	After   uint64 // the cursor that it began with
	Frames  []Frame
	Through uint64 // sequence up to which it has to have everything, 0 if it may have ended anywhere
}

// Frame is a stored event that a tab got.
type Frame struct {
	Sequence uint64
	Sum      uint64
}

// maxDifferences bounds the reported differences of one log.
const maxDifferences = 5

// Check compares the log with the journal.
func (l *SocketLog) Check(j *Journal, v *Verdict) {
	last := l.Through
	for _, f := range l.Frames {
		last = max(last, f.Sequence)
	}
	want := slices.DeleteFunc(j.Records(l.Chat), func(r Record) bool { return !r.Visible || r.Sequence <= l.After || r.Sequence > last })
	d := differences{}
	at := 0 // of what is wanted next
	for _, f := range l.Frames {
		switch n := slices.IndexFunc(want, func(r Record) bool { return r.Sequence == f.Sequence }); {
		case n < 0 && j.ChatOf(f.Sequence) == l.Chat:
			d.addf("got record %d, which is hidden or not after its cursor", f.Sequence)
		case n < 0:
			d.addf("got record %d of chat %q", f.Sequence, j.ChatOf(f.Sequence))
		case n < at:
			d.addf("got record %d again, or late: it was at %d", f.Sequence, want[at-1].Sequence)
		default:
			for _, missed := range want[at:n] {
				d.addf("missed record %d, %s", missed.Sequence, missed.Kind)
			}
			if want[n].Sum != f.Sum {
				d.addf("got record %d with another content", f.Sequence)
			}
			at = n + 1
		}
	}
	for _, missed := range want[at:] {
		d.addf("missed record %d, %s, at its end", missed.Sequence, missed.Kind)
	}
	if len(d.texts) > 0 {
		v.Brokenf("G1", "%s, chat %s after %d, with %d frames: %s", l.Name, l.Chat, l.After, len(l.Frames), d.String())
	}
}

// differences are what is wrong with a log.
type differences struct {
	texts []string
}

func (d *differences) addf(format string, args ...any) {
	d.texts = append(d.texts, fmt.Sprintf(format, args...))
}

// String returns the first ones.
func (d *differences) String() string {
	if len(d.texts) > maxDifferences {
		return fmt.Sprintf("%q and %d more", d.texts[:maxDifferences], len(d.texts)-maxDifferences)
	}
	return fmt.Sprintf("%q", d.texts)
}
