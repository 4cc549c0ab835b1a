package idempotency

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Headers of a journal record. Every subscriber can read them, so they grant nothing and
// hold no secret.
const (
	HeaderOwner       = "Oneturn-Owner"
	HeaderNonce       = "Oneturn-Nonce"
	HeaderEpoch       = "Oneturn-Epoch"
	HeaderLease       = "Oneturn-Lease"
	HeaderClaim       = "Oneturn-Claim"
	HeaderEffect      = "Oneturn-Effect"
	HeaderDigest      = "Oneturn-Binding"
	HeaderFingerprint = "Oneturn-Fingerprint"
	HeaderVerdict     = "Oneturn-Verdict"
	HeaderPool        = "Oneturn-Pool"
	HeaderSecret      = "Oneturn-Secret"
	HeaderTrace       = "traceparent"
)

// Meta is what a record says about its writer.
type Meta struct {
	Owner       string  // worker that wrote it
	Nonce       string  // random, one a delivery: tells a writer its own record again
	Epoch       int     // 1 for the claim, one more for each takeover
	Lease       Lease   // claims and takeovers only
	Claim       uint64  // cancels only: sequence of the claim they are about, 0 if the turn was not claimed
	Effect      string  // claims only: effect of the tool, pinned for the life of the turn
	Digest      string  // claims only: digest of the manifests that bound the tool
	Fingerprint string  // claims and responses: fingerprint of the data, "" when there was none
	Verdict     string  // claims: code of a rejected turn; park records: how they ended
	Pool        string  // claims and takeovers: pool of the worker, "" for the default one
	Secret      Secrecy // private records only: whether their data is sealed
	Trace       string  // W3C traceparent of the inbound message
}

// Lease is the inbound message under which a turn is owned.
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

// MetaHeaders is how many headers a Meta has.
const MetaHeaders = 12

// Headers gives each header its number, name and value; "" stands for one to leave out.
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
		{HeaderVerdict, m.Verdict},
		{HeaderPool, m.Pool},
		{HeaderSecret, string(m.Secret)},
		{HeaderTrace, m.Trace},
	} {
		set(i, h.name, h.value)
	}
}

// ParseMeta reads the headers of a record. A record without owner, nonce or epoch was not
// written by this package, or was damaged: it fails closed.
func ParseMeta(get func(name string) string) (Meta, error) {
	m := Meta{
		Owner: get(HeaderOwner), Nonce: get(HeaderNonce), Effect: get(HeaderEffect), Digest: get(HeaderDigest),
		Fingerprint: get(HeaderFingerprint), Verdict: get(HeaderVerdict), Pool: get(HeaderPool),
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
