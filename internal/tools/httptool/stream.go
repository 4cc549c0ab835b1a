package httptool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// stream reads an answer of server-sent events: progress as often as the endpoint likes, then
// result or error. Other events are passed over.
func (a *answer) stream(ctx context.Context) (json.RawMessage, error) {
	r := bufio.NewReader(a.Body)
	for {
		name, data, err := next(r)
		switch {
		case errors.Is(err, io.EOF):
			return nil, a.fail("the stream ended without a result: %s", outbound.Unknown)
		case err != nil:
			return nil, outbound.CallError(ctx, a.op, err)
		case name == "result":
			return a.value(data, "application/json")
		case name == "error":
			return nil, a.failure(data)
		case name == "progress":
			if err := a.progress(ctx, data); err != nil {
				return nil, err
			}
		}
	}
}

// next reads one event. An incomplete event at the end of the stream is ignored.
func next(r *bufio.Reader) (name string, data []byte, err error) {
	for {
		line, err := r.ReadBytes('\n') // bounded by the body, which counts each event
		if err != nil {
			return "", nil, err //nolint:wrapcheck // io.EOF is the end
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if name != "" || data != nil {
				return name, bytes.TrimSuffix(data, []byte("\n")), nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			data = append(append(data, value...), '\n')
		}
	}
}

// progress reports how far the endpoint is. It need not be read, and a report that cannot be read
// or published is dropped.
func (a *answer) progress(ctx context.Context, data []byte) error {
	var event struct {
		Percent *float64 `json:"percent"`
		Message string   `json:"message"`
	}
	err := json.Unmarshal(data, &event)
	if a.call.Host == nil || err != nil {
		return nil //nolint:nilerr // see above
	}
	p := tools.Progress{Percent: -1, Message: a.tool.client.Clean(event.Message)}
	if event.Percent != nil && *event.Percent >= 0 {
		p.Percent = min(*event.Percent, 100)
	}
	if err := a.call.Host.Progress(ctx, p); errors.Is(err, tools.ErrParked) {
		return err
	}
	return nil
}

// failure is the error that a stream ends with.
func (a *answer) failure(data []byte) error {
	var event struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &event) != nil || event.Message == "" {
		return a.failed("the endpoint failed without a message")
	}
	err := &events.Error{Code: target.CodeOf(event.Code), Op: a.op, Msg: a.tool.client.Clean(event.Message)}
	if event.Code == target.CodeRetryable {
		return tools.Retryable(err)
	}
	return err
}
