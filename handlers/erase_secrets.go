package handlers

import (
	"context"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// eraseTime bounds the erasing of a turn's secrets after its response.
const eraseTime = 5 * time.Second

// sealAnswer returns the answer to a secret question as the journal may hold it.
func sealAnswer(keys *secrets.Keys, key subjects.Key, id string, data []byte) ([]byte, error) {
	return keys.Seal(idempotency.AnswerName(key, id), data)
}

// openAnswer returns the data that [sealAnswer] was given, and an answer that is not sealed as it is.
func openAnswer(keys *secrets.Keys, key subjects.Key, id string, data []byte) ([]byte, error) {
	if !secrets.Sealed(data) {
		return data, nil
	}
	return keys.Open(idempotency.AnswerName(key, id), data)
}

// eraseSecrets erases the sealed secrets of a turn that has its response. A sweep erases the rest.
func (h *Handlers) eraseSecrets(ctx context.Context, t *turn) {
	if !t.Secret.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime)
	defer cancel()
	n, err := h.Journal.Erase(ctx, t.Key)
	if err != nil {
		h.often(t.m, slog.LevelWarn, "secret answers could not be erased; a sweep does it", "", "chat", cut(t.Chat), "turn", cut(t.CallID), "err", err)
		return
	}
	h.Logger.Debug("secret answers erased", "chat", t.Chat, "turn", t.CallID, "records", n)
}
