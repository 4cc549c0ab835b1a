package httptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/tools"
	"github.com/oneturn/oneturn/tools/target"
)

// answer is what an endpoint answers one call.
type answer struct {
	*http.Response

	tool *Tool
	call *tools.Call
	op   string
}

// fail makes the error of an answer that cannot be used. The endpoint has done its work, or may
// have: that is never retryable.
func (a *answer) fail(format string, args ...any) error {
	return &events.Error{Code: events.CodeToolError, Op: a.op, Msg: fmt.Sprintf(format, args...)}
}

// result reads the result of the call: JSON as it is, text/* as a string, nothing as null.
func (a *answer) result(ctx context.Context) (json.RawMessage, error) {
	if success := a.StatusCode >= 200 && a.StatusCode < 300; !success || a.Header.Get(target.HeaderErrorCode) != "" {
		return nil, a.tool.client.Failure(a.op, a.Response)
	}
	if outbound.EventStream(a.Response) {
		return a.stream(ctx)
	}
	data, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, outbound.Fault(ctx, a.op, err)
	}
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	switch {
	case len(data) == 0:
		return nil, nil
	case outbound.IsJSON(kind), a.Header.Get("Content-Type") == "":
		return a.json(data)
	case err == nil && strings.HasPrefix(kind, "text/"):
		return a.text(data, params["charset"])
	}
	return nil, a.fail("the answer has Content-Type %q: send application/json, or text in UTF-8", a.tool.client.Clean(kind))
}

func (a *answer) json(data []byte) (json.RawMessage, error) {
	if !jsontext.Value(data).IsValid() {
		return nil, a.fail("the answer is no JSON (%d bytes)", len(data))
	}
	return a.tool.client.BlotJSON(data), nil // an endpoint may show what it was sent
}

func (a *answer) text(data []byte, charset string) (json.RawMessage, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "us-ascii":
	default:
		return nil, a.fail("the answer is text in charset %q: send UTF-8", a.tool.client.Clean(charset))
	}
	if !utf8.Valid(data) {
		return nil, a.fail("the answer is text that is not UTF-8 (%d bytes)", len(data))
	}
	value, err := json.Marshal(a.tool.client.Blot(string(data)))
	if err != nil { // a string has a JSON form
		return nil, a.fail("the answer's text has no JSON form")
	}
	return value, nil
}
