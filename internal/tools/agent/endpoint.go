package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// endpoint is a chat-completions endpoint that serves a model. Endpoints differ in what they know
// of the form of answers: it asks for the most, once, and remembers what was taken.
type endpoint struct {
	to     target.Completions
	client *outbound.Client

	taken  atomic.Int32 // the dialect that the endpoint has taken
	proven atomic.Bool  // it has
}

// dialect is how a request is put: the sum of what the endpoint does not know.
type dialect int32

// What an endpoint may not know.
const (
	noSchema      dialect = 1 // response_format json_schema
	noFormat      dialect = 2 // response_format at all
	noMaxTokens   dialect = 4 // max_tokens: it is called max_completion_tokens
	noTemperature dialect = 8 // a temperature that the manifest has not set
)

// request is the body of a request.
type request struct {
	Model               string    `json:"model"`
	Messages            []Message `json:"messages"`
	Temperature         *float64  `json:"temperature,omitempty"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	ResponseFormat      *format   `json:"response_format,omitempty"`
}

// response is what counts of the body of an answer.
type response struct {
	Choices []struct {
		Message struct {
			Content json.RawMessage `json:"content"` // a text, or a list of parts
			Refusal string          `json:"refusal"`
		} `json:"message"`
		FinishReason string          `json:"finish_reason"`
		Error        json.RawMessage `json:"error"` // of a provider of the endpoint
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"` // some report it with status 200
}

// Complete continues the conversation. Errors are *[events.Error], retryable by the rules of package tools.
func (e *endpoint) Complete(ctx context.Context, call *tools.Call, ask Ask) (Answer, error) {
	op := "ask " + call.Name
	for d := dialect(e.taken.Load()); ; {
		answer, err := e.complete(ctx, op, call, ask, d)
		if err == nil {
			e.taken.Store(int32(d))
			e.proven.Store(true)
			return answer, nil
		}
		next, ok := d.after(err, ask)
		if !ok || e.proven.Load() {
			return Answer{}, err
		}
		d = next
	}
}

// after is the dialect to try after an endpoint has refused one, if there is another.
func (d dialect) after(err error, ask Ask) (dialect, bool) {
	schema := ask.Schema != nil
	var refused *outbound.StatusError
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity {
		return d, false
	}
	switch {
	case d&noMaxTokens == 0 && strings.Contains(err.Error(), "max_completion_tokens"):
		return d | noMaxTokens, true
	case d&noTemperature == 0 && ask.Temperature != nil && strings.Contains(err.Error(), "temperature"):
		return d | noTemperature, true
	case schema && d&noSchema == 0:
		return d | noSchema, true
	case schema && d&noFormat == 0:
		return d | noFormat, true
	}
	return d, false
}

// body puts a request in a dialect.
func (e *endpoint) body(ask Ask, d dialect) ([]byte, error) {
	r := request{Model: e.to.Model, Messages: ask.Messages, Temperature: e.to.Temperature, MaxTokens: e.to.MaxTokens}
	if r.Temperature == nil && d&noTemperature == 0 {
		r.Temperature = ask.Temperature
	}
	if d&noMaxTokens != 0 {
		r.MaxTokens, r.MaxCompletionTokens = 0, r.MaxTokens
	}
	switch {
	case ask.Schema == nil:
	case d&noSchema == 0:
		r.ResponseFormat = schemaFormat(ask.Schema)
	default:
		if d&noFormat == 0 {
			r.ResponseFormat = &format{Type: "json_object"}
		}
		r.Messages = withFormatPrompt(ask)
	}
	return json.Marshal(r) //nolint:wrapcheck // the caller does
}

func (e *endpoint) complete(ctx context.Context, op string, call *tools.Call, ask Ask, d dialect) (Answer, error) {
	fail := func(msg string) (Answer, error) {
		return Answer{}, &events.Error{Code: events.CodeToolError, Op: op, Msg: msg}
	}
	body, err := e.body(ask, d)
	if err != nil {
		return fail("the request has no JSON form: is the output schema JSON?")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to.URL, bytes.NewReader(body))
	if err != nil { // its text holds the URL, which may hold a key
		return fail("the url of the manifest cannot be read")
	}
	outbound.Identify(req, call)
	outbound.Anonymous(req.Header)
	if d != 0 && call.IdempotencyKey != "" { // another body is another request
		req.Header.Set(target.HTTPIdempotencyKey, target.Escape(call.IdempotencyKey)+"-"+strconv.Itoa(int(d)))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.client.HTTP.Do(req)
	if err != nil {
		return Answer{}, outbound.CallError(ctx, op, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Answer{}, e.client.Failure(op, resp)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, outbound.CallError(ctx, op, err)
	}
	var parsed response
	malformed := json.Unmarshal(data, &parsed) != nil
	if err := e.failure(op, &parsed); err != nil {
		return Answer{}, err
	}
	if malformed || len(parsed.Choices) == 0 {
		return fail("the endpoint's answer is not a chat completion (" + strconv.Itoa(len(data)) + " bytes): check the url of the manifest")
	}
	first := parsed.Choices[0]
	content, refusal, err := contentOf(first.Message.Content)
	if err != nil {
		return fail("the endpoint's answer is not a chat completion: " + err.Error())
	}
	answer := Answer{Content: content, Refusal: cmp.Or(first.Message.Refusal, refusal), Finish: first.FinishReason}
	if json.Unmarshal(parsed.Usage, &answer.Usage) != nil {
		answer.Usage = Usage{} // an answer that is paid for does not fail for how it is counted
	}
	return answer, nil
}
