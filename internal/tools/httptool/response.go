package httptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// answer is what an endpoint answers one call.
type answer struct {
	*http.Response

	tool *Tool
	call *tools.Call
	op   string
}

// fail makes the error of an answer that cannot be used. The endpoint may have done its work: that is never retryable.
func (a *answer) fail(format string, args ...any) error {
	return tools.Unknown(a.failed(format, args...))
}

// failed makes the error of a call.
func (a *answer) failed(format string, args ...any) error {
	return &events.Error{Code: events.CodeToolError, Op: a.op, Msg: fmt.Sprintf(format, args...)}
}

// result reads the result of the call, as package target has it.
func (a *answer) result(ctx context.Context) (json.RawMessage, error) {
	if success := a.StatusCode >= 200 && a.StatusCode < 300; !success || a.Header.Get(target.HeaderErrorCode) != "" {
		return nil, a.tool.client.Failure(a.op, a.Response)
	}
	if a.StatusCode == http.StatusPartialContent {
		return nil, a.fail("the answer is a part of one (status 206): send the whole")
	}
	if outbound.EventStream(a.Response) {
		return a.stream(ctx)
	}
	data, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, outbound.CallError(ctx, a.op, err)
	}
	return a.value(data, a.Header.Get("Content-Type"))
}

// value makes the result of what was answered. An endpoint may show what it was sent.
func (a *answer) value(data []byte, contentType string) (json.RawMessage, error) {
	value, why := target.Answer(data, contentType)
	if why != "" {
		return nil, tools.Returned(a.failed("the answer (%d bytes) cannot be used: %s", len(data), a.tool.client.Clean(why)))
	}
	return a.tool.client.RedactJSON(value), nil
}
