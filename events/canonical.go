package events

import (
	"crypto/sha256"
	"encoding/json"
)

// Canonical is JSON that [AppendJSON] has written and that is nested at most [MaxDataDepth]
// deep, so that it fits into every event. [Encode] and [AppendJSON] copy it as it is: it comes
// from [Canonicalize] or [CanonicalData] only, never from outside.
type Canonical json.RawMessage

// MarshalJSON implements json.Marshaler.
func (c Canonical) MarshalJSON() ([]byte, error) {
	if len(c) == 0 {
		return []byte("null"), nil
	}
	return c, nil
}

// dataDepth is how many containers of an event lie around a Canonical at most.
const dataDepth = MaxDepth - MaxDataDepth

// Canonicalize returns a value tree as canonical JSON. Room is a guess of its size in bytes.
// It fails as [AppendJSON] does, with [MaxDataDepth] as limit.
func Canonicalize(v any, room int) (Canonical, error) {
	return appendValue(make([]byte, 0, room), v, dataDepth)
}

// CanonicalData returns t.Data as canonical JSON and the fingerprint of t, which is equal for two
// events of one turn that ask for the same: sha256 of the canonical JSON of
// [workflow, agent, model, structured_data], numbers as written. Key order, white space and
// the generation of the names do not change it. Room is a guess of the size in bytes, such as
// the size of the event.
//
// Both are zero if t.Data is not a value tree or nested over [MaxDataDepth]: [EncodeTurn]
// refuses such data and [DecodeTurn] never returns it.
func CanonicalData(t *StructuredOutputReady, room int) (Canonical, [sha256.Size]byte) {
	return canonicalData(t, room, "")
}

// CanonicalData is [CanonicalData] for the turn that m.Turn, m.PlanReady or m.Retry has returned, unchanged. Structured data that
// came as canonical JSON, as [EncodeTurn] sends it, is taken as it is.
func (m *Message) CanonicalData(t *StructuredOutputReady) (Canonical, [sha256.Size]byte) {
	if t.Plan || t.ResumeOf != "" || m.canonical == "" || m.deepest > MaxDataDepth { // deep somewhere in the event, perhaps in its data
		return CanonicalData(t, m.size)
	}
	const names = 128
	return canonicalData(t, names+len(m.canonical), m.canonical)
}

// canonicalData is [CanonicalData] with the data as canonical JSON, or "" when that is still to be written.
func canonicalData(t *StructuredOutputReady, room int, known string) (Canonical, [sha256.Size]byte) {
	b := append(make([]byte, 0, room), '[')
	for _, name := range [...]string{t.Workflow, t.Agent, t.Model} {
		var err error
		if b, err = appendString(b, name); err != nil {
			return nil, [sha256.Size]byte{}
		}
		b = append(b, ',')
	}
	start := len(b)
	if b = append(b, known...); known == "" {
		var err error
		if b, err = appendValue(b, t.Data, dataDepth); err != nil {
			return nil, [sha256.Size]byte{}
		}
	}
	end := len(b)
	b = append(b, ']')
	return Canonical(b[start:end:end]), sha256.Sum256(b)
}

// Fingerprint is the fingerprint of [CanonicalData].
func Fingerprint(t *StructuredOutputReady) [sha256.Size]byte {
	const usual = 1024
	_, fingerprint := CanonicalData(t, usual)
	return fingerprint
}
