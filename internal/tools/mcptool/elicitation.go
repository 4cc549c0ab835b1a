package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
)

// Questions of servers. Older protocols ask while the call is open (elicit); since 2026-07-28 a server returns its
// questions (round), which are stored as a step, and the call is repeated with the answers. ask puts one of either
// to the host of the call.

// Component is what shows the question of a server, unless the manifest names one for the tool.
const Component = "Elicitation"

const (
	maxQuestions = 64      // of a call
	maxMessage   = 8 << 10 // bytes of the text of a question
	maxKey       = 48      // bytes of the name that a server gives a question
	modeURL      = "url"
)

// Reactions to a question, as the protocol names them.
const (
	accept  = "accept"
	decline = "decline"
	dismiss = "cancel"
)

// elicit is called by servers that ask while the call is open: by older versions of the
// protocol. The call stays on its session until there is an answer.
func (s *session) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	refuse := func(text string) (*mcp.ElicitResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
	}
	u := s.activeCall()
	if u == nil {
		return refuse("no call is under way on this session")
	}
	u.mu.Lock()
	u.questions++
	number := u.questions
	if !u.slotReleased && s.server.addSlot() {
		u.slotReleased = true
	}
	u.mu.Unlock()
	if number > maxQuestions {
		return refuse(fmt.Sprintf("a call may ask %d questions", maxQuestions))
	}
	asking, cancel := context.WithCancel(u.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	params := *req.Params
	params.Message = u.redact(params.Message)
	answer, err := ask(asking, u.op, u.call.Host, "", number, &params)
	if err != nil && ctx.Err() == nil {
		u.stop(err) // the call ends with it
	}
	return answer, err
}

// ask asks a question of a server. An error ends the call.
func ask(ctx context.Context, op string, host tools.Host, name string, number int, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if host == nil {
		return nil, failf(events.CodeToolError, op, "no host: the server asks a question, which the caller of this tool does not support; a turn of a worker does")
	}
	q, err := question(op, p)
	if err != nil {
		return nil, err
	}
	q.Name, q.Number = name, number
	a, err := host.Ask(ctx, q)
	switch {
	case events.CodeOf(err) == events.CodeExpired && ctx.Err() == nil:
		return &mcp.ElicitResult{Action: dismiss}, nil
	case err != nil:
		return nil, err
	}
	var value any
	if err := json.Unmarshal(a.Value, &value); err != nil { // with the numbers of the SDK
		return nil, failf(events.CodeToolError, op, "the answer is not JSON")
	}
	switch v := value.(type) {
	case nil:
		return &mcp.ElicitResult{Action: decline}, nil
	case bool:
		if !v {
			return &mcp.ElicitResult{Action: decline}, nil
		}
	case map[string]any:
		if p.URL == "" {
			return &mcp.ElicitResult{Action: accept, Content: v}, nil
		}
	}
	return &mcp.ElicitResult{Action: accept}, nil
}

// question makes a question of a request of a server. A form is answered by its object, a
// page to visit by true; null declines either.
func question(op string, p *mcp.ElicitParams) (tools.Question, error) {
	shows := map[string]any{"component_type": Component, "message": excerpt.Of(p.Message, maxMessage), "mode": "form"}
	schema := json.RawMessage(`{"type":["boolean","null"]}`)
	if p.Mode == modeURL || p.URL != "" {
		shows["mode"], shows["url"] = modeURL, p.URL // shown, never fetched
	} else {
		var err error
		if schema, err = answerSchema(p.RequestedSchema); err != nil {
			return tools.Question{}, &events.Error{Code: events.CodeToolError, Op: op, Msg: "the server asks with an invalid schema for the answer", Err: err}
		}
	}
	payload, err := encode(shows)
	return tools.Question{Payload: payload, Schema: schema}, err
}

// answerSchema is the schema of a form, which null declines.
func answerSchema(requested any) (json.RawMessage, error) {
	data, err := json.Marshal(requested)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the context
	}
	tree, err := events.Decode(data)
	if err != nil {
		return nil, err
	}
	form, ok := tree.(map[string]any)
	if !ok {
		form = map[string]any{}
	}
	form = maps.Clone(form)
	form["type"] = []any{"object", "null"}
	schema, err := events.AppendJSON(nil, form)
	if err != nil {
		return nil, err
	}
	return model.Checkable(schema) // the server checks the rest of the answer
}

// round is a result by which a server asks instead of answering, since 2026-07-28: the call is
// repeated with the answers and the server's state, by any worker, on any session. It is a step
// of the turn.
type round struct {
	Requests mcp.InputRequestMap `json:"requests"`
	State    string              `json:"state,omitempty"`
	Digest   string              `json:"digest,omitempty"` // of the tool that asks

	number int
}

const maxRounds = 16

func stepName(number int) string { return fmt.Sprintf("mcp input %d", number) }

// resumed returns the round that a run before has come to; nil if there was none.
func resumed(ctx context.Context, call *tools.Call) (*round, error) {
	if call.Host == nil || call.Epoch <= 1 && call.Attempt <= 1 {
		return nil, nil //nolint:nilnil // there is none
	}
	var last *round
	for n := 1; n <= maxRounds; n++ {
		stored, done, err := call.Host.StepResult(ctx, stepName(n))
		if err != nil {
			return nil, err
		}
		if !done {
			break
		}
		if last, err = parseRound(stored, n); err != nil {
			return nil, err
		}
	}
	return last, nil
}

func parseRound(stored json.RawMessage, n int) (*round, error) {
	r := &round{number: n}
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, &events.Error{Code: events.CodeStateCorrupt, Op: "read " + stepName(n), Msg: "the record cannot be read", Err: err}
	}
	return r, nil
}

// next stores the questions of the server.
func (u *activeCall) next(ctx context.Context, before *round, pin *pinned, r *mcp.CallToolResult) (*round, error) {
	n := 1
	if before != nil {
		n = before.number + 1
	}
	switch {
	case len(r.InputRequests) == 0:
		return nil, tools.RetryAfter(failf(events.CodeToolError, u.op, "the server has no room for the call now"), time.Second)
	case n > maxRounds, len(r.InputRequests) > maxQuestions:
		return nil, failf(events.CodeToolError, u.op, "the server asks too many questions: at most %d at the same time and %d times", maxQuestions, maxRounds)
	case u.call.Host == nil:
		return nil, failf(events.CodeToolError, u.op, "no host: the server asks a question, which the caller of this tool does not support; a turn of a worker does")
	}
	for key, request := range r.InputRequests {
		params, is := request.(*mcp.ElicitParams)
		if !is {
			return nil, failf(events.CodeToolError, u.op, "the server asks for %.80q what is not offered: models and files of the worker", key)
		}
		params.Message = u.redact(params.Message)
	}
	data, err := json.Marshal(round{Requests: r.InputRequests, State: r.RequestState, Digest: pin.digest})
	if err != nil {
		return nil, failf(events.CodeToolError, u.op, "what the server asks has no JSON form: %v", err)
	}
	stored, err := u.call.Host.StoreStep(ctx, stepName(n), data)
	if err != nil {
		return nil, err
	}
	return parseRound(stored, n)
}

// answers asks the questions of a round, in the order of their keys.
func (r *round) answers(ctx context.Context, op string, host tools.Host) (mcp.InputResponseMap, error) {
	all := mcp.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(r.Requests)) {
		p, ok := r.Requests[key].(*mcp.ElicitParams)
		if !ok {
			return nil, errors.New("invalid stored question")
		}
		answer, err := ask(ctx, op, host, r.name(key), 0, p)
		if err != nil {
			return nil, err
		}
		all[key] = answer
	}
	return all, nil
}

// name of a question in the call: its key, and the round where another question could be called
// so.
func (r *round) name(key string) string {
	name := key
	if len(key) > maxKey {
		sum := sha256.Sum256([]byte(key))
		name = excerpt.Of(key, maxKey) + "~" + hex.EncodeToString(sum[:8])
	}
	if r.number > 1 || name == "" || strings.Contains(name, "/") {
		name = fmt.Sprintf("%d/%s", r.number, name)
	}
	return name
}
