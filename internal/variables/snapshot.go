package variables

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/oneturn/oneturn/events"
)

// Digest identifies a value of a snapshot; null counts as no value, "".
func Digest(value any) string {
	const size = 8
	data, err := events.AppendJSON(nil, value)
	if err != nil || value == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:size])
}

// supersededBy reports whether the producer has changed an undeclared variable since a tool changed it last. A
// producer does not learn what tools set: a snapshot that repeats what it held then, or holds
// nothing, is older than the stored value. MozaiksAI needs no such rule, as its tools and its
// producer change one object.
func (e variable) supersededBy(snapshot map[string]any, name string) bool {
	value, ok := snapshot[name]
	return ok && Digest(value) != e.Base
}
