package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// The tools that ask a person, in Go and in Python, and the publisher's part: the answers.

// approval is the model of turns whose tool asks a person.
type approval struct {
	Ticket ticket `json:"ticket"`
	Until  int64  `json:"until"` // end of the time for an answer, Unix nanoseconds, 0 for none
}

// decision is what the person answers.
type decision struct {
	Approved bool `json:"approved"`
}

// handed is what the tool that asks returns.
type handed struct {
	Status string `json:"status"`
	At     int64  `json:"at"` // when it had the answer, or was notified that there is none, Unix nanoseconds
}

// approve is the Go tool that asks one question.
func approve(ctx context.Context, a approval) (handed, error) {
	q := tool.Question{Component: "Approval", Payload: map[string]any{"subject": a.Ticket.Subject, "reply": a.Ticket.Reply}}
	if a.Until > 0 {
		q.Timeout = max(time.Until(time.Unix(0, a.Until)), time.Nanosecond)
	}
	if _, err := tool.Ask[decision](ctx, q); err != nil && !errors.Is(err, tool.ErrExpired) {
		return handed{}, err
	}
	return handed{"success", time.Now().UnixNano()}, nil
}

// askingPython is the same tool in Python, but that its questions have no end.
const askingPython = `import time
import oneturn


async def ask(ticket, until):
    await oneturn.ask("Approval", {"subject": ticket["subject"], "reply": ticket["reply"]}, name="approve")
    return {"status": "success", "at": time.time_ns()}
`

// pythonAsk is the id of its question in the call.
const pythonAsk = "approve"

// addAsking adds the Python tool to a manifest and its files.
func (f folders) addAsking(manifest map[string]any, files map[string][]byte) error {
	schema, err := tools.SchemaOf[approval]()
	if err != nil {
		return err
	}
	agents, _ := manifest["agents"].(map[string]any)
	agents[askPayload] = map[string]any{"model": "approval"}
	models, _ := manifest["models"].(map[string]any)
	models["approval"] = schema
	bound, _ := manifest["tools"].([]any)
	manifest["tools"] = append(bound, map[string]any{"name": "ask", "agent": askPayload, "file": "ask.py", "effect": "replay"})
	files["ask.py"] = []byte(askingPython)
	return nil
}

// withUntil returns data of an approval with another end of the time.
func withUntil(data any, until int64) map[string]any {
	old, _ := data.(map[string]any)
	object := maps.Clone(old)
	object["until"] = json.Number(strconv.FormatInt(until, 10))
	return object
}

// far is how far apart the turns are that are answered one after the other: a prime, so that
// all have their turn.
const far = 7919

// answered are the turns that an answer request takes, in the order in which it does.
func answered(r request) []int {
	turns := make([]int, r.Count)
	for n := range turns {
		turns[n] = r.From + n*far%r.Of
	}
	return turns
}

// answer answers questions at fixed times, whatever the answers result in.
func (p *publisher) answer(ctx context.Context, r request) ([]int64, error) {
	messages := make([]*nats.Msg, r.Count)
	for n, turn := range answered(r) {
		id, to, ask := turnID(turn), p.payload.workflows.of(turn), "1"
		if p.payload.workflows.Python {
			ask = pythonAsk
		}
		body, err := events.EncodeAnswer(&events.ToolCallResponse{
			TurnID: events.TurnID{App: id.App, Chat: id.Chat}, Workflow: to, ToolCallID: events.QuestionID(id.Turn, ask),
			Value: map[string]any{"approved": true},
		}, time.Now())
		if err != nil {
			return nil, err
		}
		messages[n] = &nats.Msg{Subject: p.space.In(subjects.DefaultPool, events.KindToolCallResponse, id.App, to, id.Chat), Data: body}
	}
	return p.send(ctx, messages, steady(ctx, r.Rate))
}

// handedAt reads from a response when the tool had its answer.
func handedAt(event []byte) (time.Time, error) {
	payload, err := payloadOf(event)
	if err != nil {
		return time.Time{}, err
	}
	object, _ := payload.(map[string]any)
	number, _ := object["at"].(json.Number)
	at, err := number.Int64()
	if err != nil {
		return time.Time{}, fmt.Errorf("a response does not state when its tool had the answer: %w", err)
	}
	return time.Unix(0, at), nil
}
