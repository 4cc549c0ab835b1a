package python

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/tools"
)

// The wire between worker and process: request and reply are the frames in the two directions, newRequest makes
// the frame of a call, readReply reads a frame within its bound.

// frameSlack is what a reply may take beyond the limit of its value, in bytes: an error text.
const frameSlack = 64 << 10

// request is one frame to a child.
type request struct {
	ID       uint64          `json:"id"`
	Op       string          `json:"op"` // call, cancel, reply
	File     string          `json:"file,omitempty"`
	Function string          `json:"function,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Map      *mapping        `json:"map,omitempty"`
	Context  json.RawMessage `json:"context,omitempty"`
	Meta     *meta           `json:"meta,omitempty"`

	Parked bool               `json:"parked,omitempty"` // of a cancel: its turn continues later
	N      uint64             `json:"n,omitempty"`      // of a reply: the operation that it answers
	Value  *operation.Reply   `json:"value,omitempty"`
	Error  *operation.Refusal `json:"error,omitempty"`
	Quiet  bool               `json:"quiet,omitempty"` // of a reply with an error: no traceback is logged
}

// mapping has a child map the arguments of a call to parameters that only it knows.
type mapping struct {
	Fields []string   `json:"fields"` // that the model declares, null without a model
	Known  turnFields `json:"known"`
}

// turnFields are the values of the turn: they fill parameters that no field fills.
type turnFields struct {
	ChatID       string `json:"chat_id"`
	AppID        string `json:"app_id"`
	EnterpriseID string `json:"enterprise_id"`
	Workflow     string `json:"workflow_name"`
	Turn         string `json:"turn_idempotency_key"`
	AgentName    string `json:"agent_name"`
	Agent        string `json:"agent"`
	UserID       string `json:"user_id"`
	RunID        string `json:"run_id"`
}

// meta is what oneturn.call() shows a tool.
type meta struct {
	AppID          string `json:"app_id"`
	ChatID         string `json:"chat_id"`
	RunID          string `json:"run_id"`
	Turn           string `json:"turn"`
	CallID         string `json:"call_id"`
	Workflow       string `json:"workflow"`
	Agent          string `json:"agent"`
	UserID         string `json:"user_id"`
	Tool           string `json:"tool"`
	IdempotencyKey string `json:"idempotency_key"`
	FencingToken   uint64 `json:"fencing_token"`
	Epoch          int    `json:"epoch"`
	Attempt        int    `json:"attempt"`
	Depth          int    `json:"depth"`
}

// reply is one frame from a child: a greeting, the news that a call's function is about to be
// entered, an operation of its host, or the end of a call.
type reply struct {
	ID      uint64          `json:"id"`
	Hello   bool            `json:"hello"`
	Entered bool            `json:"entered"`
	Async   bool            `json:"async"` // of a function that is entered
	Value   json.RawMessage `json:"value"`
	Set     json.RawMessage `json:"set"`
	Remove  []string        `json:"remove"`
	Error   *failure        `json:"error"`

	Blocked string `json:"blocked"` // where the call keeps the event loop from running
	Free    bool   `json:"free"`    // it runs again
	Back    bool   `json:"back"`    // the call was not begun and goes to another process

	Op   string          `json:"op"` // of an operation: ask, show, dismiss, progress, step_get, step_put, forget
	N    uint64          `json:"n"`  // its number in the call
	Body json.RawMessage `json:"body"`
}

// frame puts the length before a body.
func frame(body []byte) []byte {
	framed := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(framed, uint32(len(body)))
	return append(framed, body...)
}

// readReply reads one frame of at most limit bytes.
func readReply(r io.Reader, limit int) (*reply, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read the length of a frame: %w", err)
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > int64(limit) {
		return nil, fmt.Errorf("a frame of %d bytes is over the limit of %d", size, limit)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read a frame of %d bytes: %w", size, err)
	}
	var parsed reply
	if err := json.Unmarshal(body, &parsed); err != nil {
		return nil, fmt.Errorf("parse a frame of %d bytes: %w", size, err)
	}
	return &parsed, nil
}

// newRequest makes the frame of a call.
func newRequest(id uint64, file, function string, call *tools.Call) ([]byte, error) {
	args, err := call.EncodedArgs()
	if err != nil {
		return nil, fmt.Errorf("encode the call: %w", err)
	}
	vars, err := object(call.Context)
	if err != nil {
		return nil, err
	}
	r := request{
		ID: id, Op: "call", File: file, Function: function, Args: args, Context: vars,
		Meta: &meta{
			AppID: call.Turn.App, ChatID: call.Turn.Chat, RunID: call.Turn.Run, Turn: call.Turn.Turn,
			CallID: call.CallID, Workflow: call.Workflow, Agent: call.Agent, UserID: call.UserID, Tool: call.Name,
			IdempotencyKey: call.IdempotencyKey, FencingToken: call.FencingToken, Epoch: call.Epoch, Attempt: call.Attempt, Depth: call.Depth,
		},
	}
	if call.MapArgs {
		r.Map = &mapping{Fields: call.Fields, Known: turnFields{
			ChatID: call.Turn.Chat, AppID: call.Turn.App, EnterpriseID: call.Turn.App, Workflow: call.Workflow,
			Turn: call.Turn.Turn, AgentName: call.Agent, Agent: call.Agent, UserID: call.UserID, RunID: call.Turn.Run,
		}}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode the call: %w", err)
	}
	return frame(body), nil
}

func cancelRequest(id uint64, parked bool) []byte {
	body, err := json.Marshal(request{ID: id, Op: "cancel", Parked: parked})
	if err != nil {
		return nil // cannot happen: a number and a constant
	}
	return frame(body)
}

func object(tree map[string]any) (json.RawMessage, error) {
	if tree == nil {
		return nil, nil // the caller has seen that the function names no context
	}
	data, err := events.AppendJSON(nil, tree)
	if err != nil {
		return nil, fmt.Errorf("encode the call: %w", err)
	}
	return data, nil
}

// result turns the reply of a finished call into a result.
func (r *reply) result() (tools.Result, error) {
	result := tools.Result{Value: r.Value, Remove: r.Remove}
	if len(r.Set) == 0 {
		return result, nil
	}
	tree, err := events.Decode(r.Set)
	if err != nil {
		return tools.Result{}, fmt.Errorf("context variables that the tool set: %w", err)
	}
	set, ok := tree.(map[string]any)
	if !ok {
		return tools.Result{}, fmt.Errorf("context variables that the tool set are a %T, not an object", tree)
	}
	if len(set) > 0 {
		result.Set = set
	}
	return result, nil
}
