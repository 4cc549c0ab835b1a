package idempotency

import (
	"slices"

	"github.com/oneturn/oneturn/events"
)

// The records of a turn expire one by one, the claim first. The next claim of the key begins a new turn, a new generation
// of the key, while other records of the earlier one may remain for days. They have lower sequences than the new claim:
// they do not count, and a create of the new turn replaces them by compare-and-set. Two exceptions: a cancel may be older
// than its claim (cancel.go), and an unreadable record is never treated as old: it fails closed.

// generationOf returns the sequence from which on records belong to the turn with a claim. It is 0, so that all records do,
// for a claim that is not known or unreadable: it may have been damaged later.
func generationOf(claim *Record) uint64 {
	if claim == nil || claim.Err != nil {
		return 0
	}
	return claim.Seq
}

// Former reports whether a record is of an earlier generation of its key than the one that began with the claim of a
// sequence; 0 stands for a claim that is not known. It does not apply to cancels.
func (r *Record) Former(claim uint64) bool {
	return r.Seq < claim && r.Err == nil
}

// has reports whether a record (nil: none) belongs to the turn of the hold.
func (h *Hold) has(r *Record) bool { return r != nil && !r.Former(h.Claim) }

// currentRecords removes the records of an earlier generation.
func currentRecords(records []Record) []Record {
	at := slices.IndexFunc(records, isKind(events.RecordCall))
	if at < 0 || at == 0 && !slices.ContainsFunc(records, isKind(events.RecordCancel)) {
		return records
	}
	var response *Record
	if n := slices.IndexFunc(records, isKind(events.RecordResponse)); n >= 0 {
		response = &records[n]
	}
	call, isCancel := &records[at], isKind(events.RecordCancel)
	claim := generationOf(call)
	life := make([]Record, 0, len(records))
	for _, r := range records {
		if isCancel(r) && cancels(&r, response, call) || !isCancel(r) && !r.Former(claim) {
			life = append(life, r)
		}
	}
	return life
}
