package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// exhibit is what a tool puts on the screen: a question or a surface.
type exhibit struct {
	name   string // that its id is made of, "" if it is numbered
	number int    // by who counts for itself, 0 otherwise

	tool, component, display, interaction string

	payload json.RawMessage
}

// errorsRefused reports whether something can never be stored.
func errorsRefused(err error) bool {
	return errors.Is(err, idempotency.ErrRefused) || errors.Is(err, events.ErrTooLarge)
}

// exhibitEvent is the event of what a call puts on the screen, as far as the turn tells.
func (t *turn) exhibitEvent(id string) *events.ToolCall {
	full := events.QuestionID(t.callID, id)
	return &events.ToolCall{
		ID: full, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: full, CallID: full, Corr: full, WorkflowName: t.Workflow, UserID: t.UserID,
	}
}

// event makes the event of an exhibit with an id.
func (d *desk) event(ctx context.Context, id string, put *exhibit) (*events.ToolCall, error) {
	r := d.run
	shows, err := events.DecodeShown(put.payload)
	if err != nil {
		return nil, err
	}
	component, display := r.h.look(r.t, put, shows)
	if shows, err = r.keepShown(ctx, id, shows, len(put.payload)); err != nil {
		return nil, err
	}
	e := r.t.exhibitEvent(id)
	e.ToolName, e.InteractionType, e.Display, e.DisplayType = put.tool, put.interaction, display, display
	e.ComponentType = &component
	e.Payload = events.ToolCallPayload{Shown: shows}
	return e, nil
}

// look says which component shows an exhibit, and where: as the tool says, else as the manifests
// do, else in a way that loses no question.
func (h *Handlers) look(t *turn, put *exhibit, shows map[string]any) (component, display string) {
	input := put.interaction == events.InteractionInputRequest
	bound, where := h.Bindings().Look(t.Workflow, put.tool)
	hint := ""
	for _, name := range []string{"component_type", "component"} {
		if said, ok := shows[name].(string); ok && hint == "" {
			hint = said
		}
	}
	usual, place := "", events.DisplayInline
	if input {
		usual, place = events.ComponentUserInput, events.DisplayComposer
	}
	if input && put.tool == t.binding.Tool { // the look of the call's own tool is not that of a line to type in
		bound, where = "", ""
	}
	return cmp.Or(put.component, bound, usual, hint, put.tool), cmp.Or(put.display, where, place)
}

// keepShown stores what is shown as a blob if no record should hold it.
func (r *run) keepShown(ctx context.Context, id string, shows map[string]any, size int) (map[string]any, error) {
	if r.h.Blobs.Inline(size) {
		return shows, nil
	}
	data, err := events.AppendJSON(make([]byte, 0, size), shows)
	if err != nil {
		return nil, err
	}
	var kept any
	err = r.persist(func(lease context.Context) (err error) {
		kept, err = r.h.shrink(lease, ctx, r.t.key, events.RecordAsk+"."+subjects.Token(id), shows, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if blob, ok := kept.(events.Blob); ok {
		return blob.Shown(), nil
	}
	return shows, nil
}

// digest tells a question from others, so that a run that asks in another order than the one
// before is found out. What is shown is no part of it: it may hold times and random ids.
func digest(put *exhibit, schema string, secret bool) string {
	sum := sha256.Sum256(events.JoinIDs(put.name, put.tool, put.component, put.display, put.interaction, schema, strconv.FormatBool(secret)))
	const enough = 32
	return events.Hex(sum)[:enough]
}
