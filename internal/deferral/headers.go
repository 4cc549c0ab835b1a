package deferral

import (
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// Headers of a deferred message. Workers write them; a producer that does so only makes its message older, and no
// answer earlier.
const (
	// HeaderDeferred is when the inbound stream took the message first, in RFC 3339.
	HeaderDeferred = "Oneturn-Deferred"
	// HeaderDeferrals is how often it was deferred.
	HeaderDeferrals = "Oneturn-Deferrals"
	// HeaderOffers is how often it was delivered before.
	HeaderOffers = "Oneturn-Offers"
	// HeaderOrigin are the deliveries that were deferred, as leases in their header form.
	HeaderOrigin = "Oneturn-Origin"
	// HeaderTurn are the keys of the turns that a sealed message may be the lease of: a worker without its key cannot
	// read them in the data.
	HeaderTurn = "Oneturn-Turn"
	// HeaderMsgID is the Nats-Msg-Id with which it was published.
	HeaderMsgID = "Oneturn-Msg-Id"
)

// Bounds of the headers of a deferred message.
const (
	maxCount   = 1 << 20 // of deferrals and offers; a greater number counts as this one
	maxMsgID   = 256     // bytes of the id; a longer one is omitted
	maxOrigins = 8       // deliveries that a copy names, the last ones
	maxTurns   = 2       // turns that a message may be the lease of
)

// bounded returns the sender's headers of a message as far as they fit, first those that a worker reads, and
// their bytes. Headers of deferral are written by the worker and take nothing of the bound.
func bounded(all nats.Header) (header nats.Header, size int) {
	senders := inbound.SenderHeaders(all)
	header = nats.Header{}
	for _, name := range []string{HeaderDeferred, HeaderDeferrals, HeaderOffers, HeaderOrigin, HeaderTurn, HeaderMsgID} {
		delete(senders, name)
	}
	for _, name := range append([]string{subjects.HeaderReply, subjects.HeaderDepth, idempotency.HeaderTrace, inbound.TraceParent}, slices.Sorted(maps.Keys(senders))...) {
		more := inbound.HeaderSize(name, senders[name])
		if more == 0 || size+more > inbound.MaxSenderHeaders {
			continue
		}
		size += more
		header[name] = senders[name]
		delete(senders, name)
	}
	return header, size
}

// count reads a header with a number, 0 if it has none.
func count(header nats.Header, name string) int {
	n, err := strconv.Atoi(header.Get(name))
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxCount)
}

// originsOf reads the deliveries of which a message is a copy. What cannot be read is left out.
func originsOf(header nats.Header) (origins []idempotency.Lease) {
	texts := header[HeaderOrigin]
	for _, text := range texts[max(len(texts)-maxOrigins, 0):] {
		if l, err := idempotency.ParseLease(text); err == nil {
			origins = append(origins, l)
		}
	}
	return origins
}

// turnsOf reads the keys of the turns that a sealed message may be the lease of. What cannot be read is left out.
func turnsOf(header nats.Header) (turns []subjects.Key) {
	texts := header[HeaderTurn]
	for _, text := range texts[:min(len(texts), maxTurns)] {
		if key, ok := subjects.ParseCall(text); ok {
			turns = append(turns, key)
		}
	}
	return turns
}
