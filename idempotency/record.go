package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// The journal's entries: Store is what the rules need of a bucket, Record is one entry of it with its headers (Meta) and the
// lease of its writer. Headers and ParseMeta are the form on the wire.

// Store holds records that are created once and never change, except that secrets are erased and records of an earlier
// generation of a key are replaced.
type Store interface {
	// Create stores the record if its key is free and returns its sequence. If r.Seq is set, it replaces the record
	// with that sequence instead. Otherwise the error is an *ExistsError (decided: another record is stored, or the one
	// to replace is not), ErrUndecided (a concurrent write is in flight), ErrRefused (this record can never be stored),
	// ErrGone (nothing can be stored any more), or any other: the outcome is unknown, and the record may be stored now,
	// later or never. The caller may reuse r.Data as soon as Create returns.
	Create(ctx context.Context, r Record) (uint64, error)
	// At returns the record with a sequence, as the leader knows it, or ErrNotFound.
	At(ctx context.Context, seq uint64) (Record, error)
	// Last returns the record under a key, as the leader knows it, or ErrNotFound. Of a filter whose last token is
	// [AnyToken] it returns the last record that matches.
	Last(ctx context.Context, key string) (Record, error)
	// LastOf returns the record under each key, as Last does, nil where there is none. They may be read at the same
	// time, in any order.
	LastOf(ctx context.Context, keys []string) ([]*Record, error)
	// Scan returns all records of a turn except its reuse records, as the leader knows them, in the order of their sequences. A cancel may
	// precede the claim. Known are records of an earlier scan, nil for none: those that never change need not be
	// read again. It fails with ErrTooMany for a turn with more records than one read returns, and with ErrStale
	// if records that are listed are repeatedly not found.
	Scan(ctx context.Context, key subjects.Key, known []Record) ([]Record, error)
	// Erase removes the data of a record that was read and marks it as [Erased]. Erasing it again is not an error.
	Erase(ctx context.Context, r Record) error
}

// AnyToken stands in a filter for every tenant, chat, turn or question.
const AnyToken = "*"

// Record is one entry of a turn in the journal.
type Record struct {
	Key  string    // journal key, see subjects.Key
	Meta Meta      // its writer and lease
	Data []byte    // the event for public records
	Seq  uint64    // sequence in the journal; before it is stored, the sequence of the record to replace, 0 for none
	Time time.Time // when the server stored it
	Err  error     // why Meta could not be read; such a record fails closed
}

// Damaged reports whether the event of a public record is unreadable: its writer is not known, or it is not JSON.
func (r *Record) Damaged() bool { return r.Err != nil || !json.Valid(r.Data) }

// Erased returns the record with everything but its data.
func (r *Record) Erased() Record {
	erased := *r
	erased.Data, erased.Meta.Secret = nil, Erased
	return erased
}

// ExistsError is the error of [Store.Create] if the key has a record, or has another one than the record to replace.
type ExistsError struct {
	Key string
	Seq uint64 // sequence of the stored record, 0 if there is none
}

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("journal: create %s: the key has record %d", e.Key, e.Seq)
}

// Errors of a [Store].
var (
	// ErrUndecided reports that a concurrent write of the same key is in flight (server error 10164): nothing is decided
	// yet, try again shortly.
	ErrUndecided = errors.New("journal: a concurrent write is in flight")
	// ErrNotFound reports that there is no such record.
	ErrNotFound = errors.New("journal: no such record")
	// ErrDamaged reports that the stored record is unreadable.
	ErrDamaged = errors.New("journal: the stored record cannot be read")
	// ErrRefused reports that the record can never be stored, for example because it is larger
	// than the server's max_payload.
	ErrRefused = errors.New("journal: the record cannot be stored")
	// ErrGone reports that the journal's bucket does not exist any more, or was created again since the store began to
	// use it. Nothing is stored after that: a new bucket does not have the claims of the old one and would run old
	// turns again. The worker has to end.
	ErrGone = errors.New("the journal is gone")
	// ErrTooMany reports that a filter matches more records than one read returns.
	ErrTooMany = errors.New("too many records")
	// ErrStale reports that reads lack a record which this worker has stored before them.
	ErrStale = errors.New("journal: reads lack a record that was stored before them: the server that answers is no longer the leader")
)

// Headers of a journal record. Every subscriber can read them, so they grant no rights and hold no secrets.
const (
	HeaderOwner       = "Oneturn-Owner"
	HeaderNonce       = "Oneturn-Nonce"
	HeaderEpoch       = "Oneturn-Epoch"
	HeaderLease       = "Oneturn-Lease"
	HeaderClaim       = "Oneturn-Claim"
	HeaderEffect      = "Oneturn-Effect"
	HeaderDigest      = "Oneturn-Binding" // [Meta].Digest
	HeaderFingerprint = "Oneturn-Fingerprint"
	HeaderOutcome     = "Oneturn-Verdict" // [Meta].Outcome
	HeaderPool        = "Oneturn-Pool"
	HeaderMessage     = "Oneturn-Message" // [Meta].Message
	HeaderSecret      = "Oneturn-Secret"
	HeaderTrace       = "traceparent"
)

// Meta has the headers of a record: its writer, lease and epoch, and what the rules compare.
type Meta struct {
	Owner       string  // worker that wrote it
	Nonce       string  // random, by which a writer recognises its own records: one of the run, or a fresh one (see the package comment)
	Epoch       int     // of the writer; 1 in records that no owner writes: answers, acks, cancels, reuse records
	Lease       Lease   // claims, takeovers, answers, cancels and reuse records: the message that caused them
	Claim       uint64  // cancels only: sequence of the claim they are about, 0 if the turn was not claimed
	Effect      string  // claims only: effect of the tool; a takeover may apply a stricter one, never a weaker one
	Digest      string  // claims only: digest of the manifests that bound the tool
	Fingerprint string  // of the data, in claims and records of runs, "" when there was none; in questions and answers, the digest of their content
	Outcome     string  // what the record decides, by kind: see the package comment
	Pool        string  // claims and takeovers: pool of the worker, "" for the default one
	Message     string  // claims only: token of the message that made the turn, "" if its event did, see [subjects.MessageToken]
	Secret      Secrecy // private records only: whether their data is sealed
	Trace       string  // W3C traceparent of the inbound message
}

// Lease is the inbound message under which a turn is owned (docs/journal.md#rule-3).
type Lease struct {
	Stream   string
	Seq      uint64 // sequence in the inbound stream
	Delivery uint64 // how often it had been delivered, 1 for the first time
}

// Same reports whether both are deliveries of one message.
func (l Lease) Same(o Lease) bool { return l.Stream == o.Stream && l.Seq == o.Seq }

// After reports whether l is a later delivery of the same message than o.
func (l Lease) After(o Lease) bool { return l.Same(o) && l.Delivery > o.Delivery }

// String returns the header form.
func (l Lease) String() string {
	if l == (Lease{}) {
		return ""
	}
	const usual = 64
	b := append(make([]byte, 0, usual), l.Stream...)
	b = strconv.AppendUint(append(b, '/'), l.Seq, 10)
	return string(strconv.AppendUint(append(b, '/'), l.Delivery, 10))
}

var errLease = errors.New("want <stream>/<sequence>/<delivery>")

// ParseLease reads the header form of a lease; "" is none.
func ParseLease(s string) (Lease, error) {
	if s == "" {
		return Lease{}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" {
		return Lease{}, errLease
	}
	seq, err1 := strconv.ParseUint(parts[1], 10, 64)
	delivery, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Lease{}, err
	}
	return Lease{Stream: parts[0], Seq: seq, Delivery: delivery}, nil
}

// Secrecy marks a private record whose data is, or contains, the answer to a secret question. It is stored in a header, so
// that a sweep finds sealed data that remains after the end of a turn.
type Secrecy string

// The values.
const (
	Plain  Secrecy = ""       // no secret
	Sealed Secrecy = "sealed" // encrypted, see [secrets.Keys]
	Erased Secrecy = "erased" // it was sealed; the data is removed, the record remains
)

// secrecyOf is the secrecy of data that is about to be stored.
func secrecyOf(data []byte) Secrecy {
	if secrets.Sealed(data) {
		return Sealed
	}
	return Plain
}

// MetaHeaders is how many headers a Meta has.
const MetaHeaders = 13

// Headers calls set for each header with its number, name and value; "" stands for a header to omit.
func (m *Meta) Headers(set func(i int, name, value string)) {
	for i, h := range [MetaHeaders]struct{ name, value string }{
		{HeaderOwner, m.Owner},
		{HeaderNonce, m.Nonce},
		{HeaderEpoch, strconv.Itoa(m.Epoch)},
		{HeaderLease, m.Lease.String()},
		{HeaderClaim, sequence(m.Claim)},
		{HeaderEffect, m.Effect},
		{HeaderDigest, m.Digest},
		{HeaderFingerprint, m.Fingerprint},
		{HeaderOutcome, m.Outcome},
		{HeaderPool, m.Pool},
		{HeaderMessage, m.Message},
		{HeaderSecret, string(m.Secret)},
		{HeaderTrace, m.Trace},
	} {
		set(i, h.name, h.value)
	}
}

// ParseMeta reads the headers of a record. A record without owner, nonce or epoch was not
// written by this package, or was damaged: it fails closed (docs/journal.md#rule-10).
func ParseMeta(get func(name string) string) (Meta, error) {
	m := Meta{
		Owner: get(HeaderOwner), Nonce: get(HeaderNonce), Effect: get(HeaderEffect), Digest: get(HeaderDigest),
		Fingerprint: get(HeaderFingerprint), Outcome: get(HeaderOutcome), Pool: get(HeaderPool), Message: get(HeaderMessage),
		Secret: Secrecy(get(HeaderSecret)), Trace: get(HeaderTrace),
	}
	var err error
	if m.Epoch, err = strconv.Atoi(get(HeaderEpoch)); err != nil || m.Epoch < 1 {
		return m, fmt.Errorf("journal: header %s is %.20q, want a number from 1", HeaderEpoch, get(HeaderEpoch))
	}
	if m.Owner == "" || m.Nonce == "" {
		return m, fmt.Errorf("journal: a record without %s or %s", HeaderOwner, HeaderNonce)
	}
	if m.Lease, err = ParseLease(get(HeaderLease)); err != nil {
		return m, fmt.Errorf("journal: header %s is %.80q: %w", HeaderLease, get(HeaderLease), err)
	}
	if claim := get(HeaderClaim); claim != "" {
		if m.Claim, err = strconv.ParseUint(claim, 10, 64); err != nil {
			return m, fmt.Errorf("journal: header %s is %.20q, want a sequence: %w", HeaderClaim, claim, err)
		}
	}
	return m, nil
}

// sequence is the header form of a sequence, "" for none.
func sequence(seq uint64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatUint(seq, 10)
}

// sameData reports whether a claim is known to be of the data with a fingerprint.
func (r *Record) sameData(fingerprint string) bool {
	return r.Err == nil && fingerprint != "" && r.Meta.Fingerprint == fingerprint
}

// otherData reports whether a claim is known to be of other data than that with a fingerprint.
func (r *Record) otherData(fingerprint string) bool {
	return r.Err == nil && fingerprint != "" && r.Meta.Fingerprint != "" && r.Meta.Fingerprint != fingerprint
}
