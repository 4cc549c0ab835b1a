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
