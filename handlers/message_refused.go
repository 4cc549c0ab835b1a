package handlers

import (
	"encoding/hex"
	"errors"
	"log/slog"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
)

// What follows from a message may be refused for good: its changes do not fit into the document of the chat, or that cannot be
// read; a blob is gone; a record cannot be stored. Trying again cannot help, so the message continues without it and is acknowledged:
// its turn runs without the changes, and its handoff is undecided, with the reason.

// warnLeftOut logs what is left out.
func (h *Handlers) warnLeftOut(s *chatMessage, what string, err error) {
	h.logThrottled(s.m, slog.LevelError, what, "", "workflow", throttle.Cut(s.WorkflowName), "chat", throttle.Cut(s.ChatID), "message", throttle.Cut(s.MessageID), "err", events.LogText(err))
}

// warnWithoutVariables logs that the changes of a message are left out.
func (h *Handlers) warnWithoutVariables(s *chatMessage, err error) {
	h.warnLeftOut(s, "context variables that a message sets cannot be stored; it continues without them", err)
}

// unlessRefused returns the error of a record that follows from a message, nil if it can never be stored.
func (h *Handlers) unlessRefused(s *chatMessage, err error) error {
	if err == nil || !store.Decided(err) {
		return err
	}
	h.warnLeftOut(s, "what follows from a message cannot be stored; it continues without it", err)
	return nil
}

// storeUndecided stores a handoff that cannot be decided in the document of the chat because of err.
func (h *Handlers) storeUndecided(s *chatMessage, err error) error {
	code := events.CodeTooLarge
	if errors.Is(err, events.ErrStateCorrupt) || errors.Is(err, store.ErrBlobGone) {
		code = events.CodeStateCorrupt
	}
	h.warnLeftOut(s, "the handoff of a message cannot be decided", err)
	decision, err := undecided(string(code), events.Clip(reason(err))).MarshalJSON()
	if err != nil {
		return err
	}
	return h.unlessRefused(s, h.storeHandoff(s, decision))
}

// withoutOutput makes t a turn whose output is gone because of err: it is not run, unless a worker has claimed it with the output.
func (h *Handlers) withoutOutput(s *chatMessage, t *turn, err error) error {
	h.warnLeftOut(s, "the structured output of a message is gone; its turn ends as interrupted unless it is claimed", err)
	t.Binding, _ = resolve(h.Bindings(), t) // for CompatSilent and the labels of metrics
	t.reject = reject(events.CodeInterrupted, errOutputGone)
	claims, err := h.Journal.Claims(s.m.Held, t.Key)
	if err != nil || claims[0] == nil || messageOf(claims[0]) != s.key.Turn {
		return err
	}
	if sum, err := hex.DecodeString(claims[0].Meta.Fingerprint); err == nil && len(sum) == len(t.fingerprint) {
		t.setData(t.data, [len(t.fingerprint)]byte(sum))
	}
	return nil
}

// errOutputGone is why a turn is not run whose data is no longer stored.
var errOutputGone = errors.New("the structured output of the message is gone or damaged: the turn was not run; send the message again with a new id")
