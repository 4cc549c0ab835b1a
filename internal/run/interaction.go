package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// interaction is what a tool displays: a question or a surface.
type interaction struct {
	name   string // its id is made of it, "" if it is numbered
	number int    // from callers that count themselves, 0 otherwise

	tool, component, display string

	kind    string // interaction_type of the event
	payload json.RawMessage
}

// event makes the event of an interaction with an id.
func (h *host) event(ctx context.Context, id string, i *interaction) (*events.ToolCall, error) {
	r := h.run
	shows, err := events.DecodeShown(i.payload)
	if err != nil {
		return nil, err
	}
	component, display := presentation(r.cfg.Bindings(), r.t, i, shows)
	if shows, err = r.storeShown(ctx, id, shows, len(i.payload)); err != nil {
		return nil, err
	}
	e := r.t.interactionEvent(id)
	e.ToolName, e.InteractionType, e.Display, e.DisplayType = i.tool, i.kind, display, display
	e.ComponentType = &component
	e.Payload = events.ToolCallPayload{Shown: shows}
	return e, nil
}

// presentation returns which component displays an interaction, and where: as the tool specifies, else as the
// manifests do, else in a way that displays every question.
func presentation(set *bindings.Set, t *Turn, i *interaction, shows map[string]any) (component, display string) {
	input := i.kind == events.InteractionInputRequest
	bound, where := set.Presentation(t.Workflow, i.tool)
	hint := ""
	for _, name := range []string{"component_type", "component"} {
		if text, ok := shows[name].(string); ok && hint == "" {
			hint = text
		}
	}
	usual, place := "", events.DisplayInline
	if input {
		usual, place = events.ComponentUserInput, events.DisplayComposer
	}
	if input && i.tool == t.Binding.Tool { // the component of the call's tool does not display an input line
		bound, where = "", ""
	}
	return cmp.Or(i.component, bound, usual, hint, i.tool), cmp.Or(i.display, where, place)
}

// storeShown stores what is shown as a blob if it is too large for a record.
func (r *Run) storeShown(ctx context.Context, id string, shows map[string]any, size int) (map[string]any, error) {
	if r.cfg.Blobs.Inline(size) {
		return shows, nil
	}
	data, err := events.AppendJSON(make([]byte, 0, size), shows)
	if err != nil {
		return nil, err
	}
	var stored any
	err = r.persist(func(lease context.Context) (err error) {
		stored, err = r.reg.shrink(lease, ctx, r.t.Key, events.RecordAsk+"."+subjects.Token(id), shows, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if blob, ok := stored.(events.Blob); ok {
		return blob.Shown(), nil
	}
	return shows, nil
}

// digest identifies a question, so that a run that asks in another order than an earlier one is detected. What is
// shown does not count: it may contain times and random ids.
func digest(i *interaction, schema string, secret bool) string {
	sum := sha256.Sum256(events.JoinIDs(i.name, i.tool, i.component, i.display, i.kind, schema, strconv.FormatBool(secret)))
	const enough = 32
	return events.Hex(sum)[:enough]
}
