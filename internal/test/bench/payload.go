package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// The structured data that turns carry (flat, nested, or rows of any size), the no-op tools that take it, and the
// events that hold it.

//go:embed payloads
var payloadFiles embed.FS

const (
	app          = "bench"
	workflow     = "Bench"
	turnsAChat   = 20
	payloadsName = "flat, nested"
	askPayload   = "ask"
	rowsPayload  = "rows-" // and the bytes of the data
)

// ticket is the model of the flat payload.
type ticket struct {
	Ticket           string  `json:"ticket"`
	Customer         string  `json:"customer"`
	Email            string  `json:"email"`
	Subject          string  `json:"subject"`
	Summary          string  `json:"summary"`
	Category         string  `json:"category"`
	Priority         string  `json:"priority"`
	Language         string  `json:"language"`
	Channel          string  `json:"channel"`
	Sentiment        float64 `json:"sentiment"`
	Confidence       float64 `json:"confidence"`
	InvoicesAffected int     `json:"invoices_affected"`
	AmountCents      int64   `json:"amount_cents"`
	Currency         string  `json:"currency"`
	Refund           bool    `json:"refund"`
	Escalate         bool    `json:"escalate"`
	AssignedTeam     string  `json:"assigned_team"`
	Due              string  `json:"due"`
	Reply            string  `json:"reply"`
}

// order is the model of the nested payload.
type order struct {
	Order    string   `json:"order"`
	Customer customer `json:"customer"`
	Lines    []line   `json:"lines"`
	Shipping shipping `json:"shipping"`
	Totals   totals   `json:"totals"`
	Notes    []string `json:"notes"`
	Approved bool     `json:"approved"`
}

type customer struct {
	Name    string  `json:"name"`
	Tier    string  `json:"tier"`
	Address address `json:"address"`

	Contacts []contact `json:"contacts"`
}

type address struct {
	Street  string `json:"street"`
	City    string `json:"city"`
	Zip     string `json:"zip"`
	Country string `json:"country"`
}

type contact struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

type line struct {
	SKU      string   `json:"sku"`
	Title    string   `json:"title"`
	Quantity int      `json:"quantity"`
	Price    price    `json:"price"`
	Tags     []string `json:"tags"`
}

type price struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type shipping struct {
	Method   string   `json:"method"`
	Earliest string   `json:"earliest"`
	Parcels  []parcel `json:"parcels"`
}

type parcel struct {
	WeightKg float64 `json:"weight_kg"`
	Fragile  bool    `json:"fragile"`
}

type totals struct {
	Net   float64 `json:"net"`
	Tax   float64 `json:"tax"`
	Gross float64 `json:"gross"`
}

// done is what the no-op tools return.
type done struct {
	Status string `json:"status"`
}

func noop[In any](context.Context, In) (done, error) { return done{"success"}, nil }

// table is the model of payloads of any size.
type table struct {
	Title string `json:"title"`
	Rows  []item `json:"rows"`
}

type item struct {
	SKU      string  `json:"sku"`
	Title    string  `json:"title"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
	Note     string  `json:"note"`
}

// newTable returns a table that is about so many bytes of JSON.
func newTable(size int) table {
	t := table{Title: "Stocktaking"}
	for bytes := 40; bytes < size-100; bytes += 200 {
		t.Rows = append(t.Rows, item{
			SKU: "SKU-" + strconv.Itoa(100_000+len(t.Rows)), Title: "Folding chair, oiled oak", Quantity: len(t.Rows) % 90, Price: 149.5,
			Note: "Two of them have a scratch on the left front leg, see the photo of last week.",
		})
	}
	return t
}

// toolset is the no-op Go tools: typed functions, so that what a user pays for the schema
// check and the decoding into a struct is part of the figures.
func toolset() []oneturn.Tool {
	return []oneturn.Tool{
		oneturn.NewTool("noop_flat", noop[ticket], oneturn.ToolOptions{Workflow: workflow, Agent: "flat", Model: "ticket"}),
		oneturn.NewTool("noop_nested", noop[order], oneturn.ToolOptions{Workflow: workflow, Agent: "nested", Model: "order"}),
		oneturn.NewTool("ask", approve, oneturn.ToolOptions{Workflow: workflow, Agent: askPayload, Model: "approval", Effect: oneturn.Replay}),
		oneturn.NewTool("noop_rows", noop[table], oneturn.ToolOptions{Workflow: workflow, Agent: "rows", Model: "table"}),
	}
}

// payload is what turns carry.
type payload struct {
	name, model string
	data        any
	workflows   folders
}

func loadPayload(name string) (payload, error) {
	if text, sized := strings.CutPrefix(name, rowsPayload); sized {
		size, err := strconv.Atoi(text)
		if err != nil {
			return payload{}, fmt.Errorf("payload %q: want %s and a number of bytes", name, rowsPayload)
		}
		raw, err := json.Marshal(newTable(size))
		if err != nil {
			return payload{}, fmt.Errorf("payload %s: %w", name, err)
		}
		data, err := events.Decode(raw)
		return payload{name: "rows", model: "table", data: data}, err
	}
	if name == askPayload {
		flat, err := loadPayload("flat")
		return payload{name: name, model: "approval", data: withUntil(map[string]any{"ticket": flat.data}, 0)}, err
	}
	model, ok := map[string]string{"flat": "ticket", "nested": "order"}[name]
	if !ok {
		return payload{}, fmt.Errorf("payload %q is not one of %s", name, payloadsName)
	}
	raw, err := payloadFiles.ReadFile("payloads/" + name + ".json")
	if err != nil {
		return payload{}, fmt.Errorf("payload %s: %w", name, err)
	}
	data, err := events.Decode(raw)
	return payload{name: name, model: model, data: data}, err
}

// turnID names the turn of an index: each its own key, some to a chat.
func turnID(i int) events.TurnID {
	return events.TurnID{App: app, Chat: "chat-" + strconv.Itoa(i/turnsAChat), Turn: "turn-" + strconv.Itoa(i)}
}

func turnKey(i int) subjects.Key {
	id := turnID(i)
	return subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
}

// body is the event that starts the turn of an index.
func (p payload) body(i int) ([]byte, error) {
	return events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: turnID(i), Workflow: p.workflows.of(i), Agent: p.name, Model: p.model, Data: p.data, AutoToolMode: true,
	}, time.Now())
}

// outbound returns the two events of a turn as the product writes them, up to ids. The
// baselines publish these bytes.
func (p payload) outbound() (call, response []byte, err error) {
	return p.outboundOf(turnID(0), time.Now())
}

func (p payload) outboundOf(id events.TurnID, now time.Time) (call, response []byte, err error) {
	tool := "noop_" + p.name
	call, err = events.Encode(events.KindToolCall, &events.ToolCall{
		ID: id.Turn, AppID: id.App, ChatID: id.Chat, Turn: id.Turn, Agent: p.name, ToolName: tool,
		ToolCallID: id.Turn, CallID: id.Turn, Corr: id.Turn, InteractionType: events.InteractionAutoTool, WorkflowName: workflow,
		Payload: events.ToolCallPayload{ToolArgs: p.data, AgentName: p.name, InteractionType: events.InteractionAutoTool, WorkflowName: workflow},
	}, now)
	if err != nil {
		return nil, nil, err
	}
	response, err = events.Encode(events.KindToolResponse, &events.ToolResponse{
		ID: id.Turn, AppID: id.App, ChatID: id.Chat, Turn: id.Turn, Agent: p.name, ToolName: tool,
		ToolCallID: id.Turn, CallID: id.Turn, Corr: id.Turn, Status: events.StatusOK, Success: true, Content: "success",
		InteractionType: events.InteractionAutoTool, WorkflowName: workflow, Attempts: 1,
		Payload: map[string]any{"status": "success"},
	}, now)
	return call, response, err
}
