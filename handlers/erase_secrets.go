package handlers

import (
	"context"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/internal/throttle"
)

// eraseTime bounds the erasing of a turn's secrets after its response.
const eraseTime = 5 * time.Second

// eraseSecrets erases the sealed secrets of a turn that has its response. A sweep erases the rest.
func (h *Handlers) eraseSecrets(ctx context.Context, t *turn) {
	if !t.Secret.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime)
	defer cancel()
	n, err := h.Journal.Erase(ctx, t.Key)
	if err != nil {
		h.often(t.m, slog.LevelWarn, "secret answers could not be erased; a sweep does it", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		return
	}
	h.Logger.Debug("secret answers erased", "chat", t.Chat, "turn", t.CallID, "records", n)
}
