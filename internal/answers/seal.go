package answers

import (
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// Seal returns the answer to a secret question as the journal may store it. It is bound to its question.
func Seal(keys *secrets.Keys, key subjects.Key, id string, data []byte) ([]byte, error) {
	return keys.Seal(idempotency.AnswerName(key, id), data)
}

// Open returns the data that [Seal] was given, and an answer that is not sealed unchanged.
func Open(keys *secrets.Keys, key subjects.Key, id string, data []byte) ([]byte, error) {
	if !secrets.Sealed(data) {
		return data, nil
	}
	return keys.Open(idempotency.AnswerName(key, id), data)
}
